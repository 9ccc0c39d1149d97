//! One site's polls: at a fixed rate, the first at once, each within its interval.
//!
//! In: where the server is, the present epoch. Out: what each poll saw, with the epoch it began under. Must not: wait for
//! another site, or report what it did not see: without an account or a map nothing was polled.

use super::informer::{self, Network};
use super::leader::ToLeader;
use super::{Common, Shared};
use crate::servers::{Server, Servers, Silent};
use crate::tasks::unless_it_panics;
use crate::world::World;
use bloodraven_brain::group::input::Saw;
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Millis;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// What a poller goes by.
pub(super) struct Rounds {
    pub(super) site: Site,
    pub(super) every: Millis,
    /// The epoch that the leader knows to be stored.
    pub(super) epoch: Arc<AtomicU64>,
    pub(super) network: watch::Receiver<Network>,
    pub(super) inbox: mpsc::Sender<ToLeader>,
}

/// Runs for as long as the site is declared, the rate stays and the reign lasts.
pub(super) async fn poll<W: World, S: Servers>(common: Arc<Common<W, S>>, shared: Arc<Shared>, rounds: Rounds) {
    let Rounds { site, every, epoch, network, inbox } = rounds;
    let period = Duration::from_millis(every.0.max(1));
    let beat = common.beats.begin(format!("poll {}/{site}", shared.id), every);
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut kept: Option<(Server, Option<S::Session>)> = None;
    let mut network = network;
    let mut secrets = shared.secrets.subscribe();
    // At the start of a reign the map and the keys are a moment away; polling begins as soon as they are there.
    let ready = async {
        let _ = network.wait_for(Option::is_some).await;
        let _ = secrets.wait_for(Option::is_some).await;
    };
    let _ = timeout(period, ready).await;
    loop {
        ticks.tick().await;
        beat.beat();
        let known = (network.borrow().clone(), secrets.borrow().clone());
        let (Some(_), Some(account)) = (&known.0, &known.1) else { continue };
        let began_under = epoch.load(Ordering::SeqCst);
        let began = Instant::now();
        let looked = match informer::server(&site, &known.0, Some(account)) {
            Some(server) => {
                let (_, session) = match kept.take_if(|(before, _)| *before == server) {
                    Some(same) => same,
                    None => (server.clone(), None),
                };
                let mut session = session;
                // On the heap while it lasts: most of the time a poller waits for its next beat.
                let poll = Box::pin(unless_it_panics(common.servers.poll(&server, &mut session, period)));
                let looked = match timeout(period, poll).await {
                    Ok(Some(looked)) => looked,
                    Ok(None) => Err(Silent::Failed("the poll panicked".to_owned())),
                    Err(_) => Err(Silent::Failed("no answer in time".to_owned())),
                };
                // A session that failed or was given up is in an unknown state.
                kept = Some((server, session.filter(|_| looked.is_ok())));
                looked
            }
            None => Err(Silent::Failed("there is no address for it".to_owned())),
        };
        let beside = looked.as_ref().ok().map(|looked| (looked.server_id, looked.exhausted));
        let saw = match looked {
            Ok(looked) => Saw::Facts(Box::new(looked.facts)),
            Err(Silent::LoginRefused(_)) => {
                shared.reread.notify_one();
                Saw::LoginRefused
            }
            Err(Silent::Untrusted(because)) => {
                let now = common.world.now();
                shared.write(common.ears.untrusted(&shared.id, now, &site, &because));
                Saw::Nothing
            }
            Err(Silent::Failed(because)) => {
                tracing::debug!(fg = %shared.id, site = %site, error = because, "a poll failed");
                Saw::Nothing
            }
        };
        common.ears.polled(&shared.id, &site, began.elapsed(), &saw);
        let polled = ToLeader::Polled { site: site.clone(), began_under, saw, beside };
        if inbox.send(polled).await.is_err() {
            return;
        }
    }
}
