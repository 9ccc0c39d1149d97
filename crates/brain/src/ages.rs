//! How old stamps are, whatever the calendar does meanwhile.
//!
//! In: stamps that are stored, the present moment on both clocks. Out: ages. Must not: let a calendar that jumps make a
//! bounded wait longer or shorter.
//!
//! A stamp is calendar time, because it has to outlive the operator. How long ago it was is settled once, when a leader
//! writes it or first reads it, and is counted on the steady clock from then on. One that lies in the future counts as now.

use crate::time::{Boot, Millis, Now, Wall};

/// The stamps that a leader has met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ages {
    met: Vec<Met>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Met {
    stamp: Wall,
    /// How old it was when it was met.
    age: Millis,
    /// When that was.
    at: Boot,
}

impl Met {
    fn now(stamp: Wall, now: Now) -> Self {
        let age = u64::try_from(now.wall.0.saturating_sub(stamp.0)).unwrap_or(0);
        Self { stamp, age: Millis(age), at: now.boot }
    }

    fn age(&self, now: Boot) -> Millis {
        self.age + now.since(self.at)
    }
}

impl Ages {
    /// These are the stamps that matter: ages of new ones are settled now, all others are forgotten.
    pub fn meet(&mut self, stamps: impl IntoIterator<Item = Wall>, now: Now) {
        let before = std::mem::take(&mut self.met);
        for stamp in stamps {
            let known = before.iter().chain(&self.met).find(|met| met.stamp == stamp).copied();
            let met = known.unwrap_or_else(|| Met::now(stamp, now));
            if !self.met.contains(&met) {
                self.met.push(met);
            }
        }
    }

    /// How long ago that was.
    pub fn of(&self, stamp: Wall, now: Now) -> Millis {
        let known = self.met.iter().find(|met| met.stamp == stamp);
        known.map_or_else(|| Met::now(stamp, now).age, |met| met.age(now.boot))
    }

    /// Whether so long has passed since then.
    pub fn passed(&self, stamp: Wall, length: Millis, now: Now) -> bool {
        self.of(stamp, now) >= length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn at(boot: u64, wall: i64) -> Now {
        Now { boot: Boot(boot), wall: Wall(wall) }
    }

    #[test]
    fn an_age_is_settled_once_and_counted_on_the_steady_clock() {
        // When it is met and when it is asked: boot, calendar; the stamp; its age.
        let rows = [
            ((50_000, 10_000), (53_000, 13_000), 9000, 4000),
            // The calendar goes back, and forth.
            ((50_000, 10_000), (53_000, 13_000 - HOUR), 9000, 4000),
            ((50_000, 10_000), (53_000, 13_000 + HOUR), 9000, 4000),
            // From a calendar that was ahead.
            ((50_000, 10_000), (53_000, 13_000), 10_000 + HOUR, 3000),
            // Older than this host's boot.
            ((1000, 10_000_000), (4000, 10_003_000), 1_000_000, 9_003_000),
        ];
        for (met, asked, stamp, age) in rows {
            let mut ages = Ages::default();
            ages.meet([Wall(stamp)], at(met.0, met.1));
            ages.meet([Wall(stamp)], at(asked.0, asked.1));
            let now = at(asked.0, asked.1);
            assert_eq!(ages.of(Wall(stamp), now), Millis(age), "{met:?} {asked:?} {stamp}");
            assert!(ages.passed(Wall(stamp), Millis(age), now) && !ages.passed(Wall(stamp), Millis(age + 1), now));
        }
    }

    #[test]
    fn one_that_was_not_met_is_as_old_as_the_calendar_says() {
        assert_eq!(Ages::default().of(Wall(4000), at(9, 10_000)), Millis(6000));
        assert_eq!(Ages::default().of(Wall(14_000), at(9, 10_000)), Millis(0));
    }

    #[test]
    fn what_does_not_matter_any_more_is_forgotten() {
        let mut ages = Ages::default();
        ages.meet([Wall(1), Wall(2), Wall(1)], at(5, 5));
        assert_eq!(ages.met.len(), 2);
        ages.meet([Wall(2)], at(6, 6));
        assert_eq!(ages.met.len(), 1);
        ages.meet([], at(7, 7));
        assert_eq!(ages, Ages::default());
    }
}
