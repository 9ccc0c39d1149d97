//! A directory's group: made, or found and resumed.
//!
//! In: options and a directory that is ours. Out: its store and network, and the certainty that nothing of an earlier run
//! lives. Must not: change a group that is not what was asked for, or call a life ended that may still run.

use snafu::ensure;

use super::options::{Options, Role, group};
use super::{Error, OtherSitesSnafu, SurvivorSnafu, stamp};
use crate::network::Network;
use crate::operate::Operators;
use crate::store::pods::PodFile;
use crate::store::{Store, secrets};
use crate::supervisor::{bury_pod, proc};

/// A new group.
pub(crate) fn make(options: &Options) -> Result<(Store, Network), Error> {
    let names: Vec<String> = options.sites.iter().map(|(name, _)| name.clone()).collect();
    // Refused before anything is written.
    let trial = Network::on([2, 0], &names)?;
    let uid = secrets::uuid()?;
    crate::store::object::check(&group(options, &trial, &uid, &stamp()), None)?;
    let network = Network::of(&options.dir, &names)?;
    let store = Store::create(&options.dir, &group(options, &network, &uid, &stamp()))?;
    Ok((store, network))
}

/// The group that is there, with what the options change in its spec.
pub(super) fn reopen(options: &Options) -> Result<(Store, Network), Error> {
    let store = Store::open(&options.dir)?;
    store.sweep();
    let object = store.read_group()?;
    let found: Vec<(String, Option<Role>)> =
        object.sites().into_iter().map(|(name, role)| (name, Role::parse(&role))).collect();
    let wanted: Vec<(String, Option<Role>)> =
        options.sites.iter().map(|(name, role)| (name.clone(), Some(*role))).collect();
    ensure!(
        wanted.is_empty() || wanted == found,
        OtherSitesSnafu { dir: &options.dir, found: list(&found), wanted: list(&wanted) }
    );
    let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
    let network = Network::of(&options.dir, &names)?;
    let mut patch = options.profile.spec();
    crate::store::object::merge(&mut patch, &options.spec);
    store.patch_spec(None, &patch)?;
    Ok((store, network))
}

/// Sees that nothing of an earlier run lives, and writes down the end of its pods. Their parent is dead, so the kernel has
/// killed them; this looks whether it is so.
pub(crate) async fn bury(store: &Store) -> Result<(), Error> {
    let operators = Operators::read(store)?.map(|it| it.uids).unwrap_or_default();
    let pods = store.pods()?;
    for uid in operators.iter().chain(pods.iter().map(|pod| &pod.uid)) {
        if bury_pod(uid).await.is_none() {
            let pid = proc::members(crate::supervisor::POD_VARIABLE, uid).first().copied().unwrap_or_default();
            return SurvivorSnafu { pid }.fail();
        }
    }
    for pod in pods.into_iter().filter(|pod| !pod.ended) {
        store.write_pod(&PodFile { deleting: true, ended: true, keeper_pid: None, sidecar_pid: None, ..pod })?;
    }
    Ok(())
}

fn list(sites: &[(String, Option<Role>)]) -> String {
    let one = |(name, role): &(String, Option<Role>)| match role {
        Some(Role::DrOnly) => format!("{name}:dr-only"),
        _ => name.clone(),
    };
    sites.iter().map(one).collect::<Vec<_>>().join(",")
}
