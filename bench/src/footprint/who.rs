//! Whose use is measured. In: what `playground.json` says, and who started whom. Out: every process of the group. Must not:
//! search by name, or take a number that is not of a process below the playground: it may be somebody else's by now.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::fmt;

/// So many steps lead from a server up to its playground, and a few more.
const GENERATIONS: usize = 8;

/// What a process does, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sidecar,
    Operator,
    Keeper,
    Mysqld,
    /// Not of the product: links, front doors, and whoever looks on.
    Playground,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) kind: Kind,
    /// Empty: it belongs to no site.
    pub(crate) site: String,
    /// Whether its site is the one that writes.
    pub(crate) primary: bool,
    pub(crate) pid: u32,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Sidecar => "sidecar",
            Kind::Operator => "operator",
            Kind::Keeper => "keeper",
            Kind::Mysqld => "mysqld",
            Kind::Playground => "the playground itself",
        };
        f.write_str(kind)?;
        if !self.site.is_empty() {
            write!(f, " of {}", self.site)?;
        }
        f.write_str(if self.primary { " (primary)" } else { "" })
    }
}

/// All of them, in the order of the table. `parent` tells who started a process.
pub(crate) fn find(notice: &Value, playground: u32, parent: impl Fn(u32) -> Option<u32>) -> Result<Vec<Process>> {
    let active = notice["activeSite"].as_str().unwrap_or_default();
    let below = |kind: Kind, site: &str, number: &Value| {
        let mut process = Process { kind, site: site.to_owned(), primary: !site.is_empty() && site == active, pid: 0 };
        let number = number.as_u64().and_then(|number| u32::try_from(number).ok());
        process.pid =
            number.with_context(|| format!("{process} does not run: playground.json has no number for it"))?;
        let ours = is_below(process.pid, playground, &parent);
        ensure!(ours, "{process}: process {} was not started by this playground", process.pid);
        Ok(process)
    };
    let mut found = vec![below(Kind::Operator, "", &notice["operator"]["pid"])?];
    for site in notice["sites"].as_array().context("playground.json names no sites")? {
        let name = site["name"].as_str().context("playground.json has a site without a name")?;
        found.push(below(Kind::Sidecar, name, &site["sidecarPid"])?);
        let server = below(Kind::Mysqld, name, &site["mysqldPid"])?;
        let keeper = parent(server.pid).filter(|keeper| *keeper != playground);
        let keeper = keeper.with_context(|| format!("{server} has no keeper above it"))?;
        found.push(Process { kind: Kind::Keeper, pid: keeper, ..server.clone() });
        found.push(server);
    }
    found.push(Process { kind: Kind::Playground, site: String::new(), primary: false, pid: playground });
    found.sort_by_key(|process| process.kind);
    Ok(found)
}

fn is_below(pid: u32, above: u32, parent: impl Fn(u32) -> Option<u32>) -> bool {
    std::iter::successors(parent(pid), |pid| parent(*pid)).take(GENERATIONS).any(|pid| pid == above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLAYGROUND: u32 = 10;

    /// 10 is the playground; 11 the operator; 12 and 13 keeper and sidecar, 14 the server below its keeper.
    fn parent(pid: u32) -> Option<u32> {
        match pid {
            10 => Some(2),
            11..=13 => Some(10),
            14 => Some(12),
            2 | 77 => Some(1),
            _ => None,
        }
    }

    fn notice() -> Value {
        json!({
            "activeSite": "iad",
            "operator": {"pid": 11},
            "sites": [{"name": "iad", "sidecarPid": 13, "mysqldPid": 14}],
        })
    }

    #[test]
    fn everyone_is_found_in_the_order_of_the_table() {
        let found = find(&notice(), PLAYGROUND, parent).unwrap();
        let shown: Vec<_> = found.iter().map(|process| (process.to_string(), process.pid)).collect();
        let expect = [
            ("sidecar of iad (primary)", 13),
            ("operator", 11),
            ("keeper of iad (primary)", 12),
            ("mysqld of iad (primary)", 14),
            ("the playground itself", 10),
        ];
        assert_eq!(shown, expect.map(|(name, pid)| (name.to_owned(), pid)));
    }

    #[test]
    fn who_does_not_run_or_is_not_ours_is_named() {
        let check = |pointer: &str, value: Value, expect: &str| {
            let mut notice = notice();
            *notice.pointer_mut(pointer).unwrap() = value;
            let refused = find(&notice, PLAYGROUND, parent).unwrap_err().to_string();
            assert!(refused.contains(expect), "{refused}");
        };
        check("/sites/0/sidecarPid", Value::Null, "sidecar of iad (primary) does not run");
        check(
            "/sites/0/mysqldPid",
            json!(77),
            "mysqld of iad (primary): process 77 was not started by this playground",
        );
        check("/sites/0/mysqldPid", json!(13), "mysqld of iad (primary) has no keeper above it");
        check("/operator/pid", json!(99), "operator: process 99 was not started");
        check("/operator/pid", json!(10), "operator: process 10 was not started");
        check("/operator/pid", json!(u64::MAX), "operator does not run");
        check("/sites", Value::Null, "names no sites");
        check("/sites/0/name", json!(7), "a site without a name");
    }

    #[test]
    fn a_chain_that_never_ends_is_left() {
        assert!(!is_below(1, 5, |_| Some(1)));
    }
}
