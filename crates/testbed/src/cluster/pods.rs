//! Pods, from the outside: which processes a container has on this machine, and what can be done to them.
//!
//! In: a pod's name and a container's. Out: numbers of processes, signals. Must not: guess: a process is a container's when it
//! is in the container's cgroup.

use rustix::process::Signal;
use serde_json::Value;
use snafu::OptionExt as _;

use super::error::{Error, ProgramSnafu};
use super::faults::{Paused, send};
use super::{Cluster, Member};

/// A container of a pod, by its names.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The name of the pod.
    pub pod: &'a str,
    /// The name of the container.
    pub container: &'a str,
}

/// A process of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its number on the host.
    pub pid: u32,
    /// Its number in the container; 1 is the first.
    pub inner: u32,
    /// Its name, such as `mysqld` (the kernel's, at most 15 characters).
    pub name: String,
}

impl Cluster {
    /// The processes of a container, the first one first.
    pub fn processes(&self, of: Container<'_>) -> Result<Vec<Running>, Error> {
        let pod = self.get(&["pod", of.pod, "--namespace", of.namespace])?;
        let what = || format!("looking for {} of pod {}/{}", of.container, of.namespace, of.pod);
        let id = container_id(&pod, of.container);
        let id = id.with_context(|| ProgramSnafu { what: what(), said: "it does not run" })?;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let node = Member::node(node)?;
        let mut found: Vec<Running> =
            self.cgroups.processes(node.name(), &id).into_iter().filter_map(describe).collect();
        found.sort_by_key(|process| process.inner);
        Ok(found)
    }

    /// Sends a signal to a container's process of that name, or to its first one without a name.
    pub fn signal(&self, of: Container<'_>, name: Option<&str>, signal: Signal) -> Result<Running, Error> {
        let found = self.processes(of)?;
        let names = found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
        let what = format!("signalling {} of pod {}/{}", of.container, of.namespace, of.pod);
        let wanted = found.into_iter().find(|it| name.is_none_or(|name| it.name == name));
        let wanted =
            wanted.with_context(|| ProgramSnafu { what, said: format!("no such process; there are: {names}") })?;
        send(wanted.pid, signal)?;
        Ok(wanted)
    }

    /// Kills a container's process (`SIGKILL`): the one of that name, or the first one, which ends the container.
    pub fn kill(&self, of: Container<'_>, name: Option<&str>) -> Result<Running, Error> {
        self.signal(of, name, Signal::KILL)
    }

    /// Stops all processes of a container where they are.
    pub fn pause(&self, of: Container<'_>) -> Result<Paused, Error> {
        Paused::now(self.processes(of)?.into_iter().map(|process| process.pid).collect())
    }
}

/// The runtime's name of a container, from a pod's status.
fn container_id(pod: &Value, name: &str) -> Option<String> {
    let sorts = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let statuses = sorts.iter().flat_map(|sort| pod["status"][sort].as_array().into_iter().flatten());
    let found = statuses.into_iter().find(|status| status["name"] == name)?;
    Some(found["containerID"].as_str()?.split_once("://")?.1.to_owned())
}

/// What the kernel says about a process; nothing when it has ended.
fn describe(pid: u32) -> Option<Running> {
    parse_status(pid, &std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse_status(pid: u32, status: &str) -> Option<Running> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let inner = field("NSpid")?.split_whitespace().next_back()?.parse().ok()?;
    Some(Running { pid, inner, name: field("Name")?.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_found_by_its_name_whatever_sort_it_is() {
        let pod = json!({"status": {
            "initContainerStatuses": [{"name": "init", "containerID": "containerd://aaa"}],
            "containerStatuses": [{"name": "mysql", "containerID": "containerd://bbb"}, {"name": "waits"}],
        }});
        let check =
            |name: &str, expect: Option<&str>| assert_eq!(container_id(&pod, name).as_deref(), expect, "{name}");
        check("mysql", Some("bbb"));
        check("init", Some("aaa"));
        check("waits", None);
        check("absent", None);
    }

    #[test]
    fn the_innermost_number_is_the_one_in_the_container() {
        let status = "Name:\tmysqld\nState:\tS (sleeping)\nNSpid:\t40012\t812\t7\n";
        assert_eq!(parse_status(40_012, status), Some(Running { pid: 40_012, inner: 7, name: "mysqld".into() }));
        assert_eq!(parse_status(1, "Name:\tx\n"), None);
    }
}
