//! Patterns of texts, one regular expression each, read by the API server (RE2) and by this crate alike.
//!
//! In: a text. Out: whether it has the form. Must not: use a construct that RE2 and the `regex` crate read differently
//! (`\d`, `\s`, `\w` and case folding of non-ASCII letters are such).

use std::sync::OnceLock;

use regex::Regex;

/// A pattern.
pub struct Pattern {
    regex: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    const fn new(regex: &'static str) -> Self {
        Self { regex, compiled: OnceLock::new() }
    }

    /// The regular expression.
    pub fn regex(&self) -> &'static str {
        self.regex
    }

    /// Whether a text has the form. A pattern that does not compile, which a test rules out, holds for nothing.
    pub fn holds(&self, text: &str) -> bool {
        self.compiled.get_or_init(|| Regex::new(self.regex).ok()).as_ref().is_some_and(|r| r.is_match(text))
    }

    /// The same question in CEL about an expression.
    pub fn cel(&self, expression: &str) -> String {
        format!("{expression}.matches(r'{}')", self.regex)
    }
}

/// Lower case letters, digits and `-`, as in the name of a site, a profile or a schedule.
pub static DNS_LABEL: Pattern = Pattern::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");

/// The same, beginning with a letter: a group's name starts object names that must.
pub static GROUP_NAME: Pattern = Pattern::new("^[a-z]([-a-z0-9]*[a-z0-9])?$");

/// Site names that would collide with the Services of the group or of another site.
pub static RESERVED_SITE_NAME: Pattern = Pattern::new("^(primary|replicas|.*-internal)$");

/// A label value that is not empty.
pub static LABEL_VALUE: Pattern = Pattern::new("^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$");

/// The name of an object. It stands in the path of requests, so nothing that means something there may be in it.
pub static OBJECT_NAME: Pattern = Pattern::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");

/// A DNS name in lower case.
pub static HOSTNAME: Pattern =
    Pattern::new("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$");

/// `host:port`, with an IPv6 address in brackets.
pub static HOST_PORT: Pattern = Pattern::new(concat!(
    r"^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])",
    ":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$"
));

/// An image with a tag or a digest.
pub static PINNED_IMAGE: Pattern = Pattern::new(concat!(
    "^[A-Za-z0-9][-A-Za-z0-9._]*(:[0-9]+)?(/[-A-Za-z0-9._]+)*",
    "(:[A-Za-z0-9_][-A-Za-z0-9._]{0,127}|(:[A-Za-z0-9_][-A-Za-z0-9._]{0,127})?@sha256:[0-9a-f]{64})$"
));

/// A Go duration that is not negative.
pub static DURATION: Pattern = Pattern::new(r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$");

/// A folder that stays where it is put, apart from `..`, which is asked for separately.
pub static RELATIVE_PATH: Pattern = Pattern::new(r"^([^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*)?$");

/// A bucket's name: no slash, nothing that needs quoting.
pub static BUCKET: Pattern = Pattern::new("^[A-Za-z0-9][-A-Za-z0-9._]*$");

/// Address of an object store.
pub static HTTP_URL: Pattern = Pattern::new(r"^https?://[^/ \x00-\x1f\x7f][^ \x00-\x1f\x7f]*$");

/// Name of a time zone, e.g. `Europe/Berlin`.
pub static TIME_ZONE: Pattern = Pattern::new("^[A-Za-z][-+A-Za-z0-9_]*(/[A-Za-z0-9][-+A-Za-z0-9_]*)*$");

/// One cron field: a list of values, ranges and steps.
macro_rules! cron_field {
    ($value:literal) => {
        concat!(
            "([*?]|",
            $value,
            "(-",
            $value,
            ")?)(/[1-9][0-9]?)?",
            "(,([*?]|",
            $value,
            "(-",
            $value,
            ")?)(/[1-9][0-9]?)?)*"
        )
    };
}

/// Five cron fields: minute, hour, day of month, month, day of week.
pub static CRON: Pattern = Pattern::new(concat!(
    "^",
    cron_field!("[0-5]?[0-9]"),
    " +",
    cron_field!("([01]?[0-9]|2[0-3])"),
    " +",
    cron_field!("(0?[1-9]|[12][0-9]|3[01])"),
    " +",
    cron_field!("(0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))"),
    " +",
    cron_field!("([0-6]|(?i:sun|mon|tue|wed|thu|fri|sat))"),
    "$"
));

/// One GTID, with or without a tag.
pub static GTID: Pattern = Pattern::new(concat!(
    "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "(:[a-z_][a-z0-9_]{0,31})?:[1-9][0-9]{0,18}$"
));

/// A GTID set.
pub static GTID_SET: Pattern = Pattern::new(concat!(
    "^ *[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "( *: *([a-z_][a-z0-9_]{0,31}|[1-9][0-9]{0,18}(-[1-9][0-9]{0,18})?))+ *",
    "(, *[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "( *: *([a-z_][a-z0-9_]{0,31}|[1-9][0-9]{0,18}(-[1-9][0-9]{0,18})?))+ *)*$"
));

/// `<namespace>/<group>`.
pub static NAMESPACED_GROUP: Pattern = Pattern::new("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z]([-a-z0-9]*[a-z0-9])?$");

/// Who asked for a backup.
pub static BACKUP_TRIGGER: Pattern = Pattern::new(concat!(
    "^(manual|restore|schedule/[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    "|retry/[a-z0-9]([-a-z0-9]*[a-z0-9])?/attempt-[1-9][0-9]{0,2})$"
));

/// One SELECT, on one line.
pub static ONE_SELECT: Pattern = Pattern::new(r"^ *(?i:select)[^A-Za-z0-9_;\x00-\x1f\x7f][^;\x00-\x1f\x7f]*;? *$");

/// A size as MySQL writes it: bytes, or with K, M or G.
pub static MYSQL_SIZE: Pattern = Pattern::new("^[1-9][0-9]{0,9}[KMG]?$");

/// Name of a MySQL option.
pub static OPTION_NAME: Pattern = Pattern::new("^[A-Za-z][-A-Za-z0-9_.]*$");

/// Text without control characters, so that a value cannot become a second line.
pub static ONE_LINE: Pattern = Pattern::new(r"^[^\x00-\x1f\x7f]*$");

/// Keys of labels and annotations that belong to the operator.
pub static OPERATOR_KEY: Pattern =
    Pattern::new("^([a-z0-9.-]+[.])?shipstream[.]io/|^app[.]kubernetes[.]io/(name|instance|managed-by)$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_fits_a_cel_string() {
        for pattern in [
            &DNS_LABEL,
            &GROUP_NAME,
            &OBJECT_NAME,
            &RESERVED_SITE_NAME,
            &LABEL_VALUE,
            &HOSTNAME,
            &HOST_PORT,
            &PINNED_IMAGE,
            &DURATION,
            &RELATIVE_PATH,
            &BUCKET,
            &HTTP_URL,
            &TIME_ZONE,
            &CRON,
            &GTID,
            &GTID_SET,
            &NAMESPACED_GROUP,
            &BACKUP_TRIGGER,
            &ONE_SELECT,
            &MYSQL_SIZE,
            &OPTION_NAME,
            &ONE_LINE,
            &OPERATOR_KEY,
        ] {
            assert!(Regex::new(pattern.regex()).is_ok(), "{}", pattern.regex());
            assert!(!pattern.regex().contains('\''), "{}", pattern.regex());
            assert!(!pattern.regex().contains(r"\d") && !pattern.regex().contains(r"\s"), "{}", pattern.regex());
        }
    }

    fn check(pattern: &Pattern, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(pattern.holds(text), "{text:?} ought to match {}", pattern.regex());
        }
        for text in bad {
            assert!(!pattern.holds(text), "{text:?} ought not to match {}", pattern.regex());
        }
    }

    /// K-13: no floating tags.
    #[test]
    fn images_need_a_tag_or_digest() {
        let digest = "mysql@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let both = "r.io/mysql:9@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        check(
            &PINNED_IMAGE,
            &["mysql:9.7", "mysql:9.7.4", "r.example:5000/db/mysql:9.7", digest, both],
            &[
                "mysql",
                "r.example:5000/mysql",
                "r.example/mysql",
                "",
                ":9",
                "my sql:9",
                "mysql:",
                "mysql@sha256:12",
                "mysql:9.7\n",
            ],
        );
    }

    #[test]
    fn cron_has_five_fields() {
        check(
            &CRON,
            &["0 3 * * *", "*/15 * * * *", "5,10-20/2 0-23 1 JAN-dec mon,wed", "59 23 31 12 6", "0  3 * * ?"],
            &[
                "",
                "@daily",
                "0 3 * *",
                "0 3 * * * *",
                "60 3 * * *",
                "0 24 * * *",
                "0 3 32 * *",
                "0 3 0 * *",
                "0 3 * 13 *",
                "0 3 * * 7",
                "TZ=UTC 0 3 * * *",
                "*/0 * * * *",
                "0 3 * foo *",
                "0 3 * * day",
            ],
        );
    }

    #[test]
    fn gtids_and_sets_are_told_apart() {
        let uuid = "3E11FA47-71CA-11E1-9E33-C80AA9429562";
        let one = format!("{uuid}:23");
        let tagged = format!("{uuid}:blue:23");
        let range = format!("{uuid}:1-5:8:blue:3, {uuid}:9");
        check(&GTID, &[&one, &tagged], &[&range, uuid, "x:1", &format!("{uuid}:0")]);
        check(&GTID_SET, &[&one, &tagged, &range], &[uuid, "", "x:1", &format!("{uuid}:1-"), &format!("{one},")]);
    }

    #[test]
    fn addresses_and_names() {
        check(
            &HOST_PORT,
            &["bloodraven.ops.svc:8082", "10.0.0.1:1", "[fd00::1]:65535"],
            &["bloodraven", "bloodraven:", "bloodraven:0", "bloodraven:65536", ":80", "http://x:80", "fd00::1:80"],
        );
        check(
            &HOSTNAME,
            &["db.example.com", "db", "a-b.c1"],
            &["", ".", "db.", "-a.b", "a_b", "DB.example.com", "*.x.y", "a..b"],
        );
        check(&RESERVED_SITE_NAME, &["primary", "replicas", "iad-internal"], &["iad", "internal", "primary-a"]);
        check(
            &OPERATOR_KEY,
            &["shipstream.io/role", "bloodraven.shipstream.io/x", "app.kubernetes.io/name"],
            &["app.kubernetes.io/part-of", "team", "notshipstream.io/x"],
        );
        check(
            &ONE_SELECT,
            &["SELECT 1", "select count(*) from a.b;", "Select(1)"],
            &["SELECT 1; DROP TABLE x", "UPDATE x SET y=1", "SELECT\n1", "selectx", ""],
        );
        check(&NAMESPACED_GROUP, &["shop/orders"], &["orders", "/orders", "shop/", "a/b/c"]);
        check(
            &BACKUP_TRIGGER,
            &["manual", "restore", "schedule/nightly", "retry/nightly/attempt-2"],
            &["", "cron", "schedule/", "retry/nightly", "retry/nightly/attempt-0"],
        );
    }
}
