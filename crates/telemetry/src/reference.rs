//! The reference pages of metrics and log events, written from their tables.
//!
//! In: the tables. Out: Markdown, and [`compare`], with which a test holds a committed page against what the code says
//! today. Must not: be edited in the page: `UPDATE_DOCS=1 cargo test` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use crate::log::{Field, LogEvent};
use crate::metrics::{MetricSpec, Scope, catalogue, is_to_come};
use crate::words::Values;

/// Stands at the top of every generated page.
pub const HEADER: &str = "<!-- Written from the code; do not edit. `UPDATE_DOCS=1 cargo test` writes it anew. -->\n\n";

/// `docs/reference/metrics.md`.
pub fn metrics_page() -> String {
    let mut page = HEADER.to_owned();
    page.push_str(
        "# Metrics\n\n\
         The operator shows its metrics on `--metrics-bind` under `/metrics`, a sidecar on its own port under the same path, as \
         OpenMetrics text.\n\nA group's series go when the group goes, a site's when the site is taken out of the spec. Names of \
         groups and sites are bounded by specs; every other label has the values that stand here. What is marked \
         as not yet is declared, and not shown by this release.\n",
    );
    let sections = [
        (
            Scope::Group,
            "Of a group, in the operator",
            "Each has the labels `namespace` and `group` besides those named.",
        ),
        (Scope::Process, "Of a process", "Operator and sidecar alike; each shows what it has."),
        (
            Scope::Site,
            "Of a site, in its sidecar",
            "Each has the labels `namespace`, `group` and `site` besides those named.",
        ),
    ];
    for (scope, title, note) in sections {
        let _ = write!(page, "\n## {title}\n\n{note}\n\n| metric | type | labels | what it is |\n|---|---|---|---|\n");
        for spec in catalogue().filter(|spec| spec.scope == scope) {
            let not_yet = if is_to_come(spec.name) { " (not yet)" } else { "" };
            let _ = writeln!(page, "| `{}` | {} | {} | {}{not_yet} |", spec.name, kind(spec), labels(spec), spec.help);
        }
    }
    page
}

fn kind(spec: &MetricSpec) -> String {
    if spec.buckets.is_empty() {
        return spec.kind.as_str().to_owned();
    }
    let buckets: Vec<String> = spec.buckets.iter().map(f64::to_string).collect();
    format!("{} ({} s)", spec.kind.as_str(), buckets.join(", "))
}

fn labels(spec: &MetricSpec) -> String {
    let one = |name: &str, values: Values| match values {
        Values::Closed(words) => format!("`{name}` ({})", words.join(", ")),
        Values::Spec | Values::Code => format!("`{name}`"),
    };
    let each: Vec<String> = spec.labels.iter().map(|label| one(label.name, label.values)).collect();
    if each.is_empty() { "–".to_owned() } else { each.join(", ") }
}

/// `docs/reference/logs.md`.
pub fn logs_page() -> String {
    let mut page = HEADER.to_owned();
    page.push_str(
        "# Logs\n\n\
         One JSON object a line on stdout. Every line has `time` (RFC 3339, nanoseconds, UTC), `level` (debug, info, warn, \
         error), `msg` and `component` (operator, sidecar, backup); most have `fg` (`namespace/name`) and `epoch`. Lines with \
         `event` are stable: programs may look for the event and for the text of `msg`. Lines without are for people, and `msg` \
         may change. Secrets are never written; where one would have stood it says `(hidden)`.\n\n\
         ## Events\n\n| event | level | msg | fields | when |\n|---|---|---|---|---|\n",
    );
    for event in LogEvent::ALL {
        let spec = event.spec();
        let messages: Vec<String> = spec.messages.iter().map(|message| format!("`{message}`")).collect();
        let fields: Vec<String> = spec.fields.iter().map(|field| format!("`{}`", field.as_str())).collect();
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            spec.event,
            spec.level.as_str(),
            messages.join(", "),
            fields.join(", "),
            spec.when
        );
    }
    let fields: Vec<String> = Field::ALL.iter().map(|field| format!("`{}`", field.as_str())).collect();
    let _ = write!(
        page,
        "\n## Fields\n\nIn camelCase, as needed: {}. Numbers (`epoch`, `count`, `durationMs`) are numbers, all others are \
         texts.\n",
        fields.join(", ")
    );
    page
}

/// Whether the committed page says what the code says; else what to do. With `update` it is written anew.
pub fn compare(path: &Path, page: &str, update: bool) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if update {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        return std::fs::write(path, page).map_err(failed);
    }
    let committed = std::fs::read_to_string(path).map_err(failed)?;
    if committed == page {
        return Ok(());
    }
    Err(format!("{} is out of step with the code; run UPDATE_DOCS=1 cargo test and commit it", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_pages_are_in_step() {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test is told by the environment to write instead of comparing"
        )]
        let update = std::env::var_os("UPDATE_DOCS").is_some();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        for (name, page) in [("metrics.md", metrics_page()), ("logs.md", logs_page())] {
            assert_eq!(compare(&folder.join(name), &page, update), Ok(()));
        }
    }
}
