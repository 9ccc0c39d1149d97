//! The sets named on a command line.
//!
//! In: an argument (a set, `@FILE` or `-`). Out: the set, or an error that shows the place of the mistake. Must not: read
//! more of a file or of standard input than the longest text that is parsed.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;

use bloodraven_gtid::{GtidSet, MAX_TEXT_BYTES, ParseError};
use snafu::{ResultExt, Snafu, ensure};

use super::pointer::Pointer;

/// Where a set is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// In the argument itself.
    Text(String),
    /// In a file.
    File(PathBuf),
    /// On standard input.
    Stdin,
}

impl FromStr for Operand {
    type Err = Infallible;

    fn from_str(argument: &str) -> Result<Self, Infallible> {
        Ok(match argument.strip_prefix('@') {
            Some(path) => Self::File(path.into()),
            None if argument == "-" => Self::Stdin,
            None => Self::Text(argument.to_owned()),
        })
    }
}

/// Why a set could not be read.
#[derive(Debug, Snafu)]
pub(crate) enum Error {
    #[snafu(display("standard input can be read only once: put one of the sets into a file and name it as @FILE"))]
    StdinTwice,

    #[snafu(display("cannot read {place}"))]
    Read { place: String, source: io::Error },

    #[snafu(display("{place} is too long for a GTID set: more than {MAX_TEXT_BYTES} bytes"))]
    Measure { place: String },

    #[snafu(display("{place} is not text: byte {offset} is not valid UTF-8"))]
    Decode { place: String, offset: usize },

    #[snafu(display("{place} is not a GTID set: {problem}\n{pointer}"))]
    Parse { place: String, problem: ParseError, pointer: Pointer },
}

/// Reads the sets in the order in which they were named. Nothing is read if standard input is named twice.
pub(crate) fn read_all(operands: &[Operand], stdin: &mut impl Read) -> Result<Vec<GtidSet>, Error> {
    ensure!(operands.iter().filter(|operand| **operand == Operand::Stdin).count() <= 1, StdinTwiceSnafu);
    operands.iter().enumerate().map(|(index, operand)| read(index, operand, stdin)).collect()
}

/// Reads one set.
fn read(index: usize, operand: &Operand, stdin: &mut impl Read) -> Result<GtidSet, Error> {
    let place = match operand {
        Operand::Text(_) => format!("set {}", index + 1),
        Operand::File(path) => path.display().to_string(),
        Operand::Stdin => "standard input".to_owned(),
    };
    let bytes = match operand {
        Operand::Text(text) => Ok(text.clone().into_bytes()),
        Operand::File(path) => File::open(path).and_then(read_bounded),
        Operand::Stdin => read_bounded(stdin),
    };
    let bytes = bytes.context(ReadSnafu { place: &place })?;
    ensure!(bytes.len() <= MAX_TEXT_BYTES, MeasureSnafu { place });
    // Without the line break that ends a file, so that "found the end" points at the end of a line that can be seen.
    let text = match str::from_utf8(bytes.trim_ascii_end()) {
        Ok(text) => text,
        Err(error) => return DecodeSnafu { place, offset: error.valid_up_to() }.fail(),
    };
    text.parse().map_err(|problem| {
        let pointer = Pointer::new(text, &problem);
        Error::Parse { place, problem, pointer }
    })
}

/// Reads one byte more than fits, at most, so that too much can be told from just enough.
fn read_bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
