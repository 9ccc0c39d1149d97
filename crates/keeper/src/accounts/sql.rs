//! The init file: statements that mysqld runs at every start before anyone can connect.
//!
//! In: accounts, and the opener of this start. Out: SQL text, a statement a line. Must not: write a GTID; leave an
//! account with more than the table says; let a name or password end its quotes.
//!
//! No schema stays: a fenced server that has one cannot be cloned into. That of the write probe is made by who first
//! writes to it, on the open server.
//!
//! mysqld stops reading at the first error and starts all the same. So what must not be half done is checked first, and
//! the opener, without which nobody can open, comes last. A schema is made before and dropped after everything: its
//! folder tells the keeper that mysqld has begun and that all went well.

use std::fmt::Write as _;

use super::{Account, Credentials, Role};

/// The account that opens, and does nothing else.
pub(crate) const OPENER: &str = "bloodraven_opener";

/// A schema that is there while the init file is read.
pub(crate) const BOOT: &str = "bloodraven_boot";

/// All that the app's account may do; it is revoked again on what is not the app's.
const APP: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW, \
                   CREATE ROUTINE, ALTER ROUTINE, EXECUTE, TRIGGER, EVENT, CREATE TEMPORARY TABLES, LOCK TABLES";

/// What the operator's account may do everywhere: no right to change user data.
const OPERATOR: &str = "SELECT, EVENT, CREATE USER, RELOAD, PROCESS, SHUTDOWN, SHOW DATABASES, REPLICATION CLIENT, \
                        REPLICATION SLAVE, CONNECTION_ADMIN, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, \
                        SESSION_VARIABLES_ADMIN, REPLICATION_SLAVE_ADMIN, CLONE_ADMIN, BACKUP_ADMIN, \
                        SERVICE_CONNECTION_ADMIN";

/// What whoever follows or copies a server may do.
const FOLLOWER: &str = "REPLICATION SLAVE, REPLICATION CLIENT, BACKUP_ADMIN";

/// Whether a right is given or taken away again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Grant,
    Revoke,
}

/// The table of rights: who, what, where.
const RIGHTS: [(Role, Verb, &str, &str); 14] = [
    (Role::Operator, Verb::Grant, OPERATOR, "*.*"),
    (Role::Operator, Verb::Grant, "ALL", "bloodraven.*"),
    (Role::App, Verb::Grant, APP, "*.*"),
    (Role::App, Verb::Revoke, APP, "mysql.*"),
    (Role::App, Verb::Revoke, APP, "sys.*"),
    (Role::App, Verb::Revoke, APP, "bloodraven.*"),
    (Role::ReadOnly, Verb::Grant, "SELECT, SHOW VIEW, SHOW DATABASES, PROCESS", "*.*"),
    (Role::ReadOnly, Verb::Revoke, "SELECT, SHOW VIEW", "mysql.*"),
    (Role::Monitor, Verb::Grant, "PROCESS, REPLICATION CLIENT", "*.*"),
    (Role::Monitor, Verb::Grant, "SELECT", "performance_schema.*"),
    (Role::Backup, Verb::Grant, FOLLOWER, "*.*"),
    (Role::Backup, Verb::Grant, "SELECT", "performance_schema.*"),
    (Role::Replication, Verb::Grant, FOLLOWER, "*.*"),
    (Role::Replication, Verb::Grant, "SELECT", "performance_schema.*"),
];

/// What is done about root's password; only one that is empty is ever changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root<'a> {
    /// Somebody else's data folder, and nothing was given.
    Left,
    /// The given password, or a random one that nobody knows.
    Closed(&'a str),
}

/// The init file of one start.
pub(crate) fn init_file(credentials: &Credentials, root: Root<'_>, host: &str, opener: &str, more: &str) -> String {
    let mut lines = Lines(String::new());
    lines.session();
    lines.say(&format!("DROP SCHEMA IF EXISTS {BOOT}"));
    lines.say(&format!("CREATE SCHEMA {BOOT}"));
    let restricted = |account: &Account| RIGHTS.iter().any(|row| row.0 == account.role && row.1 == Verb::Revoke);
    if credentials.accounts.iter().any(restricted) {
        lines.needs_partial_revokes();
    }
    lines.accounts(&credentials.accounts);
    if let Root::Closed(password) = root {
        lines.root(password);
    }
    for line in more.lines() {
        lines.raw(line);
    }
    lines.opener(host, opener);
    lines.say(&format!("DROP SCHEMA {BOOT}"));
    lines.0
}

struct Lines(String);

impl Lines {
    fn say(&mut self, statement: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{statement};");
    }

    fn raw(&mut self, line: &str) {
        let _ = writeln!(self.0, "{line}");
    }

    /// Runs the text that an expression gives.
    fn run(&mut self, expression: &str) {
        self.say(&format!("SET @statement = {expression}"));
        self.say("PREPARE statement FROM @statement");
        self.say("EXECUTE statement");
        self.say("DEALLOCATE PREPARE statement");
    }

    /// No GTID, no password in a general log, and quotes that mean what they mean here.
    fn session(&mut self) {
        self.say("SET SESSION sql_log_bin = 0");
        self.say("SET SESSION sql_log_off = 1");
        self.say("SET SESSION sql_mode = 'STRICT_ALL_TABLES'");
        self.say("SET NAMES utf8mb4");
        self.say("SET SESSION group_concat_max_len = 65536");
    }

    /// Without it the revokes below would fail one by one, after their grants. The error says what is wrong.
    fn needs_partial_revokes(&mut self) {
        self.run(
            "IF(@@GLOBAL.partial_revokes, 'DO 0', \
             'SELECT `partial_revokes is OFF: set partial-revokes=ON, else the app could write to mysql.*`')",
        );
    }

    /// Whatever an account could do before, it can do what the table says now. Each statement is a write to the disk:
    /// what can be said of all accounts is said in one.
    fn accounts(&mut self, accounts: &[Account]) {
        if accounts.is_empty() {
            return;
        }
        let list = |of: fn(&Account) -> String| accounts.iter().map(of).collect::<Vec<_>>().join(", ");
        let identified = list(|account| format!("{} IDENTIFIED BY {}", name(account), quoted(&account.password)));
        self.say(&format!("CREATE USER IF NOT EXISTS {identified}"));
        self.say(&format!("ALTER USER {identified}"));
        self.say(&format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {}", list(name)));
        for account in accounts {
            for (_, verb, what, on) in RIGHTS.iter().filter(|row| row.0 == account.role) {
                let (verb, to) = if *verb == Verb::Grant { ("GRANT", "TO") } else { ("REVOKE", "FROM") };
                self.say(&format!("{verb} {what} ON {on} {to} {}", name(account)));
            }
        }
    }

    fn root(&mut self, password: &str) {
        let change = format!("ALTER USER 'root'@'localhost' IDENTIFIED BY {}", quoted(password));
        let open = "(SELECT COUNT(*) FROM mysql.user WHERE user = 'root' AND host = 'localhost' \
                    AND authentication_string = '')";
        self.run(&format!("IF({open}, {}, 'DO 0')", quoted(&change)));
    }

    /// Every one of an earlier start, or of the server that this data was copied from, is gone.
    fn opener(&mut self, host: &str, password: &str) {
        self.run(&format!(
            "IFNULL((SELECT CONCAT('DROP USER ', GROUP_CONCAT(QUOTE(user), '@', QUOTE(host))) FROM mysql.user \
             WHERE user = '{OPENER}'), 'DO 0')"
        ));
        let user = format!("'{OPENER}'@{}", quoted(host));
        self.say(&format!("CREATE USER {user} IDENTIFIED BY {}", quoted(password)));
        self.say(&format!("GRANT SYSTEM_VARIABLES_ADMIN, SERVICE_CONNECTION_ADMIN ON *.* TO {user}"));
    }
}

/// An account as statements name it.
fn name(account: &Account) -> String {
    format!("{}@'%'", quoted(&account.user))
}

/// A text literal on one line.
fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\0' => literal.push_str("\\0"),
            '\u{1a}' => literal.push_str("\\Z"),
            c => literal.push(c),
        }
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_ends_where_it_should() {
        let check = |text: &str, expect: &str| assert_eq!(quoted(text), expect);
        check("plain", "'plain'");
        check("a'b\\c\"d", "'a\\'b\\\\c\"d'");
        check("'; DROP USER x; --", "'\\'; DROP USER x; --'");
        check("a\nb\r\0\u{1a}é", "'a\\nb\\r\\0\\Zé'");
    }
}
