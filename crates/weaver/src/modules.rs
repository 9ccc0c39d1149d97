//! Which files are a module's product code. In: its name and its place. Out: its files, found by following `mod` from the
//! top. Must not: list a file that only tests see.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A module whose code is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// As people call it.
    pub(crate) name: String,
    /// Below `src`, without an ending: `group/recovery`.
    path: PathBuf,
}

/// A file of product code.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Below `src`.
    pub(crate) path: PathBuf,
    /// What is in it.
    pub(crate) text: String,
}

impl Module {
    pub(crate) fn new(name: &str, path: &str) -> Self {
        Self { name: name.to_owned(), path: path.into() }
    }

    /// How the names of its own tests begin.
    pub(crate) fn prefix(&self) -> String {
        let parts = self.path.iter().map(|part| part.to_string_lossy().into_owned());
        parts.map(|part| part + "::").collect()
    }

    /// Its files, itself first.
    pub(crate) fn files(&self, source: &Path) -> Result<Vec<File>> {
        let (folder, name) = (self.path.parent().unwrap_or(Path::new("")), self.path.file_name());
        let name = name.with_context(|| format!("{} has no path", self.name))?.to_string_lossy();
        let mut files = Vec::new();
        follow(source, folder, &name, &mut files)?;
        Ok(files)
    }
}

impl File {
    /// The text, understood.
    pub(crate) fn syntax(&self) -> Result<syn::File> {
        syn::parse_file(&self.text).with_context(|| format!("{} is no Rust", self.path.display()))
    }
}

/// Takes the file of the module `name`, which lies in `folder`, and those of the modules in it.
fn follow(source: &Path, folder: &Path, name: &str, files: &mut Vec<File>) -> Result<()> {
    let below = folder.join(name);
    let places = [below.with_extension("rs"), below.join("mod.rs")];
    let Some(path) = places.into_iter().find(|path| source.join(path).is_file()) else {
        bail!("there is no module {} in {}", below.display(), source.display());
    };
    let text = fs::read_to_string(source.join(&path)).with_context(|| format!("cannot read {}", path.display()))?;
    let file = File { path, text };
    let inner: Vec<String> = file.syntax()?.items.iter().filter_map(module_elsewhere).collect();
    files.push(file);
    for name in inner {
        follow(source, &below, &name, files)?;
    }
    Ok(())
}

fn module_elsewhere(item: &syn::Item) -> Option<String> {
    let syn::Item::Mod(module) = item else { return None };
    let here = module.content.is_some() || module.attrs.iter().any(is_for_tests);
    (!here).then(|| module.ident.to_string())
}

/// `#[cfg(test)]`, alone or as a part of more.
pub(crate) fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let text = list.tokens.to_string().replace(' ', "");
    let words = || text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    list.path.is_ident("cfg") && words().any(|word| word == "test") && !text.contains("not(test)")
}
