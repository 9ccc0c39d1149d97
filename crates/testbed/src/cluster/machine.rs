//! Whether this machine can run a cluster.
//!
//! In: what `/proc` and `/sys` say. Out: nothing, or everything that is in the way, each with what to do. Must not: change
//! anything, or find out half-way through a start what could have been known before it.

use std::collections::BTreeSet;
use std::path::Path;

use snafu::ensure;

use super::cgroups::{self, CONTROLLERS};
use super::error::{Error, MachineSnafu};
use crate::environment;

/// Three nodes, three MySQL servers and the control plane take 2.7 GiB; the rest is for what a test adds.
const MEMORY_MB: u64 = 3_500;

/// The nodes' folders and three data folders take half a gibibyte a run; images and tools are in the cache already or
/// take two.
const DISK_MB: u64 = 4_000;

/// Capabilities without which nothing here works: their bits and names.
const CAPABILITIES: [(u32, &str); 4] =
    [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN"), (18, "CAP_SYS_CHROOT"), (27, "CAP_MKNOD")];

/// The kinds of namespaces that a node has of its own.
const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "pid", "uts"];

/// A cluster uses 35 watches (inotify instances), and others of the user have some.
const WATCHES: u64 = 64;

/// Programs of the machine itself.
const PROGRAMS: [&str; 5] = ["unshare", "nsenter", "tar", "cp", "sha256sum"];

/// What was found.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the machine")]
#[derive(Clone, Debug)]
struct Machine {
    root: bool,
    capabilities: u64,
    /// The unified hierarchy (version 2) is the one at `/sys/fs/cgroup`.
    unified: bool,
    /// Controllers of version 1 that are mounted on their own.
    controllers: BTreeSet<&'static str>,
    overlay: bool,
    /// Kinds of namespaces that the kernel does not have.
    missing_namespaces: Vec<&'static str>,
    /// Packet rules see what a bridge forwards.
    bridge_rules: bool,
    /// How many watches of files one user may have.
    watches: u64,
    memory_mb: u64,
    disk_mb: u64,
    missing_programs: Vec<&'static str>,
}

/// Refuses at once what cannot work.
pub(super) fn check(cache: &Path) -> Result<(), Error> {
    let problems = Machine::look(cache).problems();
    ensure!(problems.is_empty(), MachineSnafu { problems });
    Ok(())
}

/// Refuses to start beside what an earlier cluster left and nobody could remove.
pub(super) fn check_leftovers() -> Result<(), Error> {
    let told = |(name, pids): (String, Vec<u32>)| {
        let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        format!("left by a cluster that is gone: cgroup {name} with processes [{pids}]; end them, then `cluster down`")
    };
    let problems: Vec<String> = cgroups::stuck().into_iter().map(told).collect();
    ensure!(problems.is_empty(), MachineSnafu { problems });
    Ok(())
}

impl Machine {
    fn look(cache: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let separate = |name: &&str| {
            let folder = Path::new("/sys/fs/cgroup").join(name);
            // Controllers that share a hierarchy have links beside the common folder.
            folder.join("cgroup.procs").exists() && !folder.is_symlink()
        };
        let existing = cache.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
        Self {
            root: rustix::process::geteuid().is_root(),
            capabilities: capabilities(&read("/proc/self/status")),
            unified: Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
            controllers: CONTROLLERS.into_iter().filter(separate).collect(),
            overlay: read("/proc/filesystems").lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay"),
            missing_namespaces: NAMESPACES
                .into_iter()
                .filter(|it| !Path::new("/proc/self/ns").join(it).exists())
                .collect(),
            bridge_rules: Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists(),
            watches: read("/proc/sys/fs/inotify/max_user_instances").trim().parse().unwrap_or(0),
            memory_mb: available_mb(&read("/proc/meminfo")),
            disk_mb: rustix::fs::statvfs(existing).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize) >> 20),
            missing_programs: PROGRAMS.into_iter().filter(|name| environment::find_program(name).is_none()).collect(),
        }
    }

    /// Everything that is in the way.
    fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.root {
            found.push("not root: nodes need namespaces, mounts and cgroups; run it as root (sudo -E)".to_owned());
        }
        let lacks = |(bit, _): &&(u32, &str)| self.capabilities >> bit & 1 == 0;
        let lacking: Vec<&str> = CAPABILITIES.iter().filter(lacks).map(|(_, name)| *name).collect();
        if self.root && !lacking.is_empty() {
            let names = lacking.join(", ");
            found.push(format!("root without {names}: leave the container, or give it these capabilities"));
        }
        found.extend(self.cgroup_problem());
        found.extend(self.kernel_problems());
        if self.memory_mb < MEMORY_MB {
            found.push(format!(
                "{} MB of memory are available, a cluster takes {MEMORY_MB}: end something",
                self.memory_mb
            ));
        }
        if self.disk_mb < DISK_MB {
            found.push(format!(
                "{} MB are free on the disk of the cache, a cluster takes {DISK_MB}: free some, or set {}",
                self.disk_mb,
                environment::CACHE_DIR
            ));
        }
        if !self.missing_programs.is_empty() {
            found.push(format!("no {} on PATH: install util-linux, tar, coreutils", self.missing_programs.join(", ")));
        }
        found
    }

    fn kernel_problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.overlay {
            found.push("the kernel has no overlay file system: `modprobe overlay`, or another kernel".to_owned());
        }
        if !self.missing_namespaces.is_empty() {
            found.push(format!(
                "the kernel has no namespaces of kind {}: another kernel",
                self.missing_namespaces.join(", ")
            ));
        }
        if !self.bridge_rules {
            found.push(
                "the kernel has no rules for bridged packets: `modprobe br_netfilter`, or another kernel".to_owned(),
            );
        }
        if self.watches < WATCHES {
            let way = format!("sysctl fs.inotify.max_user_instances={WATCHES}");
            found.push(format!(
                "one user may watch files {} times, a cluster does about 40 times: `{way}`",
                self.watches
            ));
        }
        found
    }

    fn cgroup_problem(&self) -> Option<String> {
        if self.unified {
            let way = "boot with systemd.unified_cgroup_hierarchy=0, or use a cluster of your own";
            return Some(format!("cgroups are version 2 only, nodes here are made for version 1: {way}"));
        }
        let missing: Vec<&str> = CONTROLLERS.into_iter().filter(|name| !self.controllers.contains(name)).collect();
        (!missing.is_empty()).then(|| {
            let names = missing.join(", ");
            format!("no cgroup hierarchy of its own (version 1) at /sys/fs/cgroup for: {names}; mount each on its own")
        })
    }
}

fn capabilities(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn available_mb(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn able() -> Machine {
        Machine {
            root: true,
            capabilities: u64::MAX,
            unified: false,
            controllers: CONTROLLERS.into_iter().collect(),
            overlay: true,
            missing_namespaces: Vec::new(),
            bridge_rules: true,
            watches: 128,
            memory_mb: 24_000,
            disk_mb: 50_000,
            missing_programs: Vec::new(),
        }
    }

    fn check(change: impl FnOnce(&mut Machine), expect: &str) {
        let mut machine = able();
        change(&mut machine);
        let problems = machine.problems();
        assert!(problems.len() == 1 && problems[0].contains(expect), "{expect}: {problems:?}");
    }

    #[test]
    fn an_able_machine_has_no_problem_and_every_other_one_is_told_what_to_do() {
        assert_eq!(able().problems(), Vec::<String>::new());
        check(|machine| machine.root = false, "run it as root");
        check(|machine| machine.capabilities = !(1 << 21), "CAP_SYS_ADMIN");
        check(|machine| machine.unified = true, "systemd.unified_cgroup_hierarchy=0");
        check(|machine| machine.controllers.retain(|name| *name != "freezer"), "freezer");
        check(|machine| machine.overlay = false, "modprobe overlay");
        check(|machine| machine.missing_namespaces.push("cgroup"), "no namespaces of kind cgroup");
        check(|machine| machine.bridge_rules = false, "modprobe br_netfilter");
        check(|machine| machine.watches = 16, "sysctl fs.inotify.max_user_instances=64");
        check(|machine| machine.memory_mb = 1_000, "1000 MB of memory");
        check(|machine| machine.disk_mb = 10, "BLOODRAVEN_CACHE_DIR");
        check(|machine| machine.missing_programs.push("unshare"), "no unshare on PATH");
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut machine = able();
        machine.memory_mb = 0;
        machine.overlay = false;
        assert_eq!(machine.problems().len(), 2);
    }

    #[test]
    fn the_kernel_is_read_as_it_writes() {
        assert_eq!(capabilities("CapPrm:\t0\nCapEff:\t000001fffeffffff\n"), 0x1ff_feff_ffff);
        assert_eq!(capabilities(""), 0);
        assert_eq!(available_mb("MemTotal: 1 kB\nMemAvailable:   22283264 kB\n"), 21_761);
        assert_eq!(available_mb("MemAvailable: many\n"), 0);
    }
}
