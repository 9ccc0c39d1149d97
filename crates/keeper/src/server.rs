//! The loop: waits, looks at the clock, and carries out what the state decides.
//!
//! In: signals, ended children, clients, time. Out: mysqld started, stopped, killed; answers. Must not: wait for
//! anything but the poll; touch a disk while a permit stands; look at a client before it looked at the clock.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

use bloodraven_keeper::protocol::{Line, Password, Reply, Request, StartId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::accounts::{Credentials, Root, init_file};
use crate::args::{Args, argument};
use crate::clients::Clients;
use crate::error::Error;
use crate::first_boot::{self, Folders, Plan, plan};
use crate::lock::Locks;
use crate::log::{Entry, Level, Log};
use crate::state::{Effect, Server, State};
use crate::watch::Watch;
use crate::{clock, process, signals};

/// What every start of mysqld has, after all that the caller gave: the last of a name wins, and the command line wins
/// against files and against what was persisted.
const FENCE: [&str; 3] = ["--read-only=ON", "--super-read-only=ON", "--persisted-globals-load=OFF"];

/// The longest sleep while a permit is held: a pause of the whole machine does not count in a sleep, but in a permit.
const WATCHFUL: u64 = 250;

/// The longest sleep otherwise, in case something was missed.
const IDLE: u64 = 10_000;

/// How long the last answers may take when the keeper ends.
const FAREWELL: u64 = 500;

/// The keeper.
pub(crate) struct Keeper<'a> {
    args: &'a Args,
    log: &'a mut Log,
    folders: Folders,
    state: State,
    clients: Clients,
    watch: Option<Watch>,
    end: Option<u8>,
    locks: Locks,
}

/// Keeps mysqld until it ends, and gives the code to end with.
pub(crate) fn keep(args: &Args, log: &mut Log) -> Result<u8, Error> {
    signals::listen().map_err(Error::system("handle signals"))?;
    let folders = Folders::open(&args.datadir, &args.state)?;
    std::fs::create_dir_all(&args.run).map_err(Error::file("make", &args.run))?;
    let locks = Locks::take(&args.state, &args.socket)?;
    let clients = Clients::open(&args.socket)?;
    let (state, watch, end) = (State::new(), None, None);
    let mut keeper = Keeper { args, log, folders, state, clients, watch, end, locks };
    keeper.boot()?;
    while keeper.end.is_none() {
        keeper.turn()?;
    }
    keeper.farewell();
    Ok(keeper.end.unwrap_or(1))
}

impl Keeper<'_> {
    /// First boot if there has to be one, then the first start.
    fn boot(&mut self) -> Result<(), Error> {
        let found = self.folders.look()?;
        let plan = plan(found);
        if plan == Plan::Start {
            return self.start();
        }
        if found.filled {
            self.say(
                Level::Warn,
                "FirstBootAgain",
                "the first boot was not finished, or is to be done anew: emptying the data folder",
            );
        } else if found.done {
            self.say(Level::Warn, "DataLost", "the data folder is empty although it was initialised before");
        }
        self.folders.begin()?;
        if plan == Plan::Again {
            self.folders.empty()?;
        }
        self.say(Level::Info, "Initialising", "initialising the data folder");
        let pid = process::spawn(&self.args.mysqld, [OsStr::new("--initialize-insecure")], self.locks.all())
            .map_err(Error::system("start mysqld --initialize-insecure"))?;
        self.state.initialising(pid);
        Ok(())
    }

    /// Starts mysqld, always fenced.
    fn start(&mut self) -> Result<(), Error> {
        if self.folders.renew_identity()? {
            self.say(Level::Info, "NewIdentity", "removed auto.cnf: mysqld gets a new server_uuid");
        }
        for path in self.args.stale_sockets() {
            first_boot::remove(&path)?;
        }
        let opener = self.write_init_file()?;
        let path = self.args.init_file();
        self.watch = Watch::new(&path, &self.args.datadir)
            .inspect_err(|error| {
                let text = format!("cannot watch the init file ({error}): it stays until mysqld ends");
                self.log.say(&Entry::new(Level::Warn, "NoWatch", text));
            })
            .ok();
        let init = argument("--init-file=", path.as_os_str());
        let more = FENCE.iter().map(OsStr::new).chain([init.as_os_str()]);
        let pid = process::spawn(&self.args.mysqld, more, self.locks.all()).map_err(Error::system("start mysqld"))?;
        let mut effects = Vec::new();
        self.state.started(Server::new(pid, start_id()?, clock::boot(), opener), &mut effects);
        if self.watch.is_none() {
            self.state.unwatched();
        }
        self.act(effects)
    }

    /// Writes the init file, readable for this user alone, and gives the opener's password of this start.
    fn write_init_file(&self) -> Result<Password, Error> {
        let credentials = self.args.credentials.as_deref().map(Credentials::read).transpose()?.unwrap_or_default();
        let more = match &self.args.init_sql {
            Some(path) => std::fs::read_to_string(path).map_err(Error::file("read", path))?,
            None => String::new(),
        };
        let (opener, unknown) = (secret()?, secret()?);
        let root = match &credentials.root {
            Some(given) => Root::Closed(given),
            None if self.folders.is_ours() => Root::Closed(&unknown),
            None => Root::Left,
        };
        let text = init_file(&credentials, root, &self.args.opener_host, &opener, &more);
        let path = self.args.init_file();
        first_boot::remove(&path)?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(Error::file("write the init file", &path))?;
        Password::new(opener).ok_or_else(|| Error::system("make a password")(ErrorKind::InvalidData.into()))
    }

    /// One turn: the clock before everything, clients after everything.
    fn turn(&mut self) -> Result<(), Error> {
        self.wait();
        let mut effects = Vec::new();
        self.state.time(clock::boot(), &mut effects);
        self.act(std::mem::take(&mut effects))?;
        signals::clear();
        if signals::told_to_end() {
            self.state.told_to_end(clock::boot(), &mut effects);
        }
        // Before the reaping: what mysqld said before its end counts.
        if let Some(taken) = self.watch.as_mut().and_then(Watch::closed) {
            self.watch = None;
            self.state.init_file_closed(taken, &mut effects);
        }
        let (ended, more) = process::reap();
        for (pid, end) in ended {
            self.state.reaped(pid, end, &mut effects);
        }
        if more {
            signals::wake();
        }
        self.act(effects)?;
        self.serve()
    }

    /// Sleeps until something happens or time alone changes something.
    fn wait(&self) {
        let now = clock::boot();
        let longest = if self.state.holds_permit() || self.clients.is_deaf() { WATCHFUL } else { IDLE };
        let sleep = match self.state.wake() {
            _ if self.clients.has_lines() => 0,
            Some(wake) => wake.saturating_sub(now).min(longest),
            None => longest,
        };
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        let own = [signals::readable(), self.watch.as_ref().map(|watch| watch.as_fd())];
        fds.extend(own.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        self.clients.interests(&mut fds);
        // A signal ends it, too; whatever it says, everything is looked at afterwards.
        let _ = poll(&mut fds, Some(&clock::milliseconds(sleep)));
    }

    /// Hears the clients and answers them.
    fn serve(&mut self) -> Result<(), Error> {
        self.clients.hear(self.state.session());
        while self.end.is_none()
            && let Some((client, line)) = self.clients.line()
        {
            let mut effects = Vec::new();
            match line.map(|line| line.parse::<Request>()) {
                Ok(Ok(request)) => self.state.asked(clock::boot(), client, request, &mut effects),
                Ok(Err(odd)) => {
                    let reply = Reply::Error { why: odd.to_string() };
                    effects.push(Effect::Say(client, Line::Reply(reply)));
                }
                Err(reply) => effects.push(Effect::Say(client, Line::Reply(reply))),
            }
            self.act(effects)?;
        }
        for client in self.clients.flush() {
            self.state.gone(client);
        }
        Ok(())
    }

    /// Carries out effects in their order.
    fn act(&mut self, effects: Vec<Effect>) -> Result<(), Error> {
        for effect in effects {
            match effect {
                Effect::Say(client, line) => self.clients.say(client, &line),
                Effect::Close(client) => self.clients.close(client),
                Effect::Kill => self.signal(Signal::KILL),
                Effect::Terminate => self.signal(Signal::TERM),
                Effect::FirstBootDone => self.folders.finish()?,
                Effect::FirstBootFailed(code) => {
                    self.first_boot_failed(code);
                    self.end = Some(code);
                }
                Effect::Start => self.start()?,
                // Before anything is stopped: whatever happens from here on, the next start empties. What cannot be noted ends the keeper,
                // and the data stays.
                Effect::MarkForEmptying => self.folders.begin()?,
                Effect::FirstBootAgain => self.boot()?,
                Effect::RemoveInitFile => {
                    self.watch = None;
                    // mysqld may be running: this is no reason to end it.
                    if let Err(error) = first_boot::remove(&self.args.init_file()) {
                        self.log.say(&Entry::new(Level::Error, "InitFileLeft", error.to_string()));
                    }
                }
                Effect::End(code) => self.end = Some(code),
                Effect::Log(entry) => self.log.say(&entry),
            }
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) {
        let Some(Err(error)) = self.state.pid().map(|pid| process::signal(pid, signal)) else { return };
        self.log.say(&Entry::new(Level::Error, "SignalFailed", format!("cannot signal mysqld: {error}")));
        if signal == Signal::KILL {
            // What cannot be killed may still die with its parent; a permit must not outlive its time.
            self.end = Some(128 + 9);
        }
    }

    fn first_boot_failed(&mut self, code: u8) {
        let entry = if let Some(free) = self.folders.nearly_full() {
            let text = format!(
                "the data volume is full: {} MiB are left at {}; make it larger, the next start begins anew",
                free >> 20,
                self.args.datadir.display()
            );
            Entry::new(Level::Error, "DiskFull", text)
        } else {
            let text = "mysqld could not initialise the data folder: its own error line above says why; the next \
                        start begins anew";
            Entry::new(Level::Error, "InitialiseFailed", text)
        };
        self.log.say(&entry.with("code", u32::from(code)));
    }

    /// Sends the last answers, and leaves no secret behind.
    fn farewell(&mut self) {
        let until = clock::boot().saturating_add(FAREWELL);
        loop {
            self.clients.flush();
            let left = until.saturating_sub(clock::boot());
            if self.clients.is_quiet() || left == 0 {
                break;
            }
            let mut fds = Vec::new();
            self.clients.interests(&mut fds);
            let _ = poll(&mut fds, Some(&clock::milliseconds(left.min(50))));
        }
    }

    fn say(&mut self, level: Level, event: &'static str, text: &str) {
        self.log.say(&Entry::new(level, event, text));
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        // Also after an error: nothing can be done about a file that does not go.
        let _ = first_boot::remove(&self.args.init_file());
    }
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|error| Error::system("get randomness")(error.into()))?;
    if filled == N { Ok(bytes) } else { Err(Error::system("get randomness")(ErrorKind::UnexpectedEof.into())) }
}

fn start_id() -> Result<StartId, Error> {
    // Zero comes once in 2^53 draws; twice in a row never.
    let draw = || Ok::<_, Error>(StartId::new(u64::from_ne_bytes(random()?) >> 11));
    match draw()? {
        Some(start) => Ok(start),
        None => draw()?.ok_or_else(|| Error::system("get randomness")(ErrorKind::InvalidData.into())),
    }
}

/// 256 random bits as text, with a sign of each kind for servers that check passwords.
fn secret() -> Result<String, Error> {
    let bytes: [u8; 32] = random()?;
    let mut text = String::with_capacity(2 * bytes.len() + 4);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push_str("-Aa0");
    Ok(text)
}
