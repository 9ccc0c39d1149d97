//! `bloodraven playground`: a whole group on this machine, with load, faults and a ledger.
//!
//! In: words. Out: the playground, and for a script its verdict in the exit code. Must not: play; the local world does.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use bloodraven_local::playground::{self, Verdict, Wanted};
use bloodraven_local::script::{self, Profile, Script, SiteWish};
use bloodraven_local::{MysqlPrograms, Programs, scenarios};

use crate::runtime;

pub(crate) const HELP: &str = "\
Examples:
  bloodraven playground                                 three sites, an operator, load, and a screen with keys
  bloodraven playground --list                          the scenarios that are shipped
  bloodraven playground --scenario 5                    one of them, watched
  bloodraven playground --headless --script my.scn      a script of one's own, as JSON lines
  bloodraven playground --dir /tmp/group                keep everything there; a second start goes on with it

The exit code is 0 when a script's expectations came true and the ledger owes nothing, 1 when not or when nothing could be
started, 2 when the words made no sense. `cargo xtask play` builds what is needed, brings MySQL, and starts this.";

/// What to play.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// JSON lines instead of a screen
    #[arg(long)]
    headless: bool,

    /// Run a script and end with its verdict
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    script: Option<PathBuf>,

    /// Run a shipped scenario, by its number or its name
    #[arg(long, value_name = "N")]
    scenario: Option<String>,

    /// List the shipped scenarios
    #[arg(long)]
    list: bool,

    /// Keep everything in this folder; a folder that has a group is resumed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// How fast things are noticed: default (as in production) or fast
    #[arg(long, value_name = "NAME", value_parser = Profile::named)]
    profile: Option<Profile>,

    /// The sites of a new group
    #[arg(long, value_name = "LIST", value_parser = sites)]
    sites: Option<Sites>,

    /// Writes a second for each writer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: Option<u32>,

    /// Begin without load (a script says itself when it begins)
    #[arg(long)]
    no_load: bool,

    /// The program that is the parent of each mysqld; otherwise the one beside this program
    #[arg(long, value_name = "PATH")]
    keeper: Option<PathBuf>,

    /// A word of the command that runs mysqld, repeated for each word; otherwise `mysqld` on PATH
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    mysqld: Vec<OsString>,

    /// An initialised data folder that new sites begin with
    #[arg(long, value_name = "DIR")]
    template: Option<PathBuf>,
}

/// `iad,pdx,fra:dr-only`, understood.
#[derive(Clone)]
struct Sites(Vec<SiteWish>);

fn sites(text: &str) -> Result<Sites, String> {
    script::sites(text).map(Sites)
}

pub(crate) fn run(arguments: &Arguments, stdout: &mut impl Write) -> anyhow::Result<ExitCode> {
    if arguments.list {
        write!(stdout, "{}", scenarios::list())?;
        return Ok(ExitCode::SUCCESS);
    }
    let script = script(arguments)?;
    let folder = Folder::of(arguments.dir.as_deref())?;
    let wanted = Wanted {
        dir: folder.path.clone(),
        sites: arguments.sites.clone().map(|sites| sites.0),
        profile: arguments.profile,
        headless: arguments.headless,
        script,
        programs: programs(arguments)?,
        template: arguments.template.clone(),
        rate: arguments.rate,
        load: !arguments.no_load,
    };
    let verdict = match runtime::run(playground::run(wanted))? {
        Ok(verdict) => verdict,
        Err(error) => {
            eprintln!("bloodraven: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    Ok(tell(verdict.as_ref(), folder))
}

/// A verdict in words, on standard error: standard output is the playground's.
fn tell(verdict: Option<&Verdict>, folder: Folder) -> ExitCode {
    let Some(verdict) = verdict else { return ExitCode::SUCCESS };
    for scene in &verdict.scenes {
        eprintln!("{scene}");
    }
    eprintln!("{}: {}", verdict.story, verdict.summary);
    if verdict.passed {
        return ExitCode::SUCCESS;
    }
    eprintln!("failed: {}", verdict.failed.as_deref().unwrap_or("the ledger owes something"));
    eprintln!("everything is kept in {}", folder.keep().display());
    ExitCode::FAILURE
}

fn script(arguments: &Arguments) -> anyhow::Result<Option<Script>> {
    let (name, text) = match (&arguments.script, &arguments.scenario) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            (file.display().to_string(), text)
        }
        (None, Some(word)) => {
            let found = scenarios::find(word);
            let found = found.with_context(|| format!("no scenario '{word}'; see 'bloodraven playground --list'"))?;
            (found.name.to_owned(), found.text.to_owned())
        }
        (None, None) => return Ok(None),
    };
    let usual = sites("iad,pdx,fra:dr-only").map_err(anyhow::Error::msg)?;
    let sites = arguments.sites.as_ref().unwrap_or(&usual);
    match script::parse(&text, &sites.0) {
        Ok(script) => Ok(Some(script)),
        Err(wrong) => anyhow::bail!("{name}: {wrong}"),
    }
}

fn programs(arguments: &Arguments) -> anyhow::Result<Programs> {
    let bloodraven = std::env::current_exe().context("cannot find this program's own file")?;
    let keeper = arguments.keeper.clone().unwrap_or_else(|| bloodraven.with_file_name("keeper"));
    anyhow::ensure!(keeper.is_file(), "no keeper at {}; build it, or name it with --keeper", keeper.display());
    let mysql = match arguments.mysqld.split_first() {
        None => MysqlPrograms::plain("mysqld"),
        Some((program, words)) => MysqlPrograms::from_command(Command::new(program).args(words)),
    };
    Ok(Programs { bloodraven, keeper, mysql })
}

/// Where everything is kept: the person's folder, or one that goes away at the end.
struct Folder {
    path: PathBuf,
    ours: bool,
}

impl Folder {
    fn of(named: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = named {
            return Ok(Self { path: path.to_owned(), ours: false });
        }
        let path = std::env::temp_dir().join(format!("bloodraven-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, ours: true })
    }

    /// It stays.
    fn keep(mut self) -> PathBuf {
        self.ours = false;
        self.path.clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.ours {
            // Nothing runs in it any more; what cannot be removed is among the temporary files.
            _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
