//! Bodies: what they must hold, what they may lack, what they may have too much.
//!
//! In: good bodies with one thing changed. Out: the same message, another, or the one error that names the field. Must
//! not: depend on the order of fields.

use crate::common::{
    ID, ack, empty, grant, group, keys, malformed, missing, nonce, renewal, sent, signed, view, vouch,
};
use bloodraven_brain::message::{Grant, OpeningWord};
use bloodraven_brain::name::{Instance, Site};
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use bloodraven_wire::message::Details;
use bloodraven_wire::outstanding::Asked;
use bloodraven_wire::{
    AckMessage, EmptyMessage, Envelope, Error, GrantMessage, GroupUid, Kind, Outstanding, ViewMessage, VouchMessage,
};
use serde_json::{Value, json};

/// A message of each kind.
#[derive(Clone, Debug, PartialEq)]
enum Message {
    View(ViewMessage),
    Grant(GrantMessage),
    Vouch(VouchMessage),
    Ack(AckMessage),
    Empty(EmptyMessage),
}

impl Message {
    fn samples() -> [Self; 5] {
        [Self::View(view()), Self::Grant(grant()), Self::Vouch(vouch()), Self::Ack(ack()), Self::Empty(empty())]
    }

    fn kind(&self) -> Kind {
        match self {
            Self::View(_) => Kind::View,
            Self::Grant(_) => Kind::Grant,
            Self::Vouch(_) => Kind::Vouch,
            Self::Ack(_) => Kind::Ack,
            Self::Empty(_) => Kind::Empty,
        }
    }

    fn seal(&self) -> Result<Envelope, Error> {
        match self {
            Self::View(message) => message.seal(&keys(), nonce()),
            Self::Grant(message) => message.seal(&keys(), nonce()),
            Self::Vouch(message) => message.seal(&keys(), nonce()),
            Self::Ack(message) => message.seal(&keys(), nonce()),
            Self::Empty(message) => message.seal(&keys(), nonce()),
        }
    }

    fn body(&self) -> Value {
        serde_json::from_str(sent(&self.seal().expect("sealed")).body()).expect("JSON")
    }

    /// Reads a body of this one's kind.
    fn read(&self, body: &Value) -> Result<Self, Error> {
        let verified = signed(self.kind(), &body.to_string());
        match self {
            Self::View(_) => ViewMessage::open(&verified, &group()).map(Self::View),
            Self::Grant(_) => GrantMessage::open(&verified, &group(), ID).map(Self::Grant),
            Self::Vouch(_) => VouchMessage::open(&verified, &group(), ID).map(Self::Vouch),
            Self::Ack(_) => AckMessage::open(&verified, &group(), ID).map(Self::Ack),
            Self::Empty(_) => EmptyMessage::open(&verified, &group()).map(Self::Empty),
        }
    }

    /// Reads the body with the value at a JSON pointer replaced; `null` is as good as missing.
    fn with(&self, pointer: &str, value: Value) -> Result<Self, Error> {
        let mut body = self.body();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        match parent {
            Value::Object(fields) => drop(fields.insert(name.into(), value)),
            other => panic!("{pointer}: {other}"),
        }
        self.read(&body)
    }
}

/// The pointers to every field in a body.
fn fields(body: &Value, at: &str, found: &mut Vec<String>) {
    match body {
        Value::Object(entries) => {
            for (name, value) in entries {
                found.push(format!("{at}/{name}"));
                fields(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| fields(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// K-14, in part: words of a newer release are read; a release before this one does not exist yet.
#[test]
fn unknown_fields_are_ignored_everywhere() {
    let objects = |message: &Message| {
        let mut found = vec![String::new()];
        fields(&message.body(), "", &mut found);
        let body = message.body();
        // Objects whose names are sites have no unknown fields.
        let by_site = |pointer: &str| ["Ms", "excused"].iter().any(|end| pointer.ends_with(end));
        found.retain(|pointer| body.pointer(pointer).is_some_and(Value::is_object) && !by_site(pointer));
        for index in 0..2 {
            let voter = format!("/voters/{index}");
            found.extend(body.pointer(&voter).map(|_| voter));
        }
        found
    };
    let mut checked = 0;
    for message in Message::samples() {
        for object in objects(&message) {
            let news = json!({ "deep": [{ "epoch": -1.5e300, "groupUid": null }] });
            assert_eq!(message.with(&format!("{object}/comesLater"), news), Ok(message.clone()), "{object}");
            checked += 1;
        }
    }
    // View with 2 voters, grant with 2 voters, vouch with 3 parts, acknowledgement with 2 parts, order with 1.
    assert_eq!(checked, 3 + 3 + 4 + 3 + 2);
}

#[test]
fn a_required_field_is_missed_by_name_and_null_is_missing() {
    let optional = [
        "/excused",
        "/ack/readOnly",
        "/ack/fencedBy",
        "/ack/mysqld",
        "/ack/gtidExecuted",
        "/ack/leaseRemainingMs",
        "/ack/version",
        "/fencedBy",
        "/mysqld",
        "/gtidExecuted",
        "/leaseRemainingMs",
        "/version",
        "/question",
        "/relayed",
    ];
    let mut missed = 0;
    for message in Message::samples() {
        let mut found = Vec::new();
        fields(&message.body(), "", &mut found);
        for pointer in found {
            let by_site = ["Ms/iad", "excused/pdx"].iter().any(|end| pointer.ends_with(end));
            if by_site || optional.contains(&pointer.as_str()) || pointer.ends_with("eadOnly") {
                continue;
            }
            let name = pointer[1..].replace("/0/", "[0]/").replace("/1/", "[1]/").replace('/', ".");
            assert_eq!(message.with(&pointer, Value::Null), Err(missing(&name)), "{pointer}");
            missed += 1;
        }
    }
    // View, grant, vouch, acknowledgement, order.
    assert_eq!(missed, 14 + 18 + 22 + 31 + 7);
}

#[test]
fn a_missing_optional_field_has_its_meaning() {
    let without = |pointer: &str| Message::Ack(ack()).with(pointer, Value::Null);
    let but = |change: &dyn Fn(&mut AckMessage)| {
        let mut message = ack();
        change(&mut message);
        Ok(Message::Ack(message))
    };
    assert_eq!(without("/fencedBy"), but(&|message| message.ack.fenced_by = None));
    assert_eq!(without("/mysqld"), but(&|message| message.ack.mysqld = None));
    assert_eq!(without("/gtidExecuted"), but(&|message| message.ack.gtid = None));
    assert_eq!(without("/leaseRemainingMs"), but(&|message| message.details.lease_remaining = None));
    assert_eq!(without("/version"), but(&|message| message.details.version = None));
    assert_eq!(without("/question"), but(&|message| message.question = None));
    assert_eq!(without("/relayed"), but(&|message| message.relayed = vec![]));
    assert_eq!(without("/readOnly"), Err(missing("readOnly")));

    let mut no_set = vouch();
    no_set.vouch.gtid = None;
    assert_eq!(Message::Vouch(vouch()).with("/gtidExecuted", Value::Null), Ok(Message::Vouch(no_set)));
    let mut nothing_excused = grant();
    nothing_excused.grant.open = Some(OpeningWord { promotion_gtid: crate::common::set("1-5"), excused: [].into() });
    assert_eq!(Message::Grant(grant()).with("/excused", Value::Null), Ok(Message::Grant(nothing_excused)));
}

#[test]
fn another_group_is_refused_wherever_it_is_named() {
    fn check(message: &Message, pointer: &str, field: &str) {
        assert_eq!(message.with(pointer, json!("another")), Err(Error::WrongGroup { field: field.into() }));
    }

    for message in Message::samples() {
        check(&message, "/groupUid", "groupUid");
    }
    check(&Message::Vouch(vouch()), "/ack/groupUid", "ack.groupUid");
    check(&Message::Ack(ack()), "/question/groupUid", "question.groupUid");
    check(&Message::Ack(ack()), "/relayed/0/ack/groupUid", "relayed[0].ack.groupUid");
}

#[test]
fn a_message_is_read_as_its_own_kind_only() {
    let verified = sent(&view().seal(&keys(), nonce()).expect("sealed"));
    let wrong = |expected| Error::WrongKind { expected, found: Kind::View };
    assert_eq!(GrantMessage::open(&verified, &group(), ID), Err(wrong(Kind::Grant)));
    assert_eq!(VouchMessage::open(&verified, &group(), ID), Err(wrong(Kind::Vouch)));
    assert_eq!(AckMessage::open(&verified, &group(), ID), Err(wrong(Kind::Ack)));
    // A grant holds a view, but a pushed view is never a grant, and a grant never a pushed view.
    let verified = sent(&grant().seal(&keys(), nonce()).expect("sealed"));
    let wrong = Error::WrongKind { expected: Kind::View, found: Kind::Grant };
    assert_eq!(ViewMessage::open(&verified, &group()), Err(wrong));
}

#[test]
fn malformed_fields_are_named() {
    fn check(message: &Message, pointer: &str, value: &Value, field: &str, problem: &str) {
        assert_eq!(message.with(pointer, value.clone()), Err(malformed(field, problem)), "{pointer} = {value}");
    }

    let whole = "not a whole number from 0 to 9223372036854775807";
    let view = Message::View(view());
    for number in
        [json!(-1), json!(7.5), json!(7.0), json!("7"), json!(1_u64 << 63), json!(1e30), json!(true), json!([])]
    {
        check(&view, "/epoch", &number, "epoch", whole);
    }
    check(&view, "/minPeers", &json!(1_u64 << 32), "minPeers", "above 4294967295");
    check(&view, "/phase", &json!("stable"), "phase", "none of Revoking Granting Stable");
    check(&view, "/site", &json!(""), "site", "an empty name");
    check(&view, "/instance", &json!(""), "instance", "not <pod UID>/<store id>");
    check(&view, "/instance", &json!("a/b/c"), "instance", "not <pod UID>/<store id>");
    check(&view, "/voters", &json!({}), "voters", "not a list");
    check(&view, "/voters", &json!([[]]), "voters[0]", "not an object");
    let voters = json!([{ "site": "iad", "instance": "a/b" }, { "site": "pdx", "instance": "a" }]);
    check(&view, "/voters", &voters, "voters[1].instance", "not <pod UID>/<store id>");
    let no_duration = "not a duration in whole milliseconds, e.g. 20s";
    for text in ["", "20", "-20s", "20 s", "1us"] {
        check(&view, "/leaseTimeout", &json!(text), "leaseTimeout", no_duration);
    }
    check(&view, "/leaseTimeout", &json!(20), "leaseTimeout", "not a text");

    let grant = Message::Grant(grant());
    check(&grant, "/open", &json!("true"), "open", "neither true nor false");
    let no_set = "expected a hexadecimal digit of a UUID, found 'x' at byte 0";
    check(&grant, "/promotionGtidExecuted", &json!("x"), "promotionGtidExecuted", no_set);
    check(&grant, "/excused", &json!({ "pdx": "x" }), "excused.pdx", no_set);
    check(&grant, "/excused", &json!({ "": "" }), "excused.", "an empty name");

    let ack = Message::Ack(ack());
    check(&ack, "/fencedBy", &json!("Boots"), "fencedBy", "none of Boot Mismatch Lease Conflict Others");
    check(&ack, "/mysqld", &json!("007"), "mysqld", "not the decimal text of a start of mysqld");
    check(&ack, "/lastVouchAgeMs", &json!([]), "lastVouchAgeMs", "not an object of sites");
    check(&ack, "/lastVouchAgeMs", &json!({ "iad": -1 }), "lastVouchAgeMs.iad", whole);
    check(&ack, "/relayed", &json!({}), "relayed", "not a list");
    check(&ack, "/relayed/0/ack/uptimeMs", &json!(-1), "relayed[0].ack.uptimeMs", whole);
    check(&ack, "/question/tSend", &json!(-1), "question.tSend", whole);
    assert_eq!(ack.with("/question/nonce", json!("x")), Err(Error::BadNonce));
}

#[test]
fn an_acknowledgement_handed_on_carries_no_question_and_no_others() {
    let carries_none = |field| Err(malformed(field, "an acknowledgement handed on carries none"));
    let (ack, vouch) = (Message::Ack(ack()), Message::Vouch(vouch()));
    assert_eq!(ack.with("/relayed/0/ack/question", json!({})), carries_none("relayed[0].ack.question"));
    assert_eq!(ack.with("/relayed/0/ack/relayed", json!([{}])), carries_none("relayed[0].ack.relayed"));
    assert_eq!(vouch.with("/ack/question", json!({})), carries_none("ack.question"));
    assert_eq!(vouch.with("/ack/relayed", json!([{}])), carries_none("ack.relayed"));
    assert_eq!(ack.with("/relayed/0/ack/relayed", json!([])), Ok(ack.clone()));
}

#[test]
fn nobody_asks_or_answers_for_another() {
    let other = "of another instance than the acknowledgement";
    assert_eq!(Message::Ack(ack()).with("/question/site", json!("iad")), Err(malformed("question", other)));
    assert_eq!(Message::Ack(ack()).with("/question/instance", json!("a/b")), Err(malformed("question", other)));
    let other = "of another instance than the vouch";
    assert_eq!(Message::Vouch(vouch()).with("/ack/instance", json!("a/b")), Err(malformed("ack", other)));
}

#[test]
fn not_stored_is_never_read_as_never_stored() {
    let problem = "false, although there is an epoch";
    assert_eq!(Message::Ack(ack()).with("/stored", json!(false)), Err(malformed("stored", problem)));
}

#[test]
fn fenced_contradicts_a_pair_that_is_open() {
    let problem = "true, although mysqld runs and the variables are not both 1";
    for pointer in ["/readOnly", "/superReadOnly"] {
        assert_eq!(Message::Ack(ack()).with(pointer, json!(false)), Err(malformed("fenced", problem)), "{pointer}");
    }
    let mut down = ack();
    down.ack.mysqld = None;
    assert!(Message::Ack(down).with("/readOnly", json!(false)).is_ok());
}

#[test]
fn an_opening_says_which_data_it_needs() {
    let opens = Message::Grant(renewal()).with("/open", json!(true));
    assert_eq!(opens, Err(missing("promotionGtidExecuted")));
    let Ok(Message::Grant(opens)) = Message::Grant(grant()).with("/promotionGtidExecuted", json!("")) else { panic!() };
    assert_eq!(opens.grant.open.map(|word| word.promotion_gtid), Some(GtidSet::new()));
    // What a grant that only renews says about data is nothing.
    let expect = GrantMessage { reason: grant().reason, ..renewal() };
    assert_eq!(Message::Grant(grant()).with("/open", json!(false)), Ok(Message::Grant(expect)));
}

#[test]
fn a_grant_names_somebody() {
    let mut body = Message::Grant(grant()).body();
    body["site"] = json!("");
    body["instance"] = json!("");
    let problem = "a grant under which nobody writes";
    assert_eq!(Message::Grant(grant()).read(&body), Err(malformed("site", problem)));
}

#[test]
fn what_would_be_refused_is_not_sealed() {
    fn check<T>(kind: fn(T) -> Message, mut message: T, change: &dyn Fn(&mut T), expect: &Error) {
        change(&mut message);
        assert_eq!(kind(message).seal().as_ref(), Err(expect));
    }

    let whole = "not a whole number from 0 to 9223372036854775807";
    check(Message::View, view(), &|message| message.view.epoch = 1 << 63, &malformed("epoch", whole));
    let instance = malformed("voters[0].instance", "not <pod UID>/<store id>");
    let odd = |message: &mut ViewMessage| message.view.voters[0].instance = Instance::new("a/b", "c");
    check(Message::View, view(), &odd, &instance);
    let no_site = |message: &mut ViewMessage| message.view.voters[1].site = Site::new("");
    check(Message::View, view(), &no_site, &malformed("voters[1].site", "an empty name"));
    let formless = malformed("body", "says something that has no form on the wire");
    let elsewhere = |message: &mut GrantMessage| message.grant.to.site = Site::new("pdx");
    check(Message::Grant, grant(), &elsewhere, &formless);
    let ages = |message: &mut AckMessage| message.relayed[0].age = Millis(u64::MAX);
    check(Message::Ack, ack(), &ages, &malformed("relayed[0].ageMs", whole));
    let group_of_question = |message: &mut AckMessage| {
        message.question.iter_mut().for_each(|question| question.group = GroupUid::new("another"));
    };
    check(Message::Ack, ack(), &group_of_question, &Error::WrongGroup { field: "question.groupUid".into() });
    let unfenced = |message: &mut VouchMessage| {
        message.details.variables.iter_mut().for_each(|pair| pair.super_read_only = false);
    };
    let problem = "true, although mysqld runs and the variables are not both 1";
    check(Message::Vouch, vouch(), &unfenced, &malformed("ack.fenced", problem));
}

#[test]
fn a_message_that_grew_too_long_is_not_sealed() {
    let mut message = ack();
    let one = message.relayed[0].clone();
    let version = Some("x".repeat(1000));
    message.relayed =
        vec![bloodraven_wire::message::Relayed { details: Details { version, ..one.details }, ..one }; 1000];
    assert!(matches!(message.seal(&keys(), nonce()), Err(Error::TooLarge { .. })));
}

#[test]
fn a_grant_has_the_id_of_the_question_that_the_reader_asked() {
    let verified = sent(&grant().seal(&keys(), nonce()).expect("sealed"));
    let id = bloodraven_brain::message::QuestionId(7);
    let read = GrantMessage::open(&verified, &group(), id).expect("a grant");
    assert_eq!(read.grant, Grant { id, ..grant().grant });
}

#[test]
fn a_grant_counts_for_an_outstanding_question_once() {
    let lease = Millis(20_000);
    let asked = Asked { id: ID, t_send: Boot(1000) };
    let mut outstanding = Outstanding::default();
    assert!(outstanding.ask(nonce(), asked, lease));
    let answer = sent(&grant().seal(&keys(), nonce()).expect("sealed"));
    let question = outstanding.take(answer.nonce(), Boot(1200), lease);
    assert_eq!(question, Some(asked));
    assert_eq!(GrantMessage::open(&answer, &group(), asked.id), Ok(grant()));
    // Played again, it answers nothing: there is no id left to read it with.
    let replayed = sent(&grant().seal(&keys(), nonce()).expect("sealed"));
    assert_eq!(outstanding.take(replayed.nonce(), Boot(1201), lease), None);
}
