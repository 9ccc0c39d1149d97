//! The one writer of a group's object: what is kept is saved before anything that depends on it, what people see is written
//! when there is nothing better to do.
//!
//! In: loads and saves of the brain's, the leader as it is. Out: what is stored; how each save ended. Must not: write
//! without leadership, answer a save with more than is known, or let what people see delay what is kept.
//!
//! **A save** writes the record's annotation, then the status if more is to be kept than the annotation holds, each bound to
//! the version that was last read or written. Stored means that either copy took the record; a move waits for no second one,
//! which follows a moment later with the next picture. Somebody else's write (an admin's new spec, a removed request) makes
//! that version stale without changing anything that this leader rests on. So after a conflict the object is read again: if it
//! still keeps exactly what this leader knows to be stored, the write is made on top of the new version; if not, nobody knows what is stored any more, and the brain
//! hears so. A copy that was taken away, is behind or was spoilt by hand is written anew from memory, as long as what can be
//! read still says what this leader knows, or is as it left it: nothing is lost by that. One that says more is never
//! overwritten.

use super::leader::ToLeader;
use super::report::{Sight, Status};
use super::{Common, STORE_BOUND, Shared};
use crate::object::Object;
use crate::pace;
use crate::servers::Servers;
use crate::world::{Refused, Version, World};
use bloodraven_blueprint::status::Annotations;
use bloodraven_brain::group::input::{Loaded, Saved};
use bloodraven_brain::group::kept::SiteKept;
use bloodraven_brain::group::{Input, Kept, SaveId, Stored};
use bloodraven_brain::time::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// A whole save, retries included: the brain doubts one after 10 s.
const SAVE_BOUND: Duration = Duration::from_millis(9500);

/// After so many conflicts in one write somebody else is writing all the time.
const CONFLICTS: usize = 4;

/// A second copy that is refused is offered again after so long.
const COPY_AGAIN: Duration = Duration::from_secs(30);

/// One that was written anew: who takes it away again and again is not answered at the same pace.
const COPY_SOON: Duration = Duration::from_secs(5);

/// What people see is written so often, at most.
const REPORT_PACE: Duration = Duration::from_secs(1);

/// The second copy of what was stored is given so long to be of use: the steps of a move follow each other faster.
const COPY_AFTER: Duration = Duration::from_millis(250);

/// By then the world has told of a write, unless it is in trouble.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// All writes of one picture. Who is longer at it has an API server that is no use to pictures, and has to show that it lives.
const REPORT_BOUND: Duration = Duration::from_secs(10);

/// What the leader wants of the store.
#[derive(Debug)]
pub(super) enum ToStore {
    Load,
    /// `base` is what the leader knows to be stored.
    Save {
        id: SaveId,
        kept: Box<Kept>,
        base: Arc<Kept>,
    },
}

/// The object as this writer knows it; none: not read yet, or in doubt.
struct Known {
    version: Version,
    /// As it was last written or read.
    status: Status,
    /// What is kept in both copies; none: that cannot be read.
    kept: Option<Kept>,
    /// The annotations that are ours.
    annotations: Values,
    /// The status lacks what the annotation took.
    behind: bool,
}

/// Annotations, by their keys; none: not there.
type Values = BTreeMap<String, Option<String>>;

/// See above.
pub(super) struct Store<W, S> {
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    inbox: mpsc::Sender<ToLeader>,
    known: Option<Known>,
    /// The version whose copies were last compared with what is known.
    compared: Option<Version>,
    /// When what the world tells may be compared: what this writer wrote has been told by then.
    compare_due: Instant,
    /// When a missing second copy may be written.
    copy_due: Instant,
    /// When a status may be written that says nothing new but that time goes by.
    progress_due: Instant,
}

/// What the object was found to keep after a conflict.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// What it was thought to keep.
    Same,
    /// Something else, or something that cannot be read.
    Other,
    /// Nobody answered.
    Nothing,
}

/// What a status is written for.
#[derive(Clone, Copy)]
enum Purpose {
    Keep,
    /// Something that is kept in the annotation already.
    Copy,
    Show,
}

/// How one write ended.
enum Wrote {
    Done,
    /// Surely not done, and this way is closed.
    Denied,
    /// What is stored is not what was thought, or nobody knows.
    Doubt,
}

/// Runs for one reign.
pub(super) async fn run<W: World, S: Servers>(
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    inbox: mpsc::Sender<ToLeader>,
    mut wishes: mpsc::Receiver<ToStore>,
    mut sights: watch::Receiver<Option<Arc<Sight>>>,
) {
    // A save may take its whole bound; pictures come every second.
    let beat = common.beats.begin(format!("store {}", shared.id), Millis::from_secs(5));
    let now = Instant::now();
    let mut store = Store {
        common,
        shared,
        inbox,
        known: None,
        compared: None,
        compare_due: now,
        copy_due: now,
        progress_due: now,
    };
    let mut report_due = Instant::now();
    loop {
        beat.beat();
        let wish = tokio::select! {
            biased;
            wish = wishes.recv() => wish,
            changed = next_sight(&mut sights, report_due) => {
                if !changed {
                    return;
                }
                report_due = Instant::now() + REPORT_PACE;
                let sight = sights.borrow_and_update().clone();
                // A save does not wait: the report is dropped, and whether it was written is found out by the version.
                tokio::select! {
                    biased;
                    wish = wishes.recv() => wish,
                    _ = timeout(REPORT_BOUND, Box::pin(store.report(sight))) => continue,
                }
            }
        };
        beat.beat();
        match wish {
            None => return,
            Some(ToStore::Load) => Box::pin(store.load()).await,
            Some(ToStore::Save { id, kept, base }) => {
                let until = Instant::now() + SAVE_BOUND;
                let saved = timeout_at(until, Box::pin(store.save(&kept, &base))).await.unwrap_or(Saved::Unknown);
                if saved == Saved::Unknown {
                    store.known = None;
                }
                if store.known.as_ref().is_some_and(|known| known.behind) {
                    report_due = Instant::now() + COPY_AFTER;
                }
                store.tell(Input::Saved { id, saved }).await;
            }
        }
    }
}

/// The next picture, and not before its time.
async fn next_sight(sights: &mut watch::Receiver<Option<Arc<Sight>>>, due: Instant) -> bool {
    tokio::time::sleep_until(due).await;
    sights.changed().await.is_ok()
}

impl<W: World, S: Servers> Store<W, S> {
    async fn tell(&self, input: Input) {
        // The leader is gone: so is this task, soon.
        let _ = self.inbox.send(ToLeader::Input(input)).await;
    }

    /// Both copies, from the store itself.
    async fn load(&mut self) {
        let loaded = match self.read().await {
            Some(object) => {
                let kept = object.kept();
                self.know(&object, kept.clone().ok());
                match kept {
                    Ok(kept) => Loaded::Kept(Box::new(kept)),
                    Err(corrupt) => Loaded::Corrupt(corrupt.to_string()),
                }
            }
            None => Loaded::Failed,
        };
        self.tell(Input::Loaded(loaded)).await;
    }

    /// The object as it is stored now; none: nobody answered, it is gone, or it is another one of the same name.
    async fn read(&self) -> Option<Object> {
        let read = timeout(STORE_BOUND, self.common.world.read(&self.shared.id)).await;
        let object = Object::read(Arc::new(read.ok()?.ok()??)).ok()?;
        (object.uid == self.shared.uid).then_some(object)
    }

    fn know(&mut self, object: &Object, kept: Option<Kept>) {
        let (version, status) = (object.version.clone(), Status::read(object.status()));
        let annotations = ours(object);
        let kept = kept.map(plain);
        let behind = status.kept().map(plain) != kept;
        self.known = Some(Known { version, status, kept, annotations, behind });
    }

    /// The annotation first, then what it does not hold.
    async fn save(&mut self, kept: &Kept, base: &Kept) -> Saved {
        let Some(known) = &self.known else { return Saved::Unknown };
        let Ok((_, annotations)) = known.status.keeping(kept) else {
            tracing::error!(fg = %self.shared.id, "what is to be kept has no form in status; it is not stored");
            return Saved::Unknown;
        };
        if base.anchor() == kept.anchor() {
            return match self.save_status(kept, base).await {
                Wrote::Done => Saved::All,
                Wrote::Denied => Saved::Denied,
                Wrote::Doubt => Saved::Unknown,
            };
        }
        let Ok(held) = annotations.held() else { return Saved::Unknown };
        let fits = held == kept.anchor();
        let between = Kept::join(held, base.clone());
        // What is to be kept stands in both copies together then; the status follows with the next picture.
        let is_all = plain(between.clone()) == plain(kept.clone());
        match self.save_annotations(&annotations, base, &between).await {
            Wrote::Done if is_all => Saved::All,
            Wrote::Done => match self.save_status(kept, &between).await {
                Wrote::Done => Saved::All,
                Wrote::Denied | Wrote::Doubt if fits => Saved::RecordOnly,
                Wrote::Denied | Wrote::Doubt => Saved::Unknown,
            },
            // Another path may be open.
            Wrote::Denied => match self.save_status(kept, base).await {
                Wrote::Done => Saved::All,
                Wrote::Denied | Wrote::Doubt => Saved::Unknown,
            },
            Wrote::Doubt => Saved::Unknown,
        }
    }

    /// `then` is what both copies keep together once it is written.
    async fn save_annotations(&mut self, annotations: &Annotations, base: &Kept, then: &Kept) -> Wrote {
        let values = values(annotations);
        for _ in 0..CONFLICTS {
            let Some(version) = self.known.as_ref().map(|known| known.version.clone()) else { return Wrote::Doubt };
            let world = &self.common.world;
            let call = self.common.leadership.guard(world.save_annotations(&self.shared.id, &version, &values));
            let wrote = timeout(STORE_BOUND, call).await;
            match self.ended("annotation", wrote.ok().and_then(Result::ok)) {
                Ok(version) => {
                    if let Some(known) = &mut self.known {
                        known.version = version;
                        known.kept = Some(plain(then.clone()));
                        known.annotations = values;
                        known.behind = true;
                    }
                    return Wrote::Done;
                }
                Err(Some(ended)) => return ended,
                Err(None) if self.look_again(base).await == Found::Same => {}
                Err(None) => return Wrote::Doubt,
            }
        }
        Wrote::Doubt
    }

    async fn save_status(&mut self, kept: &Kept, base: &Kept) -> Wrote {
        for _ in 0..CONFLICTS {
            let Some(known) = &self.known else { return Wrote::Doubt };
            let Ok((status, _)) = known.status.keeping(kept) else { return Wrote::Denied };
            match self.write_status(Purpose::Keep, status, Some(plain(kept.clone()))).await {
                Ok(()) => return Wrote::Done,
                Err(Some(ended)) => return ended,
                Err(None) if self.look_again(base).await == Found::Same => {}
                Err(None) => return Wrote::Doubt,
            }
        }
        Wrote::Doubt
    }

    /// An error without a reason is a conflict.
    async fn write_status(
        &mut self,
        purpose: Purpose,
        status: Status,
        kept: Option<Kept>,
    ) -> Result<(), Option<Wrote>> {
        let Some(version) = self.known.as_ref().map(|known| known.version.clone()) else {
            return Err(Some(Wrote::Doubt));
        };
        let text = status.to_json();
        let (world, group) = (&self.common.world, &self.shared.id);
        let call = async {
            match purpose {
                Purpose::Keep => world.save_status(group, &version, &text).await,
                Purpose::Copy => world.copy_status(group, &version, &text).await,
                Purpose::Show => world.show_status(group, &version, &text).await,
            }
        };
        let wrote = timeout(STORE_BOUND, self.common.leadership.guard(call)).await;
        let version = self.ended("status", wrote.ok().and_then(Result::ok))?;
        if let Some(known) = &mut self.known {
            *known =
                Known { version, status, kept, annotations: std::mem::take(&mut known.annotations), behind: false };
        }
        Ok(())
    }

    fn ended(
        &mut self,
        resource: &'static str,
        wrote: Option<Result<Version, Refused>>,
    ) -> Result<Version, Option<Wrote>> {
        let ended = match wrote {
            Some(Ok(version)) => {
                self.compare_due = Instant::now() + TOLD_AFTER;
                return Ok(version);
            }
            Some(Err(Refused::Conflict)) => return Err(None),
            Some(Err(Refused::Denied { because })) => {
                tracing::warn!(fg = %self.shared.id, error = because, "the store refuses the {resource}");
                Wrote::Denied
            }
            Some(Err(Refused::Unknown { because })) => {
                tracing::warn!(fg = %self.shared.id, error = because, "whether the {resource} was stored is not known");
                Wrote::Doubt
            }
            None => Wrote::Doubt,
        };
        self.common.ears.write_failed(resource);
        Err(Some(ended))
    }

    /// After a conflict: what the object keeps. If that is what it was thought to keep, its version is known again.
    async fn look_again(&mut self, base: &Kept) -> Found {
        let Some(object) = self.read().await else { return Found::Nothing };
        let base = plain(base.clone());
        let left = self.known.as_ref().and_then(|known| known.status.kept());
        if !object.copies().tell(&base, left.as_ref()) {
            return Found::Other;
        }
        self.know(&object, Some(base));
        Found::Same
    }

    /// What people see, and what is missing of either copy. Lost without harm; tried again with the next picture.
    async fn report(&mut self, sight: Option<Arc<Sight>>) {
        let (Some(sight), Some(known)) = (sight, &self.known) else { return };
        if matches!(sight.group.stored, Stored::Corrupt(..)) {
            return self.report_corrupt(&sight).await;
        }
        let Some(base) = sight.group.kept().map(|kept| plain(Kept::clone(&kept))) else { return };
        // A picture from before the last save would show what is over.
        if known.kept.as_ref() != Some(&base) {
            return;
        }
        if self.compare(&base).await == Found::Other {
            return self.doubt().await;
        }
        let Some(known) = &self.known else { return };
        let Ok((status, annotations)) = known.status.keeping(&base) else { return };
        let is_news = self.is_news(&status.showing(&sight), &known.status);
        if known.annotations != values(&annotations) && Instant::now() >= self.copy_due {
            tracing::warn!(fg = %self.shared.id, "annotations are not as they were stored; they are written anew from memory");
            let wrote = self.save_annotations(&annotations, &base, &base).await;
            self.copy_due = Instant::now() + if matches!(wrote, Wrote::Done) { COPY_SOON } else { COPY_AGAIN };
        }
        if is_news {
            self.progress_due = self.next_progress();
            self.show(&sight, &base).await;
        }
    }

    /// The second copy of the record goes with it: somebody who writes all the time must not hold it up.
    async fn show(&mut self, sight: &Sight, base: &Kept) {
        for _ in 0..CONFLICTS {
            let Some(known) = &self.known else { return };
            let Ok((status, _)) = known.status.keeping(base) else { return };
            let purpose = if known.behind { Purpose::Copy } else { Purpose::Show };
            let Err(None) = self.write_status(purpose, status.showing(sight), Some(base.clone())).await else { return };
            match self.look_again(base).await {
                Found::Same => {}
                Found::Nothing => return,
                Found::Other => return self.doubt().await,
            }
        }
    }

    async fn doubt(&mut self) {
        tracing::warn!(fg = %self.shared.id, "somebody else changed what is stored; it is read again");
        self.known = None;
        // The leader is gone: so is this task, soon.
        let _ = self.inbox.send(ToLeader::Doubt).await;
    }

    /// Whether a hand was at the annotations, by what the world tells: at rest nothing else is written that would meet with a
    /// conflict, or it is denied.
    async fn compare(&mut self, base: &Kept) -> Found {
        let told = Arc::clone(&self.shared.told.borrow());
        let Some(known) = &self.known else { return Found::Nothing };
        let is_compared = told.version == known.version || self.compared.as_ref() == Some(&told.version);
        if is_compared || Instant::now() < self.compare_due {
            return Found::Same;
        }
        let same = ours(&told.object()) == known.annotations;
        let found = if same { Found::Same } else { self.look_again(base).await };
        if found == Found::Same {
            self.compared = Some(told.version.clone());
        }
        found
    }

    fn next_progress(&self) -> Instant {
        Instant::now() + pace::among(*self.common.leading.borrow(), self.common.progress)
    }

    fn is_news(&self, status: &Status, before: &Status) -> bool {
        if Instant::now() >= self.progress_due { status != before } else { !status.only_goes_on(before) }
    }

    /// What cannot be read stays as it is; beside it stands that it cannot be read.
    async fn report_corrupt(&mut self, sight: &Sight) {
        let Some(known) = self.known.as_ref().filter(|known| known.kept.is_none()) else { return };
        let status = known.status.showing(sight);
        if !self.is_news(&status, &known.status) {
            return;
        }
        self.progress_due = self.next_progress();
        if let Err(None) = self.write_status(Purpose::Show, status, None).await
            && let Some(object) = self.read().await
        {
            self.know(&object, object.kept().ok());
        }
    }
}

/// Those of that object that are ours.
fn ours(object: &Object) -> Values {
    let keys = Annotations::default().entries().map(|(key, _)| key);
    keys.into_iter().map(|key| (key.to_owned(), object.annotations.get(key).cloned())).collect()
}

fn values(annotations: &Annotations) -> Values {
    let entries = annotations.entries().into_iter();
    entries.map(|(key, value)| (key.to_owned(), value.map(str::to_owned))).collect()
}

/// A site of which nothing is known needs no entry.
fn plain(mut kept: Kept) -> Kept {
    kept.sites.retain(|_, site| *site != SiteKept::default());
    kept
}
