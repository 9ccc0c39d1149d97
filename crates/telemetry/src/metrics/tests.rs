//! Names, labels and series, as Prometheus sees them.

use super::*;
use crate::words::{
    AttemptResult, CacheResult, CloneBytes, FailoverStep, FenceActor, FenceResult, FenceRule, HttpServer, KillCause,
    LabelValue as _, Method, OpeningResult, PlannedResult, ProofKind, ReplicationThread, StatusClass, TaintAction,
    Values,
};

/// Touches every metric of an operator, so that each has a series.
fn touch(metrics: &OperatorMetrics) {
    let group = metrics.group("shop", "orders");
    let _ = group.failovers("pdx").inc();
    let _ = group.failover_attempts("pdx", AttemptResult::Success).inc();
    group.failover_duration("pdx", FailoverStep::Detect).observe(0.3);
    let _ = group.planned_failovers("pdx", PlannedResult::Success).inc();
    group.planned_failover_duration("pdx").observe(1.5);
    group.planned_failover_lag_wait("pdx").observe(0.01);
    let _ = group.split_brain_auto_resolve("pdx").inc();
    let _ = group.dns_flips("pdx").inc();
    let _ = group.dns_write_failures().inc();
    let _ = group.taint_operations("iad", TaintAction::Taint).inc();
    let _ = group.authority_epoch().set(7);
    group.show_phase(AuthorityPhase::Stable);
    let _ = group.promotion_proofs(ProofKind::LeaseExpired).inc();
    let _ = group.promotion_held().set(0);
    let _ = group.unavailable().inc_by(1.25);
    group.show_degraded(["SplitBrain", "NoPrimary"], &["NoPrimary"]);
    group.show_site_state("iad", SiteRole::PrimaryCandidate, SiteState::Writable);
    let _ = group.state_transitions("iad", SiteState::Unknown, SiteState::Writable).inc();
    group.poll_latency("iad").observe(0.002);
    let _ = group.poll_failures("iad").inc();
    let _ = group.replication_lag("pdx", SiteRole::PrimaryCandidate).set(-1.0);
    let _ = group.replication_running("pdx", ReplicationThread::Io).set(1);
    let _ = group.semi_sync_active("iad").set(1);
    let _ = group.divergent_transactions("iad").set(2);
    let _ = group.unapplied_transactions("iad").set(0);
    let _ = group.fence_attempts("iad", FenceActor::Operator, FenceResult::Unknown).inc();
    let _ = group.reclone_operations("iad").inc();
    let _ = group.clone_bytes("iad", CloneBytes::Done).set(9);
    let _ = group.dragonfly_site_up("iad").set(1);
    let _ = group.dragonfly_promotions("pdx", CacheResult::Skipped).inc();
    let process = metrics.process();
    let _ = process.leader().set(1);
    let _ = process.loop_panics(Code("group")).inc();
    let _ = process.api_write_failures(Code("status")).inc();
    let _ = process.websocket_connected_clients(HttpServer::Aux).set(3);
    let _ = process.http_requests(HttpServer::Aux, Code("/status"), Method::Get, StatusClass::Success).inc();
    let (handler, class) = (Code("/status"), StatusClass::Success);
    process.http_request_duration(HttpServer::Aux, handler, Method::Get, class).observe(0.2);
}

fn sidecar() -> SidecarMetrics {
    let metrics = SidecarMetrics::new("0.1.0", "shop", "orders", "iad");
    let site = metrics.site();
    let _ = site.fenced().set(1);
    let _ = site.fences(FenceRule::Lease).inc();
    let _ = site.openings(OpeningResult::Reopened).inc();
    let _ = site.keeper_kills(KillCause::Deadman).inc();
    let _ = site.lease_remaining().set(12.5);
    let _ = site.contact_age("pdx").set(0.5);
    site.tick().observe(0.02);
    let _ = site.fence_attempts(FenceActor::Sidecar, FenceResult::Success).inc();
    let _ = site.archiver_upload_failures().set(0);
    let _ = site.archiver_backlog_files().set(4);
    let _ = site.archiver_last_upload_timestamp().set(1.0);
    metrics
}

/// The samples of a text, without values.
fn samples(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(sample, _)| sample.to_owned()).collect()
}

#[test]
fn every_declared_metric_is_rendered_under_its_name_with_its_labels_and_type() {
    let operator = OperatorMetrics::new("0.1.0");
    touch(&operator);
    let (operator, sidecar) = (operator.text(), sidecar().text());
    for spec in catalogue() {
        let text = if spec.scope == Scope::Site { &sidecar } else { &operator };
        let family = spec.name.strip_suffix("_total").filter(|_| spec.kind == Kind::Counter).unwrap_or(spec.name);
        let typed = format!("# TYPE {family} {}\n", spec.kind.as_str());
        assert!(text.contains(&typed), "{typed} in\n{text}");
        assert!(text.contains(&format!("# HELP {family} {}.\n", spec.help)), "{}", spec.name);
        let sample = if spec.kind == Kind::Histogram { format!("{}_count", spec.name) } else { spec.name.to_owned() };
        let mut labels: Vec<&str> = spec.scope.labels().to_vec();
        labels.extend(spec.labels.iter().map(|label| label.name));
        let found = samples(text).into_iter().find(|line| line.split('{').next() == Some(&sample));
        let found = found.unwrap_or_else(|| panic!("{sample} in\n{text}"));
        let shown: Vec<&str> = found
            .split_once('{')
            .map(|(_, labels)| {
                labels.trim_end_matches('}').split("\",").filter_map(|one| one.split('=').next()).collect()
            })
            .unwrap_or_default();
        assert_eq!(shown, labels, "{found}");
    }
}

#[test]
fn the_tables_obey_the_house() {
    let mut names = std::collections::BTreeSet::new();
    for spec in catalogue() {
        assert!(spec.name.starts_with("bloodraven_"), "{}", spec.name);
        assert_eq!(spec.name.ends_with("_total"), spec.kind == Kind::Counter, "{}", spec.name);
        assert_eq!(!spec.buckets.is_empty(), spec.kind == Kind::Histogram, "{}", spec.name);
        assert!(spec.buckets.windows(2).all(|pair| pair[0] < pair[1]), "{}", spec.name);
        assert!(!spec.help.ends_with('.') && !spec.help.is_empty(), "{}", spec.name);
        for label in spec.labels {
            assert!(!spec.scope.labels().contains(&label.name), "{} {}", spec.name, label.name);
            if let Values::Closed(words) = label.values {
                assert!(!words.is_empty(), "{}", label.name);
            }
        }
        let twice_on_purpose = spec.name == "bloodraven_fence_attempts_total" && spec.scope == Scope::Site;
        assert!(names.insert(spec.name) || twice_on_purpose, "{}", spec.name);
    }
}

#[test]
fn a_state_set_has_one_1() {
    let metrics = OperatorMetrics::new("0.1.0");
    let group = metrics.group("shop", "orders");
    for state in [SiteState::Unknown, SiteState::Writable, SiteState::Unreachable] {
        group.show_site_state("iad", SiteRole::PrimaryCandidate, state);
        for phase in [AuthorityPhase::Revoking, AuthorityPhase::Stable] {
            group.show_phase(phase);
            let text = metrics.text();
            let ones = |name: &str| text.lines().filter(|line| line.starts_with(name) && line.ends_with(" 1")).count();
            assert_eq!((ones("bloodraven_site_state"), ones("bloodraven_authority_phase")), (1, 1), "{text}");
            let wanted = format!("role=\"primary-candidate\",state=\"{}\"}} 1", state.text());
            assert!(text.contains(&wanted), "{text}");
        }
    }
    group.show_site_state("iad", SiteRole::DrOnly, SiteState::ReadOnly);
    assert!(!metrics.text().contains("primary-candidate"), "a role that it no longer has is gone");
}

#[test]
fn what_is_gone_has_no_series() {
    let metrics = OperatorMetrics::new("0.1.0");
    touch(&metrics);
    let _ = metrics.group("shop", "users").failovers("pdx").inc();
    metrics.group("shop", "orders").forget_site("pdx");
    let text = metrics.text();
    assert!(!text.contains("group=\"orders\",target_site=\"pdx\""), "{text}");
    assert!(text.contains("group=\"orders\",site=\"iad\"") && text.contains("group=\"users\",target_site=\"pdx\""));
    metrics.forget_group("shop", "orders");
    let text = metrics.text();
    assert!(!text.contains("orders") && text.contains("group=\"users\",target_site=\"pdx\""), "{text}");
}

/// K-23: label values have a bound.
#[test]
fn series_have_an_end() {
    let metrics = OperatorMetrics::new("0.1.0");
    let group = metrics.group("shop", "orders");
    for index in 0..series::MOST + 10 {
        let _ = group.failovers(&format!("s{index}")).inc();
    }
    let shown = samples(&metrics.text()).iter().filter(|line| line.starts_with("bloodraven_failovers_total")).count();
    assert_eq!(shown, series::MOST);
    assert_eq!(group.failovers("s0").get(), 1, "those that are there go on");
}

#[test]
fn two_scrapes_of_the_same_are_the_same() {
    let metrics = OperatorMetrics::new("0.1.0");
    touch(&metrics);
    assert_eq!(metrics.text(), metrics.clone().text());
    assert!(metrics.text().ends_with("# EOF\n"));
    assert!(metrics.text().contains("bloodraven_leader 1\n"), "no labels, no braces");
    assert!(metrics.text().contains("bloodraven_loop_panics_total{loop=\"group\"} 1\n"));
    assert!(metrics.text().contains("bloodraven_build_info{version=\"0.1.0\",component=\"operator\"} 1\n"));
}
