//! How the outside looks: labels, the name, taints; made so by the world, one wish at a time.
//!
//! In: the leader's last wish. Out: how far the outside follows. Must not: hold a newer wish up for an older one.

use super::leader::ToLeader;
use super::{Common, STORE_BOUND, Shared};
use crate::servers::Servers;
use crate::world::World;
use bloodraven_brain::group::{Input, Outward};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Makes the outside look as wanted; a newer wish takes the place of an older one that is not fulfilled yet.
pub(super) async fn show<W: World, S: Servers>(
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    mut wanted: watch::Receiver<Option<Arc<Outward>>>,
    inbox: mpsc::Sender<ToLeader>,
) {
    while wanted.changed().await.is_ok() {
        let Some(wish) = wanted.borrow_and_update().clone() else { continue };
        let Some(valid) = shared.valid.borrow().clone() else { continue };
        let call = common.leadership.guard(common.world.show(&shared.id, valid.object(), &wish));
        let shown = tokio::select! {
            shown = timeout(STORE_BOUND, call) => shown,
            () = other_wish(&mut wanted, &wish) => continue,
        };
        match shown {
            Ok(Ok(Ok(shown))) => {
                if inbox.send(ToLeader::Input(Input::Shown(shown))).await.is_err() {
                    return;
                }
            }
            Ok(Err(_)) => {}
            Ok(Ok(Err(_))) | Err(_) => common.ears.write_failed("outward"),
        }
    }
}

/// Ends when something else is wanted; the same wish again is being fulfilled already.
async fn other_wish(wanted: &mut watch::Receiver<Option<Arc<Outward>>>, wish: &Outward) {
    if wanted.wait_for(|next| next.as_deref().is_some_and(|next| next != wish)).await.is_err() {
        std::future::pending::<()>().await;
    }
    wanted.mark_changed();
}
