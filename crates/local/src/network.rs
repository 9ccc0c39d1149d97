//! The addresses of a state directory: who listens where, and under which address each reaches the others.
//!
//! In: two random octets, drawn once for a directory and kept in `network.json`, and the sites' names. Out: the address
//! of every listener, and the address of every link. Must not: leave loopback, hand one address out twice, or change what
//! a directory was given.
//!
//! All of 127.0.0.0/8 is this machine, so that every site has an address of its own with the ports that it has in a
//! cluster. What stands behind a link is never spoken to directly: X reaches Y under an address that only X uses, and
//! [`crate::weather`] sits in between.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use snafu::{ResultExt as _, Snafu, ensure};

use crate::files;

/// The file that keeps a directory's network.
pub const FILE: &str = "network.json";

/// The port of a server for its clients.
pub const MYSQL_PORT: u16 = 3306;
/// The port of a server for administrators.
pub const ADMIN_PORT: u16 = 33_062;
/// The port of a sidecar.
pub const SIDECAR_PORT: u16 = 8080;
/// The port of an operator.
pub const AUX_PORT: u16 = 8082;
/// The port of the front door that leads to the replicas; the other one has the port of a server.
pub const REPLICAS_PORT: u16 = 3307;

/// So many sites fit; five are more than a machine bears.
pub const MOST_SITES: usize = 16;
/// So many operators fit.
pub const MOST_OPERATORS: u8 = 8;

/// How often a new directory draws before it gives up: a net that is taken is one in thousands.
const DRAWS: usize = 16;

/// The first port of links; below the range of outgoing connections with every code added.
const LINK_PORT: u16 = 10_000;

/// What is wrong with the addresses.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Somebody listens there.
    #[snafu(display(
        "{address} ({what}) is in use: {source}; end the program that listens there, or remove {} to draw other addresses",
        file.display()
    ))]
    InUse {
        /// The address.
        address: SocketAddr,
        /// What was to listen there.
        what: String,
        /// Where the draw is kept.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// The draw cannot be stored or read.
    #[snafu(transparent)]
    File {
        /// Why not.
        source: files::Error,
    },

    /// The draw cannot be understood.
    #[snafu(display("{}: {why}; remove it to draw other addresses", path.display()))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },

    /// No randomness.
    #[snafu(display("cannot draw addresses: {why}"))]
    NoDraw {
        /// What the system said.
        why: String,
    },

    /// Too many sites.
    #[snafu(display("{count} sites: at most {MOST_SITES} fit on one machine; leave some out"))]
    TooMany {
        /// How many there are.
        count: usize,
    },
}

/// Who is at an end of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Clients, at the front doors.
    FrontDoor,
    /// A site: its server and its sidecar.
    Site(String),
    /// An operator, by its number.
    Operator(u8),
}

/// What is spoken on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// A server's port for clients: front doors, replication, clones.
    Mysql,
    /// A server's port for administrators: the operator's polls and commands.
    Admin,
    /// A sidecar: views, questions of peers.
    Sidecar,
    /// An operator: questions of sidecars.
    Aux,
}

/// The addresses of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    draw: Draw,
}

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Draw {
    /// The second and third octet.
    net: [u8; 2],
    /// Each site's number, from 1 on; a site keeps its own for ever.
    sites: BTreeMap<String, u8>,
}

impl Network {
    /// The directory's network: drawn for a new one, read for an old one. Sites that have no number yet get one.
    pub fn of(dir: &Path, sites: &[String]) -> Result<Self, Error> {
        let path = dir.join(FILE);
        let (mut draw, drawn) = match files::read(&path)? {
            Some(bytes) => (Draw::parse(&path, &bytes)?, false),
            None => (Draw::new(sites, &path)?, true),
        };
        let before = draw.clone();
        draw.number(sites)?;
        if drawn || draw != before {
            files::replace(&path, &serde_json::to_vec_pretty(&draw).unwrap_or_default())?;
        }
        Ok(Self { draw })
    }

    /// The network of a directory as it was drawn, for who only looks.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE);
        match files::read(&path)? {
            Some(bytes) => Ok(Self { draw: Draw::parse(&path, &bytes)? }),
            None => UnreadableSnafu { path, why: "it is missing" }.fail(),
        }
    }

    /// A network in memory, for tests and trials.
    pub fn on(net: [u8; 2], sites: &[String]) -> Result<Self, Error> {
        let mut draw = Draw { net, sites: BTreeMap::new() };
        draw.number(sites)?;
        Ok(Self { draw })
    }

    /// The sites, by name.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.draw.sites.keys().map(String::as_str)
    }

    /// Where a service of someone really listens; none for what nobody has. Only the one who starts it, its own sidecar
    /// and who measures from inside the site may speak to it directly.
    pub fn address(&self, of: &End, service: Service) -> Option<SocketAddr> {
        let port = match (of, service) {
            (End::Site(_), Service::Mysql) => MYSQL_PORT,
            (End::Site(_), Service::Admin) => ADMIN_PORT,
            (End::Site(_), Service::Sidecar) => SIDECAR_PORT,
            (End::Operator(_), Service::Aux) => AUX_PORT,
            _ => return None,
        };
        Some(self.at(0, self.code(of)?, port))
    }

    /// The loopback address of a site.
    pub fn ip(&self, site: &str) -> Option<Ipv4Addr> {
        let [second, third] = self.draw.net;
        Some(Ipv4Addr::new(127, second, third, self.code(&End::Site(site.to_owned()))?))
    }

    /// The front door that leads to the primary.
    pub fn primary_door(&self) -> SocketAddr {
        self.at(0, FRONT_DOOR, MYSQL_PORT)
    }

    /// The front door that leads to the replicas.
    pub fn replicas_door(&self) -> SocketAddr {
        self.at(0, FRONT_DOOR, REPLICAS_PORT)
    }

    /// Under which address `from` reaches that service of `to`.
    pub fn link_address(&self, from: &End, to: &End, service: Service) -> Option<SocketAddr> {
        self.address(to, service)?;
        let port = LINK_PORT + u16::from(self.code(to)?) * 10 + service.code();
        Some(self.at(LINKS, self.code(from)?, port))
    }

    /// Under which address a site reaches the operators, whichever of them answers: what a Service is in a cluster.
    pub fn operators_address(&self, from: &str) -> Option<SocketAddr> {
        let port = LINK_PORT + Service::Aux.code();
        Some(self.at(LINKS, self.code(&End::Site(from.to_owned()))?, port))
    }

    /// Under which address any sidecar reaches this very operator: what the leader is told to others by.
    pub fn advertised_address(&self, operator: u8) -> Option<SocketAddr> {
        let port = LINK_PORT + u16::from(self.code(&End::Operator(operator))?) * 10 + Service::Aux.code();
        Some(self.at(LINKS, ANYONE, port))
    }

    /// That every address that will be listened on is free now.
    pub fn check_free(&self, dir: &Path, operators: u8) -> Result<(), Error> {
        let file = dir.join(FILE);
        for (what, address) in self.listeners(operators) {
            TcpListener::bind(address).map(drop).context(InUseSnafu { address, what, file: file.clone() })?;
        }
        Ok(())
    }

    /// Everything that listens, links apart: the same net has nobody else, so what these are free of, links are, too.
    fn listeners(&self, operators: u8) -> Vec<(String, SocketAddr)> {
        let mut all = vec![
            ("the front door of the primary".to_owned(), self.primary_door()),
            ("the front door of the replicas".to_owned(), self.replicas_door()),
        ];
        let sites = self.sites().map(|site| End::Site(site.to_owned()));
        for end in sites.chain((0..operators).map(End::Operator)) {
            for service in [Service::Mysql, Service::Admin, Service::Sidecar, Service::Aux] {
                let address = self.address(&end, service);
                all.extend(address.map(|address| (format!("{service} of {end}"), address)));
            }
        }
        all
    }

    fn at(&self, net: u8, host: u8, port: u16) -> SocketAddr {
        let [second, third] = self.draw.net;
        SocketAddrV4::new(Ipv4Addr::new(127, second, third | net, host), port).into()
    }

    fn code(&self, end: &End) -> Option<u8> {
        match end {
            End::FrontDoor => Some(FRONT_DOOR),
            End::Site(name) => self.draw.sites.get(name).map(|number| SITES + number),
            End::Operator(number) => (*number < MOST_OPERATORS).then_some(OPERATORS + number),
        }
    }
}

/// The last octet of the front doors.
const FRONT_DOOR: u8 = 2;
/// The last octet, on links, of whoever it is.
const ANYONE: u8 = 9;
/// Added to a site's number.
const SITES: u8 = 10;
/// Added to an operator's number.
const OPERATORS: u8 = 200;
/// The bit of the third octet that makes the net of the links.
const LINKS: u8 = 0x80;

impl Draw {
    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let unreadable = |why: String| UnreadableSnafu { path, why }.build();
        let draw: Self = serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        let numbers: std::collections::BTreeSet<u8> = draw.sites.values().copied().collect();
        let apart = numbers.len() == draw.sites.len();
        let bounded = numbers.iter().all(|number| (1..=MOST_SITES).contains(&usize::from(*number)));
        if !apart || !bounded || draw.net[1] & LINKS != 0 {
            return Err(unreadable("its numbers are not ones that were drawn".to_owned()));
        }
        Ok(draw)
    }

    /// A net whose front doors nobody has.
    fn new(sites: &[String], file: &Path) -> Result<Self, Error> {
        let mut last = None;
        for _ in 0..DRAWS {
            let mut octets = [0_u8; 2];
            getrandom::fill(&mut octets).map_err(|error| NoDrawSnafu { why: error.to_string() }.build())?;
            // 127.0 and 127.1 are other programs' favourites.
            let net = [octets[0].clamp(2, 254), octets[1] & !LINKS];
            let network = Network::on(net, sites)?;
            match network.check_free(file.parent().unwrap_or(file), 1) {
                Ok(()) => return Ok(network.draw),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| NoDrawSnafu { why: "no draw was made" }.build()))
    }

    fn number(&mut self, sites: &[String]) -> Result<(), Error> {
        for site in sites {
            if self.sites.contains_key(site) {
                continue;
            }
            ensure!(self.sites.len() < MOST_SITES, TooManySnafu { count: self.sites.len().max(sites.len()) });
            let taken = |number: &u8| self.sites.values().any(|other| other == number);
            let free = (1..=u8::MAX).find(|number| !taken(number)).unwrap_or(u8::MAX);
            self.sites.insert(site.clone(), free);
        }
        Ok(())
    }
}

impl Service {
    const fn code(self) -> u16 {
        match self {
            Self::Mysql => 0,
            Self::Admin => 1,
            Self::Sidecar => 2,
            Self::Aux => 3,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrontDoor => f.write_str("the front door"),
            Self::Site(name) => f.write_str(name),
            Self::Operator(number) => write!(f, "operator {number}"),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mysql => "the server",
            Self::Admin => "the server's admin port",
            Self::Sidecar => "the sidecar",
            Self::Aux => "the operator's port",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::collections::BTreeSet;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn no_address_is_handed_out_twice() {
        let sites = names(&["iad", "pdx", "fra"]);
        let network = Network::on([17, 42], &sites).unwrap();
        let ends: Vec<End> =
            sites.iter().cloned().map(End::Site).chain([End::Operator(0), End::Operator(1), End::FrontDoor]).collect();
        let services = [Service::Mysql, Service::Admin, Service::Sidecar, Service::Aux];
        let mut all: Vec<SocketAddr> = network.listeners(2).into_iter().map(|(_, address)| address).collect();
        for (from, to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (from, to))) {
            all.extend(services.iter().filter_map(|service| network.link_address(from, to, *service)));
        }
        all.extend(sites.iter().filter_map(|site| network.operators_address(site)));
        all.extend((0..2).filter_map(|number| network.advertised_address(number)));
        let apart: BTreeSet<_> = all.iter().collect();
        assert_eq!(apart.len(), all.len(), "{all:?}");
        assert!(all.iter().all(|address| address.ip().is_loopback()));
        assert_eq!(network.primary_door().to_string(), "127.17.42.2:3306");
        let iad = End::Site("iad".into());
        assert_eq!(network.address(&iad, Service::Admin).unwrap().to_string(), "127.17.42.11:33062");
        assert_eq!(network.address(&iad, Service::Aux), None);
        assert_eq!(network.address(&End::Site("lax".into()), Service::Mysql), None);
    }

    #[test]
    fn a_directory_keeps_its_network_and_a_site_its_number() {
        let dir = Folder::new();
        let first = Network::of(dir.path(), &names(&["iad", "pdx"])).unwrap();
        let second = Network::of(dir.path(), &names(&["pdx", "fra", "iad"])).unwrap();
        assert_eq!(first.ip("iad"), second.ip("iad"));
        assert_eq!(first.ip("pdx"), second.ip("pdx"));
        assert!(second.ip("fra").is_some());
        assert_eq!(Network::read(dir.path()).unwrap(), second);
    }

    #[test]
    fn an_address_in_use_is_named_with_the_way_out() {
        let dir = Folder::new();
        let network = Network::of(dir.path(), &names(&["iad", "pdx"])).unwrap();
        let taken = network.address(&End::Site("pdx".into()), Service::Sidecar).unwrap();
        let _listener = TcpListener::bind(taken).unwrap();
        let error = network.check_free(dir.path(), 1).unwrap_err().to_string();
        for part in [&taken.to_string(), "the sidecar of pdx", "network.json"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_draw_that_was_not_drawn_is_refused() {
        let dir = Folder::new();
        let path = dir.path().join(FILE);
        for bad in [
            "",
            "{}",
            r#"{"net":[1,2],"sites":{"a":1,"b":1}}"#,
            r#"{"net":[1,2],"sites":{"a":0}}"#,
            r#"{"net":[1,128],"sites":{}}"#,
            r#"{"net":[1,2],"sites":{},"more":1}"#,
        ] {
            std::fs::write(&path, bad).unwrap();
            let error = Network::of(dir.path(), &names(&["a"])).unwrap_err().to_string();
            assert!(error.contains("network.json") && error.contains("remove it"), "{bad}: {error}");
        }
    }

    #[test]
    fn more_sites_than_fit_are_refused() {
        let many: Vec<String> = (0..=MOST_SITES).map(|number| format!("s{number}")).collect();
        assert!(matches!(Network::on([9, 9], &many), Err(Error::TooMany { .. })));
    }
}
