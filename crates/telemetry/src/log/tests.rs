//! Lines, as they are written.
