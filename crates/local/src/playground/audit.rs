//! The audit: every open write is looked up on every site, and the book judges.
//!
//! In: the scene. Out: a verdict, kept in the picture. Must not: call a write lost because the look began before its end.

use super::scene::{Model, Scene};
use crate::ledger::lookup::ask_all;
use crate::ledger::{Evidence, SiteNumber, Verdict};
use crate::load::now;
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

pub(super) async fn audit(scene: &Scene) -> Verdict {
    let began = now();
    let ranges = scene.load.book(|book| book.open_ranges());
    let plan = &scene.plan;
    let readings = ask_all(&plan.sites, &plan.user, &plan.password, &ranges).await;
    // What was received is read first and what the primary executed last: a write that ends between the two would otherwise
    // have reached a replica and not its primary.
    super::probe::read_servers(scene).await;
    let received = scene.model().received.clone();
    let executed = super::probe::read_servers(scene).await;
    // After the look: whoever was primary before it and is not any more shows as nobody.
    super::watch::look(scene);
    let told = told(scene, &scene.model(), &received, &executed);
    let evidence = Evidence { began, readings, asked: Some(ranges), ..told };
    let verdict = scene.load.book(|book| book.judge(&evidence, now()));
    scene.model().verdict = Some(verdict.clone());
    verdict
}

/// What the store and the servers tell beside the look.
fn told(
    scene: &Scene,
    model: &Model,
    received: &BTreeMap<String, GtidSet>,
    executed: &BTreeMap<String, GtidSet>,
) -> Evidence {
    let number = |name: &str| {
        let at = scene.names.iter().position(|known| known == name)?;
        u8::try_from(at).ok().map(SiteNumber)
    };
    let authority = &model.told.authority;
    let primary = (authority.phase == "Stable").then(|| number(&authority.site)).flatten();
    let reports = model.told.sites.iter().filter_map(|site| Some((number(&site.name)?, site.divergent)));
    let received = received.iter().filter_map(|(name, set)| Some((number(name)?, set.clone())));
    Evidence {
        primary,
        reports: reports.collect(),
        received: received.collect::<BTreeMap<_, _>>(),
        divergent: model.divergent.clone(),
        executed: executed.get(&authority.site).cloned(),
        ..Evidence::default()
    }
}
