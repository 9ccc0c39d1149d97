//! What a server is committing: transactions that have their GTID, and may stand in its binary log, and are not executed yet.
//!
//! In: `@@global.gtid_owned`. Out: a set. Must not: take anything for executed.
//!
//! The server writes `<uuid>:<number>#<thread>:<number>#<thread>`, a tag before the numbers that have it, and begins the next
//! UUID without anything in between: `<uuid>:2#11:1#9<uuid>:shop:1#12`. A UUID is found by its first hyphen.

use bloodraven_gtid::GtidSet;

/// How long a UUID is, and where its first hyphen is.
const UUID: (usize, usize) = (36, 8);

/// Reads it; none: not understood.
pub(crate) fn read(text: &str) -> Option<GtidSet> {
    let mut gtids = Vec::new();
    for group in groups(text)? {
        let (uuid, numbers) = group.split_at_checked(UUID.0)?;
        let mut tag = String::new();
        for word in numbers.split(':').filter(|word| !word.is_empty()) {
            match word.split_once('#') {
                Some((number, _)) => gtids.push(format!("{uuid}:{tag}{}", number.parse::<u64>().ok()?)),
                None => tag = format!("{word}:"),
            }
        }
    }
    gtids.join(",").parse().ok()
}

/// The text, parted where a UUID begins; none: it does not begin with one.
fn groups(text: &str) -> Option<Vec<&str>> {
    let text = text.trim();
    let mut groups = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if rest.find('-') != Some(UUID.1) {
            return None;
        }
        let next = rest.get(UUID.0..)?.find('-').map(|hyphen| (UUID.0 + hyphen).checked_sub(UUID.1));
        let end = match next {
            Some(start) => start?,
            None => rest.len(),
        };
        let (group, others) = rest.split_at_checked(end)?;
        groups.push(group.trim_end_matches([',', '\n', ' ']));
        rest = others;
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn every_transaction_that_somebody_owns_is_read() {
        const A: &str = "ed6a71e1-e27d-11f1-947c-02fc00000001";
        const B: &str = "11111111-e27d-11f1-947c-02fc00000002";
        let rows = [
            (String::new(), Some(String::new())),
            (format!("{A}:1#9"), Some(format!("{A}:1"))),
            (format!("{A}:2#11:1#9"), Some(format!("{A}:1-2"))),
            (format!("{A}:2#11:1#9{A}:shop:1#12"), Some(format!("{A}:1-2:shop:1"))),
            // The thread's number runs into the next UUID.
            (format!("{A}:7#9{B}:3#4"), Some(format!("{A}:7,{B}:3"))),
            (format!("{A}:7#9,\n{B}:3#4"), Some(format!("{A}:7,{B}:3"))),
            (format!("{A}:5#12#13"), Some(format!("{A}:5"))),
            (format!("{A}:x#9"), None),
            ("7#9".to_owned(), None),
            ("-".to_owned(), None),
            (A[..20].to_owned(), None),
        ];
        for (text, wanted) in rows {
            let wanted = wanted.map(|wanted| wanted.parse().expect("a set"));
            assert_eq!(read(&text), wanted, "{text}");
        }
    }
}
