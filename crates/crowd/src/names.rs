//! A name server for the Services of played sites, over UDP.
//!
//! In: questions. Out: the address of a site; for anything else "no such name". Must not: ask anybody else.

use crate::crowd::Crowd;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::net::UdpSocket;

/// Where it answers: the only one that [`crate::place`] tells the system's resolver.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);

/// The types of records that are told apart.
const A: u16 = 1;

/// An answer, refused: no such name.
const NO_SUCH_NAME: u8 = 3;

pub(crate) async fn serve(crowd: Arc<Crowd>) -> io::Result<()> {
    let socket = UdpSocket::bind((IpAddr::V4(ADDRESS), 53)).await?;
    tokio::spawn(async move {
        let mut buffer = [0; 512];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
            if let Some(answer) = answer(&buffer[..length], |name| crowd.address_of(name)) {
                // Who does not get it asks again.
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    Ok(())
}

/// None: not a question.
fn answer(question: &[u8], address: impl Fn(&str) -> Option<Ipv4Addr>) -> Option<Vec<u8>> {
    let (id, mut rest) = (question.get(..2)?, question.get(12..)?);
    let mut name = String::new();
    let mut length = 0;
    // Each turn takes a label off; a packet has 512 bytes at most.
    loop {
        let (&label, more) = rest.split_first()?;
        length += 1;
        rest = more;
        if label == 0 {
            break;
        }
        let (text, more) = rest.split_at_checked(usize::from(label))?;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&String::from_utf8_lossy(text).to_ascii_lowercase());
        length += usize::from(label);
        rest = more;
    }
    let kind = u16::from_be_bytes([*rest.first()?, *rest.get(1)?]);
    let asked = question.get(12..12 + length + 4)?;
    let found = address(&name);
    let told = found.filter(|_| kind == A);
    let mut out = id.to_vec();
    // An answer, from the one who knows; recursion was asked for and is there.
    out.extend_from_slice(&[0x85, 0x80 | if found.is_some() { 0 } else { NO_SUCH_NAME }]);
    out.extend_from_slice(&[0, 1, 0, u8::from(told.is_some()), 0, 0, 0, 0]);
    out.extend_from_slice(asked);
    if let Some(address) = told {
        // The name of the question, an address, of the Internet, good for five seconds as CoreDNS has it.
        out.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4]);
        out.extend_from_slice(&address.octets());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_and_nothing_else() {
        let question = |kind: u8| {
            let mut bytes = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            bytes.extend_from_slice(b"\x03iad\x04test\x00\x00");
            bytes.extend_from_slice(&[kind, 0, 1]);
            bytes
        };
        let iad = Ipv4Addr::new(127, 64, 0, 1);
        let known = |name: &str| (name == "iad.test").then_some(iad);
        let a = answer(&question(1), known).unwrap();
        assert_eq!((&a[..4], a[7]), (&[7, 9, 0x85, 0x80][..], 1));
        assert!(a.ends_with(&iad.octets()));
        let aaaa = answer(&question(28), known).unwrap();
        assert_eq!((aaaa[3], aaaa[7]), (0x80, 0), "there is such a name, without such a record");
        assert_eq!(answer(&question(1), |_| None).unwrap()[3], 0x83);
        assert_eq!(answer(&question(1)[..20], known), None);
    }
}
