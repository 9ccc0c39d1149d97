//! A real Kubernetes cluster on one machine: a control plane and three nodes, each a process tree with a file system, a
//! network and a container runtime of its own.
//!
//! In: options. Out: three Ready nodes (zones iad, pdx, fra) with DNS, services and volumes, and faults that heal when their
//! guards are dropped. Must not: install anything, touch the host's network, settings or processes, or leave anything
//! behind: everything ends with this process, and what a killed one left is swept at the next start.
//!
//! ```no_run
//! use bloodraven_testbed::cluster::Cluster;
//!
//! let cluster = Cluster::options("/path/of/bloodraven-testbed").start()?;
//! let cut = cluster.cut("iad", &["pdx", "fra"])?;
//! println!("{}", cluster.kubectl(&["get", "nodes"])?);
//! drop(cut); // healed
//! # Ok::<(), bloodraven_testbed::cluster::Error>(())
//! ```
//!
//! Reading order: this file brings a cluster up and down; `api` is how it is asked, `faults`, `denials` and `pods` are what
//! tests do to it; `external` is a cluster of somebody else. `machine` refuses
//! what cannot work; `layout` is the plan of addresses; `init` and `launch` are how a machine runs, `plane` and `node` what
//! runs on it; `network` and `doors` join them; `tools`, `coredns`, `images` and `golden` are where things come from;
//! `session` keeps a cluster for people, between two commands.

mod api;
mod denials;
mod external;
mod faults;
mod pods;

mod machine;
mod trace;

mod layout;
mod profile;

mod init;
mod launch;

mod certificates;
mod manifests;
mod node;
mod plane;

mod cgroups;
mod doors;
mod network;

mod coredns;
mod golden;
mod images;
mod tools;

mod error;
pub mod session;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use snafu::ResultExt as _;

pub use self::api::Api;
pub use self::denials::{Denial, Denied};
pub use self::doors::Door;
pub use self::error::Error;
use self::error::{FileSnafu, ProgramSnafu, part};
pub use self::external::{Choice, External};
pub use self::faults::{Cut, Frozen, Held, Off, Paused};
pub use self::images::{BLOODRAVEN as BLOODRAVEN_IMAGE, MYSQL as MYSQL_IMAGE};
pub use self::init::{BOOT, JOIN, boot, join};
pub use self::layout::{Member, PLANE, SITES};
pub use self::manifests::STORAGE_CLASS;
pub use self::node::{CONTAINERD, KUBELET, PROXY};
pub use self::plane::{API_SERVER, CONTROLLERS, ETCD, SCHEDULER};
pub use self::pods::{Container, Running};
pub use self::profile::Profile;
pub use self::trace::Trace;

use self::api::READY_LIMIT;
use self::certificates::{Certificates, api_url};
use self::cgroups::Cgroups;
use self::denials::Denials;
use self::init::Plan;
use self::launch::Machine;
use self::network::Switch;
use self::tools::Tools;
use crate::cache;
use crate::kubernetes::{self, EtcdPorts, Program};
use crate::progress::{Progress, say};
use crate::scratch::{self, Scratch};

/// The kinds of cache entries that this module makes.
pub const KINDS: [&str; 2] = [tools::KIND, golden::KIND];

/// How long the API server may take: 3 s on two free cores.
const API_LIMIT: Duration = Duration::from_mins(2);

/// The name of the machine that holds the switch.
const SWITCH: &str = "switch";

/// How a cluster is to be started.
#[derive(Clone, Debug)]
pub struct Options {
    program: PathBuf,
    profile: Profile,
    volumes: usize,
    workspace: Option<(PathBuf, PathBuf)>,
}

impl Options {
    /// How patient it is; impatient without this.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// How many volumes each node has; four without this.
    #[must_use]
    pub fn volumes(mut self, volumes: usize) -> Self {
        self.volumes = volumes;
        self
    }

    /// Makes the image [`BLOODRAVEN_IMAGE`] of these two programs and brings it to every node.
    #[must_use]
    pub fn workspace(mut self, bloodraven: impl Into<PathBuf>, keeper: impl Into<PathBuf>) -> Self {
        self.workspace = Some((bloodraven.into(), keeper.into()));
        self
    }

    /// Brings it up: minutes the first time on a machine, with lines on standard error about what is going on; afterwards
    /// half a minute.
    pub fn start(self) -> Result<Cluster, Error> {
        let parts = Parts::provision(&self.program)?;
        let step = Progress::start("starting a cluster of three nodes");
        let cluster = Cluster::launch(&parts, &self)?;
        cluster.settle(&self, &parts)?;
        step.done();
        Ok(cluster)
    }
}

/// Everything that a cluster is made of, in the cache.
#[derive(Clone, Debug)]
pub struct Parts {
    tools: Tools,
    base: kubernetes::Parts,
    plane: plane::Programs,
    node: node::Programs,
    sources: images::Sources,
    store: PathBuf,
}

impl Parts {
    /// Refuses a machine that cannot run a cluster, sweeps what an earlier one left, and fetches and builds what is missing.
    pub fn provision(program: &Path) -> Result<Self, Error> {
        machine::check(&cache::root())?;
        for name in sweep() {
            say(&format!("swept what a cluster left behind: {name}"));
        }
        machine::check_leftovers()?;
        let tools = Tools::provision()?;
        let program_of = |program: Program| program.provision().map_err(part("a program of Kubernetes"));
        let sources = images::Sources {
            mysql: crate::mysql::unpacked().map_err(part("MySQL"))?,
            busybox: tools.busybox(),
            coredns: coredns::provision()?,
        };
        let store = golden::provision(program, &tools, &sources)?;
        Ok(Self {
            base: kubernetes::provision().map_err(part("an API server"))?,
            plane: plane::Programs {
                api_server: program_of(Program::ApiServer)?,
                controllers: program_of(Program::ControllerManager)?,
                scheduler: program_of(Program::Scheduler)?,
            },
            node: node::Programs { kubelet: program_of(Program::Kubelet)?, proxy: program_of(Program::Proxy)? },
            store,
            tools,
            sources,
        })
    }
}

/// Removes what clusters of processes that are gone left behind, and tells their names. Their processes and mounts are gone
/// with them, but for those of a machine that was frozen; what is left are cgroups and folders.
pub fn sweep() -> Vec<String> {
    let swept = cgroups::sweep();
    scratch::sweep(&cache::root());
    swept
}

/// Traces of clusters on this machine, living or dead: nothing after a cluster's end.
pub fn traces() -> Vec<String> {
    cgroups::left()
}

/// A running cluster. Dropping it takes it down.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: the way in, the nodes, the control plane, the switch, the folders.
    _way_in: Door,
    machines: BTreeMap<Member, Mutex<Machine>>,
    switch: Switch,
    switch_machine: Machine,
    cgroups: Cgroups,
    api: Api,
    before: trace::Host,
    denials: Denials,
    volumes: usize,
    logs: Scratch,
    scratch: Scratch,
}

impl Cluster {
    /// The beginning of a start; `program` is `bloodraven-testbed`, whose subcommands are the first processes of machines.
    pub fn options(program: impl Into<PathBuf>) -> Options {
        Options { program: program.into(), profile: Profile::default(), volumes: 5, workspace: None }
    }

    /// The folder with a log a program: `<machine>/<program>.log`. Kept when a test fails.
    pub fn logs(&self) -> &Path {
        self.logs.path()
    }

    /// Everything of it that could be left behind; to be looked for after its end.
    pub fn trace(&self) -> Trace {
        let machines = Member::all().filter_map(|member| self.machine(member).pid().ok());
        let folders = [self.scratch.path(), self.logs.path()].map(Path::to_owned).to_vec();
        Trace::of(self.cgroups.name(), machines.chain(self.switch_machine.pid().ok()), folders, self.before.clone())
    }

    /// Opens a way from this machine's loopback to an address as a machine of the cluster sees it: a pod's, a service's, its
    /// own. The way is that machine's: cuts between it and the target are felt.
    pub fn door(&self, from: &str, to: SocketAddr) -> Result<Door, Error> {
        let machine = self.machine(Member::named(from)?);
        Door::open(machine.first(), to).context(FileSnafu { what: "open a door to", path: to.to_string() })
    }

    /// A command that runs on a machine: its file system, its network, its processes.
    pub fn command_on(&self, name: &str, program: &str) -> Result<Command, Error> {
        self.machine(Member::named(name)?).command(program)
    }

    /// Volumes whose claims are gone are emptied and offered again. (Kubernetes keeps them `Released` for somebody to look.)
    pub fn renew_volumes(&self) -> Result<(), Error> {
        let found = self.get(&["persistentvolumes"])?;
        for node in Member::nodes() {
            for number in 0..self.volumes {
                let name = manifests::volume_name(node, number);
                let released =
                    |item: &&Value| item["metadata"]["name"] == *name && item["status"]["phase"] == "Released";
                if found["items"].as_array().into_iter().flatten().any(|item| released(&item)) {
                    self.kubectl(&["delete", "persistentvolume", &name, "--wait=true"])?;
                    self.make_volume(node, number)?;
                    self.apply(&manifests::volume(node, number))?;
                }
            }
        }
        Ok(())
    }

    /// Makes an image of these two programs under the name [`BLOODRAVEN_IMAGE`] and brings it to every node.
    pub fn import_workspace(&self, parts: &Parts, bloodraven: &Path, keeper: &Path) -> Result<(), Error> {
        let image = images::Image { name: images::BLOODRAVEN, entrypoint: vec!["/usr/local/bin/bloodraven"] };
        let recipe = |root: &Path| images::bloodraven(&parts.sources, bloodraven, keeper, root).map(drop);
        let archive = golden::archive(self.scratch.path(), &image, recipe)?;
        std::thread::scope(|scope| {
            let archive = &archive;
            let imports: Vec<_> =
                Member::nodes().map(|node| scope.spawn(move || golden::import(&self.machine(node), archive))).collect();
            let panicked = || ProgramSnafu { what: "importing an image", said: "it panicked" }.fail();
            imports.into_iter().try_for_each(|import| import.join().unwrap_or_else(|_| panicked()))
        })?;
        std::fs::remove_file(&archive).context(FileSnafu { what: "remove", path: archive })
    }

    /// Takes it down and says what could not be removed. Dropping it does the same in silence.
    pub fn down(self) -> Result<(), Error> {
        self.stop();
        self.cgroups.remove()
    }

    fn stop(&self) {
        // Frozen machines do not die.
        for member in Member::all() {
            let _ = self.cgroups.freeze(member.name(), false);
        }
        for member in Member::all().collect::<Vec<_>>().into_iter().rev() {
            // One that is off is as good.
            let _ = self.machine(member).cut_power();
        }
    }

    fn machine(&self, member: Member) -> MutexGuard<'_, Machine> {
        // Every member is put in at the start.
        self.machines[&member].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make_volume(&self, node: Member, number: usize) -> Result<(), Error> {
        let below = manifests::VOLUMES.trim_start_matches("/var/lib/");
        let path =
            self.scratch.path().join(node.name()).join("lib").join(below).join(manifests::volume_name(node, number));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).context(FileSnafu { what: "make the volume", path })
    }

    /// Starts every process; nothing is waited for.
    fn launch(parts: &Parts, options: &Options) -> Result<Self, Error> {
        let before = trace::Host::look();
        let scratch = Scratch::passing("cluster").map_err(part("a folder for the cluster"))?;
        let logs = Scratch::new("cluster-logs").map_err(part("a folder for the logs"))?;
        let folder = scratch.path();
        // The program may be built anew while the cluster runs.
        let program = folder.join("bloodraven-testbed");
        std::fs::copy(&options.program, &program).context(FileSnafu { what: "copy", path: &options.program })?;
        let certificates = Certificates::make(&folder.join("certificates"))?;
        let inside = ["controller-manager", "scheduler", "kube-proxy"];
        for name in inside.into_iter().chain(SITES) {
            certificates.kubeconfig(name, &api_url())?;
        }
        let cgroups = Cgroups::of_this_process();

        let switch_plan = bare(SWITCH, folder, logs.path());
        let mut switch_machine = Machine::new(&program, switch_plan, &folder.join(SWITCH));
        switch_machine.boot()?;
        let switch = Switch::make(&parts.tools, switch_machine.pid()?)?;

        let mut plane_plan = bare(PLANE, folder, logs.path());
        plane_plan.cgroups = cgroups.make(PLANE)?;
        let etcd = parts.base.etcd.command(&folder.join(PLANE).join("etcd"), EtcdPorts { client: 2379, peer: 2380 });
        let etcd = etcd.map_err(part("etcd"))?;
        let denials = Denials::prepare(&folder.join(PLANE))?;
        plane_plan.children = plane::children(&etcd, &parts.plane, &certificates, denials.file(), options.profile);
        let mut plane = Machine::new(&program, plane_plan, &folder.join(PLANE));
        plane.boot()?;
        switch.plug(Member::PLANE, plane.pid()?)?;
        denials.serve(plane.pid()?)?;

        let target = SocketAddr::from((Member::PLANE.address(), layout::API_PORT));
        let way_in =
            Door::open(plane.first(), target).context(FileSnafu { what: "open a door to", path: "the API server" })?;
        let url = format!("https://{}:{}", Ipv4Addr::LOCALHOST, way_in.address().port());
        let mut cluster = Self {
            _way_in: way_in,
            machines: BTreeMap::from([(Member::PLANE, Mutex::new(plane))]),
            switch,
            switch_machine,
            cgroups,
            api: Api {
                kubectl: parts.base.kubectl.clone(),
                kubeconfig: certificates.kubeconfig("admin", &url)?,
                context: None,
                folder: folder.to_owned(),
                hint: format!("see {}", logs.path().display()),
            },
            before,
            denials,
            volumes: options.volumes,
            logs,
            scratch,
        };
        cluster.launch_nodes(parts, options, &program, &certificates)?;
        Ok(cluster)
    }

    fn launch_nodes(
        &mut self,
        parts: &Parts,
        options: &Options,
        program: &Path,
        certificates: &Certificates,
    ) -> Result<(), Error> {
        let common = node::Common {
            tools: parts.tools.clone(),
            folder: self.scratch.path().to_owned(),
            logs: self.logs.path().to_owned(),
            profile: options.profile,
        };
        for node in Member::nodes() {
            let home = common.home(node.name());
            golden::plant(&parts.store, &home.join("lib"))?;
            let joins = self.cgroups.make(node.name())?;
            let plan = common.node(node, joins, &parts.node, certificates);
            let mut machine = Machine::new(program, plan, &home);
            machine.boot()?;
            self.switch.plug(node, machine.pid()?)?;
            self.machines.insert(node, Mutex::new(machine));
            for number in 0..options.volumes {
                self.make_volume(node, number)?;
            }
        }
        Ok(())
    }

    /// Waits until everything works.
    fn settle(&self, options: &Options, parts: &Parts) -> Result<(), Error> {
        self.wait_for_answers(API_LIMIT)?;
        let first = manifests::all(options.volumes);
        let taken = self.wait_for("the first objects are refused", API_LIMIT, |api| api.apply(&first).ok());
        // The last refusal says why.
        taken.or_else(|_| self.apply(&first))?;
        if let Some((bloodraven, keeper)) = &options.workspace {
            self.import_workspace(parts, bloodraven, keeper)?;
        }
        self.wait_for_nodes(&SITES)?;
        self.wait_for("there is no default service account", API_LIMIT, |cluster| {
            cluster.get(&["serviceaccount", "default"]).is_ok().then_some(())
        })?;
        self.wait_for("the name servers are not ready", READY_LIMIT, |cluster| {
            let set = cluster.get(&["daemonset", "coredns", "--namespace=kube-system"]).ok()?;
            (set["status"]["numberReady"] == SITES.len()).then_some(())
        })
    }
}

/// Whatever can be asked of its API server can be asked of the cluster.
impl Deref for Cluster {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
        if let Err(error) = self.cgroups.remove() {
            say(&error.to_string());
        }
    }
}

/// A machine without a root of its own.
fn bare(name: &str, folder: &Path, logs: &Path) -> Plan {
    Plan {
        name: name.to_owned(),
        cgroups: Vec::new(),
        root: None,
        control: folder.join(name).join("control"),
        logs: logs.join(name),
        children: Vec::new(),
    }
}
