//! Doors: addresses on the host's loopback that lead to an address as one machine of the cluster sees it.
//!
//! In: a machine's process and an address in its network. Out: a port on 127.0.0.1. Must not: listen anywhere else, or
//! outlive its value: closed doors take their connections along.
//!
//! A socket belongs to the namespace of the thread that made it. So the door listens on an ordinary thread and connects on
//! one that has entered the machine's namespace, and test programs need not enter it themselves.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::network;

/// How long a connection may take to be made: a cut line does not answer at all.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The connections that a door holds, for its end.
type Held = Arc<Mutex<Vec<TcpStream>>>;

/// A way in. Dropping it closes it.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
    held: Held,
}

impl Door {
    /// Opens one to `target`, as the machine reaches it whose first process has that number (another after each boot).
    pub(super) fn open(pid: Arc<AtomicU32>, target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let door = Self { address: listener.local_addr()?, closed: Arc::default(), held: Held::default() };
        let (closed, held) = (Arc::clone(&door.closed), Arc::clone(&door.held));
        let serve = move || {
            for here in listener.incoming() {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(here) = here {
                    let (held, pid) = (Arc::clone(&held), pid.load(Ordering::SeqCst));
                    let work = move || pass(pid, target, &here, &held);
                    // Without a thread the caller is turned away.
                    let _ = std::thread::Builder::new().name("door".into()).spawn(work);
                }
            }
        };
        std::thread::Builder::new().name("doorkeeper".into()).spawn(serve)?;
        Ok(door)
    }

    /// Where to call.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // Wakes the doorkeeper, which sees that it is over.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT_LIMIT);
        for stream in self.held.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Connects and passes bytes both ways until one side ends.
fn pass(pid: u32, target: SocketAddr, here: &TcpStream, held: &Held) {
    let Ok(Ok(there)) = network::within(pid, || TcpStream::connect_timeout(&target, CONNECT_LIMIT)) else { return };
    if let (Ok(one), Ok(two)) = (here.try_clone(), there.try_clone()) {
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        // Connections that have ended have no peer any more.
        held.retain(|stream| stream.peer_addr().is_ok());
        held.extend([one, two]);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| copy(here, &there));
        copy(&there, here);
    });
    let _ = here.shutdown(Shutdown::Both);
    let _ = there.shutdown(Shutdown::Both);
}

/// Passes bytes one way; the end of them is passed on, too.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_door_leads_to_its_target_and_closes_with_its_value() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = server.local_addr().unwrap();
        // The namespace of this very process can be entered only by root; the others see the door refuse.
        let door = Door::open(Arc::new(std::process::id().into()), target).unwrap();
        let mut here = TcpStream::connect(door.address()).unwrap();
        if rustix::process::geteuid().is_root() {
            let (mut there, _) = server.accept().unwrap();
            here.write_all(b"who?").unwrap();
            here.shutdown(Shutdown::Write).unwrap();
            let mut text = String::new();
            there.read_to_string(&mut text).unwrap();
            assert_eq!(text, "who?");
            there.write_all(b"me").unwrap();
            drop(there);
            let mut text = String::new();
            here.read_to_string(&mut text).unwrap();
            assert_eq!(text, "me");
        } else {
            assert_eq!(here.read(&mut [0]).unwrap_or(0), 0);
        }
        let address = door.address();
        drop(door);
        let gone = crate::wait::until(CONNECT_LIMIT, || TcpStream::connect(address).is_err().then_some(()));
        assert!(gone.is_some(), "nobody listens any more");
    }
}
