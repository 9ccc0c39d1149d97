//! The verbs that Bloodraven says to a MySQL server, each under a deadline; none of them opens anything.
//!
//! In: a [`Server`], what is wanted of it, a [`Deadline`]. Out: typed readings, or one [`Error`] that names the server and
//! the verb. Must not: decide, try twice, open a server (there is no such verb and no way to send a statement of one's
//! own), or let a password into a text.
//!
//! | file | verb |
//! |---|---|
//! | [`mod@poll`] | everything a server says of itself, in one round trip; the pair of fence variables |
//! | [`mod@fence`] | both variables on, applications' sessions ended when it hangs, both read back |
//! | [`sessions`] | list, end, see gone |
//! | [`replica`] | stop, start, reset, point, lift the delay |
//! | [`mod@attach`], [`mod@repoint`], [`cut`] | the guarded sequences: what they may lose is an argument |
//! | [`mod@clone`], [`progress`], [`restart`] | copy everything from a donor; how far it is; the new start |
//! | [`sets`], [`schemas`] | sets, waiting for one, set arithmetic by the server; the schemas of users |
//! | [`semi_sync`], [`mod@write_probe`], [`rotation`], [`events`] | as they say |
//!
//! **Three rules hold for every statement that changes something.** The server's UUID is compared on the same connection
//! ([`Wanted`]). The statement carries its own expiry, which the server checks before it begins ([`guard`]): one that lay
//! in the buffer of a server that stood still does nothing when the server goes on. And one that was given up while it
//! ran is ended on the server over a second connection. So "timed out" means "unknown, and over soon".

pub mod attach;
pub mod clone;
pub mod cut;
mod deadline;
mod driver;
mod error;
pub mod events;
pub mod fence;
pub mod guard;
mod owned;
pub mod poll;
pub mod progress;
mod quote;
mod reading;
pub mod replica;
mod replica_status;
pub mod repoint;
pub mod restart;
pub mod rotation;
mod row;
pub mod schemas;
mod secret;
pub mod semi_sync;
mod server;
mod session;
pub mod sessions;
pub mod sets;
pub mod write_probe;

pub use self::attach::attach;
pub use self::clone::{CloneOrder, Donor, clone};
pub use self::cut::{cut_over, cut_replication};
pub use self::deadline::Deadline;
pub use self::error::Error;
pub use self::fence::{Unfenced, fence, fence_over};
pub use self::guard::{Guarded, Wanted};
pub use self::poll::{Poller, poll, read_back};
pub use self::reading::{Connections, Fault, Pair, ReadBack, Reading, Receiver, ReplicaReading, SemiSync};
pub use self::replica::{Source, SourceTls};
pub use self::repoint::repoint;
pub use self::restart::{Started, wait_for_restart};
pub use self::secret::{Account, Secret};
pub use self::server::{Server, Tls};
pub use self::session::{Mark, Session};
pub use self::sessions::{Ended, Spared};
