//! What a line expects.
//!
//! In: the words after `expect`. Out: what must come true, and by when. Must not: let through what cannot be seen here.

use super::parse::{WITHIN, within};
use super::words::Words;
use super::{Expect, What};

pub(super) fn expect(words: &mut Words<'_>) -> Result<What, String> {
    let expect = match words
        .next("primary, no-primary, failovers, site, divergence, degraded, healthy, proof, planned, ledger or gap")?
    {
        "primary" if words.takes("not") => Expect::PrimaryNot(words.site()?),
        "primary" => Expect::Primary(words.site()?),
        "no-primary" => Expect::NoPrimary,
        "failovers" => Expect::Failovers(words.within("a number", 0, 99)?),
        "site" => site(words)?,
        "divergence" => words.exactly("exact").map(|()| Expect::DivergenceExact)?,
        "degraded" => Expect::Degraded(words.next("a reason")?.to_owned()),
        "healthy" => Expect::Degraded(String::new()),
        "proof" => proof(words)?,
        "planned" => {
            let ending = match words.next("succeeded or failed")? {
                "succeeded" => "Succeeded",
                "failed" => "Failed",
                other => return Err(format!("a planned failover has succeeded or failed, not `{other}`")),
            };
            let reason = if words.takes("because") { Some(words.next("a reason")?.to_owned()) } else { None };
            Expect::Planned(ending.to_owned(), reason)
        }
        "ledger" => match words.next("clean or whole")? {
            "clean" => Expect::LedgerClean,
            "whole" => Expect::LedgerWhole,
            other => return Err(format!("a ledger is clean or whole, not `{other}`")),
        },
        "gap" => {
            words.exactly("under")?;
            Expect::GapUnder(words.time()?)
        }
        other => {
            return Err(format!(
                "`{other}` cannot be expected; write primary <site>, no-primary, failovers <n>, site <site> following, divergence exact, degraded <reason>, healthy, proof <kind>, planned succeeded, ledger clean, ledger whole or gap under <time>"
            ));
        }
    };
    if words.takes("for") {
        return Ok(What::ExpectFor(expect, words.time()?));
    }
    Ok(What::Expect(expect, within(words, WITHIN)?))
}

fn proof(words: &mut Words<'_>) -> Result<Expect, String> {
    let kinds = ["FencedBySidecar", "ProcessEnded", "LeaseExpired", "Assumed"];
    let word = words.next("a kind of proof")?;
    let known = kinds.contains(&word).then(|| Expect::Proof(word.to_owned()));
    known.ok_or_else(|| format!("`{word}` is no proof; write {}", kinds.join(", ")))
}

fn site(words: &mut Words<'_>) -> Result<Expect, String> {
    let site = words.site()?;
    Ok(match words.next("following, closed, unreachable or divergent")? {
        "following" => Expect::Following(site),
        "closed" => Expect::Closed(site),
        "unreachable" => Expect::Unreachable(site),
        "divergent" => Expect::Divergent(site, words.optional_number()),
        other => return Err(format!("a site is following, closed, unreachable or divergent, not `{other}`")),
    })
}
