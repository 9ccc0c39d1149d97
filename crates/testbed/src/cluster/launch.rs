//! A machine that runs: booted, entered, asked for its processes, cut off from power.
//!
//! In: a plan and the testbed's own program. Out: a process tree with namespaces of its own. Must not: outlive this process,
//! or name a process by anything but its number.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use snafu::{OptionExt as _, ResultExt as _};

use super::error::{Error, FileSnafu, OffSnafu, ProgramSnafu, TooLateSnafu, part};
use super::init::{self, Plan};
use crate::process::{self, Process};
use crate::wait;

/// How long the first process may take to appear: a tenth of a second here.
const BOOT_LIMIT: Duration = Duration::from_secs(20);

/// How long a machine may take to be gone: 2 s for a node with MySQL on it.
const GONE_LIMIT: Duration = Duration::from_secs(30);

/// How many words of a command line are looked at for a program's name: the loader and its arguments come first.
const LEADING_WORDS: usize = 5;

/// One machine, on or off.
#[derive(Debug)]
pub(super) struct Machine {
    program: PathBuf,
    plan: Plan,
    folder: PathBuf,
    process: Option<Process>,
    first: Arc<AtomicU32>,
}

impl Machine {
    /// A machine that is off. `program` is the testbed's own; `folder` is the machine's.
    pub(super) fn new(program: &Path, plan: Plan, folder: &Path) -> Self {
        Self { program: program.to_owned(), plan, folder: folder.to_owned(), process: None, first: Arc::default() }
    }

    /// Switches it on.
    pub(super) fn boot(&mut self) -> Result<(), Error> {
        let below = ["root", "lib", "log", "control"].map(|name| self.folder.join(name));
        for path in below.iter().chain([&self.plan.logs]) {
            std::fs::create_dir_all(path).context(FileSnafu { what: "make", path })?;
        }
        let file = self.folder.join("plan.json");
        self.plan.write(&file).context(FileSnafu { what: "write", path: &file })?;
        let mut command = Command::new(&self.program);
        command.arg(init::JOIN).arg(&file);
        let log = self.plan.logs.join("boot.log");
        let process = Process::spawn(command, &self.plan.name, &log).map_err(part("a machine"))?;
        let appeared = wait::until(BOOT_LIMIT, || {
            let first = children_of(process.pid()).first().copied().map(Some);
            // One that ended says why in its log.
            first.or_else(|| (!process.is_running()).then_some(None))
        });
        let said = || format!("see {}: {}", log.display(), process::tail(&log, 3));
        let what = format!("booting {}", self.plan.name);
        let first = appeared.flatten().with_context(|| ProgramSnafu { what, said: said() })?;
        self.first.store(first, Ordering::SeqCst);
        self.process = Some(process);
        Ok(())
    }

    /// The host's number of its first process.
    pub(super) fn pid(&self) -> Result<u32, Error> {
        let running = self.process.as_ref().is_some_and(Process::is_running);
        running.then(|| self.first.load(Ordering::SeqCst)).context(OffSnafu { name: &self.plan.name })
    }

    /// That number, also after the next boot.
    pub(super) fn first(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.first)
    }

    /// The host's number of one of its programs, such as `kubelet`.
    pub(super) fn child(&self, name: &str) -> Option<u32> {
        let is_named = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0).take(LEADING_WORDS);
            words.any(|word| Path::new(&*String::from_utf8_lossy(word)).file_name().is_some_and(|it| it == name))
        };
        children_of(self.pid().ok()?).into_iter().find(is_named)
    }

    /// The file that keeps one of its programs from being started again.
    pub(super) fn hold_file(&self, name: &str) -> PathBuf {
        init::hold_file(&self.plan.control, name)
    }

    /// A command that runs inside, with the machine's file system, network and processes.
    pub(super) fn command(&self, program: &str) -> Result<Command, Error> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.pid()?)).args(["--mount", "--net", "--pid", "--uts", "--ipc"]);
        command.arg("--").arg(program).stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        Ok(command)
    }

    /// Kills it as a power cut does, and returns when every process of it is gone.
    pub(super) fn cut_power(&mut self) -> Result<(), Error> {
        let pid = self.pid()?;
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(raw) = raw {
            // The kernel ends everything else in its pid namespace. One that is dying already is as good.
            let _ = kill_process(raw, Signal::KILL);
        }
        let ended = self.process.take().map(|process| process.wait(GONE_LIMIT));
        let what = || format!("{} is not gone", self.plan.name);
        let late = || TooLateSnafu { what: what(), seconds: GONE_LIMIT.as_secs(), hint: "is it frozen? thaw it first" };
        match ended {
            Some(Ok(None) | Err(_)) => late().fail(),
            _ => Ok(()),
        }
    }
}

/// The numbers of a process's children.
fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    texts.flat_map(|text| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn the_children_of_a_process_are_found() {
        let folder = Folder::new();
        let mut command = Command::new("sleep");
        command.arg("1000");
        let child = Process::spawn(command, "sleep", folder.path().join("log")).unwrap();
        assert!(children_of(std::process::id()).contains(&child.pid()));
        assert!(children_of(child.pid()).is_empty());
    }

    #[test]
    fn a_machine_that_is_off_says_so() {
        let plan = Plan {
            name: "iad".into(),
            cgroups: Vec::new(),
            root: None,
            control: "/control".into(),
            logs: "/logs".into(),
            children: Vec::new(),
        };
        let machine = Machine::new(Path::new("/testbed"), plan, Path::new("/folder"));
        assert_eq!(machine.pid().unwrap_err().to_string(), "iad is switched off: boot it first");
        assert_eq!(machine.hold_file("kubelet"), Path::new("/control/kubelet.hold"));
    }
}
