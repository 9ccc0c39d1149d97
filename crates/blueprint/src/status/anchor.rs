//! What is stored in annotations, too: enough to finish a move while the status cannot be written.
//!
//! In: the record with what belongs to its promotion, or the annotations. Out: one from the other. Must not: outgrow what
//! an object's annotations may hold. A promotion with very many intervals stands in status alone; without a status it is
//! then "not known yet", and read from the server again.

use std::collections::BTreeMap;

use bloodraven_api::group::status::Authority;
use bloodraven_api::keys;
use bloodraven_brain::group::kept::Anchor;
use bloodraven_brain::record::Epoch;
use bloodraven_gtid::GtidSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::{Corrupt, Fault};
use super::fields::{counted, optional_set, set_text};
use super::{last_failover, parse, record};

/// All annotations of an object may have 256 KiB; a quarter of it leaves room for the record and for others.
const MOST_PROMOTION_BYTES: usize = 64 * 1024;

/// What stands in the annotation beside the record, under the names that it has in status.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Promotion {
    #[serde(skip_serializing_if = "Option::is_none")]
    promotion_gtid_executed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unapplied_gtid_at_promotion: Option<String>,
}

/// The record and its promotion as compact JSON.
pub(super) fn write(authority: &Authority, promotion: Option<&GtidSet>, unapplied: &GtidSet) -> Result<String, Fault> {
    let fault = |error: serde_json::Error| Fault::new("authority", error.to_string());
    let beside = Promotion {
        promotion_gtid_executed: promotion.map(set_text),
        unapplied_gtid_at_promotion: counted(unapplied).0,
    };
    let more = serde_json::to_value(beside.if_small()).map_err(fault)?;
    let mut record = serde_json::to_value(authority).map_err(fault)?;
    if let (Value::Object(fields), Value::Object(more)) = (&mut record, more) {
        fields.extend(more);
    }
    Ok(record.to_string())
}

pub(super) fn read(annotations: &BTreeMap<String, String>) -> Result<Anchor, Corrupt> {
    let last_failover = last_failover::annotated(annotations)?;
    let Some(text) = annotations.get(keys::AUTHORITY) else { return Ok(Anchor { last_failover, ..Anchor::default() }) };
    let anchor = with_record(text).map_err(|fault| fault.in_annotation(keys::AUTHORITY))?;
    Ok(Anchor { last_failover, ..anchor })
}

/// See [`super::named_epoch`].
pub(super) fn named_epoch(annotations: &BTreeMap<String, String>) -> Epoch {
    let record = annotations.get(keys::AUTHORITY).and_then(|text| serde_json::from_str(text).ok());
    record.map_or(0, |record| super::named_epoch(&record))
}

fn with_record(text: &str) -> Result<Anchor, Fault> {
    let record = record::read(&parse::text::<Authority>(text)?)?;
    let beside = parse::text::<Promotion>(text)?;
    let unapplied = optional_set("unappliedGtidAtPromotion", beside.unapplied_gtid_at_promotion.as_deref())?;
    Ok(Anchor {
        record: Some(record),
        last_failover: None,
        promotion: optional_set("promotionGtidExecuted", beside.promotion_gtid_executed.as_deref())?,
        unapplied: unapplied.unwrap_or_default(),
    })
}

impl Promotion {
    /// Both or neither: what could not be applied means something only beside its promotion.
    fn if_small(self) -> Self {
        let texts = [&self.promotion_gtid_executed, &self.unapplied_gtid_at_promotion];
        let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
        if bytes > MOST_PROMOTION_BYTES { Self::default() } else { self }
    }
}
