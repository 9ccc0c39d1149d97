//! What is in each image.
//!
//! In: the unpacked MySQL packages, a static busybox, CoreDNS, the programs of this workspace. Out: folders that are packed.
//! Must not: write through a link into the cache: files that change are made anew.

use std::io;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use snafu::ResultExt as _;

use super::{BLOODRAVEN, COREDNS, Image, MYSQL, PAUSE};
use crate::cluster::error::{Error, FileSnafu};
use crate::cluster::network::succeed;

/// The user and group of MySQL in its image.
const MYSQL_ID: u32 = 999;

/// Commands of busybox that images have, where nothing else has the name.
const APPLETS: [&str; 30] = [
    "sh", "ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "chmod", "chown", "ln", "ps", "kill", "pidof", "sleep",
    "env", "id", "test", "true", "false", "echo", "grep", "sed", "head", "tail", "nc", "nslookup", "date", "touch",
    "df",
];

/// A shell that waits, reaps what is left to it and ends when asked.
const PAUSE_SCRIPT: &str = "trap 'exit 0' TERM INT; while :; do sleep 100000 & wait; done";

/// Libraries that the programs of this workspace need, beside the loader.
const LIBRARIES: [&str; 4] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0"];

/// What the standing images are made of.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct Sources {
    /// The unpacked MySQL packages.
    pub(in crate::cluster) mysql: PathBuf,
    /// A static busybox.
    pub(in crate::cluster) busybox: PathBuf,
    /// A static CoreDNS.
    pub(in crate::cluster) coredns: PathBuf,
}

/// A recipe: fills an empty folder.
type Fill = fn(&Sources, &Path) -> Result<(), Error>;

/// The images that do not change with this workspace, with their recipes.
pub(in crate::cluster) fn standing() -> [(Image, Fill); 3] {
    [
        (Image { name: PAUSE, entrypoint: vec!["/bin/busybox", "sh", "-c", PAUSE_SCRIPT] }, pause),
        (Image { name: MYSQL, entrypoint: vec![] }, mysql),
        (Image { name: COREDNS, entrypoint: vec!["/coredns"] }, coredns),
    ]
}

fn pause(sources: &Sources, root: &Path) -> Result<(), Error> {
    at(root, || add_busybox(&sources.busybox, root))
}

fn coredns(sources: &Sources, root: &Path) -> Result<(), Error> {
    at(root, || {
        add_users(root)?;
        place(&sources.coredns, &root.join("coredns"))
    })
}

/// Everything of the packages, links instead of copies.
fn mysql(sources: &Sources, root: &Path) -> Result<(), Error> {
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--link", "--no-target-directory"]).arg(&sources.mysql).arg(root).stdin(Stdio::null());
    succeed("copying MySQL", copy.output())?;
    at(root, || {
        for name in [".complete", "packages", "version"] {
            let _ = std::fs::remove_file(root.join(name));
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            if root.join(name).symlink_metadata().is_err() {
                symlink(format!("usr/{name}"), root.join(name))?;
            }
        }
        add_users(root)?;
        add_busybox(&sources.busybox, root)?;
        std::fs::create_dir_all(root.join("proc"))?;
        for name in ["var/lib/mysql", "run/mysqld"] {
            let folder = root.join(name);
            std::fs::create_dir_all(&folder)?;
            chown(&folder, Some(MYSQL_ID), Some(MYSQL_ID))?;
        }
        add_loader_link(root)
    })
}

/// The image of this workspace: its programs, with the loader and libraries of the MySQL packages.
pub(in crate::cluster) fn bloodraven(
    sources: &Sources,
    bloodraven: &Path,
    keeper: &Path,
    root: &Path,
) -> Result<Image, Error> {
    at(root, || {
        let bin = root.join("usr/local/bin");
        let (from, to) = (libraries(&sources.mysql), libraries(root));
        for folder in [&bin, &to, &root.join("usr/bin"), &root.join("usr/sbin"), &root.join("usr/lib64")] {
            std::fs::create_dir_all(folder)?;
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            symlink(format!("usr/{name}"), root.join(name))?;
        }
        let loader = loader_name(&from)?;
        for name in LIBRARIES.into_iter().map(str::to_owned).chain([loader]) {
            // Newer C libraries are one file.
            if from.join(&name).exists() {
                std::fs::copy(from.join(&name), to.join(&name))?;
            }
        }
        add_loader_link(root)?;
        add_users(root)?;
        add_busybox(&sources.busybox, root)?;
        place(bloodraven, &bin.join("bloodraven"))?;
        place(keeper, &bin.join("keeper"))
    })?;
    Ok(Image { name: BLOODRAVEN, entrypoint: vec!["/usr/local/bin/bloodraven"] })
}

/// Copies a program, without what only a debugger reads where the machine can take it away.
fn place(program: &Path, to: &Path) -> io::Result<()> {
    let mut strip = Command::new("strip");
    let stripped = strip.arg("-o").arg(to).arg(program).stdin(Stdio::null()).stderr(Stdio::null()).status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(program, to)?;
    }
    std::fs::set_permissions(to, PermissionsExt::from_mode(0o755))
}

fn add_users(root: &Path) -> io::Result<()> {
    std::fs::create_dir_all(root.join("etc"))?;
    let fresh = |name: &str, text: String| {
        // The file may be a link into the cache.
        let _ = std::fs::remove_file(root.join(name));
        std::fs::write(root.join(name), text)
    };
    let user = format!("mysql:x:{MYSQL_ID}:{MYSQL_ID}:mysql:/var/lib/mysql:/bin/sh\n");
    let nobody = "nonroot:x:65532:65532:nonroot:/:/bin/sh\n";
    fresh("etc/passwd", format!("root:x:0:0:root:/root:/bin/sh\n{user}{nobody}"))?;
    fresh("etc/group", format!("root:x:0:\nmysql:x:{MYSQL_ID}:\nnonroot:x:65532:\n"))?;
    fresh("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned())?;
    let tmp = root.join("tmp");
    std::fs::create_dir_all(&tmp)?;
    std::fs::set_permissions(&tmp, PermissionsExt::from_mode(0o1777))
}

fn add_busybox(busybox: &Path, root: &Path) -> io::Result<()> {
    let bin = root.join("bin");
    std::fs::create_dir_all(&bin)?;
    let copy = bin.join("busybox");
    std::fs::copy(busybox, &copy)?;
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755))?;
    for name in APPLETS.map(|name| bin.join(name)).into_iter().filter(|path| path.symlink_metadata().is_err()) {
        symlink("busybox", name)?;
    }
    Ok(())
}

fn libraries(root: &Path) -> PathBuf {
    root.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH))
}

fn loader_name(libraries: &Path) -> io::Result<String> {
    let names = libraries.read_dir()?.flatten().filter_map(|found| found.file_name().into_string().ok());
    let missing = || io::Error::other(format!("no loader in {}", libraries.display()));
    names.into_iter().find(|name| name.starts_with("ld-linux")).ok_or_else(missing)
}

/// Programs ask for their loader in `/lib64` or `/lib`.
fn add_loader_link(root: &Path) -> io::Result<()> {
    let from = libraries(root);
    let loader = loader_name(&from)?;
    let target = format!("/usr/lib/{}-linux-gnu/{loader}", std::env::consts::ARCH);
    for folder in ["usr/lib64", "usr/lib"].map(|name| root.join(name)) {
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(&loader);
        if path.symlink_metadata().is_err() {
            symlink(&target, path)?;
        }
    }
    Ok(())
}

fn at<T>(root: &Path, work: impl FnOnce() -> io::Result<T>) -> Result<T, Error> {
    work().context(FileSnafu { what: "fill the image", path: root })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn an_image_has_users_a_shell_and_a_place_for_temporary_files_and_leaves_links_alone() {
        let folder = Folder::new();
        let (busybox, root) = (folder.path().join("busybox"), folder.path().join("root"));
        std::fs::write(&busybox, b"static").unwrap();
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::create_dir_all(root.join("etc")).unwrap();
        std::fs::write(root.join("bin/ls"), b"another").unwrap();
        let cached = folder.path().join("cached");
        std::fs::write(&cached, b"of the cache").unwrap();
        std::fs::hard_link(&cached, root.join("etc/passwd")).unwrap();
        add_users(&root).unwrap();
        add_busybox(&busybox, &root).unwrap();
        assert_eq!(std::fs::read(&cached).unwrap(), b"of the cache");
        assert!(std::fs::read_to_string(root.join("etc/passwd")).unwrap().contains("mysql:x:999:999:"));
        assert_eq!(std::fs::read_link(root.join("bin/sh")).unwrap(), Path::new("busybox"));
        assert_eq!(std::fs::read(root.join("bin/ls")).unwrap(), b"another");
        assert_eq!(root.join("tmp").metadata().unwrap().permissions().mode() & 0o7777, 0o1777);
    }

    #[test]
    fn no_image_is_called_latest() {
        for (image, _) in standing() {
            assert!(image.name.contains(':') && !image.name.ends_with(":latest"), "{}", image.name);
        }
    }
}
