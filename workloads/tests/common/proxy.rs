//! A proxy on a unix socket in front of the server's that closes one connection in the middle of a
//! reply.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

/// Forwards every connection to the real socket.
pub struct Proxy {
    accepted: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens at `front` and forwards to `back`; closes the first connection with more than
    /// `bytes` of replies. The same amount of work leads to it on every machine, unlike a time.
    pub fn cutting_after(front: &Path, back: &str, bytes: usize) -> Self {
        let limit = Arc::new(Mutex::new(Some(bytes)));
        let listener = UnixListener::bind(front).unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (count, back) = (Arc::clone(&accepted), back.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&back).unwrap();
                // Before the first byte is forwarded: a client that has a reply is counted.
                count.fetch_add(1, SeqCst);
                let both = || (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (mut requests, mut server_side) = both();
                thread::spawn(move || {
                    io::copy(&mut requests, &mut server_side).ok();
                    server_side.shutdown(Shutdown::Write).ok();
                });
                let (limit, (client_side, replies)) = (Arc::clone(&limit), both());
                thread::spawn(move || forward(replies, client_side, &limit).ok());
            }
        });
        Self { accepted }
    }

    /// Connections so far, including closed ones.
    pub fn accepted(&self) -> usize {
        self.accepted.load(SeqCst)
    }
}

/// Forwards the server's bytes until one side closes or the limit is reached.
fn forward(mut from: UnixStream, mut to: UnixStream, limit: &Mutex<Option<usize>>) -> io::Result<()> {
    let (mut buffer, mut passed) = ([0; 8192], 0);
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return to.shutdown(Shutdown::Write);
        }
        passed += length;
        let mut limit = limit.lock().unwrap();
        if limit.is_some_and(|limit| passed > limit) {
            // These bytes are not forwarded: the client waits for them.
            *limit = None;
            to.shutdown(Shutdown::Both)?;
            return from.shutdown(Shutdown::Both);
        }
        drop(limit);
        to.write_all(&buffer[..length])?;
    }
}
