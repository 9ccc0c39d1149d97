//! The format, written out: bodies and signatures that another program made.
//!
//! In: one message of each kind. Out: exactly these bytes. Must not: change; a release that signs other bytes does not
//! understand its predecessor. The signatures come from another implementation of HMAC-SHA256, with the key 00 01 … 1f.

use crate::common::{
    GROUP, ID, NONCE, ack, empty, grant, group, keys, nonce, question, renewal, revoking, sent, view, vouch,
};
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{AckMessage, EmptyMessage, Envelope, Error, GrantMessage, ViewMessage, VouchMessage};

/// The last fields of a view of epoch 7.
const STABLE: &str = concat!(
    r#""epoch":7,"tenure":5,"phase":"Stable","site":"iad","instance":"pod-1/store-1","#,
    r#""voters":[{"site":"iad","instance":"pod-1/store-1"},{"site":"pdx","instance":"pod-2/store-2"}],"#,
    r#""leaseTimeout":"20s","minPeers":1,"observedAt":"2026-01-02T03:04:05Z""#,
);

/// The fields of an acknowledgement of pdx, without question and others.
const PDX: &str = concat!(
    r#""site":"pdx","instance":"pod-2/store-2","epoch":7,"stored":true,"readOnly":true,"superReadOnly":true,"#,
    r#""fenced":true,"fencedBy":"Mismatch","openedByHand":false,"conflict":false,"mysqld":"18446744073709551615","#,
    r#""gtidExecuted":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5","leaseRemainingMs":0,"lastVouchAgeMs":{"iad":1200},"#,
    r#""lastAnswerAgeMs":{"iad":900},"uptimeMs":60000,"version":"0.1.0""#,
);

/// A sealed message has this body and this signature, and reads as the same again.
fn check(sealed: Result<Envelope, Error>, kind: &str, body: &str, mac: &str) -> bloodraven_wire::Verified {
    let sealed = sealed.expect("sealed");
    let verified = sent(&sealed);
    assert_eq!(verified.body(), body);
    let escaped = body.replace('"', "\\\"");
    let text = format!(r#"{{"kind":"{kind}","nonce":"{NONCE}","body":"{escaped}","mac":"{mac}"}}"#);
    assert_eq!(sealed.to_string(), text);
    verified
}

#[test]
fn a_view_has_these_bytes() {
    let body = format!(r#"{{"groupUid":"{GROUP}",{STABLE}}}"#);
    let mac = "570bc131dc6423c811c08344747d4178b05dec9589dc85389e51d19a3eccfc8d";
    let verified = check(view().seal(&keys(), nonce()), "view", &body, mac);
    assert_eq!(ViewMessage::open(&verified, &group()), Ok(view()));
}

#[test]
fn a_view_under_which_nobody_writes_has_these_bytes() {
    let rest = r#""epoch":8,"tenure":5,"phase":"Revoking","site":"","instance":"","voters":[],"#;
    let settings = r#""leaseTimeout":"1m30s","minPeers":2,"observedAt":"2026-01-02T03:04:05Z""#;
    let body = format!(r#"{{"groupUid":"{GROUP}",{rest}{settings}}}"#);
    let mac = "ff227062cd155052ec4e6c56bf881c896f41f460968d8688efe32195d201c888";
    let verified = check(revoking().seal(&keys(), nonce()), "view", &body, mac);
    assert_eq!(ViewMessage::open(&verified, &group()), Ok(revoking()));
}

#[test]
fn a_grant_has_these_bytes() {
    let opening = concat!(
        r#""toInstance":"pod-1/store-1","open":true,"#,
        r#""promotionGtidExecuted":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5","#,
        r#""excused":{"pdx":"3e11fa47-71ca-11e1-9e33-c80aa9429562:6"},"reason":"stable""#,
    );
    let body = format!(r#"{{"groupUid":"{GROUP}",{STABLE},{opening}}}"#);
    let mac = "92a8955bf9c8a8f4c9b203349e681125c24f0fa404c5e40e5499aa71463c0c0d";
    let verified = check(grant().seal(&keys(), nonce()), "grant", &body, mac);
    assert_eq!(GrantMessage::open(&verified, &group(), ID), Ok(grant()));
}

#[test]
fn a_grant_that_only_renews_has_these_bytes() {
    let renewing = r#""toInstance":"pod-1/store-1","open":false,"excused":{},"reason":"""#;
    let body = format!(r#"{{"groupUid":"{GROUP}",{STABLE},{renewing}}}"#);
    let mac = "b43d8c834b9c8b3511a18511be31f7738b7ddac370ebdec007fcb41a81de1e55";
    let verified = check(renewal().seal(&keys(), nonce()), "grant", &body, mac);
    assert_eq!(GrantMessage::open(&verified, &group(), ID), Ok(renewal()));
}

#[test]
fn a_vouch_has_these_bytes() {
    let said = concat!(
        r#""epoch":7,"from":{"site":"pdx","instance":"pod-2/store-2"},"#,
        r#""about":{"site":"iad","instance":"pod-1/store-1"},"ok":true,"highestEpoch":7,"#,
        r#""gtidExecuted":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5""#,
    );
    let body = format!(r#"{{"groupUid":"{GROUP}",{said},"ack":{{"groupUid":"{GROUP}",{PDX}}}}}"#);
    let mac = "cf86d5f33383c05a044fe9e570b9e9267d59b7643ec58c2b7cd69b81c851603f";
    let verified = check(vouch().seal(&keys(), nonce()), "vouch", &body, mac);
    assert_eq!(VouchMessage::open(&verified, &group(), ID), Ok(vouch()));
}

#[test]
fn an_acknowledgement_has_these_bytes() {
    let asked = r#""site":"pdx","instance":"pod-2/store-2","epoch":7,"open":true,"tSend":123456"#;
    let question = format!(r#"{{"nonce":"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff","groupUid":"{GROUP}",{asked}}}"#);
    let blank = concat!(
        r#""site":"lax","instance":"pod-3/store-3","epoch":0,"stored":false,"fenced":true,"openedByHand":false,"#,
        r#""conflict":false,"lastVouchAgeMs":{},"lastAnswerAgeMs":{},"uptimeMs":1"#,
    );
    let relayed = format!(r#"[{{"ack":{{"groupUid":"{GROUP}",{blank}}},"ageMs":250}}]"#);
    let body = format!(r#"{{"groupUid":"{GROUP}",{PDX},"question":{question},"relayed":{relayed}}}"#);
    let mac = "e677964044f9a315cfbe86d3390853ba85adf549b145329024294d6a24567a2c";
    let verified = check(ack().seal(&keys(), nonce()), "ack", &body, mac);
    assert_eq!(AckMessage::open(&verified, &group(), ID), Ok(ack()));
}

#[test]
fn an_order_to_empty_has_these_bytes() {
    let said = concat!(
        r#""to":{"site":"pdx","instance":"pod-2/store-2"},"epoch":7,"mysqld":"18446744073709551615","#,
        r#""serverUuid":"3e11fa47-71ca-11e1-9e33-c80aa9429562","#,
        r#""gtidExecuted":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5","untilUptimeMs":65000"#,
    );
    let body = format!(r#"{{"groupUid":"{GROUP}",{said}}}"#);
    let mac = "ac976e3f43c96a6e445c0dab566f95d3ca094eff698681f68faf88c3125fad9f";
    let verified = check(empty().seal(&keys(), nonce()), "empty", &body, mac);
    assert_eq!(EmptyMessage::open(&verified, &group()), Ok(empty()));
}

#[test]
fn a_question_has_these_bytes_in_a_query() {
    let target = question(nonce())
        .to_target(&keys(), "/active-site", &[("namespace", "shop"), ("group", "orders")])
        .expect("a target");
    let expect = concat!(
        "/active-site?epoch=7&group=orders&groupUid=9b1d6c1e-7c9e-4d0e-8a55-0c1f4f7a3b10",
        "&instance=pod-2%2Fstore-2&namespace=shop&nonce=000102030405060708090a0b0c0d0e0f",
        "&open=true&site=pdx&tSend=123456",
        "&mac=11aa6e330ba85a2da3a8b0b6c06a4867590683f8d138d42c3f8338e02feb8417",
    );
    assert_eq!(target, expect);
}

#[test]
fn a_request_has_these_bytes_in_a_query() {
    let target = query::sign(&keys(), Purpose::Other, "/x", &[("a", "é &=%+~")], nonce()).expect("a target");
    let expect = concat!(
        "/x?a=%C3%A9%20%26%3D%25%2B~&nonce=000102030405060708090a0b0c0d0e0f",
        "&mac=896e2dfb6969ad6f589b38a3c7d79fa8f4dc9aa7ec28a5028034f0502796665f",
    );
    assert_eq!(target, expect);
}
