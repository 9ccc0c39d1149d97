//! `bloodraven install`: the operator's own objects.
//!
//! In: where it shall run and what it shall look after. Out: YAML for `kubectl apply -f -`. Must not: connect to a cluster.

use std::io::Write;
use std::process::ExitCode;

use bloodraven_blueprint::install::{Install, NAME};

pub(crate) const HELP: &str = "\
Examples:
  bloodraven crds | kubectl apply --server-side -f -                       first the custom resource definitions
  bloodraven install --image registry/bloodraven:0.1.0 | kubectl apply -f -    an operator for the whole cluster
  bloodraven install --watch-namespace shop | kubectl apply -f -           one that looks after one namespace only

With --watch-namespace it has no right outside the named namespaces but on nodes and their leases. The namespaces of
groups must be there already.";

/// What is chosen.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The namespace of the operator itself
    #[arg(long, value_name = "NAMESPACE", default_value = NAME, value_parser = name)]
    namespace: String,

    /// Its image, which sidecars run as well; with a tag or a digest, never `latest`
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE, value_parser = image)]
    image: String,

    /// Look after groups of this namespace only; may be given several times
    #[arg(long, value_name = "NAMESPACE", value_parser = name)]
    watch_namespace: Vec<String>,
}

/// The image of this very version.
const DEFAULT_IMAGE: &str = concat!("bloodraven:", env!("CARGO_PKG_VERSION"));

fn name(word: &str) -> Result<String, String> {
    let fits = bloodraven_api::rules::text::DNS_LABEL.holds(word);
    if fits { Ok(word.to_owned()) } else { Err("write a name of small letters, digits and '-'".to_owned()) }
}

fn image(word: &str) -> Result<String, String> {
    let fits = bloodraven_api::rules::text::PINNED_IMAGE.holds(word) && !word.ends_with(":latest");
    if fits { Ok(word.to_owned()) } else { Err("write it with a tag or a digest, and not `latest`".to_owned()) }
}

/// Prints every object, as one stream of documents.
pub(crate) fn run(arguments: &Arguments, stdout: &mut impl Write) -> anyhow::Result<ExitCode> {
    let Arguments { namespace, image, watch_namespace } = arguments;
    let install =
        Install { namespace: namespace.clone(), image: image.clone(), watch_namespaces: watch_namespace.clone() };
    stdout.write_all(install.yaml().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
