//! Every log event, once: its name, its level, its messages, and the fields it brings.
//!
//! In: nothing. Out: the closed list. Must not: be extended at a call site. A line without an event is prose for people;
//! programs look at `event`.

/// How much a line matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// For the record.
    #[default]
    Info,
    /// Somebody should look.
    Warn,
    /// Something did not work.
    Error,
}

impl Level {
    /// Every level, the least first.
    pub const ALL: &'static [Self] = &[Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// The level of that word; none: there is no such level.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.as_str() == word)
    }
}

macro_rules! fields {
    ($( $(#[$meta:meta])* $field:ident = $name:literal ),+ $(,)?) => {
        /// The fields that a line may bring, besides `time`, `level`, `msg`, `event` and `component`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field { $( $(#[$meta])* #[doc = concat!("(`", $name, "`)")] $field ),+ }

        impl Field {
            /// Every field, in declared order.
            pub const ALL: &'static [Self] = &[$(Self::$field),+];

            /// Its name in the line.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$field => $name ),+ }
            }
        }
    };
}

fields! {
    /// The group, `namespace/name`.
    Fg = "fg",
    /// The record's epoch.
    Epoch = "epoch",
    /// The site.
    Site = "site",
    /// The instance, `<pod UID>/<store id>`.
    Instance = "instance",
    /// The pod.
    Pod = "pod",
    /// The site that may be promoted.
    Candidate = "candidate",
    /// The site that had authority.
    OldPrimary = "oldPrimary",
    /// The site that was promoted.
    PromotedSite = "promotedSite",
    /// What the promoted site had executed.
    PromotionGtid = "promotionGtid",
    /// What the release rests on.
    Proof = "proof",
    /// Before.
    From = "from",
    /// Now.
    To = "to",
    /// What a site has and the primary lacks.
    DivergentGtid = "divergentGtid",
    /// How many.
    Count = "count",
    /// The site that is copied.
    Donor = "donor",
    /// The site that is copied to.
    Recipient = "recipient",
    /// Where it comes from.
    Source = "source",
    /// How far it is.
    Phase = "phase",
    /// Why, in one word or sentence.
    Reason = "reason",
    /// How long it took.
    DurationMs = "durationMs",
    /// What went wrong.
    Error = "error",
    /// Why the record changed.
    Cause = "cause",
    /// Who is silent.
    Missing = "missing",
    /// When authority last moved.
    LastFailover = "lastFailover",
    /// How long the pause between moves is.
    Cooldown = "cooldown",
    /// The site that the policy prefers.
    PreferSite = "preferSite",
    /// The site that was fenced.
    FencedSite = "fencedSite",
}

/// What a log event is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpec {
    /// The value of `event`.
    pub event: &'static str,
    /// The value of `level`.
    pub level: Level,
    /// The values that `msg` may have; what is between `<` and `>` is filled in.
    pub messages: &'static [&'static str],
    /// The fields that it brings when they are known; `fg`, `component` and `epoch` always.
    pub fields: &'static [Field],
    /// When it is written.
    pub when: &'static str,
}

macro_rules! log_events {
    ($( $event:ident $level:ident [$($message:literal),+] [$($field:ident),*] $when:literal; )+) => {
        /// The name of a log event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LogEvent { $( #[doc = $when] $event ),+ }

        impl LogEvent {
            /// Every event, in declared order.
            pub const ALL: &'static [Self] = &[$(Self::$event),+];

            /// What it is made of.
            pub const fn spec(self) -> LogSpec {
                match self { $( Self::$event => LogSpec {
                    event: stringify!($event),
                    level: Level::$level,
                    messages: &[$($message),+],
                    fields: &[$(Field::$field),*],
                    when: $when,
                } ),+ }
            }
        }
    };
}

log_events! {
    StateTransition Info ["state transition"] [Site, From, To]
        "a site's debounced state changed";
    AuthorityChanged Info ["authority changed"] [Epoch, Site, Instance, Phase, Cause, Proof]
        "the record of who may write was stored";
    FailoverStarted Info ["initiating failover"] [OldPrimary, Cause, Reason]
        "an automatic move begins";
    FailoverProof Info ["release proven"] [OldPrimary, Instance, Proof, DurationMs]
        "the last holder is known to have let go";
    FailoverComplete Info ["failover complete"] [PromotedSite, OldPrimary, Proof, PromotionGtid, DurationMs]
        "the new primary was read back writable";
    FailoverFailed Error ["failover failed"] [Candidate, Reason, Error]
        "an attempt ended without a new primary; it is tried again";
    PromotionConfirmed Info ["promotion confirmed: site is writable"] [Site, PromotionGtid]
        "a granted site was read back writable";
    RelayDrained Info ["relay log drain complete"] [Candidate, Count]
        "a candidate was chosen and has applied what it had received";
    PromotionHeld Warn ["promotion held: no proof of release"] [Missing]
        "there is no proof, and time alone brings none";
    CooldownBlocked Info ["failover blocked by anti-flap cooldown"] [LastFailover, Cooldown]
        "a move waits for the end of the cooldown";
    Alert Warn [
        "SPLIT BRAIN: both sites are writable",
        "SPLIT BRAIN: <n> sites are writable (<names>)",
        "NO PRIMARY: <why>",
        "TOTAL LOSS: <why>",
        "<sites> unreachable while <primary> is primary"
    ] [Reason]
        "something is wrong that people should see";
    SplitBrainAutoResolve Warn
        ["split-brain auto-resolve: fencing non-preferred site per spec.splitBrainPolicy.preferSite"]
        [PreferSite, FencedSite]
        "several sites are writable and the policy decides";
    RecoveryStarted Info ["initiating old primary recovery"] [Site]
        "a site is being attached to the primary";
    DivergenceDetected Warn ["divergence detected"] [Site, DivergentGtid, Count]
        "a site has what the primary lacks";
    RecoveryComplete Info ["old primary recovery complete"] [Site]
        "a site follows the primary again";
    CloneStarted Info ["starting bootstrap"] [Recipient, Donor, Source, Phase]
        "a clone begins";
    CloneDone Info ["bootstrap completed successfully"] [Recipient, Source]
        "a cloned site follows the primary";
    CloneFailed Error ["bootstrap failed"] [Recipient, Source, Error]
        "a clone was given up";
    PlannedPhase Info ["planned failover phase"] [Candidate, From, To, Reason]
        "a planned failover was accepted, went on, or ended";
    SelfFencing Warn ["SELF-FENCING: <rule>"] [Site, Instance, Reason]
        "a sidecar begins to fence its server";
    SelfFenced Warn ["SELF-FENCED: <method>"] [Site, Instance, DurationMs]
        "the server refuses writes, or has ended";
    Opened Info ["opened under grant", "reopened under lease"] [Site, Instance]
        "a sidecar has opened its server";
    LeaderElected Info ["became leader"] [Instance]
        "this operator leads";
    LeaderLost Warn ["lost leadership, stopping"] [Reason]
        "this operator leads no longer";
}

impl LogEvent {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        self.spec().event
    }

    /// Its level.
    pub const fn level(self) -> Level {
        self.spec().level
    }

    /// Its message, if it has but one; of several, the first.
    pub const fn message(self) -> &'static str {
        match self.spec().messages {
            [first, ..] => first,
            [] => "",
        }
    }
}
