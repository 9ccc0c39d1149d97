//! The table of teeth: every rule of the brain and every part of the world around it, with who notices when it is taken
//! away. `cargo xtask teeth` runs it and fails where it is not true.

use super::rows::{self, Row};
use super::{Bounds, Outcome, Without, search};
use bloodraven_brain::rule::Rule;

/// Who notices.
#[derive(Clone, Copy, Debug)]
pub enum Caught {
    /// A unit test of the brain.
    UnitTest,
    /// A unit test of the brain, and this search as well.
    Both(Row),
    /// This search.
    Search(Row),
    /// Nobody: something else does the same, for this reason.
    Redundant(&'static str),
}

/// A rule of the brain, or a part of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tooth {
    /// Enforced in the brain.
    Rule(Rule),
    /// Provided by the world around it.
    Part(Without),
}

impl Tooth {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let rules = Rule::ALL.iter().copied().map(Self::Rule);
        rules.chain(Without::ALL.iter().copied().map(Self::Part))
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|tooth| tooth.name() == name)
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Rule(rule) => rule.name().to_owned(),
            Self::Part(part) => part.name(),
        }
    }

    /// The sign of what is known to happen without it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.mark().sign(),
            Self::Part(part) => part.sign(),
        }
    }

    /// Who notices when it is taken away.
    pub fn caught(self) -> Caught {
        match self {
            Self::Rule(rule) => of_rule(rule),
            Self::Part(part) => of_part(part),
        }
    }
}

/// The search of that row without that part.
pub fn search_without(tooth: Tooth, row: &Row) -> Outcome {
    let without = match tooth {
        Tooth::Rule(_) => None,
        Tooth::Part(part) => Some(part),
    };
    search(Bounds { without, ..row.bounds }, row.most)
}

impl Without {
    fn sign(self) -> &'static str {
        match self {
            Self::EndOfOpeners | Self::CompareAndSwap => "",
            _ => "⚔",
        }
    }
}

fn of_rule(rule: Rule) -> Caught {
    match rule {
        Rule::PresentVotersCount => Caught::Redundant(
            "a view drops the vouches of, and the questions to, who is no voter any more, so no other is there to count",
        ),
        Rule::EndsFromElection => {
            Caught::Redundant("the wait begins at the last grant, and a new leader counts that from its election, too")
        }
        _ => Caught::UnitTest,
    }
}

fn of_part(part: Without) -> Caught {
    match part {
        Without::DeadMan | Without::EndOfOpeners | Without::EvidenceOfTheEnd => Caught::Search(rows::MOVE),
        Without::OnlyTheSidecarOpens => Caught::Search(rows::TWO_MOVES),
        Without::FencedBoot => Caught::Search(rows::MYSQLD),
        Without::OneSession => Caught::Search(rows::SIDECAR),
        Without::StartIdAtPermit => Caught::Search(rows::KEEPER),
        Without::PersistFirst | Without::LeadershipAtTheAnswer | Without::CompareAndSwap => {
            Caught::Search(rows::LEADER)
        }
        Without::BothInOneStatement => {
            Caught::Redundant("both variables are read back after the statement, and what is not closed then is killed")
        }
    }
}
