//! The manifests of this folder as data.
//!
//! In: YAML files. Out: whole manifests with what is expected of them. Must not: know whether a manifest is right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What is changed in a base.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// Fields that get a value; the index after the last one appends to a list.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Value>,
    /// Fields and list entries that go.
    #[serde(default)]
    pub(crate) unset: Vec<String>,
}

/// A manifest and, where it is to be refused, what the answer says about each field.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Creation {
    /// What it shows.
    pub(crate) name: String,
    /// The file in `bases`.
    #[serde(default = "group")]
    pub(crate) base: String,
    /// What is changed in it.
    #[serde(flatten)]
    pub(crate) edit: Edit,
    /// Field to text; empty: to be accepted.
    #[serde(default)]
    pub(crate) refused: BTreeMap<String, String>,
}

/// A change and, where it is to be refused, what the answer says about each field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// What it shows.
    pub(crate) name: String,
    /// The file in `bases`.
    #[serde(default = "group")]
    pub(crate) base: String,
    /// The base before.
    #[serde(default)]
    pub(crate) from: Edit,
    /// The status before.
    pub(crate) status: Option<Value>,
    /// The base after.
    pub(crate) to: Edit,
    /// Field to text; empty: to be accepted.
    #[serde(default)]
    pub(crate) refused: BTreeMap<String, String>,
}

fn group() -> String {
    "group".to_owned()
}

/// This folder, from the folder of a package.
pub(crate) fn folder(package: &str) -> PathBuf {
    let root = Path::new(package).ancestors().find(|a| a.join("e2e/manifests").is_dir());
    root.expect("the workspace has the folder e2e/manifests").join("e2e/manifests")
}

/// Every base that is to be accepted as it is, by name.
pub(crate) fn bases(folder: &Path) -> Vec<(String, Value)> {
    let files = std::fs::read_dir(folder.join("bases")).expect("the folder bases");
    let mut names: Vec<String> = files
        .map(|file| file.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), base(folder, &name))).collect()
}

/// One base.
pub(crate) fn base(folder: &Path, name: &str) -> Value {
    read(&folder.join("bases").join(format!("{name}.yaml")))
}

/// One YAML file.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> T {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// A manifest with so many sites.
pub(crate) fn with_sites(folder: &Path, sites: usize) -> Value {
    let mut manifest = base(folder, "group");
    let entries: Vec<_> = (0..sites)
        .map(|n| {
            json!({
                "name": format!("s{n}"), "zone": format!("z{n}"), "taintNodeSelector": {"site": format!("s{n}")},
                "lbIP": format!("10.0.{}.{}", n / 250, n % 250 + 1), "storage": {"storageClassName": "gp3", "size": "1Ti"},
                "role": if n % 2 == 0 { "primary-candidate" } else { "dr-only" },
            })
        })
        .collect();
    manifest["spec"]["sites"] = Value::Array(entries);
    manifest
}

impl Creation {
    /// The whole manifest.
    pub(crate) fn manifest(&self, folder: &Path) -> Value {
        self.edit.applied(base(folder, &self.base))
    }
}

impl Change {
    /// The manifest before.
    pub(crate) fn before(&self, folder: &Path) -> Value {
        self.from.applied(base(folder, &self.base))
    }

    /// The manifest after.
    pub(crate) fn after(&self, folder: &Path) -> Value {
        self.to.applied(base(folder, &self.base))
    }
}

impl Edit {
    fn applied(&self, mut manifest: Value) -> Value {
        for path in &self.unset {
            let (parent, last) = parent(&mut manifest, path);
            match (parent, last) {
                (Value::Object(fields), Step::Field(name)) => {
                    fields.remove(name).unwrap_or_else(|| panic!("{path} is not there"));
                }
                (Value::Array(entries), Step::Entry(index)) => {
                    entries.remove(index);
                }
                _ => panic!("{path} fits no value"),
            }
        }
        for (path, value) in &self.set {
            let (parent, last) = parent(&mut manifest, path);
            *child(parent, last) = value.clone();
        }
        manifest
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Entry(usize),
}

fn parent<'v, 'p>(manifest: &'v mut Value, path: &'p str) -> (&'v mut Value, Step<'p>) {
    let mut steps: Vec<Step<'p>> = Vec::new();
    for part in path.split('.') {
        let (name, index) = part.split_once('[').map_or((part, None), |(name, rest)| (name, rest.strip_suffix(']')));
        steps.push(Step::Field(name));
        steps.extend(index.map(|text| Step::Entry(text.parse().expect("an index"))));
    }
    let last = steps.pop().expect("a path");
    let place = steps.into_iter().fold(manifest, child);
    (place, last)
}

fn child<'v>(value: &'v mut Value, step: Step<'_>) -> &'v mut Value {
    match step {
        Step::Field(name) => &mut value[name],
        Step::Entry(index) => {
            let entries = value.as_array_mut().expect("a list");
            if index == entries.len() {
                entries.push(Value::Null);
            }
            &mut entries[index]
        }
    }
}
