//! The anti-flap cooldown: a pause between moves of authority to another site.
//!
//! In: when the last such move was confirmed, how long to pause, why the next one is wanted. Out: go, or
//! [`Active`] with the time to retry. Must not: delay anything that makes the group safer, finishes what was begun, or
//! was asked for by hand.
//!
//! The stamp is calendar time, because it has to outlive the operator; how long ago that was is settled once, when it is
//! read, and counted on the steady clock from then on. So a clock that jumps changes nothing.

use crate::record::Cause;
use crate::time::{Boot, Millis, Now, Wall};

/// When authority last moved to another site, planned or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastFailover {
    /// The stamp, as status shows it; never later than the moment at which it was read.
    pub at: Wall,
    /// How old it was when it was read.
    age: Millis,
    /// When it was read.
    read: Boot,
}

/// Where a move would take authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Back to the site that had it, the same instance or a new one.
    SameSite,
    /// To another site.
    OtherSite,
}

/// Whether a move waits for the cooldown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// It does.
    Waits,
    /// It does not, and why.
    Exempt(Exemption),
}

/// Why a move does not wait for the cooldown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exemption {
    /// Authority returns to the site that had it.
    SameSite,
    /// A human asked for it, knowing what happened.
    ByHand,
    /// The hand-over of an ordered update, one a cycle.
    OrderedUpdate,
    /// A move that was begun is finished or taken back.
    Finishing,
    /// Nobody is known to have authority; there is nothing to flap from.
    NoAuthority,
    /// Authority stays where it is.
    NoMove,
}

/// The cooldown is in force: data for the condition, the rejection and the log line, so that they agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Active {
    /// When authority last moved.
    pub last_failover: Wall,
    /// How long the pause is.
    pub cooldown: Millis,
    /// When it ends.
    pub retry_after: Wall,
    /// How long that is from now.
    pub remaining: Millis,
}

impl LastFailover {
    /// The move was confirmed just now.
    pub const fn now(now: Now) -> Self {
        Self { at: now.wall, age: Millis(0), read: now.boot }
    }

    /// A stamp found in status or annotation. One that lies in the future counts as now.
    pub fn read(stamp: Wall, now: Now) -> Self {
        let age = u64::try_from(now.wall.0.saturating_sub(stamp.0)).unwrap_or(0);
        Self { at: stamp.min(now.wall), age: Millis(age), read: now.boot }
    }

    /// The newer of two stamps, as the two stored copies may differ.
    #[must_use]
    pub fn newer(self, other: Self) -> Self {
        if other.at > self.at { other } else { self }
    }

    /// How long ago authority moved.
    pub fn age(&self, now: Boot) -> Millis {
        self.age + now.since(self.read)
    }

    /// The cooldown, while it is in force.
    pub fn cooldown(&self, cooldown: Millis, now: Boot) -> Option<Active> {
        let remaining = Millis(cooldown.0.saturating_sub(self.age(now).0));
        let retry_after = self.at.after(cooldown);
        (remaining > Millis(0)).then_some(Active { last_failover: self.at, cooldown, retry_after, remaining })
    }
}

/// Whether a move of that cause may be started now. One that has been started is never asked again.
pub fn may_start(
    cause: Cause,
    reach: Reach,
    last: Option<&LastFailover>,
    cooldown: Millis,
    now: Boot,
) -> Result<(), Active> {
    match scope(cause, reach) {
        Scope::Exempt(_) => Ok(()),
        Scope::Waits => last.and_then(|last| last.cooldown(cooldown, now)).map_or(Ok(()), Err),
    }
}

/// Whether a move of that cause waits for the cooldown.
pub const fn scope(cause: Cause, reach: Reach) -> Scope {
    match (cause, reach) {
        // A return that cannot end at its own site has become an automatic move.
        (Cause::Emergency | Cause::Planned | Cause::SplitBrain, _)
        | (Cause::Instance | Cause::Regrant, Reach::OtherSite) => Scope::Waits,
        (Cause::Instance | Cause::Regrant, Reach::SameSite) => Scope::Exempt(Exemption::SameSite),
        (Cause::Manual | Cause::Restore, _) => Scope::Exempt(Exemption::ByHand),
        (Cause::OrderedUpdate, _) => Scope::Exempt(Exemption::OrderedUpdate),
        (Cause::Rollback, _) => Scope::Exempt(Exemption::Finishing),
        (Cause::Bootstrap | Cause::RecordBehind, _) => Scope::Exempt(Exemption::NoAuthority),
        (Cause::Voters | Cause::Lease, _) => Scope::Exempt(Exemption::NoMove),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE_MINUTES: Millis = Millis::from_secs(300);

    fn now(boot_seconds: u64, wall_seconds: i64) -> Now {
        Now { boot: Boot(boot_seconds * 1000), wall: Wall(wall_seconds * 1000) }
    }

    #[test]
    fn in_force_while_now_minus_last_failover_is_below_the_cooldown() {
        let last = LastFailover::read(Wall(1_000_000), now(50, 1_000));
        let check = |boot_seconds: u64, remaining: Option<u64>| {
            let active = last.cooldown(FIVE_MINUTES, Boot(boot_seconds * 1000));
            assert_eq!(active.map(|active| active.remaining.0 / 1000), remaining, "at {boot_seconds}");
        };
        check(50, Some(300));
        check(51, Some(299));
        check(349, Some(1));
        check(350, None);
        check(999, None);
        let active = last.cooldown(FIVE_MINUTES, Boot(51_000)).expect("in force");
        assert_eq!((active.last_failover, active.retry_after), (Wall(1_000_000), Wall(1_300_000)));
        assert_eq!(active.cooldown, FIVE_MINUTES);
    }

    #[test]
    fn p_10_it_survives_a_restart() {
        // 100 s ago by the calendar, read by an operator whose machine has been up for 7 s
        let last = LastFailover::read(Wall(1_000_000), now(7, 1_100));
        assert_eq!(last.age(Boot(7_000)), Millis::from_secs(100));
        assert_eq!(last.cooldown(FIVE_MINUTES, Boot(206_999)).map(|active| active.remaining), Some(Millis(1)));
        assert_eq!(last.cooldown(FIVE_MINUTES, Boot(207_000)), None);
    }

    #[test]
    fn p_10_a_stamp_in_the_future_counts_as_now() {
        let last = LastFailover::read(Wall(9_000_000), now(50, 1_000));
        assert_eq!(last.at, Wall(1_000_000));
        assert_eq!(last.cooldown(FIVE_MINUTES, Boot(349_999)).map(|active| active.remaining), Some(Millis(1)));
        assert_eq!(last.cooldown(FIVE_MINUTES, Boot(350_000)), None, "it is not stuck until the stamp has passed");
    }

    #[test]
    fn the_newer_of_two_copies_wins_and_a_zero_cooldown_is_none() {
        let older = LastFailover::read(Wall(1_000), now(50, 1_000));
        let newer = LastFailover::read(Wall(2_000), now(50, 1_000));
        assert_eq!(older.newer(newer), newer);
        assert_eq!(newer.newer(older), newer);
        assert_eq!(LastFailover::now(now(50, 1_000)).cooldown(Millis(0), Boot(50_000)), None);
    }

    #[test]
    fn what_it_blocks_and_what_it_does_not() {
        use Reach::{OtherSite, SameSite};
        let rows = [
            // blocks: starting an automatic move, the policy move of a split brain, a planned failover
            ("automatic move", Cause::Emergency, OtherSite, "waits"),
            ("policy move of a split brain", Cause::SplitBrain, OtherSite, "waits"),
            ("planned failover at Validating", Cause::Planned, OtherSite, "waits"),
            ("self-move that cannot end at its own site", Cause::Instance, OtherSite, "waits"),
            ("regrant that cannot end at its own site", Cause::Regrant, OtherSite, "waits"),
            // does not block
            ("return of authority to a new instance", Cause::Instance, SameSite, "SameSite"),
            ("return of authority to the same instance", Cause::Regrant, SameSite, "SameSite"),
            ("rollback", Cause::Rollback, OtherSite, "Finishing"),
            ("manual promotion", Cause::Manual, OtherSite, "ByHand"),
            ("restore", Cause::Restore, OtherSite, "ByHand"),
            ("hand-over of an ordered update", Cause::OrderedUpdate, OtherSite, "OrderedUpdate"),
            ("first record", Cause::Bootstrap, OtherSite, "NoAuthority"),
            ("record behind", Cause::RecordBehind, OtherSite, "NoAuthority"),
            ("voter change", Cause::Voters, SameSite, "NoMove"),
            ("lease settings", Cause::Lease, SameSite, "NoMove"),
        ];
        let last = LastFailover::now(now(50, 1_000));
        for (name, cause, reach, expected) in rows {
            let told = match scope(cause, reach) {
                Scope::Waits => "waits".to_owned(),
                Scope::Exempt(why) => format!("{why:?}"),
            };
            assert_eq!(told, expected, "{name}");
            let answer = may_start(cause, reach, Some(&last), FIVE_MINUTES, Boot(60_000));
            assert_eq!(answer.is_err(), expected == "waits", "{name} within the window");
            assert_eq!(may_start(cause, reach, Some(&last), FIVE_MINUTES, Boot(350_000)), Ok(()), "{name} after it");
            assert_eq!(may_start(cause, reach, None, FIVE_MINUTES, Boot(60_000)), Ok(()), "{name} without history");
        }
    }
}
