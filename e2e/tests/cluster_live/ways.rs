//! Ways to servers: doors of our own machines, or `kubectl port-forward` in a cluster of somebody else.
//!
//! In: which pods are meant. Out: an address on this machine's loopback that stays. Must not: lead on to a pod that is not
//! meant any more.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bloodraven_testbed::cluster::{Api, Door};
use bloodraven_testbed::process::Process;
use bloodraven_testbed::wait;

/// How often is looked whether another pod is meant: each look is a run of `kubectl`.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A way in. Dropping it closes it.
pub(crate) enum Way {
    Door(Door),
    Forward(Forward),
}

impl Way {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Door(door) => door.address(),
            Self::Forward(forward) => forward.address,
        }
    }
}

/// A port of this machine that leads to whichever pod has these labels at present.
pub(crate) struct Forward {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Forward {
    pub(crate) fn open(api: &Api, namespace: &str, labels: &str, logs: &Path) -> Self {
        // Free again when the listener is dropped; nobody else takes a port that the kernel has just given.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let over = Arc::new(AtomicBool::new(false));
        let keeper = Keeper {
            api: api.clone(),
            namespace: namespace.to_owned(),
            labels: labels.to_owned(),
            port: address.port(),
            log: logs.join(format!("forward-{}.log", address.port())),
            over: Arc::clone(&over),
        };
        Self { address, over, keeper: Some(std::thread::spawn(move || keeper.run())) }
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

struct Keeper {
    api: Api,
    namespace: String,
    labels: String,
    port: u16,
    log: PathBuf,
    over: Arc<AtomicBool>,
}

impl Keeper {
    /// Keeps the way open until it is told that it is over.
    fn run(self) {
        let mut now: Option<(String, Process)> = None;
        while !self.over.load(Ordering::Relaxed) {
            let meant = self.pod();
            let leads_there = now.as_ref().is_some_and(|(pod, it)| Some(pod) == meant.as_ref() && it.is_running());
            if !leads_there {
                // The port has to be free before the next one listens.
                drop(now.take());
                now = meant.and_then(|pod| self.lead_to(&pod).map(|process| (pod, process)));
            }
            let _: Option<()> = wait::until(LOOK_EVERY, || self.over.load(Ordering::Relaxed).then_some(()));
        }
    }

    /// The pod that is meant.
    fn pod(&self) -> Option<String> {
        let found = self.api.get(&["pods", "-n", &self.namespace, "-l", &self.labels]).ok()?;
        let pods = found["items"].as_array()?;
        let live = pods.iter().find(|pod| pod["metadata"]["deletionTimestamp"].is_null())?;
        live["metadata"]["name"].as_str().map(str::to_owned)
    }

    fn lead_to(&self, pod: &str) -> Option<Process> {
        let mut command = self.api.kubectl_command();
        command.args(["port-forward", "-n", &self.namespace, pod, &format!("{}:3306", self.port)]);
        Process::spawn(command, "kubectl port-forward", &self.log).ok()
    }
}
