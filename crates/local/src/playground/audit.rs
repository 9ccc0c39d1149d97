//! The audit: every open write is looked up on every site, and the book judges.
//!
//! In: the scene. Out: a verdict, kept in the picture. Must not: call a write lost because the look began before its end.

use super::scene::{Model, Scene};
use crate::ledger::lookup::ask_all;
use crate::ledger::{Evidence, SiteNumber, Verdict};
use crate::load::now;
use std::collections::BTreeMap;

pub(super) async fn audit(scene: &Scene) -> Verdict {
    let began = now();
    let ranges = scene.load.book(|book| book.open_ranges());
    let plan = &scene.plan;
    let readings = ask_all(&plan.sites, &plan.user, &plan.password, &ranges).await;
    // After the look: whoever was primary before it and is not any more shows as nobody.
    super::probe::read_servers(scene).await;
    super::watch::look(scene);
    let evidence = Evidence { began, readings, asked: Some(ranges), ..told(scene, &scene.model()) };
    let verdict = scene.load.book(|book| book.judge(&evidence, now()));
    scene.model().verdict = Some(verdict.clone());
    verdict
}

/// What the store and the servers tell beside the look.
fn told(scene: &Scene, model: &Model) -> Evidence {
    let number = |name: &str| {
        let at = scene.names.iter().position(|known| known == name)?;
        u8::try_from(at).ok().map(SiteNumber)
    };
    let authority = &model.told.authority;
    let primary = (authority.phase == "Stable").then(|| number(&authority.site)).flatten();
    let reports = model.told.sites.iter().filter_map(|site| Some((number(&site.name)?, site.divergent)));
    let received = model.received.iter().filter_map(|(name, set)| Some((number(name)?, set.clone())));
    Evidence {
        primary,
        reports: reports.collect(),
        received: received.collect::<BTreeMap<_, _>>(),
        divergent: model.divergent.clone(),
        executed: model.executed.get(&authority.site).cloned(),
        ..Evidence::default()
    }
}
