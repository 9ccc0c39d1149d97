//! Who is promoted, and when its relay log is drained: rows that read like the pages.

use super::*;

fn uuid(letter: char) -> Uuid {
    format!("00000000-0000-0000-0000-00000000000{letter}").parse().expect("a server")
}

/// `a1-9,b3`: transactions 1-9 of server a and 3 of server b; `-` is the empty set.
fn set(text: &str) -> GtidSet {
    let entry = |entry: &str| format!("{}:{}", uuid(entry.chars().next().expect("a server's letter")), &entry[1..]);
    let entries: Vec<String> = text.split(',').filter(|entry| *entry != "-").map(entry).collect();
    entries.join(",").parse().expect("a set")
}

/// What a set looks like in a row.
fn short(set: &GtidSet) -> String {
    let text = set.compact().to_string().replace("00000000-0000-0000-0000-00000000000", "");
    text.replace(", ", ",").split(',').map(|entry| entry.replacen(':', "", 1)).collect::<Vec<_>>().join(",")
}

/// `pdx a1-9 +a5-12 …`: executed, received (`+`), purged (`~`), and words.
fn candidate(text: &str) -> Candidate {
    let mut words = text.split_whitespace();
    let name = words.next().expect("a site's name");
    let mut data = Data::default();
    let mut candidate = Candidate {
        site: Site::new(name),
        role: Role::PrimaryCandidate,
        state: State::ReadOnly,
        fenced: true,
        sidecar: Sidecar::Listed(Instance::new(name, "1")),
        busy: None,
        answers: 9,
        data: None,
        drain: Progress::Done,
    };
    let mut read = true;
    for word in words {
        match word {
            "dr" => candidate.role = Role::DrOnly,
            "unreachable" => candidate.state = State::Unreachable,
            "unknown" => candidate.state = State::Unknown,
            "writable" => (candidate.state, candidate.fenced) = (State::Writable, false),
            "half-open" => candidate.fenced = false,
            "not-yet-read-only" => candidate.state = State::Writable,
            "silent" => candidate.sidecar = Sidecar::Silent,
            "unlisted" => candidate.sidecar = Sidecar::NotListed,
            "blocked" => candidate.busy = Some(Busy::RecoveryBlocked),
            "copied" => candidate.busy = Some(Busy::Copied),
            "cloning" => candidate.busy = Some(Busy::Cloning),
            "restoring" => candidate.busy = Some(Busy::Restoring),
            "once" => candidate.answers = 1,
            "twice" => candidate.answers = 2,
            "unread" => read = false,
            "pending" => candidate.drain = Progress::Pending,
            "gave-up" => candidate.drain = Progress::GaveUp(drain::Cause::BoundReached(drain::BOUND)),
            word => match word.split_at(1) {
                ("+", received) => data.received = set(received),
                ("~", purged) => data.purged = set(purged),
                _ => data.executed = set(word),
            },
        }
    }
    candidate.data = read.then_some(data);
    candidate
}

struct Given<'a> {
    /// Effective priority list, comma-separated.
    list: &'a str,
    wish: Option<&'a str>,
    known: &'a str,
    last: Option<char>,
    old_holder: &'a str,
    last_promotion: &'a str,
}

const GIVEN: Given<'_> =
    Given { list: "", wish: None, known: "a", last: Some('a'), old_holder: "old", last_promotion: "a1" };

fn decide(given: &Given<'_>, sites: &str) -> Decision {
    let sites: Vec<Candidate> = sites.split('|').map(candidate).collect();
    let priorities: Vec<Site> = given.list.split(',').filter(|name| !name.is_empty()).map(Site::new).collect();
    let known: Vec<Uuid> = given.known.chars().map(uuid).collect();
    let wish = given.wish.map(Site::new);
    choose(&Choice {
        sites: &sites,
        last_site: Some(&Site::new(given.old_holder)),
        recovery_threshold: 2,
        known_primaries: &known,
        last_primary: given.last.map(uuid),
        last_promotion: &set(given.last_promotion),
        priorities: &priorities,
        wish: wish.as_ref(),
    })
}

fn check(given: &Given<'_>, sites: &str, expected: &str) {
    let told = decide(given, sites).chosen.map(|chosen| format!("{} by {}", chosen.member.site, chosen.rule));
    assert_eq!(told.as_deref().unwrap_or("nobody"), expected, "{sites}");
}

#[test]
fn c_48_freshest_wins_then_priority_then_declared_order() {
    let preferred = Given { list: "pdx,iad", ..GIVEN };
    check(&GIVEN, "iad a1-9", "iad by only candidate");
    check(&GIVEN, "iad a1-9 | pdx a1-8", "iad by strict superset");
    check(&GIVEN, "iad a1-8 | pdx a1-9", "pdx by strict superset");
    // the freshest is not the preferred one
    check(&preferred, "iad a1-9 | pdx a1-8", "iad by strict superset");
    check(&preferred, "iad a1-9 | pdx a1-8 | fra a1-9,b1", "fra by strict superset");
    // equal sets: first in the priority list, else declared order
    check(&preferred, "iad a1-9 | pdx a1-9", "pdx by equal sets, then priority");
    check(&preferred, "fra a1-9 | iad a1-9 | pdx a1-8", "iad by equal sets, then priority");
    check(&GIVEN, "iad a1-9 | pdx a1-9", "iad by equal sets, then declared order");
    let elsewhere = Given { list: "syd", ..GIVEN };
    check(&elsewhere, "pdx a1-9 | iad a1-9", "pdx by equal sets, then declared order");
    // an entry of the list that is not eligible is passed over
    check(&preferred, "iad a1-9 | pdx a1-9 silent | fra a1-9", "iad by equal sets, then priority");
}

#[test]
fn p_05_freshness_is_executed_plus_received() {
    check(&GIVEN, "iad a1-9 | pdx a1-5 +a6-12", "pdx by strict superset");
    check(&GIVEN, "iad a1-9 | pdx a1-5 +a6-12 pending", "pdx by strict superset");
    check(&GIVEN, "iad a1-9 | pdx a1-9 +a5-9", "iad by equal sets, then declared order");
    check(&GIVEN, "iad a1-9 +- | pdx a1-9", "iad by equal sets, then declared order");
}

#[test]
fn p_04_a_drain_that_was_given_up_counts_only_what_was_executed() {
    // another candidate has more, or as much
    check(&GIVEN, "iad a1-9 +a10-20 gave-up | pdx a1-15", "pdx by strict superset");
    check(&GIVEN, "iad a1-9 +a10-20 gave-up | pdx a1-9", "pdx by equal sets, then fully drained");
    let preferred = Given { list: "iad", ..GIVEN };
    check(&preferred, "iad a1-9 +a10-20 gave-up | pdx a1-9", "pdx by equal sets, then fully drained");
    // nobody else has as much: promoted, and exactly what is lost is named
    check(&GIVEN, "iad a1-9 +a8-20 gave-up | pdx a1-8", "iad by strict superset");
    let chosen = decide(&GIVEN, "iad a1-9 +a8-20 gave-up").chosen.expect("iad");
    assert_eq!(short(&chosen.unapplied), "a10-20");
    assert!(matches!(chosen.drain, Progress::GaveUp(_)));
}

#[test]
fn p_06_incomparable_sets_count_known_primaries_then_the_last_one() {
    // UUIDs that never held authority are ignored
    check(&GIVEN, "iad a1-8,b1 | pdx a1-9", "pdx by known primaries only");
    check(&GIVEN, "iad a1-9,b1 | pdx a1-9,c1", "iad by known primaries only, then declared order");
    let preferred = Given { list: "pdx", ..GIVEN };
    check(&preferred, "iad a1-9,b1 | pdx a1-9,c1", "pdx by known primaries only, then priority");
    // a site that another one surpasses outright does not come back by a narrower comparison
    let third = Given { list: "fra", ..GIVEN };
    check(&third, "iad a1-9,b1 | pdx a1-9,c1 | fra a1-9", "iad by known primaries only, then declared order");
    // still incomparable: most transactions of the last primary
    let two = Given { known: "ab", last: Some('b'), ..GIVEN };
    check(&two, "iad a1-9,b1-3 | pdx a1-5,b1-7", "pdx by most transactions of the last primary");
    let two = Given { known: "ab", last: Some('a'), ..GIVEN };
    check(&two, "iad a1-9,b1-3 | pdx a1-5,b1-7", "iad by most transactions of the last primary");
    let preferred = Given { known: "ab", last: Some('a'), list: "pdx", ..GIVEN };
    check(&preferred, "iad a1-9,b1-3 | pdx a1-5,b1-7", "iad by most transactions of the last primary");
    check(&preferred, "iad a1-3,b9 | pdx a4-6,b8", "pdx by most transactions of the last primary, then priority");
    let unknown = Given { known: "ab", last: None, ..GIVEN };
    check(&unknown, "iad a1-9,b1 | pdx a1,b1-2", "iad by most transactions of the last primary, then declared order");
}

#[test]
fn c_49_both_differences_are_named() {
    let given = Given { known: "ab", last: Some('b'), ..GIVEN };
    let chosen = decide(&given, "iad a1-9,b1-3 | pdx a1-5,b1-7 | fra a1").chosen.expect("pdx");
    assert!(chosen.is_doubtful());
    let differences: Vec<String> = chosen
        .incomparable
        .iter()
        .map(|one| format!("{}: {} against {}", one.other, short(&one.only_chosen), short(&one.only_other)))
        .collect();
    assert_eq!(differences, ["iad: b4-7 against a6-9"]);
    // no doubt, nothing to name
    let chosen = decide(&GIVEN, "iad a1-9 | pdx a1-8").chosen.expect("iad");
    assert!(!chosen.is_doubtful() && chosen.incomparable.is_empty());
    // known primaries decided: named, but no warning
    let chosen = decide(&GIVEN, "iad a1-8,b1 | pdx a1-9").chosen.expect("pdx");
    assert!(!chosen.is_doubtful());
    assert_eq!(chosen.incomparable.len(), 1);
}

#[test]
fn what_the_choice_gives_up_is_named_per_site() {
    let given = Given { known: "ab", last: Some('b'), ..GIVEN };
    let sites = "iad a1-9,b1-3 | pdx a1-5,b1-7 | fra a1 | syd dr a1-5,b1-9 | old unreachable a1-12 | new unread";
    let chosen = decide(&given, sites).chosen.expect("pdx");
    let given_up: Vec<String> = chosen.given_up.iter().map(|(site, set)| format!("{site}: {}", short(set))).collect();
    assert_eq!(given_up, ["iad: a6-9", "old: a6-12", "syd: b8-9"]);
    assert_eq!(chosen.member, Member::new(&Site::new("pdx"), &Instance::new("pdx", "1")));
}

#[test]
fn a_wish_made_by_hand_is_first_among_equals_only() {
    let wish = Given { wish: Some("fra"), list: "iad", ..GIVEN };
    check(&wish, "iad a1-9 | pdx a1-9 | fra a1-9", "fra by equal sets, then opened by hand");
    check(&wish, "iad a1-9 | pdx a1-9 | fra a1-8", "iad by equal sets, then priority");
    check(&wish, "iad a1-9 | fra a1-9,b1", "fra by strict superset");
    check(&wish, "iad a1-9 | fra a1-9 silent", "iad by only candidate");
}

#[test]
fn p_15_among_equals_binary_logs_that_serve_every_follower_are_preferred() {
    // iad has purged what syd still needs
    check(
        &GIVEN,
        "iad a1-9 ~a1-5 | pdx a1-9 ~a1-2 | syd dr a1-3",
        "pdx by equal sets, then binary logs for every follower",
    );
    let preferred = Given { list: "iad", ..GIVEN };
    check(
        &preferred,
        "iad a1-9 ~a1-5 | pdx a1-9 | syd dr a1-3",
        "pdx by equal sets, then binary logs for every follower",
    );
    // nobody serves it, or everybody does: the next rule decides
    check(&GIVEN, "iad a1-9 ~a1-5 | pdx a1-9 ~a1-5 | syd dr a1-3", "iad by equal sets, then declared order");
    check(&GIVEN, "iad a1-9 ~a1-3 | pdx a1-9 | syd dr a1-3", "iad by equal sets, then declared order");
    // freshness first
    check(&GIVEN, "iad a1-9 ~a1-5 | pdx a1-8 | syd dr a1-3", "iad by strict superset");
    // sites that will be copied anew, or are gone, do not go on from binary logs
    check(&GIVEN, "iad a1-9 ~a1-5 | pdx a1-9 | syd dr -", "iad by equal sets, then declared order");
    check(&GIVEN, "iad a1-9 ~a1-5 | pdx a1-9 | syd dr a1 cloning", "iad by equal sets, then declared order");
    check(&GIVEN, "iad a1-9 ~a1-5 | pdx a1-9 | syd dr a1 unreachable", "iad by equal sets, then declared order");
}

/// K-27: so does a site that is not promoted.
#[test]
fn each_refused_site_has_its_reason() {
    let rows = [
        ("iad dr a1-9", "dr-only is never promoted"),
        ("iad unreachable a1-9", "unreachable"),
        ("iad unknown a1-9", "unknown"),
        ("iad writable a1-9", "not fenced"),
        ("iad half-open a1-9", "not fenced"),
        ("iad not-yet-read-only a1-9", "not fenced"),
        ("iad silent a1-9", "its sidecar is silent"),
        ("iad unlisted a1-9", "its instance is not listed yet"),
        ("iad blocked a1-9", "it has divergent transactions"),
        ("iad cloning a1-9", "it is being cloned"),
        ("iad restoring a1-9", "a restore works on it"),
        ("iad unread", "its GTID sets are unknown"),
        ("iad -", "it has no data"),
        ("old once a1-12", "it came back 1 of 2 polls ago"),
    ];
    for (site, expected) in rows {
        let decision = decide(&GIVEN, site);
        let told: Vec<String> = decision.refused.iter().map(|(_, why)| why.to_string()).collect();
        assert_eq!((decision.chosen, told), (None, vec![expected.to_owned()]), "{site}");
        // a better one is not kept from it
        let beside = format!("{site} | pdx a1-2");
        check(&GIVEN, &beside, "pdx by only candidate");
    }
}

#[test]
fn c_06_an_empty_site_is_no_candidate_where_data_are_known_to_exist() {
    let fresh = Given { last_promotion: "-", ..GIVEN };
    check(&GIVEN, "iad -", "nobody");
    check(&fresh, "iad - | pdx unreachable a1-9", "nobody");
    check(&fresh, "iad - | pdx -", "iad by equal sets, then declared order");
    check(&GIVEN, "iad - +a1-5 pending", "iad by only candidate");
}

#[test]
fn the_old_holder_is_a_candidate_again_and_its_freshest_data_win() {
    check(&GIVEN, "old a1-12 | pdx a1-9", "old by strict superset");
    check(&GIVEN, "old a1-12 once | pdx a1-9", "pdx by only candidate");
    check(&GIVEN, "old a1-12 twice | pdx a1-9", "old by strict superset");
    check(&GIVEN, "old a1-12 blocked | pdx a1-9", "pdx by only candidate");
    check(&GIVEN, "pdx a1-9 once", "pdx by only candidate");
}

#[test]
fn c_49_a_complete_copy_that_follows_nobody_is_promoted_if_it_is_one_of_the_last_primary() {
    let moved = Given { last_promotion: "a1-9,b1-3", last: Some('b'), known: "ab", ..GIVEN };
    check(&moved, "iad a1-9,b1-7 copied", "iad by only candidate");
    // all that was received counts, too
    check(&moved, "iad a1-9,b1 +b2-7 copied", "iad by only candidate");
    // it lacks what the last primary began with
    check(&moved, "iad a1-8,b1-7 copied", "nobody");
    // its donor was an earlier primary, with a write that the last one lacked
    check(&moved, "iad a1-10,b1-7 copied", "nobody");
    check(&moved, "iad a1-9,b1-7,c1 copied", "nobody");
    // who the last primary was is not known
    check(&Given { last: None, ..moved }, "iad a1-9,b1-7 copied", "nobody");
    // the freshest wins as ever
    check(&moved, "iad a1-9,b1-7 copied | pdx a1-9,b1-8", "pdx by strict superset");
    check(&moved, "iad a1-9,b1-9 copied | pdx a1-9,b1-8", "iad by strict superset");
    // nothing else is forgiven
    check(&moved, "iad a1-9,b1-7 copied silent", "nobody");
    check(&moved, "iad a1-9,b1-7 copied half-open", "nobody");
    check(&moved, "iad a1-9,b1-7 cloning", "nobody");
    let Decision { refused, .. } = decide(&moved, "iad a1-10,b1-7 copied");
    assert_eq!(refused, [(Site::new("iad"), Refusal::Busy(Busy::Copied))]);
}
