//! The `tracing` layer that makes JSON lines.
//!
//! In: events and spans. Out: one JSON object a line, handed to a [`Pipe`]. Must not: block, panic, or show a field of
//! somebody else's library: those may hold anything, so of foreign events the message alone is kept, cleaned.
//!
//! Fields of the spans around an event are inherited; the event's own come last and win. Names become camelCase.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::pipe::Pipe;
use super::{Component, hide, line};

/// Reads the calendar.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The longest text of a field, in bytes; a GTID set may be longer than anybody reads.
const LONGEST: usize = 16 * 1024;

/// These come first, in this order.
const FIRST: [&str; 3] = ["event", "fg", "component"];

/// See above.
pub struct JsonLayer {
    component: Component,
    clock: Clock,
    pipe: Pipe,
}

impl fmt::Debug for JsonLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLayer").field("component", &self.component).finish_non_exhaustive()
    }
}

impl JsonLayer {
    /// The layer of that component.
    pub const fn new(component: Component, clock: Clock, pipe: Pipe) -> Self {
        Self { component, clock, pipe }
    }

    fn write(&self, level: tracing::Level, fields: &Fields) -> String {
        let time = (self.clock)();
        let mut out = format!("{{\"time\":\"{time:.9}\",\"level\":\"{}\"", word(level));
        put(&mut out, "msg", &Value::from(fields.msg.as_str()));
        let component = Value::from(self.component.as_str());
        for name in FIRST {
            match (fields.get(name), name) {
                (None, "component") => put(&mut out, name, &component),
                (None, _) => {}
                (Some(value), _) => put(&mut out, name, value),
            }
        }
        if let Some(epoch) = fields.get("epoch") {
            put(&mut out, "epoch", epoch);
        }
        let rest = fields.list.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()) && name != "epoch");
        for (name, value) in rest {
            put(&mut out, name, value);
        }
        out.push_str("}\n");
        out
    }
}

fn put(out: &mut String, name: &str, value: &Value) {
    // Writing into a string cannot fail.
    let _ = write!(out, ",{}:{value}", Value::from(name));
}

const fn word(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "error",
        tracing::Level::WARN => "warn",
        tracing::Level::INFO => "info",
        tracing::Level::DEBUG | tracing::Level::TRACE => "debug",
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| is_ours(attributes.metadata().target())) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().replace(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flatten().collect::<Vec<_>>().into_iter().rev() {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.inherit(of_span);
            }
        }
        if is_ours(metadata.target()) {
            event.record(&mut fields);
        } else {
            let mut foreign = Fields::default();
            event.record(&mut foreign);
            fields.msg = format!("{}: {}", metadata.target(), foreign.msg);
        }
        self.pipe.send(self.write(*metadata.level(), &fields));
    }
}

fn is_ours(target: &str) -> bool {
    target.starts_with(line::TARGET)
}

/// What an event or a span brings.
#[derive(Debug, Default)]
struct Fields {
    msg: String,
    list: Vec<(String, Value)>,
}

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.list.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn set(&mut self, name: String, value: Value) {
        let value = match value {
            _ if hide::is_secret(&name) => Value::from(hide::HIDDEN),
            Value::String(text) => Value::from(shown(&text)),
            other => other,
        };
        match self.list.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => self.list.push((name, value)),
        }
    }

    fn inherit(&mut self, of_span: &Self) {
        for (name, value) in &of_span.list {
            self.set(name.clone(), value.clone());
        }
    }

    fn take(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.msg = shown(&text),
            (name, Value::String(text)) if name == line::FIELDS => self.merge(&text),
            (name, value) => self.set(camel(name), value),
        }
    }

    fn merge(&mut self, text: &str) {
        if let Ok(Value::Object(object)) = serde_json::from_str(text) {
            for (name, value) in object {
                self.set(name, value);
            }
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, Value::from(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        // So many causes are enough for anybody.
        for _ in 0..16 {
            let Some(cause) = source else { break };
            let _ = write!(text, ": {cause}");
            source = cause.source();
        }
        self.take(field, Value::from(text));
    }
}

/// The text, cleaned and cut.
fn shown(text: &str) -> String {
    let clean = hide::clean(text);
    let end = (0..=LONGEST.min(clean.len())).rev().find(|end| clean.is_char_boundary(*end)).unwrap_or(0);
    if end == clean.len() { clean.into_owned() } else { format!("{}… (cut)", clean.get(..end).unwrap_or_default()) }
}

/// `old_primary` is `oldPrimary`.
fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut up = false;
    for letter in name.chars() {
        match letter {
            '_' | '.' => up = !out.is_empty(),
            _ if up => {
                out.extend(letter.to_uppercase());
                up = false;
            }
            _ => out.push(letter),
        }
    }
    out
}
