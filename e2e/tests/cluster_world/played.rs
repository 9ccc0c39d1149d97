//! Servers that are played: what each site's server says is a value that a test changes at any time.
//!
//! In: who writes, who follows, who is silent. Out: what polls see, and how many there were. Must not: do any of the leader's
//! tasks; nothing here opens, closes or points a server, so what is decided rests on what the test says alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bloodraven_brain::candidate::Data;
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::group::Task;
use bloodraven_brain::group::accounts::Logins;
use bloodraven_brain::group::input::{Facts, Outcome, ReplicaFacts, SemiSync};
use bloodraven_brain::name::Site;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::Millis;
use bloodraven_gtid::Uuid;
use bloodraven_operator::servers::{Looked, Server, Servers, Silent};

/// What a site's server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It takes writes.
    Writes,
    /// It is closed and follows `iad`, so many seconds behind.
    Follows(u64),
    /// It is closed and has stopped following `iad`.
    Stopped,
    /// Nobody answers.
    Silent,
}

/// All of them; clones are the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Played(Arc<Mutex<Parts>>);

#[derive(Debug, Default)]
struct Parts {
    parts: BTreeMap<Site, Part>,
    polls: u64,
}

impl Played {
    pub(crate) fn new(parts: &[(&str, Part)]) -> Self {
        let played = Self::default();
        for (site, part) in parts {
            played.set(site, *part);
        }
        played
    }

    pub(crate) fn set(&self, site: &str, part: Part) {
        self.0.lock().unwrap().parts.insert(Site::new(site), part);
    }

    /// How often `iad` was polled.
    pub(crate) fn polls(&self) -> u64 {
        self.0.lock().unwrap().polls
    }

    fn look(&self, site: &Site) -> Option<Facts> {
        let part = self.0.lock().unwrap().parts.get(site).copied().unwrap_or(Part::Silent);
        let replica = |runs: bool, behind: Option<Millis>| ReplicaFacts {
            source: Some(Site::new("iad")),
            receiver: if runs { Receiver::Running } else { Receiver::Stopped },
            receiver_error: None,
            applier: if runs { Applier::Running } else { Applier::Stopped },
            delayed: false,
            behind,
        };
        let (pair, replica) = match part {
            Part::Writes => (Pair::OPEN, None),
            Part::Follows(seconds) => (Pair::CLOSED, Some(replica(true, Some(Millis::from_secs(seconds))))),
            Part::Stopped => (Pair::CLOSED, Some(replica(false, None))),
            Part::Silent => return None,
        };
        let data = Data { executed: format!("{}:1-5", uuid(&Site::new("iad"))).parse().unwrap(), ..Data::default() };
        let server_uuid = uuid(site);
        Some(Facts { pair, server_uuid, data: Some(data), replica, user_data: true, semi_sync: SemiSync::default() })
    }
}

/// One of its own for each name.
fn uuid(site: &Site) -> Uuid {
    let letters: Vec<String> = site.as_str().bytes().take(6).map(|letter| format!("{letter:02x}")).collect();
    format!("00000000-0000-4000-8000-{:0>12}", letters.concat()).parse().unwrap()
}

impl Servers for Played {
    type Session = ();

    async fn poll(&self, at: &Server, session: &mut Option<()>, _: Duration) -> Result<Looked, Silent> {
        if at.site.as_str() == "iad" {
            self.0.lock().unwrap().polls += 1;
        }
        let facts = self.look(&at.site).ok_or_else(|| Silent::Failed("nobody answers".to_owned()))?;
        *session = Some(());
        Ok(Looked { facts, server_id: None, exhausted: false })
    }

    async fn work(&self, at: &Server, _: &mut Option<()>, _: Option<Uuid>, task: &Task, _: Duration) -> Outcome {
        match (self.look(&at.site), task) {
            (None, _) => Outcome::Failed("nobody answers".to_owned()),
            (Some(_), Task::CheckLogins { .. } | Task::SetPasswords { .. } | Task::DiscardPasswords { .. }) => {
                Outcome::Logins(Box::<Logins>::default())
            }
            (Some(facts), _) => Outcome::Read(Box::new(facts)),
        }
    }

    async fn commit(&self, _: &Server, _: &mut Option<()>, _: Uuid, _: Duration) -> Result<(), Silent> {
        Ok(())
    }

    async fn disabled_events(&self, _: &Server, _: &mut Option<()>, _: Duration) -> Result<Vec<String>, Silent> {
        Ok(Vec::new())
    }

    async fn clone_bytes(&self, _: &Server, _: &mut Option<()>, _: Duration) -> Result<Option<(u64, u64)>, Silent> {
        Ok(None)
    }
}
