//! The election, in words.
//!
//! In: a notice of the lease. Out: a line, and whether this process leads now. Must not: say more than the election does.

use bloodraven_brain::lease::{LostBy, Notice};
use bloodraven_telemetry::log::{Field, Level, Line, LogEvent};

/// What that notice comes to.
pub fn told(notice: &Notice) -> (Line, Option<bool>) {
    match notice {
        Notice::Elected(_) => (Line::of(LogEvent::LeaderElected), Some(true)),
        Notice::Lost(by) => (Line::of(LogEvent::LeaderLost).text(Field::Reason, lost_by(by)), Some(false)),
        Notice::Follows(other) => {
            (Line::prose(Level::Info, format!("{other} leads; this operator stands by")), Some(false))
        }
        Notice::Released => (Line::prose(Level::Info, "the lease is free for the next operator"), Some(false)),
        Notice::Stopped => (Line::prose(Level::Info, "the election has ended for this process"), Some(false)),
    }
}

fn lost_by(by: &LostBy) -> String {
    match by {
        LostBy::Deadline => "the lease was not renewed in time; is the API server slow?".to_owned(),
        LostBy::Taken(other) => format!("{other} has taken the lease"),
        LostBy::Cleared => "somebody took the holder's name off the lease".to_owned(),
        LostBy::Deleted => "somebody deleted the lease".to_owned(),
        LostBy::Shutdown => "this process was asked to end".to_owned(),
    }
}
