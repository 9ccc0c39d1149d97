//! What can go wrong with a verb.
//!
//! In: what the driver, the server or the clock said. Out: one error that names the server and the verb. Must not: carry a
//! password; texts of the server about statements that hold one pass [`crate::secret`]'s rule in `session`.

use bloodraven_gtid::Uuid;
use snafu::Snafu;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(visibility(pub(crate)))]
pub enum Error {
    /// There is no connection: refused, not resolved, not trusted, or the greeting was garbage.
    #[snafu(display("{place}: cannot connect: {why}"))]
    Connect {
        /// `host:port`.
        place: String,
        /// What the system or the driver said.
        why: String,
    },

    /// The server does not let this account in.
    #[snafu(display("{place}: login refused ({code}): {why}; check the account's Secret and its grants"))]
    LoginRefused {
        /// `host:port`.
        place: String,
        /// The server's error number.
        code: u16,
        /// The server's words.
        why: String,
    },

    /// The deadline passed. A statement that changes something may have run; it will not begin any more.
    #[snafu(display("{place}: {doing}: no end in time"))]
    TimedOut {
        /// `host:port`.
        place: String,
        /// The verb.
        doing: &'static str,
    },

    /// Another server answers there than the one that is meant.
    #[snafu(display("{place}: {found} answers there, but {wanted} is meant: nothing was done"))]
    WrongServer {
        /// `host:port`.
        place: String,
        /// Who is meant.
        wanted: Uuid,
        /// Who answers.
        found: Uuid,
    },

    /// The server refused the statement.
    #[snafu(display("{place}: {doing}: error {code}: {message}"))]
    Server {
        /// `host:port`.
        place: String,
        /// The verb.
        doing: &'static str,
        /// The server's error number.
        code: u16,
        /// The server's words.
        message: String,
    },

    /// The statement came to the server after its deadline, and the server did nothing.
    #[snafu(display("{place}: {doing}: came too late, nothing was done"))]
    TooLate {
        /// `host:port`.
        place: String,
        /// The verb.
        doing: &'static str,
    },

    /// The connection broke. A statement that changes something may have run.
    #[snafu(display("{place}: {doing}: connection lost: {why}"))]
    Lost {
        /// `host:port`.
        place: String,
        /// The verb.
        doing: &'static str,
        /// What the system or the driver said.
        why: String,
    },

    /// The answer is not what the verb asks for.
    #[snafu(display("{place}: {doing}: cannot read {what}"))]
    Unreadable {
        /// `host:port`.
        place: String,
        /// The verb.
        doing: &'static str,
        /// The column or the answer.
        what: String,
    },

    /// Sessions that had to go are still there.
    #[snafu(display("{place}: {count} sessions of {whose} are still there"))]
    Left {
        /// `host:port`.
        place: String,
        /// Whose.
        whose: String,
        /// How many.
        count: u64,
    },

    /// What was asked for would lose data as things are.
    #[snafu(display("{place}: {doing}: not done: {why}"))]
    Unsafe {
        /// `host:port`.
        place: String,
        /// The verb.
        doing: &'static str,
        /// What would be lost, and why.
        why: &'static str,
    },

    /// The server has no replication configured.
    #[snafu(display("{place}: {doing}: no replication is configured there"))]
    NotAReplica {
        /// `host:port`.
        place: String,
        /// The verb.
        doing: &'static str,
    },
}

impl Error {
    /// Whether the statement may have had an effect that nobody has seen.
    pub const fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Lost { .. } | Self::Unreadable { .. })
    }

    /// Whether the account is the trouble.
    pub const fn is_login(&self) -> bool {
        matches!(self, Self::LoginRefused { .. })
    }

    /// The server's certificate is not trusted, or does not name the host. The driver has but words for it.
    pub fn is_untrusted(&self) -> bool {
        matches!(self, Self::Connect { why, .. } if why.to_ascii_lowercase().contains("certificate"))
    }

    /// The server's error number, where it gave one.
    pub const fn code(&self) -> Option<u16> {
        match self {
            Self::Server { code, .. } | Self::LoginRefused { code, .. } => Some(*code),
            _ => None,
        }
    }
}
