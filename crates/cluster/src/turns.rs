//! Who may speak to the API server next.
//!
//! In: requests of four ranks. Out: a turn for each, the highest rank first. Must not: let those of a low rank be so many
//! that a higher one finds no room, give a turn to somebody who waits no longer, or hold up for ever: who waits has a bound
//! of its own.
//!
//! Why: an API server that gets more than it can do does all of it slowly. When a hundred groups lose their primaries in one
//! moment, their records must not share the server with labels and pictures of what is over a second later.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How much depends on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// What a move may not begin without: the record.
    Records,
    /// What is kept beside it, and is waited for.
    Beside,
    /// What a move leaves to be done, or asks for: labels, proofs, the second copy of the record.
    Moves,
    /// Everything else.
    Others,
}

const RANKS: usize = 4;

/// Requests at a time. An API server takes some hundred at once, and is not this operator's alone.
const MOST: usize = 56;

/// Of these, at most so many of each rank, and the lower ones together less than all: when somebody's webhook holds up labels,
/// records find room.
const MOST_OF: [usize; RANKS] = [MOST, 16, 24, 8];

/// See above.
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    /// Under way, of each rank.
    taken: [usize; RANKS],
    waiting: [VecDeque<oneshot::Sender<Turn>>; RANKS],
}

/// A request may be under way for as long as this is kept.
pub(crate) struct Turn {
    /// None: it was never used, and counts no more.
    of: Option<Turns>,
    rank: Rank,
}

impl Turns {
    pub(crate) async fn next(&self, rank: Rank) -> Turn {
        let turn = {
            let mut queue = self.queue();
            if queue.waiting[rank as usize].is_empty() && queue.has_room(rank) {
                queue.taken[rank as usize] += 1;
                Ok(Turn { of: Some(self.clone()), rank })
            } else {
                let (tell, told) = oneshot::channel();
                let waiting = &mut queue.waiting[rank as usize];
                // Who came first gives up first.
                while waiting.front().is_some_and(oneshot::Sender::is_closed) {
                    waiting.pop_front();
                }
                waiting.push_back(tell);
                Err(told)
            }
        };
        match turn {
            Ok(turn) => turn,
            // Nobody throws a sender away: it is asked until it is answered, or its receiver is gone.
            Err(told) => told.await.unwrap_or(Turn { of: None, rank }),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what is free to those who wait.
    fn go_on(&self) {
        loop {
            let next = self.queue().pop();
            let Some((rank, tell)) = next else { return };
            if let Err(mut unwanted) = tell.send(Turn { of: Some(self.clone()), rank }) {
                unwanted.of = None;
                self.queue().taken[rank as usize] -= 1;
            }
        }
    }
}

impl Queue {
    fn has_room(&self, rank: Rank) -> bool {
        self.taken.iter().sum::<usize>() < MOST && self.taken[rank as usize] < MOST_OF[rank as usize]
    }

    /// The next one who waits and may go; its turn is counted already.
    fn pop(&mut self) -> Option<(Rank, oneshot::Sender<Turn>)> {
        for rank in [Rank::Records, Rank::Beside, Rank::Moves, Rank::Others] {
            if self.has_room(rank)
                && let Some(tell) = self.waiting[rank as usize].pop_front()
            {
                self.taken[rank as usize] += 1;
                return Some((rank, tell));
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.of.take() {
            turns.queue().taken[self.rank as usize] -= 1;
            turns.go_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::Future;
    use std::pin::Pin;

    type Asked = Pin<Box<dyn Future<Output = Turn>>>;

    fn ask(turns: &Turns, rank: Rank) -> Asked {
        let turns = turns.clone();
        let mut asked: Asked = Box::pin(async move { turns.next(rank).await });
        assert!((&mut asked).now_or_never().is_none(), "nobody is served while all turns are taken");
        asked
    }

    fn take(turns: &Turns, rank: Rank, count: usize) -> Vec<Turn> {
        (0..count).map(|_| turns.next(rank).now_or_never().expect("there is room")).collect()
    }

    fn served(asked: &mut Asked) -> Option<Turn> {
        asked.now_or_never()
    }

    #[test]
    fn the_highest_rank_is_served_first_and_each_rank_in_order() {
        let turns = Turns::default();
        let mut all = take(&turns, Rank::Records, MOST);
        let (mut other, mut label) = (ask(&turns, Rank::Others), ask(&turns, Rank::Moves));
        let mut copy = ask(&turns, Rank::Beside);
        let (mut record, mut later) = (ask(&turns, Rank::Records), ask(&turns, Rank::Records));
        drop(all.pop());
        let first = served(&mut record).expect("a record comes first");
        assert!(served(&mut later).is_none() && served(&mut label).is_none());
        drop(first);
        let second = served(&mut later).expect("in order");
        assert!(served(&mut copy).is_none() && served(&mut label).is_none());
        drop(second);
        let copy = served(&mut copy).expect("then copies");
        assert!(served(&mut label).is_none());
        drop(copy);
        let third = served(&mut label).expect("then labels");
        assert!(served(&mut other).is_none());
        drop(third);
        assert!(served(&mut other).is_some());
    }

    #[test]
    fn low_ranks_leave_room_for_records() {
        let turns = Turns::default();
        let labels = take(&turns, Rank::Moves, MOST_OF[Rank::Moves as usize]);
        let others = take(&turns, Rank::Others, MOST_OF[Rank::Others as usize]);
        let mut label = ask(&turns, Rank::Moves);
        let _other = ask(&turns, Rank::Others);
        let records = take(&turns, Rank::Records, MOST - labels.len() - others.len());
        assert!(!records.is_empty());
        drop(others);
        assert!(served(&mut label).is_none(), "there are as many labels as there may be");
        drop(labels);
        assert!(served(&mut label).is_some());
    }

    #[test]
    fn who_waits_no_longer_is_passed_over_and_keeps_nothing() {
        let turns = Turns::default();
        let mut all = take(&turns, Rank::Records, MOST);
        let impatient = ask(&turns, Rank::Records);
        let told_and_gone = ask(&turns, Rank::Records);
        let mut patient = ask(&turns, Rank::Records);
        drop(impatient);
        drop(all.pop());
        // It was told, and goes without having looked.
        assert!(served(&mut patient).is_none());
        drop(told_and_gone);
        let turn = served(&mut patient).expect("its turn");
        drop((turn, all));
        assert_eq!(turns.queue().taken, [0; RANKS]);
        assert_eq!(take(&turns, Rank::Records, MOST).len(), MOST, "nothing was lost");
    }
}
