//! `bloodraven init`: the first container of a site's pod.
//!
//! In: words. Out: a pod whose keeper and sidecar can start, or what stands in the way. Must not: do the work; the library
//! does.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bloodraven_cluster::init;

use crate::runtime;

pub(crate) const HELP: &str = "\
Makes the folders `mysql` and `bloodraven` on the volume, writes the server's option file and copies the keeper. What is
there already stays as it is; run again, it writes its files anew. The operator draws this command into every pod.";

/// What a pod knows of itself.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The site's volume
    #[arg(long, value_name = "DIR")]
    volume: PathBuf,

    /// The group's part of the option file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The option file to be written
    #[arg(long, value_name = "FILE")]
    option_file: PathBuf,

    /// Where the keeper's program is put
    #[arg(long, value_name = "DIR")]
    run_dir: PathBuf,

    /// The site's server id
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    server_id: u32,

    /// The pod's own address
    #[arg(long, value_name = "IP")]
    admin_address: IpAddr,

    /// The keeper's program; by default the one beside this program
    #[arg(long, value_name = "FILE")]
    keeper: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    runtime::exit(prepare(arguments))
}

fn prepare(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { volume, config, option_file, run_dir, server_id, admin_address, keeper } = arguments;
    let keeper = match keeper {
        Some(keeper) => keeper,
        None => std::env::current_exe().context("this program has no path; name --keeper")?.with_file_name("keeper"),
    };
    let options = init::Options { volume, config, option_file, run_dir, keeper, server_id, admin_address };
    Ok(init::prepare(&options)?)
}
