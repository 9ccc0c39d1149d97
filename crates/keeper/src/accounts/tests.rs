//! The init file as a whole, and what is refused.

use super::*;

fn account(role: Role, user: &str) -> Account {
    Account { role, user: user.into(), password: format!("{user}'s \\ pass") }
}

fn all() -> Credentials {
    let names = ["op", "app", "ro", "mon", "bak", "repl"];
    let accounts = Role::ALL.into_iter().zip(names).map(|(role, user)| account(role, user)).collect();
    Credentials { accounts, root: Some("r00t".into()) }
}

#[test]
fn the_init_file_is_the_one_on_record() {
    let text = init_file(&all(), Root::Closed("r'00t"), "10.0.0.7", "0f-Aa0", "SELECT 1;\nSELECT 2;");
    let golden = include_str!("golden.sql");
    assert_eq!(text, golden, "if the change is meant, accounts/golden.sql is:\n{text}");
}

#[test]
fn a_statement_is_a_line_and_none_reaches_the_binary_log() {
    let text = init_file(&all(), Root::Left, "localhost", "0f", "");
    assert!(text.lines().all(|line| line.ends_with(';')), "{text}");
    assert_eq!(text.lines().next(), Some("SET SESSION sql_log_bin = 0;"));
    assert!(!text.contains("sql_log_bin = 1") && !text.contains("'root'"), "{text}");
    // What mysqld reads into one buffer.
    assert!(text.lines().all(|line| line.len() < 20_000));
}

#[test]
fn partial_revokes_are_asked_for_only_where_they_are_needed() {
    let needs = |role: Role| {
        let credentials = Credentials { accounts: vec![account(role, "x")], root: None };
        init_file(&credentials, Root::Left, "localhost", "0f", "").contains("partial_revokes")
    };
    let those: Vec<Role> = Role::ALL.into_iter().filter(|role| needs(*role)).collect();
    assert_eq!(those, [Role::App, Role::ReadOnly]);
}

/// A credentials folder of the given files; the error of reading it.
fn refusal(name: &str, files: &[(&str, &[u8])]) -> String {
    let folder = std::env::temp_dir().join(format!("keeper-{}-credentials-{name}", std::process::id()));
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let read = Credentials::read(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    match read {
        Ok(found) => format!("{} accounts", found.accounts.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn credentials_that_cannot_be_used_are_named_with_the_way_out() {
    let check = |name: &str, files: &[(&str, &[u8])], expect: &str| {
        let said = refusal(name, files);
        assert!(said.contains(expect) && !said.contains("s3cret"), "{said}");
    };
    let password = ("app/password", &b"s3cret"[..]);
    check("fine", &[("app/username", b"app\n"), password, ("root/password", b"s3cret")], "1 accounts");
    check("root", &[("app/username", b"root"), password], "app/username: \"root\" belongs to the server");
    check("opener", &[("app/username", b"bloodraven_opener"), password], "belongs to the server");
    check("system", &[("app/username", b"mysql.sys"), password], "belongs to the server");
    check("long", &[("app/username", &[b'x'; 33]), password], "at most 32 signs");
    check("empty", &[("app/username", b"\n"), password], "app/username: it is empty");
    check("huge", &[("app/username", b"app"), ("app/password", &[b'x'; 1025])], "app/password: it is longer");
    check("odd", &[("app/username", b"app"), ("app/password", &[0xff])], "app/password: not UTF-8");
    check("half", &[("app/username", b"app")], "cannot read");
    let twice =
        [("app/username", &b"one"[..]), password, ("monitor/username", b"one"), ("monitor/password", b"s3cret")];
    check("twice", &twice, "\"one\" is also the app account");
}
