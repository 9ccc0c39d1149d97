//! The network between the machines: one switch, one cable a machine, and the rules that break them.
//!
//! In: processes whose network namespaces are to be joined. Out: addresses, routes, cuts. Must not: touch the host's own
//! network: everything is done from a thread that has entered the namespace in question.
//!
//! Faults are rules of the switch, not of a node: the service proxy of a node puts its own rules first. A dropped packet is
//! silence, as on a long line that is cut; a port that goes down would answer "no route" after three seconds.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::process::Output;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use snafu::{ResultExt as _, ensure};

use super::error::{Error, FileSnafu, ProgramSnafu};
use super::layout::{self, Member};
use super::tools::Tools;
use crate::{process, wait};

/// What a machine's kernel settings have to be, per namespace.
const ROUTES: [(&str, &str); 3] = [
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
    ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
];

/// Lets packet rules see what the switch forwards.
const BRIDGE_RULES: &str = "/proc/sys/net/bridge/bridge-nf-call-iptables";

/// How long `ip` or `iptables` may take: milliseconds on a machine that is not busy.
const RUN_LIMIT: Duration = Duration::from_secs(30);

/// How long the kernel may take to forget the cable of a machine that died.
const FORGET_LIMIT: Duration = Duration::from_secs(10);

/// Runs something in the network namespace of a process, on a thread of its own: a thread that entered a namespace is of no
/// use to others afterwards.
pub(super) fn within<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
    std::thread::scope(|scope| {
        let entered = scope.spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            drop(namespace);
            Ok(work())
        });
        entered.join().unwrap_or_else(|_| Err(io::Error::other("the work in the namespace panicked")))
    })
}

/// The switch: a process that holds a namespace with a bridge.
#[derive(Debug)]
pub(super) struct Switch {
    tools: Tools,
    pid: u32,
}

impl Switch {
    /// Makes the bridge in the namespace of a process.
    pub(super) fn make(tools: &Tools, pid: u32) -> Result<Self, Error> {
        let switch = Self { tools: tools.clone(), pid };
        switch.batch(pid, "making the switch", "link set lo up\nlink add br0 type bridge\nlink set br0 up\n")?;
        let listening = within(pid, || std::fs::write(BRIDGE_RULES, "1")).flatten();
        let said = "the kernel does not show bridged packets to its rules: `modprobe br_netfilter`, or another kernel";
        ensure!(listening.is_ok(), ProgramSnafu { what: "making the switch", said });
        Ok(switch)
    }

    /// Gives a machine its cable, its address and its routes.
    pub(super) fn plug(&self, member: Member, pid: u32) -> Result<(), Error> {
        let port = member.name();
        self.forget(port)?;
        let cable = format!(
            "link add {port} type veth peer name eth0 netns {pid}\nlink set {port} master br0\nlink set {port} up\n"
        );
        self.batch(self.pid, "plugging in a machine", &cable)?;
        self.batch(pid, "addressing a machine", &layout::wiring(member))?;
        within(pid, || ROUTES.iter().try_for_each(|(path, value)| std::fs::write(path, value)))
            .flatten()
            .context(FileSnafu { what: "set the routing of", path: port })
    }

    /// The cable of a machine's earlier life goes with its namespace, a little later.
    fn forget(&self, port: &str) -> Result<(), Error> {
        let seen = || {
            let mut ip = self.tools.ip();
            ip.args(["link", "delete", port]);
            within(self.pid, || process::output(&mut ip, "", RUN_LIMIT))
                .flatten()
                .is_ok_and(|output| !output.status.success())
                .then_some(())
        };
        let said = || format!("the port {port} of a machine that is gone cannot be removed");
        ensure!(
            wait::until(FORGET_LIMIT, seen).is_some(),
            ProgramSnafu { what: "plugging in a machine", said: said() }
        );
        Ok(())
    }

    /// From now on nothing of one machine reaches the other.
    pub(super) fn drop_packets(&self, from: Member, to: Member) -> Result<(), Error> {
        self.rule("-A", from, to)
    }

    /// Takes one such rule back.
    pub(super) fn pass_packets(&self, from: Member, to: Member) -> Result<(), Error> {
        self.rule("-D", from, to)
    }

    fn rule(&self, verb: &str, from: Member, to: Member) -> Result<(), Error> {
        let mut iptables = self.tools.iptables();
        iptables.args(["--wait", "10", verb]).args(rule_words(from, to));
        let what = format!("the rule {verb} {} -> {}", from.name(), to.name());
        succeed(&what, within(self.pid, || process::output(&mut iptables, "", RUN_LIMIT)).flatten())
    }

    fn batch(&self, pid: u32, what: &str, lines: &str) -> Result<(), Error> {
        let mut ip = self.tools.ip();
        ip.args(["-batch", "-"]);
        succeed(what, within(pid, || process::output(&mut ip, lines, RUN_LIMIT)).flatten())
    }
}

/// The match and the verdict of a cut.
fn rule_words(from: Member, to: Member) -> Vec<String> {
    let words = ["FORWARD", "-m", "physdev", "--physdev-is-bridged", "--physdev-in", from.name(), "--physdev-out"];
    words.into_iter().chain([to.name(), "-j", "DROP"]).map(str::to_owned).collect()
}

/// Success, or what a program said instead.
pub(super) fn succeed(what: &str, outcome: io::Result<Output>) -> Result<(), Error> {
    answer(what, outcome).map(drop)
}

/// What a program wrote, or why it failed.
pub(super) fn answer(what: &str, outcome: io::Result<Output>) -> Result<String, Error> {
    let output = outcome.map_err(|error| ProgramSnafu { what, said: error.to_string() }.build())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), ProgramSnafu { what, said: format!("{}: {}", output.status, said.trim()) });
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_cut_drops_what_one_machine_sends_to_the_other_and_nothing_else() {
        let words = rule_words(Member::node("iad").unwrap(), Member::PLANE).join(" ");
        assert_eq!(words, "FORWARD -m physdev --physdev-is-bridged --physdev-in iad --physdev-out plane -j DROP");
    }

    #[test]
    fn a_program_that_fails_is_told_with_its_words() {
        let run = |script: &str| Command::new("sh").args(["-c", script]).output();
        assert_eq!(answer("asking", run("echo yes")).unwrap(), "yes\n");
        let error = succeed("asking", run("echo no way >&2; exit 3")).unwrap_err().to_string();
        assert!(error.contains("asking failed") && error.contains("no way"), "{error}");
    }
}
