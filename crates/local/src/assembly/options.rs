//! What a local world shall be like, and the group's object that follows from it.
//!
//! In: options. Out: an object that passes admission, or every field that is wrong. Must not: have defaults of its own
//! where the API has some.

use std::path::PathBuf;
use std::time::Duration;

use bloodraven_api::keys;
use serde_json::{Value, json};

use crate::network::Network;
use crate::store::object::merge;
use crate::supervisor::{Backoff, Programs};

/// The name of a local group.
pub const GROUP: &str = "local";
/// Its namespace.
pub const NAMESPACE: &str = "local";

/// What a local world shall be like.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where everything is kept. A directory that has a group is resumed.
    pub dir: PathBuf,
    /// The sites of a new group, in order; for an old one: the same, or none.
    pub sites: Vec<(String, Role)>,
    /// How many operators; one leads.
    pub operators: u8,
    /// How patient it is.
    pub profile: Profile,
    /// Merged into the spec (RFC 7396), after the profile.
    pub spec: Value,
    /// The programs that are run.
    pub programs: Programs,
    /// An initialised data folder that new sites begin with a copy of; none: each initialises its own, which takes seconds.
    pub template: Option<PathBuf>,
    /// How soon an ended program is started again.
    pub backoff: Backoff,
    /// How much sidecars and operators log.
    pub log_level: String,
}

impl Options {
    /// A group of three sites, the third for disasters only, with one operator.
    pub fn new(dir: impl Into<PathBuf>, programs: Programs) -> Self {
        let sites = [("iad", Role::PrimaryCandidate), ("pdx", Role::PrimaryCandidate), ("fra", Role::DrOnly)];
        Self {
            dir: dir.into(),
            sites: sites.map(|(name, role)| (name.to_owned(), role)).into(),
            operators: 1,
            profile: Profile::Default,
            spec: json!({}),
            programs,
            template: None,
            backoff: Backoff::default(),
            log_level: "info".to_owned(),
        }
    }
}

/// What a site may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The primary.
    PrimaryCandidate,
    /// Never the primary.
    DrOnly,
}

impl Role {
    /// As a spec spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrimaryCandidate => "primary-candidate",
            Self::DrOnly => "dr-only",
        }
    }

    /// Reads what a spec or a command line says; nothing means a candidate.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "primary-candidate" => Some(Self::PrimaryCandidate),
            "dr-only" => Some(Self::DrOnly),
            _ => None,
        }
    }
}

/// How patient a group is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// As in production.
    #[default]
    Default,
    /// As impatient as admission allows, for people who watch.
    Fast,
}

impl Profile {
    /// What it changes in the spec.
    pub fn spec(self) -> Value {
        match self {
            Self::Default => json!({}),
            Self::Fast => json!({
                "pollInterval": "250ms",
                "failureThreshold": 3,
                "failoverCooldown": "10s",
                "sidecar": { "leaseTimeout": "5s", "peerCheckInterval": "1s" },
            }),
        }
    }

    /// Of the operators' election: how long a lease lasts, how long its holder trusts it, how often it is looked at. A
    /// restarted operator takes its own lease back at once; this is for when another has to.
    pub const fn election(self) -> [Duration; 3] {
        match self {
            Self::Default => [Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2)],
            Self::Fast => [Duration::from_secs(5), Duration::from_secs(3), Duration::from_millis(500)],
        }
    }
}

/// The object of a new group.
pub(super) fn group(options: &Options, network: &Network, uid: &str, made: &str) -> Value {
    let site = |(name, role): &(String, Role)| {
        json!({
            "name": name,
            "role": role.as_str(),
            "zone": name,
            "taintNodeSelector": { "shipstream.io/site": name },
            "lbIP": network.ip(name).map(|ip| ip.to_string()).unwrap_or_default(),
            "storage": { "storageClassName": "local", "size": "1Gi" },
        })
    };
    let mut spec = json!({
        "secretName": "secrets",
        "dns": { "hostname": "primary.local.internal" },
        "sites": options.sites.iter().map(site).collect::<Vec<_>>(),
    });
    merge(&mut spec, &options.profile.spec());
    merge(&mut spec, &options.spec);
    let object = json!({
        "apiVersion": format!("{}/{}", keys::API_GROUP, keys::API_VERSION),
        "kind": "MysqlFailoverGroup",
        "metadata": { "name": GROUP, "namespace": NAMESPACE, "uid": uid, "creationTimestamp": made },
        "spec": spec,
    });
    bloodraven_api::admission::with_defaults::<bloodraven_api::MysqlFailoverGroup>(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_api::{MysqlFailoverGroup, admission};

    fn options(profile: Profile, spec: Value) -> Options {
        let programs = Programs {
            bloodraven: PathBuf::new(),
            keeper: PathBuf::new(),
            mysql: crate::supervisor::MysqlPrograms::default(),
        };
        Options { profile, spec, ..Options::new("/tmp/x", programs) }
    }

    fn object(options: &Options) -> Value {
        let names: Vec<String> = options.sites.iter().map(|(name, _)| name.clone()).collect();
        group(options, &Network::on([9, 9], &names).unwrap(), "u", "2026-01-01T00:00:00Z")
    }

    #[test]
    fn both_profiles_pass_admission_and_a_patch_comes_last() {
        for profile in [Profile::Default, Profile::Fast] {
            let options = options(profile, json!({ "failoverCooldown": "7s" }));
            let read = admission::read_strictly::<MysqlFailoverGroup>(object(&options), None);
            let read = read.unwrap_or_else(|found| panic!("{}", crate::store::object::told(&found)));
            assert_eq!(read.spec.failover_cooldown, bloodraven_api::GoDuration::from_secs(7));
        }
    }

    #[test]
    fn roles_are_spelled_as_in_a_spec() {
        for role in [Role::PrimaryCandidate, Role::DrOnly] {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!((Role::parse(""), Role::parse("boss")), (Some(Role::PrimaryCandidate), None));
    }

    #[test]
    fn elections_are_sound() {
        for profile in [Profile::Default, Profile::Fast] {
            bloodraven_operator::settings::times(profile.election()).unwrap();
        }
    }
}
