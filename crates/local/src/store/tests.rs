//! The store under writers that race, die and lie.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::Duration;

use bloodraven_brain::group::Outward;
use bloodraven_brain::group::command::Label;
use bloodraven_brain::lease::{Acquired, NewLease};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_operator::world::{Event, EventKind};
use serde_json::json;

use super::pods::PodFile;
use super::*;
use crate::testing::{Folder, again, store, told, until};

/// Tells a copy of this test program which store to write to until it is killed.
const WRITE_TO: &str = "BLOODRAVEN_TEST_WRITE_TO";

fn one(key: &str, text: &str) -> [(String, Option<String>); 1] {
    [(key.to_owned(), Some(text.to_owned()))]
}

#[test]
fn a_directory_is_opened_only_if_it_is_one_of_this_format() {
    let folder = Folder::new();
    assert!(!Store::exists(folder.path()).unwrap());
    let error = Store::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("no state directory") && error.contains("playground"), "{error}");
    let (store, _) = store(&folder);
    assert_eq!(Store::open(folder.path()).unwrap(), store);
    std::fs::write(folder.path().join("version"), "2\n").unwrap();
    let error = Store::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("format \"2\"") && error.contains("reads \"1\""), "{error}");
    let absent = Store::open(&folder.path().join("absent")).unwrap_err();
    assert!(matches!(absent, Error::NotOne { .. }), "{absent}");
}

#[test]
fn only_a_new_spec_is_a_new_generation() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let generation = |object: &object::Object| object.value.pointer("/metadata/generation").unwrap().as_u64().unwrap();
    let first = store.read_group().unwrap();
    assert_eq!((first.version, generation(&first)), (1, 1));
    let annotated = store.annotate(Some(1), &one("a", "b")).unwrap();
    assert_eq!((annotated.version, generation(&annotated)), (2, 1));
    let reported = store.change_group(Some(2), |value| {
        value["status"] = json!({ "activeSite": "iad" });
        Ok(())
    });
    let reported = reported.unwrap();
    assert_eq!((reported.version, generation(&reported)), (3, 1));
    let wished = store.patch_spec(None, &json!({ "failoverCooldown": "9s" })).unwrap();
    assert_eq!((wished.version, generation(&wished)), (4, 2));
    let same = store.patch_spec(None, &json!({ "failoverCooldown": "9s" })).unwrap();
    assert_eq!((same.version, generation(&same)), (4, 2), "nothing changed, nothing is written");
    assert_eq!(store.read_group().unwrap(), wished);
}

#[test]
fn what_admission_refuses_changes_nothing() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let before = store.read_group().unwrap();
    for (patch, part) in [
        (json!({ "pollInterval": "1ms" }), "pollInterval"),
        (json!({ "sites": [] }), "sites"),
        (json!({ "nonsense": 1 }), "nonsense"),
    ] {
        let error = store.patch_spec(None, &patch).unwrap_err();
        assert!(matches!(&error, Error::Refused { .. }) && error.to_string().contains(part), "{patch}: {error}");
        assert!(error.changed_nothing());
    }
    assert_eq!(store.read_group().unwrap(), before);
}

#[test]
fn of_two_writers_at_one_version_one_wins() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    for round in 0..50 {
        let version = store.read_group().unwrap().version;
        let write = |who: &str| store.annotate(Some(version), &one("who", &format!("{who}{round}")));
        let outcomes = std::thread::scope(|scope| {
            let starts = ["a", "b", "c"].map(|who| scope.spawn(move || write(who)));
            starts.map(|start| start.join().unwrap())
        });
        let won: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        assert_eq!(*won[0], store.read_group().unwrap());
        let lost = outcomes.iter().filter(|outcome| matches!(outcome, Err(Error::Conflict { .. })));
        assert_eq!(lost.count(), 2);
    }
}

#[test]
fn no_change_of_many_writers_is_lost() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let (writers, each) = (4, 25);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let store = &store;
            scope.spawn(move || {
                for turn in 0..each {
                    store.annotate(None, &one(&format!("w{writer}-{turn}"), "x")).unwrap();
                }
            });
        }
    });
    let object = store.read_group().unwrap();
    assert_eq!(object.version, 1 + writers * each);
    let count = object.value.pointer("/metadata/annotations").unwrap().as_object().unwrap().len();
    assert_eq!(u64::try_from(count).unwrap(), writers * each);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_never_no_history() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let path = folder.path().join(object::FILE);
    let whole = std::fs::read(&path).unwrap();
    let rows: [&[u8]; 5] = [b"", b"{}", b"[]", &whole[..whole.len() / 2], br#"{"metadata":{"resourceVersion":"x"}}"#];
    for bytes in rows {
        std::fs::write(&path, bytes).unwrap();
        for error in [store.read_group().unwrap_err(), store.annotate(None, &one("a", "b")).unwrap_err()] {
            let text = error.to_string();
            assert!(matches!(error, Error::Corrupt { .. }), "{text}");
            assert!(text.contains("group.json is corrupt") && text.contains("put a copy back"), "{text}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "what cannot be read is not overwritten");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(store.annotate(None, &one("a", "b")), Err(Error::Missing { .. })));
    std::fs::write(folder.path().join(lease::FILE), "{").unwrap();
    assert!(matches!(store.read_lease(), Err(Error::Corrupt { .. })));
    assert!(matches!(store.write_lease(None, &new_lease("a")), Err(Error::Corrupt { .. })));
}

#[test]
fn a_lock_that_is_held_is_waited_for_with_a_bound() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let held = store.lock().unwrap();
    let error = store.annotate(None, &one("a", "b")).unwrap_err();
    assert!(matches!(&error, Error::Locked { .. }) && error.changed_nothing(), "{error}");
    assert!(error.to_string().contains("store.lock is locked by another process"), "{error}");
    drop(held);
    assert_eq!(store.annotate(None, &one("a", "b")).unwrap().version, 2);
}

/// Not a test by itself: a writer that is killed by the test below.
#[test]
fn writer() {
    let Some(dir) = told(WRITE_TO) else { return };
    let store = Store::open(&dir).unwrap();
    for turn in 0..u64::MAX {
        store.annotate(None, &one("turn", &turn.to_string())).unwrap();
        store.record_event(&event("Tick")).unwrap();
    }
}

#[tokio::test]
async fn a_writer_killed_at_any_moment_leaves_the_old_or_the_new_and_no_lock() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let spawn = || again("store::tests::writer", WRITE_TO, folder.path()).spawn().unwrap();
    let mut last = store.read_group().unwrap().version;
    for round in 0..20_u64 {
        let mut writers: [Child; 2] = [spawn(), spawn()];
        // Each round ends at another point of their work: after so many of their writes, and some microseconds.
        let read = || store.read_group().unwrap().version;
        let found = until("the writers write", || (read() > last + round % 7).then_some(())).await;
        for _ in 0..round * 50 {
            std::hint::black_box(found);
        }
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        let after = store.annotate(None, &one("round", &round.to_string())).unwrap();
        assert!(after.version > last, "{} after {last}", after.version);
        last = after.version;
    }
    store.sweep();
    let left = std::fs::read_dir(folder.path()).unwrap().flatten();
    let left: Vec<_> =
        left.map(|file| file.file_name()).filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn new_lease(holder: &str) -> NewLease {
    NewLease {
        holder: Some(holder.into()),
        duration: Millis::from_secs(15),
        acquired: Acquired::At(Wall(0)),
        renewed: Wall(0),
        transitions: 0,
    }
}

#[test]
fn a_lease_is_made_once_and_written_only_at_its_version() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    assert_eq!(store.read_lease().unwrap(), None);
    let made = std::thread::scope(|scope| {
        let store = &store;
        let starts = ["a", "b"].map(|who| scope.spawn(move || store.write_lease(None, &new_lease(who))));
        starts.map(|start| start.join().unwrap())
    });
    assert_eq!(made.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{made:?}");
    let lease = store.read_lease().unwrap().unwrap();
    assert_eq!(&*lease.version, "1");
    for version in [None, Some("2"), Some("0"), Some("x"), Some("")] {
        assert!(matches!(store.write_lease(version, &new_lease("c")), Err(Error::Conflict { .. })), "{version:?}");
    }
    let next = store.write_lease(Some("1"), &new_lease("c")).unwrap();
    assert_eq!((next.holder.as_deref(), &*next.version), (Some("c"), "2"));
    assert_eq!(store.read_lease().unwrap().unwrap(), next);
}

#[test]
fn secrets_are_made_once_and_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&store.secrets()), mode(&store.key_file())), (0o700, 0o600));
    let (user, password) = store.account("app").unwrap();
    assert_eq!((user.as_str(), password.len()), ("app", 24));
    let all: BTreeSet<String> =
        secrets::ROLES.iter().filter_map(|(role, _)| store.account(role).ok()).map(|it| it.1).collect();
    assert_eq!(all.len(), secrets::ROLES.len() - 1, "each has its own; root has no name");
    let (key, previous) = store.keys().unwrap();
    assert_eq!((key.len(), previous), (32, None));
    secrets::create(&store).unwrap();
    assert_eq!(store.account("app").unwrap().1, password);
    assert_eq!(store.keys().unwrap().0, key);
    std::fs::write(store.secrets().join("app/password"), "\n").unwrap();
    assert!(matches!(store.account("app"), Err(Error::Corrupt { .. })));
    let (one, other) = (secrets::uuid().unwrap(), secrets::uuid().unwrap());
    assert!(one != other && one.len() == 36 && one.as_bytes()[14] == b'4', "{one}");
}

fn pod(site: &str, uid: &str) -> PodFile {
    PodFile {
        site: site.into(),
        uid: uid.into(),
        started: true,
        keeper_pid: Some(1),
        sidecar_pid: Some(2),
        deleting: false,
        ended: false,
        conf: String::new(),
    }
}

#[test]
fn a_pod_is_gone_when_it_has_ended_and_is_released_and_not_before() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let uids = |store: &Store| store.pods().unwrap().into_iter().map(|pod| pod.uid).collect::<Vec<_>>();
    let (one, two) = (pod("iad", "one"), pod("iad", "two"));
    store.write_pod(&one).unwrap();
    store.write_pod(&two).unwrap();
    let facts = store.pod_facts(&one).unwrap();
    assert!(facts.finalizer && facts.started && !facts.has_ended());
    store.release_pod("one").unwrap();
    assert!(!store.pod_facts(&one).unwrap().finalizer);
    assert_eq!(uids(&store), ["one", "two"], "it lives");
    let ended = |pod: &PodFile| PodFile { deleting: true, ended: true, ..pod.clone() };
    store.write_pod(&ended(&two)).unwrap();
    assert!(store.pod_facts(&ended(&two)).unwrap().has_ended());
    assert_eq!(uids(&store), ["one", "two"], "its end is not written down");
    store.release_pod("two").unwrap();
    assert_eq!(uids(&store), ["one"]);
    store.write_pod(&ended(&one)).unwrap();
    assert!(uids(&store).is_empty());
    for strange in ["absent", "", "../group"] {
        store.release_pod(strange).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path().join("pods")).unwrap().count(), 0);
    std::fs::write(folder.path().join("pods/bad.json"), "{").unwrap();
    assert!(matches!(store.pods(), Err(Error::Corrupt { .. })), "a pod that cannot be read is not a pod that is gone");
}

fn member(site: &str, pod: &str) -> Member {
    Member { site: Site::new(site), instance: Instance::new(pod, "s") }
}

fn outward(epoch: u64, primary: Option<Member>, healthy: &[(&str, Option<bool>)]) -> Outward {
    let label = |(site, healthy): &(&str, Option<bool>)| (Site::new(site), Label { fenced: false, healthy: *healthy });
    Outward { epoch, primary, labels: healthy.iter().map(label).collect(), ..Outward::default() }
}

#[test]
fn what_is_left_as_it_is_stays_and_the_past_shows_nothing() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    assert_eq!(store.shown().unwrap(), outward::Shown::default());
    let first = outward(5, Some(member("iad", "p1")), &[("pdx", Some(true))]);
    let first = Outward { dns: Some(Site::new("iad")), taints: Some([(Site::new("pdx"), true)].into()), ..first };
    store.show(&first).unwrap();
    let shown = store.show(&outward(6, Some(member("iad", "p1")), &[("pdx", None)])).unwrap();
    assert_eq!(shown, store.shown().unwrap());
    assert!(shown.sites["pdx"].healthy && shown.taints["pdx"] && shown.dns.as_deref() == Some("iad"));
    assert_eq!(shown.primary.as_ref().map(|it| (it.site.as_str(), it.pod())), Some(("iad", "p1")));
    let late = store.show(&outward(5, Some(member("pdx", "p2")), &[])).unwrap_err();
    assert!(matches!(late, Error::Refused { .. }), "{late}");
    assert_eq!(store.shown().unwrap(), shown);
    std::fs::write(folder.path().join(outward::FILE), "{").unwrap();
    assert!(matches!(store.shown(), Err(Error::Corrupt { .. })));
    store.show(&first).unwrap();
    assert_eq!(store.shown().unwrap().epoch, 5);
}

#[test]
fn events_are_kept_in_order_and_within_bounds() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let long = "x".repeat(100_000);
    for turn in 0..60 {
        store.record_event(&Event { message: format!("{turn} {long}"), ..event("Tick") }).unwrap();
    }
    let found = store.events(7).unwrap();
    let turns: Vec<String> = found.iter().map(|line| line.message.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(turns, ["53", "54", "55", "56", "57", "58", "59"]);
    let size = |name: &str| folder.path().join(name).metadata().unwrap().len();
    assert!(size(events::FILE) < 3 << 20 && size(events::OLDER) < 3 << 20);
}

fn event(reason: &str) -> Event {
    Event { kind: EventKind::Normal, reason: reason.into(), message: String::new(), at: Wall(0) }
}

#[tokio::test]
async fn a_request_of_another_process_is_seen_at_once_and_what_nobody_decides_by_is_not() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    let watch = store.watch().unwrap();
    let mut count = watch.count();
    store.show(&outward(1, None, &[])).unwrap();
    store.write_lease(None, &new_lease("a")).unwrap();
    store.record_event(&event("Tick")).unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), count.changed()).await.is_err());
    store.annotate(None, &one("bloodraven.shipstream.io/planned-failover", "pdx")).unwrap();
    crate::testing::within("the request", count.changed()).await.unwrap();
    let uid = "0b0e8a3c-0000-4000-8000-000000000001";
    store.write_pod(&pod("iad", uid)).unwrap();
    crate::testing::within("the pod", count.changed()).await.unwrap();
    store.release_pod(uid).unwrap();
    crate::testing::within("its release", count.changed()).await.unwrap();
}

#[test]
fn a_wish_for_a_new_life_names_the_life_that_is_meant() {
    let folder = Folder::new();
    let (store, _) = store(&folder);
    store.ask_roll("iad").unwrap();
    assert!(store.rolls().unwrap().is_empty(), "nobody lives there");
    store.write_pod(&pod("iad", "one")).unwrap();
    store.ask_roll("iad").unwrap();
    store.ask_roll("iad").unwrap();
    assert_eq!(store.rolls().unwrap(), [("iad".to_owned(), "one".to_owned())]);
}
