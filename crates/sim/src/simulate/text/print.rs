//! Scenarios back into text, as the parser reads it.
//!
//! In: a scenario. Out: its file. Must not: print what the parser would read as something else.

use crate::simulate::clock::{MS, SEC, Time};
use crate::simulate::net::{Channel, End};
use crate::simulate::scenario::{Edit, Expect, Fault, Moment, Process, Refusable, SITES, Scenario, Setup, Victim};

/// One fault in words.
pub fn print(fault: &Fault) -> String {
    match *fault {
        Fault::Cut(from, to, on) => format!("cut-one-way {} {}{}", end(from), end(to), channel(on)),
        Fault::CutBoth(from, to, on) => format!("cut {} {}{}", end(from), end(to), channel(on)),
        Fault::Mend(from, to) => format!("mend {} {}", end(from), end(to)),
        Fault::Isolate(one) => format!("isolate {}", end(one)),
        Fault::Rejoin(one) => format!("rejoin {}", end(one)),
        Fault::Loss(from, to, percent) => format!("loss {} {} {percent}", end(from), end(to)),
        Fault::Delay(from, to, by) => format!("delay {} {} {}", end(from), end(to), time(by)),
        Fault::Kill(one) => format!("kill {}", process(one)),
        Fault::Pause(one) => format!("pause {}", process(one)),
        Fault::Resume(one) => format!("resume {}", process(one)),
        Fault::Hold(one) => format!("hold {}", process(one)),
        Fault::Release(one) => format!("release {}", process(one)),
        Fault::Stop(at) => format!("stop mysqld {}", site(at)),
        Fault::CrashAfter(op, commands) => format!("crash {} after {commands}", end(End::Operator(op))),
        Fault::DeletePod(at) => format!("delete-pod {}", site(at)),
        Fault::ForceDeletePod(at) => format!("force-delete-pod {}", site(at)),
        Fault::LoseVolume(at) => format!("lose-volume {}", site(at)),
        Fault::LoseNode(at) => format!("lose-node {}", site(at)),
        Fault::ReturnNode(at) => format!("return-node {}", site(at)),
        Fault::Deny(what) => format!("deny {}", refusable(what)),
        Fault::Allow(what) => format!("allow {}", refusable(what)),
        Fault::StoreDown => "store-down".to_owned(),
        Fault::StoreUp => "store-up".to_owned(),
        Fault::BackUpStore => "back-up-store".to_owned(),
        Fault::RestoreStore => "restore-store".to_owned(),
        Fault::Conflict => "conflict".to_owned(),
        Fault::FillDisk(at) => format!("fill-disk {}", site(at)),
        Fault::FreeDisk(at) => format!("free-disk {}", site(at)),
        Fault::SlowSql(at, by) => format!("slow-sql {} {}", site(at), time(by)),
        Fault::BlockFence(at, long) => format!("block-fence {} {}", site(at), time(long)),
        Fault::StopApplier(at) => format!("stop-applier {}", site(at)),
        Fault::BreakApplier(at) => format!("break-applier {}", site(at)),
        Fault::SlowApplier(at, by) => format!("slow-applier {} {}", site(at), time(by)),
        Fault::DelayReplica(at, by) => format!("delay-replica {} {}", site(at), time(by)),
        Fault::StopReceiver(at) => format!("stop-receiver {}", site(at)),
        Fault::Purge(at) => format!("purge {}", site(at)),
        Fault::HumanFence(at) => format!("human-fence {}", site(at)),
        Fault::HumanOpen(at) => format!("human-open {}", site(at)),
        Fault::Edit(Edit::Lease(lease)) => format!("edit lease {}", time(lease)),
        Fault::Edit(Edit::MinPeers(peers)) => format!("edit min-peers {peers}"),
        Fault::Edit(Edit::Prefer(at)) => format!("edit prefer {}", site(at)),
        Fault::Edit(Edit::Paused(paused)) => format!("edit {}paused", if paused { "" } else { "un" }),
        Fault::Edit(Edit::Template) => "edit template".to_owned(),
        Fault::Edit(Edit::CacheImage) => "edit cache-image".to_owned(),
        Fault::Planned(at) => format!("planned {}", site(at)),
        Fault::Reclone(at) => format!("reclone {}", site(at)),
        Fault::Ambush(when, whom) => format!("ambush {} {}", moment(when), victim(whom)),
        Fault::ClockJump(one, seconds) => format!("clock {} {seconds}", end(one)),
        Fault::MustBeClosed(at) => format!("must-be-closed {}", site(at)),
    }
}

/// The whole file.
pub fn scenario(scenario: &Scenario) -> String {
    let mut lines = vec![format!("story {}", scenario.story), format!("seed {}", scenario.seed)];
    lines.extend(setup(&scenario.setup));
    lines.extend(scenario.faults.iter().map(|timed| format!("at {} {}", time(timed.at), print(&timed.what))));
    lines.push(format!("heal at {}", time(scenario.heal_at)));
    lines.extend(scenario.expects.iter().map(|expect| match expect {
        Expect::Primary(at) => format!("expect primary {}", site(*at)),
        Expect::NoPrimary => "expect no-primary".to_owned(),
        Expect::Failovers(count) => format!("expect failovers {count}"),
        Expect::Planned(true) => "expect planned-succeeded".to_owned(),
        Expect::Planned(false) => "expect planned-failed".to_owned(),
        Expect::Divergent(at) => format!("expect divergent {}", site(*at)),
        Expect::Cache(at) => format!("expect cache {}", site(*at)),
        Expect::Updated => "expect updated".to_owned(),
    }));
    lines.push(String::new());
    lines.join("\n")
}

fn setup(setup: &Setup) -> Vec<String> {
    let Setup {
        sites,
        dr_only,
        operators,
        lease,
        min_peers,
        poll,
        cooldown,
        fresh,
        best_effort,
        priorities,
        skewed,
        latency,
        twice,
        lost_for_ever,
        caches,
        caches_matter,
        semi_sync,
        tagged,
        recordless,
        recreate,
        large_promotions,
    } = setup;
    let mut lines = vec![
        format!("sites {sites}"),
        format!("dr-only {dr_only}"),
        format!("operators {operators}"),
        format!("lease {}", time(*lease)),
        format!("min-peers {min_peers}"),
        format!("poll {}", time(*poll)),
        format!("cooldown {}", time(*cooldown)),
        format!("latency {}", time(*latency)),
        format!("twice {twice}"),
    ];
    lines.extend(priorities.iter().map(|at| format!("prefer {}", site(*at))));
    let flags = [
        (fresh, "fresh"),
        (best_effort, "best-effort"),
        (skewed, "skewed"),
        (lost_for_ever, "lost-for-ever"),
        (caches, "caches"),
        (caches_matter, "caches-matter"),
        (semi_sync, "semi-sync"),
        (tagged, "tagged"),
        (recordless, "recordless"),
        (recreate, "recreate"),
        (large_promotions, "large-promotions"),
    ];
    lines.extend(flags.iter().filter(|(set, _)| **set).map(|(_, name)| (*name).to_owned()));
    lines
}

fn time(time: Time) -> String {
    let (unit, name) = if time < SEC { (MS, "ms") } else { (SEC, "s") };
    let (whole, part) = (time / unit, time % unit);
    if part == 0 {
        return format!("{whole}{name}");
    }
    let digits = format!("{:06}", part * (SEC / unit));
    format!("{whole}.{}{name}", digits.trim_end_matches('0'))
}

fn site(number: usize) -> &'static str {
    SITES.get(number).copied().unwrap_or("nowhere")
}

fn end(end: End) -> String {
    match end {
        End::Store => "store".to_owned(),
        End::Clients => "clients".to_owned(),
        End::Operator(op) => format!("operator-{op}"),
        End::Site(number) => site(number).to_owned(),
    }
}

fn process(process: Process) -> String {
    match process {
        Process::Mysqld(at) => format!("mysqld {}", site(at)),
        Process::Keeper(at) => format!("keeper {}", site(at)),
        Process::Sidecar(at) => format!("sidecar {}", site(at)),
        Process::Operator(op) => end(End::Operator(op)),
        Process::Cache(at) => format!("cache {}", site(at)),
    }
}

fn moment(moment: Moment) -> &'static str {
    match moment {
        Moment::Revoked => "revoked",
        Moment::Granted => "granted",
        Moment::Permitted => "permitted",
        Moment::Opened => "opened",
        Moment::Fencing => "fencing",
        Moment::Planned(phase) => super::phase_name(phase).unwrap_or("never"),
    }
}

const fn victim(victim: Victim) -> &'static str {
    match victim {
        Victim::Mysqld => "mysqld",
        Victim::Keeper => "keeper",
        Victim::Sidecar => "sidecar",
        Victim::MysqldStops => "mysqld-stops",
        Victim::SidecarStops => "sidecar-stops",
        Victim::Operator => "operator",
    }
}

const fn channel(channel: Option<Channel>) -> &'static str {
    match channel {
        None => "",
        Some(Channel::Http) => " http",
        Some(Channel::Sql) => " sql",
    }
}

const fn refusable(what: Refusable) -> &'static str {
    match what {
        Refusable::Status => "status",
        Refusable::Annotation => "annotation",
        Refusable::Lease => "lease",
        Refusable::Labels => "labels",
        Refusable::Dns => "dns",
        Refusable::Takeover => "takeover",
    }
}
