//! The programs of Kubernetes, built once from the pinned Go modules and kept.
//!
//! In: which program; the machine's Go and its module proxy. Out: the path of an executable in the cache. Must not:
//! build anything but the pinned versions (`go.mod.lock` and `go.sum.lock` beside this file are the whole truth), or
//! make a first run wait for programs that it does not need: each one is an entry of its own, published as soon as it
//! is built, so an interrupted run goes on where it stopped.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use snafu::{OptionExt as _, ResultExt as _, Snafu};

use super::toolchain::{self, Release, Toolchain};
use crate::progress::Progress;
use crate::{cache, process};

/// The version of Kubernetes; a test holds it to what `go.mod.lock` pins.
pub const VERSION: &str = "v1.34.4";

/// The kind of the cache entries.
pub(super) const KIND: &str = "kubernetes";

const GO_MOD: &str = include_str!("go.mod.lock");
const GO_SUM: &str = include_str!("go.sum.lock");

/// About 600 MB of modules from a proxy; with the build's limit it stays below what others wait for the cache's lock.
const FETCH_LIMIT: Duration = Duration::from_mins(15);

/// The API server took five minutes on two cores; a machine may be slower or busy.
const BUILD_LIMIT: Duration = Duration::from_mins(30);

/// What went wrong with getting a program.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The machine's Go cannot be used.
    #[snafu(transparent)]
    Go {
        /// Why not.
        source: toolchain::Error,
    },

    /// The pinned module file is not one.
    #[snafu(display("go.mod.lock has no `go` line: restore the file"))]
    Lock,

    /// The cache failed, or the build that was to fill it.
    #[snafu(transparent)]
    Cache {
        /// Why.
        source: cache::Error,
    },

    /// The folder of the module cannot be written or removed.
    #[snafu(display("cannot write the Go module of {program} to {}: {source}", path.display()))]
    Module {
        /// The program to be built.
        program: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The modules did not come.
    #[snafu(display(
        "cannot fetch the Go modules of {program}: {source}; \
         what came is kept: try again when the proxy of `go env GOPROXY` answers, or set GOPROXY to one that does"
    ))]
    Fetch {
        /// The program to be built.
        program: &'static str,
        /// What Go said.
        source: process::Error,
    },

    /// Go did not build it.
    #[snafu(display("cannot build {program}: {source}"))]
    Build {
        /// The program to be built.
        program: &'static str,
        /// What Go said.
        source: process::Error,
    },
}

/// A program of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `kube-apiserver`
    ApiServer,
    /// `kubectl`
    Kubectl,
    /// `kube-controller-manager`
    ControllerManager,
    /// `kube-scheduler`
    Scheduler,
    /// `kubelet`
    Kubelet,
    /// `kube-proxy`
    Proxy,
}

impl Program {
    /// What an API server alone needs.
    pub const OF_AN_API_SERVER: [Self; 2] = [Self::ApiServer, Self::Kubectl];

    /// What a whole cluster needs, the ones of an API server first.
    pub const ALL: [Self; 6] =
        [Self::ApiServer, Self::Kubectl, Self::ControllerManager, Self::Scheduler, Self::Kubelet, Self::Proxy];

    /// The name of the executable.
    pub fn name(self) -> &'static str {
        match self {
            Self::ApiServer => "kube-apiserver",
            Self::Kubectl => "kubectl",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::Proxy => "kube-proxy",
        }
    }

    /// The executable in the cache, built when it is not there.
    pub fn provision(self) -> Result<PathBuf, Error> {
        self.recipe().provision()
    }

    fn recipe(self) -> GoProgram {
        GoProgram {
            name: self.name(),
            package: format!("k8s.io/kubernetes/cmd/{}", self.name()),
            version: VERSION,
            go_mod: GO_MOD,
            go_sum: GO_SUM,
            sources: &[],
            linker_flags: linker_flags(),
        }
    }
}

/// A program that is built from pinned Go modules.
#[derive(Clone, Debug)]
pub(crate) struct GoProgram {
    /// The name of the executable.
    pub(crate) name: &'static str,
    /// What Go is asked to build.
    pub(crate) package: String,
    /// Its version, for people and for the key.
    pub(crate) version: &'static str,
    /// The module file, whole.
    pub(crate) go_mod: &'static str,
    /// The sums of every module.
    pub(crate) go_sum: &'static str,
    /// Files of our own beside the two: their names and texts.
    pub(crate) sources: &'static [(&'static str, &'static str)],
    /// What the linker is told.
    pub(crate) linker_flags: String,
}

impl GoProgram {
    /// The executable in the cache, built when it is not there.
    pub(crate) fn provision(&self) -> Result<PathBuf, Error> {
        let needed = Release::wanted_by(self.go_mod).context(LockSnafu)?;
        let go = Toolchain::find(needed)?;
        let folder = cache::entry(KIND, &self.key(&go), |folder| self.build(folder))?;
        Ok(folder.join(self.name))
    }

    /// Everything that makes a different executable makes a different key.
    fn key(&self, go: &Toolchain) -> String {
        let sources = self.sources.iter().map(|(_, text)| *text);
        let pinned = digest([self.go_mod, self.go_sum, &self.linker_flags].into_iter().chain(sources));
        format!("{}-{}-{}-{}-{pinned:016x}", self.name, self.version, go.version, go.platform)
    }

    /// Fills the folder of a cache entry with the executable.
    fn build(&self, folder: &Path) -> Result<(), Error> {
        let module = folder.join("module");
        self.write_module(&module)?;
        self.fetch(&module)?;
        self.compile(&module, &folder.join(self.name))?;
        std::fs::remove_dir_all(&module).context(ModuleSnafu { program: self.name, path: module })
    }

    fn write_module(&self, module: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(module)
            .and_then(|()| std::fs::write(module.join("go.mod"), self.go_mod))
            .and_then(|()| std::fs::write(module.join("go.sum"), self.go_sum))
            .and_then(|()| self.sources.iter().try_for_each(|(name, text)| std::fs::write(module.join(name), text)))
            .context(ModuleSnafu { program: self.name, path: module })
    }

    /// Fetches the modules of this program and no others, by asking Go for the packages that the build will need. A
    /// step of its own, so that a proxy out of reach is not taken for a build that fails.
    fn fetch(&self, module: &Path) -> Result<(), Error> {
        let step = format!("fetching the modules of {} {} (first time only)", self.name, self.version);
        let mut list = toolchain::command(module);
        list.args(["list", "-deps", "-mod=readonly", "-f={{with .Error}}{{.}}{{end}}"]).arg(&self.package);
        run(list, step, &module.join("fetch.log"), FETCH_LIMIT).with_context(|_| FetchSnafu { program: self.name })
    }

    fn compile(&self, module: &Path, output: &Path) -> Result<(), Error> {
        let step = format!("building {} {} (first time only, takes some minutes)", self.name, self.version);
        let mut build = toolchain::command(module);
        build.args(["build", "-mod=readonly", "-trimpath", "-ldflags", &self.linker_flags, "-o"]);
        build.arg(output).arg(&self.package);
        run(build, step, &module.join("build.log"), BUILD_LIMIT).with_context(|_| BuildSnafu { program: self.name })
    }
}

fn run(command: Command, step: String, log: &Path, limit: Duration) -> Result<(), process::Error> {
    let progress = Progress::start(step);
    process::run(command, "go", log, limit)?;
    progress.done();
    Ok(())
}

/// No symbols, and the version that the programs report: without it they would call themselves v0.0.0-master, and
/// clients would guess what they can do.
fn linker_flags() -> String {
    let mut numbers = VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let mut flags = vec!["-s".to_owned(), "-w".to_owned()];
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (variable, value) in [("gitVersion", VERSION), ("gitMajor", major), ("gitMinor", minor)] {
            flags.push(format!("-X {package}.{variable}={value}"));
        }
    }
    flags.join(" ")
}

/// A name for a sequence of texts (FNV-1a with each text's length, 64 bits). It tells pinned files apart, it guards
/// nothing: Go verifies every module by the sums in `go.sum`.
pub(crate) fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    texts.into_iter().fold(OFFSET, |hash, text| {
        let hash = text.len().to_le_bytes().into_iter().fold(hash, mix);
        text.bytes().fold(hash, mix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(version: &str, platform: &str) -> Toolchain {
        Toolchain { version: version.into(), platform: platform.into() }
    }

    #[test]
    fn the_version_is_the_one_that_the_lock_files_pin() {
        let staging = VERSION.replacen("v1", "v0", 1);
        assert!(GO_MOD.contains(&format!("require k8s.io/kubernetes {VERSION}\n")));
        assert!(GO_SUM.contains(&format!("k8s.io/kubernetes {VERSION} h1:")));
        let replaced: Vec<&str> = GO_MOD.lines().filter(|line| line.contains(" => ")).collect();
        assert!(replaced.len() > 20, "every staging module is replaced: {replaced:?}");
        for line in replaced {
            assert!(line.ends_with(&format!(" {staging}")), "{line}");
        }
        assert_eq!(Release::wanted_by(GO_MOD), Release::parse("1.24"));
    }

    #[test]
    fn a_key_is_a_plain_name_that_differs_for_whatever_differs() {
        let base = Program::ApiServer.recipe().key(&go("go1.26.8", "linux-amd64"));
        assert!(base.starts_with(&format!("kube-apiserver-{VERSION}-go1.26.8-linux-amd64-")), "{base}");
        assert_eq!(base, Program::ApiServer.recipe().key(&go("go1.26.8", "linux-amd64")));
        assert_ne!(base, Program::Kubectl.recipe().key(&go("go1.26.8", "linux-amd64")));
        assert_ne!(base, Program::ApiServer.recipe().key(&go("go1.26.9", "linux-amd64")));
        assert_ne!(base, Program::ApiServer.recipe().key(&go("go1.26.8", "linux-arm64")));
    }

    #[test]
    fn the_digest_changes_with_any_pinned_text() {
        fn check(one: [&str; 2], two: [&str; 2], same: bool) {
            assert_eq!(digest(one) == digest(two), same, "{one:?} {two:?}");
        }
        check(["a", "b"], ["a", "b"], true);
        check(["a", "b"], ["a", "c"], false);
        check(["a", "b"], ["b", "a"], false);
        check(["ab", ""], ["a", "b"], false);
        check(["a\n", "b"], ["a", "b"], false);
    }

    #[test]
    fn programs_report_the_pinned_version() {
        let flags = linker_flags();
        for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
            assert!(flags.contains(&format!("-X {package}.gitVersion=v1.34.4")), "{flags}");
            assert!(flags.contains(&format!("-X {package}.gitMinor=34")), "{flags}");
        }
    }
}
