//! The closed lists of label values.
//!
//! In: nothing. Out: enums whose words are the values that a label may have. Must not: hold a word that is made at run time;
//! names of sites and groups are bounded by specs, everything else is here.

/// What a label may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of these.
    Closed(&'static [&'static str]),
    /// A name that a spec declares.
    Spec,
    /// A name that stands in the code.
    Code,
}

/// A type whose values may stand in a label.
pub trait LabelValue {
    /// What it may be.
    const VALUES: Values;
    /// The text of the label.
    fn text(&self) -> &str;
}

/// A name that a spec declares: a site, a group, a namespace.
impl LabelValue for &str {
    const VALUES: Values = Values::Spec;

    fn text(&self) -> &str {
        self
    }
}

/// A name that stands in the code, so there are only so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub &'static str);

impl LabelValue for Code {
    const VALUES: Values = Values::Code;

    fn text(&self) -> &str {
        self.0
    }
}

macro_rules! words {
    ($( $(#[$meta:meta])* $name:ident { $( $(#[$of:meta])* $variant:ident = $text:literal ),+ $(,)? } )+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[$of])* #[doc = concat!("(`", $text, "`)")] $variant ),+ }

        impl $name {
            /// Every variant, in declared order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text ),+ }
            }
        }

        impl LabelValue for $name {
            const VALUES: Values = Values::Closed(&[$($text),+]);

            fn text(&self) -> &str {
                self.as_str()
            }
        }
    )+ };
}

words! {
    /// How an attempt at a failover ended.
    AttemptResult {
        /// The new primary was read back writable.
        Success = "success",
        /// The chosen site could not be opened.
        Failed = "failed",
        /// There is no proof of release, and time alone brings none.
        Held = "held",
    }
    /// A part of a failover.
    FailoverStep {
        /// From the last answer of the lost holder to the start of the move.
        Detect = "detect",
        /// From the start of the move to the proof of release.
        Proof = "proof",
        /// From the proof to the grant.
        Drain = "drain",
        /// From the grant until the new primary was read back writable.
        Open = "open",
        /// From the last answer of the lost holder until the new primary was read back writable.
        Total = "total",
    }
    /// How a planned failover ended.
    PlannedResult {
        /// The target is active.
        Success = "success",
        /// Refused before anything was touched.
        Rejected = "rejected",
        /// The target did not catch up in time.
        FailedTimeout = "failed_timeout",
        /// Any other end without a move.
        FailedOther = "failed_other",
    }
    /// What was done to the nodes of a site.
    TaintAction {
        /// The taint was put on.
        Taint = "taint",
        /// The taint was taken off.
        Untaint = "untaint",
    }
    /// How far authority is.
    AuthorityPhase {
        /// Nobody may write.
        Revoking = "Revoking",
        /// The instance may write, once opened.
        Granting = "Granting",
        /// Opened and read back.
        Stable = "Stable",
    }
    /// By which rule a release was proven.
    ProofKind {
        /// The holder's own sidecar acknowledged the revocation, fenced.
        FencedBySidecar = "FencedBySidecar",
        /// The holder's instance has ended.
        ProcessEnded = "ProcessEnded",
        /// Nobody can prolong its lease any more, and the lease has run out.
        LeaseExpired = "LeaseExpired",
        /// Time has passed without enough acknowledgements.
        Assumed = "Assumed",
    }
    /// What a site may become.
    SiteRole {
        /// May be promoted.
        PrimaryCandidate = "primary-candidate",
        /// Never promoted.
        DrOnly = "dr-only",
    }
    /// The debounced state of a site.
    SiteState {
        /// No poll has decided anything yet.
        Unknown = "unknown",
        /// It takes writes.
        Writable = "writable",
        /// It refuses writes.
        ReadOnly = "read-only",
        /// It does not answer.
        Unreachable = "unreachable",
    }
    /// A replication thread.
    ReplicationThread {
        /// The receiver.
        Io = "io",
        /// The applier.
        Sql = "sql",
    }
    /// Who fenced.
    FenceActor {
        /// The leader, over SQL.
        Operator = "operator",
        /// The site's own sidecar.
        Sidecar = "sidecar",
    }
    /// What became of a fence.
    FenceResult {
        /// Both variables were read back as 1, or the server has ended.
        Success = "success",
        /// It was refused, or could not be sent.
        Failed = "failed",
        /// Nobody knows; it counts as not fenced.
        Unknown = "unknown",
    }
    /// Which bytes of a clone.
    CloneBytes {
        /// Copied.
        Done = "done",
        /// In all.
        Total = "total",
    }
    /// How the promotion of a cache ended.
    CacheResult {
        /// It is the master.
        Success = "success",
        /// It could not take over.
        Failed = "failed",
        /// There was nothing to promote.
        Skipped = "skipped",
    }
    /// Which HTTP server.
    HttpServer {
        /// The operator's auxiliary server.
        Aux = "aux",
        /// The sidecar's server.
        Sidecar = "sidecar",
    }
    /// Class of an HTTP status.
    StatusClass {
        /// 1xx.
        Informational = "1xx",
        /// 2xx.
        Success = "2xx",
        /// 3xx.
        Redirection = "3xx",
        /// 4xx.
        Client = "4xx",
        /// 5xx.
        Server = "5xx",
    }
    /// HTTP method; whatever else is asked for is `other`.
    Method {
        /// GET.
        Get = "GET",
        /// POST.
        Post = "POST",
        /// Anything else.
        Other = "other",
    }
    /// By which rule a sidecar fenced.
    FenceRule {
        /// The view names somebody else.
        Mismatch = "mismatch",
        /// The lease was over.
        Lease = "lease",
        /// Two views of one epoch.
        Conflict = "conflict",
        /// mysqld came up fenced and stays so.
        Boot = "boot",
    }
    /// How an opening ended.
    OpeningResult {
        /// The first opening of a tenure.
        Opened = "opened",
        /// A later opening of the same tenure.
        Reopened = "reopened",
        /// The data gate is closed.
        Gate = "gate",
        /// A step failed.
        Failed = "failed",
    }
    /// Why the keeper killed mysqld.
    KillCause {
        /// The last rung of the fence ladder.
        Ladder = "ladder",
        /// The permit ran out.
        Deadman = "deadman",
    }
}

impl StatusClass {
    /// The class of that status.
    pub const fn of(status: u16) -> Self {
        match status {
            0..=199 => Self::Informational,
            200..=299 => Self::Success,
            300..=399 => Self::Redirection,
            400..=499 => Self::Client,
            _ => Self::Server,
        }
    }
}

impl Method {
    /// The method of that name.
    pub fn of(name: &str) -> Self {
        match name {
            "GET" => Self::Get,
            "POST" => Self::Post,
            _ => Self::Other,
        }
    }
}
