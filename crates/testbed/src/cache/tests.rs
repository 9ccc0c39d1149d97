//! The promises of the cache, each as a test: complete or absent, built once, damage seen, leftovers swept.

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::testing::Folder;

fn fill(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("usr/lib"))?;
    fs::write(folder.join("usr/lib/program"), b"twelve bytes")?;
    fs::write(folder.join("empty"), b"")?;
    std::os::unix::fs::symlink("lib/program", folder.join("usr/link"))
}

fn never(_: &Path) -> io::Result<()> {
    panic!("a complete entry must not be built again");
}

/// The names in the folder of the kind, without the lock files.
fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = root
        .join("kind")
        .read_dir()
        .into_iter()
        .flatten()
        .map(|found| found.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension() != Some("lock".as_ref()))
        .collect();
    names.sort();
    names
}

#[test]
fn an_entry_is_built_once_and_found_afterwards() {
    let root = Folder::new();
    let cache = Cache::at(root.path());
    assert_eq!(cache.get("kind", "key"), None);
    let path = cache.entry("kind", "key", fill).unwrap();
    assert_eq!(path, root.path().join("kind/key"));
    assert_eq!(fs::read(path.join("usr/lib/program")).unwrap(), b"twelve bytes");
    assert_eq!(cache.entry("kind", "key", never).unwrap(), path);
    assert_eq!(cache.get("kind", "key"), Some(path));
    assert_eq!(names(root.path()), ["key"]);
}

#[test]
fn a_build_that_fails_leaves_nothing_and_the_next_one_builds() {
    let root = Folder::new();
    let cache = Cache::at(root.path());
    let error = cache
        .entry("kind", "key", |folder| {
            fs::write(folder.join("half"), b"half")?;
            Err(io::Error::other("the registry did not answer"))
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot make kind/key: the registry did not answer");
    assert!(names(root.path()).is_empty(), "left behind: {:?}", names(root.path()));
    cache.entry("kind", "key", fill).unwrap();
}

#[test]
fn a_build_that_panics_leaves_nothing() {
    let root = Folder::new();
    let cache = Cache::at(root.path());
    let build = |folder: &Path| -> io::Result<()> {
        fs::write(folder.join("half"), b"half")?;
        panic!("the builder broke");
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cache.entry("kind", "key", build)));
    assert!(outcome.is_err());
    assert!(names(root.path()).is_empty(), "left behind: {:?}", names(root.path()));
    cache.entry("kind", "key", fill).unwrap();
}

#[test]
fn concurrent_builders_build_once() {
    let root = Folder::new();
    let (built, start) = (AtomicUsize::new(0), Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                let path = Cache::at(root.path()).entry("kind", "key", |folder| {
                    built.fetch_add(1, Ordering::SeqCst);
                    fill(folder)
                });
                assert!(path.unwrap().join("usr/lib/program").is_file());
            });
        }
    });
    assert_eq!(built.load(Ordering::SeqCst), 1);
}

#[test]
fn unfinished_folders_of_dead_builders_are_swept_and_those_of_live_ones_stay() {
    let root = Folder::new();
    let kind = root.path().join("kind");
    for name in [".key.unfinished-1-0", ".other.unfinished-1-0", ".live.unfinished-1-0", "kept"] {
        fs::create_dir_all(kind.join(name).join("below")).unwrap();
    }
    fs::write(kind.join(".other.lock"), b"").unwrap();
    let live = File::create(kind.join(".live.lock")).unwrap();
    live.lock().unwrap();
    Cache::at(root.path()).entry("kind", "key", fill).unwrap();
    assert_eq!(names(root.path()), [".live.unfinished-1-0", "kept", "key"]);
}

#[test]
fn a_damaged_entry_is_recognised_and_built_anew() {
    type Harm = fn(&Path) -> io::Result<()>;
    let check = |harm: Harm, expect: Damage| {
        let root = Folder::new();
        let cache = Cache::at(root.path());
        let path = cache.entry("kind", "key", fill).unwrap();
        harm(&path).unwrap();
        assert_eq!(manifest::check(&path), Err(expect.clone()));
        assert_eq!(cache.get("kind", "key"), None, "{expect}");
        cache.entry("kind", "key", fill).unwrap();
        assert_eq!(manifest::check(&path), Ok(()), "{expect}");
        assert_eq!(names(root.path()), ["key"], "{expect}");
    };
    let program = || PathBuf::from("usr/lib/program");
    check(|path| fs::remove_dir_all(path), Damage::Absent);
    check(|path| fs::remove_file(path.join(".complete")), Damage::Unsealed);
    check(|path| fs::write(path.join(".complete"), b""), Damage::Seal);
    check(|path| fs::write(path.join(".complete"), b"bloodraven cache entry 1\n"), Damage::Seal);
    check(|path| fs::write(path.join(".complete"), b"bloodraven cache entry 0\nend 0\n"), Damage::Seal);
    check(|path| fs::remove_file(path.join("usr/lib/program")), Damage::Lost(program()));
    check(|path| fs::remove_file(path.join("usr/link")), Damage::Lost("usr/link".into()));
    check(|path| fs::write(path.join("usr/lib/program"), b"twelve"), Damage::Size(program()));
    check(|path| fs::write(path.join("empty"), b"x"), Damage::Size("empty".into()));
}

#[test]
fn a_seal_cut_anywhere_is_never_taken_for_a_whole_one() {
    let root = Folder::new();
    let path = Cache::at(root.path()).entry("kind", "key", fill).unwrap();
    let seal = fs::read(path.join(".complete")).unwrap();
    for length in 0..seal.len() {
        fs::write(path.join(".complete"), &seal[..length]).unwrap();
        assert_eq!(manifest::check(&path), Err(Damage::Seal), "cut to {length} of {} bytes", seal.len());
    }
}

#[test]
fn names_that_lead_out_of_the_cache_are_refused() {
    let root = Folder::new();
    for (kind, key) in
        [("", "k"), ("k", ""), ("..", "k"), ("k", ".."), ("k", "a/b"), ("a/b", "k"), ("k", ".x"), ("k", "a b")]
    {
        let outcome = Cache::at(root.path()).entry(kind, key, never);
        assert!(matches!(outcome, Err(Error::Name { .. })), "{kind:?} {key:?}: {outcome:?}");
    }
}

#[test]
fn a_cache_folder_that_cannot_be_written_is_named_with_the_way_out() {
    let root = Folder::new();
    fs::write(root.path().join("file"), b"").unwrap();
    let error = Cache::at(root.path().join("file")).entry("kind", "key", never).unwrap_err().to_string();
    assert!(error.contains("/file/kind") && error.contains("BLOODRAVEN_CACHE_DIR"), "{error}");
}

#[test]
fn the_inventory_tells_states_and_sizes_and_an_entry_can_be_removed() {
    let root = Folder::new();
    let cache = Cache::at(root.path());
    let path = cache.entry("kind", "whole", fill).unwrap();
    fs::remove_file(cache.entry("kind", "torn", fill).unwrap().join("empty")).unwrap();
    fs::create_dir(root.path().join("kind/.dead.unfinished-1-0")).unwrap();
    let found: Vec<_> = cache.inventory(&["kind", "absent"]).into_iter().map(|it| (it.key, it.state)).collect();
    let torn = State::Damaged(Damage::Lost("empty".into()));
    assert_eq!(found, [("dead".into(), State::Unfinished), ("torn".into(), torn), ("whole".into(), State::Complete)]);
    assert_eq!(size_of(&path).unwrap(), 12 + 11, "the program and the text of the link");
    cache.remove("kind", "whole").unwrap();
    assert_eq!(cache.get("kind", "whole"), None);
}
