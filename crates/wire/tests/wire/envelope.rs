//! Envelopes: who signed, what is refused and in which order.
//!
//! In: envelopes with one thing wrong. Out: the one error for it. Must not: accept a changed byte, or a stranger's key.

use crate::common::{NONCE, group, key, keys, malformed, missing, nonce, signed, view};
use bloodraven_wire::{Envelope, Error, Keys, Kind, MAX_ENVELOPE_BYTES, Nonce, ViewMessage};

const BODY: &str = "a \"quoted\" body\n";
const MAC: &str = "fda0b1114a8a07727b24584491a4fd8c0d685637ef1f94218523509dfa0fb383";
const MAC_OF_OLD_KEY: &str = "96ed41d8c5d4887148febe3e8cdbec4601cd7a9c2252f1f3f8bd90f258df47f7";

fn text(kind: &str, nonce: &str, body: &str, mac: &str) -> Vec<u8> {
    serde_json::json!({ "kind": kind, "nonce": nonce, "body": body, "mac": mac }).to_string().into_bytes()
}

fn open(bytes: &[u8], keys: &Keys) -> Result<String, Error> {
    Envelope::read(bytes)?.open(keys).map(|verified| verified.body().to_owned())
}

#[test]
fn the_last_two_keys_are_accepted_and_no_third() {
    fn check(keys: &Keys, mac: &str, accepted: bool) {
        let expect = if accepted { Ok(BODY.to_owned()) } else { Err(Error::BadSignature) };
        assert_eq!(open(&text("view", NONCE, BODY, mac), keys), expect);
    }

    let after_change = Keys { current: key(32), previous: Some(key(0)) };
    let before_change = Keys { current: key(0), previous: Some(key(64)) };
    let two_changes_later = Keys { current: key(64), previous: Some(key(32)) };
    check(&keys(), MAC, true);
    check(&before_change, MAC, true);
    check(&after_change, MAC, true);
    check(&after_change, MAC_OF_OLD_KEY, true);
    check(&before_change, MAC_OF_OLD_KEY, false);
    check(&two_changes_later, MAC, false);
}

#[test]
fn the_current_key_signs() {
    let keys = Keys { current: key(32), previous: Some(key(0)) };
    let sealed = Envelope::seal(&keys, Kind::View, nonce(), BODY.into()).expect("sealed");
    assert!(sealed.to_string().contains(MAC_OF_OLD_KEY));
}

#[test]
fn every_change_of_a_single_byte_is_refused() {
    fn refused(texts: impl Iterator<Item = Vec<u8>>) -> usize {
        let refused = |text: &Vec<u8>| open(text, &keys()).is_err();
        texts.inspect(|text| assert!(refused(text), "{}", String::from_utf8_lossy(text))).count()
    }

    let (mut kinds, mut nonces, mut bodies, mut macs) = (0, 0, 0, 0);
    for other in 0..=127_u8 {
        let changed = |original: &str| -> Vec<String> {
            let change = |at: usize| {
                let mut bytes = original.as_bytes().to_vec();
                bytes[at] = other;
                String::from_utf8(bytes).expect("ASCII")
            };
            (0..original.len()).map(change).filter(|text| text != original).collect()
        };
        kinds += refused(changed("view").iter().map(|kind| text(kind, NONCE, BODY, MAC)));
        nonces += refused(changed(NONCE).iter().map(|nonce| text("view", nonce, BODY, MAC)));
        bodies += refused(changed(BODY).iter().map(|body| text("view", NONCE, body, MAC)));
        macs += refused(changed(MAC).iter().map(|mac| text("view", NONCE, BODY, mac)));
    }
    assert_eq!((kinds, nonces, bodies, macs), (4 * 127, 32 * 127, BODY.len() * 127, 64 * 127));
}

#[test]
fn a_longer_or_shorter_part_is_refused() {
    let half = |text: &str| text[..text.len() / 2].to_owned();
    check(&text("view", NONCE, &format!("{BODY} "), MAC), &Error::BadSignature);
    check(&text("view", NONCE, &half(BODY), MAC), &Error::BadSignature);
    check(&text("view", NONCE, BODY, &half(MAC)), &Error::BadSignature);
    check(&text("view", NONCE, BODY, &format!("{MAC}00")), &Error::BadSignature);
    check(&text("view", NONCE, BODY, ""), &Error::BadSignature);
    check(&text("view", NONCE, BODY, &MAC.to_uppercase()), &Error::BadSignature);
    check(&text("view", &half(NONCE), BODY, MAC), &Error::BadNonce);
    check(&text("", NONCE, BODY, MAC), &Error::UnknownKind { kind: String::new() });
    // A line feed moved over from one part to the next.
    check(&text("view\n", NONCE, BODY, MAC), &Error::UnknownKind { kind: "view\n".into() });
}

#[test]
fn a_signature_of_another_kind_is_none() {
    for kind in Kind::ALL {
        let expect = if kind == Kind::View { Ok(BODY.to_owned()) } else { Err(Error::BadSignature) };
        assert_eq!(open(&text(kind.as_str(), NONCE, BODY, MAC), &keys()), expect);
    }
}

fn check(bytes: &[u8], expect: &Error) {
    assert_eq!(open(bytes, &keys()).as_ref(), Err(expect), "{}", String::from_utf8_lossy(bytes));
}

#[test]
fn what_is_no_envelope_is_refused_by_name() {
    let texts_once = malformed("envelope", "kind, nonce, body and mac are texts, each given once");
    check(b"", &Error::NotJson { line: 1, column: 1 });
    check(b"[]", &Error::NotJson { line: 1, column: 1 });
    check(b"{", &Error::NotJson { line: 1, column: 1 });
    check(b"{}x", &Error::NotJson { line: 1, column: 3 });
    check(b"\xff\xfe{}", &Error::NotJson { line: 1, column: 1 });
    check(br#"["view","000102030405060708090a0b0c0d0e0f","",""]"#, &Error::NotJson { line: 1, column: 1 });
    check(b"{}", &missing("kind"));
    check(br#"{"kind":"view"}"#, &missing("nonce"));
    check(br#"{"kind":"view","nonce":null}"#, &missing("nonce"));
    check(br#"{"kind":"view","nonce":""}"#, &missing("body"));
    check(br#"{"kind":"view","nonce":"","body":""}"#, &missing("mac"));
    check(br#"{"kind":"view","nonce":"","body":"","mac":""}"#, &Error::BadNonce);
    check(br#"{"kind":"x","nonce":"","body":"","mac":""}"#, &Error::UnknownKind { kind: "x".into() });
    check(br#"{"kind":5}"#, &texts_once);
    check(br#"{"body":{}}"#, &texts_once);
    check(br#"{"mac":"","mac":""}"#, &texts_once);
    check(br#"{"kind":"view","\u006bind":"ack"}"#, &texts_once);
    let long = "v".repeat(1000);
    check(&text(&long, NONCE, "", ""), &Error::UnknownKind { kind: "v".repeat(32) });
}

#[test]
fn bytes_that_are_no_text_are_refused_wherever_they_stand() {
    let good = text("view", NONCE, BODY, MAC);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] = 0xff;
        assert!(open(&bad, &keys()).is_err(), "at {at}");
    }
}

#[test]
fn unknown_fields_of_an_envelope_are_skipped_at_any_depth() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let bytes = String::from_utf8(text("view", NONCE, BODY, MAC)).expect("text");
    let bytes = bytes.replacen('{', &format!(r#"{{"trace":{deep},"trace":1e999,"v":2,"#), 1);
    assert_eq!(open(bytes.as_bytes(), &keys()), Ok(BODY.to_owned()));
}

/// K-23: a message has its limit.
#[test]
fn more_than_a_mebibyte_is_refused_before_it_is_parsed() {
    // The longest that is read: what stands around the body is 146 bytes long.
    let around = text("view", NONCE, "", MAC).len();
    let longest = "x".repeat(MAX_ENVELOPE_BYTES - around);
    let sealed = Envelope::seal(&keys(), Kind::View, nonce(), longest.clone()).expect("sealed");
    assert_eq!(sealed.to_string().len(), MAX_ENVELOPE_BYTES);
    assert_eq!(open(sealed.to_string().as_bytes(), &keys()), Ok(longest.clone()));

    let too_large = Error::TooLarge { bytes: MAX_ENVELOPE_BYTES + 1, limit: MAX_ENVELOPE_BYTES };
    assert_eq!(Envelope::seal(&keys(), Kind::View, nonce(), longest + "x"), Err(too_large.clone()));
    let no_json = vec![b'?'; MAX_ENVELOPE_BYTES + 1];
    assert_eq!(Envelope::read(&no_json), Err(too_large.clone()));
    assert_eq!(Envelope::read_signed(&no_json), Err(too_large));
}

#[test]
fn the_signature_is_checked_before_the_body_is_read() {
    // No JSON, no group, and still the signature is what is wrong.
    check(&text("view", NONCE, "{", MAC), &Error::BadSignature);
    let verified = signed(Kind::View, "{");
    let Err(Error::Malformed { field, .. }) = ViewMessage::open(&verified, &group()) else { panic!("read") };
    assert_eq!(field, "body");
}

#[test]
fn an_answer_repeats_the_nonce_of_its_question() {
    let other = Nonce::new([7; 16]);
    let sealed = view().seal(&keys(), nonce()).expect("sealed");
    assert_eq!(sealed.clone().open_answer(&keys(), nonce()).map(|verified| verified.nonce()), Ok(nonce()));
    assert_eq!(sealed.clone().open_answer(&keys(), other), Err(Error::WrongNonce));
    let stranger = Keys::only(key(64));
    assert_eq!(sealed.open_answer(&stranger, other), Err(Error::BadSignature));
}

#[test]
fn an_envelope_travels_inside_an_answer_for_people() {
    let sealed = view().seal(&keys(), nonce()).expect("sealed");
    let answer = serde_json::json!({ "activeSite": "iad", "signed": sealed, "epoch": 7 }).to_string();
    assert_eq!(Envelope::read_signed(answer.as_bytes()), Ok(Some(sealed)));
    assert_eq!(Envelope::read_signed(br#"{"activeSite":"iad"}"#), Ok(None));
    assert_eq!(Envelope::read_signed(br#"{"signed":null}"#), Ok(None));
    assert_eq!(Envelope::read_signed(br#"{"signed":{"kind":"view"}}"#), Err(missing("signed.nonce")));
    assert_eq!(Envelope::read_signed(b"pong"), Err(Error::NotJson { line: 1, column: 1 }));
}
