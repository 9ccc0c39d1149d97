//! Whether the leader's order to empty the data folder is obeyed. In: the order. Out: yes, or the reason why not. Must not:
//! let anything go that is writable, that may become so, or that was not meant.
//!
//! What is not looked at here: what the server holds (the caller reads it) and its permit at the moment of the deed (the
//! keeper looks, and gives none to a server that it empties).

use super::{Mysqld, Sidecar};
use crate::message::StartId;
use crate::name::Member;
use crate::record::Epoch;
use crate::time::{Boot, Millis};

/// The order, as far as authority goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emptying {
    /// Who shall do it: this very instance.
    pub to: Member,
    /// The leader's epoch, which has to be the sidecar's own.
    pub epoch: Epoch,
    /// The start of mysqld that was told.
    pub start: StartId,
    /// The order is void when this life of the sidecar has lasted longer.
    pub until_uptime: Millis,
}

impl Sidecar {
    /// Whether it may be obeyed now; else why not.
    pub fn may_empty(&self, now: Boot, order: &Emptying) -> Result<(), String> {
        let refuse = |why: &str| Err(why.to_owned());
        if order.to != self.me {
            return refuse("the order is for another instance");
        }
        if now.since(self.born) > order.until_uptime {
            return refuse("the order is too old");
        }
        let (Some(view), Some(heard)) = (&self.disk.view, &self.heard) else { return refuse("there is no view here") };
        if view.epoch != order.epoch || heard.epoch != order.epoch {
            return Err(format!("the order is of epoch {}, here is {}", order.epoch, heard.epoch));
        }
        // While nobody has authority this site may be the one that is to let go, or the one that gets it.
        match &heard.seat {
            None => return refuse("nobody has authority now"),
            Some(seat) if seat.site == self.me.site => return refuse("this site has authority"),
            Some(_) => {}
        }
        if self.disk.conflict == Some(heard.epoch) {
            return refuse("two views of this epoch are known here");
        }
        if self.mysqld != Mysqld::Up(order.start) {
            return refuse("another start of mysqld runs, or none");
        }
        if self.permit.is_some() || self.lane.may_open() || self.stray_openers {
            return refuse("an opening may be under way");
        }
        if !self.fenced() {
            return refuse("the server is not known to be fenced");
        }
        Ok(())
    }
}
