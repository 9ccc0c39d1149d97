//! Conditions: what people and `kubectl wait` see of a group, one answer per question.
//!
//! In: the leader, the moment, and what only the hands know ([`Hands`]). Out: `status.conditions`. Must not: decide, claim
//! anything before what is stored is known, touch a condition of somebody else (backups have their own), or move
//! `lastTransitionTime` while the answer stays.
//!
//! | module | what is there |
//! |---|---|
//! | [`sight`] | everything that conditions are made of, gathered from the leader |
//! | [`answers`] | each condition's status, reason and sentence |
//! | [`mod@reference`] | the page `docs/reference/conditions.md` |

pub mod answers;
pub mod reference;
pub mod sight;

use bloodraven_api::MysqlFailoverGroupStatus;
use bloodraven_api::conditions::{ConfigWarningReason, DegradedReason, GroupCondition};
use bloodraven_brain::group::{Group, Stored};
use bloodraven_brain::time::Now;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::measure::timestamp;
pub use answers::{Answer, advice, degraded};
pub use sight::Sight;

/// The longest message that the API server takes.
const LONGEST: usize = 32_768;

/// What only the hands know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hands {
    /// A spec was refused, and why; the last valid one stays in force.
    pub invalid_spec: Option<String>,
    /// Commits on the primary do not come back, or its data volume is nearly full: where.
    pub write_stalled: Option<String>,
    /// The client port takes nobody any more: where.
    pub connections_exhausted: Option<String>,
    /// What weakens or cannot work, each with its sentence. DNS, taints and a missing account are known without.
    pub warnings: Vec<(ConfigWarningReason, String)>,
}

/// Shows the conditions in `status`. `generation` is that of the spec that the leader goes by. While it is not known what
/// is stored, everything stays as it is.
pub fn show(group: &Group, now: Now, generation: i64, hands: &Hands, status: &mut MysqlFailoverGroupStatus) {
    if matches!(group.stored, Stored::Unknown(_)) {
        return;
    }
    put(answers::all(&Sight::of(group, now, hands)), now, generation, &mut status.conditions);
}

/// Shows in `status` that no spec of the group can be taken, so that nobody leads it.
pub fn show_refused(now: Now, generation: i64, because: &str, status: &mut MysqlFailoverGroupStatus) {
    put(answers::refused(because), now, generation, &mut status.conditions);
}

/// Every Degraded reason that holds now, the gravest first, each with its sentence; empty while it is not known what is
/// stored.
pub fn degraded_now(group: &Group, now: Now, hands: &Hands) -> Vec<(DegradedReason, String)> {
    if matches!(group.stored, Stored::Unknown(_)) {
        return Vec::new();
    }
    degraded(&Sight::of(group, now, hands))
}

/// Puts the answers among the conditions, in declared order; those of others stay, behind.
pub fn put(answers: Vec<Answer>, now: Now, generation: i64, conditions: &mut Vec<Condition>) {
    let mut before = std::mem::take(conditions);
    for answer in answers {
        let known = before.iter().position(|condition| condition.type_ == answer.condition.as_str());
        let known = known.map(|index| before.remove(index));
        conditions.push(condition(answer, known, now, generation));
    }
    conditions.extend(before.into_iter().filter(|condition| !is_ours(&condition.type_)));
}

fn condition(answer: Answer, before: Option<Condition>, now: Now, generation: i64) -> Condition {
    let status = if answer.holds { "True" } else { "False" };
    let seconds = now.wall.0 - now.wall.0.rem_euclid(1000);
    let since = before.filter(|before| before.status == status).map(|before| before.last_transition_time);
    Condition {
        type_: answer.condition.as_str().to_owned(),
        status: status.to_owned(),
        reason: answer.reason.to_owned(),
        message: cut(answer.message),
        last_transition_time: since.unwrap_or_else(|| Time(timestamp(bloodraven_brain::time::Wall(seconds)))),
        observed_generation: Some(generation),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST - 8).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" (cut)");
    }
    text
}

/// Whether a condition of that type is made here, at one time or another.
fn is_ours(name: &str) -> bool {
    name.parse().is_ok_and(|condition: GroupCondition| answers::OURS.contains(&condition))
}
