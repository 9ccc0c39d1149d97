//! Assembly: an operator from its parts.
//!
//! In: a world, settings, listeners, the wish to end. Out: an operator that runs until then. Must not: read the environment
//! or a clock of its own; the world has both.

use crate::beats::Beats;
use crate::directory;
use crate::election::{self, Court};
use crate::group::{Common, client};
use crate::guard::{Clock, Leadership};
use crate::http::{self, App, Groups};
use crate::servers::Servers;
use crate::settings::{ClientSnafu, EndedSnafu, Error, Listeners, Settings};
use crate::sql::Mysql;
use crate::tasks::{again_after_panics, own};
use crate::world::World;
use bloodraven_brain::time::Millis;
use futures_util::FutureExt;
use snafu::ResultExt;
use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, broadcast, watch};

/// Rehearsals at a time; each takes a core for a moment.
const REHEARSALS: usize = 2;

/// Groups whose objects are looked at, at a time: after a start all of them want to be.
const FURNISHED: usize = 16;

/// Runs an operator until `shutdown`; then its lease is released.
pub async fn run<W: World>(
    world: Arc<W>,
    settings: Settings,
    listeners: Listeners,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    run_with(world, Arc::new(Mysql), settings, listeners, shutdown).await
}

/// The same with other servers than MySQL's.
pub async fn run_with<W: World, S: Servers>(
    world: Arc<W>,
    servers: Arc<S>,
    settings: Settings,
    listeners: Listeners,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let clock: Clock = {
        let world = Arc::clone(&world);
        Arc::new(move || world.now())
    };
    let leadership = Leadership::new(Arc::clone(&clock));
    let beats = Beats::new(Arc::clone(&clock));
    let reigns = watch::Sender::new(None);
    let holder = watch::Sender::new(None);
    let leading = watch::Sender::new(0);
    let groups: watch::Sender<Groups> = watch::Sender::default();
    let synced = watch::Sender::new(false);
    let (hub, _) = broadcast::channel(http::QUEUE);
    let common = Arc::new(Common {
        world: Arc::clone(&world),
        servers,
        client: client().context(ClientSnafu)?,
        leadership: leadership.clone(),
        reigns: reigns.subscribe(),
        leading: leading.clone(),
        beats: beats.clone(),
        ears: Arc::clone(&settings.ears),
        hub: hub.clone(),
        furnishing: Semaphore::new(FURNISHED),
        progress: settings.progress,
    });
    let app = Arc::new(App {
        groups: groups.subscribe(),
        synced: synced.subscribe(),
        unseen: {
            let world = Arc::clone(&world);
            Box::new(move || world.unseen())
        },
        holder: holder.subscribe(),
        leadership: leadership.clone(),
        beats: beats.clone(),
        ears: Arc::clone(&settings.ears),
        clock,
        address: settings.address.clone(),
        origins: settings.origins.clone(),
        address_of: {
            let world = Arc::clone(&world);
            Box::new(move |identity| {
                let world = Arc::clone(&world);
                Box::pin(async move { world.operator_address(&identity).await })
            })
        },
        leader_address: Mutex::default(),
        hub,
        followers: Arc::new(Semaphore::new(http::CLIENTS)),
        rehearsals: Arc::new(Semaphore::new(REHEARSALS)),
    });

    // HTTP first: sidecars and probes hear that there is nothing to hear yet.
    let forever = std::future::pending::<()>;
    let Listeners { aux, metrics, probes } = listeners;
    let mut aux = own(http::serve(aux, http::aux(&app), forever()));
    let _metrics = metrics.map(|listener| own(http::serve(listener, http::scrapes(&app), forever())));
    let _probes = probes.map(|listener| own(http::serve(listener, http::probes(&app), forever())));

    let mut directory = {
        let (common, ears, beats) = (Arc::clone(&common), Arc::clone(&settings.ears), beats.clone());
        own(async move {
            let keep = || {
                let beat = beats.begin("sites", Millis::from_secs(5));
                directory::keep(Arc::clone(&common), groups.clone(), synced.clone(), beat)
            };
            again_after_panics("sites", &ears, keep).await;
        })
    };
    let ears = Arc::clone(&settings.ears);
    let leading = leading.subscribe();
    let court = Court { leadership, reigns, holder, leading, count: AtomicU64::new(0), ears: Arc::clone(&ears) };
    let shutdown = shutdown.shared();
    let elect = || {
        let (beat, shutdown) = (beats.begin("election", Millis::from_secs(1)), shutdown.clone());
        let (world, settings, court) = (&world, &settings, &court);
        async move {
            if settings.elect {
                election::run(world, settings, court, beat, shutdown).await;
            } else {
                election::lead_for_ever(court, beat, shutdown).await;
            }
        }
    };
    let election = again_after_panics("election", &ears, elect);
    tokio::select! {
        () = election => Ok(()),
        () = directory.ended() => EndedSnafu { what: "sites" }.fail(),
        () = aux.ended() => EndedSnafu { what: "http" }.fail(),
    }
}
