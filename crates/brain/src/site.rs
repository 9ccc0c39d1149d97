//! One site: from single polls to a debounced state.
//!
//! In: what each poll saw, with the epoch it began under. Out: the site's [`State`], and a [`Transition`] as data
//! whenever it changes. Must not: look at other sites, or at who has authority; that is [`crate::topology`].
//!
//! Bad news needs `failure` polls in a row, writability needs `recovery` of them, and `read-only` is believed at once,
//! because it harms nobody. What is *fenced* does not wait for any count: it is the last pair of variables read.

use crate::name::Site;
use crate::record::Epoch;
use std::fmt;

/// What a site is allowed to become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May be promoted.
    #[default]
    PrimaryCandidate,
    /// Follows for disaster recovery; never promoted.
    DrOnly,
}

/// What is known of a site after debouncing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No poll has decided anything yet.
    #[default]
    Unknown,
    /// Answers with `read_only=0`.
    Writable,
    /// Answers with `read_only=1`.
    ReadOnly,
    /// Has failed `failure` polls in a row.
    Unreachable,
}

/// How many polls in a row it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// Failed polls before a site is unreachable. At least 1.
    pub failure: u32,
    /// Polls with `read_only=0` before a site is writable, and answered polls before an old holder is a candidate
    /// again. At least 1.
    pub recovery: u32,
}

/// The two fence variables, read in one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// `@@global.read_only`.
    pub read_only: bool,
    /// `@@global.super_read_only`.
    pub super_read_only: bool,
}

/// What one poll saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observation {
    /// An error or a timeout.
    Failed,
    /// The server refused the login: an answer, but not about the variables.
    LoginRefused,
    /// Both variables.
    Read(Pair),
    /// The leader itself read both variables as 0 after its own opening grant: the confirming poll of a promotion.
    PromotionReadBack,
}

/// One poll's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Poll {
    /// The record's epoch when the poll began; 0 without a record.
    pub began_under: Epoch,
    /// What it saw.
    pub saw: Observation,
}

/// A change of state, to be logged and shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// Whose.
    pub site: Site,
    /// The state before.
    pub from: State,
    /// The state now.
    pub to: State,
}

/// What became of a poll's result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It began before the present epoch and says nothing about it.
    Dropped {
        /// The epoch it began under.
        began_under: Epoch,
        /// The present epoch.
        present: Epoch,
    },
    /// Counted; the state is what it was.
    Unchanged,
    /// Counted; the state changed.
    Changed(Transition),
}

/// The polls of one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The site.
    pub site: Site,
    /// Its state.
    pub state: State,
    /// The pair that the last poll read; none if it read none. Nothing is known of the fence then.
    pub pair: Option<Pair>,
    /// Failed polls in a row.
    pub failures: u32,
    /// Polls with `read_only=0` in a row.
    pub openings: u32,
    /// Polls with `read_only=1` in a row.
    pub closings: u32,
    /// Polls in a row that read the variables.
    pub answers: u32,
    /// The last answer was a refused login.
    pub login_refused: bool,
}

impl Role {
    /// The word of spec and status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrimaryCandidate => "primary-candidate",
            Self::DrOnly => "dr-only",
        }
    }
}

impl State {
    /// The word of status, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Writable => "writable",
            Self::ReadOnly => "read-only",
            Self::Unreachable => "unreachable",
        }
    }

    /// Whether the site answers, as far as the polls can tell.
    pub const fn is_reachable(self) -> bool {
        matches!(self, Self::Writable | Self::ReadOnly)
    }
}

impl Pair {
    /// 0/0: opened.
    pub const OPEN: Self = Self { read_only: false, super_read_only: false };
    /// 1/1: fenced.
    pub const CLOSED: Self = Self { read_only: true, super_read_only: true };

    /// Both variables are 1. In 0/1 an application writes, in 1/0 an administrator does: neither is a fence.
    pub const fn is_fenced(self) -> bool {
        self.read_only && self.super_read_only
    }
}

impl Thresholds {
    /// The larger one: no count needs to go beyond it.
    const fn most(self) -> u32 {
        if self.failure > self.recovery { self.failure } else { self.recovery }
    }
}

impl Watch {
    /// A site that was not polled yet.
    pub fn new(site: &Site) -> Self {
        Self {
            site: site.clone(),
            state: State::Unknown,
            pair: None,
            failures: 0,
            openings: 0,
            closings: 0,
            answers: 0,
            login_refused: false,
        }
    }

    /// Takes one poll's result under the present epoch.
    pub fn observe(&mut self, poll: Poll, present: Epoch, thresholds: Thresholds) -> Effect {
        if poll.began_under < present {
            return Effect::Dropped { began_under: poll.began_under, present };
        }
        self.login_refused = poll.saw == Observation::LoginRefused;
        let most = thresholds.most();
        let to = match poll.saw {
            Observation::Failed => self.failed(thresholds, most),
            Observation::LoginRefused => self.refused(),
            Observation::Read(pair) => self.read(pair, thresholds, most),
            Observation::PromotionReadBack => {
                self.openings = most;
                self.read(Pair::OPEN, thresholds, most)
            }
        };
        let from = std::mem::replace(&mut self.state, to);
        if from == to {
            return Effect::Unchanged;
        }
        Effect::Changed(Transition { site: self.site.clone(), from, to })
    }

    /// Whether both variables were read as 1 by the last poll.
    pub fn is_fenced(&self) -> bool {
        self.pair.is_some_and(Pair::is_fenced)
    }

    /// Whether the site was seen not fenced: by the last pair read, however few polls agree, or by a state that no later
    /// pair has contradicted. Without authority it is fenced on this sight.
    pub fn is_seen_open(&self) -> bool {
        self.pair.map_or(self.state == State::Writable, |pair| !pair.is_fenced())
    }

    fn failed(&mut self, thresholds: Thresholds, most: u32) -> State {
        self.pair = None;
        self.openings = 0;
        self.closings = 0;
        self.answers = 0;
        self.failures = up_to(self.failures, most);
        if self.failures >= thresholds.failure { State::Unreachable } else { self.state }
    }

    /// The server lives, so this is no failed poll; it said nothing about the variables, so nothing else is in a row.
    fn refused(&mut self) -> State {
        self.pair = None;
        self.openings = 0;
        self.closings = 0;
        self.answers = 0;
        self.failures = 0;
        self.state
    }

    fn read(&mut self, pair: Pair, thresholds: Thresholds, most: u32) -> State {
        self.pair = Some(pair);
        self.failures = 0;
        self.answers = up_to(self.answers, most);
        if pair.read_only {
            self.openings = 0;
            self.closings = up_to(self.closings, most);
            return State::ReadOnly;
        }
        self.closings = 0;
        self.openings = up_to(self.openings, most);
        if self.openings >= thresholds.recovery { State::Writable } else { self.state }
    }
}

/// One more, but never beyond what any threshold asks for: the state stays small.
fn up_to(count: u32, most: u32) -> u32 {
    count.saturating_add(1).min(most)
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `read_only/super_read_only`, as in `1/1`.
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", u8::from(self.read_only), u8::from(self.super_read_only))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Thresholds = Thresholds { failure: 3, recovery: 2 };

    /// One letter a poll: `x` failed, `l` login refused, `r` 1/1, `w` 0/0, `h` 0/1, `a` 1/0, `p` promotion read back.
    fn saw(letter: char) -> Observation {
        match letter {
            'x' => Observation::Failed,
            'l' => Observation::LoginRefused,
            'r' => Observation::Read(Pair::CLOSED),
            'w' => Observation::Read(Pair::OPEN),
            'h' => Observation::Read(Pair { read_only: false, super_read_only: true }),
            'a' => Observation::Read(Pair { read_only: true, super_read_only: false }),
            'p' => Observation::PromotionReadBack,
            other => panic!("no such poll: {other}"),
        }
    }

    fn watch_after(polls: &str, thresholds: Thresholds) -> (Watch, Vec<String>) {
        let mut watch = Watch::new(&Site::new("iad"));
        let mut transitions = Vec::new();
        for letter in polls.chars() {
            let poll = Poll { began_under: 1, saw: saw(letter) };
            if let Effect::Changed(Transition { site, from, to }) = watch.observe(poll, 1, thresholds) {
                transitions.push(format!("{site}: {from} -> {to}"));
            }
        }
        (watch, transitions)
    }

    fn check(polls: &str, state: &str) {
        let (watch, _) = watch_after(polls, DEFAULTS);
        assert_eq!(watch.state.as_str(), state, "after {polls}");
    }

    #[test]
    fn the_state_table_of_one_site() {
        check("", "unknown");
        // unreachable: failureThreshold consecutive failed polls, before that unchanged
        check("x", "unknown");
        check("xx", "unknown");
        check("xxx", "unreachable");
        check("wwxx", "writable");
        check("wwxxx", "unreachable");
        check("rxx", "read-only");
        check("rxxx", "unreachable");
        check("rxxrxx", "read-only");
        // writable: recoveryThreshold consecutive polls with read_only=0
        check("w", "unknown");
        check("ww", "writable");
        check("rw", "read-only");
        check("rww", "writable");
        check("rwrw", "read-only");
        check("rwxw", "read-only");
        check("xxxw", "unreachable");
        check("xxxww", "writable");
        // read-only: at once
        check("r", "read-only");
        check("wwr", "read-only");
        check("xxxr", "read-only");
        // a promotion that the operator itself read back: at once
        check("p", "writable");
        check("rp", "writable");
        check("xxxp", "writable");
        // half-open pairs: the state goes by read_only alone
        check("hh", "writable");
        check("rh", "read-only");
        check("a", "read-only");
    }

    #[test]
    fn a_refused_login_is_an_answer_and_the_state_stays() {
        check("l", "unknown");
        check("wwl", "writable");
        check("wwllllll", "writable");
        check("xxxl", "unreachable");
        // it breaks both rows: failures before and after it are not consecutive, nor are openings
        check("wwxxlxx", "writable");
        check("rwlw", "read-only");
        assert!(watch_after("wwl", DEFAULTS).0.login_refused);
        assert!(!watch_after("wwlw", DEFAULTS).0.login_refused);
    }

    #[test]
    fn only_one_pair_is_a_fence() {
        let check = |polls: &str, fenced: bool, seen_open: bool| {
            let (watch, _) = watch_after(polls, DEFAULTS);
            assert_eq!((watch.is_fenced(), watch.is_seen_open()), (fenced, seen_open), "after {polls}");
        };
        check("", false, false);
        check("r", true, false);
        check("rh", false, true);
        check("ra", false, true);
        // an unauthorised writer is seen at its first poll, long before it counts as writable
        check("rw", false, true);
        // a failed poll says nothing about the fence; a writable site stays under suspicion until it is unreachable
        check("rx", false, false);
        check("wwx", false, true);
        check("wwxxx", false, false);
        check("wwl", false, true);
    }

    #[test]
    fn every_change_is_told_once() {
        let (_, transitions) = watch_after("xrwwwxxxxr", DEFAULTS);
        assert_eq!(
            transitions,
            [
                "iad: unknown -> read-only",
                "iad: read-only -> writable",
                "iad: writable -> unreachable",
                "iad: unreachable -> read-only",
            ]
        );
    }

    #[test]
    fn thresholds_of_one_decide_at_once() {
        let one = Thresholds { failure: 1, recovery: 1 };
        assert_eq!(watch_after("x", one).0.state, State::Unreachable);
        assert_eq!(watch_after("xw", one).0.state, State::Writable);
    }

    #[test]
    fn p_18_a_poll_begun_under_an_older_epoch_is_dropped() {
        let mut watch = Watch::new(&Site::new("pdx"));
        let poll = |began_under, letter| Poll { began_under, saw: saw(letter) };
        watch.observe(poll(4, 'p'), 4, DEFAULTS);
        let before = watch.clone();
        let effect = watch.observe(poll(3, 'r'), 4, DEFAULTS);
        assert_eq!(effect, Effect::Dropped { began_under: 3, present: 4 });
        assert_eq!(watch, before);
        assert!(matches!(watch.observe(poll(4, 'r'), 4, DEFAULTS), Effect::Changed(_)));
    }

    #[test]
    fn counts_are_in_a_row_and_stay_small() {
        let counts = |polls: &str| {
            let (watch, _) = watch_after(polls, DEFAULTS);
            (watch.failures, watch.openings, watch.closings, watch.answers)
        };
        assert_eq!(counts("xx"), (2, 0, 0, 0));
        assert_eq!(counts("rr"), (0, 0, 2, 2));
        assert_eq!(counts("rrw"), (0, 1, 0, 3));
        assert_eq!(counts("rrx"), (1, 0, 0, 0));
        assert_eq!(counts("rrrrrrrr"), (0, 0, 3, 3));
        assert_eq!(counts("xxxxxxxx"), (3, 0, 0, 0));
    }
}
