//! The simulator: the real brain under simulated weather.
//!
//! In: a seed or a scenario. Out: a [`Run`]: what was promised and broken, how the group came to rest, and, if asked for,
//! what happened in words. Must not: read a clock, use a thread inside a run, or iterate over anything unordered: the
//! same scenario gives the same run, byte for byte.
//!
//! Real are the leader's `Group::step`, the sidecar's `Sidecar::step` and the election. Simulated are the API store, the
//! network, keepers, servers, disks, applications, pods and clocks. Ground truth judges, never what an actor believes.
//!
//! Reading order: `scenario` (what can happen), `world` (who is there), `sidecar` and `operator` (who acts), `judge` and
//! `ending` (what is promised), `draw` (where scenarios come from), `text` (scenarios as files), `shrink`, `batch`.

pub mod audience;
pub mod batch;
mod cache;
mod client;
mod clock;
pub mod draw;
mod ending;
mod event;
mod faults;
mod hands;
mod held;
mod judge;
mod keeper;
mod more;
mod net;
mod operator;
mod pod;
mod random;
mod replication;
pub mod report;
mod saves;
pub mod scenario;
mod semi_sync;
mod server;
pub mod shrink;
mod side_hands;
mod sidecar;
mod sql;
mod status;
mod store;
pub mod text;
mod trace;
mod world;

#[cfg(test)]
mod tests;

pub use audience::Audience;
pub use clock::{MS, SEC, Time};
pub use ending::Rest;
pub use judge::Broken;
pub use net::{Channel, End};
pub use scenario::Scenario;
pub use trace::Line;

use world::World;

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// The first promise that was broken.
    pub broken: Option<Broken>,
    /// How the group came to rest.
    pub rest: Rest,
    /// Figures.
    pub figures: Figures,
    /// What happened, if it was asked for.
    pub timeline: Vec<Line>,
}

/// Figures of a run, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Simulated time.
    pub simulated: Time,
    /// Time from the healing to the rest.
    pub healing: Time,
    /// Events.
    pub events: u64,
    /// Attempts of applications to write.
    pub attempts: u64,
    /// Acknowledged writes.
    pub writes: u64,
    /// Confirmed moves to another site.
    pub failovers: u64,
    /// Grants stored.
    pub grants: u64,
    /// Servers opened.
    pub openings: u64,
    /// Leaders elected.
    pub reigns: u64,
}

/// Plays a scenario; with a timeline if `told`.
pub fn play(scenario: &Scenario, told: bool) -> Run {
    played(scenario, World::new(scenario, told))
}

/// Plays a scenario before somebody who watches. It is the same run: who watches changes nothing.
pub fn play_before(scenario: &Scenario, audience: Box<dyn Audience>) -> Run {
    let mut world = World::new(scenario, false);
    world.audience = Some(audience);
    played(scenario, world)
}

fn played(scenario: &Scenario, mut world: World) -> Run {
    world.run();
    let broken = world.judge.verdict();
    let figures = Figures {
        simulated: world.now,
        healing: world.healing_took(),
        events: world.events,
        attempts: world.clients.attempts,
        writes: world.clients.writes,
        failovers: u64::from(world.judge.failovers),
        grants: u64::from(world.judge.grants),
        openings: u64::from(world.judge.openings),
        reigns: u64::from(world.judge.reigns),
    };
    let rest = if broken.is_some() { Rest::Unknown } else { world.rest };
    Run { seed: scenario.seed, broken, rest, figures, timeline: world.trace.lines }
}

impl Run {
    /// Whether something is wrong with it.
    pub const fn is_wrong(&self) -> bool {
        self.broken.is_some() || matches!(self.rest, Rest::Restless(_))
    }
}

impl Figures {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            simulated: self.simulated + other.simulated,
            healing: self.healing + other.healing,
            events: self.events + other.events,
            attempts: self.attempts + other.attempts,
            writes: self.writes + other.writes,
            failovers: self.failovers + other.failovers,
            grants: self.grants + other.grants,
            openings: self.openings + other.openings,
            reigns: self.reigns + other.reigns,
        }
    }
}
