//! One session with the keeper, and the next one after it.
//!
//! In: lines and requests. Out: lines, answers, words. Must not: read a line longer than the protocol allows, or go on when
//! an answer is overdue.

use super::life::Life;
use super::{Answer, Asked, BACKOFF, Known, Word};
use bloodraven_brain::message::StartId;
use bloodraven_keeper::protocol::{Line, MAX_LINE, Reply, Request, Unasked};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

/// How long an answer may take, a kill apart: the keeper answers in a millisecond. Then the session is made anew.
const OVERDUE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 2000 });

/// How many lines may wait to be looked at.
const LINES: usize = 32;

/// Talks to the keeper for as long as it is polled: session after session.
pub(super) async fn keep(
    socket: PathBuf,
    mut requests: mpsc::Receiver<Asked>,
    words: mpsc::Sender<Word>,
    known: Known,
) {
    let mut wait = BACKOFF.0;
    let mut life = None;
    loop {
        if let Some(mut session) = greet(&socket).await {
            wait = BACKOFF.0;
            life = Life::held(&socket).await;
            let _ = words.send(Word::Connected).await;
            let end = session.run(&mut requests, &words, &known).await;
            let _ = words.send(Word::Lost).await;
            if end == End::OfThisProcess {
                return;
            }
        }
        if life.take_if(|life| life.is_over()).is_some() {
            known.set(None);
            let _ = words.send(Word::Ended).await;
        }
        if !pause(wait, &mut requests).await {
            return;
        }
        wait = (wait * 2).min(BACKOFF.1);
    }
}

/// Waits for the next attempt. What is asked meanwhile is answered by nobody. False: nobody will ever ask again.
async fn pause(wait: Duration, requests: &mut mpsc::Receiver<Asked>) -> bool {
    let until = Instant::now() + wait;
    loop {
        tokio::select! {
            () = sleep_until(until) => return true,
            asked = requests.recv() => if asked.is_none() { return false },
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is made again.
    OfSession,
    /// Another sidecar took it, or nobody asks any more.
    OfThisProcess,
}

struct Session {
    to: OwnedWriteHalf,
    lines: mpsc::Receiver<Line>,
    /// Without an answer, in the order in which they were sent; with the moment by which it is due.
    pending: VecDeque<(Request, Answer, Instant)>,
}

/// Connects and says hello.
async fn greet(socket: &Path) -> Option<Session> {
    let stream = timeout(OVERDUE, UnixStream::connect(socket)).await.ok()?.ok()?;
    let (from, to) = stream.into_split();
    let (tell, lines) = mpsc::channel(LINES);
    // Ends with the connection, or when nobody looks at the lines any more.
    tokio::spawn(read_lines(from, tell));
    let mut session = Session { to, lines, pending: VecDeque::new() };
    session.say(Request::Hello).await?;
    match timeout(OVERDUE, session.lines.recv()).await.ok()?? {
        Line::Reply(Reply::Welcome) => Some(session),
        _ => None,
    }
}

/// Reads lines until the end, or until something comes that is none.
async fn read_lines(from: OwnedReadHalf, tell: mpsc::Sender<Line>) {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        let mut line = (&mut from).take(limit);
        let read = tokio::select! {
            read = line.read_until(b'\n', &mut bytes) => read,
            () = tell.closed() => return,
        };
        let whole = read.is_ok() && bytes.pop() == Some(b'\n');
        let line = std::str::from_utf8(&bytes).ok().filter(|_| whole).and_then(|text| text.parse::<Line>().ok());
        let Some(line) = line else { return };
        if tell.send(line).await.is_err() {
            return;
        }
    }
}

impl Session {
    async fn run(&mut self, requests: &mut mpsc::Receiver<Asked>, words: &mpsc::Sender<Word>, known: &Known) -> End {
        // The first thing to know is how mysqld is.
        if self.send(Asked { request: Request::Status, answer: Answer::Word(0) }).await.is_none() {
            return End::OfSession;
        }
        loop {
            let overdue = self.overdue();
            tokio::select! {
                line = self.lines.recv() => {
                    let Some(line) = line else {
                        known.set(None);
                        return End::OfSession;
                    };
                    if let Some(word) = self.take(line, known) {
                        let _ = words.send(word).await;
                        if word == Word::Superseded {
                            return End::OfThisProcess;
                        }
                    }
                }
                asked = requests.recv() => {
                    let Some(asked) = asked else { return End::OfThisProcess };
                    if self.send(asked).await.is_none() {
                        return End::OfSession;
                    }
                }
                () = overdue => return End::OfSession,
            }
        }
    }

    /// Ends when an answer is overdue; never while none is due.
    fn overdue(&self) -> impl Future<Output = ()> + Send + use<> {
        let due = self.pending.iter().filter(|(request, ..)| !is_kill(request)).map(|(.., due)| *due).min();
        async move {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    async fn send(&mut self, asked: Asked) -> Option<()> {
        self.say(asked.request).await?;
        self.pending.push_back((asked.request, asked.answer, Instant::now() + OVERDUE));
        Some(())
    }

    async fn say(&mut self, request: Request) -> Option<()> {
        let line = format!("{request}\n");
        timeout(OVERDUE, self.to.write_all(line.as_bytes())).await.ok()?.ok()
    }

    /// Takes one line: gives an answer to who asked, or hands the word on.
    fn take(&mut self, line: Line, known: &Known) -> Option<Word> {
        match line {
            Line::Unasked(Unasked::Started { start }) => {
                known.set(Some(start));
                Some(Word::Started(StartId(start.get())))
            }
            Line::Unasked(Unasked::Exited { start, .. }) => {
                known.set(None);
                Some(Word::Exited(StartId(start.get())))
            }
            Line::Unasked(Unasked::Stopping) => Some(Word::Stopping),
            Line::Unasked(Unasked::Superseded) => Some(Word::Superseded),
            Line::Reply(reply) => self.answer(reply, known),
        }
    }

    fn answer(&mut self, reply: Reply, known: &Known) -> Option<Word> {
        // The answer to a kill may come after others that were asked later.
        let of = self.pending.iter().position(|(request, ..)| may_answer(*request, &reply));
        let (_, answer, _) = self.pending.remove(of?)?;
        match answer {
            Answer::To(tell) => drop(tell.send(reply)),
            Answer::Nowhere => {
                if let Reply::Refused(why) = reply {
                    tracing::warn!(why = %why, "the keeper refused");
                }
            }
            Answer::Word(number) => {
                let Reply::Status(status) = reply else { return None };
                known.set(status.start);
                return Some(Word::Status(status, number));
            }
        }
        None
    }
}

const fn is_kill(request: &Request) -> bool {
    matches!(request, Request::Kill { .. })
}

/// Whether that can be the answer to that request. Answers come in order, a kill's apart.
fn may_answer(request: Request, reply: &Reply) -> bool {
    match (request, reply) {
        (Request::Kill { start }, Reply::Killed { start: killed }) => start == *killed,
        (Request::Empty { start }, Reply::Emptying { start: emptied }) => start == *emptied,
        (Request::Status, Reply::Status(_))
        | (Request::Hello, Reply::Welcome)
        | (Request::Opener, Reply::Opener { .. })
        | (Request::Permit(_), Reply::Permitted)
        | (Request::Renew(_), Reply::Renewed)
        | (Request::Fenced { .. }, Reply::Noted)
        | (Request::Stop, Reply::Stopping)
        | (_, Reply::Refused(_) | Reply::Error { .. }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
