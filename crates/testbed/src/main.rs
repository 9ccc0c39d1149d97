//! `bloodraven-testbed`: fetches and builds the real parts ahead of the tests, shows what is there, gives the space back.
//!
//! In: one word. Out: what was done, on standard output; what takes long, on standard error. Must not: start a server.

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use bloodraven_testbed::cache::{Cache, Kept, State, size_of};
use bloodraven_testbed::mysql::{Client, Distribution, Origin};
use bloodraven_testbed::progress::seconds;
use bloodraven_testbed::wait::Stopwatch;
use bloodraven_testbed::{cluster, debian, kubernetes, mysql, scratch};

const HELP: &str = "\
Fetches and builds the real parts that Bloodraven's tests run against.

Usage: bloodraven-testbed <COMMAND>

Commands:
  mysql             find or fetch MySQL, and prepare an initialised data folder
  mysql --json      the same, and tell programs: the words that run mysqld, its folders, the data folder
  kubernetes        fetch etcd and build the Kubernetes API server and kubectl
  kubernetes --all  build the other programs of a cluster, too
  cluster <WORD>    a real cluster of three nodes: parts, up, down, status, kubeconfig, logs [MACHINE]
  status            show what the cache holds
  clean             remove what was fetched; what was built from source (the Kubernetes programs) stays
  clean --all       remove that, too
  --help            show this

Environment:
  BLOODRAVEN_CACHE_DIR      the folder that keeps everything (default: ~/.cache/bloodraven)
  BLOODRAVEN_MYSQLD         the path of a mysqld of 8.4 or newer to use instead of looking for one
  BLOODRAVEN_TESTBED_KEEP   1 keeps every server's folder after its end
";

/// Folders of the cache that hold no entries, and what is in them.
const LOOSE: [(&str, &str); 3] =
    [("apt", "package lists"), ("kept", "folders of failed tests"), ("run", "folders of running tests")];

/// The kind of entries that come from a compiler rather than from a download.
const BUILT: &str = "kubernetes";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["mysql"] => provide_mysql(),
        ["mysql", "--json"] => provide_mysql_as_json(),
        ["kubernetes"] => provide_kubernetes(),
        ["kubernetes", "--all"] => provide_kubernetes().and_then(provide_the_rest),
        ["cluster", ..] => cluster_command(&words[1..]),
        [cluster::session::HOLD, ..] => with_program(|program| cluster::session::hold(program, &owned(&words[1..]))),
        [cluster::JOIN, plan] => cluster::join(Path::new(plan)).map(|()| String::new()).map_err(text),
        [cluster::BOOT, plan] => cluster::boot(Path::new(plan)).map(|()| String::new()).map_err(text),
        ["status"] => Ok(status(&Cache::open())),
        ["clean"] => clean(&Cache::open(), &fetched_kinds()),
        ["clean", "--all"] => clean(&Cache::open(), &all_kinds()),
        ["--help" | "-h" | "help"] => Ok(HELP.to_owned()),
        _ => return misuse(&words),
    };
    match outcome {
        Ok(report) => {
            // Whoever closed the other end has read enough.
            let _ = std::io::stdout().write_all(report.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("bloodraven-testbed: {message}");
            ExitCode::FAILURE
        }
    }
}

fn cluster_command(words: &[&str]) -> Result<String, String> {
    match words {
        ["parts"] => {
            with_program(|program| cluster::Parts::provision(program).map(|_| "everything is there\n".to_owned()))
        }
        ["up", rest @ ..] => with_program(|program| cluster::session::up(program, &owned(rest))),
        ["down"] => cluster::session::down().map_err(text),
        ["status"] => cluster::session::status().map_err(text),
        ["kubeconfig"] => cluster::session::kubeconfig().map_err(text),
        ["logs"] => cluster::session::logs(None).map_err(text),
        ["logs", machine] => cluster::session::logs(Some(machine)).map_err(text),
        _ => Err("name one of: cluster parts, up, down, status, kubeconfig, logs [MACHINE]".to_owned()),
    }
}

/// Something that starts this very program again.
fn with_program<E: Display>(work: impl FnOnce(&Path) -> Result<String, E>) -> Result<String, String> {
    let program = std::env::current_exe().map_err(text)?;
    work(&program).map_err(text)
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn misuse(words: &[&str]) -> ExitCode {
    let problem = if words.is_empty() { "no command".to_owned() } else { format!("unknown: {}", words.join(" ")) };
    eprintln!("bloodraven-testbed: {problem}; see bloodraven-testbed --help");
    ExitCode::from(2)
}

fn provide_mysql() -> Result<String, String> {
    let watch = Stopwatch::start();
    let found = Distribution::provision().map_err(text)?;
    let template = mysql::provision_template(&found).map_err(text)?;
    let origin = match found.origin() {
        Origin::Variable => "named by BLOODRAVEN_MYSQLD",
        Origin::Path => "on PATH",
        Origin::Debian => "fetched from Debian",
    };
    let client = |client: Client| {
        let has = found.client(client).map_or("not there", |_| "found");
        format!("  client    {} {has}\n", client.program())
    };
    Ok(format!(
        "MySQL {} ({origin}), ready in {}\n  server    {}\n{}  template  {}\n",
        found.version(),
        seconds(watch.elapsed()),
        found.path().display(),
        [Client::Mysql, Client::Mysqldump, Client::Mysqlbinlog].map(client).concat(),
        template.display(),
    ))
}

/// What another program needs to run servers of its own from the same files.
fn provide_mysql_as_json() -> Result<String, String> {
    let found = Distribution::provision().map_err(text)?;
    let template = mysql::provision_template(&found).map_err(text)?;
    let command = found.mysqld();
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let folder = |option: &str| words.iter().find_map(|word| word.strip_prefix(option)).map(str::to_owned);
    let told = serde_json::json!({
        "version": found.version().to_string(),
        "mysqld": words,
        "pluginDir": folder("--plugin-dir="),
        "lcMessagesDir": folder("--lc-messages-dir="),
        "template": template,
    });
    Ok(format!("{told}\n"))
}

fn provide_kubernetes() -> Result<String, String> {
    let watch = Stopwatch::start();
    let parts = kubernetes::provision().map_err(text)?;
    Ok(format!(
        "Kubernetes {}, ready in {}\n  server    {}\n  kubectl   {}\n",
        kubernetes::VERSION,
        seconds(watch.elapsed()),
        parts.api_server.display(),
        parts.kubectl.display(),
    ))
}

/// The report of [`provide_kubernetes`], continued by the programs of a whole cluster.
fn provide_the_rest(report: String) -> Result<String, String> {
    let programs = kubernetes::provision_all().map_err(text)?;
    let lines: Vec<String> = programs.iter().map(|path| format!("  program   {}\n", path.display())).collect();
    Ok(report + &lines.concat())
}

fn status(cache: &Cache) -> String {
    let line = |bytes: u64, what: &str| format!("{:>7} MB  {what}\n", bytes >> 20);
    let entry = |kept: &Kept| {
        let state = match &kept.state {
            State::Complete => String::new(),
            State::Unfinished => " (unfinished)".to_owned(),
            State::Damaged(damage) => format!(" (damaged: {damage}; it will be made anew)"),
        };
        line(kept.bytes, &format!("{}/{}{state}", kept.kind, kept.key))
    };
    let entries = cache.inventory(&all_kinds());
    let loose = LOOSE.map(|(name, what)| (size_of(&cache.root().join(name)).unwrap_or(0), name, what));
    let sum = entries.iter().map(|kept| kept.bytes).chain(loose.iter().map(|(bytes, ..)| *bytes)).sum();
    let listed: Vec<String> = entries.iter().map(entry).collect();
    let others = loose
        .map(|(bytes, name, what)| if bytes == 0 { String::new() } else { line(bytes, &format!("{name} ({what})")) });
    format!("{}\n{}{}{}", cache.root().display(), listed.concat(), others.concat(), line(sum, "in all"))
}

fn clean(cache: &Cache, kinds: &[&str]) -> Result<String, String> {
    let live = scratch::in_use(cache.root());
    if let Some(one) = live.first() {
        let count = live.len();
        return Err(format!(
            "{count} servers run from {}, such as {}: end their tests first",
            cache.root().display(),
            one.display()
        ));
    }
    let mut freed = 0;
    for kept in cache.inventory(kinds) {
        cache.remove(&kept.kind, &kept.key).map_err(text)?;
        freed += kept.bytes;
    }
    freed += LOOSE.iter().map(|(name, _)| size_of(&cache.root().join(name)).unwrap_or(0)).sum::<u64>();
    debian::forget(cache.root()).map_err(text)?;
    scratch::sweep(cache.root());
    scratch::forget_kept(cache.root()).map_err(text)?;
    Ok(format!("{} MB freed in {}\n", freed >> 20, cache.root().display()))
}

/// What comes back with a download.
fn fetched_kinds() -> Vec<&'static str> {
    all_kinds().into_iter().filter(|kind| *kind != BUILT).collect()
}

fn all_kinds() -> Vec<&'static str> {
    mysql::KINDS.into_iter().chain(kubernetes::KINDS).chain(cluster::KINDS).collect()
}

fn text(error: impl Display) -> String {
    error.to_string()
}
