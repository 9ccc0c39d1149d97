//! A group's objects: applied as the blueprint draws them, and kept so.
//!
//! In: the wanted group, the claims and Deployments that watches showed. Out: objects that are as wanted, or what stands in
//! the way. Must not: touch an object that is another's, or change the template of pods that run: [`roll`] does, when it is
//! told.

use crate::estate::Wanted;
use crate::keep::{self, Drawing, Made, Unkept};
use crate::older;
use crate::prune;
use crate::rest::{Fault, Rest};
use crate::secrets;
use crate::seen::{SeenClaim, SeenDeployment};
use crate::shelf::Shelf;
use crate::watches::{Version, Watches};
use bloodraven_api::keys::{FINALIZER_GROUP, SERVER_ID, SPEC_HASH};
use bloodraven_api::{MysqlFailoverGroup, MysqlFailoverGroupSpec, names};
use bloodraven_blueprint::objects::{self, AuthorityKeys, KEY_BYTES, OperatorAccount, Plan, Surroundings};
use bloodraven_brain::name::Site;
use bloodraven_operator::world::{GroupId, Look, Refused, Unfurnished};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, Resource};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the operator itself adds to every group.
#[derive(Clone, Debug)]
pub struct House {
    /// The operator's own image, where it is known.
    pub own_image: Option<String>,
    /// Where sidecars ask, `host:port`.
    pub operator_address: String,
    /// The domain of the cluster's Services.
    pub cluster_domain: String,
}

/// What was applied last, so that what is so already costs nothing. An object that somebody took away or changed is seen by
/// its watch and comes back; one that nobody watches is looked at in every [`LOOKS_AGAIN`]th whole round.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    groups: Mutex<BTreeMap<GroupId, Last>>,
    /// The signing keys as they were last seen: a Secret that somebody deleted comes back as it was.
    keys: Mutex<BTreeMap<GroupId, AuthorityKeys>>,
}

#[derive(Clone, Debug, Default)]
struct Last {
    /// By path.
    applied: BTreeMap<String, Made>,
    /// How the Secret gives the accounts, as it was last read.
    shape: Option<(OperatorAccount, bool)>,
    rounds: u32,
    hashes: Wanted,
}

/// Whole rounds come every 30 s without a change.
const LOOKS_AGAIN: u32 = 2;

/// Everything of one group.
pub(crate) async fn furnish(
    rest: &Rest,
    watches: &Watches,
    house: &House,
    applied: &Applied,
    group: &GroupId,
    wanted: &MysqlFailoverGroup,
    look: Look,
) -> Result<(), Unfurnished> {
    if let Some(field) = not_yet(&wanted.spec) {
        let because = format!("spec.{field}: this operator does not look after it yet; remove it");
        return Err(Unfurnished::Unbuildable { because });
    }
    let last = applied.begin(group, look);
    let shape = match last.shape {
        Some(shape) => shape,
        None => secrets::shape(rest, group, &wanted.spec).await.map_err(|error| unread(&error))?,
    };
    let surroundings = surroundings(watches, house, group, wanted, shape)?;
    if let Some(because) = older::than_what_runs(&wanted.spec.image, &watches.deployments.of(group).unwrap_or_default())
    {
        return Err(Unfurnished::Unbuildable { because });
    }
    let plan = Plan::new(wanted, &surroundings).map_err(|error| unbuildable(&error))?;
    let mut round = Round { rest, watches, plan: &plan, group, last };
    hold_group(rest, watches, group).await?;
    if look == Look::All {
        make_key(rest, applied, &plan, group).await?;
    }
    if look == Look::All && surroundings.operator_account == OperatorAccount::Dsn {
        let account = secrets::operator_account(rest, group, &wanted.spec).await.map_err(|error| unread(&error))?;
        round.apply(&objects::operator_account(&plan, &account.user, &account.password)).await?;
    }
    let claims = watches.claims.of(group).unwrap_or_default();
    for site in plan.sites() {
        let present = present_claim(rest, group, site.name(), &claims).await?;
        let claim = objects::claim(&plan, site, present.as_ref()).map_err(|error| unbuildable(&error))?;
        round.apply(&claim).await?;
    }
    let all = objects::objects(&plan);
    for object in &all.config_maps {
        round.apply(object).await?;
    }
    for object in &all.services {
        round.apply(object).await?;
    }
    for object in &all.disruption_budgets {
        round.apply(object).await?;
    }
    if let Some(certificate) = &all.certificate {
        round
            .apply_as("/apis/cert-manager.io/v1", "certificates", "Certificate", &certificate.metadata, certificate)
            .await?;
    }
    let running = watches.deployments.of(group).unwrap_or_default();
    for object in &all.deployments {
        if may_apply(&running, object) {
            round.apply(object).await?;
        }
    }
    round.last.hashes = hashes(&plan, &all.deployments);
    round.last.shape = Some(shape);
    applied.end(group, round.last);
    prune::prune(rest, watches, &plan, group).await
}

/// Brings the site's template to what was furnished last.
pub(crate) async fn roll(
    rest: &Rest,
    watches: &Watches,
    house: &House,
    group: &GroupId,
    wanted: &MysqlFailoverGroup,
    site: &Site,
) -> Result<(), Refused> {
    let denied = |error: Unfurnished| Refused::Denied { because: error.to_string() };
    let shape = secrets::shape(rest, group, &wanted.spec).await.map_err(|error| denied(unread(&error)))?;
    let surroundings = surroundings(watches, house, group, wanted, shape).map_err(denied)?;
    let plan = Plan::new(wanted, &surroundings).map_err(|error| denied(unbuildable(&error)))?;
    let Some(site) = plan.sites().iter().find(|it| it.name() == site.as_str()) else {
        return Err(Refused::Denied { because: format!("{site} is not in the spec any more") });
    };
    let mut round = Round { rest, watches, plan: &plan, group, last: Last::default() };
    round.apply(&objects::deployment(&plan, site)).await.map_err(|error| match error {
        Unfurnished::Store { refused, .. } => refused,
        other => denied(other),
    })
}

impl Applied {
    fn begin(&self, group: &GroupId, look: Look) -> Last {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = groups.get(group).cloned().unwrap_or_default();
        if look == Look::All {
            last.rounds = (last.rounds + 1) % LOOKS_AGAIN;
            last.shape = None;
        }
        last
    }

    fn end(&self, group: &GroupId, last: Last) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).insert(group.clone(), last);
    }

    pub(crate) fn forget(&self, group: &GroupId) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).remove(group);
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(group);
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<GroupId, AuthorityKeys>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each site's pods should be.
    pub(crate) fn hashes(&self, group: &GroupId) -> Wanted {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.get(group).map(|last| last.hashes.clone()).unwrap_or_default()
    }
}

/// One pass over a group's objects.
struct Round<'a> {
    rest: &'a Rest,
    watches: &'a Watches,
    plan: &'a Plan<'a>,
    group: &'a GroupId,
    last: Last,
}

/// What a watch says of an object that was applied.
enum Sight {
    /// It is as it was made.
    Same,
    /// It is another, or it is not there, or the watch is behind.
    Other,
    /// Nobody watches such objects.
    Unwatched,
}

impl Round<'_> {
    async fn apply<K>(&mut self, object: &K) -> Result<(), Unfurnished>
    where
        K: Resource + Serialize + Metadata<Ty = ObjectMeta>,
    {
        let api =
            if K::GROUP.is_empty() { format!("/api/{}", K::VERSION) } else { format!("/apis/{}", K::API_VERSION) };
        self.apply_as(&api, K::URL_PATH_SEGMENT, K::KIND, object.metadata(), object).await
    }

    async fn apply_as(
        &mut self,
        api: &str,
        plural: &str,
        kind: &str,
        metadata: &ObjectMeta,
        object: &impl Serialize,
    ) -> Result<(), Unfurnished> {
        let name = metadata.name.as_deref().unwrap_or_default();
        let path = format!("{api}/namespaces/{}/{plural}/{name}", self.plan.namespace());
        let what = || format!("{kind} {name}");
        let object = serde_json::to_value(object)
            .map_err(|error| Unfurnished::Unbuildable { because: format!("{}: {error}", what()) })?;
        let drawing = Drawing::new(path, object);
        let last = self.last.applied.get(drawing.path());
        if let Some(made) = drawing.made(last) {
            match self.sight(plural, name, made.version()) {
                Sight::Same => return Ok(()),
                Sight::Unwatched if self.last.rounds != 0 => return Ok(()),
                Sight::Other | Sight::Unwatched => {}
            }
        }
        let made = keep::keep(self.rest, self.plan.into(), &drawing, last).await.map_err(|unkept| match unkept {
            Unkept::Taken { owner } => Unfurnished::Taken { kind: kind.to_owned(), name: name.to_owned(), owner },
            Unkept::Fault(fault) => stopped(what(), fault),
        })?;
        self.last.applied.insert(drawing.path().to_owned(), made);
        Ok(())
    }

    fn sight(&self, plural: &str, name: &str, version: &str) -> Sight {
        let Self { watches, group, .. } = self;
        let of = |shelf: &Shelf<Version>| shelf.one(group, name).map(|version| version.to_string());
        let seen = match plural {
            Service::URL_PATH_SEGMENT => of(&watches.services),
            ConfigMap::URL_PATH_SEGMENT => of(&watches.config_maps),
            PodDisruptionBudget::URL_PATH_SEGMENT => of(&watches.budgets),
            Deployment::URL_PATH_SEGMENT => {
                watches.deployments.one(group, name).and_then(|it| it.meta.version.as_deref().map(str::to_owned))
            }
            PersistentVolumeClaim::URL_PATH_SEGMENT => {
                watches.claims.one(group, name).and_then(|it| it.meta.version.as_deref().map(str::to_owned))
            }
            _ => return Sight::Unwatched,
        };
        if seen.as_deref() == Some(version) { Sight::Same } else { Sight::Other }
    }
}

/// What is asked for and nobody would do: better refused than silently left undone.
fn not_yet(spec: &MysqlFailoverGroupSpec) -> Option<&'static str> {
    let asked = [
        ("dragonfly", spec.dragonfly.as_ref().is_some_and(|cache| cache.enabled)),
        ("backup", spec.backup.is_some()),
        ("initFromBackup", spec.init_from_backup.is_some()),
        ("restoreInPlace", spec.restore_in_place.is_some()),
    ];
    asked.into_iter().find(|(_, asked)| *asked).map(|(field, _)| field)
}

/// A Deployment that is not there, or whose template is the same: anything else is a roll-out.
fn may_apply(running: &[Arc<SeenDeployment>], wanted: &Deployment) -> bool {
    let present = running.iter().find(|it| wanted.metadata.name.as_deref() == Some(&*it.meta.name));
    present.is_none_or(|present| present.meta.annotation(SPEC_HASH) == hash(wanted))
}

fn hash(deployment: &Deployment) -> Option<&str> {
    deployment.metadata.annotations.as_ref()?.get(SPEC_HASH).map(String::as_str)
}

fn hashes(plan: &Plan<'_>, deployments: &[Deployment]) -> Wanted {
    let sites = plan.sites().iter().map(|site| Site::new(site.name()));
    sites.zip(deployments).filter_map(|(site, it)| Some((site, hash(it)?.to_owned()))).collect()
}

/// What does not stand in the group's object.
fn surroundings(
    watches: &Watches,
    house: &House,
    group: &GroupId,
    wanted: &MysqlFailoverGroup,
    (operator_account, replication_account): (OperatorAccount, bool),
) -> Result<Surroundings, Unfurnished> {
    let unseen = || Unfurnished::Store {
        what: "claims and deployments".to_owned(),
        refused: Refused::Denied { because: "their lists are not whole yet".to_owned() },
    };
    let claims = watches.claims.of(group).ok_or_else(unseen)?;
    watches.deployments.of(group).ok_or_else(unseen)?;
    let sites: Vec<&str> = wanted.spec.sites.iter().map(|site| site.name.as_str()).collect();
    let House { own_image, operator_address, cluster_domain } = house.clone();
    Ok(Surroundings {
        own_image,
        operator_address,
        cluster_domain,
        operator_account,
        replication_account,
        server_ids: objects::server_ids(&group.name, &sites, &remembered(group, &claims, &sites)),
    })
}

/// The server ids that claims carry.
fn remembered(group: &GroupId, claims: &[Arc<SeenClaim>], sites: &[&str]) -> BTreeMap<String, u32> {
    let id = |site: &str| {
        let name = names::site_data(&group.name, site);
        let claim = claims.iter().find(|claim| *claim.meta.name == *name)?;
        claim.meta.annotation(SERVER_ID)?.parse().ok()
    };
    sites.iter().filter_map(|site| Some(((*site).to_owned(), id(site)?))).collect()
}

/// The claim of a site. One that the watch does not show is asked for: it may be there without our labels, and its data
/// must not pass for a volume that this group has made.
async fn present_claim(
    rest: &Rest,
    group: &GroupId,
    site: &str,
    watched: &[Arc<SeenClaim>],
) -> Result<Option<PersistentVolumeClaim>, Unfurnished> {
    let name = names::site_data(&group.name, site);
    if let Some(claim) = watched.iter().find(|claim| *claim.meta.name == *name) {
        return Ok(Some(claim.whole()));
    }
    let what = || format!("PersistentVolumeClaim {name}");
    let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/{name}", group.namespace);
    let Some(found) = rest.get(&path).await.map_err(|fault| stopped(what(), fault))? else { return Ok(None) };
    let read = serde_json::from_value(found);
    read.map(Some).map_err(|error| Unfurnished::Unbuildable { because: format!("{}: {error}", what()) })
}

/// The group's object must not go before it was let go in order.
async fn hold_group(rest: &Rest, watches: &Watches, group: &GroupId) -> Result<(), Unfurnished> {
    let holds = |object: &Value| {
        object["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|it| it == FINALIZER_GROUP))
    };
    if watches.groups.one(group, &group.name).is_some_and(|seen| seen.held) {
        return Ok(());
    }
    let path = crate::group::path(group);
    let what = || "finalizer of the group".to_owned();
    // From the store itself: the list is written whole, bound to the version that was read.
    let Some(object) = rest.get(&path).await.map_err(|fault| stopped(what(), fault))? else { return Ok(()) };
    if object["metadata"]["deletionTimestamp"].is_string() || holds(&object) {
        return Ok(());
    }
    let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.push(json!(FINALIZER_GROUP));
    let change = json!({ "metadata": {
        "resourceVersion": object["metadata"]["resourceVersion"], "finalizers": finalizers } });
    rest.merge(&path, &change).await.map(drop).map_err(|fault| stopped(what(), fault))
}

/// The group's signing key, made once: one that is there is never written over, and one that is gone is written back.
async fn make_key(rest: &Rest, applied: &Applied, plan: &Plan<'_>, group: &GroupId) -> Result<(), Unfurnished> {
    let folder = format!("/api/v1/namespaces/{}/secrets", group.namespace);
    let name = names::authority(&group.name);
    let what = || format!("Secret {name}");
    if let Some(found) = rest.get(&format!("{folder}/{name}")).await.map_err(|fault| stopped(what(), fault))? {
        // One that cannot be read is another's trouble; the last that could be stays known.
        if let Some(keys) = keys_in(found) {
            applied.keys().insert(group.clone(), keys);
        }
        return Ok(());
    }
    let known = applied.keys().get(group).cloned();
    let keys = match known {
        Some(keys) => {
            tracing::warn!(fg = %group, reason = name, "the group's signing key was taken away; it is written back");
            keys
        }
        None => new_keys().map_err(|because| stopped(what(), Fault::Lost { because }))?,
    };
    let secret = serde_json::to_value(objects::authority(plan, &keys))
        .map_err(|error| Unfurnished::Unbuildable { because: format!("{}: {error}", what()) })?;
    match rest.create(&folder, &secret).await {
        // Somebody was first: theirs counts.
        Ok(_) | Err(Fault::Answer { code: 409, .. }) => Ok(()),
        Err(fault) => Err(stopped(what(), fault)),
    }
}

fn new_keys() -> Result<AuthorityKeys, String> {
    let mut current = [0; KEY_BYTES];
    getrandom::fill(&mut current).map_err(|error| format!("no randomness: {error}"))?;
    Ok(AuthorityKeys { current, previous: None })
}

/// None: they are not what they should be.
fn keys_in(secret: Value) -> Option<AuthorityKeys> {
    let data = serde_json::from_value::<Secret>(secret).ok()?.data?;
    let key = |name: &str| <[u8; KEY_BYTES]>::try_from(data.get(name)?.0.as_slice()).ok();
    Some(AuthorityKeys { current: key("hmac.key")?, previous: key("hmac.previous") })
}

fn stopped(what: String, fault: Fault) -> Unfurnished {
    Unfurnished::Store { what, refused: fault.refused() }
}

fn unread(error: &bloodraven_operator::world::MissingSecret) -> Unfurnished {
    Unfurnished::Store { what: "secrets".to_owned(), refused: Refused::Denied { because: error.to_string() } }
}

fn unbuildable(error: &objects::Error) -> Unfurnished {
    let because = error.to_string();
    match error {
        objects::Error::NoSidecarImage => Unfurnished::NoImage { because },
        _ => Unfurnished::Unbuildable { because },
    }
}
