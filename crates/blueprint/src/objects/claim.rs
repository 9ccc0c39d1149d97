//! A site's claim: the volume that holds its data and its sidecar's memory.
//!
//! In: a plan, a site, the claim that is there. Out: the object to apply, or the field that the present claim contradicts.
//! Must not: shrink, or forget who made the volume: whether it is as old as the group decides whether its data count.

use std::collections::BTreeMap;

use bloodraven_api::group::VolumeRetention;
use bloodraven_api::keys::{Application, GROUP_UID, SERVER_ID};
use bloodraven_api::names;
use bloodraven_api::quantity;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use snafu::ensure;

use super::error::{ClaimSnafu, Error};
use super::{Plan, SitePlan, metadata};

/// The claim of a site. `present` is the one that is there, as the API server holds it.
pub fn claim(
    plan: &Plan<'_>,
    site: &SitePlan<'_>,
    present: Option<&PersistentVolumeClaim>,
) -> Result<PersistentVolumeClaim, Error> {
    let name = names::site_data(plan.name(), site.name());
    let storage = &site.spec.storage;
    let access_modes = vec![storage.access_mode.as_str().to_owned()];
    if let Some(spec) = present.and_then(|claim| claim.spec.as_ref()) {
        let field = |field: &str| format!("spec.sites[{}].storage.{field}", site.name());
        let class = spec.storage_class_name.as_deref().unwrap_or(&storage.storage_class_name);
        ensure!(
            class == storage.storage_class_name,
            ClaimSnafu { field: field("storageClassName"), claim: &name, present: class }
        );
        let modes = spec.access_modes.as_ref().filter(|modes| **modes != access_modes);
        if let Some(modes) = modes {
            return ClaimSnafu { field: field("accessMode"), claim: &name, present: modes.join(", ") }.fail();
        }
    }
    let mut metadata = metadata::kept(plan, Application::Mysql, name, Some(site.name()));
    metadata.annotations = Some(BTreeMap::from([
        (SERVER_ID.to_owned(), site.server_id.to_string()),
        (GROUP_UID.to_owned(), maker(present).unwrap_or(plan.uid()).to_owned()),
    ]));
    if plan.spec().volume_retention == VolumeRetention::Delete {
        metadata.owner_references = Some(vec![metadata::owner(plan)]);
    }
    let request = largest(&storage.size, present);
    Ok(PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(access_modes),
            storage_class_name: Some(storage.storage_class_name.clone()),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(request))])),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    })
}

/// The group that made the volume. A claim without the mark was not made by any: it gets a mark that is no group's, so
/// that what is on it counts as data.
fn maker(present: Option<&PersistentVolumeClaim>) -> Option<&str> {
    const NOBODY: &str = "unknown";
    let present = present?;
    let mark = present.metadata.annotations.as_ref().and_then(|all| all.get(GROUP_UID));
    Some(mark.map_or(NOBODY, String::as_str))
}

/// What is asked for, or what the claim asks for already where that is more.
fn largest(wanted: &str, present: Option<&PersistentVolumeClaim>) -> String {
    let spec = present.and_then(|claim| claim.spec.as_ref());
    let requests = spec.and_then(|spec| spec.resources.as_ref()).and_then(|resources| resources.requests.as_ref());
    let present = requests.and_then(|requests| requests.get("storage")).map(|size| size.0.as_str());
    let is_more = |present: &&str| {
        let sizes = (quantity::Quantity::parse(present), quantity::Quantity::parse(wanted));
        matches!(sizes, (Ok(present), Ok(wanted)) if present > wanted)
    };
    present.filter(is_more).unwrap_or(wanted).to_owned()
}
