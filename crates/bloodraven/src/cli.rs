//! The command line.
//!
//! In: the words a person typed. Out: the subcommand they mean, run, and its exit code; or one line that says what was
//! not understood. Must not: do any subcommand's work.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use crate::{crds, gtid, init, install, local, operator, playground, sidecar, simulate};

/// Keeps a MySQL database writable across sites: fast, and provably with a single writer.
#[derive(Parser)]
#[command(
    name = "bloodraven",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "\
Examples:
  bloodraven crds | kubectl apply --server-side -f -    install the custom resource definitions
  bloodraven install | kubectl apply -f -               install the operator
  bloodraven gtid subtract @primary.txt @replica.txt    what the replica still lacks
  bloodraven gtid --help                                all that can be done with GTID sets
  bloodraven simulate --seeds 0..1000                   groups under random faults, judged
  bloodraven playground                                 a whole group on this machine, with load and faults
  bloodraven local status DIR                           how the group of a playground is"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the custom resource definitions as YAML
    #[command(after_help = crds::HELP)]
    Crds,

    /// Compare and combine MySQL GTID sets
    #[command(subcommand)]
    Gtid(gtid::Command),

    /// Make a site's pod ready for its server
    #[command(after_help = init::HELP)]
    Init(init::Arguments),

    /// Print the operator's own objects as YAML: its account, its rights, its Service and its pod
    #[command(after_help = install::HELP)]
    Install(install::Arguments),

    /// Look at the group of a playground, ask it for something, ask it why
    #[command(subcommand, after_help = local::HELP)]
    Local(local::Command),

    /// Watch groups and move their primaries
    #[command(after_help = operator::HELP)]
    Operator(operator::Arguments),

    /// A whole group on this machine, with load, faults and a ledger
    #[command(after_help = playground::HELP)]
    Playground(Box<playground::Arguments>),

    /// The agent beside a MySQL server
    #[command(after_help = sidecar::HELP)]
    Sidecar,

    /// Run groups under random faults and judge them
    #[command(after_help = simulate::HELP)]
    Simulate(simulate::Arguments),
}

/// Understands the words, runs what they ask for.
pub(crate) fn run(
    words: impl IntoIterator<Item = OsString>,
    stdin: &mut impl Read,
    stdout: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(answer) => return explain(&answer, stdout),
    };
    match cli.command {
        Command::Crds => crds::run(stdout),
        Command::Gtid(command) => gtid::run(&command, stdin, stdout),
        Command::Init(arguments) => Ok(init::run(arguments)),
        Command::Install(arguments) => install::run(&arguments, stdout),
        Command::Local(command) => local::run(&command, stdout),
        Command::Operator(arguments) => operator::run(&arguments),
        Command::Playground(arguments) => playground::run(&arguments, stdout),
        Command::Sidecar => sidecar::run(),
        Command::Simulate(arguments) => simulate::run(&arguments, stdout),
    }
}

/// Help and the version go to standard output in full; a mistake becomes one line.
fn explain(answer: &clap::Error, stdout: &mut impl Write) -> anyhow::Result<ExitCode> {
    match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            write!(stdout, "{}", answer.render())?;
            Ok(ExitCode::SUCCESS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            _ = answer.print();
            Ok(ExitCode::from(2))
        }
        _ => anyhow::bail!("{}", in_one_line(answer)),
    }
}

/// The mistake, the nearest thing that exists, and where to read on.
fn in_one_line(mistake: &clap::Error) -> String {
    let text = mistake.render().to_string();
    let first_paragraph = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first_paragraph.split_whitespace().skip_while(|word| *word == "error:").collect();
    let mistake_itself = words.join(" ");
    let nearest = nearest_of(mistake).map_or(String::new(), |nearest| format!(" (did you mean '{nearest}'?)"));
    format!("{mistake_itself}{nearest}; see '{} --help'", commands_of_usage(mistake))
}

/// What exists and looks like what was typed.
fn nearest_of(mistake: &clap::Error) -> Option<&String> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match mistake.get(kind)? {
        ContextValue::String(nearest) => Some(nearest),
        // In ascending order of likeness.
        ContextValue::Strings(nearest) => nearest.last(),
        _ => None,
    })
}

/// `bloodraven gtid union` out of `Usage: bloodraven gtid union [OPTIONS] <SET>...`.
fn commands_of_usage(mistake: &clap::Error) -> String {
    let usage = match mistake.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let is_command =
        |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-') && !word.starts_with('-');
    let commands: Vec<&str> = usage.split_whitespace().skip(1).take_while(is_command).collect();
    if commands.is_empty() { "bloodraven".to_owned() } else { commands.join(" ") }
}
