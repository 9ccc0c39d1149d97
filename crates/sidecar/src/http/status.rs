//! `GET /status`: how this site is, for people and dashboards.
//!
//! In: how things stand at the actor, what the server says of itself. Out: one JSON object. Must not: be acted upon by
//! anyone; what counts is signed.

use super::routes::{Service, json};
use crate::event::Look;
use crate::tell::{VERSION, rule_word};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bloodraven_brain::fence::Mysqld;
use bloodraven_mysql::{Reading, Receiver};
use serde::Serialize;
use std::sync::Arc;

/// Names with underscores are the server's own.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    role: Option<&'static str>,
    #[serde(rename = "read_only")]
    read_only: Option<bool>,
    #[serde(rename = "super_read_only")]
    super_read_only: Option<bool>,
    #[serde(rename = "gtid_executed")]
    gtid_executed: Option<String>,
    #[serde(rename = "replica_io_running")]
    replica_io_running: Option<bool>,
    #[serde(rename = "replica_sql_running")]
    replica_sql_running: Option<bool>,
    #[serde(rename = "seconds_behind_source")]
    seconds_behind_source: Option<u64>,
    #[serde(rename = "server_id")]
    server_id: Option<u32>,
    uptime: Option<u64>,
    #[serde(rename = "self_fenced")]
    self_fenced: bool,
    fenced_by: Option<&'static str>,
    instance: String,
    epoch: Option<u64>,
    view_site: Option<String>,
    view_instance: Option<String>,
    opened_epoch: Option<u64>,
    lease_remaining_ms: u64,
    mysqld: &'static str,
    volume_free_bytes: Option<u64>,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn status(State(service): State<Arc<Service>>) -> Response {
    let (look, reading, space) = tokio::join!(service.look(), service.local.look(), service.volume.measure());
    let look = match look {
        Ok(look) => look,
        Err(status) => return status.into_response(),
    };
    let mut told = of_sidecar(&look);
    told.volume_free_bytes = space.or_else(|| service.volume.last()).map(|space| space.free);
    let status = match reading {
        Ok(reading) => {
            of_server(&mut told, &reading);
            StatusCode::OK
        }
        Err(error) => {
            told.error = Some(error);
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    json(status, serde_json::to_string(&told).unwrap_or_default())
}

fn of_sidecar(look: &Look) -> Told {
    let view = look.view.as_ref().map(|(view, _)| view);
    let seat = view.and_then(|view| view.seat.as_ref());
    Told {
        read_only: look.variables.map(|pair| pair.read_only),
        super_read_only: look.variables.map(|pair| pair.super_read_only),
        self_fenced: look.fenced,
        fenced_by: look.fenced_by.map(rule_word),
        instance: look.me.instance.to_string(),
        epoch: view.map(|view| view.epoch),
        view_site: view.map(|_| seat.map(|seat| seat.site.to_string()).unwrap_or_default()),
        view_instance: view.map(|_| seat.map(|seat| seat.instance.to_string()).unwrap_or_default()),
        opened_epoch: look.opened.and_then(|(tenure, start)| start.map(|_| tenure)),
        lease_remaining_ms: look.lease_remaining.0,
        mysqld: match look.mysqld {
            Mysqld::Unknown => "unknown",
            Mysqld::Down => "down",
            Mysqld::Up(_) => "up",
        },
        version: VERSION,
        ..Told::default()
    }
}

fn of_server(told: &mut Told, reading: &Reading) {
    told.role = Some(if reading.pair.read_only || reading.pair.super_read_only { "replica" } else { "primary" });
    told.read_only = Some(reading.pair.read_only);
    told.super_read_only = Some(reading.pair.super_read_only);
    told.gtid_executed = reading.executed.as_ref().map(ToString::to_string);
    told.server_id = Some(reading.server_id);
    told.uptime = Some(reading.uptime.as_secs());
    let replica = reading.replica.as_ref();
    told.replica_io_running = replica.map(|replica| replica.receiver == Receiver::Running);
    told.replica_sql_running = replica.map(|replica| replica.applier_running);
    told.seconds_behind_source = replica.and_then(|replica| replica.behind).map(|behind| behind.as_secs());
}
