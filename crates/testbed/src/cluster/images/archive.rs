//! The archive of an image: its one layer, its configuration, its manifest.
//!
//! In: a folder with the file system. Out: a `docker-archive` file. Must not: compress (it is read once, from the same disk).

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use snafu::ResultExt as _;

use crate::cluster::error::{Error, FileSnafu};
use crate::cluster::network::{answer, succeed};

/// What an image says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster) struct Image {
    /// Its name with its tag, which is never `latest`: that one would be pulled.
    pub(in crate::cluster) name: &'static str,
    /// What runs when a pod names no command.
    pub(in crate::cluster) entrypoint: Vec<&'static str>,
}

/// Packs the folder `root` as an image into the file `archive`; `work` is an empty folder for the pieces.
pub(in crate::cluster) fn pack(image: &Image, root: &Path, work: &Path, archive: &Path) -> Result<(), Error> {
    let layer = work.join("layer.tar");
    // Always the same bytes for the same files: the sum names the layer.
    let same = ["--sort=name", "--mtime=@0", "--numeric-owner", "--format=gnu"];
    tar(&layer, root, &[&same[..], &["."]].concat())?;
    let sum = sha256(&layer)?;
    let write = |name: &str, value: serde_json::Value| {
        let path = work.join(name);
        std::fs::write(&path, value.to_string()).context(FileSnafu { what: "write", path })
    };
    write("config.json", config(image, &sum))?;
    write("manifest.json", json!([{"Config": "config.json", "RepoTags": [image.name], "Layers": ["layer.tar"]}]))?;
    tar(archive, work, &["manifest.json", "config.json", "layer.tar"])?;
    std::fs::remove_file(&layer).context(FileSnafu { what: "remove", path: layer })
}

fn config(image: &Image, layer_sum: &str) -> serde_json::Value {
    // Containerd's names of architectures are Go's.
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": image.entrypoint,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_sum}")]},
    })
}

fn tar(file: &Path, folder: &Path, words: &[&str]) -> Result<(), Error> {
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--file").arg(file).arg("--directory").arg(folder).args(words).stdin(Stdio::null());
    succeed("packing an image", tar.output())
}

/// The sum, by the machine's own program: it is many times faster than an unoptimised build of ours.
fn sha256(file: &Path) -> Result<String, Error> {
    let asked = Command::new("sha256sum").arg("--binary").arg(file).stdin(Stdio::null()).output();
    let said = answer("summing a layer", asked)?;
    Ok(said.split(' ').next().unwrap_or_default().trim_start_matches('\\').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn list(archive: &Path) -> Vec<String> {
        let listed = Command::new("tar").arg("--list").arg("--file").arg(archive).output().unwrap();
        String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    fn packed(folder: &Folder) -> serde_json::Value {
        let (root, work, archive) =
            (folder.path().join("root"), folder.path().join("work"), folder.path().join("image.tar"));
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(root.join("bin/sh"), b"#!").unwrap();
        let image = Image { name: "bloodraven.test/x:1", entrypoint: vec!["/bin/sh"] };
        pack(&image, &root, &work, &archive).unwrap();
        assert_eq!(list(&archive), ["manifest.json", "config.json", "layer.tar"]);
        let manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(work.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest[0]["RepoTags"][0], "bloodraven.test/x:1");
        assert_eq!(manifest[0]["Layers"][0], "layer.tar");
        serde_json::from_slice(&std::fs::read(work.join("config.json")).unwrap()).unwrap()
    }

    #[test]
    fn an_archive_holds_a_manifest_a_configuration_and_one_layer_that_it_names_by_its_sum() {
        let folder = Folder::new();
        let config = packed(&folder);
        assert_eq!(config["config"]["Entrypoint"][0], "/bin/sh");
        let work = folder.path().join("work");
        let unpack =
            Command::new("tar").args(["--extract", "--file", "../image.tar", "layer.tar"]).current_dir(&work).status();
        assert!(unpack.unwrap().success());
        assert_eq!(list(&work.join("layer.tar")), ["./", "./bin/", "./bin/sh"]);
        let sum = format!("sha256:{}", sha256(&work.join("layer.tar")).unwrap());
        assert_eq!(config["rootfs"]["diff_ids"], json!([sum]));
    }

    #[test]
    fn the_same_files_make_the_same_layer() {
        assert_eq!(packed(&Folder::new())["rootfs"], packed(&Folder::new())["rootfs"]);
    }

    #[test]
    fn a_sum_is_the_one_that_everybody_computes() {
        let folder = Folder::new();
        let file = folder.path().join("abc");
        std::fs::write(&file, b"abc").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&file).unwrap(), known);
    }
}
