//! In which order commands are carried out: some wait for the disk, and of the lane's only the newest counts.
//!
//! In: the commands of each step, the ends of writes and of operations. Out: what may be done now. Must not: do any of it,
//! let a command pass the write that it waits for, or let an operation that was cancelled report.

use crate::store::{Done, Wrote};
use bloodraven_brain::fence::Command;
use std::collections::{BTreeMap, VecDeque};
use tokio::time::Instant;

/// Names one operation of the lane; a greater one cancels a smaller one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(u64);

/// Commands of one step that are still to be done, in order.
#[derive(Debug, Default)]
pub(crate) struct Chain(VecDeque<(Command, Option<Token>)>);

/// See above.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    newest: Token,
    /// Whether the newest operation has not reported yet.
    open: bool,
    /// What waits for a write, and until when it has patience.
    waiting: BTreeMap<u64, (Chain, Option<Instant>)>,
}

/// What follows upon the end of a write.
#[derive(Debug)]
pub(crate) enum After {
    /// Nothing waited for it, or not any more.
    Nothing,
    /// This goes on.
    Goes(Chain),
    /// The marker is not on disk, so no operation of this is begun: the newest has failed. The rest goes on.
    Fails(Chain, Option<Token>),
}

impl Chain {
    /// The next command, with its token if it is one of the lane's.
    pub(crate) fn next(&mut self) -> Option<(Command, Option<Token>)> {
        self.0.pop_front()
    }

    /// The newest of the lane's operations in it.
    pub(crate) fn token(&self) -> Option<Token> {
        self.0.iter().filter_map(|(_, token)| *token).max()
    }

    /// What is left of it when its operations cannot be begun.
    pub(crate) fn without_operations(mut self) -> Self {
        self.0.retain(|(_, token)| token.is_none());
        self
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Chains {
    /// Takes the commands of a step. A new operation of the lane cancels the one before from here on.
    pub(crate) fn issue(&mut self, commands: Vec<Command>) -> Chain {
        let numbered = commands.into_iter().map(|command| {
            let token = is_of_the_lane(&command).then(|| {
                self.newest.0 += 1;
                self.open = true;
                self.newest
            });
            (command, token)
        });
        Chain(numbered.collect())
    }

    /// The rest of a chain waits for that write, but not beyond `patience`.
    pub(crate) fn wait_for(&mut self, write: u64, chain: Chain, patience: Option<Instant>) {
        if !chain.is_empty() {
            self.waiting.insert(write, (chain, patience));
        }
    }

    /// A write has ended.
    pub(crate) fn written(&mut self, done: Done) -> After {
        let Some((chain, _)) = self.waiting.remove(&done.id) else { return After::Nothing };
        if done.wrote == Wrote::Marker && !done.ok {
            let token = chain.token();
            return After::Fails(chain.without_operations(), token);
        }
        After::Goes(chain)
    }

    /// What has lost patience by now, and goes on without its write.
    pub(crate) fn impatient(&mut self, now: Instant) -> Vec<Chain> {
        let late = |(_, patience): &(Chain, Option<Instant>)| patience.is_some_and(|until| now >= until);
        let ids: Vec<u64> = self.waiting.iter().filter(|(_, waits)| late(waits)).map(|(id, _)| *id).collect();
        ids.into_iter().filter_map(|id| self.waiting.remove(&id)).map(|(chain, _)| chain).collect()
    }

    /// When the next one loses patience.
    pub(crate) fn next_impatience(&self) -> Option<Instant> {
        self.waiting.values().filter_map(|(_, patience)| *patience).min()
    }

    /// Whether that operation is still wanted.
    pub(crate) fn wants(&self, token: Token) -> bool {
        self.open && token == self.newest
    }

    /// That operation has ended; whether anybody wants to know.
    pub(crate) fn ended(&mut self, token: Token) -> bool {
        let wanted = self.wants(token);
        if wanted {
            self.open = false;
        }
        wanted
    }

    /// The operation that is under way or waits, if any.
    pub(crate) fn under_way(&self) -> Option<Token> {
        self.open.then_some(self.newest)
    }
}

/// Whether a command is one of those of which only one runs at a time.
const fn is_of_the_lane(command: &Command) -> bool {
    matches!(
        command,
        Command::ConnectOpener { .. }
            | Command::AskPermit(_)
            | Command::Open { .. }
            | Command::EndOpeners { .. }
            | Command::EndFences { .. }
            | Command::Fence { .. }
            | Command::Read { .. }
            | Command::Kill(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_brain::fence::Marker;
    use bloodraven_brain::message::OpeningWord;
    use bloodraven_brain::time::Millis;
    use std::time::Duration;

    const WITHIN: Millis = Millis(100);

    fn marker() -> Command {
        Command::WriteMarker(Marker { tenure: 1, start: None, word: OpeningWord::default() })
    }

    fn connect() -> Command {
        Command::ConnectOpener { within: WITHIN }
    }

    fn fence() -> Command {
        Command::EndOpeners { within: WITHIN }
    }

    fn done(id: u64, wrote: Wrote, ok: bool) -> Done {
        Done { id, wrote, ok }
    }

    /// Takes the first command and lets the rest wait for write 1.
    fn parked(chains: &mut Chains, commands: Vec<Command>, patience: Option<Instant>) -> Option<Token> {
        let mut chain = chains.issue(commands);
        let token = chain.token();
        chain.next();
        chains.wait_for(1, chain, patience);
        token
    }

    #[test]
    fn what_follows_a_marker_waits_for_it() {
        let mut chains = Chains::default();
        let token = parked(&mut chains, vec![marker(), connect()], None);
        assert!(matches!(chains.written(done(2, Wrote::Note, true)), After::Nothing), "of another write");
        let After::Goes(mut chain) = chains.written(done(1, Wrote::Marker, true)) else { unreachable!("it waited") };
        let next = chain.next();
        assert!(matches!(next, Some((Command::ConnectOpener { .. }, found)) if found == token));
        assert!(chain.is_empty() && token.is_some_and(|token| chains.wants(token)));
    }

    /// F-09: without the marker on disk nothing opens.
    #[test]
    fn without_its_marker_an_opening_fails() {
        let mut chains = Chains::default();
        let token = parked(&mut chains, vec![marker(), connect(), Command::AskKeeper], None);
        let After::Fails(mut rest, failed) = chains.written(done(1, Wrote::Marker, false)) else {
            unreachable!("not on disk")
        };
        assert_eq!(failed, token);
        assert!(matches!(rest.next(), Some((Command::AskKeeper, None))) && rest.is_empty());
        assert!(chains.ended(token.unwrap_or_default()), "reported once");
        assert!(!chains.ended(token.unwrap_or_default()), "and not again");
    }

    #[test]
    fn a_fence_does_not_wait_for_its_note_beyond_its_patience() {
        let mut chains = Chains::default();
        let now = Instant::now();
        let note = Command::WriteNote { note: None, within: WITHIN };
        parked(&mut chains, vec![note, fence()], Some(now + Duration::from_millis(100)));
        assert_eq!(chains.next_impatience(), Some(now + Duration::from_millis(100)));
        assert!(chains.impatient(now).is_empty());
        let late = chains.impatient(now + Duration::from_millis(100));
        assert_eq!(late.len(), 1);
        assert!(matches!(chains.written(done(1, Wrote::Note, true)), After::Nothing), "done once");
    }

    #[test]
    fn a_note_that_could_not_be_written_holds_up_no_fence() {
        let mut chains = Chains::default();
        let note = Command::WriteNote { note: None, within: WITHIN };
        parked(&mut chains, vec![note, fence()], None);
        assert!(matches!(chains.written(done(1, Wrote::Note, false)), After::Goes(_)));
    }

    /// F-29: an opening and a fence never run beside each other.
    #[test]
    fn a_new_operation_cancels_the_one_before_even_one_that_waits_for_the_disk() {
        let mut chains = Chains::default();
        let opening = parked(&mut chains, vec![marker(), connect()], None).unwrap_or_default();
        let fencing = chains.issue(vec![fence()]).token().unwrap_or_default();
        assert!(!chains.wants(opening) && chains.wants(fencing));
        assert_eq!(chains.under_way(), Some(fencing));
        assert!(!chains.ended(opening), "its result is never reported");
        let After::Goes(mut chain) = chains.written(done(1, Wrote::Marker, true)) else { unreachable!("it waited") };
        let (_, token) = chain.next().unwrap_or((connect(), None));
        assert!(!chains.wants(token.unwrap_or_default()), "and it is not begun any more");
        assert!(chains.ended(fencing));
        assert_eq!(chains.under_way(), None);
    }

    #[test]
    fn commands_beside_the_lane_cancel_nothing() {
        let mut chains = Chains::default();
        let reading = chains.issue(vec![fence()]).token().unwrap_or_default();
        let chain = chains.issue(vec![Command::AskKeeper, Command::KillAppSessions, marker()]);
        assert_eq!(chain.token(), None);
        assert!(chains.wants(reading));
    }
}
