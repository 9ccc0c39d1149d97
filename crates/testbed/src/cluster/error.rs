//! What goes wrong with a cluster.
//!
//! In: the place and the cause. Out: one sentence for a person, with the way on. Must not: hold a secret.

use std::io;
use std::path::PathBuf;

use snafu::Snafu;

/// Why a cluster is not there, or a fault was not done to it.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
pub enum Error {
    /// This machine cannot run one.
    #[snafu(display("this machine cannot run a cluster:\n  - {}", problems.join("\n  - ")))]
    Machine {
        /// Everything that is in the way, each with what to do.
        problems: Vec<String>,
    },

    /// A part of it cannot be fetched or built.
    #[snafu(display("cannot provide {what}: {source}"))]
    Part {
        /// The part.
        what: &'static str,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A file or folder cannot be used.
    #[snafu(display("cannot {what} {}: {source}", path.display()))]
    File {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A program did not do what it was asked for.
    #[snafu(display("{what} failed: {said}"))]
    Program {
        /// The step.
        what: String,
        /// What it said.
        said: String,
    },

    /// The certificates cannot be made.
    #[snafu(display("cannot make the certificates of the cluster: {source}"))]
    Certificates {
        /// Why not.
        source: rcgen::Error,
    },

    /// Something did not come true in time.
    #[snafu(display("{what} after {seconds} s; {hint}"))]
    TooLate {
        /// What was waited for, as a sentence without it, such as "node iad is not Ready".
        what: String,
        /// How long.
        seconds: u64,
        /// Where to look.
        hint: String,
    },

    /// A name that nothing here has.
    #[snafu(display("there is no {sort} '{name}'; there are: {known}"))]
    Unknown {
        /// What was looked for.
        sort: &'static str,
        /// Its name.
        name: String,
        /// The names that there are.
        known: String,
    },

    /// The machine of that name is switched off.
    #[snafu(display("{name} is switched off: boot it first"))]
    Off {
        /// The machine.
        name: String,
    },
}

/// Makes any error the reason why a part is missing.
pub(super) fn part<E>(what: &'static str) -> impl FnOnce(E) -> Error
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |source| Error::Part { what, source: source.into() }
}
