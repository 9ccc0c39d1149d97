//! The structural schema: one document that the API server and this crate both interpret.
//!
//! In: the types. Out: the schema with bounds, list types, defaults and rules in place; a walk over values by schema path;
//! the defaults and the structural check that the API server makes, in code. Must not: be printed or checked in any other
//! form than the one that goes into the CRD, words for people and for the API server apart.

mod defaults;
mod generate;
mod path;
mod structure;

pub(crate) use defaults::apply as apply_defaults;
pub(crate) use generate::{DURATION_FORMAT, bare_schema, definition};
pub(crate) use path::places;
pub(crate) use structure::{Strangers, check as check_structure};
