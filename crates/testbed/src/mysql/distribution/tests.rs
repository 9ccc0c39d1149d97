//! Programs that are named and are not what they should be. Small scripts stand in for servers.

use super::*;
use crate::testing::Folder;

/// A program that prints this. It is written by another process: a file that this one has open for writing could not
/// be run while any other test is starting a process.
fn program(folder: &Folder, name: &str, script: &str) -> PathBuf {
    let path = folder.path().join(name);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "printf '#!/bin/sh\n%s\n' \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", script]).arg(&path);
    process::run(command, "sh", &folder.path().join("log"), VERSION_LIMIT).unwrap();
    path
}

#[test]
fn a_named_server_is_used_or_refused_with_the_variable_and_the_way_out() {
    let folder = Folder::new();
    let check = |script: &str, expect: Result<&str, &str>| {
        let path = program(&folder, "mysqld", script);
        match (Distribution::at(&path), expect) {
            (Ok(found), Ok(version)) => {
                assert_eq!((found.version().to_string().as_str(), found.origin()), (version, Origin::Variable));
                assert_eq!(found.path(), path);
            }
            (Err(error), Err(part)) => {
                let text = error.to_string();
                let named = text.starts_with(&format!("BLOODRAVEN_MYSQLD={}: ", path.display()));
                let way_out = text.ends_with("set it to the path of a mysqld of 8.4.0 or newer, or unset it");
                assert!(named && way_out && text.contains(part), "{text}");
            }
            (outcome, expect) => panic!("{script}: {outcome:?} instead of {expect:?}"),
        }
    };
    check("echo 'mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)'", Ok("9.7.4"));
    check("echo 'mysqld  Ver 8.4.0 for Linux on x86_64'", Ok("8.4.0"));
    check("echo 'mysqld  Ver 8.0.36 for Linux on x86_64'", Err("MySQL 8.0.36 is too old"));
    check("echo 'mysqld  Ver 10.11.6-MariaDB for Linux'", Err("not a MySQL server (mysqld  Ver 10.11.6-MariaDB"));
    check("echo hello", Err("not a MySQL server (hello)"));
    check("true", Err("not a MySQL server (no answer)"));
    check("echo broken >&2; exit 3", Err("exit status: 3; last words: broken"));
}

#[test]
fn what_is_no_program_is_refused_with_the_variable_and_the_way_out() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("text"), "not executable").unwrap();
    for name in ["absent", "text", "."] {
        let error = Distribution::at(&folder.path().join(name)).unwrap_err();
        assert!(matches!(error, Error::NotAProgram { .. }), "{error}");
        assert!(error.to_string().starts_with("BLOODRAVEN_MYSQLD=/"), "{error}");
    }
}

#[test]
fn clients_are_found_beside_the_server() {
    let folder = Folder::new();
    let mysqld = program(&folder, "mysqld", "true");
    let dump = program(&folder, "mysqldump", "true");
    let distribution = Distribution::assumed(mysqld.to_str().unwrap());
    let command = distribution.client(Client::Mysqldump).unwrap();
    assert_eq!(command.get_program(), dump);
    assert_eq!(command.get_args().collect::<Vec<_>>(), ["--no-defaults"]);
}

#[test]
fn an_unpacked_server_runs_with_its_own_loader_and_files() {
    let distribution = Distribution { unpacked: Some("/c".into()), ..Distribution::assumed("/c/usr/sbin/mysqld") };
    let command = distribution.mysqld();
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    assert!(words[0].starts_with("/c/usr/lib/") && words[0].contains("/ld-linux-"), "{words:?}");
    assert_eq!(words[1], "--library-path");
    assert!(words[2].split(':').all(|folder| folder.starts_with("/c/")), "{words:?}");
    assert_eq!(words[3..6], ["/c/usr/sbin/mysqld", "--no-defaults", "--basedir=/c/usr"]);
}
