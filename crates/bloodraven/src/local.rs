//! `bloodraven local`: admin verbs for a group in a folder.
//!
//! In: a verb, a folder, words. Out: what the verb says. Must not: do a verb's work; the local world does.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use bloodraven_local::admin::{self, Error};

use crate::runtime;

pub(crate) const HELP: &str = "\
Examples:
  bloodraven local status DIR                        who may write, how every site is, what is under way
  bloodraven local promote DIR pdx                   ask for a planned failover
  bloodraven local reclone DIR fra                   ask for a fresh copy of a site
  bloodraven local pause DIR                         nothing automatic until `pause DIR --off`
  bloodraven local annotate DIR planned-failover=pdx any annotation of the group; `key-` takes one away
  bloodraven local why DIR                           the last decisions with their reasons, and what blocks the next
  bloodraven local what-if DIR --kill iad            what would happen, asked of the operator

The exit code is 1 when the folder, the operator or the group says no, 2 when the words made no sense. Nothing is changed
then. DIR is what `bloodraven playground --dir` was given.";

/// The verbs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Who may write, how every site is, what is under way
    Status {
        /// The playground's folder
        dir: PathBuf,
        /// The whole status as JSON
        #[arg(long)]
        json: bool,
    },

    /// Ask for a planned failover
    Promote {
        /// The playground's folder
        dir: PathBuf,
        /// Where to
        site: String,
        /// How long the target may take to catch up, such as 30s
        #[arg(long, value_name = "TIME")]
        max_lag_wait: Option<String>,
        /// A name for this request
        #[arg(long, value_name = "NAME")]
        id: Option<String>,
    },

    /// Ask for a fresh copy of a site from the primary
    Reclone {
        /// The playground's folder
        dir: PathBuf,
        /// Which
        site: String,
        /// The beginning of the transactions that the site alone has and that are thrown away
        #[arg(long, value_name = "GTIDS")]
        divergent: Option<String>,
    },

    /// Begin nothing automatic
    Pause {
        /// The playground's folder
        dir: PathBuf,
        /// Until then, such as 2026-01-31T12:00:00Z
        #[arg(long, value_name = "TIME", conflicts_with = "off")]
        until: Option<String>,
        /// Begin it again
        #[arg(long)]
        off: bool,
    },

    /// Set an annotation, or take it away
    Annotate {
        /// The playground's folder
        dir: PathBuf,
        /// key=value, or key- to take it away
        #[arg(value_name = "KEY=VALUE")]
        annotation: String,
    },

    /// The last decisions with their reasons, and what blocks the next
    Why {
        /// The playground's folder
        dir: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },

    /// What would happen if a site died now
    WhatIf {
        /// The playground's folder
        dir: PathBuf,
        /// A site that dies; may be repeated
        #[arg(long, value_name = "SITE", required = true)]
        kill: Vec<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(command: &Command, stdout: &mut impl Write) -> anyhow::Result<ExitCode> {
    match obey(command)? {
        Ok(said) => {
            writeln!(stdout, "{}", said.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("error: {error}");
            let nonsense = matches!(error, Error::Nonsense { .. } | Error::NoSuchSite { .. });
            Ok(ExitCode::from(if nonsense { 2 } else { 1 }))
        }
    }
}

fn obey(command: &Command) -> anyhow::Result<Result<String, Error>> {
    Ok(match command {
        Command::Status { dir, json } => admin::status(dir, *json),
        Command::Promote { dir, site, max_lag_wait, id } => {
            admin::promote(dir, site, max_lag_wait.as_deref(), id.as_deref())
        }
        Command::Reclone { dir, site, divergent } => admin::reclone(dir, site, divergent.as_deref()),
        Command::Pause { dir, off: true, .. } => admin::resume(dir),
        Command::Pause { dir, until, .. } => admin::pause(dir, until.as_deref()),
        Command::Annotate { dir, annotation } => admin::annotate(dir, annotation),
        Command::Why { dir, json } => runtime::run(admin::why(dir, *json))?,
        Command::WhatIf { dir, kill, json } => runtime::run(admin::what_if(dir, kill, *json))?,
    })
}
