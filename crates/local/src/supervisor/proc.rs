//! What the kernel tells of processes in `/proc`.
//!
//! In: numbers. Out: states, children, and who belongs to a pod. Must not: take what vanished meanwhile for an error.

/// What is read of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) parent: u32,
}

impl Stat {
    /// Neither a zombie nor dead.
    pub(crate) const fn lives(self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    fn parse(text: &str) -> Option<Self> {
        // The name of a process stands in brackets and may contain anything; the fields follow the last one.
        let mut fields = text.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Self { state, parent })
    }
}

/// A process; none: there is none of that number.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    Stat::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The children of a process that live.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers: Vec<u32> =
        lists.flat_map(|list| list.split_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<_>>()).collect();
    numbers.into_iter().filter(|child| stat(*child).is_some_and(Stat::lives)).collect()
}

/// Whether every thread of a process is stopped or dead.
pub(crate) fn stands_still(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| Stat::parse(&std::fs::read_to_string(thread.path().join("stat")).ok()?))
        .all(|thread| matches!(thread.state, 'T' | 't' | 'Z' | 'X'))
}

/// Every process that lives and belongs to that pod: by its environment, which whatever it starts inherits.
pub(crate) fn members(variable: &str, uid: &str) -> Vec<u32> {
    numbers().filter(|pid| is_member(*pid, variable, uid)).collect()
}

/// Whether that process lives and belongs to that pod.
pub(crate) fn is_member(pid: u32, variable: &str, uid: &str) -> bool {
    let mark = format!("{variable}={uid}");
    let environment = std::fs::read(format!("/proc/{pid}/environ"));
    let marked = environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()));
    marked && stat(pid).is_some_and(Stat::lives)
}

fn numbers() -> impl Iterator<Item = u32> {
    let found = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    found.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let check = |text: &str, expect: Option<(char, u32)>| {
            assert_eq!(Stat::parse(text).map(|it| (it.state, it.parent)), expect, "{text}");
        };
        check("12 (mysqld) S 7 12 9 0 -1", Some(('S', 7)));
        check("12 (a) b) (c) T 7 12 9 0 -1", Some(('T', 7)));
        check("12 (x) Z", None);
        check("", None);
    }

    #[test]
    fn this_process_is_found_and_lives() {
        let own = std::process::id();
        assert!(stat(own).unwrap().lives());
        assert!(!stands_still(own));
    }
}
