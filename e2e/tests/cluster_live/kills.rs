//! The operator is killed in the middle of failovers, at one moment after another; each ends as if it had lived.
//!
//! In: a stage with a whole group, and how often. Out: a line for each, and at which point of the move it was. Must not: count
//! one that came before the move began or after it had ended.

use std::collections::BTreeMap;
use std::time::Duration;

use bloodraven_testbed::cluster::Container;
use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait;

use super::scenes::{Cast, HEALS_WITHIN};
use super::stage::OPERATORS;

/// A move takes about that long from the request or the revocation to its end, on a machine that does something else as well.
const MOVE: Duration = Duration::from_millis(1500);

/// Kills that came too early or too late are made again, as often as this in all for each that counts.
const TRIES: u32 = 4;

/// Kills it until so many came in the middle of a move.
pub(crate) fn play(cast: &Cast<'_>, wanted: u32) {
    let mut points: BTreeMap<String, u32> = BTreeMap::new();
    let mut counted = 0;
    for round in 0..wanted * TRIES {
        if counted == wanted {
            break;
        }
        let point = if round % 3 == 2 { in_emergency(cast, round) } else { in_planned(cast, round) };
        if let Some(point) = point {
            counted += 1;
            say(&format!("{counted} of {wanted}: killed at {point}, same end"));
            *points.entry(point).or_default() += 1;
        }
    }
    say(&format!("killed in a move {counted} times of {wanted}, at: {points:?}"));
    assert_eq!(counted, wanted, "too few of the kills came in the middle of a move");
}

/// The moments are spread evenly, whatever their number: each is the golden part of the move after the last.
fn moment(round: u32) -> Duration {
    MOVE.mul_f64((f64::from(round) * 0.618_033_988_75).fract())
}

fn in_planned(cast: &Cast<'_>, round: u32) -> Option<String> {
    let before = cast.stage.active();
    let to = cast.stage.other_candidate(&before);
    let moves = cast.seen.moves();
    cast.stage.ask_for(to);
    let point = kill_after(cast, moment(round));
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    cast.stage.wait_until("the request is answered", || {
        (cast.stage.planned_phase().as_deref() == Some("Succeeded")).then_some(())
    });
    ended_well(cast, to, moves);
    point
}

/// mysqld stands still until its keeper ends it. It may be back before another leader is there: then it has everything, and
/// authority may as well return to it.
fn in_emergency(cast: &Cast<'_>, round: u32) -> Option<String> {
    let before = cast.stage.active();
    let (moves, epoch) = (cast.seen.moves(), cast.seen.epoch());
    cast.stage.halt_mysqld(&before);
    cast.seen.wait_for_revoking_above(epoch);
    let point = kill_after(cast, moment(round));
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

/// The point of the move at which it was killed; none: it was not in a move.
fn kill_after(cast: &Cast<'_>, delay: Duration) -> Option<String> {
    let leader = cast.stage.leader().expect("a leader");
    let of = Container { namespace: OPERATORS, pod: &leader, container: "bloodraven" };
    let _: Option<()> = wait::until(delay, || None);
    let point = cast.seen.point();
    cast.stage.cluster.kill(of, None).unwrap();
    // What was stored in that very moment is seen a moment later; a move that had ended is not counted.
    point.filter(|_| cast.seen.point().is_some())
}

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
