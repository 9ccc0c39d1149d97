//! GTID sets against the real server: what `bloodraven_gtid` says about two sets is what MySQL says.
//!
//! Texts are generated from fixed seeds and spelled as badly as the server allows. Every difference fails the test and
//! names the seed of its pair.

#![expect(clippy::expect_used, clippy::panic, reason = "a helper of a test fails the test, as the test itself does")]

use std::collections::BTreeMap;
use std::time::Duration;

use bloodraven_gtid::{GtidSet, MAX_NUMBER};
use bloodraven_testbed::mysql::MysqlServer;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};

/// No statement here takes longer than a second; a server that hangs must not hang the test.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pairs of sets in all.
const PAIRS: u64 = 24_000;

/// Pairs in one statement: enough to make the round trip cheap, few enough for a readable failure.
const BATCH: u64 = 400;

/// Damaged texts, one statement each.
const DAMAGED: u64 = 6_000;

const SEED: u64 = 0xb10d_4a7e;

/// The server's error for a text that is no GTID set.
const MALFORMED_GTID_SET: u16 = 1772;

#[rustfmt::skip]
const ACCEPTED: &[&str] = &[
    "", " ", "\n", ",", " ,, ", "#", "#,", "#:t", "#:t:u", "#:1:t", "#:1,,#:2", ",#:1", "#:5-3", "#:1-0", "#:t:5-3", "#:007",
    "#:1-0002", "#:9223372036854775806", "#:9223372036854775806-1", "# : 1 - 2 : 3", "#\t:\n1\r-\u{b}2\u{c}", "{#}:1", "%:1",
    "#:_:1", "#:_9:1", "#:T:1:t:2", "#: t : 1", "#:tttttttttttttttttttttttttttttttt:1", "#:t:1:2:u:1:t:9", "#:t:1,#:2", "#:e:1",
];

#[rustfmt::skip]
const REFUSED: &[&str] = &[
    "x", "-", ":1", "AUTOMATIC", "ANONYMOUS", "#:", "#:,#:1", "#:1:", "#::1", "#:t:", "#:0", "#:0-0", "#:0-5", "#:-1", "#:+1",
    "#:1-", "#:1--2", "#:1-2-3", "#:1 2", "#:1.5", "#:1e3", "#:0x1", "#:9223372036854775807", "#:1-9223372036854775807",
    "#:18446744073709551617", "#:1;#:2", "#:1 #:2", "#:1\n#:2", "{%}:1", "{#:1", "#}:1", "{ # }:1", "(#):1", "'#:1'", "#0:1",
    "#:9t:1", "#:t-u:1", "#:t.u:1", "#:t u:1", "#:t$:1", "#:ttttttttttttttttttttttttttttttttt:1", "#:1\0", 
    "#:1,:2", "3e11fa47_71ca_11e1_9e33_c80aa9429562:1", "3e11fa4771ca-11e1-9e33-c80aa9429562:1",
    "3e11fa47-71ca11e19e33c80aa9429562:1", "3e11fa47-71ca-11e1-9e33-c80aa942956:1",
];

/// What can be said about two sets.
#[derive(Debug, PartialEq)]
struct Answer {
    contains: bool,
    is_contained: bool,
    less: String,
    more: String,
    intersection: String,
    union: String,
    canonical: String,
}

#[tokio::test]
async fn sets_are_what_the_server_says_they_are() {
    let server = MysqlServer::builder().name("gtid").start().expect("a server");
    let mut conn = connect(&server).await;
    pairs_agree(&mut conn).await;
    odd_texts_get_the_same_verdict(&mut conn).await;
    damaged_texts_get_the_same_verdict(&mut conn).await;
    beyond_ascii_we_are_stricter(&mut conn).await;
    what_was_executed_is_printed_back(&mut conn).await;
    patiently(conn.disconnect()).await;
}

/// Two sets contain, subtract, intersect, unite and print as on the server.
async fn pairs_agree(conn: &mut Conn) {
    let (mut contained, mut crossed) = (0, 0);
    for batch in 0..PAIRS / BATCH {
        let first = SEED + batch * BATCH;
        let pairs: Vec<_> = (first..first + BATCH).map(|seed| (seed, Random(seed).pair())).collect();
        let answers = ask(conn, &pairs).await;
        for (seed, (left, right)) in pairs {
            let theirs = answers.get(&seed).expect("an answer for each pair");
            assert_eq!(&answer_ourselves(&left, &right), theirs, "pair of seed {seed:#x}: {left:?} and {right:?}");
            contained += u64::from(theirs.contains);
            crossed += u64::from(!theirs.contains && !theirs.is_contained && !theirs.intersection.is_empty());
        }
    }
    println!("{PAIRS} pairs agree: {contained} contained, {crossed} crossed");
    // The generator must produce both verdicts in numbers, or the agreement means little.
    assert!(contained > PAIRS / 10 && crossed > PAIRS / 10, "{contained} contained, {crossed} crossed of {PAIRS}");
}

/// Every oddity and every mistake that came to mind. `#` stands for a UUID, `%` for the same one without dashes.
async fn odd_texts_get_the_same_verdict(conn: &mut Conn) {
    let rows = ACCEPTED.iter().map(|row| (row, true)).chain(REFUSED.iter().map(|row| (row, false)));
    for (row, is_accepted) in rows {
        let text = row.replace('#', SERVERS[0]).replace('%', &SERVERS[0].replace('-', ""));
        assert_eq!(verdict(conn, &text).await.is_some(), is_accepted, "{row:?}");
    }
}

/// Texts with a character lost, added, replaced or moved.
async fn damaged_texts_get_the_same_verdict(conn: &mut Conn) {
    let mut refused = 0;
    for seed in SEED..SEED + DAMAGED {
        refused += u64::from(verdict(conn, &Random(seed).damaged()).await.is_none());
    }
    println!("{DAMAGED} damaged texts agree: {refused} refused");
    assert!((DAMAGED / 5..DAMAGED * 4 / 5).contains(&refused), "{refused} of {DAMAGED} were refused");
}

/// The one difference in grammar. In a tag, after its first character, the functions of MySQL 9.7 take any byte that is not ASCII and
/// turn it into 0xff, so that they print what is no text. No transaction can have such a tag: `gtid_next` refuses it.
async fn beyond_ascii_we_are_stricter(conn: &mut Conn) {
    let text = format!("{}:t\u{e9}:1", SERVERS[0]);
    assert!(text.parse::<GtidSet>().is_err());
    let theirs = canonical_by_server(conn, &text).await;
    assert_eq!(
        theirs,
        Some(text.replace('\u{e9}', "\u{fffd}\u{fffd}")),
        "fixed in the server? then so is the difference"
    );
    let refusal = tokio::time::timeout(PATIENCE, conn.exec_drop("SET gtid_next = ?", (text,))).await;
    assert!(refusal.expect("the server answers in time").is_err());
    for row in ["#:\u{e9}:1", "#\u{e9}:1"] {
        let text = row.replace('#', SERVERS[0]);
        assert!(text.parse::<GtidSet>().is_err(), "{row:?}");
        assert_eq!(canonical_by_server(conn, &text).await, None, "{row:?}");
    }
}

/// The set of a server that executed transactions of its own, with tags, and those of another server.
async fn what_was_executed_is_printed_back(conn: &mut Conn) {
    let uuid: Option<String> = patiently(conn.query_first("SELECT @@server_uuid")).await;
    let uuid = uuid.expect("a value");
    let other = "00000000-0000-0000-0000-00000000000a";
    for gtid in
        ["AUTOMATIC", "AUTOMATIC:Zulu", "AUTOMATIC:alpha", "#:alpha:7", "#:9", "#:8", "AUTOMATIC:alpha", "%:100"]
    {
        let gtid = gtid.replace('#', &other.to_uppercase()).replace('%', &uuid);
        patiently(conn.query_drop(format!("SET gtid_next = '{gtid}'"))).await;
        patiently(conn.query_drop("FLUSH PRIVILEGES")).await;
    }
    patiently(conn.query_drop("SET gtid_next = 'AUTOMATIC'")).await;
    let text: Option<String> = patiently(conn.query_first("SELECT @@GLOBAL.gtid_executed")).await;
    let text = text.expect("a value");
    assert_eq!(text, format!("{other}:8-9:alpha:7,\n{uuid}:1:100:alpha:1-2:zulu:1"), "what the server did");
    let set: GtidSet = text.parse().expect("the server's own text");
    assert_eq!(set.to_string(), text);
    assert_eq!(set.count(), 8);
    assert!(set.contains_gtid(format!("{uuid}:ALPHA:2").parse().expect("a GTID")));
}

/// A connection as root, over TCP: the driver would otherwise move to a socket file.
async fn connect(server: &MysqlServer) -> Conn {
    let opts = Opts::from_url(&server.url("root", "")).expect("a URL");
    let opts = OptsBuilder::from_opts(opts).prefer_socket(false);
    patiently(Conn::new(opts)).await
}

/// The driver has no time limits of its own.
async fn patiently<T>(call: impl Future<Output = mysql_async::Result<T>>) -> T {
    tokio::time::timeout(PATIENCE, call).await.expect("the server answers in time").expect("the server agrees")
}

/// The canonical text of a set, or `None` if the text is malformed: the server's verdict, which must also be ours.
///
/// Text that is not ASCII is never a GTID set for us; see [`beyond_ascii_we_are_stricter`].
async fn verdict(conn: &mut Conn, text: &str) -> Option<String> {
    let ours = text.parse::<GtidSet>().ok().map(|set| set.to_string());
    if text.is_ascii() {
        assert_eq!(ours, canonical_by_server(conn, text).await, "{text:?}");
    } else {
        assert_eq!(ours, None, "{text:?}");
    }
    ours
}

async fn canonical_by_server(conn: &mut Conn, text: &str) -> Option<String> {
    let call = conn.exec_first::<Vec<u8>, _, _>("SELECT GTID_SUBTRACT(?, '')", (text,));
    match tokio::time::timeout(PATIENCE, call).await.expect("the server answers in time") {
        Ok(canonical) => Some(String::from_utf8_lossy(&canonical.expect("a row")).into_owned()),
        Err(mysql_async::Error::Server(error)) if error.code == MALFORMED_GTID_SET => None,
        Err(error) => panic!("{text:?}: {error}"),
    }
}

/// An answer as the server's columns.
type Row = (u64, bool, bool, String, String, String, String, String);

/// Asks the server about pairs, each known by its seed. Intersection and union are spelled with what the server has.
async fn ask(conn: &mut Conn, pairs: &[(u64, (String, String))]) -> BTreeMap<u64, Answer> {
    // The texts contain neither quotes nor backslashes.
    let rows: Vec<_> = pairs.iter().map(|(seed, (a, b))| format!("ROW({seed}, '{a}', '{b}')")).collect();
    let question = format!(
        "SELECT seed, GTID_SUBSET(b, a), GTID_SUBSET(a, b), GTID_SUBTRACT(a, b), GTID_SUBTRACT(b, a), \
         GTID_SUBTRACT(a, GTID_SUBTRACT(a, b)), GTID_SUBTRACT(CONCAT(a, ',', b), ''), GTID_SUBTRACT(a, '') \
         FROM (VALUES {}) AS pairs (seed, a, b)",
        rows.join(", ")
    );
    let answers: Vec<Row> = patiently(conn.query(question)).await;
    answers
        .into_iter()
        .map(|(seed, contains, is_contained, less, more, intersection, union, canonical)| {
            (seed, Answer { contains, is_contained, less, more, intersection, union, canonical })
        })
        .collect()
}

/// What [`ask`] asks, answered without a server.
fn answer_ourselves(left: &str, right: &str) -> Answer {
    let parse = |text: &str| text.parse::<GtidSet>().unwrap_or_else(|error| panic!("{text:?}: {error}"));
    let (a, b) = (parse(left), parse(right));
    Answer {
        contains: a.contains(&b),
        is_contained: b.contains(&a),
        less: a.subtract(&b).to_string(),
        more: b.subtract(&a).to_string(),
        intersection: a.intersect(&b).to_string(),
        union: a.union(&b).to_string(),
        canonical: a.to_string(),
    }
}

/// The `SplitMix64` generator: the same texts on every machine, for ever.
struct Random(u64);

/// One interval of one server and tag, and nothing about how it is spelled.
#[derive(Clone, Copy)]
struct Piece {
    server: u64,
    tag: &'static str,
    start: u64,
    end: u64,
}

const SERVERS: [&str; 4] = [
    "3e11fa47-71ca-11e1-9e33-c80aa9429562",
    "3e11fa47-71ca-11e1-9e33-c80aa9429563",
    "9c1d51fa-2f5a-11ef-8d5e-0242ac120002",
    "00000000-0000-0000-0000-000000000000",
];

const TAGS: [&str; 8] = ["", "", "", "a", "b", "a_1", "_", "ab345678901234567890123456789_32"];

const SPACES: [&str; 9] = ["", "", "", "", "", " ", "\n", "\t \r\n", "\u{b}\u{c}"];

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index")]
    }

    /// Two texts. The second set is part of the first in a third of all pairs, nearly so in another third.
    fn pair(mut self) -> (String, String) {
        let left = self.pieces();
        let mut right = match self.below(3) {
            0 => self.pieces(),
            _ => self.part_of(&left),
        };
        if self.one_in(2) {
            right.push(self.piece());
        }
        let texts = (self.spell(left), self.spell(right));
        if self.one_in(2) { texts } else { (texts.1, texts.0) }
    }

    fn pieces(&mut self) -> Vec<Piece> {
        (0..self.below(16)).map(|_| self.piece()).collect()
    }

    fn piece(&mut self) -> Piece {
        let server = self.below(SERVERS.len() as u64);
        let tag = self.pick(&TAGS);
        let length = self.below(12);
        let start = if self.one_in(12) { MAX_NUMBER - length - self.below(20) } else { 1 + self.below(60) };
        Piece { server, tag, start, end: start + length }
    }

    fn part_of(&mut self, pieces: &[Piece]) -> Vec<Piece> {
        let mut part = pieces.to_vec();
        part.retain(|_| !self.one_in(4));
        for piece in &mut part {
            piece.start += self.below(piece.end - piece.start + 1);
            piece.end -= self.below(piece.end - piece.start + 1);
        }
        part
    }

    /// The pieces in any order and in any spelling, with things in between that mean nothing.
    fn spell(&mut self, mut pieces: Vec<Piece>) -> String {
        let mut words = Vec::new();
        let mut open: Option<Piece> = None;
        while !pieces.is_empty() {
            let piece = pieces.swap_remove(usize::try_from(self.below(pieces.len() as u64)).expect("an index"));
            // An open entry of the same server can go on, but not back to no tag.
            let can_go_on = open
                .is_some_and(|open| open.server == piece.server && (open.tag == piece.tag || !piece.tag.is_empty()));
            if !can_go_on || self.one_in(2) {
                words.push(self.pick(&SPACES).to_owned());
                words.push(if words.len() > 1 { "," } else { "" }.to_owned());
                words.push(self.pick(&[",", "", "", " ", "\n"]).to_owned());
                words.push(self.spell_server(piece.server));
                words.push(self.pick(&SPACES).to_owned());
                open = Some(Piece { tag: "", ..piece });
            }
            if open.is_some_and(|open| open.tag != piece.tag) || (!piece.tag.is_empty() && self.one_in(4)) {
                let tag = self.any_case(piece.tag);
                words.push(format!(":{}{tag}{}", self.pick(&SPACES), self.pick(&SPACES)));
            }
            open = Some(piece);
            words.push(self.spell_interval(piece));
            if self.one_in(12) {
                words.push(self.pick(&[":7-3", ":1-0", ":c", ":c:C ", ",", ", ,"]).to_owned());
                open = None;
            }
        }
        words.concat()
    }

    fn spell_server(&mut self, server: u64) -> String {
        let uuid = SERVERS[usize::try_from(server).expect("an index")];
        let uuid = self.any_case(uuid);
        match self.below(8) {
            0 => uuid.replace('-', ""),
            1 => format!("{{{uuid}}}"),
            _ => uuid,
        }
    }

    fn spell_interval(&mut self, piece: Piece) -> String {
        let mut number = |number: u64| {
            format!("{}{}{number}{}", self.pick(&SPACES), self.pick(&["", "", "0", "000"]), self.pick(&SPACES))
        };
        let (start, end) = (number(piece.start), number(piece.end));
        if piece.start == piece.end && self.one_in(2) { format!(":{start}") } else { format!(":{start}-{end}") }
    }

    fn any_case(&mut self, text: &str) -> String {
        match self.below(4) {
            0 => text.to_uppercase(),
            1 => text.chars().map(|letter| if self.one_in(2) { letter.to_ascii_uppercase() } else { letter }).collect(),
            _ => text.to_owned(),
        }
    }

    /// A spelled set with one character, or two, lost, doubled, swapped or replaced.
    fn damaged(mut self) -> String {
        let mut pieces = self.pieces();
        pieces.truncate(3);
        let mut text: Vec<char> = self.spell(pieces).chars().collect();
        for _ in 0..=u64::from(self.one_in(4)) {
            let at = usize::try_from(self.below(text.len() as u64 + 1)).expect("an index");
            let other = self.pick(&[
                '0', '1', '9', 'a', 'F', 'g', '_', '-', ':', ',', ' ', '\n', '{', '}', '.', '+', '\0', '\'', 'é',
            ]);
            match self.below(4) {
                0 if at < text.len() => _ = text.remove(at),
                1 if at < text.len() => text[at] = other,
                2 if at + 1 < text.len() => text.swap(at, at + 1),
                _ => text.insert(at, other),
            }
        }
        text.into_iter().collect()
    }
}
