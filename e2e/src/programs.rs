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
    BUILT.get_or_init(|| build("keeper")).clone()
}

/// The keeper as images have it: it runs in any image, so it brings its own C library.
pub fn static_keeper() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build_static("bloodraven-keeper", "keeper")).clone()
}

/// What brings real parts up and down.
pub fn testbed() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("bloodraven-testbed")).clone()
}

/// The multi-call binary.
pub fn bloodraven() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("bloodraven")).clone()
}

/// One operator and many groups of played sites, measured.
pub fn scale() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("bloodraven-scale")).clone()
}

/// Builds a program beside the running test, with all others and every feature, as the tests themselves are built: any other
/// choice would compile the dependencies a second time. Cargo's own lock keeps two test processes apart; what is fresh costs
/// it half a second.
fn build(binary: &str) -> PathBuf {
    run(binary, &mut |cargo| {
        cargo.args(["--workspace", "--all-features", "--bins"]);
    });
    profile_folder().join(binary)
}

/// One that needs no library of the machine it runs on.
fn build_static(package: &str, binary: &str) -> PathBuf {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    run(binary, &mut |cargo| {
        cargo.args(["--package", package, "--bin", binary]);
        // Named, so that the flags are not those of build scripts.
        cargo.args(["--target", &triple]).env("RUSTFLAGS", "-C target-feature=+crt-static");
    });
    let profile = profile_folder();
    let target = profile.parent().unwrap_or(&profile);
    target.join(triple).join(profile.file_name().unwrap_or_default()).join(binary)
}

#[expect(clippy::panic, reason = "without the program the test cannot go on, and its output is the reason")]
fn run(binary: &str, change: &mut dyn FnMut(&mut Command)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let profile = profile_folder();
    let target = profile.parent().unwrap_or(&profile);
    let mut cargo = Command::new(cargo());
    cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args(["build", "--quiet", "--target-dir"])
        .arg(target)
        // Set for this test by the cargo that runs it; they are about another package.
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_PKG_NAME");
    if profile.file_name().is_some_and(|name| name == "release") {
        cargo.arg("--release");
    }
    change(&mut cargo);
    match cargo.output() {
        Ok(output) if output.status.success() => {}
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
