//! Faults: who they concern, what they do, and the guard that ends them.
//!
//! In: what somebody wants to befall a link. Out: whether a fault concerns a direction, and the weather that all of them
//! make. Must not: know sockets.

use std::sync::Arc;
use std::time::Duration;

use super::Clouds;
use crate::network::{End, Service};

/// Whom a fault concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// This one.
    One(End),
    /// Every site.
    Sites,
    /// Every operator.
    Operators,
    /// Everyone.
    Anyone,
}

/// What a fault does to the bytes that travel in its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing passes, and nobody is told.
    Cut,
    /// They arrive so much later.
    Delay(Duration),
    /// So many pass in a second, on each link.
    Slow(u64),
}

/// Something that befalls one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Who sends.
    pub from: Who,
    /// Who would receive.
    pub to: Who,
    /// Only on links with this service; none: on all.
    pub service: Option<Service>,
    /// What it does.
    pub effect: Effect,
}

/// The weather for one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sky {
    /// Nothing passes.
    pub cut: bool,
    /// How much later bytes arrive.
    pub delay: Duration,
    /// How many bytes pass in a second; none: all that come.
    pub slow: Option<u64>,
}

/// Faults that hold as long as this does.
#[derive(Debug)]
#[must_use = "the faults end when this is dropped"]
pub struct Storm {
    clouds: Option<Arc<Clouds>>,
    ids: Vec<u64>,
}

impl Fault {
    /// A fault of that direction, on every service.
    pub fn new(from: impl Into<Who>, to: impl Into<Who>, effect: Effect) -> Self {
        Self { from: from.into(), to: to.into(), service: None, effect }
    }

    /// The same, on links with that service only.
    #[must_use]
    pub fn on(mut self, service: Service) -> Self {
        self.service = Some(service);
        self
    }

    /// The same for both directions.
    pub fn both_ways(one: &Who, other: &Who, effect: Effect) -> [Self; 2] {
        [Self::new(one.clone(), other.clone(), effect), Self::new(other.clone(), one.clone(), effect)]
    }

    /// Whether it concerns bytes of that direction.
    pub(super) fn concerns(&self, from: Option<&End>, to: Option<&End>, service: Service) -> bool {
        self.service.is_none_or(|only| only == service) && self.from.is(from) && self.to.is(to)
    }
}

impl Who {
    /// Whether that end is meant. An end that could be any sidecar is meant where all are.
    fn is(&self, end: Option<&End>) -> bool {
        match (self, end) {
            (Self::Anyone, _)
            | (Self::Sites, None | Some(End::Site(_)))
            | (Self::Operators, Some(End::Operator(_))) => true,
            (Self::One(one), Some(end)) => one == end,
            _ => false,
        }
    }
}

impl Sky {
    /// This weather with one more fault: the worst of each counts, delays add up.
    pub(super) fn under(mut self, effect: Effect) -> Self {
        match effect {
            Effect::Cut => self.cut = true,
            Effect::Delay(by) => self.delay += by,
            // Nothing at all would be a cut.
            Effect::Slow(rate) => self.slow = Some(self.slow.map_or(rate, |other| other.min(rate)).max(1)),
        }
        self
    }
}

impl Storm {
    pub(super) fn new(clouds: Arc<Clouds>, ids: Vec<u64>) -> Self {
        Self { clouds: Some(clouds), ids }
    }

    /// Ends the faults now.
    pub fn end(self) {
        drop(self);
    }

    /// Leaves the faults as they are; only healing ends them from now on.
    pub fn stay(mut self) {
        self.clouds = None;
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        if let Some(clouds) = &self.clouds {
            clouds.forget(&self.ids);
        }
    }
}

impl From<End> for Who {
    fn from(end: End) -> Self {
        Self::One(end)
    }
}

impl From<&str> for Who {
    /// The site of that name.
    fn from(site: &str) -> Self {
        Self::One(End::Site(site.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> End {
        End::Site(name.into())
    }

    #[test]
    fn a_fault_concerns_its_direction_and_service_only() {
        let check = |fault: &Fault, from: Option<End>, to: Option<End>, service: Service, expect: bool| {
            assert_eq!(fault.concerns(from.as_ref(), to.as_ref(), service), expect, "{fault:?} {from:?} {to:?}");
        };
        let cut = Fault::new("iad", "pdx", Effect::Cut);
        check(&cut, Some(site("iad")), Some(site("pdx")), Service::Mysql, true);
        check(&cut, Some(site("pdx")), Some(site("iad")), Service::Mysql, false);
        check(&cut, None, Some(site("pdx")), Service::Mysql, false);
        let replication = cut.on(Service::Mysql);
        check(&replication, Some(site("iad")), Some(site("pdx")), Service::Mysql, true);
        check(&replication, Some(site("iad")), Some(site("pdx")), Service::Sidecar, false);
        let operators = Fault::new(Who::Operators, Who::Anyone, Effect::Cut);
        check(&operators, Some(End::Operator(1)), Some(site("iad")), Service::Admin, true);
        check(&operators, Some(End::FrontDoor), Some(site("iad")), Service::Mysql, false);
        let sites = Fault::new(Who::Sites, Who::Operators, Effect::Cut);
        check(&sites, None, Some(End::Operator(0)), Service::Aux, true);
    }

    #[test]
    fn faults_add_up_to_the_worst() {
        let second = Duration::from_secs(1);
        let all = [Effect::Slow(900), Effect::Delay(second), Effect::Slow(0), Effect::Delay(second)];
        let sky = all.into_iter().fold(Sky::default(), Sky::under);
        assert_eq!(sky, Sky { cut: false, delay: 2 * second, slow: Some(1) });
        assert!(sky.under(Effect::Cut).cut);
    }
}
