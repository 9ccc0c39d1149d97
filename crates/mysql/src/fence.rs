//! The fence: both variables on, in one statement, and both read back.
//!
//! In: a server, whom to spare, a deadline. Out: the pair as it was read by a statement that began after the fence; or
//! why it is not known to hold. Must not: return while its own statement can still land, unless nobody can tell; then it
//! says so, with the session's name.
//!
//! The statement waits behind running writes, table locks and commits that wait for an acknowledgement; when it has not
//! returned after 300 ms the applications' sessions are ended over a second connection. What has not returned shortly
//! before the deadline is ended itself.

use crate::{Deadline, Error, Mark, Pair, Server, Session, Spared, Wanted, poll, sessions};
use bloodraven_gtid::Uuid;
use std::convert::Infallible;
use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// At 0/1 the second alone does nothing.
const STATEMENT: &str = "SET GLOBAL read_only = ON, GLOBAL super_read_only = ON";

/// How long the statement may take before others are made to give way: alone it takes a millisecond.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often the applications' sessions are ended after that: new ones may come.
const PASS_EVERY: Duration = Duration::from_millis(100);

/// At most so many passes; the deadline comes first in every use.
const PASSES: usize = 100;

/// What is kept back of the time to end a statement that does not return: a tenth of it is needed.
const RESERVE: Duration = Duration::from_millis(250);

/// A fence that is not known to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfenced {
    /// Why.
    pub error: Error,
    /// The session whose statement may still land; none: there is none.
    pub left: Option<Mark>,
    /// What was read afterwards.
    pub read: Option<Pair>,
}

impl fmt::Display for Unfenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not known to be fenced: {}", self.error)?;
        if self.left.is_some() {
            f.write_str("; its session was not seen to end")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unfenced {}

impl From<Error> for Unfenced {
    fn from(error: Error) -> Self {
        Self { error, left: None, read: None }
    }
}

/// Fences. The pair that is returned may still be open, if somebody opened meanwhile: look at it.
pub async fn fence(server: &Server, wanted: Wanted, spared: &Spared, deadline: Deadline) -> Result<Pair, Unfenced> {
    let session = Session::open(server, deadline).await?;
    fence_over(session, wanted, spared, deadline).await.map(|(pair, _)| pair)
}

/// [`fence`] over a session that stands already, which saves the time of connecting. It is given back when it is still
/// good: after a fence that held.
pub async fn fence_over(
    mut session: Session,
    wanted: Wanted,
    spared: &Spared,
    deadline: Deadline,
) -> Result<(Pair, Session), Unfenced> {
    wanted.check(session.place(), session.uuid())?;
    let server = &session.server().clone();
    let until = deadline.sooner(RESERVE.min(deadline.left() / 4));
    let mut beside = Beside { server, uuid: session.uuid(), mark: session.mark().clone(), spared, session: None };
    let set = {
        let statement = session.change("fence", wanted, STATEMENT, until);
        tokio::select! {
            biased;
            set = statement => set,
            never = beside.clear_the_way(until) => match never {},
        }
    };
    match set {
        Ok(_) => Ok((poll::read_back(&mut session, deadline).await?.pair, session)),
        Err(error) if session.may_run_on() => Err(beside.end(session, error, deadline).await),
        Err(error) => {
            let read = poll::read_back(&mut session, deadline).await.ok().map(|read| read.pair);
            Err(Unfenced { error, left: None, read })
        }
    }
}

/// The second connection.
struct Beside<'a> {
    server: &'a Server,
    uuid: Uuid,
    /// The fence's own session.
    mark: Mark,
    spared: &'a Spared,
    session: Option<Session>,
}

impl Beside<'_> {
    async fn open(&mut self, deadline: Deadline) -> Result<&mut Session, Error> {
        let session = match self.session.take().filter(Session::is_usable) {
            Some(session) => session,
            None => Session::open(self.server, deadline).await?,
        };
        Ok(self.session.insert(session))
    }

    /// Ends applications' sessions again and again. Never returns.
    async fn clear_the_way(&mut self, until: Deadline) -> Infallible {
        let mut beat = interval_at(Instant::now() + PATIENCE, PASS_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (wanted, spared, mark) = (Wanted::Only(self.uuid), self.spared, self.mark.clone());
        for _ in 0..PASSES {
            beat.tick().await;
            if let Ok(session) = self.open(until).await {
                // A pass that fails is followed by the next; what counts is whether the fence returns.
                let _ = sessions::pass(session, wanted, spared, Some(&mark), until).await;
            }
        }
        std::future::pending().await
    }

    /// The statement was given up: its session is ended and seen gone, or named.
    async fn end(&mut self, mut session: Session, error: Error, deadline: Deadline) -> Unfenced {
        let (wanted, mark) = (Wanted::Only(self.uuid), self.mark.clone());
        let Ok(beside) = self.open(deadline).await else {
            return Unfenced { error, left: Some(mark), read: None };
        };
        if sessions::end_marked_over(beside, wanted, &mark, deadline).await.is_err() {
            return Unfenced { error, left: Some(mark), read: None };
        }
        session.is_over();
        let read = poll::read_back(beside, deadline).await.ok().map(|read| read.pair);
        Unfenced { error, left: None, read }
    }
}
