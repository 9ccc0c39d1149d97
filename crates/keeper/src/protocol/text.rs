//! The text form: `verb key=value …`, values without blanks, `-` for none.
//!
//! In: a line without its end, or a value. Out: the other. Must not: accept what it would not print.

use std::fmt;
use std::str::FromStr;

use super::{Line, Mysqld, Password, Permit, Refusal, Reply, Request, StartId, Status, Unasked, Unreadable};

/// How much of a word that is not understood is told: enough to recognise it.
const SHOWN: usize = 32;

const REFUSALS: [(Refusal, &str); 7] = [
    (Refusal::NotTheSession, "not-the-session"),
    (Refusal::NotRunning, "not-running"),
    (Refusal::OtherStart, "other-start"),
    (Refusal::Stopping, "stopping"),
    (Refusal::Past, "past"),
    (Refusal::NoPermit, "no-permit"),
    (Refusal::Permit, "permit"),
];

const STATES: [(Mysqld, &str); 5] = [
    (Mysqld::Booting, "booting"),
    (Mysqld::Initialising, "initialising"),
    (Mysqld::Running, "running"),
    (Mysqld::Exited, "exited"),
    (Mysqld::Killed, "killed"),
];

/// The words of a line, taken by key.
struct Words<'a> {
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    /// The verb and the words after it; the keys must be exactly `keys`, in any order.
    fn of(rest: impl Iterator<Item = &'a str>, keys: &[&'static str]) -> Result<Self, Unreadable> {
        let mut pairs: Vec<(&str, &str)> = Vec::with_capacity(keys.len());
        for word in rest {
            let odd = || Unreadable::Word(shown(word));
            let (key, value) = word.split_once('=').ok_or_else(odd)?;
            if !keys.contains(&key) || pairs.iter().any(|(known, _)| *known == key) {
                return Err(odd());
            }
            pairs.push((key, value));
        }
        let words = Self { pairs };
        for key in keys {
            words.text(key)?;
        }
        Ok(words)
    }

    fn text(&self, key: &'static str) -> Result<&'a str, Unreadable> {
        let found = self.pairs.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| *value).ok_or(Unreadable::Missing(key))
    }

    fn read<T>(&self, key: &'static str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Unreadable> {
        read(self.text(key)?).ok_or(Unreadable::Value(key))
    }

    /// A value that may be `-`.
    fn maybe<T>(&self, key: &'static str, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Unreadable> {
        self.read(key, |text| if text == "-" { Some(None) } else { read(text).map(Some) })
    }

    fn start(&self) -> Result<StartId, Unreadable> {
        self.read("start", start)
    }

    fn permit(&self) -> Result<Permit, Unreadable> {
        Ok(Permit {
            start: self.start()?,
            epoch: self.read("epoch", number)?,
            deadline: self.read("deadline", number)?,
        })
    }
}

impl FromStr for Request {
    type Err = Unreadable;

    fn from_str(line: &str) -> Result<Self, Unreadable> {
        let (verb, rest) = split(line)?;
        let plain = |keys| Words::of(rest.clone(), keys);
        Ok(match verb {
            "status" => plain(&[]).map(|_| Self::Status)?,
            "hello" => plain(&[]).map(|_| Self::Hello)?,
            "opener" => plain(&[]).map(|_| Self::Opener)?,
            "stop" => plain(&[]).map(|_| Self::Stop)?,
            "permit" => Self::Permit(plain(&["start", "epoch", "deadline"])?.permit()?),
            "renew" => Self::Renew(plain(&["start", "epoch", "deadline"])?.permit()?),
            "fenced" => Self::Fenced { start: plain(&["start"])?.start()? },
            "kill" => Self::Kill { start: plain(&["start"])?.start()? },
            "empty" => Self::Empty { start: plain(&["start"])?.start()? },
            other => return Err(Unreadable::Verb(shown(other))),
        })
    }
}

impl FromStr for Reply {
    type Err = Unreadable;

    fn from_str(line: &str) -> Result<Self, Unreadable> {
        let (verb, rest) = split(line)?;
        let plain = |keys| Words::of(rest.clone(), keys);
        Ok(match verb {
            "status" => Self::Status(status(rest)?),
            "welcome" => plain(&[]).map(|_| Self::Welcome)?,
            "permitted" => plain(&[]).map(|_| Self::Permitted)?,
            "renewed" => plain(&[]).map(|_| Self::Renewed)?,
            "noted" => plain(&[]).map(|_| Self::Noted)?,
            "stopping" => plain(&[]).map(|_| Self::Stopping)?,
            "killed" => Self::Killed { start: plain(&["start"])?.start()? },
            "emptying" => Self::Emptying { start: plain(&["start"])?.start()? },
            "opener" => {
                let words = plain(&["start", "password"])?;
                Self::Opener { start: words.start()?, password: words.read("password", |text| Password::new(text))? }
            }
            "refused" => Self::Refused(plain(&["why"])?.read("why", |text| named(&REFUSALS, text))?),
            "error" => Self::Error { why: plain(&["why"])?.text("why")?.to_owned() },
            other => return Err(Unreadable::Verb(shown(other))),
        })
    }
}

impl FromStr for Unasked {
    type Err = Unreadable;

    fn from_str(line: &str) -> Result<Self, Unreadable> {
        let (verb, rest) = split(line)?;
        let plain = |keys| Words::of(rest.clone(), keys);
        Ok(match verb {
            "!started" => Self::Started { start: plain(&["start"])?.start()? },
            "!exited" => {
                let words = plain(&["start", "code"])?;
                Self::Exited { start: words.start()?, code: words.read("code", number)? }
            }
            "!stopping" => plain(&[]).map(|_| Self::Stopping)?,
            "!superseded" => plain(&[]).map(|_| Self::Superseded)?,
            other => return Err(Unreadable::Verb(shown(other))),
        })
    }
}

impl FromStr for Line {
    type Err = Unreadable;

    fn from_str(line: &str) -> Result<Self, Unreadable> {
        if line.starts_with('!') { line.parse().map(Self::Unasked) } else { line.parse().map(Self::Reply) }
    }
}

fn status<'a>(rest: impl Iterator<Item = &'a str>) -> Result<Status, Unreadable> {
    let keys = ["pid", "start", "started", "mysqld", "code", "permit", "stopping"];
    let words = Words::of(rest, &keys)?;
    Ok(Status {
        pid: words.maybe("pid", number)?,
        start: words.maybe("start", start)?,
        started: words.maybe("started", number)?,
        mysqld: words.read("mysqld", |text| named(&STATES, text))?,
        code: words.maybe("code", number)?,
        permit: words.maybe("permit", short_permit)?,
        stopping: words.read("stopping", |text| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })?,
    })
}

fn split(line: &str) -> Result<(&str, impl Iterator<Item = &str> + Clone), Unreadable> {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let verb = words.next().ok_or(Unreadable::Empty)?;
    Ok((verb, words))
}

/// A number as it is printed: no sign but a minus, no leading zeros.
fn number<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

fn start(text: &str) -> Option<StartId> {
    number(text).and_then(StartId::new)
}

/// `start,epoch,deadline`.
fn short_permit(text: &str) -> Option<Permit> {
    let (first, rest) = text.split_once(',')?;
    let (epoch, deadline) = rest.split_once(',')?;
    Some(Permit { start: start(first)?, epoch: number(epoch)?, deadline: number(deadline)? })
}

fn named<T: Copy>(table: &[(T, &'static str)], text: &str) -> Option<T> {
    table.iter().find(|(_, name)| *name == text).map(|(value, _)| *value)
}

fn name_of<T: Copy + PartialEq>(table: &[(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(known, _)| *known == value).map_or("-", |(_, name)| *name)
}

/// The beginning of a word, made fit for a line of ours.
fn shown(word: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.!".contains(c) { c } else { '-' };
    word.chars().take(SHOWN).map(plain).collect()
}

/// A value that may be missing.
struct Maybe<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

impl fmt::Display for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&REFUSALS, *self))
    }
}

impl fmt::Display for Mysqld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&STATES, *self))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permit = |f: &mut fmt::Formatter<'_>, verb: &str, permit: &Permit| {
            let Permit { start, epoch, deadline } = permit;
            write!(f, "{verb} start={start} epoch={epoch} deadline={deadline}")
        };
        match self {
            Self::Status => f.write_str("status"),
            Self::Hello => f.write_str("hello"),
            Self::Opener => f.write_str("opener"),
            Self::Stop => f.write_str("stop"),
            Self::Permit(asked) => permit(f, "permit", asked),
            Self::Renew(asked) => permit(f, "renew", asked),
            Self::Fenced { start } => write!(f, "fenced start={start}"),
            Self::Kill { start } => write!(f, "kill start={start}"),
            Self::Empty { start } => write!(f, "empty start={start}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Welcome => f.write_str("welcome"),
            Self::Opener { start, password } => write!(f, "opener start={start} password={}", password.reveal()),
            Self::Permitted => f.write_str("permitted"),
            Self::Renewed => f.write_str("renewed"),
            Self::Noted => f.write_str("noted"),
            Self::Killed { start } => write!(f, "killed start={start}"),
            Self::Emptying { start } => write!(f, "emptying start={start}"),
            Self::Stopping => f.write_str("stopping"),
            Self::Refused(why) => write!(f, "refused why={why}"),
            Self::Error { why } => write!(f, "error why={why}"),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, start, started, mysqld, code, permit, stopping } = *self;
        let (pid, start, started, code) = (Maybe(pid), Maybe(start), Maybe(started), Maybe(code));
        let permit = Maybe(permit.map(|Permit { start, epoch, deadline }| format!("{start},{epoch},{deadline}")));
        write!(f, "status pid={pid} start={start} started={started} mysqld={mysqld} code={code} permit={permit} ")?;
        write!(f, "stopping={}", u8::from(stopping))
    }
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { start } => write!(f, "!started start={start}"),
            Self::Exited { start, code } => write!(f, "!exited start={start} code={code}"),
            Self::Stopping => f.write_str("!stopping"),
            Self::Superseded => f.write_str("!superseded"),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(reply) => reply.fmt(f),
            Self::Unasked(word) => word.fmt(f),
        }
    }
}

/// Words joined by dashes, so that they can follow `why=`.
impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty-line"),
            Self::Verb(word) => write!(f, "unknown-verb-{word}"),
            Self::Word(word) => write!(f, "unexpected-word-{word}"),
            Self::Missing(key) => write!(f, "missing-{key}"),
            Self::Value(key) => write!(f, "bad-value-of-{key}"),
        }
    }
}

impl std::error::Error for Unreadable {}
