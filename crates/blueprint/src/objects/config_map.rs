//! A site's `ConfigMap`: the option file of its server.
//!
//! In: a plan, a site. Out: the object. Must not: hold what only a pod knows; the init container adds that.

use std::collections::BTreeMap;

use bloodraven_api::keys::Application;
use bloodraven_api::names;
use k8s_openapi::api::core::v1::ConfigMap;

use super::{Plan, SitePlan, metadata};

/// The key that holds the option file.
pub const CONFIG_KEY: &str = "bloodraven.cnf";

/// The `ConfigMap` of a site.
pub fn config_map(plan: &Plan<'_>, site: &SitePlan<'_>) -> ConfigMap {
    let name = names::site_config(plan.name(), site.name());
    ConfigMap {
        metadata: metadata::owned(plan, Application::Mysql, name, Some(site.name())),
        data: Some(BTreeMap::from([(CONFIG_KEY.to_owned(), plan.conf().to_owned())])),
        ..ConfigMap::default()
    }
}
