//! An operator's process: kept, or killed, paused and stopped at will.
//!
//! In: orders, and its ends. Out: a running `bloodraven operator` with the same identity after each start, since the
//! earlier one is gone for certain. Must not: pause it while it holds the store's lock.

use std::process::Command;
use std::time::Duration;

use snafu::ResultExt as _;
use tokio::sync::{mpsc, oneshot, watch};

use super::container::Container;
use super::site::{POD_VARIABLE, all_gone};
use super::{Error, NotGoneSnafu, OperatorState, ProcessSnafu, Setup, StoreSnafu};
use crate::store::Store;

/// How long an operator may take to give its lease back.
const GRACE: Duration = Duration::from_secs(10);

/// What an operator can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperatorOrder {
    /// Start it, unless it runs.
    Start,
    /// Ask it to end, and keep it away.
    Stop,
    /// Kill it; it is started again.
    Kill,
    /// Kill it and keep it away.
    Hold,
    /// Stop it where it is.
    Pause,
    /// Let it go on.
    Resume,
}

/// An order and where its outcome is wanted.
type Message = (OperatorOrder, oneshot::Sender<Result<(), Error>>);

/// See above.
pub(super) struct OperatorKeeper {
    name: String,
    uid: String,
    store: Store,
    container: Container,
}

impl OperatorKeeper {
    pub(super) fn new(setup: &Setup, number: u8, uid: &str) -> Self {
        let (name, uid) = (format!("operator {number}"), uid.to_owned());
        let (program, dir) = (setup.programs.bloodraven.clone(), setup.store.dir().to_owned());
        let (log, pod, level) = (dir.join(format!("operator-{number}.log")), uid.clone(), setup.log_level.clone());
        let make = move || {
            let mut command = Command::new(&program);
            command
                .args(["operator", "--local"])
                .arg(&dir)
                .args(["--local-operator", &number.to_string(), "--log-level", &level])
                .env(POD_VARIABLE, &pod);
            command
        };
        let container = Container::new(name.clone(), log, setup.backoff, make);
        Self { name, uid, store: setup.store.clone(), container }
    }

    async fn obey(&mut self, order: OperatorOrder) -> Result<(), Error> {
        let site = self.name.clone();
        match order {
            OperatorOrder::Start => {
                if self.container.process().is_none() {
                    all_gone(&self.uid, None).await.ok_or_else(|| NotGoneSnafu { site: &site }.build())?;
                }
                self.container.start().context(ProcessSnafu { site })
            }
            OperatorOrder::Stop => self.container.end(Some(GRACE)).await.context(ProcessSnafu { site }),
            OperatorOrder::Kill => self.container.kill().await.context(ProcessSnafu { site }),
            OperatorOrder::Hold => self.container.end(None).await.context(ProcessSnafu { site }),
            OperatorOrder::Pause => {
                let store = self.store.clone();
                let lock = tokio::task::spawn_blocking(move || store.lock()).await;
                let lock = lock.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
                let _lock = lock.map_err(crate::store::Error::from).context(StoreSnafu { site: &site })?;
                self.container.pause().await.context(ProcessSnafu { site })
            }
            OperatorOrder::Resume => self.container.resume().context(ProcessSnafu { site }),
        }
    }
}

/// Keeps an operator until nobody can give orders any more; it ends with that.
pub(super) async fn run(
    mut keeper: OperatorKeeper,
    mut orders: mpsc::Receiver<Message>,
    state: watch::Sender<OperatorState>,
) {
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            turn = keeper.container.turn() => {
                if let Err(error) = keeper.container.take(&turn) {
                    tracing::warn!(operator = %keeper.name, %error, "cannot be started; tried again");
                }
                state.send_replace(told(&keeper));
                continue;
            }
        };
        let Some((order, reply)) = order else { break };
        let outcome = keeper.obey(order).await;
        state.send_replace(told(&keeper));
        // Whoever gave the order may have gone.
        let _ = reply.send(outcome);
    }
}

fn told(keeper: &OperatorKeeper) -> OperatorState {
    OperatorState { pid: keeper.container.pid(), starts: keeper.container.starts }
}
