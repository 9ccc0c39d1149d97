//! What a process uses. In: its number. Out: processor time, memory, threads, who started it; beside that load and machine.
//! Must not: find a process by its name.

use std::fs;
use std::time::Duration;

/// See above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system, since it began.
    pub cpu: Duration,
    /// Resident, in bytes: also pages of files, which all processes of the same program share.
    pub memory: u64,
    /// The part of it that no file stands behind, in bytes: what is really its own.
    pub anonymous: u64,
    /// Its threads.
    pub threads: u64,
    /// Its open files.
    pub files: usize,
}

/// What it uses now; nothing, if there is no such process.
pub fn usage(pid: u32) -> Usage {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let ticks = rustix::param::clock_ticks_per_second();
    Usage { files, ..parse(&told(pid, "stat"), &told(pid, "status"), ticks) }
}

/// Who started it, or took it over since; none: there is no such process.
pub fn parent(pid: u32) -> Option<u32> {
    fields(&told(pid, "stat")).nth(1)?.parse().ok()
}

/// How long the machine has been up; none: the kernel does not tell.
pub fn uptime() -> Option<Duration> {
    seconds(&fs::read_to_string("/proc/uptime").ok()?)
}

fn told(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// `/proc/<pid>/stat` and `/proc/<pid>/status`, with so many ticks a second.
fn parse(stat: &str, status: &str, ticks: u64) -> Usage {
    let words: Vec<&str> = fields(stat).collect();
    let time = |index: usize| words.get(index).copied().map_or(0, number);
    let field = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_whitespace().next()).map_or(0, number)
    };
    Usage {
        cpu: Duration::from_micros((time(11) + time(12)) * 1_000_000 / ticks.max(1)),
        memory: field("VmRSS:") << 10,
        anonymous: field("RssAnon:") << 10,
        threads: field("Threads:"),
        files: 0,
    }
}

/// State, parent, and so on: the name of a process stands before them in brackets and may contain anything.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ')
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or(0)
}

/// The first word of `/proc/uptime`.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.split_whitespace().next()?.parse().ok()?).ok()
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
        assert!(own.anonymous > 0 && own.anonymous < own.memory, "{own:?}");
        assert_eq!(usage(0), Usage::default());
    }

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let status =
            "Name:\tx\nVmHWM:\t 9000 kB\nVmRSS:\t 8000 kB\nRssAnon:\t 3000 kB\nRssFile:\t 5000 kB\nThreads:\t4\n";
        for name in ["keeper", "a) b) (c"] {
            let stat = format!("12 ({name}) S 7 12 9 0 -1 4194560 100 0 0 0 250 50 1 2 20 0 4 0 999");
            let found = parse(&stat, status, 100);
            assert_eq!((found.cpu, found.threads), (Duration::from_secs(3), 4), "{name}");
            assert_eq!((found.memory, found.anonymous), (8000 << 10, 3000 << 10), "{name}");
            assert_eq!(fields(&stat).nth(1), Some("7"), "{name}");
        }
        assert_eq!(parse("", "", 100), Usage::default());
        assert_eq!(parse("12 (x) Z", "VmRSS:", 0), Usage::default());
    }

    #[test]
    fn whoever_runs_has_a_parent_and_nobody_else() {
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent(0), None);
    }

    #[test]
    fn uptime_is_the_first_word_and_nothing_else() {
        assert_eq!(seconds("1234.56 2000.00\n"), Some(Duration::from_millis(1_234_560)));
        for text in ["", "up 3", "-1.0 2.0", "nan"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert!(uptime().is_some());
    }
}
