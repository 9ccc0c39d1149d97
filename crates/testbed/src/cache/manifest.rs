//! The seal of a cache entry: every file in it and its size.
//!
//! In: a folder. Out: the file `.complete` in it, or what is wrong with the folder by that file. Must not: read the
//! files themselves, since every run looks at its entries.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file that says an entry is complete.
pub(super) const MARKER: &str = ".complete";

/// The first line; its number changes with the format, which makes older entries look damaged and be built anew.
const HEAD: &str = "bloodraven cache entry 1";

/// Why an entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It was never built.
    Absent,
    /// The folder is there, its seal is not.
    Unsealed,
    /// The seal is cut short or of another format.
    Seal,
    /// A file is gone.
    Lost(PathBuf),
    /// A file has another size than when the entry was built.
    Size(PathBuf),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Unsealed => write!(f, "{MARKER} is missing"),
            Self::Seal => write!(f, "{MARKER} is unreadable"),
            Self::Lost(path) => write!(f, "{} is missing", path.display()),
            Self::Size(path) => write!(f, "{} has changed size", path.display()),
        }
    }
}

/// Writes the seal: the head, a line `<size> <path>` for everything that is no folder, and the number of lines.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    let files = files(folder)?;
    let mut out = BufWriter::new(File::create(folder.join(MARKER))?);
    writeln!(out, "{HEAD}")?;
    for (path, size) in &files {
        let name = path.as_os_str().as_bytes();
        if name.contains(&b'\n') {
            return Err(io::Error::other(format!("{}: no line end may be in a cached file's name", path.display())));
        }
        write!(out, "{size} ")?;
        out.write_all(name)?;
        out.write_all(b"\n")?;
    }
    writeln!(out, "end {}", files.len())?;
    out.flush()
}

/// Compares the folder with its seal. Files that were added are not looked for: they harm nothing.
pub(super) fn check(folder: &Path) -> Result<(), Damage> {
    let seal = match std::fs::read(folder.join(MARKER)) {
        Ok(seal) => seal,
        Err(_) if folder.symlink_metadata().is_err() => return Err(Damage::Absent),
        Err(_) => return Err(Damage::Unsealed),
    };
    for (path, size) in parse(&seal).ok_or(Damage::Seal)? {
        match folder.join(path).symlink_metadata() {
            Err(_) => return Err(Damage::Lost(path.to_owned())),
            Ok(found) if found.len() != size => return Err(Damage::Size(path.to_owned())),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// The files of a seal; nothing when a line is not understood or the end is missing.
fn parse(seal: &[u8]) -> Option<Vec<(&Path, u64)>> {
    let mut lines = seal.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    if lines.next()? != HEAD.as_bytes() {
        return None;
    }
    let end = lines.next_back()?.strip_prefix(b"end ")?;
    let files = lines.map(parse_line).collect::<Option<Vec<_>>>()?;
    (number(end)? == u64::try_from(files.len()).ok()?).then_some(files)
}

fn parse_line(line: &[u8]) -> Option<(&Path, u64)> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (size, path) = (&line[..space], &line[space + 1..]);
    Some((Path::new(OsStr::from_bytes(path)), number(size)?))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Everything below the folder that is no folder, with its size (a link's size is that of its text), without the seal.
/// Bounded by the tree: links are not followed.
pub(super) fn files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for found in folder.join(&below).read_dir()? {
            let found = found?;
            let path = below.join(found.file_name());
            if found.file_type()?.is_dir() {
                folders.push(path);
            } else if path != Path::new(MARKER) {
                files.push((path, found.metadata()?.len()));
            }
        }
    }
    files.sort();
    Ok(files)
}
