//! What is stored passes through the very status and annotations of a cluster: a field that they do not hold is lost to
//! the next leader, and the run shows it.

use bloodraven_api::MysqlFailoverGroupStatus;
use bloodraven_blueprint::status;
use bloodraven_brain::group::Kept;
use bloodraven_brain::group::input::Loaded;
use bloodraven_brain::group::kept::Anchor;
use std::collections::BTreeMap;

/// What a leader reads of these two copies.
pub(super) fn read_back(anchor: &Anchor, kept: &Kept) -> Loaded {
    match written_and_read(anchor, kept) {
        Ok(kept) => Loaded::Kept(Box::new(kept)),
        Err(because) => Loaded::Corrupt(because),
    }
}

fn written_and_read(anchor: &Anchor, kept: &Kept) -> Result<Kept, String> {
    let Anchor { record, last_failover, promotion, unapplied } = anchor.clone();
    let anchored = Kept { record, last_failover, promotion, unapplied, ..Kept::default() };
    let mut annotations = BTreeMap::new();
    written(&anchored)?.annotations.put(&mut annotations);
    let status = serde_json::to_value(written(kept)?.status).map_err(|error| error.to_string())?;
    status::read(Some(&status), &annotations).map_err(|corrupt| corrupt.to_string())
}

fn written(kept: &Kept) -> Result<status::Written, String> {
    status::write(kept, &MysqlFailoverGroupStatus::default()).map_err(|error| error.to_string())
}
