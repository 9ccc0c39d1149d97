//! `bloodraven operator`: watches groups, moves the primary, tells everyone.
//!
//! In: words. Out: an operator that runs until it is told to end. Must not: be an operator; the library is.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bloodraven_local::operate;
use bloodraven_operator::tell::Teller;
use bloodraven_telemetry::log::Level;
use bloodraven_telemetry::{Component, OperatorMetrics, log};

use crate::runtime;

pub(crate) const HELP: &str = "\
Examples:
  bloodraven operator --local DIR      the operator of a group in a folder, as `bloodraven playground` starts it

Log lines are JSON on standard output. SIGTERM and Ctrl-C end it: its lease is given back.";

/// How to operate.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Operate the group in this folder instead of groups in a cluster
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,

    /// Which of the folder's operators this is, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "local", hide = true)]
    local_operator: u8,

    /// The least important lines that are written: debug, info, warn or error
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: Level,
}

pub(crate) fn level(word: &str) -> Result<Level, String> {
    Level::parse(word).ok_or_else(|| "write debug, info, warn or error".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Some(dir) = &arguments.local else {
        anyhow::bail!(
            "clusters are not operated yet; name a folder with --local DIR, see 'bloodraven operator --help'"
        );
    };
    // Kept to the end: the last lines are written when it goes.
    let logging = log::init(Component::Operator, arguments.log_level).context("cannot log")?;
    let ended = runtime::run(operate(dir.clone(), arguments.local_operator))?;
    drop(logging);
    Ok(runtime::exit(ended))
}

async fn operate(dir: PathBuf, number: u8) -> anyhow::Result<()> {
    let ears = Arc::new(Teller::new(OperatorMetrics::new(env!("CARGO_PKG_VERSION"))));
    let (world, settings, listeners) = operate::prepare(&dir, number, ears).await?;
    let shutdown = runtime::told_to_end()?;
    Ok(bloodraven_operator::run(world, settings, listeners, shutdown).await?)
}
