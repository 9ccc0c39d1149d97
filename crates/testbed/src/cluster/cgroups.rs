//! The cgroups of a cluster: one below each hierarchy, one a node below that.
//!
//! In: who owns the cluster. Out: folders below `/sys/fs/cgroup`, frozen and thawed, emptied and removed. Must not: touch a
//! cgroup of a living owner, or kill a process that is not in one of ours.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use snafu::{ResultExt as _, ensure};

use super::error::{Error, FileSnafu, TooLateSnafu};
use crate::wait;

/// The hierarchies of version 1 that kubelet and containerd use.
pub(super) const CONTROLLERS: [&str; 9] =
    ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"];

const ROOT: &str = "/sys/fs/cgroup";

/// What the cgroups of all clusters begin with; the owner's process follows.
const PREFIX: &str = "bloodraven-cluster-";

/// How long killed processes may take to go: 2 s for a node, more when the disk is busy.
const EMPTY_LIMIT: Duration = Duration::from_secs(30);

/// How long a node may take to stand still.
const FREEZE_LIMIT: Duration = Duration::from_secs(10);

/// The cgroups of one cluster.
#[derive(Clone, Debug)]
pub(super) struct Cgroups {
    name: String,
}

impl Cgroups {
    /// Those of a new cluster that this process owns.
    pub(super) fn of_this_process() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { name: format!("{PREFIX}{pid}-{}-{count}", start_of(pid).unwrap_or(0)) }
    }

    /// Their common name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes the cgroups of a machine; gives the files that a process writes itself into.
    pub(super) fn make(&self, machine: &str) -> Result<Vec<PathBuf>, Error> {
        let mut joins = Vec::new();
        for controller in CONTROLLERS {
            let top = Path::new(ROOT).join(controller);
            let ours = top.join(&self.name);
            let folder = ours.join(machine);
            std::fs::create_dir_all(&folder).context(FileSnafu { what: "make the cgroup", path: &folder })?;
            if controller == "cpuset" {
                // A process cannot join a set without processors.
                inherit(&top, &ours)
                    .and_then(|()| inherit(&ours, &folder))
                    .context(FileSnafu { what: "fill", path: &folder })?;
            }
            joins.push(folder.join("cgroup.procs"));
        }
        Ok(joins)
    }

    /// Removes the empty cgroups that a machine's earlier life left: the kubelet takes three seconds for each of them.
    pub(super) fn tidy(&self, machine: &str) {
        for controller in CONTROLLERS {
            remove_below(&Path::new(ROOT).join(controller).join(&self.name).join(machine));
        }
    }

    /// Stops every process of a machine where it is, or lets them go on.
    pub(super) fn freeze(&self, machine: &str, frozen: bool) -> Result<(), Error> {
        let path = Path::new(ROOT).join("freezer").join(&self.name).join(machine).join("freezer.state");
        let word = if frozen { "FROZEN" } else { "THAWED" };
        std::fs::write(&path, word).context(FileSnafu { what: "write", path: &path })?;
        let done = || std::fs::read_to_string(&path).is_ok_and(|state| state.trim() == word).then_some(());
        let seconds = FREEZE_LIMIT.as_secs();
        let (what, hint) = (format!("{machine} is not {word}"), format!("see {}", path.display()));
        ensure!(wait::until(FREEZE_LIMIT, done).is_some(), TooLateSnafu { what, seconds, hint });
        Ok(())
    }

    /// The host's numbers of the processes below a machine's cgroup whose path there contains a word.
    pub(super) fn processes(&self, machine: &str, word: &str) -> Vec<u32> {
        let top = Path::new(ROOT).join("pids").join(&self.name).join(machine);
        let mut found = Vec::new();
        for folder in folders_below(&top) {
            if folder.strip_prefix(&top).is_ok_and(|below| below.to_string_lossy().contains(word)) {
                found.extend(processes_in(&folder));
            }
        }
        found
    }

    /// Kills what is left and removes everything. Frozen processes are thawed first: they would not die.
    pub(super) fn remove(&self) -> Result<(), Error> {
        remove_all(&self.name)
    }
}

/// Removes the cgroups of clusters whose owners are gone, with what is in them. Gives the names.
pub(super) fn sweep() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for controller in CONTROLLERS {
        let found = Path::new(ROOT).join(controller).read_dir().into_iter().flatten().flatten();
        names.extend(found.filter_map(|found| found.file_name().into_string().ok()).filter(|name| is_orphan(name)));
    }
    names.sort();
    names.dedup();
    names.retain(|name| remove_all(name).is_ok());
    names
}

/// Those of clusters whose owners are gone, with the processes that are left in them: what could not be swept.
pub(super) fn stuck() -> Vec<(String, Vec<u32>)> {
    let processes = |name: &String| {
        let folders = CONTROLLERS.iter().flat_map(|it| folders_below(&Path::new(ROOT).join(it).join(name)));
        let mut found: Vec<u32> = folders.flat_map(|folder| processes_in(&folder)).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    left().into_iter().filter(|name| is_orphan(name)).map(|name| (name.clone(), processes(&name))).collect()
}

/// The cgroups of clusters, whoever owns them.
pub(super) fn left() -> Vec<String> {
    let found = CONTROLLERS.iter().flat_map(|it| Path::new(ROOT).join(it).read_dir().into_iter().flatten().flatten());
    let names = found.filter_map(|found| found.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    names.sort();
    names.dedup();
    names
}

fn is_orphan(name: &str) -> bool {
    let words: Vec<&str> = name.strip_prefix(PREFIX).unwrap_or_default().split('-').collect();
    let [pid, start, _] = words[..] else { return false };
    let (Ok(pid), Ok(start)) = (pid.parse(), start.parse::<u64>()) else { return false };
    // The number may have been given out again: then the start differs.
    start_of(pid) != Some(start)
}

/// When a process began, in ticks since the machine did; nothing when there is none.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything; 19 fields after it comes the start.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn remove_all(name: &str) -> Result<(), Error> {
    let freezers = Path::new(ROOT).join("freezer").join(name);
    for folder in folders_below(&freezers) {
        // The one at the top is not frozen; writing to a vanished one fails, and that is fine.
        let _ = std::fs::write(folder.join("freezer.state"), "THAWED");
    }
    let gone = wait::until_every(EMPTY_LIMIT, Duration::from_millis(50), || {
        let mut left = false;
        for controller in CONTROLLERS {
            let folder = Path::new(ROOT).join(controller).join(name);
            for pid in folders_below(&folder).iter().flat_map(|folder| processes_in(folder)) {
                if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            remove_below(&folder);
            let _ = std::fs::remove_dir(&folder);
            left |= folder.exists();
        }
        (!left).then_some(())
    });
    let (what, seconds) = (format!("the cgroup {name} is not empty"), EMPTY_LIMIT.as_secs());
    ensure!(gone.is_some(), TooLateSnafu { what, seconds, hint: "its cgroup.procs names who is left" });
    Ok(())
}

fn processes_in(folder: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0).collect()
}

/// Copies the processors and memories of one set into another.
fn inherit(from: &Path, to: &Path) -> io::Result<()> {
    for name in ["cpuset.cpus", "cpuset.mems"] {
        std::fs::write(to.join(name), std::fs::read_to_string(from.join(name))?)?;
    }
    Ok(())
}

/// Removes the empty folders below one, the deepest first. What is in use stays.
fn remove_below(folder: &Path) {
    for below in folders_below(folder).into_iter().rev().filter(|below| below != folder) {
        let _ = std::fs::remove_dir(below);
    }
}

/// A folder and all folders below it, each before what is below it.
fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut index = 0;
    while let Some(parent) = found.get(index).cloned() {
        let below = parent.read_dir().into_iter().flatten().flatten();
        found.extend(below.filter(|it| it.file_type().is_ok_and(|sort| sort.is_dir())).map(|it| it.path()));
        index += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn the_cgroups_of_a_living_owner_are_no_orphans() {
        let mine = Cgroups::of_this_process();
        assert!(!is_orphan(&mine.name), "{}", mine.name);
        assert!(is_orphan(&format!("{PREFIX}{}-1-0", std::process::id())), "another process had this number");
        assert!(is_orphan(&format!("{PREFIX}4194305-77-0")), "the highest number that Linux gives out is 4194304");
        for name in ["kubepods", PREFIX, "bloodraven-cluster-x-y-0", "bloodraven-cluster-12-13"] {
            assert!(!is_orphan(name), "{name} is not ours to remove");
        }
    }

    #[test]
    fn folders_are_found_from_the_top_and_removed_from_the_bottom() {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
        std::fs::create_dir_all(folder.path().join("d")).unwrap();
        assert_eq!(folders_below(folder.path()).len(), 5);
        remove_below(folder.path());
        assert_eq!(folders_below(folder.path()), [folder.path()]);
    }
}
