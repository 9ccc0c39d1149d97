//! `<image>`: the Dragonfly image to move to through a snapshot.
//!
//! In: the annotation's text. Out: the image. Must not: ask a registry.

use std::str::FromStr;

use snafu::{Snafu, ensure};

use crate::rules::text::PINNED_IMAGE;

/// A snapshot upgrade, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotUpgradeRequest {
    /// The image wanted.
    pub image: String,
}

/// Why a dragonfly-snapshot-upgrade annotation cannot be read.
#[derive(Debug, Snafu, PartialEq, Eq)]
pub enum SnapshotUpgradeError {
    /// Nothing was given.
    #[snafu(display("dragonfly-snapshot-upgrade is empty; write an image with a tag or digest"))]
    Empty,
    /// No tag, no digest, or `:latest`.
    #[snafu(display(
        "dragonfly-snapshot-upgrade image {image:?} has no tag or digest, or is :latest; write e.g. <name>:v1.38.0"
    ))]
    NotPinned {
        /// What was given.
        image: String,
    },
}

impl FromStr for SnapshotUpgradeRequest {
    type Err = SnapshotUpgradeError;

    fn from_str(text: &str) -> Result<Self, SnapshotUpgradeError> {
        let image = text.trim();
        ensure!(!image.is_empty(), EmptySnafu);
        ensure!(PINNED_IMAGE.holds(image) && !image.ends_with(":latest"), NotPinnedSnafu { image });
        Ok(Self { image: image.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pinned_images_are_taken() {
        for (text, expect) in [("df:v1.38.0", "df:v1.38.0"), (" r.example/df:v1.39.0 ", "r.example/df:v1.39.0")] {
            assert_eq!(text.parse(), Ok(SnapshotUpgradeRequest { image: expect.to_owned() }));
        }
        for text in ["", "  ", "df", "df:latest", "r.example:5000/df", "df :v1", "df:v1:v2"] {
            assert!(text.parse::<SnapshotUpgradeRequest>().is_err(), "{text:?}");
        }
    }
}
