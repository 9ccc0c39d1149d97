//! A network of its own for a crowd: loopback and nothing else, with names that only the crowd answers.
//!
//! In: a program that is to run there. Out: that program in a network and a mount namespace of its own. Must not: change
//! anything outside of them. Both end with the last process inside; without root a user namespace is made, too.

use crate::names;
use anyhow::{Context as _, Result, bail, ensure};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for a program inside.
const INSIDE: &str = "BLOODRAVEN_CROWD_INSIDE";

/// What the system's resolver reads.
const RESOLVER: &str = "/etc/resolv.conf";

/// Whether this process is inside already.
#[expect(clippy::disallowed_methods, reason = "the only word from the process that was outside")]
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// This program with other words, to be run inside.
pub fn inside(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "--propagation=private", "--"]).arg(program).env(INSIDE, "1");
    command
}

/// Makes the place ready, from inside, before anything else: loopback up, names answered by the crowd, room for many
/// connections. `folder` is where a file may be put.
pub fn furnish(folder: &Path) -> Result<()> {
    ensure!(is_inside(), "not in a place of its own");
    raise_loopback().context("cannot bring loopback up")?;
    answer_names(folder).context("cannot have names answered")?;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).context("cannot open many files")
}

fn answer_names(folder: &Path) -> Result<()> {
    let file = folder.join("resolv.conf");
    fs::write(&file, format!("nameserver {}\noptions ndots:1 timeout:1\n", names::ADDRESS))?;
    let place: PathBuf = fs::canonicalize(RESOLVER).with_context(|| format!("there is no {RESOLVER}"))?;
    rustix::mount::mount_bind(&file, &place).with_context(|| format!("cannot put a file over {}", place.display()))
}

/// One message to the kernel: the first device is up.
fn raise_loopback() -> Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 5;
    const UP: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&NEW_LINK.to_ne_bytes());
    message.extend_from_slice(&REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    // Any family, any kind; the device's number; its flags, and which of them are meant.
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&1_i32.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    // No protocol is the first one of this family: routes and devices.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 256];
    let (read, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let code =
        answer.get(16..20).filter(|_| read >= 20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        other => bail!("the kernel answered {other:?}"),
    }
}
