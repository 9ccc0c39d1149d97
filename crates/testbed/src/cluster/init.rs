//! The first process of a machine: mounts, children, reaping, restarts.
//!
//! In: a plan, as a file. Out: a machine that runs until it is killed, which is its power cut: the kernel ends every
//! process of its pid namespace, and its mounts and its network go with the last of them. Must not: return, keep anything
//! of the host's file system that the plan does not name, or leave an orphan unreaped.
//!
//! It comes in two steps, each a subcommand of the testbed's program: `join` enters the cgroups and becomes `unshare`,
//! which makes the namespaces and starts `boot` in them as process number 1.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::process::WaitOptions;
use serde::{Deserialize, Serialize};

use crate::wait::{self, Stopwatch};

/// The words of the testbed's program for the two steps.
pub const JOIN: &str = "cluster-join";
/// See [`JOIN`].
pub const BOOT: &str = "cluster-boot";

/// How often the first process looks after its children: short against the second after which it starts one again.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a program that ended stays away.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// Everything about one machine.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Plan {
    /// Its host name.
    pub(super) name: String,
    /// The `cgroup.procs` files that it writes itself into.
    pub(super) cgroups: Vec<PathBuf>,
    /// Its own root; without one it keeps the host's file system.
    pub(super) root: Option<Root>,
    /// Where a file `<child>.hold` keeps a child from being started.
    pub(super) control: PathBuf,
    /// Where the outputs of the children go, `<child>.log` each.
    pub(super) logs: PathBuf,
    /// What runs on it.
    pub(super) children: Vec<Child>,
}

/// A file system made of pieces: nothing of the host is seen but what is named here.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Root {
    /// An empty folder to put it together in.
    pub(super) at: PathBuf,
    /// Pieces of the host, and where they are seen; in this order.
    pub(super) binds: Vec<Bind>,
    /// Hierarchies of cgroups; the machine sees its own part of each.
    pub(super) controllers: Vec<String>,
    /// Files with their text.
    pub(super) files: BTreeMap<String, String>,
    /// Settings of the kernel that are not the machine's to change: it sees files of its own instead.
    pub(super) shadowed: BTreeMap<String, String>,
}

/// A piece of the host.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) writable: bool,
}

/// A program that is started again when it ends.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) name: String,
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// Started when this path exists.
    pub(super) after: Option<PathBuf>,
}

impl Plan {
    /// Reads a plan that [`Plan::write`] wrote.
    fn read(file: &Path) -> io::Result<Self> {
        serde_json::from_slice(&std::fs::read(file)?).map_err(io::Error::other)
    }

    /// Writes it for the machine to read.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        std::fs::write(file, serde_json::to_vec_pretty(self).map_err(io::Error::other)?)
    }
}

/// The first step: enters the cgroups and becomes `unshare`. The order matters: the cgroup namespace shows what the process
/// is in when it is made.
pub fn join(plan: &Path) -> io::Result<()> {
    let read = Plan::read(plan)?;
    for file in &read.cgroups {
        std::fs::write(file, "0").map_err(|error| named(file, &error))?;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation=private", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]);
    if !read.cgroups.is_empty() {
        unshare.arg("--cgroup");
    }
    Err(unshare.arg(std::env::current_exe()?).arg(BOOT).arg(plan).exec())
}

/// The second step, as process number 1: never returns but with an error.
pub fn boot(plan: &Path) -> io::Result<()> {
    let plan = Plan::read(plan)?;
    rustix::system::sethostname(plan.name.as_bytes())?;
    match &plan.root {
        Some(root) => assemble(root)?,
        None => mount("proc", Path::new("/proc"), "proc", "")?,
    }
    supervise(&plan);
    Ok(())
}

/// Puts the file system together and makes it the root.
fn assemble(root: &Root) -> io::Result<()> {
    let at = |path: &str| root.at.join(path.trim_start_matches('/'));
    mount("tmpfs", &root.at, "tmpfs", "mode=0755")?;
    for folder in ["proc", "sys", "dev", "run/netns", "tmp", "etc", "root", "var/tmp", "old"] {
        std::fs::create_dir_all(at(folder))?;
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{name}"), at(name))?;
    }
    mount("proc", &at("proc"), "proc", "")?;
    mount("sysfs", &at("sys"), "sysfs", "")?;
    rustix::mount::mount_bind_recursive("/dev", at("dev"))?;
    mount_cgroups(&at("sys/fs/cgroup"), &root.controllers)?;
    for bind in &root.binds {
        bind_piece(bind, &at(&bind.to.to_string_lossy())).map_err(|error| named(&bind.from, &error))?;
    }
    for (path, text) in &root.files {
        std::fs::create_dir_all(at(path).parent().unwrap_or(&root.at))?;
        std::fs::write(at(path), text)?;
    }
    for (number, (path, text)) in root.shadowed.iter().enumerate() {
        let stand_in = at(&format!("run/shadowed-{number}"));
        std::fs::write(&stand_in, text)?;
        // Not every kernel has every setting.
        if at(path).exists() {
            rustix::mount::mount_bind(&stand_in, at(path)).map_err(|error| named(Path::new(path), &error.into()))?;
        }
    }
    rustix::process::pivot_root(&root.at, at("old"))?;
    std::env::set_current_dir("/")?;
    rustix::mount::unmount("/old", UnmountFlags::DETACH)?;
    // Container volumes may ask for mounts to be passed on.
    rustix::mount::mount_change("/", MountPropagationFlags::SHARED | MountPropagationFlags::REC)?;
    Ok(())
}

fn mount_cgroups(at: &Path, controllers: &[String]) -> io::Result<()> {
    mount("tmpfs", at, "tmpfs", "mode=0755")?;
    for controller in controllers {
        let folder = at.join(controller);
        std::fs::create_dir(&folder)?;
        let option = if controller == "systemd" { "none,name=systemd".to_owned() } else { controller.clone() };
        mount("cgroup", &folder, "cgroup", &option)?;
    }
    Ok(())
}

fn bind_piece(bind: &Bind, to: &Path) -> io::Result<()> {
    if bind.from.is_dir() {
        std::fs::create_dir_all(to)?;
    } else {
        std::fs::create_dir_all(to.parent().unwrap_or(to))?;
        File::create(to)?;
    }
    rustix::mount::mount_bind(&bind.from, to)?;
    if !bind.writable {
        rustix::mount::mount_remount(to, MountFlags::BIND | MountFlags::RDONLY, "")?;
    }
    Ok(())
}

fn mount(source: &str, at: &Path, sort: &str, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    rustix::mount::mount(source, at, sort, MountFlags::empty(), options.as_c_str())
        .map_err(|error| named(at, &error.into()))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Runs the children until the machine is killed.
fn supervise(plan: &Plan) {
    let mut running: BTreeMap<i32, String> = BTreeMap::new();
    let mut ended: BTreeMap<String, Stopwatch> = BTreeMap::new();
    let mut look = || {
        while let Ok(Some((pid, _))) = rustix::process::wait(WaitOptions::NOHANG) {
            // What is not in the list is an orphan of another child's.
            if let Some(name) = running.remove(&pid.as_raw_nonzero().get()) {
                ended.insert(name, Stopwatch::start());
            }
        }
        for child in &plan.children {
            let resting = ended.get(&child.name).is_some_and(|since| since.elapsed() < RESTART_AFTER);
            let ready = child.after.as_ref().is_none_or(|path| path.exists());
            let held = hold_file(&plan.control, &child.name).exists();
            if !resting && ready && !held && !running.values().any(|name| *name == child.name) {
                match start(plan, child) {
                    Ok(pid) => drop(running.insert(pid, child.name.clone())),
                    Err(error) => {
                        // Told where a person looks for it, and tried again.
                        let _ = std::fs::write(plan.logs.join(format!("{}.failed", child.name)), error.to_string());
                        ended.insert(child.name.clone(), Stopwatch::start());
                    }
                }
            }
        }
        None::<()>
    };
    // Without an end: a machine runs until it is killed.
    let _ = wait::until_every(Duration::MAX, LOOK_EVERY, &mut look);
}

/// The file that keeps a child from being started.
pub(super) fn hold_file(control: &Path, child: &str) -> PathBuf {
    control.join(format!("{child}.hold"))
}

fn start(plan: &Plan, child: &Child) -> io::Result<i32> {
    let (program, arguments) = child.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let log = File::options().create(true).append(true).open(plan.logs.join(format!("{}.log", child.name)))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    let spawned = command.spawn()?;
    i32::try_from(spawned.id()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let folder = Folder::new();
        let child =
            Child { name: "kubelet".into(), words: vec!["/k".into(), "--x=y z".into()], after: Some("/run/s".into()) };
        let bind = Bind { from: "/cache/usr".into(), to: "/usr".into(), writable: false };
        let plan = Plan {
            name: "iad".into(),
            cgroups: vec!["/sys/fs/cgroup/cpu/x/cgroup.procs".into()],
            root: Some(Root {
                at: "/scratch/root".into(),
                binds: vec![bind],
                controllers: vec!["cpu".into()],
                files: BTreeMap::from([("/etc/hosts".into(), "127.0.0.1 localhost\n".into())]),
                shadowed: BTreeMap::from([("/proc/sys/kernel/panic".into(), "10\n".into())]),
            }),
            control: "/scratch/control".into(),
            logs: "/scratch/logs".into(),
            children: vec![child],
        };
        let file = folder.path().join("plan");
        plan.write(&file).unwrap();
        assert_eq!(Plan::read(&file).unwrap(), plan);
        std::fs::write(&file, "{").unwrap();
        assert!(Plan::read(&file).is_err());
    }
}
