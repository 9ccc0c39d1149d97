//! The programs of this workspace, for tests that run them: built on demand, once a process.
//!
//! In: nothing; the target folder is that of the running test. Out: paths of programs as they are in the sources now. Must
//! not: use a program of another checkout or another profile.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The keeper.
pub fn keeper() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("bloodraven-keeper", "keeper")).clone()
}

/// The keeper without a loader, as images carry it: it runs in any image.
pub fn static_keeper() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build_with("bloodraven-keeper", "keeper", Linking::Static)).clone()
}

/// The testbed's program, whose subcommands are the first processes of a cluster's machines.
pub fn testbed() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("bloodraven-testbed", "bloodraven-testbed")).clone()
}

/// The multi-call binary.
pub fn bloodraven() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("bloodraven", "bloodraven")).clone()
}

/// How a program finds the C library.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Linking {
    Shared,
    Static,
}

fn build(package: &str, binary: &str) -> PathBuf {
    build_with(package, binary, Linking::Shared)
}

/// Builds a program beside the running test. Cargo's own lock keeps two test processes apart; what is fresh costs it
/// half a second.
#[expect(clippy::panic, reason = "without the program the test cannot go on, and its output is the reason")]
fn build_with(package: &str, binary: &str, linking: Linking) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let profile = profile_folder();
    let target = profile.parent().unwrap_or(&profile);
    let mut cargo = Command::new(cargo());
    cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args(["build", "--quiet", "--package", package, "--bin", binary, "--target-dir"])
        .arg(target)
        // Set for this test by the cargo that runs it; they are about another package.
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_PKG_NAME");
    if profile.file_name().is_some_and(|name| name == "release") {
        cargo.arg("--release");
    }
    let mut folder = profile.clone();
    if linking == Linking::Static {
        // A target of its own keeps the flag away from what the build itself runs, and from the other output.
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        cargo.args(["--target", &triple]).env("RUSTFLAGS", "-C target-feature=+crt-static");
        folder = target.join(triple).join(profile.file_name().unwrap_or_default());
    }
    match cargo.output() {
        Ok(output) if output.status.success() => folder.join(binary),
        Ok(output) => panic!("cannot build {binary}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => panic!("cannot run cargo to build {binary}: {error}"),
    }
}

/// `<target>/<profile>`: this test is `<target>/<profile>/deps/<name>`.
#[expect(clippy::panic, reason = "a test program without a path is none")]
fn profile_folder() -> PathBuf {
    let Ok(test) = std::env::current_exe() else { panic!("this test program has no path") };
    let folder = test.parent().unwrap_or(Path::new("/"));
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    folder.to_owned()
}

#[expect(clippy::disallowed_methods, reason = "the cargo that runs the test is the one that builds for it")]
fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}
