//! The tables: every metric, once.
//!
//! In: nothing. Out: the sets, made from their rows, and [`catalogue`]. Must not: be the second place where a name stands.

use super::series::MetricSpec;
use super::table::{buckets, handle, kind, make, metric_set};
use crate::words::{
    AttemptResult, AuthorityPhase, CacheResult, CloneBytes, Code, FailoverStep, FenceActor, FenceResult, FenceRule,
    HttpServer, KillCause, Method, OpeningResult, PlannedResult, ProofKind, ReplicationThread, SiteRole, SiteState,
    StatusClass, TaintAction,
};

const FAILOVER: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];
const PLANNED: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const LAG_WAIT: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// One call over the network, bounded by a few seconds.
const CALL: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0];

metric_set! {
    /// What an operator shows of one group.
    pub struct GroupMetrics, GroupTables, GROUP in Group {
        counter failovers = "failovers_total" [target_site: &str]
            "Automatic failovers that were confirmed; planned and manual ones are not counted here";
        counter failover_attempts = "failover_attempts_total" [target_site: &str, result: AttemptResult]
            "Attempts at an automatic failover, by how they ended; target_site is empty while nobody was chosen";
        histogram failover_duration = "failover_duration_seconds" [target_site: &str, step: FailoverStep]
            buckets FAILOVER, "How long each step of an automatic failover took";
        counter planned_failovers = "planned_failovers_total" [target_site: &str, result: PlannedResult]
            "Planned failovers, by how they ended";
        histogram planned_failover_duration = "planned_failover_duration_seconds" [target_site: &str]
            buckets PLANNED, "How long planned failovers took that succeeded";
        histogram planned_failover_lag_wait = "planned_failover_lag_wait_seconds" [target_site: &str]
            buckets LAG_WAIT, "How long planned failovers waited for the target to catch up";
        counter split_brain_auto_resolve = "split_brain_auto_resolve_total" [prefer_site: &str]
            "Sites that were fenced because several were writable and the policy prefers this one";
        counter dns_flips = "dns_flips_total" [site: &str]
            "Changes of the DNS record to this site";
        counter dns_write_failures = "dns_write_failures_total" []
            "Writes of the DNS record that failed";
        counter taint_operations = "taint_operations_total" [site: &str, action: TaintAction]
            "Read-only taints put on and taken off the nodes of a site";
        gauge authority_epoch = "authority_epoch" []
            "Epoch of the record of who may write";
        gauge authority_phase = "authority_phase" [phase: AuthorityPhase]
            "1 for the phase of the record, 0 for the others";
        counter promotion_proofs = "promotion_proofs_total" [proof: ProofKind]
            "Proofs of release that promotions rested on";
        gauge promotion_held = "promotion_held" []
            "1 while a promotion is held because no proof of release can come by itself";
        seconds unavailable = "unavailable_seconds_total" []
            "Time without a holder that is confirmed to take writes";
        gauge degraded = "degraded" [reason: Code]
            "1 for every reason of the condition Degraded that holds";
        gauge site_state = "site_state" [site: &str, role: SiteRole, state: SiteState]
            "1 for the state of a site, 0 for the others";
        counter state_transitions = "state_transitions_total" [site: &str, from: SiteState, to: SiteState]
            "Changes of a site's state";
        histogram poll_latency = "poll_latency_seconds" [site: &str]
            buckets CALL, "How long polls took that were answered";
        counter poll_failures = "poll_failures_total" [site: &str]
            "Polls that failed or timed out";
        real replication_lag = "replication_lag_seconds" [site: &str, role: SiteRole]
            "How far a site is behind its source; -1 if nobody knows";
        gauge replication_running = "replication_running" [site: &str, thread: ReplicationThread]
            "1 while a replication thread runs, 0 while it stands, -1 if nobody knows";
        gauge semi_sync_active = "semi_sync_active" [site: &str]
            "1 while each commit of the primary waits for a receipt that somebody gives, 0 while not; absent with Async";
        gauge divergent_transactions = "divergent_transactions" [site: &str]
            "Transactions that a site has and the primary lacks";
        gauge unapplied_transactions = "unapplied_transactions" [site: &str]
            "Transactions that a promoted site had received and not applied";
        counter fence_attempts = "fence_attempts_total" [site: &str, actor: FenceActor, result: FenceResult]
            "Fences that were tried, by who tried and what became of it";
        counter reclone_operations = "reclone_operations_total" [site: &str]
            "Reclones that were accepted";
        gauge clone_bytes = "clone_bytes" [site: &str, kind: CloneBytes]
            "Bytes of the clone into a site";
        gauge dragonfly_site_up = "dragonfly_site_up" [site: &str]
            "1 while the cache of a site answers";
        counter dragonfly_promotions = "dragonfly_promotions_total" [target_site: &str, result: CacheResult]
            "Promotions of a cache, by how they ended";
    }
}

metric_set! {
    /// What a process shows of itself, operator and sidecar alike.
    pub struct ProcessMetrics, ProcessTables, PROCESS in Process {
        gauge leader = "leader" []
            "1 while this process leads";
        counter loop_panics = "loop_panics_total" [r#loop: Code]
            "Loops that panicked and were started again";
        counter api_write_failures = "api_write_failures_total" [resource: Code]
            "Writes to the API server that failed";
        gauge websocket_connected_clients = "websocket_connected_clients" [server: HttpServer]
            "Clients that listen to /ws/status";
        counter http_requests = "http_requests_total"
            [server: HttpServer, handler: Code, method: Method, status_class: StatusClass]
            "HTTP requests that were answered";
        histogram http_request_duration = "http_request_duration_seconds"
            [server: HttpServer, handler: Code, method: Method, status_class: StatusClass]
            buckets CALL, "How long the answers took";
        gauge build_info = "build_info" [version: &str, component: Code]
            "1; the labels say what runs";
    }
}

metric_set! {
    /// What a sidecar shows of its site.
    pub struct SiteMetrics, SiteTables, SITE in Site {
        gauge fenced = "sidecar_fenced" []
            "1 while the sidecar knows its server to refuse writes";
        counter fences = "sidecar_fences_total" [rule: FenceRule]
            "Fences by the sidecar, by the rule that asked for them";
        counter openings = "sidecar_openings_total" [result: OpeningResult]
            "Openings by the sidecar, by how they ended";
        counter keeper_kills = "sidecar_keeper_kills_total" [cause: KillCause]
            "Times that the keeper killed mysqld";
        real lease_remaining = "sidecar_lease_remaining_seconds" []
            "What is left of the lease; 0 without one";
        real contact_age = "sidecar_contact_age_seconds" [peer: &str]
            "Time since a peer, or the operator, last answered";
        histogram tick = "sidecar_tick_seconds" []
            buckets CALL, "How long ticks took";
        counter fence_attempts = "fence_attempts_total" [actor: FenceActor, result: FenceResult]
            "Fences that were tried, by who tried and what became of it";
        gauge archiver_upload_failures = "archiver_upload_failures" []
            "Uploads of binary logs that failed in a row";
        gauge archiver_backlog_files = "archiver_backlog_files" []
            "Closed binary logs that are not archived yet";
        real archiver_last_upload_timestamp = "archiver_last_upload_timestamp_seconds" []
            "When a binary log was last archived";
    }
}

/// Whether a metric is declared for work that is yet to come: nothing shows it, and its page says so.
pub fn is_to_come(name: &str) -> bool {
    ["bloodraven_dragonfly_", "bloodraven_archiver_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Every metric: groups', the process's, sites'.
pub fn catalogue() -> impl Iterator<Item = &'static MetricSpec> {
    GROUP.iter().chain(&PROCESS).chain(&SITE)
}
