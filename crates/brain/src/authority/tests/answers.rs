//! Grants leave only a leader, for the record's own instance (safety.md 5).

use super::*;
use crate::authority::{Answer, answer};
use crate::message::{OpeningWord, Question, QuestionId};

fn question(from: &Member, epoch: Epoch, open: bool) -> Question {
    Question { id: QuestionId(3), from: from.clone(), epoch, open }
}

/// F-12, F-13, F-27, F-37: everything that makes an answer a grant, and each of it missing in turn.
#[test]
fn f_13_a_grant_leaves_only_a_leader_for_the_very_instance_of_the_record() {
    let now = Boot(ELECTED + SECOND);
    let check = |record: &Record, question: &Question, until: Option<u64>, highest: Epoch, expect: bool| {
        let mut evidence = Evidence { highest, ..Evidence::new(Boot(ELECTED)) };
        let answered = answer(record, &mut evidence, question, until.map(Boot), None, now);
        assert_eq!(matches!(answered, Answer::Grant(_)), expect, "{question:?} {until:?} {highest}");
        assert_eq!(evidence.last_grant, expect.then_some(now), "a grant is remembered, a view is none");
        if let Answer::View(view) = answered {
            assert_eq!(*view, record.view());
        }
    };
    let record = stable(&["iad", "pdx"], 1);
    let leads = Some(now.0 + 1);
    let iad = question(&member("iad"), 5, false);
    check(&record, &iad, leads, 5, true);
    check(&Record { phase: Phase::Granting, ..record.clone() }, &iad, leads, 5, true);
    check(&record, &iad, Some(now.0), 5, false);
    check(&record, &iad, None, 5, false);
    check(&record, &question(&member("pdx"), 5, false), leads, 5, false);
    check(&record, &question(&instance("iad", "s2"), 5, false), leads, 5, false);
    check(&revoked(&["iad", "pdx"], 1), &iad, leads, 6, false);
    check(&Record { phase: Phase::Revoking, ..record.clone() }, &iad, leads, 5, false);
    check(&record, &iad, leads, 6, false);
    check(&record, &question(&member("iad"), 6, false), leads, 5, false);
    check(&record, &question(&member("iad"), 4, false), leads, 5, true);
}

/// F-37: an epoch above the record's that a question brings is remembered like any other.
#[test]
fn f_37_a_question_tells_of_a_higher_epoch() {
    let mut evidence = Evidence::new(Boot(ELECTED));
    let record = stable(&["iad", "pdx"], 1);
    answer(&record, &mut evidence, &question(&member("pdx"), 9, false), Some(Boot(u64::MAX)), None, Boot(ELECTED));
    assert_eq!(evidence.highest, 9);
}

/// F-09: the word goes to who asks for it, and only with a grant.
#[test]
fn f_09_the_word_goes_to_who_asks_to_open() {
    let word = OpeningWord::default();
    let check = |open: bool, word: Option<OpeningWord>, expect: Option<OpeningWord>| {
        let mut evidence = Evidence::new(Boot(ELECTED));
        let record = stable(&["iad", "pdx"], 1);
        let asked = question(&member("iad"), 5, open);
        match answer(&record, &mut evidence, &asked, Some(Boot(u64::MAX)), word, Boot(ELECTED)) {
            Answer::Grant(grant) => {
                assert_eq!((grant.id, grant.to, grant.view), (QuestionId(3), member("iad"), record.view()));
                assert_eq!(grant.open, expect);
            }
            Answer::View(_) => panic!("no grant"),
        }
    };
    check(true, Some(word.clone()), Some(word.clone()));
    check(false, Some(word), None);
    check(true, None, None);
}
