//! The rules of the protocol as named data, each enforced at one place of the brain and removable there.
//!
//! In: a rule and the condition that enforces it. Out: the condition. Must not: change anything in a product. With the
//! feature `teeth` one rule at a time can be switched off; tests and models then have to notice, and `cargo xtask teeth`
//! holds that table. Without the feature [`holds`] is its argument and [`off`] is `false`, at compile time.
//!
//! Each condition is phrased so that a removed rule counts as kept: `if holds(Rule::FencedMeansFenced, heard.fenced)`.
//! Where a rule is no condition but a deed, [`off`] stands beside the deed.

/// What is known to happen without a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// There is a trace to two writers (⚔).
    TwoWriters,
    /// There is a trace to a healthy group that nobody may ever write to again (♥).
    NoWriter,
    /// The rule has no mark of its own.
    Plain,
}

/// Makes the enum, its list and its words out of one table: section of the protocol, mark, sentence.
macro_rules! rules {
    ($($name:ident: $section:literal, $mark:ident, $text:literal;)+) => {
        /// A rule of the protocol, named after what it asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $text] $name,)+
        }

        impl Rule {
            /// Every rule, in the order of the protocol.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its name, as commands take it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// The sentence that it enforces.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The section of the protocol that it stands in.
            pub const fn section(self) -> u8 {
                match self { $(Self::$name => $section,)+ }
            }

            /// What is known to happen without it.
            pub const fn mark(self) -> Mark {
                match self { $(Self::$name => Mark::$mark,)+ }
            }
        }
    };
}

rules! {
    // 2 The record
    EpochPerChange: 2, Plain, "every change of seat, voters, settings, or phase to Revoking is a new epoch";
    HigherCopyWins: 2, Plain, "of two stored copies of the record the one of the higher epoch is the record";
    CopiesAreJoined: 2, Plain, "of two copies of one epoch nothing that either knows of sets and ends is lost";
    CopiesAgree: 2, Plain, "two copies of one epoch that differ in what an epoch settles are corrupt: neither is acted on";
    HigherIsNeverSpoilt: 2, Plain, "a leader never writes its memory over a copy of a higher epoch, whatever else that copy says";
    DoubtKeepsEpochs: 2, Plain, "what a leader has stored or heard of epochs outlives its doubts about what is stored";
    HolderStays: 2, TwoWriters, "the holder stays through Revoking";
    HolderNeedsRelease: 2, TwoWriters, "the holder is replaced by another instance only by a grant with proof";
    GrantInItsRun: 2, TwoWriters, "authority is given only out of the run of Revoking that the release was found in";
    GrantToListed: 2, Plain, "authority is given only to an instance that is a voter of the record";
    GrantToLiving: 2, Plain, "authority is never given to an instance that has ended";
    RunHasOneStart: 2, Plain, "revokedAt is the first epoch of the unbroken run of Revoking epochs";
    ProofDiesWithRun: 2, Plain, "a proof counts in the run of Revoking that it was found in";
    EndsStayWhileNamed: 2, Plain, "an end is remembered as long as the record names the instance anywhere";
    StartAboveAll: 2, Plain, "a group without a record starts above the highest epoch that any sidecar reports";
    StopWhenBehind: 2, Plain, "a leader that hears an epoch above the record's stops granting";
    AllFenced: 2, Plain, "without a known holder every site's present instance acknowledges fenced, or has ended";
    NoneUnknown: 2, Plain, "without a known holder no pod of the group has an instance that is not asked";
    WaitFromElection: 2, Plain, "without a known holder a lease and its margin pass since the leader's election";
    WaitFromYoungest: 2, Plain, "without a known holder a lease and its margin pass since the youngest sidecar's start";
    OnlyWithoutHolder: 2, Plain, "the release of all sites is for a record without a known holder";
    ReleaseCoversItsVoters: 2, Plain, "the release of all sites is about the very voters it was found with";
    // 3 Views
    HighestViewWins: 3, Plain, "a sidecar keeps the highest view it has heard; an older one changes nothing";
    StoredBeforeTold: 3, Plain, "a view is on disk before it is acknowledged or pushed on";
    ContradictionFences: 3, Plain, "two views of one epoch that differ close the server until there is a newer epoch";
    PhaseIsNoContradiction: 3, NoWriter,
        "views of one epoch that differ in the phase alone do not contradict each other";
    VouchesWhenListed: 3, TwoWriters, "a sidecar vouches only under a view that lists its own instance";
    OpensWhenNamed: 3, TwoWriters, "a sidecar opens only under a view that names its own instance, not just its site";
    VouchesForStored: 3, Plain, "a sidecar vouches only for the epoch that it has stored itself";
    VouchesIfNothingNewer: 3, Plain, "a sidecar vouches only if it knows nothing newer";
    VouchesForNamed: 3, Plain, "a sidecar vouches only for the instance that the view names";
    NoVouchUnderDispute: 3, Plain, "nobody is vouched for under an epoch of which two views were heard";
    NoVouchForOneself: 3, Plain, "nobody's own vouch counts for itself";
    StrangersCountForNothing: 3, TwoWriters,
        "an acknowledgement counts for the instance that gave it, not for its site";
    GrantToTheInstance: 3, TwoWriters, "a grant answers the very instance that the record names, not its site";
    RelayedWithItsAge: 3, Plain, "an acknowledgement that was handed on counts from when it was spoken";
    NewerViewIsPushed: 3, Plain, "a newer view goes to every peer as soon as it is stored";
    AcksAreHandedOn: 3, Plain, "acknowledgements of peers are handed on to the leader";
    NewerStoreEndsOlder: 3, Plain,
        "a report of a newer store of the same pod means that the older instance has ended";
    HolderEndsFenced: 3, Plain, "the holder counts as ended by a newer store only with a fenced read-back";
    EndsOnlyItsOwnPod: 3, Plain, "a newer store ends older stores of the same pod and site only";
    // 4 The sidecar
    WritableOnlyNamed: 4, Plain, "a server is writable only while the highest view names this instance";
    WritableOnlyLeased: 4, Plain, "a server is writable only while the lease runs";
    TenureOnDisk: 4, Plain, "a tenure that is not on disk is not ours yet";
    GrantFromSending: 4, Plain, "a grant counts from the moment its question was sent";
    VouchFromSending: 4, Plain, "a vouch counts from the moment its question was sent";
    KthVouch: 4, Plain, "vouches renew the lease by the k-th most recent among distinct voters";
    PresentVotersCount: 4, Plain, "only vouches of voters of the present view count";
    GrantAnswersQuestion: 4, Plain, "a grant counts only for an outstanding question; a push is never a grant";
    VouchAnswersQuestion: 4, Plain, "a vouch counts only for the outstanding question that was put to that voter";
    GrantOfItsEpoch: 4, Plain, "a grant counts for its own epoch only, and only once that is stored";
    VouchOfItsEpoch: 4, Plain, "a vouch counts for the epoch that was asked about";
    LeaseDiesWithTenure: 4, Plain, "grants and vouches of an earlier tenure are worth nothing";
    OldQuestionsForgotten: 4, Plain, "a question older than a lease brings nothing any more";
    TenureCarriesOver: 4, NoWriter, "a view of the same tenure carries over the lease and the opened marker";
    CarriedByBothSets: 4, Plain, "of vouches only those of voters in both sets are carried over";
    PermitFirst: 4, Plain, "the keeper's permit is there before the opening statement is sent";
    PermitOfThisStart: 4, TwoWriters, "a permit for another start of mysqld opens nothing";
    RenewalMakesNone: 4, Plain, "renewing never makes a permit";
    NoRenewalInLadder: 4, Plain, "no permit is renewed in the middle of a ladder";
    RenewedWithLease: 4, Plain, "the lease renews the permit";
    WithdrawnWhenFenced: 4, Plain, "a permit is withdrawn only after a confirmed fence";
    DeadlineInherited: 4, Plain, "a restarted sidecar inherits the deadline from the permit";
    InheritedInTenure: 4, Plain, "a deadline is inherited only within the tenure that the permit was given for";
    FoundPermitIsAnOpening: 4, TwoWriters,
        "a permit that a sidecar did not give itself means that an opening may be in flight";
    EndOfServerEndsAll: 4, Plain, "the end of mysqld clears its permit and everything in flight";
    BlindFence: 4, Plain,
        "a sidecar without a word of its keeper fences by SQL as soon as the server may not be writable";
    StrayFencesEnd: 4, NoWriter, "fences of an earlier life of the sidecar are ended before the server is opened or stays so";
    OpenersEndFirst: 4, Plain, "the ladder ends the opener's sessions and sees them gone before it sets anything";
    BothVariables: 4, TwoWriters, "fenced is both variables read as 1";
    KilledUnlessConfirmed: 4, Plain, "what the ladder cannot confirm the keeper kills";
    LadderIsBounded: 4, Plain, "the ladder takes 2.5 s, then comes the kill";
    SessionsEndedInTime: 4, Plain, "application sessions that hold the fencing statement up are ended";
    KillCountsReaped: 4, Plain, "a kill counts when that very start is reaped";
    LadderClimbedAgain: 4, Plain, "a kill that the keeper does not confirm starts the ladder again";
    ReadAfterStored: 4, TwoWriters, "fenced is a reading begun after that epoch's view was stored";
    ReadOfThisStart: 4, Plain, "a reading of another start of mysqld says nothing";
    OpeningIsWritable: 4, TwoWriters, "nothing is fenced while an opening is under way";
    LadderIsWritable: 4, Plain, "nothing is fenced while the ladder runs";
    UnknownIsWritable: 4, Plain, "a server that the keeper has not spoken of is not fenced";
    FirstNeedsWord: 4, Plain, "the first opening of a tenure needs a grant that says open";
    WordOfThisTenure: 4, Plain, "the word that lets a tenure open opens no other";
    OpensUnderStored: 4, Plain, "nothing opens below the highest epoch heard, or under one that is not stored";
    OpensWhileAllowed: 4, Plain, "every step of an opening asks again whether the server may be writable";
    OpeningWithinLease: 4, Plain, "the opening statement has no longer than the lease";
    OpenIsReadBack: 4, Plain, "an opening is one only when both variables of that start are read as 0";
    UnknownOutcomeIsWritable: 4, TwoWriters, "an opening of unknown outcome ends in the ladder";
    ForeignFenceStays: 4, Plain, "under the same tenure only fences of its own are lifted";
    NoteBeforeFence: 4, Plain, "a fence by the lease is noted before it, so that it may be lifted again";
    MarkerBeforeOpening: 4, Plain, "the marker is on disk before the first opening of a tenure";
    MarkerReopens: 4, Plain, "a tenure that was opened here is opened again without a further word of the leader";
    PromotionContained: 4, Plain, "the first opening needs the data that the promotion was decided on";
    NotBehind: 4, Plain, "a re-opened server has all that every reachable site has";
    ExcusedIsLeftOut: 4, NoWriter, "what the choice gave up does not keep a server closed";
    AllAreAsked: 4, Plain, "before a re-opening every voter has told its set, or was silent";
    SecondWordIsShort: 4, Plain, "a peer's word that takes authority away fences within a second, and within the lease";
    OpenedByHandIsClosed: 4, Plain,
        "a server that was opened by somebody else without authority is closed at first sight";
    EarlyOpeningIsClosed: 4, Plain, "a server that was opened by hand before the leader's word is closed";
    // 5 The leader
    LeadsAtTheAnswer: 5, TwoWriters, "leadership is checked before a grant leaves";
    NoGrantWhileRevoking: 5, Plain, "while authority is revoked nobody gets a grant";
    WordToWhoAsks: 5, Plain, "the word to open goes to who asks to open";
    ReceiptsBeforeOpening: 5, Plain,
        "with semi-sync a new holder's commits wait for receipts before it gets the word to open";
    OpeningWaitsForReceipts: 5, Plain,
        "a switch to receipts that failed is tried again for as long as a commit would wait for one";
    NextPodIsAwaited: 5, Plain,
        "after the loss of all sites at once the next pod of a holder that ended in good order is waited for";
    LeadsFromSending: 5, Plain, "leadership counts from the sending of the last successful renewal";
    DoubtProlongsNothing: 5, Plain, "a renewal whose outcome is unknown prolongs nothing";
    AnothersLeaseIsWaitedFor: 5, Plain, "another's lease is over when it was seen unchanged for its whole duration";
    ReleaseEndsFirst: 5, Plain, "a release ends leadership before it is sent";
    AnswerOfThePresentCall: 5, Plain, "an answer to an earlier call decides nothing";
    // 6 Proofs
    AckOfThisRun: 6, Plain, "a proof needs acknowledgements of an epoch of the present run of Revoking";
    FencedMeansFenced: 6, Plain, "the holder's acknowledgement proves its release only if it says fenced";
    FencedIsEnough: 6, NoWriter, "the holder's own fenced acknowledgement needs nothing else";
    EndedIsEnough: 6, NoWriter, "the end of the holder's instance needs nothing else";
    EnoughVoters: 6, Plain, "so many voters acknowledged that the rest cannot renew the lease";
    EverySet: 6, Plain, "the lease proof asks every set that the holder may still hold";
    LongestLease: 6, Plain, "the lease proof waits for the longest lease of all sets";
    Margin: 6, Plain, "the lease proof waits for the margin, too";
    FromLastGrant: 6, Plain, "the lease proof counts from the last grant answered";
    FromLastVouch: 6, Plain, "the lease proof counts from the last vouch that each voter reports";
    VouchIsRemembered: 6, Plain, "a voter remembers when it last vouched for each site";
    UptimeBoundsMemory: 6, Plain, "a voter that does not remember a vouch reports its uptime";
    EarliestStays: 6, NoWriter, "of several acknowledgements of one voter the earliest result stays";
    EndCountsAsAck: 6, Plain, "a voter that has ended counts like one that acknowledged";
    GrantsFromElection: 6, Plain, "a new leader counts grants from its own election";
    EndsFromElection: 6, Plain, "a new leader counts ends that it did not see from its own election";
    RunsAreApart: 6, Plain, "what was said in an earlier run of Revoking says nothing about this one";
    AssumedIfAsked: 6, Plain, "time alone is a proof only with the policy `BestEffort`";
    ReturnKeepsSets: 6, TwoWriters, "a grant back to the same instance keeps its old sets beside the new one";
    ReturnKeepsNote: 8, NoWriter,
        "a grant back to the same instance keeps the note of an SQL fence, which may still be on its way";
    ReturnIsKnown: 6, Plain, "the way back needs the holder's own acknowledgement of the run";
    SetsAreAdded: 6, Plain, "a voter or settings change adds a set to those that the holder may still hold";
    RevokingAddsNoSet: 6, Plain, "while Revoking the holder's sets do not grow";
    SetLeavesAfterAck: 6, TwoWriters, "an old set's clock starts with the holder's acknowledgement of a later epoch";
    SetLeavesAfterLease: 6, TwoWriters, "an old set leaves a lease and its margin after its clock began";
    NewestSetStays: 6, Plain, "the newest set is never dropped";
    TwoVoters: 6, Plain, "never fewer voters than the holder and one more";
    SeatStaysVoter: 6, Plain, "the instance that has authority stays a voter";
    SilentToLeader: 6, Plain, "a voter is dropped only if it was silent to the leader for a lease";
    SilentToHolder: 6, Plain, "a voter is dropped only if it was silent to the holder for a lease";
    NewInstanceIsTakenIn: 6, Plain, "a new instance that speaks takes its site's place among the voters";
    NoSwapBack: 6, Plain, "of two live instances of one site a listed one is not swapped for another back and forth";
    SettingsAreAnEpoch: 6, TwoWriters, "lease settings change by a new epoch, never on the side";
    // 7 Candidates
    CandidateRole: 7, Plain, "a dr-only site is never promoted";
    CandidateReachable: 7, Plain, "a candidate is reachable";
    CandidateFenced: 7, Plain, "a candidate is fenced";
    CandidateFree: 7, Plain, "a candidate is not blocked or being cloned";
    CopyIsWhole: 7, Plain, "a copy that follows nobody yet is a candidate only if it is one of the last primary";
    CandidateReturned: 7, Plain, "the last holder is a candidate again once it answered often enough";
    CandidateHasData: 7, Plain, "an empty site is no candidate where data are known to exist";
    SomebodyToMoveTo: 7, Plain, "authority is taken from a lost holder only when somebody else can get it";
    FreshestWins: 7, Plain, "a strict superset wins over any priority";
    ReceivedCounts: 7, Plain, "what was received counts with what was executed";
    PrimariesCount: 7, Plain, "of incomparable sets only what came from known primaries counts";
    MostOfTheLast: 7, Plain, "still incomparable: most transactions of the last primary";
    DrainedIsApplied: 7, Plain, "a drain is complete when all that was received is executed";
    DrainIsBounded: 7, Plain, "a drain ends after its bound";
    ApplierFailureEnds: 7, Plain, "an applier error ends a drain";
    ApplierStartedOnce: 7, Plain, "a stopped applier is started once";
    ReceiverStopsFirst: 7, Plain, "replication is cut only after the receiver was stopped";
    LossIsStoredFirst: 7, Plain, "what is given up is stored exactly before relay logs are purged";
}

impl Rule {
    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

impl Mark {
    /// The sign that the protocol's text has for it; empty without a mark.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::TwoWriters => "⚔",
            Self::NoWriter => "♥",
            Self::Plain => "",
        }
    }
}

#[cfg(not(feature = "teeth"))]
mod switch {
    use super::Rule;

    /// The condition that enforces the rule.
    #[expect(clippy::inline_always, reason = "nothing of the switch may be left in a product")]
    #[inline(always)]
    pub const fn holds(_: Rule, condition: bool) -> bool {
        condition
    }

    /// Whether the rule is switched off: never.
    #[expect(clippy::inline_always, reason = "nothing of the switch may be left in a product")]
    #[inline(always)]
    pub const fn off(_: Rule) -> bool {
        false
    }

    /// Switches a rule off for the whole process; returns whether this build can.
    pub const fn switch_off(_: Rule) -> bool {
        false
    }
}

#[cfg(feature = "teeth")]
mod switch {
    use super::Rule;
    use std::cell::Cell;
    use std::sync::OnceLock;

    /// Names the rule that a whole process does without.
    const VARIABLE: &str = "BLOODRAVEN_WITHOUT_RULE";

    static PROCESS: OnceLock<Option<Rule>> = OnceLock::new();

    thread_local! {
        static THREAD: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// The condition that enforces the rule; true if the rule is switched off.
    pub fn holds(rule: Rule, condition: bool) -> bool {
        condition || off(rule)
    }

    /// Whether the rule is switched off.
    pub fn off(rule: Rule) -> bool {
        THREAD.get() == Some(rule) || *PROCESS.get_or_init(from_environment) == Some(rule)
    }

    /// Switches a rule off for the whole process; returns whether this build can, and none was chosen before.
    pub fn switch_off(rule: Rule) -> bool {
        *PROCESS.get_or_init(|| Some(rule)) == Some(rule)
    }

    /// Runs `work` on this thread with that rule switched off.
    pub fn without<T>(rule: Rule, work: impl FnOnce() -> T) -> T {
        let before = THREAD.replace(Some(rule));
        let done = work();
        THREAD.set(before);
        done
    }

    #[expect(clippy::disallowed_methods, reason = "whole test binaries are told so which rule to do without")]
    fn from_environment() -> Option<Rule> {
        std::env::var(VARIABLE).ok().and_then(|name| Rule::named(&name))
    }
}

#[cfg(feature = "teeth")]
pub use switch::without;
pub use switch::{holds, off, switch_off};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_a_name_and_a_sentence_of_its_own() {
        let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        let texts: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.text()).collect();
        assert_eq!((names.len(), texts.len()), (Rule::ALL.len(), Rule::ALL.len()));
        for rule in Rule::ALL {
            assert_eq!(Rule::named(rule.name()), Some(*rule));
            assert!((2..=8).contains(&rule.section()), "{rule:?}");
        }
        assert_eq!(Rule::named("no such rule"), None);
    }

    #[cfg(feature = "teeth")]
    #[test]
    fn a_rule_is_off_only_where_it_is_switched_off() {
        let (one, other) = (Rule::Margin, Rule::EverySet);
        let seen = |rule| (holds(rule, true), holds(rule, false), off(rule));
        let outside = seen(other);
        without(one, || {
            assert_eq!(seen(one), (true, true, true));
            assert_eq!(seen(other), outside);
            assert!(std::thread::spawn(move || off(other) == outside.2).join().expect("it ends"));
        });
        assert_eq!(seen(other), outside);
    }
}
