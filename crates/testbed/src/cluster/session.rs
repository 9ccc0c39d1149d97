//! A cluster between two commands: `up` leaves one running, `down` takes it away.
//!
//! In: words of a person. Out: text for them. Must not: leave two of them running from one cache folder, or believe a file:
//! whether a cluster is there is what the lock says, which the kernel takes back from a dead holder.
//!
//! The cluster belongs to a process of its own, the holder, because everything ends with the process that started it.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use snafu::{OptionExt as _, ResultExt as _, ensure};

use super::error::{Error, FileSnafu, ProgramSnafu, TooLateSnafu, part};
use super::{Cluster, Options, PLANE, Parts, SITES, machine, sweep, traces};
use crate::process;
use crate::progress::Progress;
use crate::{cache, lock, wait};

/// The word of the testbed's program that holds a cluster.
pub const HOLD: &str = "cluster-hold";

/// How long a start may take when everything is in the cache.
const UP_LIMIT: Duration = Duration::from_mins(8);

/// How long an end may take: 7 s here.
const DOWN_LIMIT: Duration = Duration::from_mins(1);

/// How long a look at the nodes may take.
const STATUS_LIMIT: Duration = Duration::from_secs(20);

/// How often the holder looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the holder tells about its cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    pid: u32,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    logs: PathBuf,
}

fn folder() -> PathBuf {
    cache::root().join("cluster")
}

fn file(name: &str) -> PathBuf {
    folder().join(name)
}

/// Brings a cluster up and leaves it running. `words` are those of [`hold`] and describe it.
pub fn up(program: &Path, words: &[String]) -> Result<String, Error> {
    understand(program, words)?;
    machine::check(&cache::root())?;
    let running = "one is up already; `cluster status` shows it, `cluster down` takes it away";
    ensure!(!lock::is_held(&file("lock")), ProgramSnafu { what: "cluster up", said: running });
    std::fs::create_dir_all(folder()).context(FileSnafu { what: "make", path: folder() })?;
    // In front of the person, because it may take minutes; the holder then finds everything.
    Parts::provision(program)?;
    for name in ["state.json", "stop", "hold.log"] {
        let _ = std::fs::remove_file(file(name));
    }
    let log = File::create(file("hold.log")).context(FileSnafu { what: "write", path: file("hold.log") })?;
    let errors = log.try_clone().context(FileSnafu { what: "write", path: file("hold.log") })?;
    let mut command = Command::new(program);
    command.arg(HOLD).args(words).stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
    let step = Progress::start("starting a cluster of three nodes");
    let mut holder = command.spawn().context(FileSnafu { what: "start", path: program })?;
    let outcome = wait::until_every(UP_LIMIT, LOOK_EVERY, || {
        let ended = holder.try_wait().ok().flatten().is_some();
        read_state().map(Some).or_else(|| ended.then_some(None))
    });
    let said = || process::tail(&file("hold.log"), 12);
    let state = outcome.flatten().with_context(|| ProgramSnafu { what: "cluster up", said: said() })?;
    step.done();
    Ok(format!(
        "three nodes are Ready: {}\n  kubectl    {} --kubeconfig {}\n  logs       {}\n  the end    cargo xtask cluster down\n",
        SITES.join(", "),
        state.kubectl.display(),
        state.kubeconfig.display(),
        state.logs.display()
    ))
}

/// The holder: starts the cluster that the words describe, and takes it down when it is told so.
pub fn hold(program: &Path, words: &[String]) -> Result<String, Error> {
    let options = understand(program, words)?;
    let _lock = lock::exclusive(&file("lock"), "a cluster").map_err(part("the lock of the cluster"))?;
    let cluster = options.start()?;
    let state = State {
        pid: std::process::id(),
        kubeconfig: cluster.kubeconfig().to_owned(),
        kubectl: cluster.api.kubectl.clone(),
        logs: cluster.logs().to_owned(),
    };
    let text = serde_json::to_string_pretty(&state).map_err(part("the state of the cluster"))?;
    let (unseen, seen) = (file("state.new"), file("state.json"));
    std::fs::write(&unseen, text)
        .and_then(|()| std::fs::rename(&unseen, &seen))
        .context(FileSnafu { what: "write", path: &seen })?;
    // Without an end: it is told by a file, or killed.
    let _ = wait::until_every(Duration::MAX, LOOK_EVERY, || file("stop").exists().then_some(()));
    let _ = std::fs::remove_file(&seen);
    cluster.down()?;
    Ok(String::new())
}

/// Takes the cluster down. One that does not go is killed, and what it leaves is swept.
pub fn down() -> Result<String, Error> {
    let state = read_state();
    if !lock::is_held(&file("lock")) {
        let swept = sweep();
        let what = if swept.is_empty() { "no cluster is up".to_owned() } else { format!("swept {}", swept.join(", ")) };
        return Ok(what + "\n");
    }
    std::fs::write(file("stop"), b"").context(FileSnafu { what: "write", path: file("stop") })?;
    let gone = || (!lock::is_held(&file("lock"))).then_some(());
    if wait::until_every(DOWN_LIMIT, LOOK_EVERY, gone).is_none() {
        let holder = state.and_then(|state| Pid::from_raw(i32::try_from(state.pid).ok()?));
        let holder = holder.context(TooLateSnafu {
            what: "the cluster is still starting",
            seconds: DOWN_LIMIT.as_secs(),
            hint: "try again when `cluster status` shows it",
        })?;
        let _ = kill_process(holder, Signal::KILL);
        let late = TooLateSnafu { what: "the holder is not gone", seconds: DOWN_LIMIT.as_secs(), hint: "see its log" };
        wait::until_every(DOWN_LIMIT, LOOK_EVERY, gone).context(late)?;
    }
    sweep();
    let left = traces();
    ensure!(left.is_empty(), ProgramSnafu { what: "cluster down", said: format!("left: {}", left.join(", ")) });
    Ok("the cluster is down, nothing is left\n".to_owned())
}

/// What there is.
pub fn status() -> Result<String, Error> {
    if !lock::is_held(&file("lock")) {
        let left = traces();
        let dead = if left.is_empty() { String::new() } else { format!("; the next start sweeps {}", left.join(", ")) };
        return Ok(format!("no cluster is up{dead}\n"));
    }
    let Some(state) = read_state() else { return Ok("a cluster is starting or ending\n".to_owned()) };
    let mut command = Command::new(&state.kubectl);
    command.arg("--kubeconfig").arg(&state.kubeconfig).args(["get", "nodes", "--output=wide", "--request-timeout=5s"]);
    let nodes = super::network::answer("kubectl get nodes", process::output(&mut command, "", STATUS_LIMIT))?;
    Ok(format!("{nodes}kubeconfig {}\nlogs       {}\n", state.kubeconfig.display(), state.logs.display()))
}

/// The path of the kubeconfig.
pub fn kubeconfig() -> Result<String, Error> {
    Ok(format!("{}\n", running()?.kubeconfig.display()))
}

/// The ends of the logs of a machine, or the names of all logs.
pub fn logs(machine: Option<&str>) -> Result<String, Error> {
    let top = running()?.logs;
    let names = std::iter::once(PLANE).chain(SITES).filter(|name| machine.is_none_or(|wanted| wanted == *name));
    let files = names.flat_map(|name| top.join(name).read_dir().into_iter().flatten().flatten()).map(|it| it.path());
    let show = |path: PathBuf| {
        let end = if machine.is_some() { process::tail(&path, 15) + "\n" } else { String::new() };
        format!("==> {} <==\n{end}", path.display())
    };
    let text = files.map(show).collect::<Vec<_>>().concat();
    let known = || format!("no such machine; there are: {PLANE}, {}", SITES.join(", "));
    ensure!(!text.is_empty(), ProgramSnafu { what: "cluster logs", said: known() });
    Ok(text)
}

fn running() -> Result<State, Error> {
    let held = lock::is_held(&file("lock"));
    let said = "no cluster is up: `cargo xtask cluster up`";
    held.then(read_state).flatten().context(ProgramSnafu { what: "looking for a cluster", said })
}

fn read_state() -> Option<State> {
    serde_json::from_slice(&std::fs::read(file("state.json")).ok()?).ok()
}

/// `[--profile fast|default] [--bloodraven PROGRAM --keeper PROGRAM]`
fn understand(program: &Path, words: &[String]) -> Result<Options, Error> {
    let mut options = Cluster::options(program);
    let (mut bloodraven, mut keeper) = (None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().with_context(|| misuse(&format!("{word} needs a value")));
        match word.as_str() {
            "--profile" => {
                let name = value()?;
                options = options.profile(match name.as_str() {
                    "fast" => super::Profile::Fast,
                    "default" => super::Profile::Default,
                    other => return misuse(&format!("'{other}' is no profile: fast or default")).fail(),
                });
            }
            "--bloodraven" => bloodraven = Some(value()?),
            "--keeper" => keeper = Some(value()?),
            other => return misuse(&format!("'{other}' is not known")).fail(),
        }
    }
    match (bloodraven, keeper) {
        (Some(bloodraven), Some(keeper)) => Ok(options.workspace(bloodraven, keeper)),
        (None, None) => Ok(options),
        _ => misuse("--bloodraven and --keeper go together").fail(),
    }
}

fn misuse(said: &str) -> ProgramSnafu<&'static str, String> {
    let usage = "words are [--profile fast|default] [--bloodraven PROGRAM --keeper PROGRAM]";
    ProgramSnafu { what: "cluster up", said: format!("{said}; {usage}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_known_are_told_with_those_that_are() {
        let check = |text: &str, expect: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let outcome = understand(Path::new("/testbed"), &words).map(|options| format!("{options:?}"));
            let said = outcome.unwrap_or_else(|error| error.to_string());
            assert!(said.contains(expect), "{text}: {said}");
        };
        check("", "profile: Fast");
        check("--profile default", "profile: Default");
        check("--profile slow", "'slow' is no profile: fast or default");
        check("--profile", "--profile needs a value");
        check("--bloodraven /b --keeper /k", "Some((\"/b\", \"/k\"))");
        check("--keeper /k", "go together");
        check("--nodes 5", "'--nodes' is not known; words are");
    }
}
