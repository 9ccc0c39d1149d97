//! `MysqlFailoverGroup`: one MySQL database that is kept writable across sites.
//!
//! In: what users write in `spec`. Out: typed settings with every default filled in, and the shape of `status`.
//! Must not: decide anything; rules that a type cannot express are in `crate::rules`.

mod backup;
mod dragonfly;
mod restore;
mod settings;
mod site;
mod spec;
pub mod status;

pub use backup::*;
pub use dragonfly::*;
pub use restore::*;
pub use settings::*;
pub use site::*;
pub use spec::*;
