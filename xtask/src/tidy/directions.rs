//! Who may use whom. In: `cargo metadata` and `cargo tree`. Out: every edge that the table does not draw, and every
//! crate in a dependency tree that must stay out of it.
//!
//! The table is the one of ARCHITECTURE.md; a new crate is added to both.

use crate::run;
use crate::workshop::Workshop;
use anyhow::Result;

struct Rule {
    /// The package.
    name: &'static str,
    /// Workspace packages it may use in its product code.
    may_use: &'static [&'static str],
    /// Crates that may appear nowhere below it, tests apart.
    never: &'static [&'static str],
}

const RUNTIMES: &[&str] = &["tokio", "kube-client", "hyper", "rand"];

const TABLE: &[Rule] = &[
    Rule { name: "bloodraven-gtid", may_use: &[], never: RUNTIMES },
    Rule { name: "bloodraven-api", may_use: &["bloodraven-gtid"], never: &["tokio", "kube-client", "hyper"] },
    Rule {
        name: "bloodraven-brain",
        may_use: &["bloodraven-gtid"],
        never: &["tokio", "kube-core", "kube-client", "hyper", "rand", "serde", "serde_core", "tracing", "log"],
    },
    Rule { name: "bloodraven-wire", may_use: &["bloodraven-brain", "bloodraven-gtid"], never: RUNTIMES },
    Rule {
        name: "bloodraven-blueprint",
        may_use: &["bloodraven-api", "bloodraven-brain", "bloodraven-gtid"],
        never: &["tokio", "kube-client", "hyper"],
    },
    Rule {
        name: "bloodraven-sim",
        may_use: &["bloodraven-api", "bloodraven-blueprint", "bloodraven-brain", "bloodraven-gtid"],
        never: RUNTIMES,
    },
    Rule { name: "bloodraven-keeper", may_use: &[], never: &["tokio", "hyper", "rand", "serde", "libc"] },
    Rule { name: "bloodraven-mysql", may_use: &["bloodraven-gtid"], never: &["kube-client", "axum"] },
    Rule { name: "bloodraven-names", may_use: &[], never: &["kube-client", "mysql_async"] },
    Rule { name: "bloodraven-telemetry", may_use: &[], never: &["kube-client", "mysql_async"] },
    Rule {
        name: "bloodraven-sidecar",
        may_use: &[
            "bloodraven-brain",
            "bloodraven-gtid",
            "bloodraven-keeper",
            "bloodraven-mysql",
            "bloodraven-names",
            "bloodraven-telemetry",
            "bloodraven-wire",
        ],
        never: &["kube-client", "kube-core"],
    },
    Rule {
        name: "bloodraven-operator",
        may_use: &[
            "bloodraven-api",
            "bloodraven-blueprint",
            "bloodraven-brain",
            "bloodraven-gtid",
            "bloodraven-mysql",
            "bloodraven-names",
            "bloodraven-telemetry",
            "bloodraven-wire",
        ],
        never: &[],
    },
    Rule {
        name: "bloodraven-local",
        may_use: &[
            "bloodraven-api",
            "bloodraven-blueprint",
            "bloodraven-brain",
            "bloodraven-gtid",
            "bloodraven-mysql",
            "bloodraven-operator",
            "bloodraven-sidecar",
            "bloodraven-telemetry",
            "bloodraven-wire",
        ],
        never: &["kube-client"],
    },
    Rule {
        name: "bloodraven-cluster",
        may_use: &[
            "bloodraven-api",
            "bloodraven-blueprint",
            "bloodraven-brain",
            "bloodraven-operator",
            "bloodraven-wire",
        ],
        never: &[],
    },
    Rule { name: "bloodraven-testbed", may_use: &[], never: &[] },
    Rule {
        name: "bloodraven-crowd",
        may_use: &[
            "bloodraven-api",
            "bloodraven-bench",
            "bloodraven-brain",
            "bloodraven-gtid",
            "bloodraven-testbed",
            "bloodraven-wire",
        ],
        never: &["mysql_async"],
    },
    Rule {
        name: "bloodraven",
        may_use: &[
            "bloodraven-api",
            "bloodraven-blueprint",
            "bloodraven-cluster",
            "bloodraven-gtid",
            "bloodraven-local",
            "bloodraven-operator",
            "bloodraven-sidecar",
            "bloodraven-sim",
            "bloodraven-telemetry",
        ],
        never: &[],
    },
    Rule { name: "bloodraven-bench", may_use: &[], never: RUNTIMES },
    Rule { name: "bloodraven-weaver", may_use: &[], never: RUNTIMES },
    Rule { name: "bloodraven-e2e", may_use: &[], never: &[] },
    Rule { name: "xtask", may_use: &[], never: RUNTIMES },
];

/// For tests and benchmarks only: what brings the real servers up, or measures them, is never part of the product.
const TESTS_ONLY: &[&str] = &["bloodraven-bench", "bloodraven-crowd", "bloodraven-testbed", "bloodraven-e2e"];

pub(super) fn breaches(workshop: &Workshop) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let packages = workshop.packages()?;
    let members: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(rule) = TABLE.iter().find(|rule| rule.name == name) else {
            found.push(format!("{name}: not in the table of directions; add it there and to ARCHITECTURE.md"));
            continue;
        };
        found.extend(edges(rule, package, &members));
        found.extend(forbidden(workshop, rule)?);
    }
    Ok(found)
}

fn edges(rule: &Rule, package: &serde_json::Value, members: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let name = dependency["name"].as_str().unwrap_or_default();
        let for_tests = dependency["kind"].as_str() == Some("dev");
        if !members.contains(&name) || for_tests {
            continue;
        }
        // They may use each other, as the table draws it.
        if TESTS_ONLY.contains(&name) && !TESTS_ONLY.contains(&rule.name) {
            found.push(format!("{} uses {name} outside its tests; make it a dev-dependency", rule.name));
        } else if !rule.may_use.contains(&name) {
            found.push(format!("{} uses {name}, an edge that is not drawn", rule.name));
        }
    }
    found
}

fn forbidden(workshop: &Workshop, rule: &Rule) -> Result<Vec<String>> {
    if rule.never.is_empty() {
        return Ok(Vec::new());
    }
    let mut cargo = workshop.cargo("tree");
    cargo.args(["--package", rule.name, "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let tree = run::capture(&mut cargo)?;
    let below: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let breach = |banned: &&&str| below.contains(*banned);
    Ok(rule.never.iter().filter(breach).map(|banned| format!("{}: {banned} must stay out of it", rule.name)).collect())
}
