//! The first container of a site's pod: folders on the volume, the server's option file, the keeper's program.
//!
//! In: where each is, and what only this pod knows. Out: everything that keeper, server and sidecar expect to find. Must
//! not: touch what is in a folder that is there, or leave half a file under a name that somebody reads: a pod may be killed
//! at any moment, and runs this again whenever its sandbox is made anew.

use bloodraven_blueprint::objects::conf;
use bloodraven_blueprint::objects::pod::{DATA_FOLDER, KEEPER_FILE, STATE_FOLDER};
use rustix::fs::{Access, access};
use snafu::{ResultExt as _, Snafu, ensure};
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A `ConfigMap` is not larger than this.
const LARGEST_CONFIG: u64 = 1 << 20;

/// Nobody but the pod's own user reads data; its group may look.
const FOLDER_MODE: u32 = 0o750;

/// Read by whoever looks into the container. The server overlooks a file that everybody may write.
const OPTION_FILE_MODE: u32 = 0o644;

/// A program.
const PROGRAM_MODE: u32 = 0o755;

/// What a pod knows of itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// The site's volume.
    pub volume: PathBuf,
    /// The group's part of the option file.
    pub config: PathBuf,
    /// The option file to be.
    pub option_file: PathBuf,
    /// The memory that keeper and sidecar share.
    pub run_dir: PathBuf,
    /// The keeper's program.
    pub keeper: PathBuf,
    /// The site's server id.
    pub server_id: u32,
    /// The pod's own address.
    pub admin_address: IpAddr,
}

/// What stands in the way of a pod.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A folder cannot be made or used.
    #[snafu(display("--volume: cannot make {}: {source}; the volume must belong to the pod's user or its fsGroup", path.display()))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else has the name.
    #[snafu(display("--volume: {} is there and no folder; move it away", path.display()))]
    NoFolder {
        /// Its path.
        path: PathBuf,
    },
    /// A folder of another user.
    #[snafu(display("--volume: {} is there, and this user may not write to it: {source}; give it to the pod's user", path.display()))]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The group's options cannot be read.
    #[snafu(display("--config: cannot read {}: {source}", path.display()))]
    Config {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The group's options are no option file.
    #[snafu(display("--config: {} is not the server's option file: {why}", path.display()))]
    NoConfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// The option file cannot be written.
    #[snafu(display("--option-file: cannot write {}: {source}", path.display()))]
    OptionFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The keeper cannot be copied.
    #[snafu(display("cannot copy the keeper from {} to {}: {source}; this image must have it", from.display(), to.display()))]
    Keeper {
        /// Where it should be.
        from: PathBuf,
        /// Where it is needed.
        to: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes everything ready. What is there already is left, or made anew as a whole.
pub fn prepare(options: &Options) -> Result<(), Error> {
    let Options { volume, config, option_file, run_dir, keeper, server_id, admin_address } = options;
    for name in [DATA_FOLDER, STATE_FOLDER] {
        make_folder(&volume.join(name))?;
    }
    // So that folders that a server has filled are there after a power cut.
    File::open(volume).and_then(|volume| volume.sync_all()).context(FolderSnafu { path: volume })?;
    let text = conf::of_pod(&read_config(config)?, *server_id, &admin_address.to_string());
    put(option_file, OPTION_FILE_MODE, &mut text.as_bytes()).context(OptionFileSnafu { path: option_file })?;
    let to = run_dir.join(KEEPER_FILE);
    let copy = || put(&to, PROGRAM_MODE, &mut File::open(keeper)?);
    copy().context(KeeperSnafu { from: keeper, to: &to })
}

fn make_folder(path: &Path) -> Result<(), Error> {
    match std::fs::create_dir(path) {
        Ok(()) => {
            let mode = Permissions::from_mode(FOLDER_MODE);
            return std::fs::set_permissions(path, mode).context(FolderSnafu { path });
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).context(FolderSnafu { path }),
    }
    ensure!(path.is_dir(), NoFolderSnafu { path });
    access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from).context(NotOursSnafu { path })
}

fn read_config(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST_CONFIG + 1).read_to_string(&mut text));
    let size = read.context(ConfigSnafu { path })?;
    ensure!(size as u64 <= LARGEST_CONFIG, NoConfigSnafu { path, why: "it is larger than 1 MiB" });
    let has_section = text.lines().any(|line| line.trim() == "[mysqld]");
    ensure!(has_section, NoConfigSnafu { path, why: "it has no section [mysqld]" });
    Ok(text)
}

/// Whole or not at all: made beside its place and renamed into it. A program that runs from the old file goes on.
fn put(path: &Path, mode: u32, from: &mut impl io::Read) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let mut file = File::create(&beside)?;
    io::copy(from, &mut file)?;
    file.flush()?;
    file.set_permissions(Permissions::from_mode(mode))?;
    drop(file);
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A pod's folders, gone with the test.
    struct Pod(PathBuf);

    impl Pod {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("bloodraven-init-{}-{number}", std::process::id()));
            for name in ["volume", "config", "conf", "run", "image"] {
                std::fs::create_dir_all(folder.join(name)).expect("a folder");
            }
            std::fs::write(folder.join("config/bloodraven.cnf"), "[mysqld]\nport=3306\n").expect("a file");
            std::fs::write(folder.join("image/keeper"), "program").expect("a file");
            Self(folder)
        }

        fn options(&self) -> Options {
            Options {
                volume: self.0.join("volume"),
                config: self.0.join("config/bloodraven.cnf"),
                option_file: self.0.join("conf/my.cnf"),
                run_dir: self.0.join("run"),
                keeper: self.0.join("image/keeper"),
                server_id: 7,
                admin_address: IpAddr::from([10, 0, 0, 7]),
            }
        }

        fn read(&self, name: &str) -> String {
            std::fs::read_to_string(self.0.join(name)).expect("a file")
        }

        fn mode(&self, name: &str) -> u32 {
            self.0.join(name).metadata().expect("there").permissions().mode() & 0o777
        }

        fn names(&self, folder: &str) -> Vec<String> {
            let entries = self.0.join(folder).read_dir().expect("a folder");
            let mut names: Vec<String> =
                entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Pod {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_fresh_pod_has_its_folders_its_options_and_its_keeper() {
        let pod = Pod::new();
        prepare(&pod.options()).expect("everything is there");
        assert_eq!(pod.names("volume"), ["bloodraven", "mysql"]);
        assert_eq!((pod.mode("volume/mysql"), pod.mode("run/keeper"), pod.mode("conf/my.cnf")), (0o750, 0o755, 0o644));
        let options = pod.read("conf/my.cnf");
        assert!(options.contains("\nadmin-address=10.0.0.7\n") && options.contains("\nserver-id=7\n"), "{options}");
        assert_eq!((pod.read("run/keeper").as_str(), pod.names("run")), ("program", vec!["keeper".to_owned()]));
    }

    #[test]
    fn a_second_run_leaves_data_and_writes_files_anew() {
        let pod = Pod::new();
        prepare(&pod.options()).expect("everything is there");
        std::fs::write(pod.0.join("volume/mysql/ibdata1"), "data").expect("a file");
        // What a run that was killed half-way leaves.
        std::fs::write(pod.0.join("run/keeper.new"), "half a program, and longer than the whole").expect("a file");
        std::fs::write(pod.0.join("image/keeper"), "another").expect("a file");
        let moved = Options { admin_address: IpAddr::from([10, 0, 0, 8]), ..pod.options() };
        prepare(&moved).expect("again");
        assert_eq!(pod.read("volume/mysql/ibdata1"), "data");
        assert_eq!(pod.read("conf/my.cnf").matches("admin-address").count(), 1, "made anew, not added to");
        assert!(pod.read("conf/my.cnf").contains("admin-address=10.0.0.8\n"));
        assert_eq!((pod.read("run/keeper").as_str(), pod.names("run")), ("another", vec!["keeper".to_owned()]));
    }

    #[test]
    fn what_stands_in_the_way_is_named_with_its_flag() {
        type Change = fn(&Pod, &mut Options);
        let rows: [(&str, Change); 7] = [
            ("--volume: cannot make", |_, options| options.volume = "/nowhere".into()),
            ("--volume: ", |pod, _| std::fs::write(pod.0.join("volume/mysql"), "a file").expect("a file")),
            ("--config: cannot read", |_, options| options.config = "/nowhere".into()),
            ("--config: ", |pod, _| std::fs::write(pod.0.join("config/bloodraven.cnf"), "port=1\n").expect("a file")),
            ("--config: ", |pod, _| {
                let long = format!("[mysqld]\n{}", "#".repeat(1 << 20));
                std::fs::write(pod.0.join("config/bloodraven.cnf"), long).expect("a file");
            }),
            ("--option-file: cannot write", |_, options| options.option_file = "/nowhere/my.cnf".into()),
            ("cannot copy the keeper from /nowhere", |_, options| options.keeper = "/nowhere".into()),
        ];
        for (expect, change) in rows {
            let pod = Pod::new();
            let mut options = pod.options();
            change(&pod, &mut options);
            let error = prepare(&options).expect_err(expect).to_string();
            assert!(error.starts_with(expect), "{error}");
        }
    }

    #[test]
    fn an_address_of_either_family_is_written_as_the_server_reads_it() {
        let pod = Pod::new();
        let six = Options { admin_address: "fd00::7".parse().expect("an address"), ..pod.options() };
        prepare(&six).expect("everything is there");
        assert!(pod.read("conf/my.cnf").contains("admin-address=fd00::7\n"));
    }
}
