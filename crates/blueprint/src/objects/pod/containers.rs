//! The three containers of ours: one prepares, one judges, one serves.
//!
//! In: a plan, a site. Out: containers. Must not: restart the server because it is slow (crash recovery and clones take
//! their time), or put a password on a command line or into a variable.

use bloodraven_api::names;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector, Probe, TCPSocketAction,
    VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::config_map::CONFIG_KEY;
use super::super::{Plan, SitePlan, conf};
use super::volumes::{Account, accounts, folder, mount, read_only};
use super::{
    ADMIN_PORT, AUTHORITY_DIR, CONF_DIR, CONFIG_DIR, CREDENTIALS_DIR, DATA_DIR, DATA_FOLDER, KEEPER, KEEPER_SOCKET,
    MYSQL_PORT, MYSQL_SOCKET, OPTION_FILE, RUN_DIR, SIDECAR_PORT, STATE_DIR, STATE_FOLDER, TLS_DIR, VOLUME_DIR,
    security,
};

/// Makes the folders on the volume, writes the option file, brings the keeper.
pub(super) fn init(plan: &Plan<'_>, site: &SitePlan<'_>) -> Container {
    let server_id = site.server_id.to_string();
    let config = format!("{CONFIG_DIR}/{CONFIG_KEY}");
    let command = [
        "bloodraven",
        "init",
        "--volume",
        VOLUME_DIR,
        "--config",
        &config,
        "--option-file",
        OPTION_FILE,
        "--run-dir",
        RUN_DIR,
        "--server-id",
        &server_id,
        "--admin-address",
        "$(POD_IP)",
    ];
    Container {
        command: Some(words(&command)),
        env: Some(vec![field("POD_IP", "status.podIP")]),
        volume_mounts: Some(vec![
            mount("data", VOLUME_DIR),
            mount("conf", CONF_DIR),
            read_only("config", CONFIG_DIR),
            mount("run", RUN_DIR),
        ]),
        resources: plan.spec().sidecar_resources.clone(),
        ..container(plan, "init", plan.sidecar_image())
    }
}

/// Answers before the server starts and outlives it: an init container that stays.
pub(super) fn sidecar(plan: &Plan<'_>, site: &SitePlan<'_>) -> Container {
    let http = |path: &str, delay, period| Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("sidecar".to_owned()),
            ..HTTPGetAction::default()
        }),
        ..probe(delay, period)
    };
    let mut mounts =
        vec![folder(STATE_FOLDER, STATE_DIR), mount("run", RUN_DIR), read_only("authority", AUTHORITY_DIR)];
    mounts.extend(tls(plan));
    mounts.extend(accounts(plan).iter().filter(|account| account.is_for_sidecar()).map(Account::mount));
    Container {
        command: Some(words(&["bloodraven", "sidecar"])),
        restart_policy: Some("Always".to_owned()),
        env: Some(environment(plan, site)),
        ports: Some(vec![port("sidecar", SIDECAR_PORT)]),
        liveness_probe: Some(http("/peer/ping", 5, 10)),
        readiness_probe: Some(http("/health", 3, 5)),
        volume_mounts: Some(mounts),
        resources: plan.spec().sidecar_resources.clone(),
        ..container(plan, "sidecar", plan.sidecar_image())
    }
}

/// The server under its keeper.
pub(super) fn mysql(plan: &Plan<'_>, site: &SitePlan<'_>) -> Container {
    let defaults = format!("--defaults-file={OPTION_FILE}");
    let data = format!("--datadir={DATA_DIR}");
    // On the command line, where the keeper finds what a killed server left behind.
    let socket = format!("--socket={}", conf::choice(plan.spec(), "socket").unwrap_or(MYSQL_SOCKET));
    let command = [
        KEEPER,
        "--socket",
        KEEPER_SOCKET,
        "--state-dir",
        STATE_DIR,
        "--run-dir",
        RUN_DIR,
        "--datadir",
        DATA_DIR,
        "--credentials-dir",
        CREDENTIALS_DIR,
        "--opener-host",
        "$(POD_IP)",
        "--",
        "mysqld",
        &defaults,
        &data,
        &socket,
    ];
    let mut mounts = vec![
        folder(DATA_FOLDER, DATA_DIR),
        folder(STATE_FOLDER, STATE_DIR),
        read_only("conf", CONF_DIR),
        mount("run", RUN_DIR),
    ];
    mounts.extend(tls(plan));
    mounts.extend(accounts(plan).iter().map(Account::mount));
    let answers = TCPSocketAction { port: IntOrString::String("mysql".to_owned()), host: None };
    Container {
        command: Some(words(&command)),
        env: Some(vec![field("POD_IP", "status.podIP")]),
        ports: Some(vec![port("mysql", MYSQL_PORT), port("admin", ADMIN_PORT)]),
        readiness_probe: Some(Probe { tcp_socket: Some(answers), ..probe(5, 5) }),
        volume_mounts: Some(mounts),
        resources: site.spec.resources.clone(),
        ..container(plan, "mysql", &plan.spec().image)
    }
}

/// What the sidecar is told. Lease and number of vouches are not here: they come with views, so that a change of them rolls
/// no pod.
fn environment(plan: &Plan<'_>, site: &SitePlan<'_>) -> Vec<EnvVar> {
    let peers = plan.sites().iter().filter(|peer| peer.name() != site.name());
    let peers =
        peers.map(|peer| format!("{}:{SIDECAR_PORT}", plan.host(&names::site_internal(plan.name(), peer.name()))));
    let mut all = vec![
        value("MY_SITE", site.name()),
        value("FAILOVER_GROUP", plan.name()),
        value("GROUP_UID", plan.uid()),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("MY_POD_NAME", "metadata.name"),
        field("POD_UID", "metadata.uid"),
        field("POD_IP", "status.podIP"),
        value("PEER_ADDRESSES", peers.collect::<Vec<_>>().join(",")),
        value("BLOODRAVEN_ADDRESS", plan.operator_address()),
        value("PEER_CHECK_INTERVAL", plan.spec().sidecar.peer_check_interval.to_string()),
        value("MYSQL_CREDENTIALS_DIR", format!("{CREDENTIALS_DIR}/operator")),
        value("AUTHORITY_KEY_FILE", format!("{AUTHORITY_DIR}/hmac.key")),
        value("STATE_DIR", STATE_DIR),
        value("KEEPER_SOCKET", KEEPER_SOCKET),
        value("LISTEN_ADDR", format!(":{SIDECAR_PORT}")),
    ];
    if plan.spec().tls.is_some() {
        // It asks for the server by the pod's address; the certificate has the name by which others ask.
        let name = plan.host(&names::site_internal(plan.name(), site.name()));
        all.extend([value("MYSQL_TLS_CA", format!("{TLS_DIR}/ca.crt")), value("MYSQL_TLS_NAME", name)]);
    }
    all
}

fn container(plan: &Plan<'_>, name: &str, image: &str) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        security_context: Some(security::of_container(plan)),
        ..Container::default()
    }
}

fn tls(plan: &Plan<'_>) -> Option<VolumeMount> {
    plan.spec().tls.is_some().then(|| read_only("tls", TLS_DIR))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn value(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.into()), value_from: None }
}

/// A fact of the pod that only the cluster knows.
fn field(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: path.to_owned(), api_version: None };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}

fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: number.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn probe(delay: i32, period: i32) -> Probe {
    Probe { initial_delay_seconds: Some(delay), period_seconds: Some(period), ..Probe::default() }
}
