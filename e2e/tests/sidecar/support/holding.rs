//! A way to the server on which one statement can be held up, as a network or a dead client does.
//!
//! In: a port behind it, a text to wait for. Out: connections that pass everything but that, until it is let go. Must not:
//! close the server's side when the client is gone: what was sent is still on its way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// See above.
pub(crate) struct Holding {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    held: Arc<AtomicBool>,
    go: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl Holding {
    /// Holds up whatever contains `text` on its way to that port.
    pub(crate) async fn before(port: u16, text: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (held, go) = (Arc::new(AtomicBool::new(false)), Arc::new(Semaphore::new(0)));
        let (saw, may) = (Arc::clone(&held), Arc::clone(&go));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(back(from_server, to_client));
                tokio::spawn(forth(from_client, to_server, text, Arc::clone(&saw), Arc::clone(&may)));
            }
        });
        Self { address, held, go, task }
    }

    /// Whether it holds something up.
    pub(crate) fn holds(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// Lets everything through from now on.
    pub(crate) fn let_go(&self) {
        self.go.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

async fn forth(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    text: &'static str,
    held: Arc<AtomicBool>,
    go: Arc<Semaphore>,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(read) = from.read(&mut bytes).await {
        if read == 0 {
            break;
        }
        let found = bytes[..read].windows(text.len()).any(|window| window == text.as_bytes());
        if found {
            held.store(true, Ordering::SeqCst);
            let Ok(permit) = go.acquire().await else { return };
            permit.forget();
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
    if held.load(Ordering::SeqCst) {
        // The dead client's side of the connection is never closed: nobody is there to do it.
        std::future::pending::<()>().await;
    }
}
