//! One run of the playground. In: programs, a script. Out: each step as it is done, and the verdict that the run ended with;
//! none: it ended without one. Must not: leave anything behind.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What is run.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    pub(crate) bloodraven: PathBuf,
    pub(crate) keeper: PathBuf,
    pub(crate) mysqld: Vec<String>,
    pub(crate) template: Option<PathBuf>,
}

/// What a run has said so far, and in the end how it ended.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// The playground's own number.
    pub(crate) pid: u32,
    /// `playground.json`, in which it says whom it started.
    pub(crate) notice: PathBuf,
    pub(crate) verdict: Option<Value>,
    /// Of the servers.
    pub(crate) version: Option<String>,
    /// Writes that were acknowledged, as the newest picture says.
    pub(crate) acknowledged: u64,
}

/// A running playground; it takes everything that it started along when it is ended.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already in the good case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder that goes away.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new() -> Result<Self> {
        let folder = Self(std::env::temp_dir().join(format!("bloodraven-bench-{}", std::process::id())));
        // One that was killed may have had the same number.
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir_all(&folder.0).with_context(|| format!("cannot make {}", folder.0.display()))?;
        Ok(folder)
    }

    /// Where the group lives.
    fn group(&self) -> PathBuf {
        self.0.join("group")
    }
}

impl Programs {
    /// Takes a word of the command line in, if it is about programs.
    pub(crate) fn take(&mut self, word: &str, value: &str) -> bool {
        match word {
            "--bloodraven" => self.bloodraven = value.into(),
            "--keeper" => self.keeper = value.into(),
            "--mysqld" => self.mysqld.push(value.to_owned()),
            "--template" => self.template = Some(value.into()),
            _ => return false,
        }
        true
    }

    /// Whether everything is named that cannot be guessed.
    pub(crate) fn check(&self) -> Result<()> {
        for (word, path) in [("--bloodraven", &self.bloodraven), ("--keeper", &self.keeper)] {
            ensure!(!path.as_os_str().is_empty(), "{word} is missing; name the program that is to be run");
        }
        Ok(())
    }

    /// Plays a script to its verdict, with so many writes a second for each writer. Steps are shown under that name, and
    /// handed over, as they are done; an error of whom they are handed to ends the run.
    pub(crate) fn play(
        &self,
        name: &str,
        rate: u32,
        script: &str,
        mut done: impl FnMut(&Played, &str) -> Result<()>,
    ) -> Result<Played> {
        let folder = Folder::new()?;
        let file = folder.0.join("row.scn");
        fs::write(&file, script).with_context(|| format!("cannot write {}", file.display()))?;
        let mut running = Running(self.command(rate, &folder, &file).spawn().context("cannot start the playground")?);
        let said = running.0.stdout.take().context("the playground has no output")?;
        let notice = folder.group().join("playground.json");
        let mut played = Played { pid: running.0.id(), notice, ..Played::default() };
        for line in BufReader::new(said).lines() {
            let line = line.context("cannot read what the playground says")?;
            let line = serde_json::from_str(&line).unwrap_or_default();
            played.hear(&line);
            if let Some(step) = step_done(&line) {
                eprintln!("{name}: {step}");
                done(&played, step)?;
            }
        }
        running.0.wait().context("cannot wait for the playground")?;
        Ok(played)
    }

    fn command(&self, rate: u32, folder: &Folder, script: &Path) -> Command {
        let mut command = Command::new(&self.bloodraven);
        command.args(["playground", "--headless", "--rate", &rate.to_string(), "--script"]).arg(script);
        command.arg("--dir").arg(folder.group()).arg("--keeper").arg(&self.keeper);
        command.args(self.mysqld.iter().flat_map(|word| ["--mysqld", word]));
        if let Some(template) = &self.template {
            command.arg("--template").arg(template);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }
}

impl Played {
    fn hear(&mut self, line: &Value) {
        let message = line["message"].as_str().unwrap_or_default();
        match (line["kind"].as_str(), line["reason"].as_str()) {
            (Some("verdict"), _) => self.verdict = Some(line.clone()),
            (Some("picture"), _) => {
                self.acknowledged = line["load"]["acknowledged"].as_u64().unwrap_or(self.acknowledged);
            }
            (Some("event"), Some("starting")) if message.starts_with("MySQL ") => {
                self.version = Some(message.to_owned());
            }
            _ => {}
        }
    }
}

/// The step that a line says is done.
fn step_done(line: &Value) -> Option<&str> {
    let done = line["kind"] == "event" && line["reason"] == "done";
    line["message"].as_str().filter(|_| done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_heard_as_what_they_are() {
        let mut played = Played::default();
        let event = |reason: &str, message: &str| json!({"kind": "event", "reason": reason, "message": message});
        let done = event("done", "rest 5s (5001 ms)");
        let lines = [
            event("starting", "MySQL 9.7.4"),
            event("starting", "a new group"),
            json!({"kind": "picture", "load": {"on": true, "acknowledged": 7}}),
            json!({"kind": "picture"}),
            json!({"kind": "verdict", "passed": true}),
            Value::Null,
        ];
        for line in &lines {
            played.hear(line);
            assert_eq!(step_done(line), None, "{line}");
        }
        assert_eq!((played.version.as_deref(), played.acknowledged), (Some("MySQL 9.7.4"), 7));
        assert_eq!(played.verdict.unwrap()["passed"], true);
        assert_eq!(step_done(&done), Some("rest 5s (5001 ms)"));
    }

    #[test]
    fn a_program_that_is_not_named_is_asked_for() {
        let mut programs = Programs::default();
        assert!(programs.take("--bloodraven", "b") && programs.take("--mysqld", "m") && !programs.take("--page", "p"));
        let refused = programs.check().unwrap_err().to_string();
        assert!(refused.starts_with("--keeper is missing"), "{refused}");
        assert!(programs.take("--keeper", "k"));
        programs.check().unwrap();
    }
}
