//! Whether a MySQL server answers: a connection, and the first packet that the server sends by itself.
//!
//! In: an address. Out: that a server greeted, or why not. Must not: log in, since there may be no account yet.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The first byte of a greeting: version 10 of the protocol, the only one in use.
const PROTOCOL: u8 = 10;

/// The first byte of a refusal, such as "too many connections".
const REFUSAL: u8 = 0xff;

/// How much of a refusal is read: its number, its state and a line of text.
const REFUSAL_BYTES: u64 = 512;

/// Waits for the greeting, at most `limit` for the connection and as long for the packet.
pub(super) fn expect(address: SocketAddr, limit: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    // Three bytes of length, one of sequence, then the packet.
    let mut start = [0; 5];
    stream.read_exact(&mut start)?;
    match start[4] {
        PROTOCOL => Ok(()),
        REFUSAL => {
            let mut text = Vec::new();
            stream.take(REFUSAL_BYTES).read_to_end(&mut text)?;
            let text = String::from_utf8_lossy(text.get(2..).unwrap_or_default()).into_owned();
            Err(io::Error::new(io::ErrorKind::ConnectionRefused, text))
        }
        other => Err(io::Error::new(io::ErrorKind::InvalidData, format!("byte {other} is no MySQL greeting"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait;
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};

    /// What `expect` makes of a server that sends these bytes.
    fn check(bytes: &[u8], outcome: Result<(), io::ErrorKind>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| listener.accept().unwrap().0.write_all(bytes).unwrap());
            let found = expect(address, Duration::from_secs(20)).map_err(|error| error.kind());
            assert_eq!(found, outcome, "{bytes:?}");
        });
    }

    #[test]
    fn only_a_greeting_counts_as_an_answer() {
        check(b"\x4a\0\0\0\x0a9.7.4\0", Ok(()));
        check(b"\x17\0\0\x00\xff\x10\x04Too many connections", Err(io::ErrorKind::ConnectionRefused));
        check(b"\x01\0\0\x00\xff", Err(io::ErrorKind::ConnectionRefused));
        check(b"HTTP/1.1 400", Err(io::ErrorKind::InvalidData));
        check(b"\x4a\0", Err(io::ErrorKind::UnexpectedEof));
        check(b"", Err(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn a_port_without_a_server_refuses_and_a_silent_one_times_out() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let silent = expect(address, Duration::from_millis(50)).unwrap_err();
        assert!(matches!(silent.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{silent}");
        drop(listener);
        // A process that another test is just starting holds a copy of the listener until it runs its program.
        let refused = wait::until(Duration::from_secs(20), || {
            let absent = expect(address, Duration::from_secs(20)).unwrap_err();
            (absent.kind() == io::ErrorKind::ConnectionRefused).then_some(())
        });
        assert!(refused.is_some(), "nobody listens there any more");
    }
}
