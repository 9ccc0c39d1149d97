//! What the keeper knows and decides: permits, the dead man, the one session, stopping, restarts.
//!
//! In: what happened, with the time. Out: effects for the hands to carry out, in order. Must not: do IO or look at a
//! clock; make a permit from a renewal; let anything but a confirmed fence or the end of mysqld take a permit away; empty
//! a data folder while a permit stands.

use bloodraven_keeper::protocol::{
    DEAD_MAN, EMPTY_WAIT, FENCE_WAIT, Line, Mysqld, Password, Permit, Refusal, Reply, Request, StartId, Status, Unasked,
};

use crate::log::{Entry, Level};

/// Names a connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(pub(crate) u64);

/// The exit code with which mysqld asks to be started again (CLONE, RESTART).
const RESTART: i32 = 16;

/// What the keeper ends with when it was told to end before there was a server.
const TERMINATED: i32 = 128 + 15;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Send a line.
    Say(ClientId, Line),
    /// Close the connection once its lines are sent.
    Close(ClientId),
    /// SIGKILL for the child.
    Kill,
    /// SIGTERM for the child.
    Terminate,
    /// The data folder is initialised: note it for good, then start mysqld.
    FirstBootDone,
    /// The data folder could not be initialised: say why, and end with this code.
    FirstBootFailed(u8),
    /// Start mysqld, fenced, as a new start.
    Start,
    /// Note for good that the data folder is to be emptied.
    MarkForEmptying,
    /// Empty the data folder that was marked, and initialise it.
    FirstBootAgain,
    /// The init file has been read, or will never be.
    RemoveInitFile,
    /// End the keeper with this code.
    End(u8),
    /// Tell the log.
    Log(Entry),
}

/// The child that is there.
#[derive(Debug)]
enum Child {
    None,
    Initialiser { pid: u32 },
    Server(Server),
}

/// A start of mysqld.
#[derive(Debug)]
pub(crate) struct Server {
    pid: u32,
    start: StartId,
    started: u64,
    opener: Password,
    /// The init file was read to its end.
    ready: bool,
    permit: Option<Permit>,
    /// SIGKILL was sent.
    killed: bool,
    /// SIGTERM was sent.
    terminated: bool,
    /// Its data is to be thrown away; killed if it has not ended by then.
    emptying: Option<u64>,
    /// Who waits to hear that it was killed.
    waiting: Vec<ClientId>,
}

impl Server {
    pub(crate) fn new(pid: u32, start: StartId, started: u64, opener: Password) -> Self {
        let fresh = (false, None, false, false, None, Vec::new());
        let (ready, permit, killed, terminated, emptying, waiting) = fresh;
        Self { pid, start, started, opener, ready, permit, killed, terminated, emptying, waiting }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The exit code, or 128 + the signal.
    pub(crate) code: i32,
    /// Whether a signal ended it.
    pub(crate) by_signal: bool,
}

/// Everything that the keeper knows.
#[derive(Debug)]
pub(crate) struct State {
    child: Child,
    last: Option<End>,
    session: Option<ClientId>,
    stopping: bool,
    /// Until when `fenced` is waited for before mysqld is stopped.
    fence_until: Option<u64>,
    /// What the keeper ends with, whatever mysqld does.
    verdict: Option<u8>,
}

impl State {
    pub(crate) fn new() -> Self {
        let nothing = (Child::None, None, None, false, None, None);
        let (child, last, session, stopping, fence_until, verdict) = nothing;
        Self { child, last, session, stopping, fence_until, verdict }
    }

    /// The process that is there, if any.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.child {
            Child::None => None,
            Child::Initialiser { pid } | Child::Server(Server { pid, .. }) => Some(*pid),
        }
    }

    pub(crate) fn session(&self) -> Option<ClientId> {
        self.session
    }

    /// When time alone changes something next.
    pub(crate) fn wake(&self) -> Option<u64> {
        let dead_man = self.server().filter(|server| !server.killed).and_then(|server| server.permit).map(dead_man);
        let emptying = self.server().filter(|server| !server.killed).and_then(|server| server.emptying);
        [dead_man, emptying, self.fence_until].into_iter().flatten().min()
    }

    /// Whether a permit is held.
    pub(crate) fn holds_permit(&self) -> bool {
        self.server().is_some_and(|server| server.permit.is_some())
    }

    /// The initialisation of the data folder runs.
    pub(crate) fn initialising(&mut self, pid: u32) {
        self.child = Child::Initialiser { pid };
    }

    /// mysqld was started.
    pub(crate) fn started(&mut self, server: Server, out: &mut Vec<Effect>) {
        let (pid, start) = (server.pid, server.start);
        self.child = Child::Server(server);
        out.push(Effect::Log(
            Entry::new(Level::Info, "Started", "mysqld started, fenced").with("start", start.get()).with("pid", pid),
        ));
        self.tell(Unasked::Started { start }, out);
    }

    /// Nobody can see mysqld read its init file: it counts as read from the start.
    pub(crate) fn unwatched(&mut self) {
        if let Child::Server(server) = &mut self.child {
            server.ready = true;
        }
    }

    /// mysqld closed its init file; `taken`: every statement of it succeeded.
    pub(crate) fn init_file_closed(&mut self, taken: bool, out: &mut Vec<Effect>) {
        let Child::Server(server) = &mut self.child else { return };
        out.push(Effect::RemoveInitFile);
        if taken {
            server.ready = true;
            let text = "mysqld has its accounts";
            return out.push(Effect::Log(Entry::new(Level::Info, "Ready", text).with("start", server.start.get())));
        }
        let text = "mysqld refused a statement of the init file, so an account is missing: its own error line above \
                    says which (app and readonly accounts need partial-revokes=ON); stopping it";
        out.push(Effect::Log(Entry::new(Level::Error, "InitFileRefused", text)));
        self.verdict = Some(1);
        self.stopping = true;
        self.terminate(out);
    }

    /// A child has ended and is reaped.
    pub(crate) fn reaped(&mut self, pid: u32, end: End, out: &mut Vec<Effect>) {
        if self.pid() != Some(pid) {
            return; // An orphan that came to us.
        }
        self.last = Some(end);
        match std::mem::replace(&mut self.child, Child::None) {
            Child::None => {}
            Child::Initialiser { .. } => self.initialiser_ended(end, out),
            Child::Server(server) => self.server_ended(&server, end, out),
        }
    }

    fn initialiser_ended(&mut self, end: End, out: &mut Vec<Effect>) {
        if self.stopping {
            out.push(Effect::End(exit_code(TERMINATED)));
        } else if end.code == 0 {
            out.extend([Effect::FirstBootDone, Effect::Start]);
        } else {
            out.push(Effect::FirstBootFailed(exit_code(end.code)));
        }
    }

    fn server_ended(&mut self, server: &Server, end: End, out: &mut Vec<Effect>) {
        let (start, code) = (server.start, end.code);
        let level = if code == 0 || code == RESTART { Level::Info } else { Level::Error };
        let entry = Entry::new(level, "Exited", "mysqld ended").with("start", start.get()).with("code", code);
        out.extend([Effect::Log(entry), Effect::RemoveInitFile]);
        for client in &server.waiting {
            out.push(Effect::Say(*client, Line::Reply(Reply::Killed { start })));
        }
        self.tell(Unasked::Exited { start, code }, out);
        if server.emptying.is_some() && !self.stopping {
            return out.push(Effect::FirstBootAgain);
        }
        if code == RESTART && !end.by_signal && !self.stopping {
            return out.push(Effect::Start);
        }
        out.push(Effect::End(self.verdict.unwrap_or_else(|| exit_code(code))));
    }

    /// SIGTERM or SIGINT came.
    pub(crate) fn told_to_end(&mut self, now: u64, out: &mut Vec<Effect>) {
        if self.stopping {
            return;
        }
        out.push(Effect::Log(Entry::new(Level::Info, "Stopping", "told to end: stopping mysqld")));
        self.tell(Unasked::Stopping, out);
        self.stop(now, out);
    }

    /// Time has passed: first the dead man.
    pub(crate) fn time(&mut self, now: u64, out: &mut Vec<Effect>) {
        if let Child::Server(server) = &mut self.child {
            let over = server.permit.filter(|permit| !server.killed && now >= dead_man(*permit));
            if let Some(permit) = over {
                server.killed = true;
                let entry = Entry::new(Level::Error, "DeadMan", "the permit is over: killing mysqld");
                let entry = entry.with("start", server.start.get()).with("epoch", permit.epoch);
                out.extend([Effect::Kill, Effect::Log(entry.with("lateMs", now.saturating_sub(permit.deadline)))]);
            }
        }
        if let Child::Server(server) = &mut self.child
            && server.emptying.is_some_and(|until| now >= until)
            && !std::mem::replace(&mut server.killed, true)
        {
            let entry = Entry::new(Level::Warn, "Kill", "mysqld does not stop, and its data is not wanted: killing it");
            out.extend([Effect::Kill, Effect::Log(entry.with("start", server.start.get()))]);
        }
        if self.fence_until.is_some_and(|until| now >= until) {
            out.push(Effect::Log(Entry::new(Level::Warn, "NotFenced", "nobody fenced in time: stopping mysqld")));
            self.terminate(out);
        }
    }

    /// A connection has ended.
    pub(crate) fn gone(&mut self, client: ClientId) {
        if self.session == Some(client) {
            self.session = None;
        }
        if let Child::Server(server) = &mut self.child {
            server.waiting.retain(|waiting| *waiting != client);
        }
    }

    /// A client asked for something.
    pub(crate) fn asked(&mut self, now: u64, client: ClientId, request: Request, out: &mut Vec<Effect>) {
        let reply = match request {
            Request::Status => Some(Reply::Status(self.status())),
            Request::Hello => return self.hello(client, out),
            _ if self.session != Some(client) => Some(Reply::Refused(Refusal::NotTheSession)),
            Request::Opener => Some(self.opener()),
            Request::Permit(permit) => Some(self.permit(now, permit, out)),
            Request::Renew(permit) => Some(self.renew(permit)),
            Request::Fenced { start } => return self.fenced(client, start, out),
            Request::Kill { start } => self.kill(client, start, out),
            Request::Empty { start } => Some(self.empty(now, start, out)),
            Request::Stop => {
                out.push(say(client, Reply::Stopping));
                return self.stop(now, out);
            }
        };
        out.extend(reply.map(|reply| say(client, reply)));
    }

    fn hello(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        if let Some(older) = self.session.filter(|older| *older != client) {
            self.tell(Unasked::Superseded, out);
            self.gone(older);
            out.push(Effect::Close(older));
            out.push(Effect::Log(Entry::new(Level::Info, "Session", "a new session shuts the older one")));
        }
        self.session = Some(client);
        out.push(say(client, Reply::Welcome));
        if self.stopping {
            self.tell(Unasked::Stopping, out);
        }
    }

    fn opener(&self) -> Reply {
        match self.server().filter(|server| !server.killed && server.emptying.is_none()) {
            Some(server) => Reply::Opener { start: server.start, password: server.opener.clone() },
            None => Reply::Refused(Refusal::NotRunning),
        }
    }

    fn permit(&mut self, now: u64, asked: Permit, out: &mut Vec<Effect>) -> Reply {
        let stopping = self.stopping;
        let Some(server) = self.living(asked.start) else { return Reply::Refused(Refusal::OtherStart) };
        if stopping {
            return Reply::Refused(Refusal::Stopping);
        }
        if now >= asked.deadline {
            return Reply::Refused(Refusal::Past);
        }
        server.permit = Some(asked);
        let entry = Entry::new(Level::Info, "Permitted", "mysqld may be opened").with("start", asked.start.get());
        out.push(Effect::Log(entry.with("epoch", asked.epoch).with("forMs", asked.deadline - now)));
        Reply::Permitted
    }

    fn renew(&mut self, asked: Permit) -> Reply {
        let Some(server) = self.living(asked.start) else { return Reply::Refused(Refusal::OtherStart) };
        if server.permit.is_none() {
            return Reply::Refused(Refusal::NoPermit);
        }
        server.permit = Some(asked);
        Reply::Renewed
    }

    fn fenced(&mut self, client: ClientId, start: StartId, out: &mut Vec<Effect>) {
        out.push(say(client, Reply::Noted));
        let Some(server) = self.living(start) else { return };
        if server.permit.take().is_some() {
            let entry = Entry::new(Level::Info, "Fenced", "mysqld is fenced: the permit is withdrawn");
            out.push(Effect::Log(entry.with("start", start.get())));
        }
        if self.fence_until.is_some() {
            self.terminate(out);
        }
    }

    /// The answer comes when the process is reaped.
    fn kill(&mut self, client: ClientId, start: StartId, out: &mut Vec<Effect>) -> Option<Reply> {
        let Child::Server(server) = &mut self.child else { return Some(Reply::Refused(Refusal::OtherStart)) };
        if server.start != start {
            return Some(Reply::Refused(Refusal::OtherStart));
        }
        server.waiting.push(client);
        if !server.killed {
            server.killed = true;
            let entry = Entry::new(Level::Warn, "Kill", "killing mysqld as the sidecar asked");
            out.extend([Effect::Kill, Effect::Log(entry.with("start", start.get()))]);
        }
        None
    }

    /// Without a permit the server is closed, and from here on it gets none.
    fn empty(&mut self, now: u64, start: StartId, out: &mut Vec<Effect>) -> Reply {
        let stopping = self.stopping;
        let Some(server) = self.living(start) else { return Reply::Refused(Refusal::OtherStart) };
        if stopping {
            return Reply::Refused(Refusal::Stopping);
        }
        if server.permit.is_some() {
            return Reply::Refused(Refusal::Permit);
        }
        server.emptying = Some(now.saturating_add(EMPTY_WAIT));
        let entry = Entry::new(Level::Warn, "Emptying", "the data folder is emptied, as the sidecar asked");
        out.extend([Effect::MarkForEmptying, Effect::Log(entry.with("start", start.get()))]);
        self.terminate(out);
        Reply::Emptying { start }
    }

    /// Without a permit mysqld is fenced; without a session nobody could fence it: then there is nothing to wait for.
    fn stop(&mut self, now: u64, out: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        match &self.child {
            Child::None => out.push(Effect::End(exit_code(TERMINATED))),
            Child::Initialiser { .. } => out.push(Effect::Kill),
            Child::Server(server) if server.permit.is_some() && self.session.is_some() => {
                self.fence_until = Some(now.saturating_add(FENCE_WAIT));
            }
            Child::Server(_) => self.terminate(out),
        }
    }

    fn terminate(&mut self, out: &mut Vec<Effect>) {
        self.fence_until = None;
        if let Child::Server(server) = &mut self.child
            && !std::mem::replace(&mut server.terminated, true)
        {
            out.push(Effect::Terminate);
        }
    }

    fn status(&self) -> Status {
        let server = self.server();
        let mysqld = match (&self.child, self.last) {
            (Child::Server(server), _) if server.ready => Mysqld::Running,
            (Child::Initialiser { .. }, _) => Mysqld::Initialising,
            (Child::Server(_), _) | (Child::None, None) => Mysqld::Booting,
            (Child::None, Some(end)) => {
                if end.by_signal {
                    Mysqld::Killed
                } else {
                    Mysqld::Exited
                }
            }
        };
        Status {
            pid: self.pid(),
            start: server.map(|server| server.start),
            started: server.map(|server| server.started),
            mysqld,
            code: self.last.map(|end| end.code),
            permit: server.and_then(|server| server.permit),
            stopping: self.stopping,
        }
    }

    fn tell(&self, word: Unasked, out: &mut Vec<Effect>) {
        out.extend(self.session.map(|session| Effect::Say(session, Line::Unasked(word))));
    }

    fn server(&self) -> Option<&Server> {
        if let Child::Server(server) = &self.child { Some(server) } else { None }
    }

    /// The server, if it is that start and was neither killed nor is to lose its data.
    fn living(&mut self, start: StartId) -> Option<&mut Server> {
        let Child::Server(server) = &mut self.child else { return None };
        (server.start == start && !server.killed && server.emptying.is_none()).then_some(server)
    }
}

/// When a permit ends in SIGKILL.
fn dead_man(permit: Permit) -> u64 {
    permit.deadline.saturating_add(DEAD_MAN)
}

fn say(client: ClientId, reply: Reply) -> Effect {
    Effect::Say(client, Line::Reply(reply))
}

/// A code that a process can end with; what has no place there is 255.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
