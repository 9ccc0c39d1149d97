//! The keeper, as the sidecar reaches it: one session over its socket, made again whenever it ends.
//!
//! In: requests. Out: their answers, and the keeper's own words in the order in which it made them. Must not: wait without
//! a bound, keep a request for a later session (a permit asked of one keeper must not reach the next), or mix up two
//! answers: a session in which one is overdue is given up.

mod life;
mod session;

use bloodraven_brain::fence::Permit;
use bloodraven_brain::message::StartId;
use bloodraven_keeper::protocol::{self, Reply, Request, Status};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How many requests may wait to be sent. The sidecar asks a few times a second; a keeper that lets dozens wait hangs.
const WAITING: usize = 32;

/// The first wait before the session is made again, and the longest. Whether the keeper has ended is looked at as often:
/// a move may wait for it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(100));

/// What the keeper says by itself, or when it is asked how mysqld is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A status, with the number that its question carried.
    Status(Status, u64),
    /// mysqld was started; nothing was permitted to that start yet.
    Started(StartId),
    /// mysqld ended and was reaped.
    Exited(StartId),
    /// It was told to end: fence now.
    Stopping,
    /// Another sidecar has taken the session.
    Superseded,
    /// A session stands.
    Connected,
    /// The session ended; what became of mysqld is not known.
    Lost,
    /// The keeper of the last session and every mysqld that it started have ended.
    Ended,
}

/// A request on its way to the session.
struct Asked {
    request: Request,
    answer: Answer,
}

/// What becomes of an answer.
enum Answer {
    /// Somebody waits for it.
    To(oneshot::Sender<Reply>),
    /// It is a status, and goes where the keeper's words go.
    Word(u64),
    /// Nobody needs it.
    Nowhere,
}

/// The keeper, for whoever asks it.
#[derive(Clone)]
pub(crate) struct Keeper {
    requests: mpsc::Sender<Asked>,
    known: Known,
}

/// The start that the keeper has last told; 0 while it has told none.
#[derive(Clone, Default)]
struct Known(Arc<AtomicU64>);

impl Known {
    fn set(&self, start: Option<protocol::StartId>) {
        self.0.store(start.map_or(0, protocol::StartId::get), Ordering::SeqCst);
    }

    fn get(&self) -> Option<StartId> {
        Some(self.0.load(Ordering::SeqCst)).filter(|start| *start != 0).map(StartId)
    }
}

impl Keeper {
    /// The keeper at that socket, and the work of talking to it, which goes on until it is dropped. Its words go to
    /// `words`, in order.
    pub(crate) fn at(socket: PathBuf, words: mpsc::Sender<Word>) -> (Self, impl Future<Output = ()> + Send) {
        let (requests, queue) = mpsc::channel(WAITING);
        let known = Known::default();
        let keeper = Self { requests, known: known.clone() };
        (keeper, session::keep(socket, queue, words, known))
    }

    /// The start of mysqld that the keeper has last told; none: it has told none, or that it ended.
    pub(crate) fn known_start(&self) -> Option<StartId> {
        self.known.get()
    }

    /// Asks how mysqld is; the answer comes among the keeper's words, with this number.
    pub(crate) fn ask_status(&self, number: u64) {
        self.send(Request::Status, Answer::Word(number));
    }

    /// Prolongs a permit. Who is too late or not heard is killed by the keeper: nobody waits for the answer.
    pub(crate) fn renew(&self, permit: Permit) {
        if let Some(permit) = printed(permit) {
            self.send(Request::Renew(permit), Answer::Nowhere);
        }
    }

    /// Tells that both variables of that start were read back as 1.
    pub(crate) fn fenced(&self, start: StartId) {
        if let Some(start) = protocol::StartId::new(start.0) {
            self.send(Request::Fenced { start }, Answer::Nowhere);
        }
    }

    /// Asks for a permit; whether it was given. "No" may be wrong when the answer was lost.
    pub(crate) async fn permit(&self, permit: Permit, within: Duration) -> bool {
        let Some(permit) = printed(permit) else { return false };
        self.ask(Request::Permit(permit), within).await == Some(Reply::Permitted)
    }

    /// The opener's password for that start.
    pub(crate) async fn opener(&self, start: StartId, within: Duration) -> Option<protocol::Password> {
        match self.ask(Request::Opener, within).await {
            Some(Reply::Opener { start: of, password }) if of.get() == start.0 => Some(password),
            _ => None,
        }
    }

    /// Has that start killed; true when it is reaped.
    pub(crate) async fn kill(&self, start: StartId, within: Duration) -> bool {
        let Some(start) = protocol::StartId::new(start.0) else { return false };
        self.ask(Request::Kill { start }, within).await == Some(Reply::Killed { start })
    }

    /// Has the data folder of that start emptied. Refused, or no answer: why.
    pub(crate) async fn empty(&self, start: StartId, within: Duration) -> Result<(), String> {
        let Some(start) = protocol::StartId::new(start.0) else { return Err("no keeper has named that start".into()) };
        match self.ask(Request::Empty { start }, within).await {
            Some(Reply::Emptying { start: of }) if of == start => Ok(()),
            Some(Reply::Refused(why)) => Err(format!("the keeper refused: {why}")),
            _ => Err("the keeper gave no answer".to_owned()),
        }
    }

    async fn ask(&self, request: Request, within: Duration) -> Option<Reply> {
        let (tell, told) = oneshot::channel();
        self.send(request, Answer::To(tell));
        timeout(within, told).await.ok()?.ok()
    }

    /// A queue that is full belongs to a keeper that hangs: the request is dropped, and who waits for it hears so.
    fn send(&self, request: Request, answer: Answer) {
        let _ = self.requests.try_send(Asked { request, answer });
    }
}

/// None for a start that no keeper has named.
fn printed(permit: Permit) -> Option<protocol::Permit> {
    let Permit { start, epoch, deadline } = permit;
    let start = protocol::StartId::new(start.0)?;
    Some(protocol::Permit { start, epoch, deadline: deadline.0 })
}
