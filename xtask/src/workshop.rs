//! Where building happens: the checkout, the cache folder, and the one shared build folder.
//!
//! In: the environment and the machine's cache folder. Out: cargo commands that build into `<cache>/target`, so that a
//! fresh clone on a warm machine only compiles the workspace's own crates. Must not: let two checkouts mix their
//! output. Cargo recognises stale output by file times, which say nothing across checkouts, so the folder is locked
//! while in use, and the members' own output is dropped when the checkout changed since the last use.

use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned versions of the tools that are installed into the cache with cargo.
pub(crate) const CARGO_FUZZ: &str = "0.13.2";
/// See [`CARGO_FUZZ`].
pub(crate) const CARGO_DENY: &str = "0.20.2";

/// A checkout with its (locked) build folder.
pub(crate) struct Workshop {
    /// The root of the checkout.
    pub(crate) root: PathBuf,
    /// The user's cache folder of this project.
    pub(crate) cache: PathBuf,
    target: PathBuf,
    _lock: File,
}

impl Workshop {
    /// Finds the checkout and takes the build folder; waits while another checkout builds.
    pub(crate) fn open() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?.to_owned();
        let cache = cache_root()?;
        let target = cache.join("target");
        fs::create_dir_all(&target)
            .with_context(|| format!("cannot make {}: free space or set BLOODRAVEN_CACHE_DIR", target.display()))?;
        let lock = lock(&cache.join("target.lock"))?;
        let workshop = Self { root, cache, target, _lock: lock };
        workshop.forget_other_checkout()?;
        Ok(workshop)
    }

    /// A cargo command that builds into the shared folder.
    pub(crate) fn cargo(&self, word: &str) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command.arg(word).current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command.env("BLOODRAVEN_CACHE_DIR", &self.cache);
        command
    }

    /// A program of the workspace, built. All of them are built at once and with every feature, as the tests are:
    /// another choice of features would compile half of the dependencies a second time.
    pub(crate) fn program(&self, name: &str) -> Result<Command> {
        let mut cargo = self.cargo("build");
        run::stream("building", cargo.args(["--quiet", "--workspace", "--all-features", "--bins"]), |_| {})?;
        let mut command = Command::new(self.target.join("debug").join(name));
        command.current_dir(&self.root).env("BLOODRAVEN_CACHE_DIR", &self.cache);
        Ok(command)
    }

    /// The binary of a cargo tool of that version, installed into the cache at first use.
    pub(crate) fn tool(&self, name: &str, version: &str) -> Result<PathBuf> {
        let home = self.cache.join("tools").join(format!("{name}-{version}"));
        let binary = home.join("bin").join(name);
        if !binary.exists() {
            eprintln!("xtask: installing {name} {version} (first time only, takes some minutes)");
            let mut install = self.cargo("install");
            // Unoptimised: it is built in a third of the time, and runs for seconds.
            install.args(["--locked", "--debug", "--version", version, "--root"]).arg(&home).arg(name);
            // A build folder of its own: `cargo install` would otherwise throw the members' output out of step.
            install.env("CARGO_TARGET_DIR", self.cache.join("tools-target"));
            run::inherit(&mut install).with_context(|| format!("cannot install {name}"))?;
        }
        Ok(binary)
    }

    /// A bounded fuzz run on the toolchain at hand; the fuzzer needs unstable compiler flags, hence the bootstrap.
    pub(crate) fn fuzz(&self, tool: &Path, target: &str, seconds: u32) -> Command {
        let mut command = Command::new(tool);
        command.args(["run", "--sanitizer", "none", target]).arg(format!("corpus/{target}"));
        command.arg(format!("seeds/{target}")).arg("--");
        command.args([
            format!("-max_total_time={seconds}"),
            format!("-dict={target}.dict"),
            "-max_len=4096".to_owned(),
        ]);
        command.current_dir(self.root.join("fuzz"));
        command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", self.cache.join("fuzz-target"));
        command
    }

    fn forget_other_checkout(&self) -> Result<()> {
        let stamp = self.target.join("checkout");
        let here = self.root.display().to_string();
        if fs::read_to_string(&stamp).is_ok_and(|last| last == here) {
            return Ok(());
        }
        let members = self.members()?;
        for profile in ["debug", "release"] {
            drop_fingerprints(&self.target.join(profile).join(".fingerprint"), &members)?;
        }
        fs::write(&stamp, here).with_context(|| format!("cannot write {}", stamp.display()))
    }

    fn members(&self) -> Result<Vec<String>> {
        Ok(self.packages()?.iter().filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect())
    }

    /// The workspace's own packages, as `cargo metadata` describes them.
    pub(crate) fn packages(&self) -> Result<Vec<serde_json::Value>> {
        let mut command = self.cargo("metadata");
        let text = run::capture(command.args(["--format-version", "1", "--no-deps", "--offline"]))?;
        let metadata: serde_json::Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        Ok(metadata["packages"].as_array().cloned().unwrap_or_default())
    }
}

/// `$BLOODRAVEN_CACHE_DIR`, else `$XDG_CACHE_HOME/bloodraven`, else `~/.cache/bloodraven`; the testbed has the same rule.
#[expect(clippy::disallowed_methods, reason = "the one place of this program that reads the environment")]
fn cache_root() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("BLOODRAVEN_CACHE_DIR")
        .or_else(|| named("XDG_CACHE_HOME").map(|path| path.join("bloodraven")))
        .or_else(|| named("HOME").map(|path| path.join(".cache/bloodraven")))
        .context("no cache folder: set BLOODRAVEN_CACHE_DIR or HOME")
}

fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("xtask: another checkout is building (it holds {}); waiting for it", path.display());
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Err(TryLockError::Error(error)) => bail!("cannot lock {}: {error}", path.display()),
    }
    Ok(file)
}

fn drop_fingerprints(folder: &Path, members: &[String]) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Entries are called `<package>-<hash>`; a package name may contain dashes, a hash does not.
        let owner = name.rsplit_once('-').map_or(name.as_str(), |(package, _)| package);
        if members.iter().any(|member| member == owner) {
            fs::remove_dir_all(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}
