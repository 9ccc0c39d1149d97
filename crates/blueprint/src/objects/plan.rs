//! A group on the way to its objects: everything that is needed, found and checked once.
//!
//! In: a group object and [`Surroundings`]. Out: a [`Plan`] of which every object can be built. Must not: repeat the rules
//! of admission; it checks what those cannot know, and what would be harmful to have wrong.

use std::collections::BTreeMap;

use bloodraven_api::group::SiteSpec;
use bloodraven_api::rules::text::{DNS_LABEL, HOST_PORT, HOSTNAME};
use bloodraven_api::{MysqlFailoverGroup, MysqlFailoverGroupSpec, names};
use snafu::{OptionExt as _, ensure};

use super::error::{
    ClusterDomainSnafu, Error, NameSnafu, NoServerIdSnafu, NoSidecarImageSnafu, NoVolumeSnafu, OperatorAddressSnafu,
    SameServerIdSnafu, UnnamedSnafu,
};
use super::{conf, pod};

/// What is needed for the objects of a group and does not stand in its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The operator's own image, where it is known: sidecars run it unless the group says otherwise.
    pub own_image: Option<String>,
    /// Where sidecars ask unless the group says otherwise, `host:port`.
    pub operator_address: String,
    /// The domain of the cluster's Services.
    pub cluster_domain: String,
    /// How the Secret gives the operator's account.
    pub operator_account: OperatorAccount,
    /// Whether the Secret has a replication account.
    pub replication_account: bool,
    /// The server id of every site, as [`server_ids`](super::server_ids) chose it.
    pub server_ids: BTreeMap<String, u32>,
}

/// How the Secret gives the operator's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAccount {
    /// As `username` and `password`: pods mount the Secret itself.
    Keys,
    /// As `dsn`: pods mount a Secret that [`operator_account`](super::operator_account) made of it.
    Dsn,
}

/// A group of which every object can be built.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
    spec: &'a MysqlFailoverGroupSpec,
    surroundings: &'a Surroundings,
    sidecar_image: &'a str,
    sites: Vec<SitePlan<'a>>,
    conf: String,
}

/// A site of it.
#[derive(Clone, Copy, Debug)]
pub struct SitePlan<'a> {
    /// What the group says of it.
    pub spec: &'a SiteSpec,
    /// Its server id.
    pub server_id: u32,
}

impl SitePlan<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

impl<'a> Plan<'a> {
    /// Looks whether every object can be built. The group is one that [`crate::spec::group`] took.
    pub fn new(group: &'a MysqlFailoverGroup, surroundings: &'a Surroundings) -> Result<Self, Error> {
        let filled = |value: &'a Option<String>, field| {
            value.as_deref().filter(|it| !it.is_empty()).context(UnnamedSnafu { field })
        };
        let Surroundings { own_image, operator_address, cluster_domain, .. } = surroundings;
        ensure!(HOSTNAME.holds(cluster_domain), ClusterDomainSnafu { domain: cluster_domain });
        ensure!(HOST_PORT.holds(operator_address), OperatorAddressSnafu { address: operator_address });
        let spec = &group.spec;
        let image = spec.sidecar_image.as_deref().or(own_image.as_deref()).filter(|image| !image.is_empty());
        let plan = Self {
            name: filled(&group.metadata.name, "name")?,
            namespace: filled(&group.metadata.namespace, "namespace")?,
            uid: filled(&group.metadata.uid, "uid")?,
            spec,
            surroundings,
            sidecar_image: image.context(NoSidecarImageSnafu)?,
            sites: sites(spec, &surroundings.server_ids)?,
            conf: conf::of_group(spec)?,
        };
        plan.check_names()?;
        plan.check_mounts()?;
        Ok(plan)
    }

    /// The group.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &'a str {
        self.namespace
    }

    /// Its UID.
    pub fn uid(&self) -> &'a str {
        self.uid
    }

    /// What it asks for.
    pub fn spec(&self) -> &'a MysqlFailoverGroupSpec {
        self.spec
    }

    /// What stands around it.
    pub fn surroundings(&self) -> &'a Surroundings {
        self.surroundings
    }

    /// Its sites, in declared order.
    pub fn sites(&self) -> &[SitePlan<'a>] {
        &self.sites
    }

    /// The image of sidecar and init container.
    pub fn sidecar_image(&self) -> &'a str {
        self.sidecar_image
    }

    /// What a site's `ConfigMap` holds.
    pub(super) fn conf(&self) -> &str {
        &self.conf
    }

    /// Where sidecars ask.
    pub fn operator_address(&self) -> &'a str {
        self.spec.sidecar.bloodraven_address.as_deref().unwrap_or(&self.surroundings.operator_address)
    }

    /// The whole name of a Service of the group.
    pub fn host(&self, service: &str) -> String {
        format!("{service}.{}.svc.{}", self.namespace, self.surroundings.cluster_domain)
    }

    /// The longest name of each kind that is made of group and site; a group and a site that fit are a rule of admission.
    fn check_names(&self) -> Result<(), Error> {
        let check = |name: String, field: String| {
            // Services must begin with a letter, and they have most of these names.
            let fits = name.len() <= names::MAX_NAME
                && DNS_LABEL.holds(&name)
                && name.starts_with(|first: char| first.is_ascii_lowercase());
            ensure!(fits, NameSnafu { field, name });
            Ok(())
        };
        let group = self.name;
        for name in [names::authority(group), names::replicas(group), names::dns_endpoint(group), group.to_owned()] {
            check(name, "metadata.name".to_owned())?;
        }
        for site in &self.sites {
            let site = site.name();
            for name in [names::site_internal(group, site), names::dragonfly_site(group, site)] {
                check(name, format!("spec.sites[{site}].name"))?;
            }
        }
        Ok(())
    }

    /// Containers of the user find what they mount. The signing key and the keeper's socket are nobody else's: who has the
    /// key speaks for the group, and who greets the keeper shuts the sidecar out.
    fn check_mounts(&self) -> Result<(), Error> {
        let volumes = pod::volume_names(self);
        let shown: Vec<&str> =
            volumes.iter().map(String::as_str).filter(|name| !pod::PRIVATE_VOLUMES.contains(name)).collect();
        let lists = [
            ("extraContainers", &self.spec.extra_containers),
            ("extraInitContainers", &self.spec.extra_init_containers),
        ];
        for (list, containers) in lists {
            for container in containers {
                for mount in container.volume_mounts.iter().flatten() {
                    let field = format!("spec.{list}[{}].volumeMounts", container.name);
                    ensure!(
                        shown.contains(&mount.name.as_str()),
                        NoVolumeSnafu { field, volume: &mount.name, volumes: shown.join(", ") }
                    );
                }
            }
        }
        Ok(())
    }
}

fn sites<'a>(spec: &'a MysqlFailoverGroupSpec, ids: &BTreeMap<String, u32>) -> Result<Vec<SitePlan<'a>>, Error> {
    let mut taken: BTreeMap<u32, &str> = BTreeMap::new();
    let mut plan = |site: &'a SiteSpec| {
        let server_id = ids.get(&site.name).copied().filter(|id| *id != 0);
        let server_id = server_id.context(NoServerIdSnafu { site: &site.name })?;
        if let Some(other) = taken.insert(server_id, &site.name) {
            return SameServerIdSnafu { site: &site.name, other, id: server_id }.fail();
        }
        Ok(SitePlan { spec: site, server_id })
    };
    spec.sites.iter().map(&mut plan).collect()
}
