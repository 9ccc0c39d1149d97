//! What ends the keeper before mysqld runs: each names the place and the way on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line cannot be used.
    Usage(String),
    /// Another keeper has this lock.
    Taken(PathBuf),
    /// Something cannot be done with a file or folder.
    File { doing: &'static str, path: PathBuf, source: io::Error },
    /// A credentials folder cannot be used.
    Credentials { path: PathBuf, why: String },
    /// The system refused something without a path.
    System { doing: &'static str, source: io::Error },
}

impl Error {
    /// For `map_err`: what was being done, and where.
    pub(crate) fn file(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { doing, path, source }
    }

    /// For `map_err`: what was being done.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    /// Whether a volume was full.
    pub(crate) fn is_full_disk(&self) -> bool {
        let full =
            |source: &io::Error| matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        matches!(self, Self::File { source, .. } | Self::System { source, .. } if full(source))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) => write!(f, "{why}; usage: {}", crate::args::USAGE),
            Self::Taken(path) => {
                write!(f, "{}: another keeper, or its mysqld, still holds this lock; end it first", path.display())
            }
            Self::File { doing, path, source } => write!(f, "cannot {doing} {}: {source}", path.display()),
            Self::Credentials { path, why } => write!(f, "{}: {why}", path.display()),
            Self::System { doing, source } => write!(f, "cannot {doing}: {source}"),
        }
    }
}
