//! One run of the playground. In: programs, a row, its script. Out: the verdict that the run ended with; none: it ended
//! without one. Must not: leave anything behind.

use crate::rows::Row;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What is run.
#[derive(Default)]
pub(crate) struct Programs {
    pub(crate) bloodraven: PathBuf,
    pub(crate) keeper: PathBuf,
    pub(crate) mysqld: Vec<String>,
    pub(crate) template: Option<PathBuf>,
}

/// How a run ended.
pub(crate) struct Played {
    pub(crate) verdict: Option<Value>,
    /// Of the servers.
    pub(crate) version: Option<String>,
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

impl Programs {
    /// Plays a script to its verdict, and shows the steps as they are done.
    pub(crate) fn play(&self, row: &Row, script: &str) -> Result<Played> {
        let folder = Folder(std::env::temp_dir().join(format!("bloodraven-bench-{}", std::process::id())));
        // One that was killed may have had the same number.
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir_all(&folder.0).with_context(|| format!("cannot make {}", folder.0.display()))?;
        let file = folder.0.join("row.scn");
        fs::write(&file, script).with_context(|| format!("cannot write {}", file.display()))?;
        let mut running = Running(self.command(row, &folder, &file).spawn().context("cannot start the playground")?);
        let said = running.0.stdout.take().context("the playground has no output")?;
        let mut played = Played { verdict: None, version: None };
        for line in BufReader::new(said).lines() {
            let line = line.context("cannot read what the playground says")?;
            played.hear(row, &serde_json::from_str(&line).unwrap_or_default());
        }
        running.0.wait().context("cannot wait for the playground")?;
        Ok(played)
    }

    fn command(&self, row: &Row, folder: &Folder, script: &PathBuf) -> Command {
        let mut command = Command::new(&self.bloodraven);
        command.args(["playground", "--headless", "--rate", &row.rate.to_string(), "--script"]).arg(script);
        command.arg("--dir").arg(folder.0.join("group")).arg("--keeper").arg(&self.keeper);
        command.args(self.mysqld.iter().flat_map(|word| ["--mysqld", word]));
        if let Some(template) = &self.template {
            command.arg("--template").arg(template);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }
}

impl Played {
    fn hear(&mut self, row: &Row, line: &Value) {
        let message = line["message"].as_str().unwrap_or_default();
        match (line["kind"].as_str(), line["reason"].as_str()) {
            (Some("verdict"), _) => self.verdict = Some(line.clone()),
            (Some("event"), Some("done")) => eprintln!("{}: {message}", row.name),
            (Some("event"), Some("starting")) if message.starts_with("MySQL ") => {
                self.version = Some(message.to_owned());
            }
            _ => {}
        }
    }
}
