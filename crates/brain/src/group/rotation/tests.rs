//! New passwords, from the Secrets to every server and every channel.

use super::Occasion;
use crate::candidate::drain::Receiver;
use crate::group::Input;
use crate::group::accounts::{AccountRole, CredentialsVersion};
use crate::group::input::Outcome;
use crate::group::kept::{ClonePhase, Kept, Origin, Planned, PlannedPhase};
use crate::group::recovery::Hindrance;
use crate::group::recovery::tests::bench::{Bench, alone, bench, credentials, following, site};
use crate::group::spec::Pause;
use crate::message::StartId;
use crate::record::Phase;
use crate::site::Pair;
use crate::time::{Millis, Wall};

/// `iad` writes, `pdx` and `fra` follow; everybody has the passwords of version 1.
fn steady() -> Bench {
    let mut bench = bench(vec![("pdx", following(2, "1:1-10", "iad")), ("fra", following(3, "1:1-10", "iad"))]);
    bench.run(20);
    assert_eq!(bench.take_log(), [""; 0], "everybody is let in: nothing is to be done");
    bench
}

fn rotate(bench: &mut Bench, version: u64) {
    bench.tell(Input::CredentialsChanged(credentials(version)));
}

fn all_have(bench: &Bench, version: u64) -> bool {
    bench.servers.values().all(|server| server.accounts.values().all(|has| *has == version))
}

const SET: &str = "iad: set 2 of [Operator, Replication, App]";
const DISCARDED: &str = "iad: discard before 2 of [Operator, Replication, App]";
const TOLD: &str = "told PasswordsSet iad [Operator, Replication, App]";

#[test]
fn a_new_password_is_set_on_the_primary_and_every_channel_takes_it_up() {
    let mut bench = steady();
    rotate(&mut bench, 2);
    bench.run(30);
    assert_eq!(bench.take_log(), [SET, TOLD, "pdx: renew channel 2", "fra: renew channel 2"]);
    assert!(all_have(&bench, 2));
    // Until then whoever had the one before can have got the new one.
    bench.run(260);
    assert_eq!(bench.take_log(), [""; 0]);
    bench.run(20);
    assert_eq!(bench.take_log(), [DISCARDED, "told PasswordsDiscarded iad [Operator, Replication, App]"]);
    assert!(bench.servers.values().all(|server| server.second.is_empty()));
    bench.run(3600);
    assert_eq!(bench.log, [""; 0], "done once");
}

#[test]
fn an_older_password_that_somebody_still_needs_stays_good() {
    let mut bench = steady();
    // One that cannot renew its channel now: its receiver would be refused when it connects the next time.
    bench.outcomes.insert("RenewChannel", Some(Outcome::Failed("the applier does not run".to_owned())));
    rotate(&mut bench, 2);
    bench.run(400);
    assert_eq!(bench.count("iad: discard before 2 of [Operator, App]"), 1, "{:?}", bench.log);
    assert_eq!(bench.count("iad: discard"), 1);
    bench.outcomes.clear();
    bench.run(200);
    assert_eq!(bench.count("iad: discard before 2 of [Replication]"), 1, "{:?}", bench.log);
}

#[test]
fn a_new_leader_discards_what_the_old_one_left() {
    let mut bench = steady();
    rotate(&mut bench, 2);
    bench.run(100);
    bench.take_log();
    bench.restart();
    bench.run(280);
    assert_eq!(bench.take_log(), [""; 0], "it does not know since when");
    bench.run(40);
    assert_eq!(bench.count(DISCARDED), 1);
}

#[test]
fn nothing_is_set_in_the_middle_of_a_move_or_while_the_group_is_paused() {
    type Change = fn(&mut Bench);

    /// What stands in the way, and what takes it away again.
    type Standing<'a> = (&'static str, &'a dyn Fn(&mut Bench), Option<Change>);
    let paused = |bench: &mut Bench| {
        bench.respec(|spec| spec.paused = Some(Pause { reason: "a test".to_owned(), until: None }));
    };
    let resumed: Change = |bench| bench.respec(|spec| spec.paused = None);
    let revoking: Change = |bench| {
        let record = bench.store.record.as_mut().expect("a record");
        (record.phase, record.seat, record.revoked_at) = (Phase::Revoking, None, Some(record.epoch));
        bench.restart();
    };
    let second_writer: Change = |bench| {
        bench.outcomes.insert("Fence", Some(Outcome::Failed("it hangs".to_owned())));
        bench.server("pdx").facts.pair = Pair::OPEN;
    };
    let unreachable: Change = |bench| bench.server("iad").up = false;
    let rows: [Standing<'_>; 4] = [
        ("paused", &paused, Some(resumed)),
        ("revoked", &revoking, None),
        ("a second writer", &second_writer, None),
        ("the primary is silent", &unreachable, None),
    ];
    for (what, change, undo) in rows {
        let mut bench = steady();
        change(&mut bench);
        bench.run(8);
        rotate(&mut bench, 2);
        // Shorter than what would end the obstacle by itself.
        bench.run(4);
        let touched = |bench: &Bench| bench.count("iad: set") + bench.count("pdx: renew") + bench.count("fra: renew");
        assert_eq!(touched(&bench), 0, "{what}: {:?}", bench.log);
        if let Some(undo) = undo {
            undo(&mut bench);
            bench.run(30);
            assert!(all_have(&bench, 2) && touched(&bench) == 3, "{what}: {:?}", bench.log);
        }
    }
    let bench = steady();
    let mut kept = Kept::clone(&bench.group.kept().expect("it is known"));
    assert!(bench.group.standing(bench.now, &kept).is_ok());
    kept.planned = Some(plan(PlannedPhase::WaitingForLag));
    assert_eq!(bench.group.standing(bench.now, &kept), Err(Hindrance::PlannedFailover));
}

fn plan(phase: PlannedPhase) -> Planned {
    Planned {
        phase,
        request_id: "r".to_owned(),
        origin: Origin::Annotation,
        target: site("pdx"),
        source: site("iad"),
        source_gtid: None,
        target_gtid: None,
        started: Wall(1_800_000_000_000),
        completed: None,
        transactions_lost: None,
        reason: None,
        message: String::new(),
        max_lag_wait: Millis::from_secs(300),
        drain_timeout: Millis::from_secs(30),
        drain_started: None,
        remaining_connections: None,
        lag_wait_started: Some(Wall(1_800_000_000_000)),
        retry_after: None,
        cache: None,
    }
}

#[test]
fn a_refused_login_is_an_answer_and_nothing_moves_because_of_it() {
    let mut bench = steady();
    for name in ["iad", "pdx", "fra"] {
        bench.server(name).refuses = true;
    }
    bench.run(4);
    rotate(&mut bench, 2);
    bench.run(300);
    assert_eq!(bench.take_log(), [""; 0]);
    assert_eq!(bench.store.record.as_ref().map(|record| record.phase), Some(Phase::Stable));
    for name in ["iad", "pdx", "fra"] {
        bench.server(name).refuses = false;
    }
    bench.run(30);
    assert_eq!(bench.take_log(), [SET, TOLD, "pdx: renew channel 2", "fra: renew channel 2"]);
}

#[test]
fn a_site_that_lags_is_waited_for_and_told_of() {
    let mut bench = steady();
    let pdx = bench.server("pdx");
    pdx.lags = true;
    if let Some(replica) = &mut pdx.facts.replica {
        replica.behind = Some(Millis::from_secs(7200));
    }
    rotate(&mut bench, 2);
    bench.run(600);
    assert_eq!(bench.count("iad: set"), 1, "each time is a transaction: {:?}", bench.log);
    assert_eq!(bench.server("pdx").channel, 2, "its channel logs in at the primary, which has it");
    assert_eq!(bench.count("told PasswordsRefused pdx {Operator: 1045, Replication: 1045, App: 1045}"), 1);
    let pdx = bench.server("pdx");
    pdx.lags = false;
    for role in AccountRole::ALL {
        pdx.accounts.entry(role).and_modify(|has| *has = 2);
    }
    bench.take_log();
    bench.run(1300);
    assert_eq!(bench.count("iad: set") + bench.count("told PasswordsRefused"), 0, "it has caught up, and has them");
}

#[test]
fn a_server_that_started_with_older_files_gets_it_once_more_from_the_primary() {
    for name in ["iad", "pdx"] {
        let mut bench = steady();
        rotate(&mut bench, 2);
        bench.run(400);
        bench.take_log();
        bench.server(name).accounts.insert(AccountRole::App, 1);
        // Nobody tells of its start here: it is found when servers are asked again.
        bench.run(700);
        assert_eq!(bench.log[..2], ["iad: set 2 of [App]", "told PasswordsSet iad [App]"], "{name}");
        assert!(all_have(&bench, 2));
        assert_eq!(bench.count("iad: set"), 1);
    }
}

#[test]
fn a_follower_that_goes_on_refusing_is_told_of_and_not_tried_for_ever() {
    let mut bench = steady();
    // It follows, and what is set does not arrive.
    bench.server("pdx").lags = true;
    rotate(&mut bench, 2);
    bench.run(7200);
    assert_eq!(bench.count("iad: set"), 1 + 3, "{:?}", bench.log);
    assert_eq!(bench.count("told PasswordsRefused pdx"), 1, "{:?}", bench.log);
}

#[test]
fn an_account_that_is_not_there_is_told_of_and_holds_up_no_other() {
    let mut bench = steady();
    for name in ["iad", "pdx", "fra"] {
        bench.server(name).accounts.remove(&AccountRole::App);
    }
    rotate(&mut bench, 2);
    bench.run(7200);
    let expect = [
        "iad: set 2 of [Operator, Replication]",
        "told PasswordsSet iad [Operator, Replication]",
        "told PasswordsRefused iad {App: 1396}",
        "pdx: renew channel 2",
        "fra: renew channel 2",
        "iad: discard before 2 of [Operator, Replication]",
        "told PasswordsDiscarded iad [Operator, Replication]",
    ];
    assert_eq!(bench.log, expect);
}

#[test]
fn a_user_that_only_a_follower_lacks_is_told_of() {
    let mut bench = steady();
    bench.server("pdx").accounts.remove(&AccountRole::App);
    rotate(&mut bench, 2);
    bench.run(200);
    assert_eq!(bench.count("iad: set"), 1, "it would change nothing: {:?}", bench.log);
    assert_eq!(bench.count("told PasswordsRefused pdx {App: 1396}"), 1, "{:?}", bench.log);
}

#[test]
fn a_primary_that_cannot_be_changed_is_tried_once_a_minute() {
    let mut bench = steady();
    bench.outcomes.insert("SetPasswords", Some(Outcome::Failed("no end in time".to_owned())));
    rotate(&mut bench, 2);
    bench.run(130);
    assert_eq!(bench.count("iad: set"), 3, "{:?}", bench.log);
    assert_eq!(bench.count("told PasswordsNotSet iad no end in time"), 3);
    assert_eq!(bench.count("pdx: renew") + bench.count("fra: renew"), 0, "the primary would refuse them");
    bench.outcomes.clear();
    bench.run(120);
    assert!(all_have(&bench, 2), "{:?}", bench.log);
}

#[test]
fn the_newest_secret_counts() {
    let mut bench = steady();
    bench.outcomes.insert("SetPasswords", None);
    rotate(&mut bench, 2);
    bench.run(2);
    rotate(&mut bench, 3);
    bench.outcomes.clear();
    bench.end("SetPasswords", Outcome::Logins(Box::default()));
    bench.run(30);
    assert!(all_have(&bench, 3), "{:?}", bench.log);
    assert_eq!(bench.count("pdx: renew channel 2") + bench.count("fra: renew channel 2"), 0);
    assert_eq!(bench.count("pdx: renew channel 3") + bench.count("fra: renew channel 3"), 2);
}

/// Whoever still has the first of three would be refused: a server knows two.
#[test]
fn a_third_password_waits_until_the_first_is_given_up() {
    let third = "iad: set 3 of [Operator, Replication, App]";
    for restarted in [false, true] {
        let mut bench = steady();
        rotate(&mut bench, 2);
        bench.run(100);
        rotate(&mut bench, 3);
        if restarted {
            bench.restart();
        }
        // A new leader does not know when the second was set.
        bench.run(if restarted { 280 } else { 190 });
        assert_eq!(bench.count(third), 0, "{:?}", bench.log);
        assert!(all_have(&bench, 2), "{:?}", bench.log);
        bench.run(60);
        assert_eq!(bench.count(third), 1, "{:?}", bench.log);
        assert!(all_have(&bench, 3), "{:?}", bench.log);
    }
}

#[test]
fn a_new_leader_goes_on_where_the_old_one_stopped() {
    let mut bench = steady();
    bench.outcomes.insert("RenewChannel", None);
    rotate(&mut bench, 2);
    bench.run(2);
    assert_eq!(bench.take_log(), [SET, TOLD, "pdx: renew channel 2"]);
    bench.outcomes.clear();
    bench.restart();
    bench.run(30);
    assert_eq!(bench.take_log(), ["pdx: renew channel 2", "fra: renew channel 2"], "the primary has them already");
}

/// K-22: in the middle of a failover.
#[test]
fn what_a_lost_primary_took_along_is_set_on_the_next_one() {
    let mut bench = steady();
    rotate(&mut bench, 2);
    bench.run(30);
    bench.take_log();
    // Authority moved; the transaction had not arrived.
    let record = bench.store.record.as_mut().expect("a record");
    let voters = record.voters.clone();
    (record.epoch, record.tenure, record.seat) = (9, 9, voters.into_iter().find(|voter| voter.site == site("pdx")));
    for name in ["pdx", "fra"] {
        let server = bench.server(name);
        server.accounts.values_mut().for_each(|has| *has = 1);
        server.second.clear();
        server.facts = following(if name == "pdx" { 2 } else { 3 }, "1:1-10", "pdx");
    }
    let pdx = &mut bench.server("pdx").facts;
    (pdx.pair, pdx.replica) = (Pair::OPEN, None);
    bench.server("iad").facts = following(1, "1:1-10", "pdx");
    bench.restart();
    bench.run(30);
    assert_eq!(
        bench.log[..2],
        ["pdx: set 2 of [Operator, Replication, App]", "told PasswordsSet pdx [Operator, Replication, App]"]
    );
    assert!(all_have(&bench, 2), "{:?}", bench.log);
}

#[test]
fn one_receiver_at_a_time_is_started_anew() {
    let mut bench = steady();
    bench.outcomes.insert("RenewChannel", None);
    rotate(&mut bench, 2);
    bench.run(2);
    if let Some(replica) = &mut bench.server("pdx").facts.replica {
        replica.receiver = Receiver::Connecting;
    }
    bench.server("pdx").channel = 2;
    bench.end("RenewChannel", Outcome::Ok);
    bench.run(10);
    assert_eq!(bench.count("fra: renew"), 0, "pdx is not connected yet: {:?}", bench.log);
    if let Some(replica) = &mut bench.server("pdx").facts.replica {
        replica.receiver = Receiver::Running;
    }
    bench.run(6);
    assert_eq!(bench.count("fra: renew channel 2"), 1);
    // One that never connects is not waited for longer.
    let mut bench = steady();
    bench.outcomes.insert("RenewChannel", None);
    rotate(&mut bench, 2);
    bench.run(2);
    if let Some(replica) = &mut bench.server("pdx").facts.replica {
        replica.receiver = Receiver::Connecting;
    }
    bench.server("pdx").channel = 2;
    bench.end("RenewChannel", Outcome::Ok);
    bench.outcomes.clear();
    bench.run(40);
    assert_eq!(bench.count("fra: renew channel 2"), 1, "{:?}", bench.log);
}

#[test]
fn a_copy_that_was_refused_meanwhile_is_tried_again_when_the_password_is_set() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.outcomes.insert("Clone", Some(Outcome::Refused("access denied".to_owned())));
    bench.outcomes.insert("SetPasswords", None);
    rotate(&mut bench, 2);
    bench.run(60);
    let phase = |bench: &Bench| bench.kept("pdx").clone.map(|clone| clone.phase);
    assert_eq!(phase(&bench), Some(ClonePhase::Failed), "{:?}", bench.log);
    bench.outcomes.clear();
    bench.run(70);
    assert!(all_have(&bench, 2), "{:?}", bench.log);
    assert_eq!(phase(&bench), Some(ClonePhase::Done), "{:?}", bench.log);
}

#[test]
fn an_answer_is_good_for_its_occasion() {
    let now = Occasion { version: CredentialsVersion(2), tenure: Some(7), start: Some(StartId(4)) };
    let rows = [
        ("the same", now, true),
        ("other Secrets", Occasion { version: CredentialsVersion(1), ..now }, false),
        ("another tenure", Occasion { tenure: Some(5), ..now }, false),
        ("it was no primary", Occasion { tenure: None, ..now }, false),
        ("another start", Occasion { start: Some(StartId(3)), ..now }, false),
        ("its sidecar was silent", Occasion { start: None, ..now }, true),
    ];
    for (what, before, expect) in rows {
        assert_eq!(before.is_as_good_as(&now), expect, "{what}");
    }
    assert!(now.is_as_good_as(&Occasion { start: None, ..now }), "its sidecar is silent");
}
