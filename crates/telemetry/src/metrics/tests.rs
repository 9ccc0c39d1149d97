//! Names, labels and series, as Prometheus sees them.
