//! The network: one-way links between every two hosts, for queries and for messages apart.
//!
//! In: who sends what to whom. Out: when it arrives, if it does, and whether twice. Must not: look into it.

use super::clock::{MS, Time};
use super::random::Random;

/// A place that sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The API store.
    Store,
    /// An operator process: 0 or 1.
    Operator(usize),
    /// Where applications run.
    Clients,
    /// A site, by its place in the declared order.
    Site(usize),
}

/// What travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Messages between sidecars, operators and the store.
    Http,
    /// Statements, replication and clones.
    Sql,
}

/// One direction of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Nothing arrives.
    pub(super) cut: bool,
    /// So many of a hundred are lost.
    pub(super) loss: u64,
    /// On top of the usual delay.
    pub(super) delay: Time,
}

/// Places: the store, two operators, the applications, then sites.
const FIXED: usize = 4;

/// All links.
#[derive(Clone, Debug)]
pub(super) struct Net {
    ends: usize,
    links: Vec<Link>,
    /// The usual delay, and how much it varies.
    base: Time,
    jitter: Time,
    /// So many of a hundred messages come twice.
    twice: u64,
}

/// How a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Time,
    pub(super) again: Option<Time>,
}

impl Net {
    pub(super) fn new(sites: usize, base: Time, jitter: Time, twice: u64) -> Self {
        let ends = FIXED + sites;
        Self { ends, links: vec![Link::default(); ends * ends * 2], base, jitter, twice }
    }

    pub(super) fn link_mut(&mut self, from: End, to: End, channel: Channel) -> Option<&mut Link> {
        let place = self.place(from, to, channel);
        self.links.get_mut(place)
    }

    pub(super) fn link(&self, from: End, to: End, channel: Channel) -> Link {
        self.links.get(self.place(from, to, channel)).copied().unwrap_or_default()
    }

    /// Every end.
    pub(super) fn ends(&self) -> Vec<End> {
        let fixed = [End::Store, End::Operator(0), End::Operator(1), End::Clients];
        fixed.into_iter().chain((0..self.ends - FIXED).map(End::Site)).collect()
    }

    pub(super) fn heal(&mut self) {
        self.links.fill(Link::default());
    }

    /// When something sent now arrives; none: never.
    pub(super) fn carry(
        &self,
        random: &mut Random,
        now: Time,
        from: End,
        to: End,
        channel: Channel,
    ) -> Option<Arrival> {
        let link = self.link(from, to, channel);
        if link.cut || (link.loss > 0 && random.chance(link.loss)) {
            return None;
        }
        let mut travel = || self.base + random.below(self.jitter + 1) + link.delay;
        let at = now + travel();
        let again = (self.twice > 0 && random.chance(self.twice)).then(|| now + 3 * MS);
        let again = again.map(|at| at + random.below(2000 * MS));
        Some(Arrival { at, again })
    }

    fn place(&self, from: End, to: End, channel: Channel) -> usize {
        let channel = usize::from(channel == Channel::Sql);
        (number(from) * self.ends + number(to)) * 2 + channel
    }
}

fn number(end: End) -> usize {
    match end {
        End::Store => 0,
        End::Operator(which) => 1 + which.min(1),
        End::Clients => 3,
        End::Site(site) => FIXED + site,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_one_way_and_of_one_channel() {
        let mut net = Net::new(2, MS, 0, 0);
        let (a, b) = (End::Site(0), End::Site(1));
        net.link_mut(a, b, Channel::Sql).expect("there").cut = true;
        let mut random = Random::new(1, 1);
        let mut arrives = |from, to, channel| net.carry(&mut random, 0, from, to, channel).map(|arrival| arrival.at);
        assert_eq!(arrives(a, b, Channel::Sql), None);
        assert_eq!(arrives(b, a, Channel::Sql), Some(MS));
        assert_eq!(arrives(a, b, Channel::Http), Some(MS));
    }

    #[test]
    fn every_end_has_links_of_its_own() {
        let net = Net::new(5, MS, 0, 0);
        let ends = net.ends();
        let mut places = Vec::new();
        for from in &ends {
            for to in &ends {
                places.extend([net.place(*from, *to, Channel::Sql), net.place(*from, *to, Channel::Http)]);
            }
        }
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), net.links.len());
    }
}
