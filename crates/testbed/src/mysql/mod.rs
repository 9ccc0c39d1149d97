//! Real MySQL servers on loopback.
//!
//! In: how many servers and what they shall be like. Out: running servers with their addresses, or one line that says
//! what is missing. Must not: speak SQL (tests bring their own client), use a server that it did not start, or leave
//! one running.
//!
//! ```no_run
//! use bloodraven_testbed::mysql::{Error, MysqlServer, start_many};
//!
//! let servers = start_many(["iad", "pdx", "fra"].map(|name| MysqlServer::builder().name(name)))?;
//! println!("{}", servers[0].url("root", ""));
//! servers[0].kill()?;
//! # Ok::<(), Error>(())
//! ```
//!
//! [`Distribution`] finds or fetches the programs, a template keeps one initialised data folder, [`Builder`] copies it
//! and starts a server, [`MysqlServer`] is the running server.

mod builder;
mod distribution;
mod greeting;
mod server;
mod template;
mod version;

use std::path::PathBuf;

pub use self::builder::{Builder, start_many};
pub(crate) use self::distribution::unpacked;
pub use self::distribution::{Client, Distribution, Error as DistributionError, Origin};
pub use self::server::{Error, MysqlServer};
pub use self::template::Error as TemplateError;
pub use self::version::Version;

/// The initialised data folder that servers start from, made when there is none for this version: about 5 s, once.
pub fn provision_template(distribution: &Distribution) -> Result<PathBuf, TemplateError> {
    template::provision(distribution)
}

/// The kinds of cache entries that this module makes.
pub const KINDS: [&str; 2] = [distribution::KIND, template::KIND];
