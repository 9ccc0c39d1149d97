//! Every field of a group's spec has a test of its effect, or of its refusal: a list that cannot rot.
//!
//! In: the generated schema, a list of fields with the tests that show them, the sources of those tests. Out: a failure for a
//! field without a test, a line for a field that is gone, and a test that is not there. Must not: take a name for a test; the
//! function has to stand in its file, as a test.

#![expect(clippy::expect_used, clippy::panic, reason = "the checks fail the test that calls them")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_api::admission::Admitted as _;
use serde_json::Value;

/// Nobody looks after them yet; each is refused in words.
const REFUSED: [&str; 4] = ["dragonfly", "backup", "initFromBackup", "restoreInPlace"];

/// Kinds of Kubernetes, put into pods as they are.
const AS_THEY_ARE: [&str; 6] = [
    "resources",
    "sidecarResources",
    "extraContainers",
    "extraInitContainers",
    "podSecurityContext",
    "containerSecurityContext",
];

const FIELDS: &str = "e2e/tests/cluster_world/fields.rs";
const WORLD: &str = "e2e/tests/cluster_world/world.rs";
const DRAWN: (&str, &str) = ("e2e/tests/cluster_world/drawn.rs", "fields_that_objects_are_made_of_stand_in_them");
const SPECS: &str = "crates/operator/src/tests/specs.rs";
const MOVES: &str = "crates/brain/src/group/tests/moves.rs";
const PLANNED: &str = "crates/brain/src/group/planned/tests.rs";
const SITE: &str = "crates/brain/src/site.rs";

/// A field, and the tests that show it: file and function.
type Row = (&'static str, &'static [(&'static str, &'static str)]);

/// What becomes objects.
const OF_OBJECTS: [Row; 34] = [
    ("image", &[DRAWN, (WORLD, "a_group_is_furnished_rolled_when_told_and_let_go")]),
    ("sidecarImage", &[DRAWN, ("crates/blueprint/tests/blueprint/objects/errors.rs", "a_set_image_needs_no_other")]),
    ("imagePullSecrets[].name", &[DRAWN]),
    ("sites[].name", &[("e2e/tests/cluster_world/shuffled.rs", SHUFFLED)]),
    ("sites[].zone", &[DRAWN]),
    ("sites[].taintNodeSelector", &[(WORLD, "the_outside_follows_and_stays_untouched_when_it_is_as_wanted")]),
    ("sites[].lbIP", &[DRAWN]),
    ("sites[].storage.storageClassName", &[DRAWN]),
    ("sites[].storage.size", &[DRAWN, (FIELDS, "a_volume_grows_and_keeps_what_else_it_is")]),
    ("sites[].storage.accessMode", &[DRAWN]),
    ("sites[].resources", &[DRAWN]),
    ("secretName", &[(FIELDS, "a_secret_that_is_missing_is_named_and_taken_when_it_comes")]),
    ("credentials.operatorSecret", &[DRAWN, (WORLD, ANEW)]),
    ("credentials.appSecret", &[DRAWN, (WORLD, ANEW)]),
    ("credentials.readOnlySecret", &[DRAWN, (WORLD, ANEW)]),
    ("credentials.monitorSecret", &[DRAWN, (WORLD, ANEW)]),
    ("credentials.backupSecret", &[DRAWN, (WORLD, ANEW)]),
    ("tls.secretName", &[DRAWN, (FIELDS, "every_secret_that_a_spec_names_is_read_anew")]),
    ("tls.issuerRef.name", &[DRAWN]),
    ("tls.issuerRef.kind", &[DRAWN]),
    ("dns.hostname", &[DRAWN]),
    ("dns.ttl", &[DRAWN]),
    ("mysqlConf", &[DRAWN, (FIELDS, "a_paused_group_is_left_as_it_is_until_the_pause_ends")]),
    ("volumeRetention", &[("e2e/tests/cluster_world/ended.rs", "volumes_go_or_stay_as_the_spec_said_at_the_end")]),
    ("sidecarResources", &[DRAWN]),
    ("terminationGracePeriodSeconds", &[DRAWN]),
    ("podLabels", &[DRAWN]),
    ("podAnnotations", &[DRAWN]),
    ("serviceTemplate.type", &[DRAWN]),
    ("serviceTemplate.annotations", &[DRAWN]),
    ("extraContainers", &[DRAWN]),
    ("extraInitContainers", &[DRAWN]),
    ("podSecurityContext", &[DRAWN]),
    ("containerSecurityContext", &[DRAWN]),
];

const SHUFFLED: &str = "what_belongs_to_a_site_stays_with_its_name_wherever_that_stands_in_the_list";
const ANEW: &str = "every_secret_that_the_spec_names_is_read_anew";

/// What the leader, its hands and the sidecars go by.
const OF_LEADERS: [Row; 25] = [
    ("sites[].role", &[(MOVES, "dr_only_is_never_promoted")]),
    ("pollInterval", &[(SPECS, "a_poll_has_no_more_time_than_its_interval")]),
    ("failureThreshold", &[(SITE, "the_state_table_of_one_site"), (SITE, "thresholds_of_one_decide_at_once")]),
    ("recoveryThreshold", &[(SITE, "the_state_table_of_one_site"), (SITE, "thresholds_of_one_decide_at_once")]),
    ("failoverCooldown", &[(MOVES, "a_second_death_inside_the_cooldown_waits_for_its_end")]),
    ("promotion.proof", &[("crates/brain/src/authority/tests/proofs.rs", "f_01_only_best_effort_assumes")]),
    ("sidecar.leaseTimeout", &[(SPECS, "lease_settings_are_a_new_epoch_of_the_same_tenure")]),
    ("sidecar.minPeers", &[(SPECS, "lease_settings_are_a_new_epoch_of_the_same_tenure")]),
    ("sidecar.peerCheckInterval", &[DRAWN, ("crates/sidecar/src/config.rs", "intervals_are_go_durations")]),
    ("sidecar.bloodravenAddress", &[DRAWN]),
    (
        "splitBrainPolicy.preferSite",
        &[
            ("crates/blueprint/tests/blueprint/wishes.rs", "the_preferred_site_comes_first_and_once"),
            (MOVES, "the_seed_is_the_first_promotable_of_the_priority_list"),
        ],
    ),
    ("splitBrainPolicy.sitePriorities", &[(MOVES, "the_seed_is_the_first_promotable_of_the_priority_list")]),
    (
        "replication.maxLagSeconds",
        &[(
            "e2e/tests/cluster_world/outside.rs",
            "the_outside_follows_what_is_seen_and_is_put_right_when_it_is_undone",
        )],
    ),
    (
        "replication.durability",
        &[
            DRAWN,
            ("crates/brain/src/group/semi_sync/tests.rs", "nobody_is_opened_before_its_commits_wait_for_receipts"),
        ],
    ),
    ("replication.semiSyncTimeout", &[DRAWN]),
    ("plannedFailover.maxLagWait", &[(PLANNED, "a_target_that_does_not_catch_up_gives_authority_back_to_the_source")]),
    ("plannedFailover.drainTimeout", &[(PLANNED, "a_calendar_that_jumps_changes_no_wait")]),
    ("plannedFailover.onCooldown", &[(PLANNED, "inside_the_cooldown_it_is_rejected_or_deferred")]),
    ("updateStrategy", &[("crates/brain/src/group/update/tests.rs", "recreate_rolls_all_at_once")]),
    (
        "cloneTimeout",
        &[(
            "crates/brain/src/group/cloning/tests/attempts.rs",
            "a_copy_without_an_answer_failed_when_its_bound_is_over",
        )],
    ),
    ("writeProbe.interval", &[(SPECS, "a_write_probe_that_is_off_commits_nothing")]),
    ("writeProbe.timeout", &[(SPECS, "a_commit_gets_the_time_that_the_spec_gives_it")]),
    ("paused", &[(FIELDS, "a_paused_group_is_left_as_it_is_until_the_pause_ends")]),
    ("pausedReason", &[(FIELDS, "a_paused_group_is_left_as_it_is_until_the_pause_ends")]),
    ("pausedUntil", &[(FIELDS, "a_site_that_was_scaled_down_stays_down_until_the_pause_expires")]),
];

/// A Secret that a field names, and the tests in which its value changes under a running operator.
const ROTATED: [Row; 7] = [
    ("secretName", &[(WORLD, "secrets_are_read_and_what_is_missing_is_named"), ("e2e/tests/rotation.rs", RUNNING)]),
    ("credentials.operatorSecret", &[(WORLD, ANEW), (TROUBLE, IN_A_FAILOVER)]),
    ("credentials.appSecret", &[(WORLD, ANEW)]),
    ("credentials.readOnlySecret", &[(WORLD, ANEW)]),
    ("credentials.monitorSecret", &[(WORLD, ANEW)]),
    ("credentials.backupSecret", &[(WORLD, ANEW)]),
    ("tls.secretName", &[(FIELDS, "every_secret_that_a_spec_names_is_read_anew")]),
];

const RUNNING: &str = "every_password_changes_while_the_group_runs";
const TROUBLE: &str = "crates/operator/src/tests/trouble.rs";
const IN_A_FAILOVER: &str = "a_password_that_changes_in_a_failover_is_set_on_the_next_primary";

/// Kubelets read them at every pull; nothing of ours ever does.
const OF_KUBELETS: &str = "imagePullSecrets[].name";

/// Every field below, by its path.
fn fields(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let inside = schema["items"].get("properties").map(|inside| (inside, "[]"));
    let inside = schema.get("properties").map(|inside| (inside, "")).or(inside);
    let name = path.rsplit(['.', ']']).next().unwrap_or_default();
    match inside.filter(|_| !AS_THEY_ARE.contains(&name) && !REFUSED.contains(&path)) {
        None => drop(found.insert(path.to_owned())),
        Some((inside, list)) => {
            for (name, schema) in inside.as_object().expect("fields") {
                let dot = if path.is_empty() { "" } else { "." };
                fields(schema, &format!("{path}{list}{dot}{name}"), found);
            }
        }
    }
}

fn all_fields() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    fields(&MysqlFailoverGroup::definition().schema()["properties"]["spec"], "", &mut found);
    for refused in REFUSED {
        assert!(found.remove(refused), "there is no field {refused}");
    }
    found
}

/// Whether that file has a test of that name.
fn is_test(text: &str, name: &str) -> bool {
    let opening = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = |line: &&str| line.starts_with(&opening) || line.starts_with(&format!("async {opening}"));
    lines.iter().position(declared).is_some_and(|at| {
        // Attributes and comments stand right above it.
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

/// Nothing is listed twice, nothing without a test, and every test is there.
fn check(rows: impl IntoIterator<Item = Row>, wanted: &BTreeSet<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut listed = BTreeSet::new();
    for (field, tests) in rows {
        assert!(listed.insert(field.to_owned()), "{field} is listed twice");
        assert!(!tests.is_empty(), "{field} has no test");
        for (file, name) in tests {
            let text = texts.entry(file).or_insert_with(|| {
                std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
            });
            assert!(is_test(text, name), "{field}: there is no test {name} in {file}");
        }
    }
    assert_eq!(wanted.difference(&listed).collect::<Vec<_>>(), Vec::<&String>::new(), "no test shows them");
    assert_eq!(listed.difference(wanted).collect::<Vec<_>>(), Vec::<&String>::new(), "there is no such field");
}

/// K-11: each field of the schema has a test of its effect, or is refused.
#[test]
fn every_field_has_a_test_of_its_effect() {
    check(OF_OBJECTS.into_iter().chain(OF_LEADERS), &all_fields());
    let refusal = [(FIELDS, "what_nobody_looks_after_yet_is_refused_in_words_and_nothing_is_made")];
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(refusal[0].0)).unwrap();
    assert!(is_test(&text, refusal[0].1));
    for field in REFUSED {
        assert!(text.contains(&format!("\"{field}\")")), "{field} is not among what is refused");
    }
}

/// K-22: each reference to a Secret in the schema has a test in which it changes.
#[test]
fn every_secret_that_a_field_names_has_a_test_of_its_rotation() {
    let is_secret = |path: &&String| path.to_lowercase().contains("secret") && path.as_str() != OF_KUBELETS;
    let secrets: BTreeSet<String> = all_fields().iter().filter(is_secret).cloned().collect();
    check(ROTATED, &secrets);
}

/// The list can fail.
#[test]
fn a_name_alone_is_no_test() {
    let text = "fn helper() {}\n#[tokio::test]\n/// K-01\nasync fn shown() {}\n// fn spoken_of() {}\n";
    assert!(is_test(text, "shown"));
    for name in ["helper", "spoken_of", "absent", "show"] {
        assert!(!is_test(text, name), "{name}");
    }
}
