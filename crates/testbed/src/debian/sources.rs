//! Where this machine gets its Debian packages from.
//!
//! In: the files of `/etc/apt` (both forms: one-line `.list`, deb822 `.sources`) and the machine's release. Out: the
//! archive's address and how to trust it. Must not: know an address itself, or take another vendor's archive for
//! Debian's.

use std::path::{Path, PathBuf};

use snafu::{OptionExt as _, ResultExt as _};

use super::{Error, NoArchiveSnafu, ReadSnafu};

/// Suites of the Debian archive that are not called after a release.
const ROLLING: [&str; 5] = ["sid", "unstable", "testing", "stable", "oldstable"];

/// The Debian archive that the machine uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archive {
    uri: String,
    trust: Trust,
}

/// How the archive's signature is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trust {
    /// By the keys that apt has in general.
    Default,
    /// By the keyring files named in the entry.
    Keyring(String),
    /// By the key that stands in the entry.
    Key(String),
    /// Not at all: the administrator of the machine said so.
    Unchecked,
}

/// An entry of the machine's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    uris: Vec<String>,
    suites: Vec<String>,
    components: Vec<String>,
    trust: Trust,
}

impl Archive {
    /// Reads the machine's configuration.
    pub(super) fn of_this_machine() -> Result<Self, Error> {
        let release = PathBuf::from("/etc/os-release");
        let text = std::fs::read_to_string(&release).context(ReadSnafu { path: release })?;
        let codename = codename(&text);
        let mut sources = Vec::new();
        for path in source_files(Path::new("/etc/apt")) {
            let text = std::fs::read_to_string(&path).context(ReadSnafu { path: &path })?;
            sources.extend(if path.extension() == Some("sources".as_ref()) { deb822(&text) } else { one_line(&text) });
        }
        let wanted = codename.as_deref().unwrap_or("Debian (VERSION_CODENAME of /etc/os-release)");
        choose(&sources, codename.as_deref()).context(NoArchiveSnafu { wanted })
    }

    /// The key that stood in the machine's entry, to be written to a file.
    pub(super) fn embedded_key(&self) -> Option<&str> {
        match &self.trust {
            Trust::Key(key) => Some(key),
            Trust::Default | Trust::Keyring(_) | Trust::Unchecked => None,
        }
    }

    /// The line of a `sources.list` for another suite of the same archive; `key` is where an embedded key was written.
    pub(super) fn source_line(&self, suite: &str, key: &Path) -> String {
        let trust = match &self.trust {
            Trust::Default => String::new(),
            Trust::Keyring(files) => format!(" signed-by={files}"),
            Trust::Key(_) => format!(" signed-by={}", key.display()),
            Trust::Unchecked => " trusted=yes".to_owned(),
        };
        // Only the package index: not the others that the system's apt may be set up to fetch.
        format!("deb [target=Packages{trust}] {} {suite} main\n", self.uri)
    }
}

/// The release's code name, when this is Debian itself.
fn codename(os_release: &str) -> Option<String> {
    let value = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(line.trim().trim_matches(['"', '\'']).to_owned())
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME")).flatten()
}

/// `sources.list`, then what is in `sources.list.d`, in the order of the names.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let known = |path: &PathBuf| path.extension().is_some_and(|end| end == "list" || end == "sources");
    let found = folder.join("sources.list.d").read_dir().into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = found.map(|found| found.path()).filter(known).collect();
    files.sort();
    files.insert(0, folder.join("sources.list"));
    files.retain(|path| path.is_file());
    files
}

/// The entry of the machine's own release, else one of the archive's rolling suites.
fn choose(sources: &[Source], codename: Option<&str>) -> Option<Archive> {
    let release = codename?;
    let usable = |source: &&Source| source.components.iter().any(|name| name == "main");
    let has = |source: &&Source, wanted: &[&str]| source.suites.iter().any(|suite| wanted.contains(&suite.as_str()));
    let fetched = |source: &Source| {
        let uri = source.uris.iter().find(|uri| !uri.starts_with("cdrom:"))?;
        Some(Archive { uri: uri.clone(), trust: source.trust.clone() })
    };
    let of = |wanted: &[&str]| sources.iter().filter(usable).filter(|it| has(it, wanted)).find_map(fetched);
    of(&[release]).or_else(|| of(&ROLLING))
}

/// The entries of a one-line file: `deb [option=value …] uri suite component …`.
fn one_line(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let rest = line.strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t', '[']))?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let option =
        |name: &str| options.split_whitespace().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (uri, suite) = (words.next()?, words.next()?);
    let trust = trust(option("signed-by").map(str::to_owned), option("trusted"));
    Some(Source { uris: vec![uri], suites: vec![suite], components: words.collect(), trust })
}

/// The entries of a deb822 file: paragraphs of `Field: value`, continued by indented lines.
fn deb822(text: &str) -> Vec<Source> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).filter_map(parse_paragraph).collect()
}

fn parse_paragraph(lines: &[&str]) -> Option<Source> {
    let fields = fields(lines);
    let field = |name: &str| fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let words = |name: &str| -> Vec<String> {
        field(name).map(|value| value.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
    };
    let off = |value: &String| matches!(value.trim().to_ascii_lowercase().as_str(), "no" | "false" | "0" | "off");
    if field("Enabled").is_some_and(off) || !words("Types").iter().any(|sort| sort == "deb") {
        return None;
    }
    Some(Source {
        uris: words("URIs"),
        suites: words("Suites"),
        components: words("Components"),
        trust: trust(field("Signed-By").cloned(), field("Trusted").map(|value| value.trim())),
    })
}

/// The fields of a paragraph; the lines of a value are kept apart, an indented dot is an empty line.
fn fields(lines: &[&str]) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                let more = line.trim();
                value.push('\n');
                value.push_str(if more == "." { "" } else { more });
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    fields
}

fn trust(signed_by: Option<String>, trusted: Option<&str>) -> Trust {
    if trusted.is_some_and(|value| value.eq_ignore_ascii_case("yes")) {
        return Trust::Unchecked;
    }
    match signed_by {
        None => Trust::Default,
        Some(value) if value.contains("BEGIN PGP PUBLIC KEY") => Trust::Key(format!("{}\n", value.trim())),
        Some(value) => Trust::Keyring(value.split_whitespace().collect::<Vec<_>>().join(",")),
    }
}

#[cfg(test)]
mod tests;
