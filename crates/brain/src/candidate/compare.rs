//! The best of those that may be promoted: compare what they would hold, then break ties.

use super::eligible::Fit;
use super::{Choice, Chosen, Comparison, Difference, Progress, Rule, Tie};
use crate::name::Site;
use crate::rule::{Rule as Law, off};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

pub(super) fn best(choice: &Choice<'_>, fit: &[Fit<'_>]) -> Option<Chosen> {
    let all: Vec<&Fit<'_>> = fit.iter().collect();
    let freshest = if off(Law::FreshestWins) { all.clone() } else { not_surpassed(&all, |one| one.holds.clone()) };
    let (by, equals) = compare(choice, &all, &freshest);
    let (chosen, tie) = break_tie(choice, equals)?;
    let rule = Rule { by, tie };
    Some(Chosen {
        member: chosen.member.clone(),
        rule,
        drain: chosen.candidate.drain.clone(),
        unapplied: chosen.data.unapplied(),
        given_up: given_up(choice, chosen),
        incomparable: incomparable(&freshest, chosen),
    })
}

/// Those that compare equal and best, and by what.
fn compare<'a, 'b>(
    choice: &Choice<'_>,
    all: &[&'a Fit<'b>],
    freshest: &[&'a Fit<'b>],
) -> (Comparison, Vec<&'a Fit<'b>>) {
    if all.len() == 1 {
        return (Comparison::OnlyCandidate, freshest.to_vec());
    }
    if freshest.len() == 1 {
        return (Comparison::StrictSuperset, freshest.to_vec());
    }
    if all_equal(freshest, |one| one.holds.clone()) {
        return (Comparison::EqualSets, freshest.to_vec());
    }
    let of_primaries = |one: &Fit<'_>| {
        let mut set = one.holds.clone();
        if !off(Law::PrimariesCount) {
            set.retain_uuids(choice.known_primaries);
        }
        set
    };
    let left = not_surpassed(freshest, of_primaries);
    if all_equal(&left, of_primaries) {
        return (Comparison::KnownPrimaries, left);
    }
    let of_last = |one: &Fit<'_>| choice.last_primary.map_or(0, |uuid| one.holds.count_of(uuid));
    if off(Law::MostOfTheLast) {
        return (Comparison::MostOfLastPrimary, left);
    }
    let most = left.iter().map(|one| of_last(one)).max();
    (Comparison::MostOfLastPrimary, left.into_iter().filter(|one| Some(of_last(one)) == most).collect())
}

/// Those whose set nobody's strictly contains.
fn not_surpassed<'a, 'b>(fit: &[&'a Fit<'b>], set: impl Fn(&Fit<'_>) -> GtidSet) -> Vec<&'a Fit<'b>> {
    let sets: Vec<GtidSet> = fit.iter().map(|one| set(one)).collect();
    let surpassed = |own: &GtidSet| sets.iter().any(|other| other.strictly_contains(own));
    fit.iter().zip(&sets).filter(|(_, own)| !surpassed(own)).map(|(one, _)| *one).collect()
}

fn all_equal(fit: &[&Fit<'_>], set: impl Fn(&Fit<'_>) -> GtidSet) -> bool {
    fit.windows(2).all(|pair| matches!(pair, [one, other] if set(one) == set(other)))
}

/// One of several equals, in declared order: the wish; else those that are drained; of these those whose binary logs
/// serve every follower; of these the first of the priority list; else the first.
fn break_tie<'a, 'b>(choice: &Choice<'_>, equals: Vec<&'a Fit<'b>>) -> Option<(&'a Fit<'b>, Option<Tie>)> {
    if let [only] = equals.as_slice() {
        return Some((*only, None));
    }
    if let Some(wished) = equals.iter().find(|one| choice.wish == Some(&one.member.site)) {
        return Some((*wished, Some(Tie::Wish)));
    }
    let drained = narrow(equals, |one| !matches!(one.candidate.drain, Progress::GaveUp(_)));
    if let [only] = drained.as_slice() {
        return Some((*only, Some(Tie::Drained)));
    }
    let serving = narrow(drained, |one| serves_every_follower(choice, one));
    if let [only] = serving.as_slice() {
        return Some((*only, Some(Tie::BinaryLogs)));
    }
    let named = |site: &Site| serving.iter().find(|one| one.member.site == *site);
    if let Some(first) = choice.priorities.iter().find_map(named) {
        return Some((*first, Some(Tie::Priority)));
    }
    serving.first().map(|first| (*first, Some(Tie::DeclaredOrder)))
}

/// Those that have the virtue; all, if nobody has it.
fn narrow<'a, 'b>(fit: Vec<&'a Fit<'b>>, virtue: impl Fn(&Fit<'_>) -> bool) -> Vec<&'a Fit<'b>> {
    let with: Vec<&Fit<'_>> = fit.iter().copied().filter(|one| virtue(one)).collect();
    if with.is_empty() { fit } else { with }
}

/// Whether every other site that follows has what this one's binary logs have lost. Sites that are empty, or are
/// overwritten or divergent, do not go on from binary logs.
fn serves_every_follower(choice: &Choice<'_>, one: &Fit<'_>) -> bool {
    choice
        .sites
        .iter()
        .filter(|site| site.site != one.member.site && site.busy.is_none() && site.state.is_reachable())
        .filter_map(|site| site.data.as_ref())
        .filter(|data| !data.executed.is_empty())
        .all(|data| data.executed.contains(&one.data.purged))
}

/// What other sites have and the chosen one will lack; dr-only and refused sites too, as far as they are known.
fn given_up(choice: &Choice<'_>, chosen: &Fit<'_>) -> BTreeMap<Site, GtidSet> {
    let lacks = |site: &super::Candidate| Some((site.site.clone(), site.data.as_ref()?.held().subtract(&chosen.holds)));
    let others = choice.sites.iter().filter(|site| site.site != chosen.member.site);
    others.filter_map(lacks).filter(|(_, set)| !set.is_empty()).collect()
}

/// The freshest that the chosen one cannot be compared with, and both differences.
fn incomparable(freshest: &[&Fit<'_>], chosen: &Fit<'_>) -> Vec<Difference> {
    let difference = |other: &Fit<'_>| Difference {
        other: other.member.site.clone(),
        only_chosen: chosen.holds.subtract(&other.holds),
        only_other: other.holds.subtract(&chosen.holds),
    };
    freshest.iter().filter(|other| other.holds != chosen.holds).map(|other| difference(other)).collect()
}
