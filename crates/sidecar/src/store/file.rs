//! The store's file: its form, and how it gets there.
//!
//! In: what is kept. Out: bytes, and back. Must not: leave a half-written file in the place of a whole one, or read one
//! that is not exactly what was written.

use bloodraven_brain::fence::{Disk, Marker, Note};
use bloodraven_brain::message::{OpeningWord, StartId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Epoch, Phase, Settings, View};
use bloodraven_brain::time::Millis;
use bloodraven_gtid::GtidSet;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use snafu::{ResultExt as _, Snafu, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The file, and what it is called while it is being written.
const FILE: &str = "sidecar.store";
const BESIDE: &str = "sidecar.store.new";

/// The first word of the file; the number goes up when its form changes.
const FORM: &str = "bloodraven-sidecar-1";

/// Larger than any store: a view, a marker and a few GTID sets.
const MAX_BYTES: u64 = 16 << 20;

/// Everything that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The store's id: half of the instance.
    pub(crate) id: String,
    /// What the brain keeps.
    pub(crate) disk: Disk,
    /// When the view was read by whoever sent it, for people.
    pub(crate) observed_at: String,
}

/// Why a store cannot be read or written.
#[derive(Debug, Snafu)]
pub(crate) enum Error {
    /// The system refused.
    #[snafu(display("STATE_DIR: cannot {doing} {}: {source}", path.display()))]
    System {
        /// What was tried.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The file is not what was written.
    #[snafu(display("STATE_DIR: {} is damaged: {why}", path.display()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Reads the store; none: there is no file.
pub(super) fn load(folder: &Path) -> Result<Option<Kept>, Error> {
    let path = folder.join(FILE);
    let size = match fs::metadata(&path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::System { doing: "look at", path, source }),
    };
    ensure!(size <= MAX_BYTES, DamagedSnafu { path: &path, why: "too large" });
    let bytes = fs::read(&path).context(SystemSnafu { doing: "read", path: &path })?;
    parse(&bytes).map(Some).map_err(|why| Error::Damaged { path, why })
}

/// Writes the store: beside, fsynced, renamed, the folder fsynced.
pub(super) fn save(folder: &Path, kept: &Kept) -> Result<(), Error> {
    let (path, beside) = (folder.join(FILE), folder.join(BESIDE));
    fs::create_dir_all(folder).context(SystemSnafu { doing: "make", path: folder })?;
    let mut file = File::create(&beside).context(SystemSnafu { doing: "write", path: &beside })?;
    file.write_all(print(kept).as_bytes()).context(SystemSnafu { doing: "write", path: &beside })?;
    file.sync_all().context(SystemSnafu { doing: "sync", path: &beside })?;
    fs::rename(&beside, &path).context(SystemSnafu { doing: "put in place", path: &path })?;
    let folder = File::open(folder).context(SystemSnafu { doing: "open", path: folder })?;
    folder.sync_all().context(SystemSnafu { doing: "sync", path: &path })
}

fn print(kept: &Kept) -> String {
    // A struct of texts, numbers and maps with text keys: there is nothing that has no form in JSON.
    let body = serde_json::to_string(&Body::of(kept)).unwrap_or_default();
    format!("{FORM} {}\n{body}\n", digest(&body))
}

fn parse(bytes: &[u8]) -> Result<Kept, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text")?;
    let (head, rest) = text.split_once('\n').ok_or("no first line")?;
    let (form, sum) = head.split_once(' ').ok_or("no checksum")?;
    let body = rest.strip_suffix('\n').ok_or("no end")?;
    if form != FORM {
        return Err("written in another form");
    }
    if sum != digest(body) {
        return Err("its checksum is another one");
    }
    let body: Body = serde_json::from_str(body).map_err(|_| "not what this release writes")?;
    body.into_kept().ok_or("a name in it is none")
}

fn digest(body: &str) -> String {
    Sha256::digest(body.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[derive(Serialize, Deserialize)]
struct Body {
    id: String,
    view: Option<KeptView>,
    marker: Option<KeptMarker>,
    note: Option<KeptNote>,
    conflict: Option<Epoch>,
}

#[derive(Serialize, Deserialize)]
struct KeptView {
    epoch: Epoch,
    tenure: Epoch,
    phase: KeptPhase,
    seat: Option<KeptMember>,
    voters: Vec<KeptMember>,
    lease_ms: u64,
    min_peers: u32,
    observed_at: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum KeptPhase {
    Revoking,
    Granting,
    Stable,
}

#[derive(Serialize, Deserialize)]
struct KeptMember {
    site: String,
    instance: String,
}

#[derive(Serialize, Deserialize)]
struct KeptMarker {
    tenure: Epoch,
    start: Option<u64>,
    promotion: GtidSet,
    excused: BTreeMap<String, GtidSet>,
}

#[derive(Serialize, Deserialize)]
struct KeptNote {
    tenure: Epoch,
    start: u64,
}

impl Body {
    fn of(kept: &Kept) -> Self {
        let Kept { id, disk: Disk { view, marker, note, conflict }, observed_at } = kept;
        Self {
            id: id.clone(),
            view: view.as_ref().map(|view| KeptView::of(view, observed_at)),
            marker: marker.as_ref().map(KeptMarker::of),
            note: note.as_ref().map(|Note { tenure, start }| KeptNote { tenure: *tenure, start: start.0 }),
            conflict: *conflict,
        }
    }

    fn into_kept(self) -> Option<Kept> {
        let Self { id, view, marker, note, conflict } = self;
        if id.is_empty() || id.contains('/') {
            return None;
        }
        let observed_at = view.as_ref().map(|view| view.observed_at.clone()).unwrap_or_default();
        let view = match view {
            Some(view) => Some(view.into_view()?),
            None => None,
        };
        let note = note.map(|KeptNote { tenure, start }| Note { tenure, start: StartId(start) });
        let disk = Disk { view, marker: marker.map(KeptMarker::into_marker), note, conflict };
        Some(Kept { id, disk, observed_at })
    }
}

impl KeptView {
    fn of(view: &View, observed_at: &str) -> Self {
        let View { epoch, tenure, phase, seat, voters, settings: Settings { lease_timeout, min_peers } } = view;
        Self {
            epoch: *epoch,
            tenure: *tenure,
            phase: match phase {
                Phase::Revoking => KeptPhase::Revoking,
                Phase::Granting => KeptPhase::Granting,
                Phase::Stable => KeptPhase::Stable,
            },
            seat: seat.as_ref().map(KeptMember::of),
            voters: voters.iter().map(KeptMember::of).collect(),
            lease_ms: lease_timeout.0,
            min_peers: *min_peers,
            observed_at: observed_at.to_owned(),
        }
    }

    fn into_view(self) -> Option<View> {
        let Self { epoch, tenure, phase, seat, voters, lease_ms, min_peers, observed_at: _ } = self;
        let seat = match seat {
            Some(seat) => Some(seat.into_member()?),
            None => None,
        };
        Some(View {
            epoch,
            tenure,
            phase: match phase {
                KeptPhase::Revoking => Phase::Revoking,
                KeptPhase::Granting => Phase::Granting,
                KeptPhase::Stable => Phase::Stable,
            },
            seat,
            voters: voters.into_iter().map(KeptMember::into_member).collect::<Option<_>>()?,
            settings: Settings { lease_timeout: Millis(lease_ms), min_peers },
        })
    }
}

impl KeptMember {
    fn of(member: &Member) -> Self {
        Self { site: member.site.to_string(), instance: member.instance.to_string() }
    }

    fn into_member(self) -> Option<Member> {
        let instance = Instance::parse(&self.instance)?;
        (!self.site.is_empty()).then(|| Member { site: Site::new(&self.site), instance })
    }
}

impl KeptMarker {
    fn of(marker: &Marker) -> Self {
        let Marker { tenure, start, word: OpeningWord { promotion_gtid, excused } } = marker;
        let excused = excused.iter().map(|(site, set)| (site.to_string(), set.clone())).collect();
        Self { tenure: *tenure, start: start.map(|start| start.0), promotion: promotion_gtid.clone(), excused }
    }

    fn into_marker(self) -> Marker {
        let Self { tenure, start, promotion, excused } = self;
        let excused = excused.into_iter().map(|(site, set)| (Site::new(&site), set)).collect();
        Marker { tenure, start: start.map(StartId), word: OpeningWord { promotion_gtid: promotion, excused } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Made, open};
    use crate::testing::Folder;

    fn kept() -> Kept {
        let member = |site: &str| Member::new(&Site::new(site), &Instance::new("pod", &format!("store-{site}")));
        let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77".parse().expect("a set");
        let view = View {
            epoch: 9,
            tenure: 7,
            phase: Phase::Granting,
            seat: Some(member("iad")),
            voters: vec![member("iad"), member("pdx")],
            settings: Settings { lease_timeout: Millis(20_000), min_peers: 1 },
        };
        let word = OpeningWord { promotion_gtid: set.clone(), excused: [(Site::new("pdx"), set)].into() };
        let disk = Disk {
            view: Some(view),
            marker: Some(Marker { tenure: 7, start: Some(StartId(41)), word }),
            note: Some(Note { tenure: 7, start: StartId(41) }),
            conflict: Some(8),
        };
        Kept { id: "store-iad".into(), disk, observed_at: "2026-01-02T03:04:05Z".into() }
    }

    #[test]
    fn what_was_saved_is_found() {
        let folder = Folder::new();
        for kept in [kept(), Kept { disk: Disk::default(), observed_at: String::new(), ..kept() }] {
            save(folder.path(), &kept).expect("room");
            assert_eq!(load(folder.path()).expect("readable"), Some(kept));
        }
        let left: Vec<_> = fs::read_dir(folder.path()).expect("there").flatten().map(|it| it.file_name()).collect();
        assert_eq!(left, [FILE], "nothing is left beside");
    }

    /// F-35: whoever lost its memory is somebody else.
    #[test]
    fn a_damaged_store_is_discarded_and_made_anew_under_a_new_id() {
        let whole = print(&kept());
        let flipped = whole.replacen("\"epoch\":9", "\"epoch\":8", 1);
        let torn = &whole[..whole.len() / 2];
        let no_end = &whole[..whole.len() - 1];
        let other_form = whole.replacen(FORM, "bloodraven-sidecar-9", 1);
        for damaged in [flipped.as_str(), torn, no_end, &other_form, "", "\n", "\u{0}\u{0}\u{0}"] {
            let folder = Folder::new();
            fs::write(folder.path().join(FILE), damaged).expect("a file");
            let found = open(folder.path(), || "new".into());
            assert!(matches!(found.made, Some(Made::Discarded(Error::Damaged { .. }))), "{damaged:?}");
            assert_eq!((found.kept.id.as_str(), found.kept.disk), ("new", Disk::default()));
            let again = open(folder.path(), || "newer".into());
            assert!(again.made.is_none() && again.kept.id == "new", "the new one stays");
        }
    }

    #[test]
    fn a_first_store_is_made_and_a_half_written_one_beside_it_means_nothing() {
        let folder = Folder::new();
        fs::write(folder.path().join(BESIDE), "half").expect("a file");
        let found = open(&folder.path().join("deeper"), || "new".into());
        assert!(matches!(found.made, Some(Made::First)));
        let found = open(folder.path(), || "new".into());
        assert!(matches!(found.made, Some(Made::First)));
    }

    #[test]
    fn a_full_disk_is_told_and_the_store_stays_as_it_was() {
        let folder = Folder::new();
        save(folder.path(), &kept()).expect("room");
        std::os::unix::fs::symlink("/dev/full", folder.path().join(BESIDE)).expect("a link");
        let newer = Kept { id: "other".into(), ..kept() };
        let error = save(folder.path(), &newer).expect_err("full").to_string();
        assert!(error.starts_with("STATE_DIR") && error.contains("sidecar.store.new"), "{error}");
        assert_eq!(load(folder.path()).expect("readable"), Some(kept()));
    }
}
