//! `bloodraven sidecar`: the agent beside a MySQL server, which opens and fences it.
//!
//! In: the environment. Out: a sidecar that runs until it is told to end. Must not: be a sidecar; the library is.

use std::process::ExitCode;

use anyhow::Context as _;
use bloodraven_sidecar::Config;
use bloodraven_telemetry::log::Level;
use bloodraven_telemetry::{Component, log};

use crate::runtime;

pub(crate) const HELP: &str = "\
Everything is told by the environment: MY_SITE, FAILOVER_GROUP, GROUP_UID, POD_NAMESPACE, MY_POD_NAME, POD_UID, POD_IP,
PEER_ADDRESSES, BLOODRAVEN_ADDRESS, PEER_CHECK_INTERVAL, MYSQL_CREDENTIALS_DIR, AUTHORITY_KEY_FILE, STATE_DIR,
KEEPER_SOCKET, LISTEN_ADDR, LOG_LEVEL; with TLS also MYSQL_TLS_CA and MYSQL_TLS_NAME, the name that the certificate has.
What is missing or wrong is named, and the exit code is 1.";

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let level = variable("LOG_LEVEL").map_or(Ok(Level::Info), |word| crate::operator::level(&word));
    let level = match level {
        Ok(level) => level,
        Err(because) => return Ok(runtime::exit(Err(anyhow::anyhow!("LOG_LEVEL: {because}")))),
    };
    let config = match Config::from_env(variable) {
        Ok(config) => config,
        Err(error) => return Ok(runtime::exit(Err(error.into()))),
    };
    // Kept to the end: the last lines are written when it goes.
    let logging = log::init(Component::Sidecar, level).context("cannot log")?;
    let ended = runtime::run(async {
        let shutdown = runtime::told_to_end()?;
        Ok(bloodraven_sidecar::run(config, shutdown).await?)
    })?;
    drop(logging);
    Ok(runtime::exit(ended))
}

#[expect(clippy::disallowed_methods, reason = "the assembly of a sidecar: the one place that reads its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
