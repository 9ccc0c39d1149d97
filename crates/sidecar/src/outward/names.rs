//! Names to addresses, so that a dead resolver holds up nothing.
//!
//! In: host names. Out: addresses, at worst those of last time. Must not: have two lookups of one name under way (each
//! occupies a thread for as long as the resolver hangs), or remember more names than a group can have.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long an answer of the resolver is good: pods move, and a tick comes every few seconds.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// How long a lookup may take before the addresses of last time are used.
const PATIENCE: Duration = Duration::from_millis(300);

/// More names than the sites of a group and its operators have.
const MOST_NAMES: usize = 64;

/// A cache in front of the system's resolver.
#[derive(Clone, Default)]
pub(super) struct Names(Arc<Mutex<BTreeMap<String, Entry>>>);

struct Entry {
    addresses: Vec<SocketAddr>,
    until: Option<Instant>,
    /// A lookup that is under way; its end is a change.
    looking: Option<watch::Receiver<()>>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let addresses = names.addresses(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

impl Names {
    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Failure> {
        let (known, mut looking) = match self.ask(name)? {
            Asked::Fresh(addresses) => return Ok(addresses),
            Asked::Looking(known, looking) => (known, looking),
        };
        if known.is_empty() {
            // Whoever asks has a bound of its own.
            let _ = looking.changed().await;
        } else {
            let _ = timeout(PATIENCE, looking.changed()).await;
        }
        let addresses = self.known(name);
        if addresses.is_empty() { Err(format!("{name}: no address").into()) } else { Ok(addresses) }
    }

    fn known(&self, name: &str) -> Vec<SocketAddr> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(name).map(|entry| entry.addresses.clone()).unwrap_or_default()
    }

    fn ask(&self, name: &str) -> Result<Asked, Failure> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MOST_NAMES && !names.contains_key(name) {
            return Err(format!("{name}: too many names").into());
        }
        let fresh = Entry { addresses: Vec::new(), until: None, looking: None };
        let entry = names.entry(name.to_owned()).or_insert(fresh);
        if entry.until.is_some_and(|until| Instant::now() < until) {
            return Ok(Asked::Fresh(entry.addresses.clone()));
        }
        let looking = entry.looking.get_or_insert_with(|| {
            let (tell, looking) = watch::channel(());
            // Goes on when nobody waits any more: the next one who asks gets what it finds.
            tokio::spawn(self.clone().look_up(name.to_owned(), tell));
            looking
        });
        Ok(Asked::Looking(entry.addresses.clone(), looking.clone()))
    }

    async fn look_up(self, name: String, tell: watch::Sender<()>) {
        let found = tokio::net::lookup_host((name.as_str(), 0)).await.map(Iterator::collect::<Vec<_>>);
        if let Some(entry) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&name) {
            entry.looking = None;
            if let Ok(addresses) = found
                && !addresses.is_empty()
            {
                entry.addresses = addresses;
                entry.until = Some(Instant::now() + GOOD_FOR);
            }
        }
        let _ = tell.send(());
    }
}

enum Asked {
    Fresh(Vec<SocketAddr>),
    Looking(Vec<SocketAddr>, watch::Receiver<()>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_looked_up_and_remembered() {
        let names = Names::default();
        let found = names.addresses("localhost").await.expect("every host knows it");
        assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
        assert!(matches!(names.ask("localhost"), Ok(Asked::Fresh(again)) if again == found));
    }

    #[tokio::test]
    async fn what_is_no_name_has_no_address_and_names_are_bounded() {
        let names = Names::default();
        assert!(names.addresses("no such name").await.is_err());
        for number in 0..2 * MOST_NAMES {
            let _ = names.ask(&format!("name-{number}.invalid"));
        }
        assert!(names.0.lock().expect("no panic").len() <= MOST_NAMES);
    }
}
