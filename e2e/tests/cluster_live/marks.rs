//! Marks: single changes of what the API server holds, with the revision of each.
//!
//! In: objects as they come over a watch. Out: what of them changed. Must not: order changes of different kinds by when they
//! were heard of: each kind has a watch of its own, and one may be late.
//!
//! All kinds are kept in one store, whose revision grows with every write: of two objects the one with the lower version was
//! written first. (The API promises that for one kind only; for this cluster, with its one store, it is so for all.)

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Who has authority, by the record.
    Authority { phase: String, site: String },
    /// The record's.
    Epoch(u64),
    /// The proof that the holder before had let go; empty where none is needed.
    Proof(String),
    /// The role of a site's pod.
    Role { site: String, role: String },
    /// The target of the DNS record.
    Dns(String),
    /// The taint of a node.
    Taint { node: String, on: bool },
    /// The operator that leads.
    Leader(String),
    /// How the operator finds a site.
    Site { site: String, state: String },
    /// Where `-primary` leads.
    Endpoints(Vec<String>),
    /// A pod that was not there before.
    NewPod(String),
    /// How many sites have no pod that is Ready.
    Down(usize),
}

impl fmt::Display for Change {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority { phase, site } => write!(to, "record: {phase} {site}"),
            Self::Epoch(epoch) => write!(to, "record: epoch {epoch}"),
            Self::Proof(kind) => write!(to, "record: proof {kind}"),
            Self::Role { site, role } => write!(to, "label: {site} is {role}"),
            Self::Dns(target) => write!(to, "DNS: {target}"),
            Self::Taint { node, on } => write!(to, "taint: {node} {}", if *on { "on" } else { "off" }),
            Self::Leader(pod) => write!(to, "leader: {pod}"),
            Self::Site { site, state } => write!(to, "status: {site} is {state}"),
            Self::NewPod(site) => write!(to, "pod: a new one of {site}"),
            Self::Down(count) => write!(to, "pods: {count} sites without one that is Ready"),
            Self::Endpoints(all) => write!(to, "-primary leads to {all:?}"),
        }
    }
}

/// A change, and when.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// The store's, of the write that made it.
    pub(crate) revision: u64,
    /// When it was heard of.
    pub(crate) heard: Duration,
    pub(crate) change: Change,
}

/// All changes, and the last of each thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) all: Vec<Mark>,
    last: BTreeMap<String, Change>,
}

impl Marks {
    /// Takes down how a thing is, if it was different before. The thing is named by whoever watches it.
    pub(crate) fn take(&mut self, thing: &str, revision: u64, heard: Duration, change: Change) -> bool {
        if self.last.get(thing) == Some(&change) {
            return false;
        }
        self.last.insert(thing.to_owned(), change.clone());
        self.all.push(Mark { revision, heard, change });
        true
    }

    /// The newest revision that was heard of.
    pub(crate) fn newest(&self) -> u64 {
        self.all.iter().map(|mark| mark.revision).max().unwrap_or_default()
    }

    /// The first time after that revision that something became so.
    pub(crate) fn first_after(&self, revision: u64, wanted: &Change) -> Option<&Mark> {
        let later = self.all.iter().filter(|mark| mark.revision > revision && mark.change == *wanted);
        later.min_by_key(|mark| mark.revision)
    }
}

/// What is missing of these changes, or was written before the one that has to come first.
pub(crate) fn out_of_order(marks: &Marks, after: u64, wanted: &[Change]) -> Option<String> {
    let mut last = after;
    for change in wanted {
        let Some(mark) = marks.first_after(after, change) else {
            return Some(format!("not written: {change}"));
        };
        if mark.revision <= last {
            return Some(format!("too early: {change}, revision {}, after one of {last}", mark.revision));
        }
        last = mark.revision;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(on: bool) -> Change {
        Change::Taint { node: "iad".to_owned(), on }
    }

    #[test]
    fn changes_are_ordered_by_their_writes_and_not_by_when_they_were_heard_of() {
        let mut marks = Marks::default();
        let dns = || Change::Dns("10.1.0.10".to_owned());
        assert!(marks.take("taint iad", 30, Duration::from_millis(1), taint(true)));
        assert!(marks.take("dns", 20, Duration::from_millis(2), dns()));
        assert!(!marks.take("dns", 25, Duration::from_millis(3), dns()), "it is as it was");
        assert_eq!(marks.newest(), 30);
        let check = |after: u64, wanted: &[Change], said: Option<&str>| {
            assert_eq!(out_of_order(&marks, after, wanted).as_deref(), said, "{wanted:?} after {after}");
        };
        check(10, &[dns(), taint(true)], None);
        check(10, &[taint(true), dns()], Some("too early: DNS: 10.1.0.10, revision 20, after one of 30"));
        check(20, &[dns(), taint(true)], Some("not written: DNS: 10.1.0.10"));
        check(10, &[dns(), taint(false)], Some("not written: taint: iad off"));
    }
}
