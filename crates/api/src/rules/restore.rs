//! Rules on restores: one source, one point, a site that may be promoted.
//!
//! In: `spec.initFromBackup` and `spec.restoreInPlace`. Out: the rules. Must not: ask whether the backup exists; that is
//! found out at run time.

use serde::Deserialize;

use super::Rule;
use super::backup::{confined, s3};
use super::sites::{CANDIDATE, SiteView, has_candidate};
use super::text::{GTID, GTID_SET, NAMESPACED_GROUP};
use crate::group::{RestorePointInTime, RestoreSource};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    sites: Vec<SiteView>,
    init_from_backup: Option<Target>,
    restore_in_place: Option<Target>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    target_site: Option<String>,
}

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = vec![
        target_site("initFromBackup.targetSite", "initFromBackup", |spec| spec.init_from_backup.as_ref()),
        target_site("restoreInPlace.targetSite", "restoreInPlace", |spec| spec.restore_in_place.as_ref()),
    ];
    for at in ["spec.initFromBackup", "spec.restoreInPlace"] {
        rules.extend(source(&format!("{at}.source")));
        rules.extend(point_in_time(&format!("{at}.pointInTime")));
    }
    rules
}

fn target_site(field: &'static str, block: &'static str, target: fn(&Spec) -> Option<&Target>) -> Rule {
    let id = if block == "initFromBackup" { "init-target" } else { "in-place-target" };
    Rule::state::<Spec>(
        id,
        "spec",
        format!(
            "!has(self.{block}) || !has(self.{field}) || self.sites.exists(s, s.name == self.{field} && {CANDIDATE})"
        ),
        format!("spec.{block} targetSite must be the name of a primary-candidate; write one of spec.sites[].name whose role is not dr-only"),
        move |spec| {
            let site = target(spec).and_then(|t| t.target_site.as_deref());
            site.is_none_or(|site| has_candidate(&spec.sites, site))
        },
    )
    .pointing_at(block)
}

fn source(at: &str) -> Vec<Rule> {
    let mut rules = vec![
        Rule::state::<RestoreSource>(
            "source-form",
            at,
            "[has(self.mysqlBackupRef), has(self.s3), has(self.pvc)].exists_one(given, given)",
            format!("{at} must hold exactly one of mysqlBackupRef, s3 and pvc; set one and remove the others"),
            |source| {
                let given = [source.mysql_backup_ref.is_some(), source.s3.is_some(), source.pvc.is_some()];
                given.into_iter().filter(|given| *given).count() == 1
            },
        ),
        Rule::state::<RestoreSource>(
            "expect-group",
            at,
            "has(self.expectGroup) || !(has(self.s3) || has(self.pvc))",
            format!(
                "{at} must hold expectGroup with s3 and pvc; write the group whose backup it is, <namespace>/<group>"
            ),
            |source| source.expect_group.is_some() || (source.s3.is_none() && source.pvc.is_none()),
        ),
        Rule::matches(
            "expect-group-form",
            format!("{at}.expectGroup"),
            &NAMESPACED_GROUP,
            format!("{at}.expectGroup must be <namespace>/<group>; write e.g. shop/orders"),
        ),
        confined(format!("{at}.pvc.subPath")),
    ];
    rules.extend(s3(&format!("{at}.s3")));
    rules
}

fn point_in_time(at: &str) -> Vec<Rule> {
    vec![
        Rule::state::<RestorePointInTime>(
            "point-form",
            at,
            "[has(self.stopDatetime), has(self.beforeGtid), has(self.latest) && self.latest].exists_one(given, given)",
            format!(
                "{at} must hold exactly one of stopDatetime, beforeGtid and latest: true; set one and remove the others"
            ),
            |point| {
                let given = [point.stop_datetime.is_some(), point.before_gtid.is_some(), point.latest == Some(true)];
                given.into_iter().filter(|given| *given).count() == 1
            },
        ),
        Rule::matches(
            "gtid",
            format!("{at}.beforeGtid"),
            &GTID,
            format!("{at}.beforeGtid must be one GTID; write <uuid>:<number> or <uuid>:<tag>:<number>"),
        ),
        Rule::matches(
            "gtid-set",
            format!("{at}.excludeGtids"),
            &GTID_SET,
            format!("{at}.excludeGtids must be a GTID set; write e.g. <uuid>:1-5:8"),
        ),
    ]
}
