//! Questions to the operator: why things are as they are, and what would happen.
//!
//! In: a state directory whose `playground.json` names the operator. Out: its answer. Must not: answer in its place, wait
//! without a bound, or swallow what is not the expected answer.

use super::{Error, NoOperatorSnafu, NonsenseSnafu, RefusedSnafu, site_of};
use crate::files;
use crate::store::Store;
use serde_json::Value;
use snafu::ensure;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// The operator answers out of memory; a rehearsal takes a blink.
const WITHIN: Duration = Duration::from_secs(5);

/// No answer is longer.
const LONGEST: usize = 4 << 20;

/// The last decisions with their reasons, and what blocks the next.
pub async fn why(dir: &Path, json: bool) -> Result<String, Error> {
    let store = Store::open(dir)?;
    let answer = ask(&store, "why", &[]).await?;
    Ok(if json { format!("{answer:#}\n") } else { told(&answer) })
}

/// What the operator would do if these sites died now.
pub async fn what_if(dir: &Path, killed: &[String], json: bool) -> Result<String, Error> {
    let store = Store::open(dir)?;
    ensure!(!killed.is_empty(), NonsenseSnafu { because: "name a site that dies: --kill iad" });
    for site in killed {
        site_of(dir, site)?;
    }
    let answer = ask(&store, "what-if", killed).await?;
    Ok(if json { format!("{answer:#}\n") } else { told(&answer) })
}

/// Asks the operator about the directory's group.
async fn ask(store: &Store, question: &str, killed: &[String]) -> Result<Value, Error> {
    let dir = store.dir().display().to_string();
    let object = store.read_group()?;
    let silent = |because: String| NoOperatorSnafu { dir: dir.clone(), because }.build();
    let address = operator_of(store).map_err(silent)?;
    let mut url = format!("http://{address}/{question}?namespace={}&group={}", object.namespace(), object.name());
    if !killed.is_empty() {
        url.push_str("&kill=");
        url.push_str(&killed.join(","));
    }
    let client = reqwest::Client::builder().timeout(WITHIN).no_proxy().build();
    let client = client.map_err(|error| silent(error.to_string()))?;
    let answer = client.get(&url).send().await.map_err(|error| silent(error.without_url().to_string()))?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(|error| silent(error.without_url().to_string()))?;
    ensure!(body.len() <= LONGEST, RefusedSnafu { said: "more than anyone could read" });
    let value: Value = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).trim().into());
    if status.is_success() {
        return Ok(value);
    }
    let said = value.get("error").and_then(Value::as_str).map_or_else(|| value.to_string(), str::to_owned);
    RefusedSnafu { said: format!("{said} ({})", status.as_u16()) }.fail()
}

/// Where the operator answers, as the playground's file tells.
fn operator_of(store: &Store) -> Result<String, String> {
    let path = store.dir().join("playground.json");
    let bytes = files::read(&path).map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or_else(|| "playground.json is not there: nothing runs".to_owned())?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("playground.json is corrupt: {error}"))?;
    let address = value.pointer("/operator/http").and_then(Value::as_str).unwrap_or_default();
    let runs = value.pointer("/operator/pid").is_some_and(Value::is_u64);
    if address.is_empty() || !runs {
        return Err(format!("playground.json says {}", value["state"].as_str().unwrap_or("nothing of an operator")));
    }
    Ok(address.to_owned())
}

/// An answer as lines: a text as it is, a list a line each, an object as `name: value`.
fn told(answer: &Value) -> String {
    let mut page = String::new();
    tell(answer, 0, &mut page);
    page
}

fn tell(value: &Value, depth: usize, page: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(_, field)| !is_nothing(field)) {
                match field {
                    Value::Object(_) | Value::Array(_) => {
                        line(page, format_args!("{indent}{name}:\n"));
                        tell(field, depth + 1, page);
                    }
                    plain => line(page, format_args!("{indent}{name}: {}\n", word(plain))),
                }
            }
        }
        Value::Array(all) => {
            for one in all {
                match one {
                    Value::Object(fields) if fields.values().all(|field| !field.is_object() && !field.is_array()) => {
                        let fields = fields.values().filter(|field| !is_nothing(field)).map(word);
                        line(page, format_args!("{indent}- {}\n", fields.collect::<Vec<_>>().join("  ")));
                    }
                    Value::Object(_) | Value::Array(_) => {
                        line(page, format_args!("{indent}-\n"));
                        tell(one, depth + 1, page);
                    }
                    plain => line(page, format_args!("{indent}- {}\n", word(plain))),
                }
            }
        }
        plain => line(page, format_args!("{indent}{}\n", word(plain))),
    }
}

/// Writing to a text cannot fail.
fn line(page: &mut String, words: std::fmt::Arguments<'_>) {
    _ = page.write_fmt(words);
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
