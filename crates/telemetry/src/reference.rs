//! The reference pages of metrics and log events, written from their tables.
