//! Names to addresses, so that neither a dead resolver nor a busy one holds anything up.
//!
//! In: host names. Out: addresses, at worst those of last time. Must not: have two lookups of one name under way (each
//! occupies a thread for as long as the resolver hangs), or remember more names than it was told to.

#![forbid(unsafe_code)]

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a lookup may take before the addresses of last time are used.
const PATIENCE: Duration = Duration::from_millis(300);

/// A cache in front of the system's resolver, for [`reqwest::ClientBuilder::dns_resolver`].
#[derive(Clone)]
pub struct Names {
    entries: Arc<Mutex<BTreeMap<String, Entry>>>,
    good_for: Duration,
    most: usize,
}

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
    /// An answer of the resolver is good for so long; at most so many names are remembered.
    pub fn new(good_for: Duration, most: usize) -> Self {
        Self { entries: Arc::default(), good_for, most }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        self.entries().get(name).map(|entry| entry.addresses.clone()).unwrap_or_default()
    }

    fn ask(&self, name: &str) -> Result<Asked, Failure> {
        let now = Instant::now();
        let mut names = self.entries();
        if names.len() >= self.most && !names.contains_key(name) {
            names.retain(|_, entry| entry.looking.is_some() || entry.until.is_some_and(|until| now < until));
        }
        if names.len() >= self.most && !names.contains_key(name) {
            return Err(format!("{name}: too many names").into());
        }
        let fresh = Entry { addresses: Vec::new(), until: None, looking: None };
        let entry = names.entry(name.to_owned()).or_insert(fresh);
        if entry.until.is_some_and(|until| now < until) {
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
        if let Some(entry) = self.entries().get_mut(&name) {
            entry.looking = None;
            if let Ok(addresses) = found
                && !addresses.is_empty()
            {
                entry.addresses = addresses;
                entry.until = Some(Instant::now() + self.good_for);
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

    fn names(good_for: Duration) -> Names {
        Names::new(good_for, 8)
    }

    #[tokio::test]
    async fn a_name_is_looked_up_and_remembered() {
        let names = names(Duration::from_mins(1));
        let found = names.addresses("localhost").await.expect("every host knows it");
        assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
        assert!(matches!(names.ask("localhost"), Ok(Asked::Fresh(again)) if again == found));
    }

    #[tokio::test]
    async fn an_answer_that_is_old_is_looked_up_again_and_serves_meanwhile() {
        let names = names(Duration::ZERO);
        let found = names.addresses("localhost").await.expect("every host knows it");
        assert!(matches!(names.ask("localhost"), Ok(Asked::Looking(known, _)) if known == found));
    }

    #[tokio::test]
    async fn what_is_no_name_has_no_address_and_names_are_bounded() {
        let names = names(Duration::from_mins(1));
        assert!(names.addresses("no such name").await.is_err());
        for number in 0..20 {
            let _ = names.ask(&format!("name-{number}.invalid"));
        }
        assert!(names.entries().len() <= 8);
        assert!(names.ask("one-more.invalid").is_err(), "all of them are being looked up");
    }

    #[tokio::test]
    async fn names_that_nobody_asks_for_make_room() {
        let names = names(Duration::ZERO);
        for number in 0..8 {
            let old = Entry { addresses: Vec::new(), until: Some(Instant::now()), looking: None };
            names.entries().insert(format!("gone-{number}"), old);
        }
        assert!(names.addresses("localhost").await.is_ok());
        assert_eq!(names.entries().len(), 1);
    }
}
