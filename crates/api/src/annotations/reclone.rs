//! `<site>`, `<site>:<prefix of divergentGtid>` or `<site>:confirm=<group>`.
//!
//! In: the annotation's text, split at the first colon only, because GTIDs contain colons. Out: the request. Must not:
//! judge the prefix; only who knows the divergent set can.

use std::str::FromStr;

use snafu::{Snafu, ensure};

/// Fewest characters of divergentGtid that confirm a reclone.
pub const RECLONE_PREFIX_MIN: usize = 8;

/// A reclone, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecloneRequest {
    /// Site whose data is replaced.
    pub site: String,
    /// What the asker knows.
    pub consent: RecloneConsent,
}

/// What the asker of a reclone knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecloneConsent {
    /// Nothing: enough for a site without divergent transactions.
    Bare,
    /// The beginning of the site's divergentGtid.
    Prefix(String),
    /// The name of the group: the cold form, for a site without divergent transactions.
    Confirm(String),
}

/// Why a reclone-site annotation cannot be read.
#[derive(Debug, Snafu, PartialEq, Eq)]
pub enum RecloneError {
    /// No site.
    #[snafu(display(
        "reclone-site {text:?} names no site; write <site> or <site>:<first 8 or more characters of its divergentGtid>"
    ))]
    SiteMissing {
        /// The annotation.
        text: String,
    },
    /// A key that is not known.
    #[snafu(display(
        "reclone-site segment {segment:?} has an unknown key; write confirm=<group>, or the first 8 or more characters of the site's divergentGtid"
    ))]
    UnknownKey {
        /// The segment.
        segment: String,
    },
    /// `confirm=` without a group.
    #[snafu(display("reclone-site segment {segment:?} names no group; write confirm=<group>"))]
    GroupMissing {
        /// The segment.
        segment: String,
    },
}

impl FromStr for RecloneRequest {
    type Err = RecloneError;

    fn from_str(text: &str) -> Result<Self, RecloneError> {
        let (site, rest) = text.split_once(':').unwrap_or((text, ""));
        let site = site.trim();
        ensure!(!site.is_empty() && !site.contains('='), SiteMissingSnafu { text });
        Ok(Self { site: site.to_owned(), consent: consent(rest.trim())? })
    }
}

fn consent(segment: &str) -> Result<RecloneConsent, RecloneError> {
    // An empty segment is ignored, and colons alone are empty segments.
    if segment.trim_matches([':', ' ']).is_empty() {
        return Ok(RecloneConsent::Bare);
    }
    let Some((key, value)) = segment.split_once('=') else {
        return Ok(RecloneConsent::Prefix(segment.to_owned()));
    };
    ensure!(key.trim() == "confirm", UnknownKeySnafu { segment });
    let group = value.trim();
    ensure!(!group.is_empty(), GroupMissingSnafu { segment });
    Ok(RecloneConsent::Confirm(group.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, site: &str, consent: RecloneConsent) {
        assert_eq!(text.parse(), Ok(RecloneRequest { site: site.to_owned(), consent }), "{text:?}");
    }

    #[test]
    fn requests_are_read() {
        let gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:8";
        check("iad", "iad", RecloneConsent::Bare);
        check(" iad ", "iad", RecloneConsent::Bare);
        check("iad:", "iad", RecloneConsent::Bare);
        check("iad: : ", "iad", RecloneConsent::Bare);
        check("iad:3e11fa47", "iad", RecloneConsent::Prefix("3e11fa47".to_owned()));
        check("iad:3e1", "iad", RecloneConsent::Prefix("3e1".to_owned()));
        check(&format!("iad:{gtid}"), "iad", RecloneConsent::Prefix(gtid.to_owned()));
        check(&format!("iad : {gtid} "), "iad", RecloneConsent::Prefix(gtid.to_owned()));
        check("iad:confirm=orders", "iad", RecloneConsent::Confirm("orders".to_owned()));
        check("iad: confirm = orders", "iad", RecloneConsent::Confirm("orders".to_owned()));
    }

    #[test]
    fn refusals_name_the_segment_and_the_fix() {
        for (text, expect) in [
            ("", "names no site"),
            (" ", "names no site"),
            (":3e11fa47", "names no site"),
            ("confirm=orders", "names no site"),
            ("iad:confirm=", "write confirm=<group>"),
            ("iad:confirm= ", "write confirm=<group>"),
            ("iad:force=true", "\"force=true\" has an unknown key"),
            ("iad:Confirm=orders", "unknown key"),
        ] {
            let message = text.parse::<RecloneRequest>().expect_err(text).to_string();
            assert!(message.contains(expect), "{text:?}: {message}");
        }
    }
}
