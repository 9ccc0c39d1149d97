//! A playground as a person starts it, for tests. In: a folder and words. Out: a running one, and what it said. Must not:
//! outlive the test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use bloodraven_e2e::programs;
use bloodraven_testbed::mysql::{self, Distribution};

/// A running playground; killed when it is dropped, with everything that it started.
pub(crate) struct Playground {
    child: Child,
    told: PathBuf,
}

impl Playground {
    /// Starts one without a screen; what it says goes to files in `beside`.
    pub(crate) fn start(beside: &Path, dir: &Path, words: &[OsString]) -> Self {
        let told = beside.join("told.txt");
        let mut command = Command::new(programs::bloodraven());
        command
            .args(["playground", "--headless"])
            .args(words)
            .arg("--dir")
            .arg(dir)
            .arg("--keeper")
            .arg(programs::keeper())
            .args(mysql_words())
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(beside.join("said.jsonl")).unwrap())
            .stderr(std::fs::File::create(&told).unwrap());
        Self { child: command.spawn().unwrap(), told }
    }

    /// How it ended; none: it runs.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// What it told on standard error.
    pub(crate) fn told(&self) -> String {
        std::fs::read_to_string(&self.told).unwrap_or_default()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        // Ended already in the good case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words that tell the playground how to run MySQL.
fn mysql_words() -> &'static [OsString] {
    static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let distribution = Distribution::shared().unwrap();
        let template = mysql::provision_template(&distribution).unwrap();
        let mysqld = distribution.mysqld();
        let command = std::iter::once(mysqld.get_program()).chain(mysqld.get_args());
        let mut words: Vec<OsString> = command.flat_map(|word| ["--mysqld".into(), word.to_owned()]).collect();
        words.extend(["--template".into(), template.into_os_string()]);
        words
    })
}
