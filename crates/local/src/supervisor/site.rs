//! A site: at most one pod at a time, its keeper and its sidecar.
//!
//! In: orders, and the ends of processes. Out: `pods/<uid>.json` as things are, and a state for everyone who looks. Must
//! not: call a pod ended while anything of it lives, or start a pod again that it called ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use snafu::{OptionExt as _, ResultExt as _};
use tokio::sync::{mpsc, oneshot, watch};

use super::container::{Container, Turn};
use super::plan::Plan;
use super::process::{Foreign, wait_until};
use super::{DataSnafu, Error, NoPodSnafu, NotGoneSnafu, Part, ProcessSnafu, SiteState, StoreSnafu, Wipe, proc};
use crate::store::Store;
use crate::store::pods::PodFile;

/// How long a keeper may take to fence and stop its server: five seconds for the fence, and a shutdown.
const KEEPER_GRACE: Duration = Duration::from_mins(1);

/// How long a sidecar may take.
const SIDECAR_GRACE: Duration = Duration::from_secs(5);

/// The variable that everything of a pod inherits.
pub(crate) const POD_VARIABLE: &str = "POD_UID";

/// What a site can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Kill a part; it is started again.
    Kill(Part),
    /// Kill a part; it stays away until released.
    Hold(Part),
    /// Start a part that is held.
    Release(Part),
    /// Stop a part where it is.
    Pause(Part),
    /// Let it go on.
    Resume(Part),
    /// Kill keeper, server and sidecar at the same time; they are started again.
    KillAll,
    /// End the pod for good; gracefully or not. No other comes until one is started.
    Stop { graceful: bool },
    /// A new pod, unless there is one.
    Start,
    /// End the pod for good, then a new one.
    Replace { graceful: bool },
    /// End the pod for good, take its data away, then a new one.
    Wipe(Wipe),
}

/// An order and where its outcome is wanted.
pub(super) type Message = (Order, oneshot::Sender<Result<(), Error>>);

/// See above.
pub(super) struct Site {
    store: Store,
    plan: Arc<Plan>,
    pod: Option<Pod>,
    state: watch::Sender<SiteState>,
}

struct Pod {
    file: PodFile,
    keeper: Container,
    sidecar: Container,
}

/// Runs a site until nobody can give it orders any more; its pod ends with it.
pub(super) async fn run(
    store: Store,
    plan: Arc<Plan>,
    mut orders: mpsc::Receiver<Message>,
    state: watch::Sender<SiteState>,
) {
    let mut site = Site { store, plan, pod: None, state };
    loop {
        let order = match &site.pod {
            Some(pod) => tokio::select! {
                order = orders.recv() => order,
                turn = pod.keeper.turn() => {
                    site.turn(Part::Keeper, &turn).await;
                    continue;
                }
                turn = pod.sidecar.turn() => {
                    site.turn(Part::Sidecar, &turn).await;
                    continue;
                }
            },
            None => orders.recv().await,
        };
        let Some((order, reply)) = order else { break };
        let outcome = site.obey(order).await;
        site.tell();
        // Whoever gave the order may have gone.
        let _ = reply.send(outcome);
    }
}

impl Site {
    async fn obey(&mut self, order: Order) -> Result<(), Error> {
        match order {
            Order::Kill(part) => self.kill(part).await,
            Order::Hold(Part::Mysqld | Part::Keeper) => self.hold(Part::Keeper).await,
            Order::Hold(Part::Sidecar) => self.hold(Part::Sidecar).await,
            Order::Release(part) => self.release(part).await,
            Order::Pause(part) => self.pause(part).await,
            Order::Resume(part) => self.resume(part),
            Order::KillAll => self.kill_all().await,
            Order::Stop { graceful } => self.end(graceful).await,
            Order::Start => self.begin().await,
            Order::Replace { graceful } => {
                self.end(graceful).await?;
                self.begin().await
            }
            Order::Wipe(wipe) => {
                self.end(false).await?;
                self.plan.wipe(wipe).context(DataSnafu { site: &self.plan.site })?;
                self.begin().await
            }
        }
    }

    /// A new life of the site: its file is written before anything of it starts.
    async fn begin(&mut self) -> Result<(), Error> {
        if self.pod.is_some() {
            return Ok(());
        }
        let (plan, store) = (Arc::clone(&self.plan), self.store.clone());
        let prepared = tokio::task::spawn_blocking(move || plan.prepare(&store));
        let prepared = prepared.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
        let keeper = self.plan.keeper(&prepared);
        let sidecar = self.plan.sidecar(&prepared);
        let file = PodFile {
            site: self.plan.site.clone(),
            uid: prepared.uid.clone(),
            started: true,
            keeper_pid: None,
            sidecar_pid: None,
            deleting: false,
            ended: false,
            conf: prepared.conf.clone(),
        };
        self.store.write_pod(&file).context(StoreSnafu { site: &self.plan.site })?;
        self.pod = Some(Pod { file, keeper, sidecar });
        // The sidecar answers before the server starts. What does not start now is tried again, so both are tried.
        let (sidecar, keeper) = (self.start(Part::Sidecar), self.start(Part::Keeper));
        self.note()?;
        sidecar.and(keeper)
    }

    fn start(&mut self, part: Part) -> Result<(), Error> {
        let pod = self.pod.as_mut().context(NoPodSnafu { site: &self.plan.site })?;
        pod.container(part).start().context(ProcessSnafu { site: &self.plan.site })
    }

    /// Ends the pod for good, sees everything of it gone, and says so.
    async fn end(&mut self, graceful: bool) -> Result<(), Error> {
        let site = self.plan.site.clone();
        let Some(pod) = &mut self.pod else { return Ok(()) };
        pod.file.deleting = true;
        self.store.write_pod(&pod.file).context(StoreSnafu { site: &site })?;
        if graceful {
            pod.keeper.end(Some(KEEPER_GRACE)).await.context(ProcessSnafu { site: &site })?;
            pod.sidecar.end(Some(SIDECAR_GRACE)).await.context(ProcessSnafu { site: &site })?;
        } else {
            let (keeper, sidecar) = tokio::join!(pod.keeper.end(None), pod.sidecar.end(None));
            keeper.and(sidecar).context(ProcessSnafu { site: &site })?;
        }
        all_gone(&pod.file.uid, None).await.context(NotGoneSnafu { site: &site })?;
        let (keeper_pid, sidecar_pid) = (None, None);
        pod.file = PodFile { ended: true, keeper_pid, sidecar_pid, ..pod.file.clone() };
        self.store.write_pod(&pod.file).context(StoreSnafu { site: &site })?;
        self.pod = None;
        self.tell();
        Ok(())
    }

    /// Something of the pod ended, or is due.
    async fn turn(&mut self, part: Part, turn: &Turn) {
        let Some(pod) = &mut self.pod else { return };
        let due = matches!(turn, Turn::Due);
        // A server may outlive its keeper by the moment that its death takes; the next one must not meet it.
        if due && part == Part::Keeper && !pod.left_behind().await {
            pod.keeper.put_off();
            return;
        }
        if let Err(error) = pod.container(part).take(turn) {
            tracing::warn!(site = %self.plan.site, %error, "cannot be started; tried again");
        }
        if let Err(error) = self.note() {
            tracing::warn!(site = %self.plan.site, %error, "the pod's file cannot be written");
        }
    }

    async fn kill(&mut self, part: Part) -> Result<(), Error> {
        match part {
            Part::Mysqld => {
                let server = self.server()?;
                server.signal(Signal::KILL).context(ProcessSnafu { site: &self.plan.site })?;
                server.gone().await.context(ProcessSnafu { site: &self.plan.site })
            }
            Part::Keeper | Part::Sidecar => {
                let pod = self.pod.as_mut().context(NoPodSnafu { site: &self.plan.site })?;
                pod.container(part).kill().await.context(ProcessSnafu { site: &self.plan.site })?;
                self.note()
            }
        }
    }

    async fn kill_all(&mut self) -> Result<(), Error> {
        let pod = self.pod.as_mut().context(NoPodSnafu { site: &self.plan.site })?;
        let (keeper, sidecar) = tokio::join!(pod.keeper.kill(), pod.sidecar.kill());
        keeper.and(sidecar).context(ProcessSnafu { site: &self.plan.site })?;
        self.note()
    }

    async fn hold(&mut self, part: Part) -> Result<(), Error> {
        let pod = self.pod.as_mut().context(NoPodSnafu { site: &self.plan.site })?;
        pod.container(part).end(None).await.context(ProcessSnafu { site: &self.plan.site })?;
        self.note()
    }

    async fn release(&mut self, part: Part) -> Result<(), Error> {
        let part = if part == Part::Sidecar { part } else { Part::Keeper };
        let pod = self.pod.as_mut().context(NoPodSnafu { site: &self.plan.site })?;
        if part == Part::Keeper && pod.keeper.process().is_none() && !pod.left_behind().await {
            return NotGoneSnafu { site: &self.plan.site }.fail();
        }
        self.start(part)?;
        self.note()
    }

    async fn pause(&mut self, part: Part) -> Result<(), Error> {
        let site = &self.plan.site;
        match part {
            Part::Mysqld => {
                let server = self.server()?;
                server.signal(Signal::STOP).context(ProcessSnafu { site })?;
                server.stands_still().await.context(ProcessSnafu { site })
            }
            Part::Keeper | Part::Sidecar => {
                let pod = self.pod.as_mut().context(NoPodSnafu { site })?;
                pod.container(part).pause().await.context(ProcessSnafu { site })
            }
        }
    }

    fn resume(&mut self, part: Part) -> Result<(), Error> {
        let site = &self.plan.site;
        match part {
            Part::Mysqld => self.server()?.signal(Signal::CONT).context(ProcessSnafu { site }),
            Part::Keeper | Part::Sidecar => {
                let pod = self.pod.as_mut().context(NoPodSnafu { site })?;
                pod.container(part).resume().context(ProcessSnafu { site })
            }
        }
    }

    /// The server: the keeper's one child.
    fn server(&self) -> Result<Foreign, Error> {
        let site = &self.plan.site;
        let pod = self.pod.as_ref().context(NoPodSnafu { site })?;
        let name = format!("mysqld of {site}");
        let found = pod.keeper.pid().and_then(|keeper| {
            let pid = proc::children(keeper).into_iter().next()?;
            Foreign::child_of(keeper, pid, &name)
        });
        found.ok_or(super::process::Error::NotRunning { name }).context(ProcessSnafu { site })
    }

    /// Writes the pod's file if it would say something else, and tells everyone who looks.
    fn note(&mut self) -> Result<(), Error> {
        if let Some(pod) = &mut self.pod {
            let (keeper_pid, sidecar_pid) = (pod.keeper.pid(), pod.sidecar.pid());
            let file = PodFile { keeper_pid, sidecar_pid, ..pod.file.clone() };
            if file != pod.file {
                self.store.write_pod(&file).context(StoreSnafu { site: &self.plan.site })?;
                pod.file = file;
            }
        }
        self.tell();
        Ok(())
    }

    fn tell(&self) {
        let state = self.pod.as_ref().map_or_else(SiteState::default, |pod| SiteState {
            pod: Some(pod.file.uid.clone()),
            keeper_pid: pod.keeper.pid(),
            sidecar_pid: pod.sidecar.pid(),
            keeper_starts: pod.keeper.starts,
            sidecar_starts: pod.sidecar.starts,
        });
        self.state.send_replace(state);
    }
}

impl Pod {
    fn container(&mut self, part: Part) -> &mut Container {
        match part {
            Part::Sidecar => &mut self.sidecar,
            Part::Keeper | Part::Mysqld => &mut self.keeper,
        }
    }

    /// Whether everything that earlier keepers of this pod started is gone; what is left is killed.
    async fn left_behind(&self) -> bool {
        all_gone(&self.file.uid, self.sidecar.pid()).await.is_some()
    }
}

/// Kills whatever lives of a pod, one process apart, and waits until nothing does. None: something stays.
///
/// A number alone is no proof: it may have gone to a stranger. What every process of a pod has and nobody else is the
/// pod's own name in its environment.
pub(super) async fn all_gone(uid: &str, spared: Option<u32>) -> Option<()> {
    wait_until(|| {
        let mut left = proc::members(POD_VARIABLE, uid);
        left.retain(|pid| Some(*pid) != spared);
        for pid in &left {
            kill_member(*pid, uid);
        }
        left.is_empty()
    })
    .await
}

/// Kills a process by its number, after making sure that whoever has it now is a member.
fn kill_member(pid: u32, uid: &str) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(Ok(handle)) = number.map(|number| pidfd_open(number, PidfdFlags::empty())) else { return };
    if proc::is_member(pid, POD_VARIABLE, uid) {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}

/// Takes a folder's content away; the folder itself stays.
pub(super) fn empty(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir_all(folder),
    }
}
