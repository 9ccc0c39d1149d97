//! Rules on the two records, `MysqlBackup` and `MysqlBackupVerification`.
//!
//! In: their specs. Out: the rules. Must not: allow a change; a record tells what was asked for.

use super::Rule;
use super::backup::verification_parts;
use super::text::BACKUP_TRIGGER;
use crate::backup::MysqlBackupSpec;
use crate::verification::MysqlBackupVerificationSpec;

pub(super) fn of_backup() -> Vec<Rule> {
    vec![
        Rule::change::<MysqlBackupSpec>(
            "record-immutable",
            "spec",
            "self == oldSelf",
            "spec of a MysqlBackup cannot be changed; create another MysqlBackup",
            |spec, old| spec == old,
        ),
        triggered_by(),
    ]
}

pub(super) fn of_verification() -> Vec<Rule> {
    let mut rules = vec![
        Rule::change::<MysqlBackupVerificationSpec>(
            "record-immutable",
            "spec",
            "self == oldSelf",
            "spec of a MysqlBackupVerification cannot be changed; create another MysqlBackupVerification",
            |spec, old| spec == old,
        ),
        triggered_by(),
    ];
    rules.extend(verification_parts("spec"));
    rules
}

fn triggered_by() -> Rule {
    Rule::matches(
        "triggered-by",
        "spec.triggeredBy",
        &BACKUP_TRIGGER,
        "spec.triggeredBy must say who asked; write manual, restore, schedule/<name> or retry/<name>/attempt-<n>",
    )
}
