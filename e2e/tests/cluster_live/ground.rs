//! The ground under a stage: three machines of our own, or a cluster of somebody else.
//!
//! In: the environment. Out: an API server, ways to servers, names of zones and images. Must not: touch a machine that is not
//! ours: whoever needs one asks for it, and fails where there is none.

use std::ops::Deref;
use std::path::Path;

use bloodraven_e2e::programs;
use bloodraven_testbed::cluster::{
    Api, BLOODRAVEN_IMAGE, Choice, Cluster, External, MYSQL_IMAGE, SITES, STORAGE_CLASS,
};
use bloodraven_testbed::environment;
use bloodraven_testbed::scratch::Scratch;
use serde_json::Value;

/// Names the image with `bloodraven` and `keeper` in a cluster of somebody else.
const IMAGE: &str = "BLOODRAVEN_IMAGE";

/// Names the image of MySQL there.
const MYSQL: &str = "BLOODRAVEN_MYSQL_IMAGE";

/// The label that says in which zone a node is.
const ZONE: &str = "topology.kubernetes.io/zone";

pub(crate) enum Ground {
    Own(Box<Cluster>),
    Others(Box<Others>),
}

/// A cluster of somebody else, and what the group is made of there.
pub(crate) struct Others {
    external: External,
    zones: Vec<String>,
    storage_class: String,
    folder: Scratch,
}

impl Ground {
    /// The cluster that the environment names, or one of our own.
    pub(crate) fn prepare() -> Self {
        if let Some(choice) = Choice::of_environment() {
            return Self::Others(Box::new(Others::open(&choice)));
        }
        let options = Cluster::options(programs::testbed());
        let cluster = options.workspace(programs::bloodraven(), programs::static_keeper()).start();
        Self::Own(Box::new(cluster.unwrap_or_else(|error| panic!("no cluster: {error}"))))
    }

    pub(crate) fn is_own() -> bool {
        Choice::of_environment().is_none()
    }

    /// The machines, for what only they can suffer.
    pub(crate) fn machines(&self) -> &Cluster {
        match self {
            Self::Own(cluster) => cluster,
            Self::Others(_) => panic!("this needs machines of our own"),
        }
    }

    /// The folder that is kept when a test fails.
    pub(crate) fn logs(&self) -> &Path {
        match self {
            Self::Own(cluster) => cluster.logs(),
            Self::Others(others) => others.folder.path(),
        }
    }

    /// The image of operator and sidecars.
    pub(crate) fn image(&self) -> String {
        self.named(IMAGE, BLOODRAVEN_IMAGE)
    }

    pub(crate) fn mysql_image(&self) -> String {
        self.named(MYSQL, MYSQL_IMAGE)
    }

    fn named(&self, variable: &str, own: &str) -> String {
        match self {
            Self::Own(_) => own.to_owned(),
            Self::Others(others) => environment::variable(variable).map_or_else(
                || panic!("{variable} has to name an image that {} has", others.external.context()),
                |name| name.to_string_lossy().into_owned(),
            ),
        }
    }

    /// The zone of a site's nodes.
    pub(crate) fn zone(&self, site: &str) -> String {
        match self {
            Self::Own(_) => site.to_owned(),
            Self::Others(others) => {
                let place = SITES.iter().position(|it| *it == site).expect("a site");
                others.zones[place].clone()
            }
        }
    }

    /// The context of the kubeconfig; none: its current one.
    pub(crate) fn context(&self) -> Option<String> {
        match self {
            Self::Own(_) => None,
            Self::Others(others) => Some(others.external.context().to_owned()),
        }
    }

    pub(crate) fn storage_class(&self) -> &str {
        match self {
            Self::Own(_) => STORAGE_CLASS,
            Self::Others(others) => &others.storage_class,
        }
    }
}

impl Deref for Ground {
    type Target = Api;

    fn deref(&self) -> &Api {
        match self {
            Self::Own(cluster) => cluster,
            Self::Others(others) => &others.external,
        }
    }
}

impl Others {
    fn open(choice: &Choice) -> Self {
        let external = External::open(choice).unwrap_or_else(|error| panic!("{error}"));
        let zones = zones(&external.get(&["nodes"]).unwrap(), external.nodes());
        assert!(
            zones.len() >= SITES.len(),
            "{} has nodes in the zones {zones:?}; three are needed",
            external.context()
        );
        let classes = external.get(&["storageclasses"]).unwrap();
        let storage_class = default_class(&classes).expect("a default storage class");
        Self { external, zones, storage_class, folder: Scratch::new("external-logs").unwrap() }
    }
}

/// The zones of the nodes that take pods, each once.
fn zones(nodes: &Value, ready: &[String]) -> Vec<String> {
    let takes = |node: &&Value| ready.iter().any(|name| node["metadata"]["name"] == **name);
    let all = nodes["items"].as_array().into_iter().flatten().filter(takes);
    let mut zones: Vec<String> =
        all.filter_map(|node| node["metadata"]["labels"][ZONE].as_str()).map(str::to_owned).collect();
    zones.sort();
    zones.dedup();
    zones
}

fn default_class(classes: &Value) -> Option<String> {
    let is_default =
        |class: &&Value| class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true";
    let found = classes["items"].as_array()?.iter().find(is_default)?;
    found["metadata"]["name"].as_str().map(str::to_owned)
}
