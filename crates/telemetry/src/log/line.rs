//! One line, as data: what is said before anybody writes it.
//!
//! In: an event and its fields, or a sentence. Out: the same through `tracing`, so that spans, levels and other layers apply.
//! Must not: take a field that is not declared, or anything that cannot be shown: a secret has no `Display`.

use std::borrow::Cow;
use std::fmt;

use super::event::{Field, Level, LogEvent};

/// The target of every line that is made here.
pub(super) const TARGET: &str = "bloodraven";

/// The field of a `tracing` event under which a [`Line`] brings its own.
pub(super) const FIELDS: &str = "line_fields";

/// See above.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a line says nothing until it is emitted"]
pub struct Line {
    /// Which event; none: prose.
    pub event: Option<LogEvent>,
    /// How much it matters.
    pub level: Level,
    /// What is said.
    pub msg: Cow<'static, str>,
    /// What it brings, in order.
    pub fields: Vec<(Field, Value)>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
}

impl Line {
    /// That event with its own message.
    pub const fn of(event: LogEvent) -> Self {
        Self { event: Some(event), level: event.level(), msg: Cow::Borrowed(event.message()), fields: Vec::new() }
    }

    /// That event with one of its messages, filled in.
    pub fn saying(event: LogEvent, msg: impl Into<Cow<'static, str>>) -> Self {
        Self { msg: msg.into(), ..Self::of(event) }
    }

    /// Prose.
    pub fn prose(level: Level, msg: impl Into<Cow<'static, str>>) -> Self {
        Self { event: None, level, msg: msg.into(), fields: Vec::new() }
    }

    /// With a text.
    pub fn text(mut self, field: Field, value: impl fmt::Display) -> Self {
        self.fields.push((field, Value::Text(value.to_string())));
        self
    }

    /// With a text, if there is one.
    pub fn maybe(self, field: Field, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.text(field, value),
            None => self,
        }
    }

    /// With a number.
    pub fn number(mut self, field: Field, value: impl TryInto<i64>) -> Self {
        self.fields.push((field, Value::Number(value.try_into().unwrap_or(i64::MAX))));
        self
    }

    /// What that field has.
    pub fn get(&self, field: Field) -> Option<&Value> {
        self.fields.iter().find(|(known, _)| *known == field).map(|(_, value)| value)
    }

    /// Says it.
    pub fn emit(&self) {
        let (event, fields, msg) = (self.event.map(LogEvent::as_str), Fields(&self.fields), &*self.msg);
        macro_rules! say {
            ($level:ident) => {
                tracing::event!(target: TARGET, tracing::Level::$level, event, line_fields = %fields, "{msg}")
            };
        }
        match self.level {
            Level::Debug => say!(DEBUG),
            Level::Info => say!(INFO),
            Level::Warn => say!(WARN),
            Level::Error => say!(ERROR),
        }
    }
}

/// Fields as a JSON object.
struct Fields<'a>(&'a [(Field, Value)]);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object: serde_json::Map<String, serde_json::Value> = self
            .0
            .iter()
            .map(|(field, value)| {
                let value = match value {
                    Value::Text(text) => serde_json::Value::from(text.as_str()),
                    Value::Number(number) => serde_json::Value::from(*number),
                };
                (field.as_str().to_owned(), value)
            })
            .collect();
        write!(f, "{}", serde_json::Value::Object(object))
    }
}
