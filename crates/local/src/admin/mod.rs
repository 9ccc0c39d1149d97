//! Admin verbs for a local group: look at it, ask it to move, copy, pause; ask why.
//!
//! In: a state directory and what somebody wants. Out: text for people (or JSON), or why not. Must not: change anything
//! when any word is wrong, decide anything, or touch a process. Requests are annotations and spec fields, as in a cluster;
//! the operator decides what becomes of them.

mod ask;
mod request;
mod shown;

#[cfg(test)]
mod tests;

pub use ask::{what_if, why};
pub(crate) use request::divergent_gtid;
pub use request::{annotate, pause, promote, reclone, resume};
pub use shown::status;

use crate::store::{self, Store};
use snafu::Snafu;
use std::path::Path;

/// Why a verb did nothing.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(crate)))]
pub enum Error {
    /// The directory cannot be used, or the change was not accepted.
    #[snafu(transparent)]
    Store {
        /// Why not.
        source: store::Error,
    },

    /// No such site.
    #[snafu(display("`{name}` is not a site; this group has {known}"))]
    NoSuchSite {
        /// What was written.
        name: String,
        /// What there is.
        known: String,
    },

    /// The site cannot be used for that.
    #[snafu(display("{site}: {because}"))]
    NotThatSite {
        /// Which.
        site: String,
        /// Why, and what to do instead.
        because: String,
    },

    /// A word makes no sense.
    #[snafu(display("{because}"))]
    Nonsense {
        /// Which, and what to write.
        because: String,
    },

    /// Nobody to ask.
    #[snafu(display("no operator answers for {dir}: {because}; start it with `bloodraven playground --dir {dir}`"))]
    NoOperator {
        /// The directory.
        dir: String,
        /// What was tried.
        because: String,
    },

    /// The operator refuses.
    #[snafu(display("the operator says: {said}"))]
    Refused {
        /// Its words.
        said: String,
    },
}

/// The group of that directory and the name of one of its sites.
fn site_of(dir: &Path, name: &str) -> Result<(Store, store::object::Object, String), Error> {
    let store = Store::open(dir)?;
    let object = store.read_group()?;
    let role = object.sites().into_iter().find(|(site, _)| site == name).map(|(_, role)| role);
    let Some(role) = role else {
        let known = object.sites().into_iter().map(|(site, _)| site).collect::<Vec<_>>().join(", ");
        return NoSuchSiteSnafu { name, known }.fail();
    };
    Ok((store, object, role))
}
