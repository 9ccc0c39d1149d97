//! What a schema alone cannot say, once: each rule is CEL for the API server and a check in code, side by side.
//!
//! In: nothing. Out: the rules of each kind, by schema path. Must not: state a rule in one form only. Where both forms can
//! be made from one text (a pattern, a bound, a list), they are.
//!
//! Messages begin with the field and end with what to write instead: the API server shows them as they are.

mod backup;
mod bounds;
mod conf;
mod containers;
mod dragonfly;
mod group;
mod records;
mod restore;
mod sites;
pub mod text;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use bounds::{DURATIONS, DurationBound};
pub use conf::{OWNED_KEYS, is_owned_key};
pub use dragonfly::{OWNED_FLAGS, is_owned_flag};
use text::Pattern;

/// One rule.
pub struct Rule {
    id: &'static str,
    at: String,
    field: Option<&'static str>,
    cel: String,
    message: String,
    check: Check,
}

enum Check {
    /// About the value alone.
    State(StateCheck),
    /// About the value and the one before; holds when there was none.
    Change(ChangeCheck),
}

type StateCheck = Box<dyn Fn(&Value) -> bool + Send + Sync>;
type ChangeCheck = Box<dyn Fn(&Value, &Value) -> bool + Send + Sync>;

/// The rules of a `MysqlFailoverGroup`.
pub fn of_group() -> Vec<Rule> {
    [
        group::rules(),
        sites::rules(),
        bounds::rules(),
        conf::rules(),
        containers::rules(),
        dragonfly::rules(),
        backup::rules(),
        restore::rules(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The rules of a `MysqlBackup`.
pub fn of_backup() -> Vec<Rule> {
    records::of_backup()
}

/// The rules of a `MysqlBackupVerification`.
pub fn of_verification() -> Vec<Rule> {
    records::of_verification()
}

impl Rule {
    /// A short name; a rule that hangs at several places has it there too.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Schema path of the value that the rule is about, e.g. `spec.sites[].name`; empty for the object itself.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// Field below that value which the refusal points at.
    pub fn field(&self) -> Option<&str> {
        self.field
    }

    /// The rule as the API server evaluates it.
    pub fn cel(&self) -> &str {
        &self.cel
    }

    /// What is wrong and what to write instead.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The rule in code.
    pub(crate) fn holds(&self, value: &Value, old: Option<&Value>) -> bool {
        match (&self.check, old) {
            (Check::State(check), _) => check(value),
            (Check::Change(check), Some(old)) => check(value, old),
            (Check::Change(_), None) => true,
        }
    }

    /// A rule about a value. A value that cannot be read as `T` is another rule's or the schema's finding.
    fn state<T: DeserializeOwned>(
        id: &'static str,
        at: impl Into<String>,
        cel: impl Into<String>,
        message: impl Into<String>,
        check: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Self {
        let check = move |value: &Value| T::deserialize(value).map_or(true, |typed| check(&typed));
        Self {
            id,
            at: at.into(),
            field: None,
            cel: cel.into(),
            message: message.into(),
            check: Check::State(Box::new(check)),
        }
    }

    /// A rule about a change from one value to another.
    fn change<T: DeserializeOwned>(
        id: &'static str,
        at: impl Into<String>,
        cel: impl Into<String>,
        message: impl Into<String>,
        check: impl Fn(&T, &T) -> bool + Send + Sync + 'static,
    ) -> Self {
        let check = move |value: &Value, old: &Value| match (T::deserialize(value), T::deserialize(old)) {
            (Ok(value), Ok(old)) => check(&value, &old),
            _ => true,
        };
        Self {
            id,
            at: at.into(),
            field: None,
            cel: cel.into(),
            message: message.into(),
            check: Check::Change(Box::new(check)),
        }
    }

    /// A text that has to match a pattern.
    fn matches(id: &'static str, at: impl Into<String>, pattern: &'static Pattern, message: impl Into<String>) -> Self {
        Self::state::<String>(id, at, pattern.cel("self"), message, |text| pattern.holds(text))
    }

    /// Points the refusal at a field below the value.
    fn pointing_at(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Rule> {
        [of_group(), of_backup(), of_verification()].into_iter().flatten().collect()
    }

    #[test]
    fn every_message_begins_with_its_field_and_says_what_to_write() {
        for rule in all() {
            let message = rule.message();
            let field = match rule.field() {
                Some(field) if rule.at().is_empty() => field.to_owned(),
                Some(field) => format!("{}.{field}", rule.at()),
                None => rule.at().to_owned(),
            };
            assert!(message.starts_with(&field), "{}: {message:?} does not begin with {field:?}", rule.id());
            let tells = ["write ", "use ", "set ", "add ", "remove ", "list ", "move ", "create ", "keep "];
            assert!(tells.iter().any(|t| message.contains(t)), "{}: {message:?} does not say what to write", rule.id());
            assert!(!message.ends_with('.'), "{message:?}");
            assert!(!message.contains('\n') && message.len() < 2048, "{message:?}");
        }
    }

    #[test]
    fn rules_about_change_are_those_whose_cel_reads_the_old_value() {
        for rule in all() {
            let is_change = matches!(rule.check, Check::Change(_));
            assert_eq!(is_change, rule.cel().contains("oldSelf"), "{}: {}", rule.id(), rule.cel());
        }
    }

    #[test]
    fn no_rule_is_there_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for rule in of_group() {
            assert!(seen.insert((rule.id(), rule.at().to_owned())), "{} at {}", rule.id(), rule.at());
        }
    }
}
