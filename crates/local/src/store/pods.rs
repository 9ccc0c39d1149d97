//! Pods: each life of a site, as the supervisor knows it.
//!
//! In: what the supervisor saw. Out: `pods/<uid>.json`, and what the brain is told of it. Must not: call anything ended
//! that was not seen to end, or forget an end that the leader has not written down.

use std::path::PathBuf;

use bloodraven_brain::group::input::PodFacts;
use bloodraven_brain::name::Site;
use serde::{Deserialize, Serialize};

use super::{CorruptSnafu, DirectorySnafu, Error, Store};
use crate::files;
use snafu::ResultExt as _;

/// The folder of the wishes for new lives.
pub(crate) const ROLLS: &str = "rolls";

/// A pod's file: written by the supervisor alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFile {
    /// Its site.
    pub site: String,
    /// Its own name, never used again.
    pub uid: String,
    /// Something of it may have been started.
    pub started: bool,
    /// The keeper, while it runs.
    pub keeper_pid: Option<u32>,
    /// The sidecar, while it runs.
    pub sidecar_pid: Option<u32>,
    /// It is on its way out: nothing of it is started again.
    pub deleting: bool,
    /// The supervisor saw keeper, server and sidecar gone, and never starts this pod again.
    pub ended: bool,
    /// What its server was configured with.
    pub conf: String,
}

impl Store {
    /// Every pod that has a file, oldest name first; those that ended and are released are gone.
    pub fn pods(&self) -> Result<Vec<PodFile>, Error> {
        let folder = self.path("pods");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&folder).context(DirectorySnafu { path: &folder })? {
            let path = entry.context(DirectorySnafu { path: &folder })?.path();
            let named = path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
            if !named || path.extension().is_none_or(|end| end != "json") {
                continue;
            }
            // A file that was removed since the listing is a pod that is gone.
            let Some(bytes) = files::read(&path)? else { continue };
            let parsed: Result<PodFile, _> = serde_json::from_slice(&bytes);
            let pod = parsed.map_err(|error| CorruptSnafu { path: &path, why: error.to_string() }.build())?;
            if !(pod.ended && self.is_released(&pod.uid)?) {
                found.push(pod);
            }
        }
        found.sort_by(|one, other| (&one.site, &one.uid).cmp(&(&other.site, &other.uid)));
        Ok(found)
    }

    /// Writes what the supervisor saw.
    pub(crate) fn write_pod(&self, pod: &PodFile) -> Result<(), Error> {
        let bytes = serde_json::to_vec_pretty(pod).unwrap_or_default();
        files::replace(&self.pod_path(&pod.uid), &bytes)?;
        if pod.ended && self.is_released(&pod.uid)? {
            self.forget_pod(&pod.uid)?;
        }
        Ok(())
    }

    /// Nobody needs the end of that pod any more.
    pub fn release_pod(&self, uid: &str) -> Result<(), Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if uid.is_empty() || !uid.chars().all(plain) {
            return Ok(());
        }
        let Some(bytes) = files::read(&self.pod_path(uid))? else { return Ok(()) };
        files::replace(&self.released_path(uid), b"")?;
        let ended = serde_json::from_slice::<PodFile>(&bytes).is_ok_and(|pod| pod.ended);
        if ended { self.forget_pod(uid) } else { Ok(()) }
    }

    /// What the brain is told of a pod.
    pub(crate) fn pod_facts(&self, pod: &PodFile) -> Result<PodFacts, Error> {
        Ok(PodFacts {
            site: Site::new(&pod.site),
            uid: pod.uid.as_str().into(),
            started: pod.started,
            all_terminated: pod.ended,
            deleting: pod.deleting || pod.ended,
            finished: pod.ended,
            collected: false,
            // The supervisor itself is the witness.
            node_vouches: true,
            finalizer: !self.is_released(&pod.uid)?,
        })
    }

    /// Asks for a new life of that site, in the place of the one that lives now. Asked again, it is the same wish.
    pub fn ask_roll(&self, site: &str) -> Result<(), Error> {
        let pods = self.pods()?;
        let Some(pod) = pods.iter().find(|pod| pod.site == site && !pod.deleting && !pod.ended) else { return Ok(()) };
        let path = self.path(ROLLS).join(site);
        if files::read(&path)?.is_some_and(|asked| asked == pod.uid.as_bytes()) {
            return Ok(());
        }
        files::private_folder(&self.path(ROLLS))?;
        Ok(files::replace(&path, pod.uid.as_bytes())?)
    }

    /// The lives that are to be replaced: site and pod.
    pub(crate) fn rolls(&self) -> Result<Vec<(String, String)>, Error> {
        let mut found = Vec::new();
        let Ok(entries) = std::fs::read_dir(self.path(ROLLS)) else { return Ok(found) };
        for entry in entries.flatten() {
            let site = entry.file_name().to_string_lossy().into_owned();
            if let (false, Some(uid)) = (site.starts_with('.'), files::read(&entry.path())?) {
                found.push((site, String::from_utf8_lossy(&uid).into_owned()));
            }
        }
        Ok(found)
    }

    fn is_released(&self, uid: &str) -> Result<bool, Error> {
        Ok(files::read(&self.released_path(uid))?.is_some())
    }

    /// The pod's file goes first: a pod that is released and has no file is gone, whatever happens in between.
    fn forget_pod(&self, uid: &str) -> Result<(), Error> {
        files::remove(&self.pod_path(uid))?;
        Ok(files::remove(&self.released_path(uid))?)
    }

    fn pod_path(&self, uid: &str) -> PathBuf {
        self.path("pods").join(format!("{uid}.json"))
    }

    fn released_path(&self, uid: &str) -> PathBuf {
        self.path("pods").join(format!("{uid}.released"))
    }
}
