//! `bloodraven operator`: watches groups, moves the primary, tells everyone.
//!
//! In: words, and who it is from the environment. Out: an operator that runs until it is told to end. Must not: be an
//! operator; the library is.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bloodraven_api::GoDuration;
use bloodraven_cluster::operate as cluster;
use bloodraven_local::operate as local;
use bloodraven_operator::tell::Teller;
use bloodraven_telemetry::log::Level;
use bloodraven_telemetry::{Component, OperatorMetrics, log};

use crate::runtime;

pub(crate) const HELP: &str = "\
Examples:
  bloodraven operator                  the operator of the cluster that its service account or KUBECONFIG names
  bloodraven operator --local DIR      the operator of a group in a folder, as `bloodraven playground` starts it

In a cluster POD_NAME, POD_NAMESPACE and POD_UID tell who it is, BLOODRAVEN_OPERATOR_IMAGE what sidecars run.
Log lines are JSON on standard output. SIGTERM and Ctrl-C end it: its lease is given back.";

/// How to operate.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Operate the group in this folder instead of groups in a cluster
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,

    /// Which of the folder's operators this is, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "local", hide = true)]
    local_operator: u8,

    #[command(flatten)]
    cluster: Kubernetes,

    /// The least important lines that are written: debug, info, warn or error
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: Level,
}

/// How to operate a cluster.
#[derive(clap::Args)]
struct Kubernetes {
    /// Elect one of several operators; false: lead at once, for a cluster that never has a second one
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1,
        default_missing_value = "true", conflicts_with = "local")]
    leader_elect: bool,

    /// How long others wait for a leader that is silent
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration, conflicts_with = "local")]
    lease_duration: Duration,

    /// How long a leader tries to renew before it stops acting
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, conflicts_with = "local")]
    renew_deadline: Duration,

    /// How often the lease is looked at
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, conflicts_with = "local")]
    retry_period: Duration,

    /// Where metrics are served
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", conflicts_with = "local")]
    metrics_bind: String,

    /// Where the kubelet's probes are answered
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", conflicts_with = "local")]
    probe_bind: String,

    /// Where sidecars ask and people look
    #[arg(long, value_name = "ADDRESS", default_value = ":8082", conflicts_with = "local")]
    aux_bind: String,

    /// Look after groups of this namespace only; may be given several times
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "local")]
    watch_namespace: Vec<String>,

    /// A web origin whose pages may follow over web sockets; may be given several times
    #[arg(long, value_name = "ORIGIN", conflicts_with = "local")]
    ws_allowed_origin: Vec<String>,

    /// Where sidecars reach this operator; by default its Service `bloodraven`
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "local")]
    aux_address: Option<String>,

    /// The domain of the cluster's Services
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", conflicts_with = "local")]
    cluster_domain: String,
}

pub(crate) fn level(word: &str) -> Result<Level, String> {
    Level::parse(word).ok_or_else(|| "write debug, info, warn or error".to_owned())
}

fn duration(word: &str) -> Result<Duration, String> {
    let time: GoDuration = word.parse().map_err(|error| format!("{error}; write e.g. 15s"))?;
    Ok(Duration::from(time))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // Kept to the end: the last lines are written when it goes.
    let logging = log::init(Component::Operator, arguments.log_level).context("cannot log")?;
    let ended = match &arguments.local {
        Some(dir) => runtime::run(operate(dir.clone(), arguments.local_operator))?,
        None => runtime::run(operate_cluster(options(&arguments.cluster)))?,
    };
    drop(logging);
    Ok(runtime::exit(ended))
}

async fn operate(dir: PathBuf, number: u8) -> anyhow::Result<()> {
    let (world, settings, listeners) = local::prepare(&dir, number, teller()).await?;
    let shutdown = runtime::told_to_end()?;
    Ok(bloodraven_operator::run(world, settings, listeners, shutdown).await?)
}

async fn operate_cluster(options: cluster::Options) -> anyhow::Result<()> {
    let (world, settings, listeners) = cluster::prepare(options, teller()).await?;
    let shutdown = runtime::told_to_end()?;
    Ok(bloodraven_operator::run(world, settings, listeners, shutdown).await?)
}

fn teller() -> Arc<Teller> {
    Arc::new(Teller::new(OperatorMetrics::new(env!("CARGO_PKG_VERSION"))))
}

#[expect(clippy::disallowed_methods, reason = "the environment is read here, once")]
fn options(arguments: &Kubernetes) -> cluster::Options {
    let said = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let Kubernetes { leader_elect, lease_duration, renew_deadline, retry_period, .. } = arguments;
    let Kubernetes { metrics_bind, probe_bind, aux_bind, watch_namespace, ws_allowed_origin, .. } = arguments;
    cluster::Options {
        pod: said("POD_NAME"),
        namespace: said("POD_NAMESPACE"),
        uid: said("POD_UID"),
        image: said("BLOODRAVEN_OPERATOR_IMAGE"),
        elect: *leader_elect,
        election: [*lease_duration, *renew_deadline, *retry_period],
        binds: [metrics_bind, probe_bind, aux_bind].map(Clone::clone),
        watched: watch_namespace.clone(),
        origins: ws_allowed_origin.clone(),
        aux_address: arguments.aux_address.clone(),
        domain: arguments.cluster_domain.clone(),
    }
}
