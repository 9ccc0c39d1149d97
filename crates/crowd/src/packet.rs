//! MySQL's protocol, as bytes: greeting, login, packets, results.
//!
//! In: answers. Out: packets. Must not: do IO, or offer what is not built: no TLS, no compression, no prepared statements.

use crate::say::Answer;
use sha2::{Digest as _, Sha256};

/// What the greeting offers: the protocol of 4.1, several statements in a packet, logins by plugin. Ends of rows are told by
/// EOF packets.
const CAPABILITIES: u32 =
    0x0000_0001 | 0x0000_0200 | 0x0000_2000 | 0x0000_8000 | 0x0003_0000 | 0x0008_0000 | 0x0010_0000;

/// `SERVER_STATUS_AUTOCOMMIT`, and with it that more results follow.
const STATUS: u16 = 0x0002;
const MORE: u16 = 0x0008;

/// The only plugin.
const PLUGIN: &str = "caching_sha2_password";

/// A login was right, and the rest of the long way is not needed.
pub(crate) const FAST_LOGIN: [u8; 2] = [1, 3];

/// The first packet of a server.
pub(crate) fn greeting(connection: u32, nonce: &[u8; 20]) -> Vec<u8> {
    let mut out = vec![10];
    out.extend_from_slice(b"9.7.0-double\0");
    out.extend_from_slice(&connection.to_le_bytes());
    out.extend_from_slice(&nonce[..8]);
    out.push(0);
    let capabilities = CAPABILITIES.to_le_bytes();
    out.extend_from_slice(&capabilities[..2]);
    out.push(255);
    out.extend_from_slice(&STATUS.to_le_bytes());
    out.extend_from_slice(&capabilities[2..]);
    out.push(21);
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&nonce[8..]);
    out.push(0);
    out.extend_from_slice(PLUGIN.as_bytes());
    out.push(0);
    out
}

/// Who logs in, and the proof that comes with it; none: not understood.
pub(crate) fn login(payload: &[u8]) -> Option<(&str, &[u8])> {
    let rest = payload.get(32..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let user = std::str::from_utf8(&rest[..end]).ok()?;
    let proof = rest.get(end + 1..)?;
    let length = usize::from(*proof.first()?);
    Some((user, proof.get(1..=length)?))
}

/// What a client that knows the password sends.
pub(crate) fn proof(password: &str, nonce: &[u8; 20]) -> Vec<u8> {
    let once = Sha256::digest(password.as_bytes());
    let twice = Sha256::digest(once);
    let mixed = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
    once.iter().zip(mixed).map(|(one, other)| one ^ other).collect()
}

/// Packets of one answer, numbered from where the question ended.
pub(crate) struct Packets {
    pub(crate) bytes: Vec<u8>,
    number: u8,
}

impl Packets {
    pub(crate) fn after(number: u8) -> Self {
        Self { bytes: Vec::new(), number: number.wrapping_add(1) }
    }

    pub(crate) fn put(&mut self, payload: &[u8]) {
        // Nothing here comes near the 16 MB at which a payload would be parted.
        let length = u32::try_from(payload.len()).unwrap_or(0).to_le_bytes();
        self.bytes.extend_from_slice(&length[..3]);
        self.bytes.push(self.number);
        self.bytes.extend_from_slice(payload);
        self.number = self.number.wrapping_add(1);
    }

    /// "Done".
    pub(crate) fn done(&mut self, more: bool) {
        let [low, high] = status(more);
        self.put(&[0, 0, 0, low, high, 0, 0]);
    }

    pub(crate) fn refused(&mut self, code: u16, state: &str, message: &str) {
        let mut payload = vec![0xff];
        payload.extend_from_slice(&code.to_le_bytes());
        payload.push(b'#');
        payload.extend_from_slice(state.as_bytes());
        payload.extend_from_slice(message.as_bytes());
        self.put(&payload);
    }

    /// Every answer to one packet of statements.
    pub(crate) fn answers(&mut self, answers: &[Answer]) {
        for (index, answer) in answers.iter().enumerate() {
            let more = index + 1 < answers.len();
            match answer {
                Answer::Done => self.done(more),
                Answer::Refused { code, message } => self.refused(*code, "HY000", message),
                Answer::Rows { columns, rows } => self.rows(columns, rows, more),
            }
        }
    }

    fn rows(&mut self, columns: &[&str], rows: &[Vec<Option<String>>], more: bool) {
        let mut payload = Vec::with_capacity(64);
        put_length(&mut payload, columns.len());
        self.put(&payload);
        for column in columns {
            payload.clear();
            for text in ["def", "", "", "", column, ""] {
                put_text(&mut payload, text);
            }
            payload.push(0x0c);
            // utf8mb4, as long as can be, VAR_STRING.
            payload.extend_from_slice(&[45, 0, 0xff, 0xff, 0xff, 0, 0xfd, 0, 0, 0, 0, 0]);
            self.put(&payload);
        }
        self.end_of_rows(false);
        for row in rows {
            payload.clear();
            for value in row {
                match value {
                    Some(text) => put_text(&mut payload, text),
                    None => payload.push(0xfb),
                }
            }
            self.put(&payload);
        }
        self.end_of_rows(more);
    }

    fn end_of_rows(&mut self, more: bool) {
        let [low, high] = status(more);
        self.put(&[0xfe, 0, 0, low, high]);
    }
}

const fn status(more: bool) -> [u8; 2] {
    (if more { STATUS | MORE } else { STATUS }).to_le_bytes()
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    put_length(to, text.len());
    to.extend_from_slice(text.as_bytes());
}

fn put_length(to: &mut Vec<u8>, length: usize) {
    let bytes = length.to_le_bytes();
    match length {
        0..=250 => to.push(bytes[0]),
        251..=0xffff => {
            to.push(0xfc);
            to.extend_from_slice(&bytes[..2]);
        }
        _ => {
            to.push(0xfd);
            to.extend_from_slice(&bytes[..3]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_numbered_and_told_apart() {
        let mut packets = Packets::after(0);
        let rows = Answer::Rows { columns: vec!["a"], rows: vec![vec![None], vec![Some("x".to_owned())]] };
        packets.answers(&[Answer::Done, rows]);
        assert_eq!(packets.bytes[..11], [7, 0, 0, 1, 0, 0, 0, 0x0a, 0, 0, 0], "done, and more follows");
        assert!(packets.bytes.ends_with(&[5, 0, 0, 7, 0xfe, 0, 0, 2, 0]), "no more: {:?}", packets.bytes);
    }

    #[test]
    fn a_login_is_read_up_to_its_proof() {
        let mut payload = vec![0; 32];
        payload.extend_from_slice(b"op\0\x03abcrest");
        assert_eq!(login(&payload), Some(("op", &b"abc"[..])));
        assert_eq!(login(&payload[..30]), None);
    }
}
