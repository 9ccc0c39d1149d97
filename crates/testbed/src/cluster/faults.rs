//! Faults: each is a verb that returns a guard, and the guard's end heals.
//!
//! In: names of machines and programs. Out: cut lines, frozen, paused and dead machines. Must not: leave a fault behind when
//! a test fails: a guard that is dropped heals as one that is healed by hand does, only without telling about errors.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use snafu::{OptionExt as _, ResultExt as _};

use super::error::{Error, FileSnafu, ProgramSnafu};
use super::layout::Member;
use super::{API_SERVER, Cluster, PLANE};

impl Cluster {
    /// Cuts the lines between a machine and others, both ways: packets vanish, nothing answers.
    pub fn cut(&self, one: &str, others: &[&str]) -> Result<Cut<'_>, Error> {
        let one = Member::named(one)?;
        let others = others.iter().map(|name| Member::named(name)).collect::<Result<Vec<_>, Error>>()?;
        self.cut_pairs(others.into_iter().flat_map(|other| [(one, other), (other, one)]))
    }

    /// Cuts one direction: what `from` sends does not reach `to`.
    pub fn cut_one_way(&self, from: &str, to: &str) -> Result<Cut<'_>, Error> {
        self.cut_pairs([(Member::named(from)?, Member::named(to)?)])
    }

    /// Cuts a machine off from all others.
    pub fn isolate(&self, name: &str) -> Result<Cut<'_>, Error> {
        let others: Vec<&str> = Member::all().map(Member::name).filter(|other| *other != name).collect();
        self.cut(name, &others)
    }

    fn cut_pairs(&self, pairs: impl IntoIterator<Item = (Member, Member)>) -> Result<Cut<'_>, Error> {
        let mut cut = Cut { cluster: self, pairs: Vec::new() };
        for (from, to) in pairs {
            self.switch.drop_packets(from, to)?;
            cut.pairs.push((from, to));
        }
        Ok(cut)
    }

    /// Stops every process of a machine where it is, as a paused virtual machine.
    pub fn freeze(&self, name: &str) -> Result<Frozen<'_>, Error> {
        let member = Member::named(name)?;
        self.cgroups.freeze(name, true)?;
        Ok(Frozen { cluster: self, member, over: false })
    }

    /// Cuts a node's power: all its processes are gone when this returns, its disk stays.
    pub fn power_cut(&self, node: &str) -> Result<Off<'_>, Error> {
        let node = Member::node(node)?;
        self.machine(node).cut_power()?;
        Ok(Off { cluster: self, node, over: false })
    }

    /// Kills a program of a machine, such as `kubelet` or `kube-apiserver`; it is started again after a second.
    pub fn kill_program(&self, machine: &str, program: &str) -> Result<(), Error> {
        self.signal_program(machine, program, Signal::KILL)
    }

    /// Ends a program and keeps it away until the guard is dropped.
    pub fn stop_program(&self, machine: &str, program: &str) -> Result<Held, Error> {
        let file = self.machine(Member::named(machine)?).hold_file(program);
        std::fs::write(&file, b"").context(FileSnafu { what: "write", path: &file })?;
        let held = Held { file };
        self.signal_program(machine, program, Signal::KILL)?;
        Ok(held)
    }

    /// Stops a program where it is (`SIGSTOP`): its connections stay open and nothing answers.
    pub fn pause_program(&self, machine: &str, program: &str) -> Result<Paused, Error> {
        let pid = self.program(machine, program)?;
        Paused::now(vec![pid])
    }

    /// Kills the API server and keeps it away. Its store goes on.
    pub fn stop_api(&self) -> Result<Held, Error> {
        self.stop_program(PLANE, API_SERVER)
    }

    /// Stops the API server where it is.
    pub fn pause_api(&self) -> Result<Paused, Error> {
        self.pause_program(PLANE, API_SERVER)
    }

    fn program(&self, machine: &str, program: &str) -> Result<u32, Error> {
        let found = self.machine(Member::named(machine)?).child(program);
        let what = || format!("looking for {program} on {machine}");
        found.with_context(|| ProgramSnafu { what: what(), said: "it does not run" })
    }

    fn signal_program(&self, machine: &str, program: &str, signal: Signal) -> Result<(), Error> {
        send(self.program(machine, program)?, signal)
    }

    /// Boots a node that is off.
    fn boot(&self, node: Member) -> Result<(), Error> {
        let name = node.name();
        // The kubelet takes three seconds for each empty cgroup of the node's earlier life.
        self.cgroups.tidy(name);
        self.cgroups.make(name)?;
        let mut machine = self.machine(node);
        machine.boot()?;
        self.switch.plug(node, machine.pid()?)
    }
}

/// Sends a signal to a process of the host.
pub(super) fn send(pid: u32, signal: Signal) -> Result<(), Error> {
    let what = || format!("sending {signal:?} to process {pid}");
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let raw = raw.with_context(|| ProgramSnafu { what: what(), said: "no such number" })?;
    kill_process(raw, signal).map_err(|error| ProgramSnafu { what: what(), said: error.to_string() }.build())
}

/// Lines that are cut until this is dropped.
#[must_use = "the lines are healed when this is dropped"]
#[derive(Debug)]
pub struct Cut<'a> {
    cluster: &'a Cluster,
    pairs: Vec<(Member, Member)>,
}

impl Cut<'_> {
    /// Heals the lines.
    pub fn heal(mut self) -> Result<(), Error> {
        self.take_back()
    }

    fn take_back(&mut self) -> Result<(), Error> {
        let mut outcome = Ok(());
        for (from, to) in std::mem::take(&mut self.pairs) {
            outcome = outcome.and(self.cluster.switch.pass_packets(from, to));
        }
        outcome
    }
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        let _ = self.take_back();
    }
}

/// A machine that stands still until this is dropped.
#[must_use = "the machine goes on when this is dropped"]
#[derive(Debug)]
pub struct Frozen<'a> {
    cluster: &'a Cluster,
    member: Member,
    over: bool,
}

impl Frozen<'_> {
    /// Lets it go on.
    pub fn thaw(mut self) -> Result<(), Error> {
        self.over = true;
        self.cluster.cgroups.freeze(self.member.name(), false)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.cluster.cgroups.freeze(self.member.name(), false);
        }
    }
}

/// A node without power until this is dropped.
#[must_use = "the node boots when this is dropped"]
#[derive(Debug)]
pub struct Off<'a> {
    cluster: &'a Cluster,
    node: Member,
    over: bool,
}

impl Off<'_> {
    /// Switches it on again, on the same disk.
    pub fn boot(mut self) -> Result<(), Error> {
        self.over = true;
        self.cluster.boot(self.node)
    }
}

impl Drop for Off<'_> {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.cluster.boot(self.node);
        }
    }
}

/// A program that is kept away until this is dropped.
#[must_use = "the program is started again when this is dropped"]
#[derive(Debug)]
pub struct Held {
    file: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Processes that stand still (`SIGSTOP`) until this is dropped.
#[must_use = "the processes go on when this is dropped"]
#[derive(Debug)]
pub struct Paused {
    pids: Vec<u32>,
}

impl Paused {
    /// Stops these processes. Those that came before one that cannot be stopped go on again.
    pub(super) fn now(pids: Vec<u32>) -> Result<Self, Error> {
        let mut paused = Self { pids: Vec::new() };
        for pid in pids {
            send(pid, Signal::STOP)?;
            paused.pids.push(pid);
        }
        Ok(paused)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for pid in &self.pids {
            // One that has been killed meanwhile needs nothing.
            let _ = send(*pid, Signal::CONT);
        }
    }
}
