//! Every metric and every log event of Bloodraven, declared once.
//!
//! In: what the hands and the tellers want to count, show and say. Out: Prometheus text and JSON lines whose names, labels,
//! levels and fields come from one table each; the reference pages are written from the same tables. Must not: decide
//! anything, block whoever speaks, panic, or let a secret through.
//!
//! | module | what is there |
//! |---|---|
//! | [`metrics`] | the sets ([`OperatorMetrics`], [`SidecarMetrics`]), typed handles, the catalogue, exposition |
//! | [`words`] | the closed lists of label values |
//! | [`log`] | [`LogEvent`], [`Line`], and the layer that writes JSON lines |
//! | [`mod@reference`] | the pages `docs/reference/metrics.md` and `logs.md` |

#![forbid(unsafe_code)]

pub mod log;
pub mod metrics;
pub mod reference;
pub mod words;

pub use log::{Component, Guard, Line, LogEvent};
pub use metrics::{CONTENT_TYPE, GroupMetrics, OperatorMetrics, ProcessMetrics, SidecarMetrics, SiteMetrics};
