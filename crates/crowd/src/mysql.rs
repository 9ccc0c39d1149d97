//! Sessions of the operator's at played servers.
//!
//! In: connections to the administrators' port, each of a site by the address that it came to. Out: answers of that site.
//! Must not: outlive a fault: a dead site resets its connections, a hung one keeps them and says nothing.

use crate::crowd::{Crowd, Door, Place};
use crate::packet::{self, FAST_LOGIN, Packets};
use crate::say;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// `ER_ACCESS_DENIED_ERROR`.
const DENIED: u16 = 1045;

/// The longest packet that is read: statements are a few kilobytes.
const LONGEST: usize = 1 << 20;

/// Commands of the protocol.
const QUIT: u8 = 1;
const USE: u8 = 2;
const QUERY: u8 = 3;
const PING: u8 = 14;
const RESET: u8 = 31;

static CONNECTIONS: AtomicU32 = AtomicU32::new(1);

/// Serves every site, for ever.
pub(crate) async fn serve(crowd: Arc<Crowd>, listener: TcpListener) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let crowd = Arc::clone(&crowd);
        tokio::spawn(async move {
            let Some(place) = crowd.place_of(&stream) else { return };
            let mut door = crowd.doors(place).mysql.subscribe();
            let open = *door.borrow();
            if open != Door::Shut {
                let session = session(&crowd, place, &mut stream, door.clone());
                tokio::select! {
                    // Who hangs up is its own business.
                    _ = session => return,
                    _ = door.wait_for(|door| *door == Door::Shut) => {}
                }
            }
            // As a killed server's kernel would: at once, and not politely.
            let _ = stream.set_zero_linger();
        });
    }
}

async fn session(
    crowd: &Crowd,
    place: Place,
    stream: &mut TcpStream,
    mut door: watch::Receiver<Door>,
) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let mut wire = Wire { stream, number: 0 };
    let nonce = nonce();
    answers(&mut door).await;
    wire.send(&packet::greeting(connection, &nonce), true).await?;
    let login = wire.receive().await?;
    let mut packets = Packets::after(wire.number);
    let known = packet::login(&login).is_some_and(|(user, proof)| {
        let right = |account: &(String, String)| account.0 == user && packet::proof(&account.1, &nonce) == proof;
        crowd.accounts().iter().any(right)
    });
    if !known {
        packets.refused(DENIED, "28000", "Access denied");
        return wire.write(&packets.bytes).await;
    }
    packets.put(&FAST_LOGIN);
    packets.done(false);
    wire.write(&packets.bytes).await?;
    loop {
        let command = wire.receive().await?;
        answers(&mut door).await;
        let mut packets = Packets::after(wire.number);
        match command.split_first() {
            Some((&QUERY, text)) => {
                let text = String::from_utf8_lossy(text);
                if say::is_poll(&text) {
                    crowd.polls.note(place, crowd.sites);
                }
                let said = crowd.with(place, |group| group.say(place.site, connection, &text));
                crowd.note_unknown(&said);
                packets.answers(&said);
            }
            Some((&(PING | USE | RESET), _)) => packets.done(false),
            Some((&QUIT, _)) | None => return Ok(()),
            Some(_) => packets.refused(1047, "08S01", "Unknown command"),
        }
        wire.write(&packets.bytes).await?;
    }
}

/// Waits as long as the site hangs.
async fn answers(door: &mut watch::Receiver<Door>) {
    let _ = door.wait_for(|door| *door != Door::Hung).await;
}

/// Packets over a stream.
struct Wire<'a> {
    stream: &'a mut TcpStream,
    number: u8,
}

impl Wire<'_> {
    async fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).await?;
        let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        if length > LONGEST {
            return Err(io::Error::other("a packet that nobody here would send"));
        }
        self.number = header[3];
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        Ok(payload)
    }

    async fn send(&mut self, payload: &[u8], first: bool) -> io::Result<()> {
        let mut packets = Packets::after(if first { u8::MAX } else { self.number });
        packets.put(payload);
        self.write(&packets.bytes).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }
}

fn nonce() -> [u8; 20] {
    let mut bytes = [0; 20];
    let _ = getrandom::fill(&mut bytes);
    // A zero would end it early, a dollar is the server's own separator.
    bytes.map(|byte| byte & 0x3f | 0x40)
}
