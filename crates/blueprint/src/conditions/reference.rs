//! The page `docs/reference/conditions.md`, written from the lists of reasons.
