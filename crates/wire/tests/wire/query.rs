//! Signed GETs: what is accepted, what is refused.
//!
//! In: targets with one thing wrong. Out: the one error for it. Must not: accept a second text for the same query.

use crate::common::{ID, NONCE, group, key, keys, malformed, missing, nonce, question};
use bloodraven_wire::query::{MAX_TARGET_BYTES, METHOD, Purpose, VerifiedQuery, sign, verify};
use bloodraven_wire::{Error, GroupUid, Keys, QuestionMessage};
use proptest::prelude::*;

const PATH: &str = "/active-site";

fn target() -> String {
    question(nonce()).to_target(&keys(), PATH, &[("namespace", "shop")]).expect("a target")
}

fn verified(target: &str) -> Result<VerifiedQuery, Error> {
    verify(&keys(), Purpose::Authority, METHOD, target)
}

fn check(target: &str, expect: &Error) {
    assert_eq!(verified(target).as_ref(), Err(expect), "{target}");
}

#[test]
fn a_question_comes_back_as_it_was_sent() {
    let query = verified(&target()).expect("signed");
    assert_eq!(QuestionMessage::from_query(&query, &group(), ID), Ok(question(nonce())));
    assert_eq!((query.nonce(), query.get("namespace"), query.get("mac")), (nonce(), Some("shop"), None));
    let other = GroupUid::new("another");
    let wrong = Error::WrongGroup { field: "groupUid".into() };
    assert_eq!(QuestionMessage::from_query(&query, &other, ID), Err(wrong));
}

#[test]
fn the_order_of_parameters_does_not_matter() {
    let (path, query) = target().split_once('?').map(|(path, query)| (path.to_owned(), query.to_owned())).expect("?");
    let mut pairs: Vec<&str> = query.split('&').collect();
    pairs.reverse();
    assert!(verified(&format!("{path}?{}", pairs.join("&"))).is_ok());
}

#[test]
fn the_last_two_keys_are_accepted_and_the_purpose_counts() {
    let rotated = Keys { current: key(32), previous: Some(key(0)) };
    assert!(verify(&rotated, Purpose::Authority, METHOD, &target()).is_ok());
    assert_eq!(verify(&Keys::only(key(32)), Purpose::Authority, METHOD, &target()), Err(Error::BadSignature));
    assert_eq!(verify(&keys(), Purpose::Other, METHOD, &target()), Err(Error::BadSignature));
    assert_eq!(verify(&keys(), Purpose::Authority, "HEAD", &target()), Err(Error::BadSignature));
    let no_method = malformed("method", "not upper-case letters");
    assert_eq!(verify(&keys(), Purpose::Authority, "GET /x", &target()), Err(no_method));
}

#[test]
fn every_change_of_a_single_byte_is_refused() {
    let good = target();
    for at in 0..good.len() {
        for other in 0..=127_u8 {
            let mut bytes = good.clone().into_bytes();
            bytes[at] = other;
            let changed = String::from_utf8(bytes).expect("ASCII");
            assert!(changed == good || verified(&changed).is_err(), "{changed}");
        }
    }
}

#[test]
fn a_request_that_is_not_signed_is_told_by_its_missing_mac() {
    check("/active-site?namespace=shop&group=orders", &missing("mac"));
    check("/peer/ping", &missing("mac"));
    check("/peer/ping?", &missing("mac"));
    check(&format!("/peer/ping?mac={}", "0".repeat(64)), &missing("nonce"));
    check("/peer/ping?mac=&nonce=7", &Error::BadNonce);
    check(&format!("/peer/ping?mac=&nonce={NONCE}"), &Error::BadSignature);
}

#[test]
fn a_parameter_is_given_once_and_in_one_encoding() {
    let encoding = malformed("query", "a value that is not encoded as the signer does");
    let key = malformed("query", "a key that is not letters and digits");
    let twice = malformed("query", "a parameter given twice");
    check(&format!("{}&site=pdx", target()), &twice);
    check(&format!("{}&mac=0", target()), &twice);
    check(&target().replace("%2F", "%2f"), &encoding);
    check(&target().replace("%2F", "/"), &encoding);
    check(&target().replace("pdx", "%70dx"), &encoding);
    check(&target().replace("pdx", "p+dx"), &encoding);
    check(&target().replace("pdx", "pdx%"), &encoding);
    check(&target().replace("pdx", "pdx%2"), &encoding);
    check(&target().replace("pdx", "pdx%GG"), &encoding);
    check(&target().replace("pdx", "pdx%+1"), &encoding);
    check(&target().replace("pdx", "%FF"), &encoding);
    check(&target().replace("pdx", "pdé"), &encoding);
    check(&target().replace("pdx", "pdx="), &encoding);
    check(&format!("{}&", target()), &malformed("query", "a key without ="));
    check(&format!("{}&=x", target()), &key);
    check(&format!("{}&s%69te=x", target()), &key);
    check(&format!("{}#x", target()), &encoding);
    check(&format!("{}&extra=1", target()), &Error::BadSignature);
    check(&target().replace(PATH, "/peer/ping"), &Error::BadSignature);
    check(&target().replace(PATH, "/active site"), &malformed("path", "not a path of letters, digits and -._~/"));
    check(&target()[1..], &malformed("path", "not a path of letters, digits and -._~/"));
    let limit = MAX_TARGET_BYTES;
    check(&"?".repeat(limit + 1), &Error::TooLarge { bytes: limit + 1, limit });
}

#[test]
fn what_would_be_refused_is_not_signed() {
    fn check(path: &str, parameters: &[(&str, &str)], expect: &Error) {
        assert_eq!(sign(&keys(), Purpose::Other, path, parameters, nonce()).as_ref(), Err(expect));
    }

    check(PATH, &[("nonce", "x")], &malformed("query", "a parameter given twice"));
    check(PATH, &[("mac", "x")], &malformed("mac", "given beside the signature"));
    check(PATH, &[("a", "x"), ("a", "x")], &malformed("query", "a parameter given twice"));
    check(PATH, &[("", "x")], &malformed("query", "a key that is not letters and digits"));
    check("x", &[], &malformed("path", "not a path of letters, digits and -._~/"));
    check("/x?", &[], &malformed("path", "not a path of letters, digits and -._~/"));
    let long = "x".repeat(MAX_TARGET_BYTES);
    let around = format!("/x?a=&nonce={NONCE}&mac=").len() + 64;
    check("/x", &[("a", &long)], &Error::TooLarge { bytes: MAX_TARGET_BYTES + around, limit: MAX_TARGET_BYTES });
}

#[test]
fn a_question_is_read_strictly() {
    /// A question, signed with this parameter left out or changed.
    fn check(name: &str, value: Option<&str>, expect: &Error) {
        let good = verified(&target()).expect("signed");
        let names = ["groupUid", "site", "instance", "epoch", "open", "tSend"];
        let kept = names.into_iter().filter(|kept| *kept != name).map(|kept| (kept, good.get(kept).expect("there")));
        let parameters: Vec<(&str, &str)> = kept.chain(value.map(|value| (name, value))).collect();
        let target = sign(&keys(), Purpose::Authority, PATH, &parameters, nonce()).expect("a target");
        let query = verified(&target).expect("signed");
        assert_eq!(QuestionMessage::from_query(&query, &group(), ID).as_ref(), Err(expect), "{name} {value:?}");
    }

    check("groupUid", None, &missing("groupUid"));
    check("site", None, &missing("site"));
    check("site", Some(""), &malformed("site", "an empty name"));
    check("instance", Some("pod-2"), &malformed("instance", "not <pod UID>/<store id>"));
    check("open", Some("1"), &malformed("open", "neither true nor false"));
    for number in ["", "+7", "07", " 7", "-1", "7.0", "9223372036854775808", "99999999999999999999"] {
        check("epoch", Some(number), &malformed("epoch", "not a whole number from 0 to 9223372036854775807"));
    }
    check("tSend", Some("x"), &malformed("tSend", "not a whole number from 0 to 9223372036854775807"));
}

#[test]
fn a_question_that_has_no_form_is_not_sent() {
    let mut message = question(nonce());
    message.question.epoch = 1 << 63;
    let too_high = malformed("epoch", "not a whole number from 0 to 9223372036854775807");
    assert_eq!(message.to_target(&keys(), PATH, &[]), Err(too_high));
}

proptest! {
    #[test]
    fn any_value_comes_back(value in ".{0,64}", more in "\\PC{0,64}") {
        let target = sign(&keys(), Purpose::Authority, PATH, &[("b", &value), ("a", &more)], nonce()).expect("a target");
        let query = verified(&target).expect("signed");
        prop_assert_eq!((query.get("a"), query.get("b")), (Some(more.as_str()), Some(value.as_str())));
    }

    #[test]
    fn no_target_makes_it_panic(method in ".{0,8}", target in ".{0,200}", tail in "[?&=%a-f0-9+/]{0,100}") {
        let target = target + &tail;
        prop_assert!(verify(&keys(), Purpose::Authority, &method, &target).is_err());
    }
}
