//! Rules on the Dragonfly cache.
//!
//! In: `spec.dragonfly`. Out: the rules. Must not: let a flag through that the operator sets itself, in any spelling that
//! the server understands.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::Rule;

/// Flags that the operator sets. The last three would read such flags from elsewhere.
pub const OWNED_FLAGS: &[&str] = &[
    "port",
    "admin_port",
    "bind",
    "break_replication_on_master_restart",
    "maxmemory",
    "proactor_threads",
    "dir",
    "s3_endpoint",
    "s3_use_https",
    "s3_sign_payload",
    "requirepass",
    "masterauth",
    "replicaof",
    "flagfile",
    "fromenv",
    "tryfromenv",
];

/// Whether an argument sets a flag that the operator owns: `--f v`, `--f=v`, `-f`, `--nof`.
pub fn is_owned_flag(argument: &str) -> bool {
    OWNED.as_ref().is_some_and(|owned| owned.is_match(argument))
}

static OWNED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&owned_pattern()).ok());

fn owned_pattern() -> String {
    format!("^ *--?(no)?({})([= ]|$)", OWNED_FLAGS.join("|"))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct View {
    enabled: bool,
    image: Option<String>,
    port: i64,
    admin_port: i64,
}

pub(super) fn rules() -> Vec<Rule> {
    let at = "spec.dragonfly";
    vec![
        Rule::state::<View>(
            "dragonfly-image",
            at,
            "!self.enabled || has(self.image)",
            "spec.dragonfly.image is required when enabled is true; write an image with a tag, v1.38.0 or newer",
            |dragonfly| !dragonfly.enabled || dragonfly.image.is_some(),
        )
        .pointing_at("image"),
        Rule::state::<View>(
            "dragonfly-ports",
            at,
            "self.port != self.adminPort",
            "spec.dragonfly.adminPort must differ from port; write another number",
            |dragonfly| dragonfly.port != dragonfly.admin_port,
        )
        .pointing_at("adminPort"),
        Rule::state::<Vec<String>>(
            "dragonfly-args",
            "spec.dragonfly.args",
            format!("self.all(a, !a.matches(r'{}'))", owned_pattern()),
            format!(
                "spec.dragonfly.args may not set flags that the operator owns; remove them, or use the fields of spec.dragonfly: \
                 --{}",
                OWNED_FLAGS.join(", --")
            ),
            |args| !args.iter().any(|argument| is_owned_flag(argument)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_flags_are_found_in_either_form() {
        assert!(OWNED.is_some(), "the pattern compiles");
        for flag in OWNED_FLAGS {
            for text in [
                format!("--{flag}"),
                format!("--{flag}=1"),
                format!("-{flag}"),
                format!("--{flag} 1"),
                format!("--no{flag}"),
            ] {
                assert!(is_owned_flag(&text), "{text}");
            }
        }
        for text in
            ["--cache_mode=true", "--portable", "--dbnum", "4", "port", "--notify_keyspace_events=E", "--dbfilename=x"]
        {
            assert!(!is_owned_flag(text), "{text}");
        }
    }
}
