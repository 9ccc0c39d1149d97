//! Requests: a planned failover, a fresh copy, a pause, any other annotation.
//!
//! In: words. Out: what was asked for, in one line. Must not: write a request that the operator would have to refuse for
//! its grammar, or an annotation that is the operator's own.

use super::{Error, NonsenseSnafu, NotThatSiteSnafu, site_of};
use crate::store::Store;
use bloodraven_api::keys;
use serde_json::{Value, json};
use snafu::ensure;
use std::path::Path;
use std::str::FromStr as _;

/// Annotations that are the operator's own.
const OWNED: [&str; 3] = [keys::AUTHORITY, keys::LAST_FAILOVER, keys::LAST_FAILOVER_TARGET];

/// Asks for a planned failover to that site.
pub fn promote(dir: &Path, site: &str, max_lag_wait: Option<&str>, id: Option<&str>) -> Result<String, Error> {
    let (store, object, role) = site_of(dir, site)?;
    let refuse = |because: &str| NotThatSiteSnafu { site, because }.fail();
    if role == "dr-only" {
        return refuse("it is dr-only and never promoted; name a primary-candidate");
    }
    if object.text("/status/activeSite") == site {
        return refuse("it is the primary already");
    }
    let mut text = site.to_owned();
    for (key, value) in [("maxLagWait", max_lag_wait), ("id", id)] {
        if let Some(value) = value {
            text.extend([":", key, "=", value]);
        }
    }
    if let Err(error) = bloodraven_api::annotations::PlannedFailoverRequest::from_str(&text) {
        return NonsenseSnafu { because: error.to_string() }.fail();
    }
    set(&store, keys::PLANNED_FAILOVER, &text)?;
    Ok(format!("asked for a planned failover to {site}; `bloodraven local status` shows how far it is"))
}

/// Asks for a fresh copy of that site from the primary. A site with transactions of its own needs the beginning of them,
/// so that nobody throws away what he has not looked at.
pub fn reclone(dir: &Path, site: &str, divergent: Option<&str>) -> Result<String, Error> {
    let (store, object, _) = site_of(dir, site)?;
    let refuse = |because: String| NotThatSiteSnafu { site, because }.fail();
    if object.text("/status/activeSite") == site {
        return refuse("it is the primary: fail over to another site first".to_owned());
    }
    let found = divergent_gtid(&object.value, site);
    let text = match (divergent, found.is_empty()) {
        (None, true) => site.to_owned(),
        (Some(prefix), false) if prefix.len() >= 8 && found.starts_with(prefix) => format!("{site}:{prefix}"),
        (None, false) => {
            return refuse(format!(
                "it has transactions that the primary lacks ({found}): look at them, then add --divergent with their first 8 characters or more to throw them away"
            ));
        }
        (Some(_), false) => {
            return refuse(format!("--divergent is not the beginning (8 characters or more) of {found}"));
        }
        (Some(_), true) => return refuse("it has nothing that the primary lacks; leave --divergent out".to_owned()),
    };
    set(&store, keys::RECLONE_SITE, &text)?;
    Ok(format!("asked for a fresh copy of {site}; `bloodraven local status` shows how far it is"))
}

/// Nothing automatic from now on, until resumed or until that time.
pub fn pause(dir: &Path, until: Option<&str>) -> Result<String, Error> {
    let store = Store::open(dir)?;
    if let Some(until) = until
        && until.parse::<jiff::Timestamp>().is_err()
    {
        return NonsenseSnafu { because: format!("`{until}` is not a time; write 2026-01-31T12:00:00Z") }.fail();
    }
    store.patch_spec(None, &json!({ "paused": true, "pausedUntil": until }))?;
    Ok(match until {
        Some(until) => format!("paused until {until}: no failover, no copy, no update is begun"),
        None => "paused: no failover, no copy, no update is begun until `bloodraven local pause DIR --off`".to_owned(),
    })
}

/// Everything automatic again.
pub fn resume(dir: &Path) -> Result<String, Error> {
    let store = Store::open(dir)?;
    store.patch_spec(None, &json!({ "paused": null, "pausedUntil": null }))?;
    Ok("no longer paused".to_owned())
}

/// Sets an annotation (`key=value`) or takes it away (`key-`). A key without a slash is one of ours.
pub fn annotate(dir: &Path, word: &str) -> Result<String, Error> {
    let store = Store::open(dir)?;
    let (key, value) = match word.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => match word.strip_suffix('-') {
            Some(key) => (key, None),
            None => {
                return NonsenseSnafu { because: format!("`{word}`: write key=value, or key- to take it away") }.fail();
            }
        },
    };
    let key = if key.contains('/') { key.to_owned() } else { format!("bloodraven.shipstream.io/{key}") };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    ensure!(
        key.chars().all(plain) && key.matches('/').count() == 1 && key.len() <= 317,
        NonsenseSnafu { because: format!("`{key}` is not the key of an annotation; write prefix/name") }
    );
    ensure!(
        !OWNED.contains(&key.as_str()),
        NonsenseSnafu {
            because: format!("{key} is the operator's own; ask with planned-failover or reclone-site instead")
        }
    );
    let done = if value.is_some() { format!("{key} is set") } else { format!("{key} is taken away") };
    store.annotate(None, &[(key, value)])?;
    Ok(done)
}

fn set(store: &Store, key: &str, text: &str) -> Result<(), Error> {
    store.annotate(None, &[(key.to_owned(), Some(text.to_owned()))])?;
    Ok(())
}

/// What the site has and the primary lacks, as the status reports it.
pub(crate) fn divergent_gtid(object: &Value, site: &str) -> String {
    let sites = object.pointer("/status/sites").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let found = sites.iter().find(|entry| entry["name"] == site).and_then(|entry| entry["divergentGtid"].as_str());
    found.unwrap_or_default().to_owned()
}
