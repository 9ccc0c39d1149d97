//! The whole local world: everything is brought up in order, hurt at will, and brought down with nothing left.
//!
//! In: options. Out: a running group behind its front doors. Must not: touch a directory that another process has, resume
//! a life that may still run, or leave a process behind.
//!
//! Weather and front doors live in this process; keepers, servers, sidecars and operators are children of it and die with
//! it, however it dies.

mod options;
mod resume;
mod status;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use snafu::{OptionExt as _, ResultExt as _, Snafu, ensure};
use tokio::task::AbortHandle;
use tokio::time::{interval, timeout};

pub use self::options::{GROUP, NAMESPACE, Options, Profile, Role};
pub(crate) use self::resume::{bury, make};
pub use self::status::{OperatorStatus, SiteStatus, Status};
use crate::files;
use crate::network::{self, MOST_OPERATORS, Network};
use crate::operate::Operators;
use crate::router::{self, Router};
use crate::store::lock::{self, Lock};
use crate::store::{self, Store};
use crate::supervisor::mysqld;
use crate::supervisor::{self, Setup, Supervisor};
use crate::weather::{self, Weather};
use crate::world;

/// The longest path that fits into a socket's address, without the zero at its end.
const SOCKET_PATH: usize = 107;

/// The longest name of a socket in a site's folder, with the slash.
const SOCKET_NAME: usize = "/mysqld.sock.lock".len();

/// How often readiness is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long what a killed playground had started may take to be gone: it is killed with it, but a server's memory and files
/// have to be let go.
const LAST_BREATH: Duration = Duration::from_secs(15);

/// What went wrong with the local world.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Another process has the directory.
    #[snafu(display("{} is in use by another playground; stop that one, or name another directory ({source})", dir.display()))]
    Taken {
        /// The directory.
        dir: PathBuf,
        /// What the lock said.
        source: lock::Error,
    },

    /// The directory's group has other sites.
    #[snafu(display(
        "{} has the sites {found}, not {wanted}; name those or none, or another directory",
        dir.display()
    ))]
    OtherSites {
        /// The directory.
        dir: PathBuf,
        /// Its sites.
        found: String,
        /// What was asked for.
        wanted: String,
    },

    /// A wrong number of operators.
    #[snafu(display("{count} operators: at most {MOST_OPERATORS} fit on one machine"))]
    Operators {
        /// As asked for.
        count: u8,
    },

    /// The template is none.
    #[snafu(display("{} is no initialised data folder; name one that mysqld --initialize-insecure made, or none", path.display()))]
    NoTemplate {
        /// The path.
        path: PathBuf,
    },

    /// A process of an earlier run does not end.
    #[snafu(display("process {pid} of an earlier run lives and does not end when killed; end it, then try again"))]
    Survivor {
        /// Its number.
        pid: u32,
    },

    /// There is no short path for sockets.
    #[snafu(display("no path for sockets is short enough: {} is too long; set TMPDIR to a shorter one", path.display()))]
    LongPath {
        /// The path.
        path: PathBuf,
    },

    /// The server program.
    #[snafu(transparent)]
    Mysqld {
        /// What is wrong with it.
        source: mysqld::Error,
    },

    /// The addresses.
    #[snafu(transparent)]
    Network {
        /// What is wrong with them.
        source: network::Error,
    },

    /// The store.
    #[snafu(transparent)]
    Store {
        /// What is wrong with it.
        source: store::Error,
    },

    /// A file.
    #[snafu(transparent)]
    File {
        /// What is wrong with it.
        source: files::Error,
    },

    /// A link.
    #[snafu(transparent)]
    Weather {
        /// What is wrong with it.
        source: weather::Error,
    },

    /// A front door.
    #[snafu(transparent)]
    Router {
        /// What is wrong with it.
        source: router::Error,
    },

    /// A site or an operator.
    #[snafu(transparent)]
    Supervisor {
        /// What is wrong with it.
        source: supervisor::Error,
    },

    /// It takes too long.
    #[snafu(display("no primary after {} s ({state}); the logs are in {}", limit.as_secs(), dir.display()))]
    NotReady {
        /// How long it was given.
        limit: Duration,
        /// How things are.
        state: String,
        /// Where to look.
        dir: PathBuf,
    },
}

/// What a start has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The server program can be used.
    Server {
        /// Its version.
        version: String,
    },
    /// The directory is ours, and whoever had it before is gone.
    Taken,
    /// Nothing runs in the directory any more.
    Directory {
        /// It has a group that is resumed.
        resumed: bool,
    },
    /// Links and front doors are open.
    Links,
    /// A site's keeper and sidecar run.
    Site {
        /// Which.
        name: String,
    },
    /// An operator runs.
    Operator {
        /// Which.
        number: u8,
    },
}

/// A running local world. Everything ends when it is dropped; [`Local::stop`] does it gracefully.
#[derive(Debug)]
pub struct Local {
    store: Store,
    network: Network,
    supervisor: Arc<Supervisor>,
    weather: Weather,
    router: Router,
    roller: AbortHandle,
    run: Run,
    _owner: Lock,
}

impl Local {
    /// Brings everything up: a new group in an empty directory, or the group that is there. Returns when every process runs;
    /// [`Local::ready`] waits for a primary.
    pub async fn start(options: Options, mut progress: impl FnMut(Progress) + Send) -> Result<Self, Error> {
        ensure!(options.operators <= MOST_OPERATORS, OperatorsSnafu { count: options.operators });
        let version = options.programs.mysql.version().await?;
        progress(Progress::Server { version });
        if let Some(path) = &options.template {
            ensure!(path.join("mysql.ibd").is_file(), NoTemplateSnafu { path });
        }
        raise_limits();
        files::private_folder(&options.dir)?;
        let owner =
            Lock::take(&options.dir.join("owner.lock"), Duration::ZERO).context(TakenSnafu { dir: &options.dir })?;
        progress(Progress::Taken);
        let resumed = Store::exists(&options.dir)?;
        let (store, network) = if resumed { resume::reopen(&options)? } else { make(&options)? };
        let patience = if resumed { LAST_BREATH } else { Duration::ZERO };
        free_within(patience, || network.check_free(store.dir(), options.operators)).await?;
        bury(&store).await?;
        progress(Progress::Directory { resumed });
        let setup = setup(&options, &store, &network)?;
        let run = Run(setup.run.clone());
        let supervisor = Arc::new(Supervisor::new(&setup));
        let weather = Weather::start(&network, options.operators)?;
        let states = setup.sites.iter().map(|site| Ok((site.clone(), supervisor.watch_site(site)?)));
        let states = states.collect::<Result<BTreeMap<_, _>, supervisor::Error>>()?;
        let router = Router::start(&network, &store, states).await?;
        progress(Progress::Links);
        let starts = setup.sites.iter().map(|site| async { supervisor.start(site).await.map(|()| site.clone()) });
        for started in futures_util::future::join_all(starts).await {
            progress(Progress::Site { name: started? });
        }
        for number in 0..options.operators {
            supervisor.start_operator(number).await?;
            progress(Progress::Operator { number });
        }
        let roller = tokio::spawn(roll(store.clone(), Arc::clone(&supervisor))).abort_handle();
        Ok(Self { store, network, supervisor, weather, router, roller, run, _owner: owner })
    }

    /// Waits until the record is stable, its site is the one behind the front door, and that one answers.
    pub async fn ready(&self, limit: Duration) -> Result<(), Error> {
        let mut every = interval(LOOK_EVERY);
        let looking = async {
            loop {
                every.tick().await;
                if self.serves() {
                    return;
                }
            }
        };
        let ready = timeout(limit, looking).await.ok();
        ready.with_context(|| NotReadySnafu { limit, state: self.in_words(), dir: self.store.dir() })
    }

    /// Ends everything gracefully: operators give their lease back, servers are fenced and shut down. Nothing is left
    /// running; the data stays.
    pub async fn stop(self) -> Result<(), Error> {
        self.end(true).await
    }

    /// Ends everything at once.
    pub async fn kill(self) -> Result<(), Error> {
        self.end(false).await
    }

    async fn end(self, graceful: bool) -> Result<(), Error> {
        let Self { supervisor, weather, router, roller, run, _owner, .. } = self;
        roller.abort();
        let mut ended = Ok(());
        // The roller may hold it for the moment that its abort takes; what is dropped is killed, so nothing is left either way.
        if let Some(supervisor) = owned(supervisor).await {
            ended = supervisor.end(graceful).await;
        }
        drop((router, weather, run));
        Ok(ended?)
    }

    /// The state directory.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.store.dir()
    }

    /// The addresses.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What befalls links.
    pub fn weather(&self) -> &Weather {
        &self.weather
    }

    /// The front doors.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// What befalls sites and operators.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// The socket of a site's server, for who sits at that machine.
    pub fn socket(&self, site: &str) -> PathBuf {
        self.run.0.join(site).join("mysqld.sock")
    }

    /// User and password of the application.
    pub fn credentials(&self) -> Result<(String, String), Error> {
        Ok(self.store.account("app")?)
    }

    /// How things are.
    pub fn status(&self) -> Result<Status, Error> {
        let object = self.store.read_group()?;
        Ok(status::of(&object, &self.network, &self.supervisor))
    }

    /// Whether the record is stable and its life is the one behind the front door.
    fn serves(&self) -> bool {
        let routed = self.router.routes().borrow().primary.clone();
        let status = self.status();
        status.is_ok_and(|status| status.phase == "Stable" && routed.is_some_and(|it| it.site == status.active_site))
    }

    fn in_words(&self) -> String {
        match self.status() {
            Ok(status) => status.in_words(),
            Err(error) => error.to_string(),
        }
    }
}

/// Waits until every address is free; the last refusal, if one is not in time.
async fn free_within(
    patience: Duration,
    mut check: impl FnMut() -> Result<(), network::Error>,
) -> Result<(), network::Error> {
    let mut every = interval(LOOK_EVERY);
    let looking = async {
        while check().is_err() {
            every.tick().await;
        }
    };
    let _ = timeout(patience, looking).await;
    check()
}

/// Takes the supervisor out of its sharing, as soon as nobody else holds it.
async fn owned(mut shared: Arc<Supervisor>) -> Option<Supervisor> {
    let mut every = interval(LOOK_EVERY);
    for _ in 0..500 {
        match Arc::try_unwrap(shared) {
            Ok(supervisor) => return Some(supervisor),
            Err(still) => shared = still,
        }
        every.tick().await;
    }
    None
}

/// Carries out the leader's wishes for new lives of sites.
async fn roll(store: Store, supervisor: Arc<Supervisor>) {
    let Ok(news) = store.watch_for(&[store::pods::ROLLS], |name| !name.starts_with('.')) else { return };
    let mut count = news.count();
    loop {
        count.mark_unchanged();
        for (site, uid) in store.rolls().unwrap_or_default() {
            let lives = supervisor.site_states().get(&site).is_some_and(|state| state.pod.as_deref() == Some(&*uid));
            if lives && let Err(error) = supervisor.replace(&site, true).await {
                tracing::warn!(%site, %error, "cannot be rolled; tried again when asked again");
            }
        }
        if count.changed().await.is_err() {
            return;
        }
    }
}

fn setup(options: &Options, store: &Store, network: &Network) -> Result<Setup, Error> {
    let object = store.read_group()?;
    let operators = Operators::ensure(store, options.operators, options.profile.election())?;
    let sites: Vec<String> = object.sites().into_iter().map(|(name, _)| name).collect();
    Ok(Setup {
        store: store.clone(),
        network: network.clone(),
        programs: options.programs.clone(),
        template: options.template.clone(),
        backoff: options.backoff,
        run: runtime_folder(store, &sites)?,
        sites,
        operators: operators.uids.into_iter().take(usize::from(options.operators)).collect(),
        log_level: options.log_level.clone(),
    })
}

/// Where sockets live, a folder for each site: in the directory where its path is short enough, else in a folder of its own
/// among the temporary files.
fn runtime_folder(store: &Store, sites: &[String]) -> Result<PathBuf, Error> {
    let longest = sites.iter().map(String::len).max().unwrap_or_default() + 1 + SOCKET_NAME;
    let fits = |path: &Path| path.as_os_str().len() + longest <= SOCKET_PATH;
    let inside = store.dir().join("run");
    if fits(&inside) {
        files::private_folder(&inside)?;
        return Ok(inside);
    }
    let name = store::secrets::uuid()?;
    let outside = std::env::temp_dir().join(format!("brv-{}", name.get(..8).unwrap_or_default()));
    ensure!(fits(&outside), LongPathSnafu { path: outside });
    files::private_folder(&outside)?;
    Ok(outside)
}

/// The folder of the sockets, removed in the end: nothing in it outlives its processes.
#[derive(Debug)]
struct Run(PathBuf);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Three sites with their links need more descriptors than a shell allows by default. What cannot be had is no error: the
/// bounds of links and doors hold anyway.
fn raise_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// The time for people.
fn stamp() -> String {
    world::now().wall.to_string()
}
