//! The election, step by step; all schedules together are in the model beside.

use super::*;
use crate::time::Now;

const ME: &str = "bloodraven-0_uid-a";
const OTHER: &str = "bloodraven-1_uid-b";
/// The times of [`Times::default`], in milliseconds.
const LEASE: u64 = 15_000;
const RENEW: u64 = 10_000;
const RETRY: u64 = 2_000;

/// One candidate, driven by hand; moments are milliseconds after its start.
struct Driver {
    election: Election,
    heard: Vec<String>,
    versions: u32,
}

fn lease(version: &str, holder: Option<&str>) -> Lease {
    Lease {
        version: version.into(),
        holder: holder.map(Into::into),
        duration: Some(Millis(LEASE)),
        acquired: Some("then".into()),
        renewed: Some(version.into()),
        transitions: 4,
    }
}

fn moment(at: u64) -> Now {
    Now { boot: Boot(1_000_000 + at), wall: Wall(0) }
}

impl Driver {
    fn new() -> Self {
        Self { election: Election::new(ME, Times::default(), moment(0).boot), heard: Vec::new(), versions: 0 }
    }

    fn step(&mut self, at: u64, input: Input) -> Option<Command> {
        let out = self.election.step(moment(at), input);
        self.heard.extend(out.notices.iter().map(|notice| match notice {
            Notice::Elected(until) => format!("{at} elected until {}", until.0 - 1_000_000),
            Notice::Lost(why) => format!("{at} lost: {why:?}"),
            Notice::Follows(holder) => format!("{at} follows {holder}"),
            Notice::Released => format!("{at} released"),
            Notice::Stopped => format!("{at} stopped"),
        }));
        out.command
    }

    fn tick(&mut self, at: u64) -> Option<Command> {
        self.step(at, Input::Tick)
    }

    /// A tick asks for a read, which finds that at once.
    fn look(&mut self, at: u64, found: Found) -> Option<Command> {
        let Some(Command::Read(id)) = self.tick(at) else { panic!("no read at {at}") };
        self.step(at, Input::Read(id, found))
    }

    /// That write is done; the answer comes at that moment.
    fn done(&mut self, at: u64, command: Option<&Command>) -> Option<Command> {
        self.versions += 1;
        let stored = lease(&format!("ours-{}", self.versions), Some(ME));
        self.step(at, Input::Wrote(write_id(command), Written::Done(stored)))
    }

    /// Elected by a create that was sent at 0 and answered at once.
    fn elected() -> Self {
        let mut driver = Self::new();
        let create = driver.look(0, Found::Absent);
        assert!(matches!(create, Some(Command::Create(..))));
        driver.done(0, create.as_ref());
        driver.heard.clear();
        driver
    }

    fn leads(&self, at: u64) -> bool {
        self.election.leads(moment(at).boot)
    }
}

fn write_id(command: Option<&Command>) -> CallId {
    match command {
        Some(Command::Create(id, _) | Command::Update(id, _, _) | Command::Release(id, _, _)) => *id,
        other => panic!("no write: {other:?}"),
    }
}

fn is_update_of(command: Option<&Command>, expected: &str) -> bool {
    matches!(command, Some(Command::Update(_, version, lease))
        if &**version == expected && lease.holder.as_deref() == Some(ME))
}

#[test]
fn leadership_counts_from_the_sending_of_the_renewal() {
    let mut driver = Driver::new();
    let create = driver.look(0, Found::Absent);
    driver.done(4_000, create.as_ref());
    assert_eq!(driver.heard, ["4000 elected until 10000"]);
    assert!(driver.leads(RENEW - 1) && !driver.leads(RENEW));
    // the next attempt is due a retry period after the last was sent, or now
    let renewal = driver.tick(4_000);
    assert!(is_update_of(renewal.as_ref(), "ours-1"));
    driver.done(8_500, renewal.as_ref());
    assert_eq!(driver.election.leads_until(), Some(moment(14_000).boot));
}

#[test]
fn an_answer_that_comes_after_the_deadline_elects_nobody() {
    let mut driver = Driver::new();
    let create = driver.look(0, Found::Absent);
    driver.done(RENEW, create.as_ref());
    assert_eq!(driver.heard, [""; 0]);
    assert!(!driver.leads(RENEW));
}

#[test]
fn a_leader_renews_each_retry_period_and_stays() {
    let mut driver = Driver::elected();
    for at in (RETRY..60_000).step_by(2_000) {
        assert_eq!(driver.tick(at - 1), None, "too early");
        let renewal = driver.tick(at);
        driver.done(at + 5, renewal.as_ref());
        assert!(driver.leads(at + RENEW - 1));
    }
    assert_eq!(driver.heard, [""; 0]);
}

#[test]
fn an_unknown_outcome_prolongs_nothing() {
    let mut driver = Driver::elected();
    let renewal = driver.tick(RETRY);
    let id = write_id(renewal.as_ref());
    assert_eq!(driver.step(3_000, Input::Wrote(id, Written::Unknown)), None);
    assert_eq!(driver.election.leads_until(), Some(moment(RENEW).boot));
    // it looks before it writes again: the version may be another
    let renewal = driver.look(RETRY + RETRY, Found::Lease(lease("ours-landed", Some(ME))));
    assert!(is_update_of(renewal.as_ref(), "ours-landed"));
    driver.done(4_001, renewal.as_ref());
    assert_eq!(driver.election.leads_until(), Some(moment(4_000 + RENEW).boot));
    assert_eq!(driver.heard, [""; 0]);
}

#[test]
fn a_call_without_an_answer_is_given_up_and_leadership_ends_in_time() {
    let mut driver = Driver::elected();
    driver.tick(RETRY);
    assert_eq!(driver.tick(6_999), None, "one call at a time");
    let Some(Command::Read(lost)) = driver.tick(7_000) else { panic!("no read") };
    assert!(driver.tick(9_999).is_none() && driver.leads(9_999));
    driver.tick(RENEW);
    assert_eq!(driver.heard, ["10000 lost: Deadline"]);
    // the answer to a call that was given up decides nothing
    driver.tick(12_000);
    assert_eq!(driver.step(12_001, Input::Read(lost, Found::Lease(lease("ours-1", Some(ME))))), None);
}

#[test]
fn a_second_answer_decides_nothing() {
    let mut driver = Driver::elected();
    let renewal = driver.tick(RETRY);
    driver.done(RETRY, renewal.as_ref());
    let before = driver.election.clone();
    driver.done(9_000, renewal.as_ref());
    assert_eq!(driver.election, before);
}

#[test]
fn anothers_lease_is_over_only_when_we_saw_it_unchanged_for_its_duration() {
    let mut driver = Driver::new();
    let theirs = || Found::Lease(lease("v1", Some(OTHER)));
    for at in (0..LEASE).step_by(2_000) {
        assert_eq!(driver.look(at, theirs()), None, "at {at}");
    }
    // a renewal, however late it comes, starts the wait anew
    assert_eq!(driver.look(16_000, Found::Lease(lease("v2", Some(OTHER)))), None);
    for at in (18_000..16_000 + LEASE).step_by(2_000) {
        assert_eq!(driver.look(at, Found::Lease(lease("v2", Some(OTHER)))), None, "at {at}");
    }
    let take = driver.look(32_000, Found::Lease(lease("v2", Some(OTHER))));
    let Some(Command::Update(_, version, lease)) = &take else { panic!("{take:?}") };
    assert_eq!((&**version, lease.transitions, &lease.acquired), ("v2", 5, &Acquired::At(Wall(0))));
    driver.done(32_010, take.as_ref());
    assert_eq!(driver.heard, [format!("0 follows {OTHER}"), "32010 elected until 42000".to_owned()]);
}

#[test]
fn any_change_of_anothers_lease_is_a_sign_of_life() {
    let before = || lease("v1", Some(OTHER));
    let changed = |change: Lease| {
        let mut driver = Driver::new();
        assert_eq!(driver.look(0, Found::Lease(before())), None);
        driver.look(LEASE, Found::Lease(change)).is_none()
    };
    assert!(!changed(before()), "unchanged: over");
    assert!(changed(Lease { version: "v2".into(), ..before() }));
    assert!(changed(Lease { renewed: Some("later".into()), ..before() }));
    assert!(changed(lease("v2", Some("bloodraven-2_uid-c"))));
}

#[test]
fn a_longer_duration_of_the_holder_is_respected_and_stamps_are_not_compared() {
    let mut driver = Driver::new();
    let theirs = || Found::Lease(Lease { duration: Some(Millis(60_000)), ..lease("v1", Some(OTHER)) });
    assert_eq!(driver.look(0, theirs()), None);
    assert_eq!(driver.look(59_999, theirs()), None);
    assert!(is_update_of(driver.look(62_000, theirs()).as_ref(), "v1"));
    // no duration, no stamp: our own duration
    let bare = || Found::Lease(Lease { duration: None, renewed: None, ..lease("v1", Some(OTHER)) });
    let mut driver = Driver::new();
    assert_eq!(driver.look(0, bare()), None);
    assert!(is_update_of(driver.look(LEASE, bare()).as_ref(), "v1"));
}

#[test]
fn failed_reads_do_not_start_the_wait_anew() {
    let mut driver = Driver::new();
    assert_eq!(driver.look(0, Found::Lease(lease("v1", Some(OTHER)))), None);
    assert_eq!(driver.look(RETRY, Found::Failed), None);
    assert!(is_update_of(driver.look(LEASE, Found::Lease(lease("v1", Some(OTHER)))).as_ref(), "v1"));
}

#[test]
fn our_own_lease_is_taken_back_at_once_after_a_restart() {
    let mut driver = Driver::new();
    let take = driver.look(0, Found::Lease(lease("v9", Some(ME))));
    let Some(Command::Update(_, version, lease)) = &take else { panic!("{take:?}") };
    let kept = Acquired::AsRead(Some("then".into()));
    assert_eq!((&**version, lease.transitions, &lease.acquired), ("v9", 4, &kept));
    driver.done(5, take.as_ref());
    assert_eq!(driver.heard, ["5 elected until 10000"]);
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut driver = Driver::new();
    assert_eq!(driver.look(0, Found::Lease(lease("v1", Some(OTHER)))), None);
    assert!(is_update_of(driver.look(RETRY, Found::Lease(lease("v2", None))).as_ref(), "v2"));
}

#[test]
fn a_lost_race_waits_a_retry_period() {
    let mut driver = Driver::new();
    let take = driver.look(0, Found::Lease(lease("v1", None)));
    assert_eq!(driver.step(3, Input::Wrote(write_id(take.as_ref()), Written::Conflict)), None);
    assert_eq!(driver.tick(RETRY + 2), None);
    assert_eq!(driver.look(RETRY + 3, Found::Lease(lease("v2", Some(OTHER)))), None);
    assert_eq!(driver.heard, [format!("2003 follows {OTHER}")]);
}

#[test]
fn a_leader_whose_renewal_is_refused_looks_at_once() {
    let refused = |found: Found| {
        let mut driver = Driver::elected();
        let renewal = driver.tick(RETRY);
        let conflict = Input::Wrote(write_id(renewal.as_ref()), Written::Conflict);
        let Some(Command::Read(id)) = driver.step(2_010, conflict) else { panic!("no read") };
        let next = driver.step(2_020, Input::Read(id, found));
        (driver.heard.join(", "), next)
    };
    // somebody touched the object: still ours
    let (heard, next) = refused(Found::Lease(lease("touched", Some(ME))));
    assert!(heard.is_empty() && is_update_of(next.as_ref(), "touched"));
    // taken, cleared, deleted: another may act, so we do not
    let (heard, next) = refused(Found::Lease(lease("v2", Some(OTHER))));
    assert_eq!((heard, next), (format!("2020 follows {OTHER}, 2020 lost: Taken({OTHER:?})"), None));
    let (heard, next) = refused(Found::Lease(lease("v2", None)));
    assert!(heard == "2020 lost: Cleared" && is_update_of(next.as_ref(), "v2"));
    let (heard, next) = refused(Found::Absent);
    assert!(heard == "2020 lost: Deleted" && matches!(next, Some(Command::Create(..))));
}

#[test]
fn a_lease_that_was_deleted_under_another_is_waited_for() {
    let mut driver = Driver::new();
    assert_eq!(driver.look(0, Found::Lease(lease("v1", Some(OTHER)))), None);
    assert_eq!(driver.look(RETRY, Found::Absent), None);
    assert_eq!(driver.look(LEASE - 1, Found::Absent), None);
    assert!(matches!(driver.look(LEASE + RETRY, Found::Absent), Some(Command::Create(..))));
    let mut driver = Driver::new();
    assert_eq!(driver.look(0, Found::Lease(lease("v1", Some(OTHER)))), None);
    let create = driver.look(LEASE, Found::Absent);
    assert!(matches!(create, Some(Command::Create(..))), "at the very moment that its wait is over");
}

#[test]
fn a_release_ends_leadership_before_it_is_sent_whatever_its_outcome() {
    for written in [Written::Done(lease("free", None)), Written::Unknown, Written::Conflict] {
        let mut driver = Driver::elected();
        let release = driver.step(1_000, Input::Shutdown);
        let Some(Command::Release(id, version, lease)) = &release else { panic!("{release:?}") };
        assert_eq!((&**version, &lease.holder), ("ours-1", &None));
        assert!(!driver.leads(1_000), "{written:?}");
        assert_eq!(driver.election.leads_until(), None);
        let id = *id;
        driver.step(1_010, Input::Wrote(id, written));
        assert!(!driver.leads(1_010));
        assert_eq!(driver.heard.first().map(String::as_str), Some("1000 lost: Shutdown"));
    }
}

#[test]
fn a_release_is_tried_three_times_at_most() {
    let mut driver = Driver::elected();
    let mut command = driver.step(1_000, Input::Shutdown);
    let mut calls = 0;
    // each try that is refused looks again: 2 calls a try, the bound of this loop is generous
    while let Some(next) = command.take().filter(|_| calls < 20) {
        calls += 1;
        let input = match next {
            Command::Read(id) => Input::Read(id, Found::Lease(lease("again", Some(ME)))),
            Command::Release(id, ..) => Input::Wrote(id, Written::Conflict),
            other => panic!("{other:?}"),
        };
        command = driver.step(1_000 + calls, input);
    }
    assert_eq!(calls, 5);
    assert_eq!(driver.heard, ["1000 lost: Shutdown", "1005 stopped"]);
    assert_eq!((driver.tick(99_000), driver.election.wake_at()), (None, None));
}

#[test]
fn a_release_waits_for_the_renewal_in_flight_to_learn_its_version() {
    let mut driver = Driver::elected();
    let renewal = driver.tick(RETRY);
    assert_eq!(driver.step(2_001, Input::Shutdown), None);
    assert!(!driver.leads(2_001));
    let release = driver.done(2_002, renewal.as_ref());
    let Some(Command::Release(id, version, _)) = release else { panic!("{release:?}") };
    assert_eq!(&*version, "ours-2");
    driver.step(2_003, Input::Wrote(id, Written::Done(lease("free", None))));
    assert_eq!(driver.heard, ["2001 lost: Shutdown", "2003 released", "2003 stopped"]);
}

#[test]
fn a_follower_that_is_asked_to_end_leaves_the_lease_alone() {
    let mut driver = Driver::new();
    driver.look(0, Found::Lease(lease("v1", Some(OTHER))));
    assert_eq!(driver.step(5, Input::Shutdown), None);
    assert_eq!(driver.heard, [format!("0 follows {OTHER}"), "5 stopped".to_owned()]);
    assert_eq!(driver.election.holder(), Some(OTHER));
}

#[test]
fn it_says_when_it_wants_to_be_woken() {
    let mut driver = Driver::new();
    let wake = |driver: &Driver| driver.election.wake_at().map(|at| at.0 - 1_000_000);
    assert_eq!(wake(&driver), Some(0));
    let create = driver.look(0, Found::Absent);
    assert_eq!(wake(&driver), Some(5_000), "the call's deadline");
    driver.done(1, create.as_ref());
    assert_eq!(wake(&driver), Some(RETRY), "the next renewal");
    driver.tick(6_000);
    assert_eq!(wake(&driver), Some(RENEW), "the end of leadership, before the call's deadline");
}

/// Whoever waits for another's lease looks again after the retry period, not before.
#[test]
fn waiting_takes_a_retry_period() {
    let mut driver = Driver::new();
    assert_eq!(driver.look(0, Found::Lease(lease("theirs", Some(OTHER)))), None);
    assert_eq!(driver.election.wake_at(), Some(moment(RETRY).boot));
    assert_eq!(driver.look(RETRY, Found::Absent), None, "it may lead on for a while");
    assert_eq!(driver.election.wake_at(), Some(moment(2 * RETRY).boot));

    let mut driver = Driver::new();
    let create = driver.look(0, Found::Absent);
    driver.step(1, Input::Wrote(write_id(create.as_ref()), Written::Unknown));
    assert_eq!(driver.election.wake_at(), Some(moment(RETRY).boot), "counted from the sending");
}

/// A write of ours that came back with another's name makes nobody a leader.
#[test]
fn a_lease_that_names_another_is_not_led_by() {
    let mut driver = Driver::new();
    let create = driver.look(0, Found::Absent);
    driver.step(1, Input::Wrote(write_id(create.as_ref()), Written::Done(lease("theirs", Some(OTHER)))));
    assert!(!driver.leads(2), "{:?}", driver.heard);
}

/// Who stops and finds another's lease leaves it alone; who stops while its own write is under way waits for its end.
#[test]
fn a_release_is_of_our_own_lease_only() {
    let mut driver = Driver::elected();
    let update = driver.tick(RETRY);
    assert_eq!(driver.step(RETRY + 1, Input::Shutdown), None, "its end brings the version");
    let Some(Command::Read(id)) = driver.step(RETRY + 2, Input::Wrote(write_id(update.as_ref()), Written::Unknown))
    else {
        panic!("it looks first")
    };
    assert_eq!(driver.step(RETRY + 3, Input::Read(id, Found::Lease(lease("theirs", Some(OTHER))))), None);
    assert_eq!(driver.heard.last().map(String::as_str), Some("2003 stopped"));

    let mut driver = Driver::new();
    let create = driver.look(0, Found::Absent);
    assert_eq!(driver.step(1, Input::Shutdown), None);
    assert!(driver.heard.is_empty(), "it may be ours any moment: {:?}", driver.heard);
    assert!(matches!(driver.done(2, create.as_ref()), Some(Command::Release(..))));

    let mut driver = Driver::new();
    assert!(matches!(driver.tick(0), Some(Command::Read(_))));
    driver.step(1, Input::Shutdown);
    assert_eq!(driver.heard, ["1 stopped"], "nothing of ours is under way");
}
