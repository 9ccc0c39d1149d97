//! The table of decisions, and the steps on real folders.

use super::testing::Place;
use super::*;

impl Place {
    fn folders(&self) -> Folders {
        Folders::open(&self.0.join("data"), &self.0.join("state")).unwrap()
    }

    fn put(&self, name: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"x").unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }
}

#[test]
fn only_an_unfinished_first_boot_of_ours_is_done_again() {
    let check = |filled, started, done, expect| assert_eq!(plan(Found { filled, started, done }), expect);
    check(false, false, false, Plan::Initialise);
    check(false, true, false, Plan::Initialise);
    check(false, false, true, Plan::Initialise);
    check(false, true, true, Plan::Initialise);
    check(true, false, false, Plan::Start);
    check(true, true, false, Plan::Again);
    check(true, false, true, Plan::Start);
    check(true, true, true, Plan::Start);
}

#[test]
fn a_first_boot_is_begun_cut_short_done_again_and_finished() {
    let place = Place::new();
    let folders = place.folders();
    assert_eq!(folders.look().unwrap(), Found { filled: false, started: false, done: false });
    folders.begin().unwrap();
    place.put("data/ibdata1");
    place.put("data/mysql/t.ibd");
    assert_eq!(plan(folders.look().unwrap()), Plan::Again);
    folders.begin().unwrap();
    folders.empty().unwrap();
    assert_eq!(plan(folders.look().unwrap()), Plan::Initialise);
    place.put("data/ibdata1");
    assert!(!folders.is_ours());
    folders.finish().unwrap();
    assert_eq!(plan(folders.look().unwrap()), Plan::Start);
    assert!(folders.is_ours() && place.has("data/ibdata1"));
}

#[test]
fn a_marker_about_another_folder_says_nothing_about_this_one() {
    let place = Place::new();
    Folders::open(&place.0.join("other"), &place.0.join("state")).unwrap().begin().unwrap();
    place.put("data/ibdata1");
    assert_eq!(plan(place.folders().look().unwrap()), Plan::Start);
    std::fs::write(place.0.join("state/init-started"), b"").unwrap();
    assert_eq!(plan(place.folders().look().unwrap()), Plan::Start);
}

#[test]
fn hidden_files_and_a_volumes_own_folder_are_neither_content_nor_removed() {
    let place = Place::new();
    place.put("data/lost+found/x");
    place.put("data/.snapshot/x");
    let folders = place.folders();
    assert!(!folders.look().unwrap().filled);
    place.put("data/a/b/c");
    std::os::unix::fs::symlink(&place.0, place.0.join("data/away")).unwrap();
    folders.empty().unwrap();
    assert!(!folders.look().unwrap().filled && place.has("data/lost+found/x") && place.has("data/.snapshot/x"));
    assert!(place.has("state"), "what a link names is not touched");
}

#[test]
fn a_new_identity_is_asked_for_once() {
    let place = Place::new();
    let folders = place.folders();
    place.put("data/auto.cnf");
    assert!(!folders.renew_identity().unwrap() && place.has("data/auto.cnf"));
    place.put("state/new-identity");
    assert!(folders.renew_identity().unwrap());
    assert!(!place.has("data/auto.cnf") && !place.has("state/new-identity"));
}

#[test]
fn what_cannot_be_written_is_named() {
    let place = Place::new();
    let folders = place.folders();
    std::fs::remove_dir_all(place.0.join("state")).unwrap();
    let error = folders.begin().unwrap_err().to_string();
    assert!(error.starts_with("cannot write the marker ") && error.contains("/state/init-started"), "{error}");
}
