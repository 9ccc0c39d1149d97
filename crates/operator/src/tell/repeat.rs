//! What was said a moment ago is not said again; it is counted.
//!
//! In: reason, key, the moment. Out: whether to say it, and how often it was kept back before. Must not: keep back anything
//! for longer than [`WINDOW`], or remember more than `MOST` things.

use bloodraven_api::events::EventReason;
use bloodraven_brain::time::{Boot, Millis};
use std::collections::BTreeMap;

/// The same thing is said once in so long; what holds on (a promotion without proof) is said again after it.
pub const WINDOW: Millis = Millis::from_secs(300);

/// Different things that are remembered of a group. When there are more, the oldest is forgotten: it may be said twice.
const MOST: usize = 256;

/// See above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    said: BTreeMap<(EventReason, String), Said>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    at: Boot,
    kept_back: u32,
}

impl Repeats {
    /// How often it was kept back since it was last said, if it is to be said now; none: it was said a moment ago.
    pub fn say(&mut self, now: Boot, reason: EventReason, key: &str) -> Option<u32> {
        let entry = (reason, key.to_owned());
        if let Some(said) = self.said.get_mut(&entry)
            && now.since(said.at) < WINDOW
        {
            said.kept_back = said.kept_back.saturating_add(1);
            return None;
        }
        let before = self.said.insert(entry, Said { at: now, kept_back: 0 });
        self.forget(now);
        Some(before.map_or(0, |before| before.kept_back))
    }

    fn forget(&mut self, now: Boot) {
        // What was kept back is told with the next one, so that is remembered for another window.
        self.said.retain(|_, said| now.since(said.at) < WINDOW.times(2));
        while self.said.len() > MOST {
            let oldest = self.said.iter().min_by_key(|(_, said)| said.at).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.said.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_in_five_minutes_and_counted() {
        let mut repeats = Repeats::default();
        let reason = EventReason::PromotionHeld;
        let rows = [
            (0, "a", Some(0)),
            (1, "b", Some(0)),
            (10, "a", None),
            (299, "a", None),
            (300, "a", Some(2)),
            (599, "a", None),
            (600, "a", Some(1)),
            (9000, "a", Some(0)),
        ];
        for (second, key, expected) in rows {
            assert_eq!(repeats.say(Boot(second * 1000), reason, key), expected, "{key} at {second}");
        }
        assert_eq!(repeats.say(Boot(9_000_000), EventReason::Alert, "a"), Some(0), "another reason");
    }

    /// K-23: what is remembered of Events is bounded.
    #[test]
    fn only_so_much_is_remembered() {
        let mut repeats = Repeats::default();
        for index in 0..1000_u64 {
            assert_eq!(repeats.say(Boot(index), EventReason::Alert, &index.to_string()), Some(0));
        }
        assert_eq!(repeats.said.len(), MOST);
        assert_eq!(repeats.say(Boot(1000), EventReason::Alert, "999"), None);
    }
}
