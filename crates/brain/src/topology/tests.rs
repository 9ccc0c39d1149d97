//! What all sites together say: the tables of the pages, row by row.

use super::*;
use crate::record::{Cause, Holder, Settings};
use crate::site::Pair;
use crate::time::{Millis, Wall};

/// `iad* dr read-only new lost …`: `*` marks the holder's site.
fn facts(text: &str) -> (SiteFacts, bool) {
    let mut words = text.split_whitespace();
    let name = words.next().expect("a site's name");
    let site = Site::new(name.trim_end_matches('*'));
    let mut facts = SiteFacts::polled(Watch::new(&site), Role::PrimaryCandidate);
    facts.instance = Some(Instance::new(site.as_str(), "1"));
    for word in words {
        match word {
            "dr" => facts.role = Role::DrOnly,
            "unknown" => facts.watch.state = State::Unknown,
            "unreachable" => facts.watch.state = State::Unreachable,
            "writable" => (facts.watch.state, facts.watch.pair) = (State::Writable, Some(Pair::OPEN)),
            "read-only" => {
                (facts.watch.state, facts.watch.pair) = (State::ReadOnly, Some(Pair::CLOSED));
                facts.watch.closings = 3;
            }
            "0/1" => facts.watch.pair = Some(Pair { read_only: false, super_read_only: true }),
            "1/0" => facts.watch.pair = Some(Pair { read_only: true, super_read_only: false }),
            "0/0" => facts.watch.pair = Some(Pair::OPEN),
            "2-polls" => facts.watch.closings = 2,
            "new" => facts.instance = Some(Instance::new(site.as_str(), "2")),
            "silent" => facts.instance = None,
            "stray" => facts.open_strays.push(Instance::new(site.as_str(), "old")),
            "lost" => facts.data_lost = true,
            "hand" => facts.opened_by_hand = true,
            "refuses" => facts.watch.login_refused = true,
            "by-others" => facts.fenced_by = Some(FencedBy::Others),
            "by-conflict" => facts.fenced_by = Some(FencedBy::Conflict),
            "by-boot" => facts.fenced_by = Some(FencedBy::Boot),
            other => panic!("no such word: {other}"),
        }
    }
    (facts, name.ends_with('*'))
}

fn record(holder: Option<Member>, phase: Phase, sql_fence_sent: bool) -> Record {
    Record {
        epoch: 7,
        tenure: 7,
        seat: holder.clone().filter(|_| phase != Phase::Revoking),
        phase,
        voters: Vec::new(),
        settings: Settings { lease_timeout: Millis(20_000), min_peers: 1 },
        since: Wall(0),
        cause: Cause::Emergency,
        proof: None,
        revoked_at: (phase == Phase::Revoking).then_some(7),
        holder: holder.map(|member| Holder { member, server_uuid: None, sets: Vec::new(), sql_fence_sent }),
        ended: Vec::new(),
    }
}

/// `given`: words about the record and the policy; `sites`: one entry a site, parted by `|`.
fn judged(given: &str, sites: &str) -> Judgement {
    let parsed: Vec<(SiteFacts, bool)> = sites.split('|').map(facts).collect();
    let holder = parsed
        .iter()
        .find(|(_, holds)| *holds)
        .map(|(facts, _)| Member::new(facts.site(), &Instance::new(facts.site().as_str(), "1")));
    let has = |word: &str| given.split_whitespace().any(|given| given == word);
    let phase = match () {
        () if has("revoking") => Phase::Revoking,
        () if has("granting") => Phase::Granting,
        () => Phase::Stable,
    };
    let record = (!has("no-record")).then(|| record(holder, phase, has("sql-fence-sent")));
    let list = given.split_whitespace().find_map(|word| word.strip_prefix("list=")).unwrap_or_default();
    let priorities: Vec<Site> = list.split(',').filter(|name| !name.is_empty()).map(Site::new).collect();
    let sites: Vec<SiteFacts> = parsed.into_iter().map(|(facts, _)| facts).collect();
    judge(&Picture {
        record: record.as_ref(),
        highest_heard: if has("epoch-9-heard") { 9 } else { 7 },
        sites: &sites,
        priorities: &priorities,
        failure_threshold: 3,
        fresh_and_empty: has("fresh"),
    })
}

fn check(given: &str, sites: &str, verdict: &str, fence: &str) {
    let judgement = judged(given, sites);
    assert_eq!(judgement.verdict.to_string(), verdict, "{given}: {sites}");
    let writers: Vec<String> =
        judgement.fence.iter().map(|writer| format!("{} {:?}", writer.site, writer.why)).collect();
    assert_eq!(writers.join(", "), fence, "fences for {given}: {sites}");
}

fn check_alert(given: &str, sites: &str, alert: &str) {
    let told = judged(given, sites).alert.map(|alert| format!("{}: {alert}", alert.reason())).unwrap_or_default();
    assert_eq!(told, alert, "{given}: {sites}");
}

#[test]
fn the_two_site_table() {
    let rows = [
        // Site A | Site B | Action
        ("a* writable    | b read-only  ", "healthy: a"),
        ("a* unreachable | b read-only  ", "failover: a is unreachable, candidates b"),
        ("a read-only    | b* unreachable", "failover: b is unreachable, candidates a"),
        ("a* writable    | b writable   ", "split brain: a, b writable, a has authority"),
        ("a* read-only   | b read-only  ", "no primary: a has authority and is fenced; its sidecar does not say why"),
        ("a* unreachable | b unreachable", "total loss"),
        ("a* writable    | b unreachable", "degraded: a without b"),
        // the unreachable site of the failover rows is the holder: a dead standby starts no election
        ("a* read-only   | b unreachable", "no primary: a has authority and is fenced; its sidecar does not say why"),
        ("a unreachable  | b* read-only ", "no primary: b has authority and is fenced; its sidecar does not say why"),
        ("a unreachable  | b* writable  ", "degraded: b without a"),
    ];
    for (sites, verdict) in rows {
        assert_eq!(judged("", sites).verdict.to_string(), verdict, "{sites}");
    }
}

#[test]
fn a_site_that_lets_nobody_in_holds_nothing_up() {
    check("", "a* unreachable | b read-only | c unknown refuses", "failover: a is unreachable, candidates b", "");
    check("", "a* writable | b read-only | c dr unknown refuses", "healthy: a", "");
    // Nothing is decided about the holder, nor without one, on a server that was never read.
    check("", "a* unknown refuses | b read-only", "wait: a unknown", "");
    check("no-record", "a unknown refuses | b read-only", "wait: a unknown", "");
    check("", "a* unreachable | b unknown", "wait: b unknown", "");
}

#[test]
fn record_not_stable_is_a_move_in_progress() {
    let going_on = |phase: &str| format!("move in progress: {phase} in epoch 7 (Emergency)");
    check("revoking", "a* read-only | b read-only", &going_on("Revoking"), "");
    check("granting", "a unreachable | b* read-only", &going_on("Granting"), "");
    check("granting", "a unknown | b* read-only", &going_on("Granting"), "");
    check("granting", "a unreachable | b* writable", &going_on("Granting"), "");
    // unauthorised writers are fenced in every row; the last holder is known as such
    check("revoking", "a* writable | b writable", &going_on("Revoking"), "a Revoked, b NotTheHolder");
    check("granting", "a writable | b* writable", &going_on("Granting"), "a NotTheHolder");
    check("revoking", "a* writable new | b read-only", &going_on("Revoking"), "a AnotherInstance");
}

#[test]
fn the_alerts_of_the_other_rows_show_during_a_move() {
    check_alert("revoking", "a* unreachable | b unreachable", "TotalLoss: TOTAL LOSS: no site answers");
    check_alert("revoking", "a* writable | b writable", "SplitBrain: SPLIT BRAIN: both sites are writable");
    let no_candidate =
        "NoPrimary: NO PRIMARY: a is unreachable and no primary-candidate answers; c is never promoted (dr-only)";
    check_alert("revoking", "a* unreachable | b unreachable | c dr read-only", no_candidate);
    check_alert("revoking", "a* unreachable | b read-only", "");
    check_alert("revoking", "a* read-only 2-polls by-boot | b read-only", "");
    check_alert("granting", "a unreachable | b* writable", "Alert: a unreachable while b is primary");
    check_alert("granting", "a unknown | b* unreachable", "");
    // a group that starts over has no holder to miss
    check_alert("revoking", "a read-only | b read-only", "");
    check_alert("revoking", "a writable | b writable", "SplitBrain: SPLIT BRAIN: both sites are writable");
}

#[test]
fn an_unknown_site_waits_but_writers_are_fenced() {
    check("", "a* writable | b unknown", "wait: b unknown", "");
    check("", "a* unreachable | b unknown | c read-only", "wait: b unknown", "");
    check("", "a* writable | b unknown | c writable", "wait: b unknown", "c NotTheHolder");
    check("no-record", "a unknown | b read-only", "wait: a unknown", "");
    // the shortcut of a fresh and empty group waits for nobody
    check("no-record fresh", "a unknown | b read-only", "authority unknown: no record", "");
    check("fresh", "a* writable | b unknown", "wait: b unknown", "");
}

#[test]
fn no_record_or_a_higher_epoch_heard_is_authority_unknown() {
    check("no-record", "a read-only | b read-only", "authority unknown: no record", "");
    check("no-record", "a unreachable | b read-only", "authority unknown: no record", "");
    let behind = "authority unknown: epoch 9 was heard, the record is at 7";
    check("epoch-9-heard", "a* writable | b read-only", behind, "");
    check("epoch-9-heard", "a* unknown | b read-only", behind, "");
    // a move does not go on from a record that is behind, and nobody is fenced on its word
    check("epoch-9-heard revoking", "a* read-only | b read-only", behind, "");
    check("epoch-9-heard", "a* read-only | b writable", behind, "");
    // at the record's own epoch nothing is behind
    check("", "a* writable | b read-only", "healthy: a", "");
}

#[test]
fn the_holders_site_as_another_instance_is_a_move_to_itself() {
    let itself = "move to itself: a lives on as a/2, was a/1";
    check("", "a* read-only new | b read-only", itself, "");
    check("", "a* read-only new | b unreachable", itself, "");
    // the new pod answers inside the debounce of the old one
    check("", "a* writable new | b read-only", itself, "a AnotherInstance");
    // a second pod of the site that still writes, beside the record's own
    check("", "a* writable stray | b read-only", "healthy: a", "a AnotherInstance");
    // no answer at all is no move to itself
    check("", "a* unreachable new | b read-only", "failover: a is unreachable, candidates b", "");
    // data lost: failover
    check("", "a* read-only new lost | b read-only", "failover: a has lost its data, candidates b", "");
    let nobody = "no primary: a has lost its data and no primary-candidate answers";
    check("", "a* read-only new lost | b unreachable", nobody, "");
    check("", "a* writable new lost | b read-only", "unauthorised writer: a", "a AnotherInstance");
    // a silent sidecar speaks against nobody
    check("", "a* writable silent | b read-only", "healthy: a", "");
    // another site's new pod is a voter change, no move
    check("", "a* writable | b read-only new", "healthy: a", "");
}

#[test]
fn the_n_site_table() {
    // all unreachable
    check("", "a* unreachable | b unreachable | c dr unreachable", "total loss", "");
    // more than one writable
    let split = "split brain: b, c writable, a has authority";
    check("", "a* unreachable | b writable | c writable", split, "b NotTheHolder, c NotTheHolder");
    let split = "split brain: a, b, c writable, a has authority";
    check("", "a* writable | b writable | c dr writable", split, "b NotTheHolder, c DrOnly");
    // only the holder writable
    check("", "a* writable | b read-only | c dr read-only", "healthy: a", "");
    check("", "a* writable | b read-only | c dr unreachable", "degraded: a without c", "");
    check("", "a* writable | b unreachable | c unreachable", "degraded: a without b, c", "");
    // one writable site, not the holder
    check("", "a* unreachable | b writable | c read-only", "unauthorised writer: b", "b NotTheHolder");
    check("", "a* read-only | b writable | c read-only", "unauthorised writer: b", "b NotTheHolder");
    // none writable, holder unreachable, a primary-candidate is read-only
    let failover = "failover: a is unreachable, candidates b, c";
    check("", "a* unreachable | b read-only | c read-only", failover, "");
    let failover = "failover: a is unreachable, candidates c";
    check("", "a* unreachable | b unreachable | c read-only | d dr read-only", failover, "");
    // ... or the holder reachable with its data lost
    let failover = "failover: a has lost its data, candidates b";
    check("", "a* read-only lost | b read-only | c dr read-only", failover, "");
    // none writable, holder unreachable, no primary-candidate reachable: dr-only is never promoted
    let nobody = "no primary: a is unreachable and no primary-candidate answers; c is never promoted (dr-only)";
    check("", "a* unreachable | b unreachable | c dr read-only", nobody, "");
    // none writable, holder reachable and read-only
    let fenced = "no primary: a has authority and is fenced; its sidecar does not say why";
    check("", "a* read-only | b read-only | c dr unreachable", fenced, "");
    check("", "a* read-only 2-polls | b read-only", "holder closed: a is read-only (2 of 3 polls)", "");
    // the holder's site is no longer declared
    check("", "a* unreachable | b read-only", "failover: a is unreachable, candidates b", "");
}

#[test]
fn f_23_a_sole_writable_dr_only_site_is_fenced_and_counts_as_none() {
    let nobody = "no primary: a is unreachable and no primary-candidate answers; c is never promoted (dr-only)";
    check("", "a* unreachable | b unreachable | c dr writable", nobody, "c DrOnly");
    let failover = "failover: a is unreachable, candidates b";
    check("", "a* unreachable | b read-only | c dr writable hand", failover, "c DrOnly");
    let fenced = "no primary: a has authority and is fenced by hand; the fence stays until it is lifted by hand";
    check("", "a* read-only by-others | b read-only | c dr writable hand", fenced, "c DrOnly");
}

#[test]
fn f_23_a_candidate_opened_by_hand_is_a_request_only_while_the_holder_does_not_serve() {
    let wish = |holder: &str| format!("manual promotion: b was opened by hand, the holder {holder}");
    check("", "a* read-only by-others | b writable hand", &wish("is read-only"), "b OpenedByHand");
    check("", "a* unreachable | b writable hand", &wish("is unreachable"), "b OpenedByHand");
    check("", "a* read-only new lost | b writable hand", &wish("was replaced"), "b OpenedByHand");
    // its own sidecar has fenced it already: the request stands
    check("", "a* read-only by-others | b read-only hand", &wish("is read-only"), "");
    check("", "a* unreachable | b read-only hand | c read-only", &wish("is unreachable"), "");
    // beside a serving holder it is fenced, nothing else
    check("", "a* writable | b read-only hand", "healthy: a", "");
    check("", "a* writable | b read-only 0/0 hand", "healthy: a", "b OpenedByHand");
    let split = "split brain: a, b writable, a has authority";
    check("", "a* writable | b writable hand", split, "b OpenedByHand");
    // the holder itself is no wish for a move
    let fenced = "no primary: a has authority and is fenced; its sidecar does not say why";
    check("", "a* read-only hand | b read-only", fenced, "");
    // no longer there
    check("", "a* unreachable | b unreachable hand | c read-only", "failover: a is unreachable, candidates c", "");
}

#[test]
fn f_22_split_brain_is_answered_by_the_record_then_by_policy_then_by_nobody() {
    let split = "split brain: a, b writable, a has authority";
    check("list=b", "a* writable | b writable", split, "b NotTheHolder");
    let policy = |winner: &str| format!("authority unknown: no record, a, b writable, {winner}");
    let all = "a NoRecord, b NoRecord";
    check("no-record list=b,a", "a writable | b writable", &policy("b wins by policy"), all);
    check("no-record list=c,a", "a writable | b writable | c read-only", &policy("a wins by policy"), all);
    // every writable site is fenced, the winner and dr-only sites too
    let three = "authority unknown: no record, a, b, c writable, a wins by policy";
    check("no-record list=a", "a writable | b writable | c dr writable", three, "a NoRecord, b NoRecord, c NoRecord");
    // no list, or no writable primary-candidate in it: the leader only alerts
    check("no-record", "a writable | b writable", &policy("no policy decides"), "");
    check("no-record list=c", "a writable | b writable | c read-only", &policy("no policy decides"), "");
    check("no-record list=b", "a writable | b dr writable", &policy("no policy decides"), "");
    check_alert("no-record", "a writable | b writable", "SplitBrain: SPLIT BRAIN: both sites are writable");
    let three = "SplitBrain: SPLIT BRAIN: 3 sites are writable (a, b, c)";
    check_alert("no-record", "a writable | b writable | c writable", three);
    // one writable site without a record is no split brain
    check("no-record", "a writable | b read-only", "authority unknown: no record", "");
}

#[test]
fn f_25_a_half_open_pair_is_fenced_on_sight_whatever_the_state() {
    check("", "a* writable | b read-only 1/0", "healthy: a", "b NotTheHolder");
    check("", "a* writable | b read-only 0/1", "healthy: a", "b NotTheHolder");
    check("", "a* writable | b unknown 0/1", "wait: b unknown", "b NotTheHolder");
    check("", "a* writable 0/1 | b read-only", "healthy: a", "");
}

#[test]
fn f_44_the_operators_own_fence_is_lifted_and_a_humans_stays() {
    let again = "regrant: a was fenced by the operator's own SQL fence";
    check("sql-fence-sent", "a* read-only by-others | b read-only", again, "");
    check("sql-fence-sent", "a* read-only by-others 2-polls | b read-only", again, "");
    let humans = "no primary: a has authority and is fenced by hand; the fence stays until it is lifted by hand";
    check("", "a* read-only by-others | b read-only", humans, "");
    check(
        "sql-fence-sent",
        "a* read-only by-boot | b read-only",
        "no primary: a has authority and is fenced since its start",
        "",
    );
    check("", "a* read-only by-conflict | b read-only", "regrant: a was fenced by two views of one epoch", "");
    check("sql-fence-sent", "a* writable | b read-only by-others", "healthy: a", "");
}

#[test]
fn data_are_lost_only_if_there_were_any() {
    let none = GtidSet::new();
    let some: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse().expect("a set");
    let check = |own: &GtidSet, promotion: &GtidSet, others: &[&GtidSet], lost: bool| {
        assert_eq!(data_lost(own, promotion, others.iter().copied()), lost, "{own:?} {promotion:?} {others:?}");
    };
    check(&none, &none, &[&none], false);
    check(&none, &some, &[&none], true);
    check(&none, &none, &[&none, &some], true);
    check(&some, &some, &[&some], false);
    check(&some, &none, &[], false);
}

#[test]
fn while_revoking_nobody_may_write_whatever_else_the_record_says() {
    let (facts, _) = facts("a writable");
    let holder = Member::new(facts.site(), &Instance::new("a", "1"));
    let revoking = Record { seat: Some(holder.clone()), ..record(Some(holder), Phase::Revoking, false) };
    let picture = Picture {
        record: Some(&revoking),
        highest_heard: 7,
        sites: std::slice::from_ref(&facts),
        priorities: &[],
        failure_threshold: 3,
        fresh_and_empty: false,
    };
    let fence: Vec<WriterReason> = judge(&picture).fence.iter().map(|writer| writer.why).collect();
    assert_eq!(fence, [WriterReason::Revoked]);
}

#[test]
fn a_fenced_writer_is_named_with_its_instance_and_variables() {
    let judgement = judged("", "a* writable | b read-only 0/1 new");
    let writer = judgement.fence.first().expect("a writer");
    assert_eq!(writer.instance, Some(Instance::new("b", "2")));
    assert_eq!(writer.pair.map(|pair| pair.to_string()).as_deref(), Some("0/1"));
}
