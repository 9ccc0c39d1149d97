//! debian
