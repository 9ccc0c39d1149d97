//! Between the cluster's words and the brain's: objects go in, typed and checked inputs come out, and back.
//!
//! In: group objects as the API server gives them. Out: the brain's [`Spec`](bloodraven_brain::group::Spec),
//! [`Kept`](bloodraven_brain::group::Kept) and [`Requests`](bloodraven_brain::group::input::Requests), and the status and
//! annotations that store and show them. Must not: decide, do IO, read a clock; take what cannot be read for what is not
//! there.
//!
//! | module | from | to |
//! |---|---|---|
//! | [`spec`] | a group's spec | what an admin wants, or every field that is wrong and what to write instead |
//! | [`status`] | what the brain keeps | status and annotations, and back, exactly |
//! | [`requests`] | annotations | typed requests |
//! | [`report`] | what a leader has seen | the rest of status, for people alone |
//! | [`conditions`] | what a leader has seen | conditions: one answer per question |
//! | [`objects`] | a group's object, and what stands around it | Kubernetes objects, a kind a file |
//! | [`install`] | a few choices | the operator's own objects and rights |

#![forbid(unsafe_code)]

pub mod conditions;
pub mod install;
mod measure;
pub mod objects;
pub mod report;
pub mod requests;
pub mod spec;
pub mod status;
mod words;
