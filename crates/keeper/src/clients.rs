//! The socket and who is connected to it.
//!
//! In: bytes. Out: lines, and the lines of the keeper. Must not: block, keep more than a few kilobytes for anyone, or
//! let one client keep another, or the loop, from its turn.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use bloodraven_keeper::protocol::{Line, MAX_LINE, Reply};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::Mode;

use crate::error::Error;
use crate::state::ClientId;

/// How many may be connected: one sidecar, and some that look. When a further one comes, the oldest of those that are
/// not the session goes, so that a sidecar always gets in.
const CLIENTS: usize = 16;

/// How much may wait to be read by a client before its next request is looked at.
const PATIENCE: usize = 8 << 10;

/// How much may wait at all; who lets that much pile up is dropped.
const PILE: usize = 32 << 10;

/// Everyone who is connected.
pub(crate) struct Clients {
    listener: UnixListener,
    path: PathBuf,
    list: Vec<Client>,
    next: u64,
    gone: Vec<ClientId>,
    /// The last accept failed: no use in being woken for it at once.
    deaf: bool,
}

struct Client {
    id: ClientId,
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Nothing more is read; it ends when everything is sent.
    closing: bool,
    broken: bool,
}

impl Clients {
    /// Binds the socket, for this user alone, in the place of one that a dead keeper left.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        crate::first_boot::remove(path)?;
        let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
        let listener = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        let listener = listener.map_err(Error::file("listen on", path))?;
        Ok(Self { listener, path: path.to_owned(), list: Vec::new(), next: 1, gone: Vec::new(), deaf: false })
    }

    /// What is to be polled.
    pub(crate) fn interests<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if !self.deaf {
            fds.push(PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN));
        }
        for client in &self.list {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, client.wants_to_hear());
            flags.set(PollFlags::OUT, !client.output.is_empty());
            if !flags.is_empty() {
                fds.push(PollFd::from_borrowed_fd(client.fd(), flags));
            }
        }
    }

    /// Whether a request waits that can be answered now.
    pub(crate) fn has_lines(&self) -> bool {
        self.list.iter().any(Client::has_line)
    }

    /// Whether new clients were not let in for want of something.
    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// Lets new ones in and hears everyone once.
    pub(crate) fn hear(&mut self, session: Option<ClientId>) {
        self.accept(session);
        for client in &mut self.list {
            client.hear();
        }
    }

    /// The next request that waits, from one client after the other. Bounded, because a client whose answers pile up
    /// has no more.
    pub(crate) fn line(&mut self) -> Option<(ClientId, Result<String, Reply>)> {
        let at = self.list.iter().position(Client::has_line)?;
        // Whoever had a turn waits until the others had theirs.
        self.list[at..].rotate_left(1);
        let client = self.list.last_mut()?;
        let line = client.take_line()?;
        Some((client.id, line))
    }

    pub(crate) fn say(&mut self, to: ClientId, line: &Line) {
        if let Some(client) = self.list.iter_mut().find(|client| client.id == to) {
            client.say(line);
        }
    }

    /// Closes the connection when what it was told is sent; what it asked meanwhile is not looked at.
    pub(crate) fn close(&mut self, id: ClientId) {
        if let Some(client) = self.list.iter_mut().find(|client| client.id == id) {
            client.input.clear();
            client.closing = true;
        }
    }

    /// Sends what can be sent, and tells who is gone.
    pub(crate) fn flush(&mut self) -> Vec<ClientId> {
        for client in &mut self.list {
            client.flush();
        }
        let gone = &mut self.gone;
        self.list.retain(|client| {
            let stays = !(client.broken || client.closing && client.output.is_empty() && !client.has_line());
            if !stays {
                gone.push(client.id);
            }
            stays
        });
        std::mem::take(gone)
    }

    /// Whether everything was sent.
    pub(crate) fn is_quiet(&self) -> bool {
        self.list.iter().all(|client| client.output.is_empty())
    }

    fn accept(&mut self, session: Option<ClientId>) {
        self.deaf = false;
        for _ in 0..CLIENTS {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream, session),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.deaf = true;
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: UnixStream, session: Option<ClientId>) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.list.len() >= CLIENTS {
            let others = self.list.iter().enumerate().filter(|(_, client)| session != Some(client.id));
            if let Some((at, _)) = others.min_by_key(|(_, client)| client.id.0) {
                self.gone.push(self.list.swap_remove(at).id);
            }
        }
        let (id, input, output) = (ClientId(self.next), Vec::new(), Vec::new());
        self.next += 1;
        self.list.push(Client { id, stream, input, output, closing: false, broken: false });
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // The next keeper removes what is left.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Client {
    fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn wants_to_hear(&self) -> bool {
        !self.closing && !self.broken && self.output.len() < PATIENCE && !self.input.contains(&b'\n')
    }

    fn has_line(&self) -> bool {
        !self.broken && self.output.len() < PATIENCE && self.input.contains(&b'\n')
    }

    /// One read.
    fn hear(&mut self) {
        if !self.wants_to_hear() {
            return;
        }
        let mut buffer = [0; MAX_LINE];
        let room = MAX_LINE.saturating_sub(self.input.len());
        match self.stream.read(&mut buffer[..room]) {
            Ok(0) => self.closing = true,
            Ok(count) => self.input.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.broken = true,
        }
        if self.input.len() >= MAX_LINE && !self.input.contains(&b'\n') {
            self.input.clear();
            self.say(&Line::Reply(Reply::Error { why: "line-too-long".into() }));
            self.closing = true;
        }
    }

    fn take_line(&mut self) -> Option<Result<String, Reply>> {
        let end = self.input.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.input.drain(..=end).collect();
        line.pop();
        Some(String::from_utf8(line).map_err(|_| Reply::Error { why: "not-utf-8".into() }))
    }

    fn say(&mut self, line: &Line) {
        // Writing to memory cannot fail.
        let _ = writeln!(self.output, "{line}");
        self.broken |= self.output.len() > PILE;
    }

    fn flush(&mut self) {
        while !self.output.is_empty() && !self.broken {
            match self.stream.write(&self.output) {
                Ok(0) => self.broken = true,
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.broken = true,
            }
        }
    }
}
