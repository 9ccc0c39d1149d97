//! A group for people: who may write, how every site is, what is under way.
//!
//! In: the group's object. Out: a table. Must not: leave out what is wrong.

use super::Error;
use crate::store::Store;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// The group as it is stored; as JSON, its whole status.
pub fn status(dir: &Path, json: bool) -> Result<String, Error> {
    let object = Store::open(dir)?.read_group()?;
    let status = object.value.get("status").cloned().unwrap_or(Value::Null);
    if json {
        return Ok(format!("{status:#}\n"));
    }
    let mut page = format!("{}/{}  {}\n\n", object.namespace(), object.name(), authority(&status));
    page.push_str(&table(&object.sites(), &status));
    for line in below(&object.value, &status) {
        // Writing into text does not fail.
        let _ = writeln!(page, "\n{line}");
    }
    Ok(page)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn authority(status: &Value) -> String {
    let Some(epoch) = status.pointer("/authority/epoch").and_then(Value::as_u64) else {
        return "no record yet: nobody may write".to_owned();
    };
    let (phase, site, cause) =
        (text(status, "/authority/phase"), text(status, "/authority/site"), text(status, "/authority/cause"));
    let who = if site.is_empty() { "nobody may write".to_owned() } else { format!("{site} may write") };
    format!("{who}  epoch {epoch} {phase} ({cause})")
}

fn table(sites: &[(String, String)], status: &Value) -> String {
    let empty = Vec::new();
    let known = status.get("sites").and_then(Value::as_array).unwrap_or(&empty);
    let mut rows = vec![["SITE", "ROLE", "STATE", "FOLLOWS", "BEHIND", "REMARKS"].map(str::to_owned)];
    for (name, role) in sites {
        let site = known.iter().find(|site| site["name"] == name.as_str()).unwrap_or(&Value::Null);
        let state = site["state"].as_str().unwrap_or("unknown").to_owned();
        let follows = if site["replicating"].as_bool() == Some(true) { "yes" } else { "no" };
        let follows = if text(status, "/activeSite") == name { "-" } else { follows };
        let behind = site["secondsBehindSource"].as_u64().map_or("-".to_owned(), |seconds| format!("{seconds} s"));
        rows.push([name.clone(), role.clone(), state, follows.to_owned(), behind, remarks(site)]);
    }
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn remarks(site: &Value) -> String {
    let mut all = Vec::new();
    if let Some(count) = site["divergentTransactionCount"].as_u64().filter(|count| *count > 0) {
        all.push(format!("{count} divergent: {}", site["divergentGtid"].as_str().unwrap_or_default()));
    }
    let recovery = site["recoveryState"].as_str().unwrap_or_default();
    all.extend((!recovery.is_empty()).then(|| recovery.to_owned()));
    if let Some(phase) =
        site.pointer("/clone/phase").and_then(Value::as_str).filter(|phase| !matches!(*phase, "" | "Done"))
    {
        all.push(format!("clone {phase} {}", text(site, "/clone/message")).trim_end().to_owned());
    }
    all.join("; ")
}

/// What is under way, and conditions that are not as they should be.
fn below(object: &Value, status: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(planned) = status.get("plannedFailover").filter(|planned| planned.is_object()) {
        let line = format!(
            "planned failover to {}: {} {} {}",
            text(planned, "/target"),
            text(planned, "/phase"),
            text(planned, "/reason"),
            text(planned, "/message")
        );
        lines.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if object.pointer("/spec/paused").and_then(Value::as_bool) == Some(true) {
        lines.push("paused: nothing automatic is begun".to_owned());
    }
    let conditions = status.get("conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let bad = |condition: &&Value| {
        let healthy = if condition["type"] == "Ready" { "True" } else { "False" };
        condition["status"] != healthy
    };
    for condition in conditions.iter().filter(bad) {
        let (kind, reason) = (text(condition, "/type"), text(condition, "/reason"));
        lines.push(format!("{kind} {reason}: {}", text(condition, "/message")));
    }
    lines
}
