//! `bloodraven crds`: the custom resource definitions.
//!
//! In: nothing. Out: YAML for `kubectl apply -f -`. Must not: connect to a cluster.

use std::io::Write;
use std::process::ExitCode;

pub(crate) const HELP: &str = "\
Examples:
  bloodraven crds | kubectl apply --server-side -f -    install or update them
  bloodraven crds | kubectl diff -f -                   see what an update would change";

/// Prints every definition, as one stream of documents.
pub(crate) fn run(stdout: &mut impl Write) -> anyhow::Result<ExitCode> {
    stdout.write_all(bloodraven_api::crd::all_yaml().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
