//! CoreDNS, built once from pinned Go modules and kept: the name service of the cluster.
//!
//! In: the machine's Go and its module proxy. Out: the path of a static executable. Must not: build anything but what the
//! files beside this one pin.

use std::path::PathBuf;

use super::error::{Error, part};
use crate::kubernetes::GoProgram;

const VERSION: &str = "v1.12.4";

/// CoreDNS in the cache, built when it is not there.
pub(super) fn provision() -> Result<PathBuf, Error> {
    recipe().provision().map_err(part("CoreDNS"))
}

fn recipe() -> GoProgram {
    GoProgram {
        name: "coredns",
        package: ".".into(),
        version: VERSION,
        go_mod: include_str!("coredns/go.mod.lock"),
        go_sum: include_str!("coredns/go.sum.lock"),
        sources: &[("main.go", include_str!("coredns/main.go.lock"))],
        linker_flags: "-s -w".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_the_lock_files_pin() {
        let recipe = recipe();
        assert!(recipe.go_mod.contains(&format!("github.com/coredns/coredns {VERSION}\n")));
        assert!(recipe.go_sum.contains(&format!("github.com/coredns/coredns {VERSION} h1:")));
    }

    #[test]
    fn it_has_the_plugins_that_its_configuration_names() {
        let recipe = recipe();
        for plugin in ["cache", "errors", "kubernetes", "ready", "template"] {
            let import = format!("_ \"github.com/coredns/coredns/plugin/{plugin}\"");
            assert!(recipe.sources.iter().any(|(_, text)| text.contains(&import)), "{plugin}");
        }
    }
}
