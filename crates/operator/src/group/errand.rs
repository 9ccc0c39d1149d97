//! Errands: commands that nobody waits for; each is given again until it is seen to be done.
//!
//! In: a command. Out: a call to the world. Must not: be repeated here, or be done without leadership.

use super::spec::Valid;
use super::{Common, STORE_BOUND};
use crate::servers::Servers;
use crate::world::{GroupId, World};
use bloodraven_api::keys;
use bloodraven_brain::group::Command;
use bloodraven_brain::group::command::RequestKind;
use tokio::time::timeout;

/// One errand, under its bound.
pub(super) async fn run<W: World, S: Servers>(common: &Common<W, S>, id: &GroupId, valid: &Valid, command: Command) {
    let world = &common.world;
    let (resource, call) = match command {
        Command::RemoveRequest { kind, text } => {
            let remove = async move { world.remove_request(id, key(kind), &text).await };
            ("request", timeout(STORE_BOUND, common.leadership.guard(remove)).await)
        }
        Command::Roll { site } => {
            let roll = async move { world.roll(id, valid.object(), &site).await };
            ("pod", timeout(STORE_BOUND, common.leadership.guard(roll)).await)
        }
        Command::ReleasePod { uid } => {
            let release = async move { world.release_pod(id, &uid).await };
            ("pod", timeout(STORE_BOUND, common.leadership.guard(release)).await)
        }
        Command::SetCacheImage { image } => {
            let set = async move { world.set_cache_image(id, &image).await };
            ("spec", timeout(STORE_BOUND, common.leadership.guard(set)).await)
        }
        Command::Load
        | Command::Save { .. }
        | Command::Push { .. }
        | Command::Probe { .. }
        | Command::Answer { .. }
        | Command::Grant(_)
        | Command::Work { .. }
        | Command::Show(_) => return,
    };
    match call {
        Ok(Ok(Ok(())) | Err(_)) => {}
        Ok(Ok(Err(refused))) => {
            tracing::debug!(fg = %id, error = %refused, "an errand was refused");
            common.ears.write_failed(resource);
        }
        Err(_) => common.ears.write_failed(resource),
    }
}

const fn key(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::PlannedFailover => keys::PLANNED_FAILOVER,
        RequestKind::Reclone => keys::RECLONE_SITE,
        RequestKind::CacheUpgrade => keys::DRAGONFLY_SNAPSHOT_UPGRADE,
    }
}
