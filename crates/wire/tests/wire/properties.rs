//! Any value survives the wire, and no bytes do harm.
//!
//! In: arbitrary words of the brain, arbitrary bytes. Out: the same words; an error. Must not: panic, or accept what no
//! key signed.

use crate::common::{ID, group, keys, nonce, sent, signed};
use bloodraven_brain::message::{Ack, FencedBy, Grant, OpeningWord, Question, StartId, Vouch};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Phase, Settings, View};
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_brain::volume::Space;
use bloodraven_gtid::GtidSet;
use bloodraven_wire::message::{Details, Relayed, Variables};
use bloodraven_wire::query::{METHOD, Purpose, verify};
use bloodraven_wire::{AckMessage, Envelope, GrantMessage, Kind, Nonce, QuestionMessage, ViewMessage, VouchMessage};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;

/// What fits into status, too.
const WHOLE: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

fn millis() -> impl Strategy<Value = Millis> {
    WHOLE.prop_map(Millis)
}

/// Names are letters in practice; the wire takes any.
fn site() -> impl Strategy<Value = Site> {
    prop_oneof!["[a-z]{1,8}", ".{1,8}"].prop_map(|name| Site::new(&name))
}

fn instance() -> impl Strategy<Value = Instance> {
    ("[^/]{1,8}", "[^/]{1,8}").prop_map(|(pod, store)| Instance::new(&pod, &store))
}

fn member() -> impl Strategy<Value = Member> {
    (site(), instance()).prop_map(|(site, instance)| Member { site, instance })
}

fn set() -> impl Strategy<Value = GtidSet> {
    let entry = (0..4_u8, "(:[a-c])?", 1..1_000_u64, 0..1_000_u64).prop_map(|(server, tag, start, more)| {
        format!("00000000-0000-0000-0000-00000000000{server}{tag}:{start}-{}", start + more)
    });
    vec(entry, 0..5).prop_map(|entries| entries.join(",").parse().expect("a set"))
}

fn view() -> impl Strategy<Value = ViewMessage> {
    let phase = prop_oneof![Just(Phase::Revoking), Just(Phase::Granting), Just(Phase::Stable)];
    let settings = (any::<u64>(), any::<u32>())
        .prop_map(|(lease, min_peers)| Settings { lease_timeout: Millis(lease), min_peers });
    (WHOLE, WHOLE, phase, of(member()), vec(member(), 0..5), settings, ".{0,30}").prop_map(
        |(epoch, tenure, phase, seat, voters, settings, observed_at)| {
            let view = View { epoch, tenure, phase, seat, voters, settings };
            ViewMessage { group: group(), view, observed_at }
        },
    )
}

fn grant() -> impl Strategy<Value = GrantMessage> {
    let word = (set(), btree_map(site(), set(), 0..3))
        .prop_map(|(promotion_gtid, excused)| OpeningWord { promotion_gtid, excused });
    (view(), member(), of(word), ".{0,30}").prop_map(|(view, seat, open, reason)| {
        let ViewMessage { group, view, observed_at } = view;
        let view = View { seat: Some(seat.clone()), ..view };
        GrantMessage { group, grant: Grant { id: ID, to: seat, view, open }, observed_at, reason }
    })
}

prop_compose! {
    fn ack()(
        from in member(),
        epoch in of(WHOLE),
        (fenced, opened_by_hand, conflict) in any::<(bool, bool, bool)>(),
        gtid in of(set()),
        fenced_by in of(prop::sample::select(vec![
            FencedBy::Boot, FencedBy::Mismatch, FencedBy::Lease, FencedBy::Conflict, FencedBy::Others,
        ])),
        mysqld in of(any::<u64>().prop_map(StartId)),
        last_vouch in btree_map(site(), millis(), 0..4),
        last_answer in btree_map(site(), millis(), 0..4),
        uptime in millis(),
    ) -> Ack {
        Ack { from, epoch, fenced, gtid, fenced_by, opened_by_hand, conflict, mysqld, last_vouch, last_answer, uptime }
    }
}

/// An acknowledgement, with details that do not contradict it.
fn ack_with_details() -> impl Strategy<Value = (Ack, Details)> {
    let volume = of((WHOLE, WHOLE).prop_map(|(free, total)| Space { free, total }));
    let details = (of(any::<(bool, bool)>()), of(millis()), of(".{0,12}"), volume);
    (ack(), details).prop_map(|(ack, (pair, lease_remaining, version, volume))| {
        let running_and_fenced = ack.fenced && ack.mysqld.is_some();
        let variables = pair.map(|(read_only, super_read_only)| Variables {
            read_only: read_only || running_and_fenced,
            super_read_only: super_read_only || running_and_fenced,
        });
        (ack, Details { variables, lease_remaining, version, volume })
    })
}

fn question_of(from: Member) -> impl Strategy<Value = QuestionMessage> {
    (any::<[u8; 16]>(), WHOLE, any::<bool>(), WHOLE).prop_map(move |(nonce, epoch, open, t_send)| QuestionMessage {
        group: group(),
        nonce: Nonce::new(nonce),
        question: Question { id: ID, from: from.clone(), epoch, open },
        t_send: Boot(t_send),
    })
}

fn full_ack() -> impl Strategy<Value = AckMessage> {
    let relayed = (ack_with_details(), millis()).prop_map(|((ack, details), age)| Relayed { ack, details, age });
    (ack_with_details(), vec(relayed, 0..3)).prop_flat_map(|((ack, details), relayed)| {
        of(question_of(ack.from.clone())).prop_map(move |question| AckMessage {
            group: group(),
            // An id is the reader's own.
            question,
            ack: ack.clone(),
            details: details.clone(),
            relayed: relayed.clone(),
        })
    })
}

fn vouch() -> impl Strategy<Value = VouchMessage> {
    (ack_with_details(), member(), WHOLE, WHOLE, any::<bool>(), of(set())).prop_map(
        |((ack, details), about, epoch, highest_epoch, ok, gtid)| {
            let vouch = Vouch { id: ID, epoch, from: ack.from.clone(), about, ok, gtid, ack: Box::new(ack) };
            VouchMessage { group: group(), vouch, highest_epoch, details }
        },
    )
}

/// Texts that look like a body: good names with any values.
fn body_like() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "groupUid",
        "epoch",
        "tenure",
        "phase",
        "site",
        "instance",
        "voters",
        "leaseTimeout",
        "minPeers",
        "observedAt",
        "toInstance",
        "open",
        "excused",
        "stored",
        "fenced",
        "relayed",
        "ack",
        "ageMs",
        "from",
        "about",
        "question",
    ]);
    let value = prop_oneof![
        Just(format!("\"{}\"", crate::common::GROUP)),
        prop::sample::select(vec![
            "null",
            "true",
            "0",
            "-1",
            "1e308",
            "99999999999999999999999",
            "\"\"",
            "[",
            "{}",
            "\"\\ud800\""
        ])
        .prop_map(str::to_owned),
        "[\\[\\]{}\",:0-9a-z\\\\]{0,12}",
    ];
    vec((name, value), 0..8).prop_map(|fields| {
        let fields: Vec<String> = fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}

proptest! {
    #[test]
    fn every_view_comes_back(message in view()) {
        let verified = sent(&message.seal(&keys(), nonce()).expect("sealed"));
        prop_assert_eq!(ViewMessage::open(&verified, &group()), Ok(message));
    }

    #[test]
    fn every_grant_comes_back(message in grant()) {
        let verified = sent(&message.seal(&keys(), nonce()).expect("sealed"));
        prop_assert_eq!(GrantMessage::open(&verified, &group(), ID), Ok(message));
    }

    #[test]
    fn every_vouch_comes_back(message in vouch()) {
        let verified = sent(&message.seal(&keys(), nonce()).expect("sealed"));
        prop_assert_eq!(VouchMessage::open(&verified, &group(), ID), Ok(message));
    }

    #[test]
    fn every_acknowledgement_comes_back(message in full_ack()) {
        let verified = sent(&message.seal(&keys(), nonce()).expect("sealed"));
        prop_assert_eq!(AckMessage::open(&verified, &group(), ID), Ok(message));
    }

    #[test]
    fn every_question_comes_back(message in member().prop_flat_map(question_of)) {
        let target = message.to_target(&keys(), "/peer/ping", &[]).expect("a target");
        let query = verify(&keys(), Purpose::Authority, METHOD, &target).expect("signed");
        prop_assert_eq!(QuestionMessage::from_query(&query, &group(), ID), Ok(message));
    }

    #[test]
    fn no_bytes_pass_for_signed(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(Envelope::read(&bytes).and_then(|envelope| envelope.open(&keys())).is_err());
        prop_assert!(!matches!(Envelope::read_signed(&bytes), Ok(Some(_))));
    }

    #[test]
    fn a_byte_changed_anywhere_changes_no_message(message in full_ack(), at: prop::sample::Index, byte: u8) {
        let mut bytes = message.seal(&keys(), nonce()).expect("sealed").to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // White space between the fields may change; what was signed may not.
        if let Ok(verified) = Envelope::read(&bytes).and_then(|envelope| envelope.open(&keys())) {
            prop_assert_eq!(AckMessage::open(&verified, &group(), ID), Ok(message));
        }
    }

    #[test]
    fn no_signed_body_makes_a_reader_panic(body in prop_oneof![body_like(), ".{0,200}"]) {
        let view = ViewMessage::open(&signed(Kind::View, &body), &group());
        let grant = GrantMessage::open(&signed(Kind::Grant, &body), &group(), ID);
        let vouch = VouchMessage::open(&signed(Kind::Vouch, &body), &group(), ID);
        let ack = AckMessage::open(&signed(Kind::Ack, &body), &group(), ID);
        // None of them has room for all the fields that are needed.
        prop_assert!(view.is_err() && grant.is_err() && vouch.is_err() && ack.is_err());
    }
}

#[test]
fn hostile_bodies_are_refused() {
    let deep = |open: &str, close: &str| format!("{{\"x\":{}{}}}", open.repeat(60_000), close.repeat(60_000));
    let many = format!("{{\"groupUid\":\"{}\",\"voters\":[{}0]}}", crate::common::GROUP, "0,".repeat(100_000));
    for body in [
        deep("[", "]"),
        deep("{\"a\":", "}"),
        format!("{{\"epoch\":{}}}", "9".repeat(400_000)),
        format!("{{\"epoch\":-0.{}e{}}}", "9".repeat(1000), "9".repeat(1000)),
        r#"{"epoch":1,"epoch":2}"#.into(),
        r#"{"groupUid":"\ud800"}"#.into(),
        "\u{feff}{}".into(),
        "{\"a\":\"\0\"}".into(),
        many,
    ] {
        let verified = signed(Kind::View, &body);
        let error = ViewMessage::open(&verified, &group()).expect_err("hostile");
        assert!(error.to_string().len() < 200, "{error}");
    }
}
