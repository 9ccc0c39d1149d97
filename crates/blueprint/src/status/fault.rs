//! Why something stored cannot be read, or something kept cannot be stored.
//!
//! In: the field and the reason, from where it was found. Out: an error that names copy, field, reason and the way on.
//! Must not: exist without a field; whoever mends it has to know where to look.

use bloodraven_api::keys;
use snafu::Snafu;
use std::fmt;

/// A copy that cannot be read. Never "no history".
#[derive(Clone, Debug, Snafu, PartialEq, Eq)]
#[snafu(display("{copy}: {field}{}{because}; {}", if field.is_empty() { "" } else { ": " }, copy.way_on()))]
pub struct Corrupt {
    /// Which copy.
    pub copy: Copy,
    /// The field in it; empty: the whole of it.
    pub field: String,
    /// What is wrong with it.
    pub because: String,
}

/// Where a copy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// In `status`.
    Status,
    /// In the annotation of this key.
    Annotation(&'static str),
}

/// Something kept that the API has no room for. It is not stored in part.
#[derive(Clone, Debug, Snafu, PartialEq, Eq)]
#[snafu(display("{field}: {because}"))]
pub struct Unwritable {
    /// The field that would hold it.
    pub field: String,
    /// What is wrong with it.
    pub because: String,
}

/// What is wrong with a field, before it is known in which copy it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    field: String,
    because: String,
}

impl Fault {
    pub(super) fn new(field: impl Into<String>, because: impl Into<String>) -> Self {
        Self { field: field.into(), because: because.into() }
    }

    /// The same fault, seen from the object that has this one as its field.
    pub(super) fn within(self, outer: &str) -> Self {
        let field = match self.field.as_str() {
            "" => outer.to_owned(),
            inner if inner.starts_with('[') => format!("{outer}{inner}"),
            inner => format!("{outer}.{inner}"),
        };
        Self { field, ..self }
    }

    pub(super) fn in_status(self) -> Corrupt {
        Corrupt { copy: Copy::Status, field: self.field, because: self.because }
    }

    pub(super) fn in_annotation(self, key: &'static str) -> Corrupt {
        Corrupt { copy: Copy::Annotation(key), field: self.field, because: self.because }
    }
}

impl From<Fault> for Unwritable {
    fn from(fault: Fault) -> Self {
        Self { field: fault.field, because: fault.because }
    }
}

impl Copy {
    /// What whoever mends it may do.
    fn way_on(self) -> &'static str {
        match self {
            Self::Status => "restore the field from a copy of the object; nothing moves until it can be read",
            Self::Annotation(keys::AUTHORITY) => {
                "restore it, or remove it if status.authority is right: that one may be older, so compare its epoch with \
                 status.sites[].sidecar.epoch first; nothing moves until it can be read"
            }
            Self::Annotation(_) => "restore it, or remove it if status is right; nothing moves until it can be read",
        }
    }
}

impl fmt::Display for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status => f.write_str("status"),
            Self::Annotation(key) => write!(f, "annotation {key}"),
        }
    }
}

/// Applies `one` to each item; a fault names the item's place in the list.
pub(super) fn each<T, U>(
    field: &str,
    items: impl IntoIterator<Item = T>,
    mut one: impl FnMut(T) -> Result<U, Fault>,
) -> Result<Vec<U>, Fault> {
    let place = |(index, item)| one(item).map_err(|fault| fault.within(&format!("{field}[{index}]")));
    items.into_iter().enumerate().map(place).collect()
}
