//! A client of the keeper's socket.
//!
//! In: requests. Out: their answers, and the keeper's own words apart from them. Must not: wait without a bound.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use bloodraven_keeper::protocol::{Line, Password, Permit, Refusal, Reply, Request, StartId, Status, Unasked};

use super::{LIMIT, boot};

/// One connection.
pub(crate) struct Talk {
    stream: BufReader<UnixStream>,
    unasked: VecDeque<Unasked>,
}

impl Talk {
    pub(crate) fn connect(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        stream.set_write_timeout(Some(LIMIT)).ok()?;
        Some(Self { stream: BufReader::new(stream), unasked: VecDeque::new() })
    }

    /// A client that has become the session.
    pub(crate) fn hello(socket: &Path) -> Self {
        let mut talk = Self::connect(socket).expect("the keeper listens");
        assert_eq!(talk.ask(Request::Hello), Reply::Welcome);
        talk
    }

    /// What the keeper says about mysqld, if there is a keeper.
    pub(crate) fn status(socket: &Path) -> Option<Status> {
        let mut talk = Self::connect(socket)?;
        talk.send(&Request::Status.to_string()).ok()?;
        match talk.line()? {
            Line::Reply(Reply::Status(status)) => Some(status),
            other => panic!("{other}"),
        }
    }

    pub(crate) fn send(&mut self, line: &str) -> std::io::Result<()> {
        self.stream.get_mut().write_all(format!("{line}\n").as_bytes())
    }

    /// The next line; none when the keeper has closed the connection.
    pub(crate) fn line(&mut self) -> Option<Line> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end_matches('\n').parse().unwrap_or_else(|error| panic!("{line:?}: {error}"))),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the keeper does not answer: {error}"),
        }
    }

    /// A request and its answer.
    pub(crate) fn ask(&mut self, request: Request) -> Reply {
        self.send(&request.to_string()).unwrap();
        self.reply()
    }

    /// The next answer; what the keeper says of its own is kept.
    pub(crate) fn reply(&mut self) -> Reply {
        loop {
            match self.line() {
                Some(Line::Reply(reply)) => return reply,
                Some(Line::Unasked(word)) => self.unasked.push_back(word),
                None => panic!("the keeper closed the connection"),
            }
        }
    }

    /// The next word of the keeper's own.
    pub(crate) fn word(&mut self) -> Unasked {
        if let Some(word) = self.unasked.pop_front() {
            return word;
        }
        match self.line() {
            Some(Line::Unasked(word)) => word,
            other => panic!("{other:?}"),
        }
    }

    /// A permit for so many milliseconds from now; its deadline.
    pub(crate) fn permit(&mut self, start: StartId, milliseconds: u64) -> u64 {
        let deadline = boot() + milliseconds;
        assert_eq!(self.ask(Request::Permit(Permit { start, epoch: 1, deadline })), Reply::Permitted);
        deadline
    }

    pub(crate) fn opener(&mut self) -> (StartId, Password) {
        match self.ask(Request::Opener) {
            Reply::Opener { start, password } => (start, password),
            other => panic!("{other}"),
        }
    }

    pub(crate) fn refused(&mut self, request: Request, why: Refusal) {
        assert_eq!(self.ask(request), Reply::Refused(why), "{request}");
    }
}
