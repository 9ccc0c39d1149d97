//! A leader with a confirmed primary among servers that do what they are asked for, and a log of what it asked.
//!
//! In: servers, what is stored, tasks that fail or hang. Out: the log, line by line: what was stored, tasked, removed and
//! told. Must not: decide anything; sidecars are silent here, so nobody contradicts the polls.

use crate::authority::Policy;
use crate::candidate::Data;
use crate::candidate::drain::{Applier, Receiver};
use crate::group::accounts::{AccountRole, Channel, Credentials, CredentialsVersion, Logins, NO_SUCH_ACCOUNT};
use crate::group::command::{Command, SourceSwitch, Switch, Task, WorkId};
use crate::group::input::{
    Facts, Input, Loaded, Outcome, RecloneWish, ReplicaFacts, Request, Requests, Saved, Saw, SourceSide,
};
use crate::group::kept::{Kept, SiteKept};
use crate::group::tests::{facts, set, spec};
use crate::group::{Group, Notice, Spec};
use crate::name::{Instance, Member, Site};
use crate::record::{Cause, Holder, Phase, Record, VoterSet};
use crate::site::Pair;
use crate::time::{Boot, Millis, Now, Wall};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const TICK: Millis = Millis(250);

/// As many inputs follow from one; a leader that asks for more goes round in circles.
const INPUTS: usize = 500;

pub(in crate::group) struct Bench {
    pub(in crate::group) group: Group,
    pub(in crate::group) now: Now,
    pub(in crate::group) store: Kept,
    pub(in crate::group) servers: BTreeMap<Site, Server>,
    /// What happened, `Read`s apart.
    pub(in crate::group) log: Vec<String>,
    /// How each task of that name ends instead of well; none: it hangs.
    pub(in crate::group) outcomes: BTreeMap<&'static str, Option<Outcome>>,
    /// How saves end; the last one for good.
    pub(in crate::group) saves: VecDeque<Saved>,
    /// Requests are not removed when that is asked for.
    pub(in crate::group) requests_stay: bool,
    hanging: Vec<(WorkId, Site, Task)>,
    next_poll: Boot,
    inputs: VecDeque<Input>,
}

pub(in crate::group) struct Server {
    pub(in crate::group) up: bool,
    pub(in crate::group) facts: Facts,
    /// The version of each account's password.
    pub(in crate::group) accounts: BTreeMap<AccountRole, u64>,
    /// Whose password before is still good.
    pub(in crate::group) second: BTreeSet<AccountRole>,
    /// The version of what its channel logs in with.
    pub(in crate::group) channel: u64,
    /// Nothing arrives.
    pub(in crate::group) lags: bool,
    /// The operator's login is refused.
    pub(in crate::group) refuses: bool,
}

impl Server {
    const ROLES: [AccountRole; 3] = [AccountRole::Operator, AccountRole::Replication, AccountRole::App];

    fn new(facts: Facts) -> Self {
        let accounts = Self::ROLES.map(|role| (role, 1));
        Self {
            up: true,
            facts,
            accounts: accounts.into(),
            second: BTreeSet::new(),
            channel: 1,
            lags: false,
            refuses: false,
        }
    }

    fn logins(&self, version: CredentialsVersion) -> Logins {
        let refusal = |role: AccountRole| match self.accounts.get(&role) {
            Some(has) if *has == version.0 => None,
            Some(_) => Some((role, 1045)),
            None => Some((role, NO_SUCH_ACCOUNT)),
        };
        let refused = Self::ROLES.into_iter().filter_map(refusal);
        let channel = match &self.facts.replica {
            None => Channel::None,
            Some(_) if self.channel == version.0 => Channel::Current,
            Some(_) => Channel::Outdated,
        };
        Logins { refused: refused.collect(), second: self.second.clone(), channel }
    }
}

pub(in crate::group) fn site(name: &str) -> Site {
    Site::new(name)
}

/// Files beside the servers come within five minutes.
pub(in crate::group) fn credentials(version: u64) -> Credentials {
    Credentials { version: CredentialsVersion(version), spread: Millis::from_secs(300) }
}

/// A closed server without replication; the number is its own.
pub(in crate::group) fn alone(number: u8, executed: &str) -> Facts {
    facts(number, executed)
}

/// A closed server that follows that source, both threads running.
pub(in crate::group) fn following(number: u8, executed: &str, source: &str) -> Facts {
    let replica = ReplicaFacts {
        source: Some(site(source)),
        receiver: Receiver::Running,
        receiver_error: None,
        applier: Applier::Running,
        delayed: false,
        behind: Some(Millis(0)),
    };
    Facts { replica: Some(replica), ..facts(number, executed) }
}

/// `iad` has authority and has executed `1:1-10`; these are the others.
pub(in crate::group) fn bench(others: Vec<(&str, Facts)>) -> Bench {
    let mut names = vec!["iad"];
    names.extend(others.iter().map(|(name, _)| *name));
    let mut bench = Bench::of(spec(&names), others);
    bench.restart();
    bench
}

fn record(spec: &Spec, primary: &Site) -> Record {
    let member = |site: &Site| Member::new(site, &Instance::new(&format!("pod-{site}"), "s1"));
    let voters: Vec<Member> = spec.names().iter().map(member).collect();
    let holder = Holder {
        member: member(primary),
        server_uuid: None,
        sets: vec![VoterSet { epoch: 7, voters: voters.clone(), settings: spec.lease }],
        sql_fence_sent: false,
    };
    Record {
        epoch: 7,
        tenure: 7,
        seat: Some(member(primary)),
        phase: Phase::Stable,
        voters,
        settings: spec.lease,
        since: Wall(0),
        cause: Cause::Emergency,
        proof: None,
        revoked_at: None,
        holder: Some(holder),
        ended: Vec::new(),
    }
}

impl Bench {
    fn of(mut spec: Spec, others: Vec<(&str, Facts)>) -> Self {
        spec.proof = Policy::Required;
        let primary = Facts { pair: Pair::OPEN, ..facts(1, "1:1-10") };
        let mut servers = BTreeMap::from([(site("iad"), Server::new(primary))]);
        for (name, facts) in others {
            let name = name.strip_suffix(":dr").unwrap_or(name);
            servers.insert(site(name), Server::new(facts));
        }
        let store =
            Kept { record: Some(record(&spec, &site("iad"))), promotion: Some(set("1:1-5")), ..Kept::default() };
        Self {
            group: Group::new(spec, Boot(0)),
            now: Now { boot: Boot(1_000_000), wall: Wall(1_800_000_000_000) },
            store,
            servers,
            log: Vec::new(),
            outcomes: BTreeMap::new(),
            saves: VecDeque::new(),
            requests_stay: false,
            hanging: Vec::new(),
            next_poll: Boot(0),
            inputs: VecDeque::new(),
        }
    }

    /// Another leader: the same spec, the same store, no memory.
    pub(in crate::group) fn restart(&mut self) {
        let requests = self.group.seen.requests.clone();
        let credentials = self.group.seen.credentials.unwrap_or_else(|| credentials(1));
        self.group = Group::new(self.group.spec.clone(), self.now.boot);
        self.hanging.clear();
        self.tell(Input::Leads(Some(Boot(u64::MAX))));
        self.tell(Input::Requests(Box::new(requests)));
        self.tell(Input::CredentialsChanged(credentials));
    }

    /// What is known of a site before the story begins.
    pub(in crate::group) fn stored(mut self, name: &str, kept: SiteKept) -> Self {
        self.store.sites.insert(site(name), kept);
        self.restart();
        self
    }

    pub(in crate::group) fn kept(&self, name: &str) -> SiteKept {
        self.store.site(&site(name))
    }

    pub(in crate::group) fn server(&mut self, name: &str) -> &mut Server {
        self.servers.get_mut(&site(name)).expect("a server")
    }

    /// The server has executed these, too.
    pub(in crate::group) fn executes(&mut self, name: &str, transactions: &str) {
        let data = self.server(name).facts.data.get_or_insert_default();
        data.executed = data.executed.union(&set(transactions));
    }

    pub(in crate::group) fn respec(&mut self, change: impl Fn(&mut Spec)) {
        let mut spec = self.group.spec.clone();
        change(&mut spec);
        self.tell(Input::Spec(Box::new(spec)));
    }

    pub(in crate::group) fn ask(&mut self, text: &str, wish: Result<RecloneWish, String>) {
        let reclone = Some(Request { text: text.to_owned(), wish });
        self.tell(Input::Requests(Box::new(Requests { reclone, ..Requests::default() })));
    }

    /// Ends a task that hangs.
    pub(in crate::group) fn end(&mut self, name: &str, outcome: Outcome) {
        let at = self.hanging.iter().position(|(_, _, task)| task_name(task) == name).expect("it hangs");
        let (id, _, _) = self.hanging.remove(at);
        self.tell(Input::Done { id, outcome });
    }

    /// Time passes; servers are polled every two seconds.
    pub(in crate::group) fn run(&mut self, seconds: u64) -> &mut Self {
        let end = self.now.boot + Millis::from_secs(seconds);
        while self.now.boot < end {
            self.now.boot = self.now.boot + TICK;
            self.now.wall = self.now.wall.after(TICK);
            if self.now.boot >= self.next_poll {
                self.next_poll = self.now.boot + Millis(2000);
                self.poll();
            }
            self.tell(Input::Tick);
        }
        self
    }

    fn poll(&mut self) {
        let began_under = self.store.epoch();
        for name in self.group.spec.names() {
            let saw = self.servers.get(&name).filter(|server| server.up);
            let saw = saw.map_or(Saw::Nothing, |server| {
                if server.refuses { Saw::LoginRefused } else { Saw::Facts(Box::new(server.facts.clone())) }
            });
            self.tell(Input::Polled { site: name, began_under, saw });
        }
    }

    /// The log since it was last taken.
    pub(in crate::group) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// How often a line of that beginning is in the log.
    pub(in crate::group) fn count(&self, beginning: &str) -> usize {
        self.log.iter().filter(|line| line.starts_with(beginning)).count()
    }

    pub(in crate::group) fn tell(&mut self, input: Input) {
        self.inputs.push_back(input);
        for _ in 0..INPUTS {
            let Some(input) = self.inputs.pop_front() else { return };
            let step = self.group.step(self.now, input);
            self.log.extend(step.notices.iter().filter_map(told));
            for command in step.commands {
                self.perform(command);
            }
        }
        panic!("it goes round in circles: {:?}", self.log);
    }

    fn perform(&mut self, command: Command) {
        match command {
            Command::Load => self.inputs.push_back(Input::Loaded(Loaded::Kept(Box::new(self.store.clone())))),
            Command::Save { id, kept } => {
                let saved = self.saves.pop_front().unwrap_or(Saved::All);
                if saved == Saved::All {
                    self.log.extend(differences(&self.store, &kept));
                    self.store = *kept;
                } else {
                    self.log.push("lost a save".to_owned());
                }
                self.inputs.push_back(Input::Saved { id, saved });
            }
            Command::Work { id, site, task, .. } => self.work(id, &site, &task),
            Command::RemoveRequest { text, .. } => {
                self.log.push(format!("remove {text}"));
                let same = |request: &Request<RecloneWish>| request.text == text;
                if !self.requests_stay && self.group.seen.requests.reclone.as_ref().is_some_and(same) {
                    self.inputs.push_back(Input::Requests(Box::default()));
                }
            }
            Command::Push { .. }
            | Command::Probe { .. }
            | Command::Answer { .. }
            | Command::Grant(_)
            | Command::Show(_)
            | Command::Roll { .. }
            | Command::ReleasePod { .. }
            | Command::SetCacheImage { .. } => {}
        }
    }

    fn work(&mut self, id: WorkId, site: &Site, task: &Task) {
        if !matches!(task, Task::Read | Task::CheckLogins { .. }) {
            self.log.push(format!("{site}: {}", task_line(task)));
        }
        match self.outcomes.get(task_name(task)) {
            None => {
                let outcome = self.outcome(site, task);
                self.inputs.push_back(Input::Done { id, outcome });
            }
            Some(Some(outcome)) => self.inputs.push_back(Input::Done { id, outcome: outcome.clone() }),
            Some(None) => self.hanging.push((id, site.clone(), task.clone())),
        }
    }

    fn outcome(&mut self, name: &Site, task: &Task) -> Outcome {
        let sets: BTreeMap<Site, Option<Data>> =
            self.servers.iter().map(|(name, server)| (name.clone(), server.facts.data.clone())).collect();
        let Some(server) = self.servers.get_mut(name).filter(|server| server.up) else {
            return Outcome::Failed("the site does not answer".to_owned());
        };
        let facts = &mut server.facts;
        let data_of = |site: &Site| sets.get(site).cloned().flatten().unwrap_or_default();
        match task {
            Task::Attach { source, contained_in } | Task::Repoint { source, contained_in } => {
                let held = facts.data.as_ref().map(Data::held).unwrap_or_default();
                if !contained_in.contains(&held) {
                    return Outcome::Failed("it has what the source lacks".to_owned());
                }
                let number = facts.server_uuid.as_bytes()[0];
                *facts = Facts { data: Some(data_of(source)), ..following(number, "", source.as_str()) };
                facts.user_data = true;
            }
            Task::StartReplica => {
                if let Some(replica) = &mut facts.replica {
                    (replica.receiver, replica.applier) = (Receiver::Running, Applier::Running);
                }
                return Outcome::Ok;
            }
            Task::StopReceiver => {
                if let Some(replica) = &mut facts.replica {
                    replica.receiver = Receiver::Stopped;
                }
            }
            Task::Clone { donor, .. } => {
                facts.data = Some(data_of(donor));
                (facts.replica, facts.user_data) = (None, true);
                return Outcome::Cloned;
            }
            Task::Fence => facts.pair = Pair::CLOSED,
            Task::SwitchSemiSync(switch) => switch_sides(facts, *switch),
            Task::CheckLogins { version } => return Outcome::Logins(Box::new(server.logins(*version))),
            Task::RenewChannel { version } => {
                server.channel = version.0;
                return Outcome::Ok;
            }
            Task::SetPasswords { version, accounts, .. } => {
                return self.change_passwords(name, *version, accounts, |server, role, version| {
                    server.accounts.insert(role, version.0);
                    server.second.insert(role);
                });
            }
            Task::DiscardPasswords { version, accounts, .. } => {
                return self.change_passwords(name, *version, accounts, |server, role, _| {
                    server.second.remove(&role);
                });
            }
            _ => {}
        }
        Outcome::Read(Box::new(facts.clone()))
    }
}

impl Bench {
    /// At that server, and at whoever follows it and gets what it writes.
    fn change_passwords(
        &mut self,
        name: &Site,
        version: CredentialsVersion,
        accounts: &[AccountRole],
        change: fn(&mut Server, AccountRole, CredentialsVersion),
    ) -> Outcome {
        for role in accounts {
            for (other, server) in &mut self.servers {
                let follows = server.facts.replica.as_ref().is_some_and(|replica| {
                    replica.source.as_ref() == Some(name) && replica.applier == Applier::Running && !server.lags
                });
                if (other == name || follows) && server.accounts.contains_key(role) {
                    change(server, *role, version);
                }
            }
        }
        Outcome::Logins(Box::new(self.servers[name].logins(version)))
    }
}

fn switch_sides(facts: &mut Facts, switch: Switch) {
    let receives = facts.replica.as_ref().is_some_and(|replica| replica.receiver == Receiver::Running);
    let semi_sync = &mut facts.semi_sync;
    match switch.source {
        Some(SourceSwitch::On { timeout }) => semi_sync.source = Some(SourceSide { timeout, strict: true }),
        Some(SourceSwitch::Off | SourceSwitch::OffIfClosed) => semi_sync.source = None,
        None => {}
    }
    if let Some(on) = switch.replica {
        (semi_sync.replica, semi_sync.acknowledges) = (on, on && receives);
    }
}

pub(in crate::group) fn task_name(task: &Task) -> &'static str {
    match task {
        Task::Read => "Read",
        Task::Fence => "Fence",
        Task::StopReceiver => "StopReceiver",
        Task::StartReplica => "StartReplica",
        Task::Attach { .. } => "Attach",
        Task::Repoint { .. } => "Repoint",
        Task::Clone { .. } => "Clone",
        Task::SwitchSemiSync(_) => "Switch",
        Task::CheckLogins { .. } => "CheckLogins",
        Task::SetPasswords { .. } => "SetPasswords",
        Task::DiscardPasswords { .. } => "DiscardPasswords",
        Task::RenewChannel { .. } => "RenewChannel",
        _ => "other",
    }
}

fn task_line(task: &Task) -> String {
    match task {
        Task::Attach { source, .. } => format!("attach to {source}"),
        Task::Repoint { source, .. } => format!("point to {source}"),
        Task::Clone { donor, .. } => format!("clone from {donor}"),
        Task::SwitchSemiSync(Switch { source, replica }) => format!("switch {source:?} {replica:?}"),
        Task::SetPasswords { version, accounts, .. } => format!("set {} of {accounts:?}", version.0),
        Task::DiscardPasswords { version, accounts, .. } => format!("discard before {} of {accounts:?}", version.0),
        Task::RenewChannel { version } => format!("renew channel {}", version.0),
        task => task_name(task).to_owned(),
    }
}

/// What was stored about sites, one line each.
fn differences(before: &Kept, after: &Kept) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, kept) in &after.sites {
        let was = before.site(name);
        if kept.recovery != was.recovery || kept.divergent != was.divergent {
            let set = kept.divergent.to_string();
            let set = set.replace("-0202-0202-0202-020202020202", "").replace("-0303-0303-0303-030303030303", "");
            lines.push(format!("stored {name} {:?} {set}", kept.recovery).trim_end().to_owned());
        }
        if kept.clone != was.clone {
            let clone = kept.clone.as_ref();
            let words = clone.map_or("no clone".to_owned(), |clone| {
                format!("{:?} {:?} {}", clone.source, clone.phase, clone.attempts)
            });
            lines.push(format!("stored {name} {words}"));
        }
    }
    lines
}

fn told(notice: &Notice) -> Option<String> {
    match notice {
        Notice::RecoveryStarted { site } => Some(format!("told RecoveryStarted {site}")),
        Notice::RecoveryComplete { site } => Some(format!("told RecoveryComplete {site}")),
        Notice::DivergenceFound { site, set } => Some(format!("told DivergenceFound {site} {}", set.count())),
        Notice::RecloneRequested { site } => Some(format!("told RecloneRequested {site}")),
        Notice::PasswordsSet { site, accounts } => Some(format!("told PasswordsSet {site} {accounts:?}")),
        Notice::PasswordsDiscarded { site, accounts } => Some(format!("told PasswordsDiscarded {site} {accounts:?}")),
        Notice::PasswordsNotSet { site, because } => Some(format!("told PasswordsNotSet {site} {because}")),
        Notice::PasswordsRefused { site, accounts } => Some(format!("told PasswordsRefused {site} {accounts:?}")),
        Notice::RecloneRejected { because } => Some(format!("told RecloneRejected {because}")),
        _ => None,
    }
}
