//! Who is counted (safety.md 6, Voters).

use super::*;
use crate::authority::note_end;
use crate::authority::voters::{outlived_sets, wanted};

const IAD: &str = "iad";
const PDX: &str = "pdx";
const FRA: &str = "fra";

/// Lease in milliseconds.
const LEASE: u64 = 20 * SECOND;

fn sites() -> Vec<Site> {
    [IAD, PDX, FRA].into_iter().map(Site::new).collect()
}

/// The holder spoke at that time, and so long ago each of these sites had answered it.
fn holder_says(record: &Record, evidence: &mut Evidence, boot: u64, uptime: u64, answers: &[(&str, u64)]) {
    let mut ack = Ack { uptime: Millis(uptime), ..ack(&member(IAD), record.epoch) };
    ack.last_answer.extend(answers.iter().map(|(site, age)| (Site::new(site), Millis(*age))));
    evidence.take(record, &ack, Boot(boot), Millis(0));
}

fn names(voters: Option<Vec<Member>>) -> Option<Vec<String>> {
    voters.map(|voters| voters.iter().map(|voter| format!("{}/{}", voter.site, voter.instance.store)).collect())
}

/// Dropped is who was silent for a lease to the leader and, by the holder's words, to the holder; not one of them alone.
#[test]
fn f_41_a_voter_is_dropped_only_when_silent_to_leader_and_holder() {
    let record = stable(&[IAD, PDX, FRA], 1);
    let now = ELECTED + 60 * SECOND;
    let check = |fra_spoke: u64, holder_spoke: u64, uptime: u64, answers: &[(&str, u64)], dropped: bool| {
        let mut evidence = Evidence::new(Boot(ELECTED));
        evidence.take(&record, &ack(&member(PDX), 5), Boot(now), Millis(0));
        evidence.take(&record, &ack(&member(FRA), 5), Boot(fra_spoke), Millis(0));
        holder_says(&record, &mut evidence, holder_spoke, uptime, answers);
        let expect = dropped.then(|| vec!["iad/s1".to_owned(), "pdx/s1".to_owned()]);
        assert_eq!(names(wanted(&record, &evidence, &sites(), Boot(now))), expect, "{fra_spoke} {answers:?}");
    };
    let old = 600 * SECOND;
    check(now - LEASE, now, old, &[(FRA, LEASE)], true);
    check(now - LEASE, now, old, &[], true);
    check(now - LEASE + 1, now, old, &[(FRA, LEASE)], false);
    check(now - LEASE, now, old, &[(FRA, LEASE - 1)], false);
    check(now - LEASE, now - LEASE, old, &[(FRA, LEASE)], false);
    check(now - LEASE, now - LEASE + 1, old, &[(FRA, LEASE)], true);
    // A holder's sidecar that has just started has heard from nobody, which says nothing.
    check(now - LEASE, now, LEASE - 1, &[], false);
    check(now - LEASE, now, LEASE, &[], true);
}

/// A leader that was just elected has heard from nobody, which says nothing either.
#[test]
fn a_new_leader_drops_nobody_within_a_lease() {
    let record = stable(&[IAD, PDX, FRA], 1);
    let mut evidence = Evidence::new(Boot(ELECTED));
    let check = |evidence: &mut Evidence, boot: u64, expect: Option<usize>| {
        holder_says(&record, evidence, boot, 600 * SECOND, &[(PDX, 0), (FRA, 60_000)]);
        let voters = wanted(&record, evidence, &sites(), Boot(boot));
        assert_eq!(voters.map(|voters| voters.len()), expect);
    };
    // What a peer hands on from before the election does not count as silence since then.
    evidence.take(&record, &ack(&member(FRA), 5), Boot(ELECTED), Millis(10 * SECOND));
    check(&mut evidence, ELECTED + LEASE - 1, None);
    check(&mut evidence, ELECTED + LEASE, Some(2));
}

/// F-27, F-35: a new instance that speaks takes its site's place, unless the old one is the seat.
#[test]
fn f_27_a_new_instance_takes_the_place_of_the_old_voter() {
    let record = stable(&[IAD, PDX], 1);
    let check = |record: &Record, newcomer: &Member, uptime: u64, at: u64, expect: Option<&[&str]>| {
        let mut evidence = Evidence::new(Boot(ELECTED));
        evidence.take(record, &ack(&member(PDX), 5), Boot(ELECTED), Millis(0));
        let young = Ack { uptime: Millis(uptime), ..ack(newcomer, 5) };
        evidence.take(record, &young, Boot(ELECTED), Millis(0));
        let expect = expect.map(|names| names.iter().map(ToString::to_string).collect());
        assert_eq!(names(wanted(record, &evidence, &sites(), Boot(at))), expect, "{newcomer}");
    };
    check(&record, &instance(PDX, "s2"), 10, ELECTED, Some(&["iad/s1", "pdx/s2"]));
    check(&record, &instance(FRA, "s1"), 10, ELECTED, Some(&["iad/s1", "pdx/s1", "fra/s1"]));
    check(&record, &instance(IAD, "s2"), 10, ELECTED, None);
    check(&record, &instance(PDX, "s0"), 3600 * SECOND, ELECTED, None);
    check(&record, &instance(PDX, "s2"), 10, ELECTED + LEASE, None);
    check(&record, &instance("lon", "s1"), 10, ELECTED, None);
    let revoked = revoked(&[IAD, PDX], 1);
    check(&revoked, &instance(IAD, "s2"), 10, ELECTED, Some(&["iad/s2", "pdx/s1"]));
}

/// F-27: two lives of one site that speak at once do not take turns, however often their sidecars restart; who was
/// replaced comes back only when the other one is silent for a lease or has ended.
#[test]
fn f_27_two_live_instances_of_one_site_do_not_take_turns() {
    let (old, new) = (member(PDX), instance(PDX, "s2"));
    let first = stable(&[IAD, PDX], 1);
    let mut evidence = Evidence::new(Boot(ELECTED));
    let speaks = |evidence: &mut Evidence, record: &Record, who: &Member, boot: u64, uptime: u64| {
        evidence.take(record, &Ack { uptime: Millis(uptime), ..ack(who, record.epoch) }, Boot(boot), Millis(0));
    };
    speaks(&mut evidence, &first, &old, ELECTED, 600 * SECOND);
    speaks(&mut evidence, &first, &new, ELECTED, 10);
    let second = with_voters(&first, &wanted(&first, &evidence, &sites(), Boot(ELECTED)).expect("the new one"));
    assert!(second.voters.contains(&new));
    for round in 1..10 {
        let now = ELECTED + round * SECOND;
        speaks(&mut evidence, &second, &new, now, round * SECOND);
        speaks(&mut evidence, &second, &old, now, 10);
        assert_eq!(names(wanted(&second, &evidence, &sites(), Boot(now))), None, "the old one's sidecar restarted");
    }
    let ended = note_end(&second, &new, Wall(0));
    let back = Some(vec!["iad/s1".to_owned(), "pdx/s1".to_owned()]);
    assert_eq!(names(wanted(&ended, &evidence, &sites(), Boot(ELECTED + 9 * SECOND))), back);
    let later = ELECTED + 9 * SECOND + LEASE;
    speaks(&mut evidence, &second, &old, later, 10);
    assert_eq!(names(wanted(&second, &evidence, &sites(), Boot(later))), back, "silent for a lease");
}

/// P-23, C-132: ended voters go, but not below two: the new instance of the last living site must be taken in.
#[test]
fn p_23_a_new_instance_is_taken_in_even_if_every_other_voter_has_ended() {
    let check = |record: &Record, ended: &[Member], speaking: &[Member], expect: Option<&[&str]>| {
        let record = ended.iter().fold(record.clone(), |record, member| note_end(&record, member, Wall(0)));
        let mut evidence = Evidence::new(Boot(ELECTED));
        for member in speaking {
            evidence.take(&record, &ack(member, 6), Boot(ELECTED), Millis(0));
        }
        let expect = expect.map(|names| names.iter().map(ToString::to_string).collect());
        assert_eq!(names(wanted(&record, &evidence, &sites(), Boot(ELECTED))), expect, "{ended:?}");
    };
    let two = revoked(&[IAD, PDX], 1);
    let (iad, pdx) = (member(IAD), member(PDX));
    let (new_iad, new_pdx) = (instance(IAD, "s2"), instance(PDX, "s2"));
    let both = [iad.clone(), pdx.clone()];
    check(&two, &both, &[new_iad.clone(), new_pdx], Some(&["iad/s2", "pdx/s2"]));
    check(&two, &both, std::slice::from_ref(&new_iad), Some(&["iad/s2", "pdx/s1"]));
    check(&two, &both, &[], None);
    check(&revoked(&[IAD, PDX, FRA], 1), &[pdx], &[iad.clone(), member(FRA)], Some(&["iad/s1", "fra/s1"]));
    // A group that was begun with its seed site alone.
    check(&revoked(&[IAD], 1), std::slice::from_ref(&iad), &[new_iad], Some(&["iad/s2"]));
}

/// F-34: an old set leaves a lease and its margin after the holder's first acknowledgement of a later epoch.
#[test]
fn f_34_an_old_set_leaves_after_the_holder_acknowledged_a_later_epoch() {
    let record = with_voters(&stable(&[IAD, PDX, FRA], 1), &members(&[IAD, PDX]));
    let record = with_voters(&record, &members(&[IAD, FRA]));
    let check = |acks: &[(u64, Ack)], boot: u64, expect: &[Epoch]| {
        let mut evidence = Evidence::new(Boot(ELECTED));
        for (received, ack) in acks {
            evidence.take(&record, ack, Boot(ELECTED + received), Millis(0));
        }
        assert_eq!(outlived_sets(&record, &evidence, Boot(ELECTED + boot)), expect, "{boot}");
    };
    let holder = |epoch| ack(&member(IAD), epoch);
    check(&[], 999 * SECOND, &[]);
    check(&[(0, holder(5))], 999 * SECOND, &[]);
    check(&[(0, holder(6))], RUN_OUT - 1, &[]);
    check(&[(0, holder(6))], RUN_OUT, &[5]);
    check(&[(0, holder(7))], RUN_OUT, &[5, 6]);
    check(&[(0, holder(6)), (9000, holder(7))], RUN_OUT + 8999, &[5]);
    check(&[(0, holder(6)), (9000, holder(7))], RUN_OUT + 9000, &[5, 6]);
    check(&[(0, holder(7)), (9000, holder(7))], RUN_OUT, &[5, 6]);
    check(&[(0, ack(&member(PDX), 7))], 999 * SECOND, &[]);
    check(&[(0, ack(&instance(IAD, "s2"), 7))], 999 * SECOND, &[]);
}

/// F-34: each set waits for its own lease.
#[test]
fn f_34_each_old_set_has_its_own_lease() {
    let mut record = with_voters(&stable(&[IAD, PDX, FRA], 1), &members(&[IAD, PDX]));
    record.holder.as_mut().expect("a holder").sets[0].settings.lease_timeout = Millis(60 * SECOND);
    let mut evidence = Evidence::new(Boot(ELECTED));
    evidence.take(&record, &ack(&member(IAD), 6), Boot(ELECTED), Millis(0));
    assert_eq!(outlived_sets(&record, &evidence, Boot(ELECTED + 63_599)), []);
    assert_eq!(outlived_sets(&record, &evidence, Boot(ELECTED + 63_600)), [5]);
}

/// F-34: a clock that was begun goes on while Revoking: a dead voter of a set that the holder gave up holds nothing up.
#[test]
fn f_34_an_old_set_leaves_while_revoking_too() {
    let record = with_voters(&stable(&[IAD, PDX, FRA], 1), &members(&[IAD, PDX]));
    let mut evidence = Evidence::new(Boot(ELECTED));
    evidence.take(&record, &ack(&member(IAD), 6), Boot(ELECTED), Millis(0));
    let revoked = revoke(&record, Cause::Emergency, Wall(0));
    evidence.take(&revoked, &ack(&member(PDX), 7), Boot(ELECTED + 9000), Millis(0));
    assert_eq!(required(&revoked, &evidence, ELECTED + 999 * SECOND), Err(None), "fra is dead");
    let gone = outlived_sets(&revoked, &evidence, Boot(ELECTED + RUN_OUT));
    let revoked = crate::authority::drop_sets(&revoked, &gone);
    assert_eq!(set_epochs(&revoked), [6]);
    assert_eq!(required(&revoked, &evidence, ELECTED + RUN_OUT), Ok(ProofKind::LeaseExpired));
}

/// A site that is declared no more leaves no holder alone: two stay, or nothing changes.
#[test]
fn two_voters_stay_also_when_sites_are_removed() {
    let record = stable(&["iad", "pdx"], 1);
    let mut evidence = Evidence::new(Boot(ELECTED));
    for voter in &record.voters {
        evidence.take(&record, &ack(voter, 5), Boot(ELECTED), Millis(0));
    }
    let sites = |names: &[&str]| names.iter().map(|name| Site::new(name)).collect::<Vec<_>>();
    assert_eq!(wanted(&record, &evidence, &sites(&["iad"]), Boot(ELECTED)), None);
    assert_eq!(wanted(&record, &evidence, &sites(&[]), Boot(ELECTED)), None);
}

/// F-34: the clock of a set that was dropped is forgotten, those of the others go on.
#[test]
fn f_34_a_clock_goes_with_its_set() {
    let mut record = stable(&["iad", "pdx"], 1);
    for epoch in [6, 7] {
        record = with_voters(&record, &members(if epoch == 6 { &["iad", "pdx", "fra"] } else { &["iad", "pdx"] }));
        assert_eq!(record.epoch, epoch);
    }
    let mut evidence = Evidence::new(Boot(ELECTED));
    evidence.take(&record, &ack(&member("iad"), 7), Boot(ELECTED), Millis(0));
    assert_eq!(evidence.set_clocks.keys().copied().collect::<Vec<_>>(), [5, 6]);
    let record = crate::authority::drop_sets(&record, &[5]);
    evidence.take(&record, &ack(&member("iad"), 7), Boot(ELECTED + 1), Millis(0));
    assert_eq!(evidence.set_clocks.into_iter().collect::<Vec<_>>(), [(6, Boot(ELECTED))]);
}

/// So many of the gone stay listed as are missing to two, and not one more.
#[test]
fn of_several_that_are_gone_only_so_many_stay_as_two_voters_need() {
    let record = stable(&[IAD, PDX, FRA], 1);
    let record = note_end(&note_end(&record, &member(PDX), Wall(0)), &member(FRA), Wall(0));
    let voters = wanted(&record, &Evidence::new(Boot(ELECTED)), &sites(), Boot(ELECTED));
    assert_eq!(names(voters), Some(vec!["iad/s1".to_owned(), "pdx/s1".to_owned()]));
}
