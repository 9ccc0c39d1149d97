//! What a process uses. In: its number. Out: processor time, memory, threads. Must not: find a process by its name.

use std::fs;
use std::time::Duration;

/// See above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system, since it began.
    pub cpu: Duration,
    /// Resident, in bytes.
    pub memory: u64,
    /// Its threads.
    pub threads: u64,
    /// Its open files.
    pub files: usize,
}

/// What it uses now; nothing, if there is no such process.
pub fn usage(pid: u32) -> Usage {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let (stat, status) = (read("stat"), read("status"));
    // The name stands in brackets and may contain anything; user and system time are the 12th and 13th word after it.
    let words: Vec<u64> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').map(number).collect();
    let ticks = words.get(11).copied().unwrap_or(0) + words.get(12).copied().unwrap_or(0);
    let field = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_whitespace().next()).map_or(0, number)
    };
    Usage {
        cpu: Duration::from_micros(ticks * 1_000_000 / rustix::param::clock_ticks_per_second().max(1)),
        memory: field("VmRSS:") << 10,
        threads: field("Threads:"),
        files: fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count),
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or(0)
}

/// Load average of the last minute.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

/// Processor, cores, memory.
pub fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?.to_owned();
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "an unknown processor".to_owned());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let kib: u64 = memory.split(' ').next().map_or(0, number);
    format!("{processor}, {cores} cores, {} GiB", kib.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_uses_something() {
        let own = usage(std::process::id());
        assert!(own.memory > 0 && own.threads > 0 && own.files > 2, "{own:?}");
        assert_eq!(usage(0), Usage::default());
    }
}
