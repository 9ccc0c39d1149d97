//! The environment: the one file of the testbed that reads variables.
//!
//! In: a variable's name. Out: its value, or nothing when it is unset or empty. Must not: change a variable, or guess.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names the folder that keeps what was fetched and built, instead of the user's cache folder.
pub const CACHE_DIR: &str = "BLOODRAVEN_CACHE_DIR";

/// Names the `mysqld` to use, instead of looking for one.
pub const MYSQLD: &str = "BLOODRAVEN_MYSQLD";

/// Keeps the folder of every server after its end when set to `1`.
pub const KEEP: &str = "BLOODRAVEN_TESTBED_KEEP";

/// Names the kubeconfig of a cluster that tests are to use, instead of one of their own.
pub const KUBECONFIG: &str = "BLOODRAVEN_KUBECONFIG";

/// Names the context to use, instead of the kubeconfig's current one.
pub const CONTEXT: &str = "BLOODRAVEN_CONTEXT";

/// Names a context that is for tests although it does not look like it.
pub const TRUSTED_CONTEXT: &str = "BLOODRAVEN_TRUSTED_CONTEXT";

/// The value of a variable; an empty one counts as unset, as a shell's `NAME= command` means.
#[expect(
    clippy::disallowed_methods,
    reason = "the testbed assembles test programs: its settings can only come from their environment"
)]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether a switch such as [`KEEP`] is on: set to anything but `0`.
pub fn switched_on(name: &str) -> bool {
    variable(name).is_some_and(|value| value != "0")
}

/// The file of that name in the first folder that has one: those of `PATH`, then the ones where servers live, which an
/// ordinary user's `PATH` leaves out.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| is_program(candidate))
}

/// Whether a path is a file that may be executed by someone.
pub fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
