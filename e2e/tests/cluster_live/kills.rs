//! The operator is killed in the middle of failovers, at one moment after another; each ends as if it had lived.
//!
//! In: a stage with a whole group, and how often. Out: a line for each, and at which point of the move it was. Must not: count
//! one that came before the move began or after it had ended.

use std::collections::BTreeMap;
use std::time::Duration;

use bloodraven_testbed::cluster::Container;
use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait;
use rustix::process::{Pid, Signal, kill_process};

use super::scenes::{Cast, HEALS_WITHIN};
use super::seen::SOON;
use super::stage::OPERATORS;

/// Kills that came too late are made again, as often as this in all for each that counts.
const TRIES: u32 = 4;

/// A move that nobody sees begin within this has not begun.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);

/// Kills it until so many came in the middle of a move.
pub(crate) fn play(cast: &Cast<'_>, wanted: u32) {
    let mut points: BTreeMap<String, u32> = BTreeMap::new();
    let mut counted = 0;
    let mut aim = Aim { round: 0, window: Duration::from_millis(600) };
    while counted < wanted && aim.round < wanted * TRIES {
        let delay = aim.next();
        let point = if aim.round % 3 == 2 { in_emergency(cast, delay) } else { in_planned(cast, delay) };
        aim.learn(point.is_some());
        if let Some(point) = point {
            counted += 1;
            say(&format!("{counted} of {wanted}: killed at {point}, same end"));
            *points.entry(point).or_default() += 1;
        }
    }
    say(&format!("killed in a move {counted} times of {wanted} ({} kills in all), at: {points:?}", aim.round));
    assert_eq!(counted, wanted, "too few of the kills came in the middle of a move");
}

/// When to kill: how long a move takes is found out, it depends on the machine.
struct Aim {
    round: u32,
    window: Duration,
}

impl Aim {
    /// The moments are spread evenly over the window, whatever their number: each is the golden part after the last.
    fn next(&mut self) -> Duration {
        self.round += 1;
        self.window.mul_f64((f64::from(self.round) * 0.618_033_988_75).fract())
    }

    fn learn(&mut self, in_the_move: bool) {
        self.window = self.window.mul_f64(if in_the_move { 1.05 } else { 0.85 });
    }
}

fn in_planned(cast: &Cast<'_>, delay: Duration) -> Option<String> {
    let before = cast.stage.active();
    let to = cast.stage.other_candidate(&before);
    let moves = cast.seen.moves();
    let victim = Victim::find(cast);
    // The request takes longer to be made than the move may take.
    let point = std::thread::scope(|scope| {
        scope.spawn(|| cast.stage.ask_for(to));
        wait::until_every(BEGINS_WITHIN, SOON, || cast.seen.point()).expect("the move begins");
        victim.kill_after(cast, delay)
    });
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    cast.stage.wait_until("the request is answered", || {
        (cast.stage.planned_phase().as_deref() == Some("Succeeded")).then_some(())
    });
    ended_well(cast, to, moves);
    point
}

/// mysqld stands still until its keeper ends it. It may be back before another leader is there: then it has everything, and
/// authority may as well return to it.
fn in_emergency(cast: &Cast<'_>, delay: Duration) -> Option<String> {
    let before = cast.stage.active();
    let (moves, epoch) = (cast.seen.moves(), cast.seen.epoch());
    let victim = Victim::find(cast);
    cast.stage.halt_mysqld(&before);
    cast.seen.wait_for_move_above(epoch);
    let point = victim.kill_after(cast, delay);
    let to = cast.stage.wait_until("somebody has authority again", || {
        let authority = cast.stage.object()?["status"]["authority"].clone();
        let settled = authority["phase"] == "Stable" && authority["epoch"].as_u64()? > epoch;
        authority["site"].as_str().filter(|_| settled).map(str::to_owned)
    });
    if to == before {
        is_whole(cast);
        assert_eq!((cast.stage.active(), cast.seen.moves()), (before, moves), "it returned, and nothing moved");
    } else {
        ended_well(cast, &to, moves);
    }
    point
}

/// The process of the operator that leads, found beforehand: to look for it takes longer than a move.
struct Victim(Pid);

impl Victim {
    fn find(cast: &Cast<'_>) -> Self {
        let found = cast.stage.wait_until("the leader's process", || {
            let leader = cast.stage.leader()?;
            let of = Container { namespace: OPERATORS, pod: &leader, container: "bloodraven" };
            cast.stage.machines().processes(of).ok()?.first().map(|first| first.pid)
        });
        Self(i32::try_from(found).ok().and_then(Pid::from_raw).expect("a process"))
    }

    /// The point of the move at which it was killed; none: it was not in a move.
    fn kill_after(self, cast: &Cast<'_>, delay: Duration) -> Option<String> {
        let _: Option<()> = wait::until(delay, || None);
        let point = cast.seen.point();
        kill_process(self.0, Signal::KILL).expect("the leader lives");
        // What was stored in that very moment is seen a moment later; a move that had ended is not counted.
        let late: Option<()> = wait::until(SEEN_WITHIN, || cast.seen.point().is_none().then_some(()));
        point.filter(|_| late.is_none())
    }
}

/// What was stored before the kill is seen within this.
const SEEN_WITHIN: Duration = Duration::from_millis(300);

/// One move, to where it was meant to go; its history is kept; everything is whole.
fn ended_well(cast: &Cast<'_>, to: &str, moves: usize) {
    is_whole(cast);
    let status = cast.stage.object().expect("the group")["status"].clone();
    assert_eq!(status["activeSite"], to, "{status}");
    assert_eq!(status["lastFailoverTarget"], to, "{status}");
    assert!(status["lastFailover"].is_string(), "{status}");
    assert_eq!(cast.seen.moves(), moves + 1, "exactly one move; {status}");
}

fn is_whole(cast: &Cast<'_>) {
    cast.load.wait_for_writes("after a killed operator");
    cast.stage.wait_until_whole("after a killed operator", HEALS_WITHIN);
}
