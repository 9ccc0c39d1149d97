//! Log lines: what may be said, and how it is written.
//!
//! In: [`Line`]s, and whatever else goes through `tracing`. Out: one JSON object a line on stdout, with the fields of the
//! contract: `time` (RFC 3339, nanoseconds, UTC), `level`, `msg`, `event`, `fg`, `component`, `epoch`, then the rest in
//! camelCase. Must not: block, panic, show a secret.
//!
//! ```
//! use bloodraven_telemetry::log::{Field, Line, LogEvent};
//! Line::of(LogEvent::StateTransition).text(Field::Site, "pdx").text(Field::From, "writable").text(Field::To, "unreachable").emit();
//! ```
//!
//! A group's task opens a span with `fg`, and its lines inherit it: `tracing::info_span!("group", fg = "shop/orders")`.

mod event;
mod hide;
mod layer;
mod line;
mod panic;
mod pipe;

#[cfg(test)]
mod tests;

pub use event::{Field, Level, LogEvent, LogSpec};
pub use layer::{Clock, JsonLayer};
pub use line::{Line, Value};
pub use pipe::{Guard, Pipe};

use std::sync::Arc;

use snafu::{ResultExt as _, Snafu};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Which program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The leader of groups, or a follower.
    Operator,
    /// The process beside mysqld.
    Sidecar,
    /// A backup Job.
    Backup,
}

impl Component {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Sidecar => "sidecar",
            Self::Backup => "backup",
        }
    }
}

/// Why nothing can be logged.
#[derive(Debug, Snafu)]
pub enum InitError {
    /// The thread that writes could not be started.
    #[snafu(display("cannot start the thread that writes log lines; raise the limit of threads"))]
    Thread {
        /// What the system says.
        source: std::io::Error,
    },
    /// Somebody else logs in this process already.
    #[snafu(display("logging was set up twice in one process; call init once, in main"))]
    Twice {
        /// What tracing says.
        source: tracing_subscriber::util::TryInitError,
    },
}

/// Logs to stdout from here on, panics included. Lines of other libraries are kept from `warn` up.
pub fn init(component: Component, level: Level) -> Result<Guard, InitError> {
    let guard = init_into(component, level, std::io::stdout())?;
    panic::log_from_here_on();
    Ok(guard)
}

/// The same into anything that takes bytes.
pub fn init_into(
    component: Component,
    level: Level,
    out: impl std::io::Write + Send + 'static,
) -> Result<Guard, InitError> {
    let (pipe, guard) = Pipe::into(out).context(ThreadSnafu)?;
    let layer = JsonLayer::new(component, Arc::new(jiff::Timestamp::now), pipe);
    let layer = layer.with_filter(filter(level));
    tracing_subscriber::registry().with(layer).try_init().context(TwiceSnafu)?;
    Ok(guard)
}

/// Which lines are written: ours from that level up, others' from `warn` up.
pub fn filter(level: Level) -> Targets {
    let ours = match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    Targets::new().with_target(line::TARGET, ours).with_default(ours.min(LevelFilter::WARN))
}
