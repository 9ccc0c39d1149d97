//! `bloodraven gtid`: the algebra of GTID sets for people and scripts.
//!
//! In: sets as arguments, files or standard input. Out: a set, a number, or yes and no. Must not: connect to a server; for
//! that there is `mysql -e`.

mod operand;
mod pointer;

use std::io::{Read, Write};
use std::process::ExitCode;

use bloodraven_gtid::GtidSet;
use clap::{Args, Subcommand};

use self::operand::Operand;

/// How a set is given; the end of every subcommand's help.
macro_rules! set_forms {
    () => {
        "\
A set is one of:
  3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:nightly:1-2    the set itself
  @FILE                                                   the content of a file
  -                                                       standard input, for one set at most
UUIDs, tags, spaces, commas and overlaps may be written in any way that MySQL takes."
    };
}

const SET_FORMS: &str = set_forms!();

const HELP: &str = concat!(
    set_forms!(),
    "

Examples:
  Does the replica have all that the primary had?
    bloodraven gtid contains @replica.txt @primary.txt

  What would be lost if the replica took over?
    mysql -h replica -NBre 'SELECT @@gtid_executed' | bloodraven gtid subtract @primary.txt -

  Are two texts the same set?
    diff <(bloodraven gtid normalize @one.txt) <(bloodraven gtid normalize @two.txt)

Exit codes: 0 done (contains: yes), 1 contains: no, 2 a set or an argument was not understood."
);

/// What to do with GTID sets.
#[derive(Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    /// Say whether SET contains all transactions of OTHER
    ///
    /// Prints yes or no, and exits with 0 for yes and 1 for no. A set contains itself and the empty set. To see what is
    /// missing, subtract SET from OTHER.
    #[command(after_help = SET_FORMS)]
    Contains {
        /// The set that may contain the other
        set: Operand,
        /// The set that may be contained
        other: Operand,
    },

    /// Print the transactions of SET that are in none of the others
    #[command(after_help = SET_FORMS)]
    Subtract {
        /// The set to take from
        set: Operand,
        /// The sets to take away
        #[arg(required = true)]
        others: Vec<Operand>,
        #[command(flatten)]
        form: Form,
    },

    /// Print the transactions that are in at least one of the sets
    #[command(after_help = SET_FORMS)]
    Union {
        /// The sets
        #[arg(required = true, value_name = "SET")]
        sets: Vec<Operand>,
        #[command(flatten)]
        form: Form,
    },

    /// Print the transactions that are in every one of the sets
    #[command(after_help = SET_FORMS)]
    Intersect {
        /// The sets
        #[arg(required = true, value_name = "SET")]
        sets: Vec<Operand>,
        #[command(flatten)]
        form: Form,
    },

    /// Print how many transactions are in the set
    #[command(after_help = SET_FORMS)]
    Count {
        /// The set
        set: Operand,
        /// Print a line for each server: its UUID and how many transactions come from it, all tags together
        #[arg(long)]
        by_server: bool,
    },

    /// Print the set as MySQL does: sorted, merged, in lower case
    #[command(after_help = SET_FORMS)]
    Normalize {
        /// The set
        set: Operand,
        #[command(flatten)]
        form: Form,
    },
}

/// How a set is printed.
#[derive(Args, Clone, Copy)]
pub(crate) struct Form {
    /// Print the set on one line, without a line break after each comma
    #[arg(long)]
    one_line: bool,
}

/// Reads the sets, then answers. Nothing is printed unless every set could be read.
pub(crate) fn run(command: &Command, stdin: &mut impl Read, stdout: &mut impl Write) -> anyhow::Result<ExitCode> {
    let sets = operand::read_all(&command.operands(), stdin)?;
    match command {
        Command::Contains { .. } => {
            let contains = matches!(sets.as_slice(), [set, other] if set.contains(other));
            writeln!(stdout, "{}", if contains { "yes" } else { "no" })?;
            return Ok(ExitCode::from(u8::from(!contains)));
        }
        Command::Subtract { form, .. } => form.print(&combine(&sets, GtidSet::subtract), stdout)?,
        Command::Union { form, .. } | Command::Normalize { form, .. } => {
            form.print(&combine(&sets, GtidSet::union), stdout)?;
        }
        Command::Intersect { form, .. } => form.print(&combine(&sets, GtidSet::intersect), stdout)?,
        Command::Count { by_server, .. } => count(&combine(&sets, GtidSet::union), *by_server, stdout)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The first set, combined with each of the others in turn.
fn combine(sets: &[GtidSet], operation: fn(&GtidSet, &GtidSet) -> GtidSet) -> GtidSet {
    match sets {
        [first, others @ ..] => others.iter().fold(first.clone(), |result, other| operation(&result, other)),
        [] => GtidSet::new(),
    }
}

fn count(set: &GtidSet, by_server: bool, stdout: &mut impl Write) -> std::io::Result<()> {
    if by_server {
        set.count_by_uuid().try_for_each(|(uuid, count)| writeln!(stdout, "{uuid} {count}"))
    } else {
        writeln!(stdout, "{}", set.count())
    }
}

impl Command {
    /// The sets it is about, in the order in which they were named.
    fn operands(&self) -> Vec<Operand> {
        match self {
            Self::Contains { set, other } => vec![set.clone(), other.clone()],
            Self::Subtract { set, others, .. } => [set].into_iter().chain(others).cloned().collect(),
            Self::Union { sets, .. } | Self::Intersect { sets, .. } => sets.clone(),
            Self::Count { set, .. } | Self::Normalize { set, .. } => vec![set.clone()],
        }
    }
}

impl Form {
    fn print(self, set: &GtidSet, stdout: &mut impl Write) -> std::io::Result<()> {
        if self.one_line { writeln!(stdout, "{}", set.compact()) } else { writeln!(stdout, "{set}") }
    }
}
