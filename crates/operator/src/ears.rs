//! Who listens to an operator: everything that people are told passes here, as it happens.
//!
//! In: notices of the brain, the leader's state as it is, what the hands did. Out: Events to be written, metrics as text.
//! Must not: block, decide, or be needed: an operator without ears works the same.

use crate::world::{Event, GroupId, Unfurnished};
use bloodraven_blueprint::conditions::Hands;
use bloodraven_brain::group::input::Saw;
use bloodraven_brain::group::{Group, Notice};
use bloodraven_brain::lease;
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Now;
use std::time::Duration;

/// See above. Every method is called from a loop that must not wait.
pub trait Ears: Send + Sync + 'static {
    /// What the leader of that group says after one step. The Events are written after the status is.
    fn notices(&self, id: &GroupId, now: Now, group: &Group, notices: &[Notice]) -> Vec<Event>;

    /// The leader as it is: on each change, and at least once a second while this process leads.
    fn glance(&self, id: &GroupId, now: Now, group: &Group) -> Vec<Event>;

    /// What the hands know beside what they tell the brain, whenever it changed: conditions are made of it, too.
    fn hands(&self, id: &GroupId, known: &Hands) {
        let _ = (id, known);
    }

    /// The group's spec is refused (the last valid one stays in force), or none: it is fine again.
    fn spec_refused(&self, id: &GroupId, now: Now, because: Option<&str>) -> Vec<Event>;

    /// No spec of the group could be taken yet: nobody leads it.
    fn unled(&self, id: &GroupId, now: Now, because: &str) -> Vec<Event> {
        let _ = (id, now, because);
        Vec::new()
    }

    /// The group's secrets are incomplete, or none: they are fine again.
    fn secrets_missing(&self, id: &GroupId, now: Now, because: Option<&crate::world::MissingSecret>) -> Vec<Event>;

    /// A server of the group shows a certificate that is not trusted.
    fn untrusted(&self, id: &GroupId, now: Now, site: &Site, because: &str) -> Vec<Event> {
        let _ = (id, now, site, because);
        Vec::new()
    }

    /// The group's objects are not as wanted, or none: they are.
    fn unfurnished(&self, id: &GroupId, now: Now, because: Option<&Unfurnished>) -> Vec<Event> {
        let _ = (id, now, because);
        Vec::new()
    }

    /// This process leads that group no more, or the group is gone: its series end.
    fn forget(&self, id: &GroupId);

    /// A word of the election.
    fn election(&self, now: Now, notice: &lease::Notice);

    /// A poll ended.
    fn polled(&self, id: &GroupId, site: &Site, took: Duration, saw: &Saw);

    /// An SQL fence by the operator ended.
    fn fenced(&self, id: &GroupId, site: &Site, confirmed: bool);

    /// A loop panicked and is started again.
    fn panicked(&self, of: &str);

    /// The store did not take a write: `lease`, `annotation`, `status`, `request`, `event`, `outward`, `pod`.
    fn write_failed(&self, resource: &'static str);

    /// An HTTP request was answered.
    fn answered(&self, handler: &'static str, method: &str, status: u16, took: Duration);

    /// So many clients follow over `WebSockets`.
    fn followers(&self, clients: usize);

    /// Every series, as Prometheus reads it.
    fn metrics(&self) -> String;
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Ears for Deaf {
    fn notices(&self, _: &GroupId, _: Now, _: &Group, _: &[Notice]) -> Vec<Event> {
        Vec::new()
    }

    fn glance(&self, _: &GroupId, _: Now, _: &Group) -> Vec<Event> {
        Vec::new()
    }

    fn spec_refused(&self, _: &GroupId, _: Now, _: Option<&str>) -> Vec<Event> {
        Vec::new()
    }

    fn secrets_missing(&self, _: &GroupId, _: Now, _: Option<&crate::world::MissingSecret>) -> Vec<Event> {
        Vec::new()
    }

    fn forget(&self, _: &GroupId) {}

    fn election(&self, _: Now, _: &lease::Notice) {}

    fn polled(&self, _: &GroupId, _: &Site, _: Duration, _: &Saw) {}

    fn fenced(&self, _: &GroupId, _: &Site, _: bool) {}

    fn panicked(&self, _: &str) {}

    fn write_failed(&self, _: &'static str) {}

    fn answered(&self, _: &'static str, _: &str, _: u16, _: Duration) {}

    fn followers(&self, _: usize) {}

    fn metrics(&self) -> String {
        String::new()
    }
}
