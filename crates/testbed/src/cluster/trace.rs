//! What a cluster could leave behind, and whether it did.
//!
//! In: a running cluster, and the host as it was before it. Out: after its end, everything of it that is still there. Must
//! not: take somebody else's things for the cluster's: its cgroups, namespaces and folders are known by their own names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cgroups;

/// The kinds of namespaces that are looked for.
const NAMESPACES: [&str; 3] = ["net", "pid", "mnt"];

/// Settings of the host's kernel that programs of a node or rules of a switch could change.
const SETTINGS: [&str; 9] = [
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "vm/overcommit_memory",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/bridge/bridge-nf-call-iptables",
    "net/netfilter/nf_conntrack_max",
];

/// The host, as far as a cluster could change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Host {
    mounts: BTreeSet<String>,
    interfaces: BTreeSet<String>,
    settings: BTreeMap<String, String>,
}

impl Host {
    /// The host as it is now.
    pub(super) fn look() -> Self {
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let read = |name: &str| std::fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
        Self {
            mounts: mount_points(&mountinfo),
            interfaces: names_in(Path::new("/sys/class/net")),
            settings: SETTINGS.map(|name| (name.to_owned(), read(name).trim().to_owned())).into(),
        }
    }

    /// What there is now and was not there before, and what was changed.
    fn changes_since(&self, before: &Self) -> Vec<String> {
        let new = |what: &str, now: &BTreeSet<String>, then: &BTreeSet<String>| {
            now.difference(then).map(|name| format!("{what} {name}")).collect::<Vec<_>>()
        };
        let mut found = new("mount", &self.mounts, &before.mounts);
        found.extend(new("network interface", &self.interfaces, &before.interfaces));
        let changed = self.settings.iter().filter(|(name, value)| before.settings.get(*name) != Some(value));
        found.extend(changed.map(|(name, value)| format!("setting {name}, which is {value} now")));
        found
    }
}

/// Everything of one cluster that could be left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    cgroup: String,
    namespaces: BTreeSet<String>,
    folders: Vec<PathBuf>,
    before: Host,
}

impl Trace {
    /// That of the cluster with this cgroup, whose machines have these first processes.
    pub(super) fn of(cgroup: &str, machines: impl Iterator<Item = u32>, folders: Vec<PathBuf>, before: Host) -> Self {
        let namespaces = machines.flat_map(namespaces_of).collect();
        Self { cgroup: cgroup.to_owned(), namespaces, folders, before }
    }

    /// The number of namespaces that the machines have.
    pub fn namespaces(&self) -> usize {
        self.namespaces.len()
    }

    /// What is there of it now: nothing after its end, but folders of a failed test that were kept.
    pub fn left(&self) -> Vec<String> {
        let mut found: Vec<String> = cgroups::left().into_iter().filter(|name| *name == self.cgroup).collect();
        found.extend(self.folders.iter().filter(|path| path.exists()).map(|path| path.display().to_string()));
        for pid in names_in(Path::new("/proc")).iter().filter_map(|name| name.parse::<u32>().ok()) {
            if namespaces_of(pid).iter().any(|name| self.namespaces.contains(name)) {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                found.push(format!("process {pid} ({})", name.trim()));
            }
        }
        found.extend(Host::look().changes_since(&self.before));
        found
    }
}

/// Such as `net:[4026532001]`; nothing when there is no such process.
fn namespaces_of(pid: u32) -> Vec<String> {
    let links = NAMESPACES.iter().filter_map(|kind| std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

/// The places of mounts; the fifth field of a line.
fn mount_points(mountinfo: &str) -> BTreeSet<String> {
    mountinfo.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect()
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let found = folder.read_dir().into_iter().flatten().flatten();
    found.filter_map(|found| found.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn what_is_new_or_changed_on_the_host_is_told_and_what_went_is_not() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let host = |mounts: &[&str], interfaces: &[&str], panic: &str| Host {
            mounts: set(mounts),
            interfaces: set(interfaces),
            settings: BTreeMap::from([("kernel/panic".to_owned(), panic.to_owned())]),
        };
        let before = host(&["/", "/a"], &["lo"], "1");
        assert_eq!(before.changes_since(&before), Vec::<String>::new());
        assert_eq!(host(&["/"], &["lo"], "1").changes_since(&before), Vec::<String>::new());
        let after = host(&["/", "/run/netns"], &["lo", "br0"], "10");
        let told = ["mount /run/netns", "network interface br0", "setting kernel/panic, which is 10 now"];
        assert_eq!(after.changes_since(&before), told);
        assert_eq!(Host::look(), Host::look());
    }

    #[test]
    fn processes_and_folders_of_a_cluster_are_found_while_they_are_there() {
        let folder = Folder::new();
        let mine = std::iter::once(std::process::id());
        let trace = Trace::of("bloodraven-cluster-none", mine, vec![folder.path().to_owned()], Host::look());
        assert_eq!(trace.namespaces(), 3);
        let left = trace.left();
        assert!(left.contains(&folder.path().display().to_string()), "{left:?}");
        let me = format!("process {} (", std::process::id());
        assert!(left.iter().any(|line| line.starts_with(&me)), "{left:?}");
        let nothing = Trace::of("bloodraven-cluster-none", std::iter::empty(), Vec::new(), Host::look());
        assert_eq!(nothing.left(), Vec::<String>::new());
    }

    #[test]
    fn a_mount_is_known_by_its_place() {
        let text =
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n24 1 0:22 / /proc rw - proc proc rw\n";
        assert_eq!(mount_points(text), BTreeSet::from(["/mnt2".to_owned(), "/proc".to_owned()]));
    }
}
