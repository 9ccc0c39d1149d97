//! What the outside follows: labels, the name, taints, as one file.
//!
//! In: how the outside should look. Out: `outward.json`, replaced step by step in the order that the brain asks for. Must
//! not: show two primaries, or let a leader of the past undo what a newer one has shown.

use std::collections::BTreeMap;

use bloodraven_brain::group::Outward;
use bloodraven_brain::name::{Instance, Member, Site};
use serde::{Deserialize, Serialize};

use super::{CorruptSnafu, Error, RefusedSnafu, Store};
use crate::files;

/// The file.
pub const FILE: &str = "outward.json";

/// How the outside looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Shown {
    /// The record's epoch when this was shown.
    pub epoch: u64,
    /// The one life that is labelled primary.
    pub primary: Option<Labelled>,
    /// The labels of the other sites.
    pub sites: BTreeMap<String, SiteLabel>,
    /// The site that the name points to.
    pub dns: Option<String>,
    /// Sites with a taint.
    pub taints: BTreeMap<String, bool>,
}

/// A site's life that carries a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labelled {
    /// The site.
    pub site: String,
    /// Its life, `<pod uid>/<store id>`.
    pub instance: String,
}

/// The labels of a site that is not the primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteLabel {
    /// Its authority was revoked.
    pub fenced: bool,
    /// Reads may go there.
    pub healthy: bool,
}

impl Labelled {
    /// The pod of that life.
    pub fn pod(&self) -> &str {
        self.instance.split_once('/').map_or(self.instance.as_str(), |(pod, _)| pod)
    }

    fn of(member: &Member) -> Self {
        let Member { site, instance } = member;
        Self { site: site.to_string(), instance: instance.to_string() }
    }

    /// In the brain's words.
    pub fn member(&self) -> Option<Member> {
        Some(Member { site: Site::new(&self.site), instance: Instance::parse(&self.instance)? })
    }
}

impl Store {
    /// How the outside looks now; nothing is shown before the first leader.
    pub fn shown(&self) -> Result<Shown, Error> {
        let Some(value) = self.json(FILE)? else { return Ok(Shown::default()) };
        let path = self.path(FILE);
        serde_json::from_value(value).map_err(|error| CorruptSnafu { path, why: error.to_string() }.build())
    }

    /// Makes the outside look so: the label off a primary that is none any more and the other labels, then the primary's,
    /// then name and taints; each step is seen whole.
    pub fn show(&self, wanted: &Outward) -> Result<Shown, Error> {
        let _lock = self.lock()?;
        // Nothing is decided by it, and all of it is in what is wanted: what cannot be read is made anew.
        let before = match self.shown() {
            Err(Error::Corrupt { .. }) => Shown::default(),
            read => read?,
        };
        if before.epoch > wanted.epoch {
            let because = format!("epoch {} is shown already; {} is of the past", before.epoch, wanted.epoch);
            return RefusedSnafu { because }.fail();
        }
        let mut last = before.clone();
        for step in steps(wanted, &before) {
            if step != last {
                // Made anew by every leader, so a power cut may take it.
                files::show(&self.path(FILE), &serde_json::to_vec_pretty(&step).unwrap_or_default())?;
                last = step;
            }
        }
        Ok(last)
    }
}

/// The ways from how it looks to how it should: labels, the primary's last and taken off first; then name and taints.
fn steps(wanted: &Outward, before: &Shown) -> [Shown; 3] {
    let primary = wanted.primary.as_ref().map(Labelled::of);
    let labelled = Shown {
        epoch: wanted.epoch,
        primary: before.primary.clone().filter(|shown| Some(shown) == primary.as_ref()),
        sites: labels(wanted, before),
        ..before.clone()
    };
    let named = Shown { primary, ..labelled.clone() };
    let dns = wanted.dns.as_ref().map(ToString::to_string).or_else(|| named.dns.clone());
    let tainted = |taints: &BTreeMap<Site, bool>| taints.iter().map(|(site, on)| (site.to_string(), *on)).collect();
    let taints = wanted.taints.as_ref().map_or_else(|| named.taints.clone(), tainted);
    let all = Shown { dns, taints, ..named.clone() };
    [labelled, named, all]
}

fn labels(wanted: &Outward, before: &Shown) -> BTreeMap<String, SiteLabel> {
    let label = |(site, label): (&Site, &bloodraven_brain::group::command::Label)| {
        let was = before.sites.get(site.as_str()).copied().unwrap_or_default();
        (site.to_string(), SiteLabel { fenced: label.fenced, healthy: label.healthy.unwrap_or(was.healthy) })
    };
    wanted.labels.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_on_the_way_shows_two_primaries_and_the_old_one_goes_first() {
        let member = |site: &str| Member { site: Site::new(site), instance: Instance::new(site, "s") };
        let shows = |shown: &Shown| shown.primary.as_ref().map(|it| it.site.clone());
        let wanted = |site: Option<&str>| Outward { epoch: 2, primary: site.map(member), ..Outward::default() };
        let before = Shown { primary: Some(Labelled::of(&member("iad"))), ..Shown::default() };
        let check = |site: Option<&str>, expect: [Option<&str>; 3]| {
            let found = steps(&wanted(site), &before).each_ref().map(shows);
            assert_eq!(found, expect.map(|site| site.map(ToOwned::to_owned)), "{site:?}");
        };
        check(Some("pdx"), [None, Some("pdx"), Some("pdx")]);
        check(Some("iad"), [Some("iad"); 3]);
        check(None, [None; 3]);
        let again = Outward {
            primary: Some(Member { instance: Instance::new("other", "s"), ..member("iad") }),
            ..wanted(None)
        };
        assert_eq!(shows(&steps(&again, &before)[0]), None, "another life of the same site is another primary");
    }
}
