//! The golden store: containerd's own folder with the standing images in it, imported once and linked into every node.
//!
//! In: the tools and what the images are made of. Out: a cache entry, and copies of it in a third of a second instead of six
//! seconds a node. Must not: share a file that containerd writes in place: its databases are copied, blobs and layers are
//! never changed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use snafu::{ResultExt as _, ensure};

use super::error::{Error, FileSnafu, TooLateSnafu, part};
use super::images::{self, Image, Sources};
use super::launch::Machine;
use super::network::succeed;
use super::node::Common;
use super::profile::Profile;
use super::tools::Tools;
use crate::progress::Progress;
use crate::scratch::Scratch;
use crate::{cache, kubernetes, process, wait};

/// The kind of the cache entry.
pub(super) const KIND: &str = "cluster-images";

/// Goes up whenever a recipe of an image or the runtime's configuration changes.
const FORMAT: &str = "1";

/// How long containerd may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// How long an import may take: 3 s for the largest image on two free cores.
const IMPORT_LIMIT: Duration = Duration::from_mins(5);

/// Containerd's folder below a node's `/var/lib`.
const STORE: &str = "containerd";

/// The store, made when it is not there for these sources.
pub(super) fn provision(program: &Path, tools: &Tools, sources: &Sources) -> Result<PathBuf, Error> {
    let packages = std::fs::read_to_string(sources.mysql.join("packages")).unwrap_or_default();
    // The entry's key says which build it is; where the cache lies does not matter.
    let build = sources.coredns.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let shell = sources.busybox.metadata().map_or(0, |file| file.len()).to_string();
    let key = kubernetes::digest([FORMAT, &packages, &build, &shell]);
    let fill = |folder: &Path| fill(program, tools, sources, folder);
    cache::entry(KIND, &format!("{key:016x}"), fill).map_err(part("the images of a cluster"))
}

/// Links the store into a node's `/var/lib`.
pub(super) fn plant(store: &Path, lib: &Path) -> Result<(), Error> {
    let (from, to) = (store.join(STORE), lib.join(STORE));
    std::fs::create_dir_all(lib).context(FileSnafu { what: "make", path: lib })?;
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--link", "--no-target-directory"]).arg(&from).arg(&to).stdin(Stdio::null());
    succeed("linking the images into a node", copy.output())?;
    for database in databases(&from) {
        let target = to.join(database.strip_prefix(&from).unwrap_or(&database));
        std::fs::remove_file(&target)
            .and_then(|()| std::fs::copy(&database, &target))
            .context(FileSnafu { what: "copy", path: &target })?;
    }
    Ok(())
}

/// The files that containerd writes in place. They lie at most two folders deep.
fn databases(store: &Path) -> Vec<PathBuf> {
    let below =
        |folder: &Path| folder.read_dir().into_iter().flatten().flatten().map(|it| it.path()).collect::<Vec<_>>();
    let is_database = |path: &PathBuf| path.extension().is_some_and(|end| end == "db");
    below(store).iter().flat_map(|folder| below(folder)).filter(is_database).collect()
}

/// Makes the images and imports them with a containerd of its own.
fn fill(program: &Path, tools: &Tools, sources: &Sources, folder: &Path) -> Result<(), Error> {
    let step = Progress::start("making the images of a cluster (first time only)");
    let scratch = Scratch::passing("importer").map_err(part("a folder for the importer"))?;
    let common = Common {
        tools: tools.clone(),
        folder: scratch.path().to_owned(),
        logs: scratch.path().join("logs"),
        profile: Profile::default(),
    };
    std::fs::create_dir_all(&common.logs).context(FileSnafu { what: "make", path: &common.logs })?;
    let home = common.home("importer");
    let mut machine = Machine::new(program, common.importer(Vec::new()), &home);
    machine.boot()?;
    for (image, recipe) in images::standing() {
        let archive = archive(scratch.path(), &image, |root| recipe(sources, root))?;
        import(&machine, &archive)?;
        std::fs::remove_file(&archive).context(FileSnafu { what: "remove", path: archive })?;
    }
    machine.cut_power()?;
    let (from, to) = (home.join("lib").join(STORE), folder.join(STORE));
    std::fs::rename(&from, &to).context(FileSnafu { what: "move", path: from })?;
    step.done();
    Ok(())
}

/// Fills a folder and packs it; gives the archive's path.
pub(super) fn archive(
    scratch: &Path,
    image: &Image,
    recipe: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let (root, work) = (scratch.join("image-root"), scratch.join("image-work"));
    for path in [&root, &work] {
        std::fs::create_dir_all(path).context(FileSnafu { what: "make", path })?;
    }
    recipe(&root)?;
    let archive = scratch.join("image.tar");
    images::pack(image, &root, &work, &archive)?;
    for path in [root, work] {
        std::fs::remove_dir_all(&path).context(FileSnafu { what: "remove", path })?;
    }
    Ok(archive)
}

/// Imports an archive on a machine that runs containerd.
pub(super) fn import(machine: &Machine, archive: &Path) -> Result<(), Error> {
    let ctr = || machine.command("/usr/bin/ctr");
    let answers = wait::until_every(ANSWER_LIMIT, Duration::from_millis(100), || {
        let asked = process::output(ctr().ok()?.arg("version"), "", ANSWER_LIMIT);
        asked.is_ok_and(|output| output.status.success()).then_some(())
    });
    let what = "containerd does not answer";
    ensure!(answers.is_some(), TooLateSnafu { what, seconds: ANSWER_LIMIT.as_secs(), hint: "see containerd.log" });
    let mut import = ctr()?;
    import.args(["--namespace", "k8s.io", "images", "import"]).arg(archive);
    succeed("importing an image", process::output(&mut import, "", IMPORT_LIMIT))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::testing::Folder;

    #[test]
    fn a_node_shares_blobs_with_the_store_and_has_databases_of_its_own() {
        let folder = Folder::new();
        let store = folder.path().join("golden");
        for (name, text) in
            [("blobs.v1/meta.db", "db"), ("blobs.v1/sha/abc", "blob"), ("overlay.v1/metadata.db", "db2")]
        {
            let path = store.join(STORE).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let lib = folder.path().join("lib");
        plant(&store, &lib).unwrap();
        let inode = |path: PathBuf| path.metadata().unwrap().ino();
        let same = |name: &str| inode(store.join(STORE).join(name)) == inode(lib.join(STORE).join(name));
        assert!(same("blobs.v1/sha/abc"));
        assert!(!same("blobs.v1/meta.db") && !same("overlay.v1/metadata.db"));
        assert_eq!(std::fs::read_to_string(lib.join(STORE).join("overlay.v1/metadata.db")).unwrap(), "db2");
    }
}
