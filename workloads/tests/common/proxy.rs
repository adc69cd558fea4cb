//! A proxy on a unix socket in front of the server's that can close all its connections, as a
//! server that dies does.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;

/// Forwards every connection to the real socket.
pub struct Proxy {
    streams: Arc<Mutex<Vec<UnixStream>>>,
}

/// Bytes of replies after which a connection is closed, in the middle of a reply. Applies to the
/// first connection that reaches it; shared by all.
type Limit = Arc<Mutex<Option<usize>>>;

impl Proxy {
    /// Listens at `front` and forwards to `back`.
    pub fn start(front: &Path, back: &str) -> Self {
        Self::start_with(front, back, None)
    }

    /// As [`Proxy::start`]; closes the first connection with more than `bytes` of replies in the
    /// middle of a reply. The same amount of work leads to it on every machine, unlike a time.
    pub fn cutting_after(front: &Path, back: &str, bytes: usize) -> Self {
        Self::start_with(front, back, Some(bytes))
    }

    fn start_with(front: &Path, back: &str, limit: Option<usize>) -> Self {
        let limit: Limit = Arc::new(Mutex::new(limit));
        let listener = UnixListener::bind(front).unwrap();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (kept, back) = (Arc::clone(&streams), back.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&back).unwrap();
                let both = || (client.try_clone().unwrap(), server.try_clone().unwrap());
                // Before the first byte is forwarded: a client that has a reply is counted and can
                // be cut.
                kept.lock().unwrap().extend(<[_; 2]>::from(both()));
                let (mut requests, mut server_side) = both();
                thread::spawn(move || {
                    io::copy(&mut requests, &mut server_side).ok();
                    server_side.shutdown(Shutdown::Write).ok();
                });
                let (limit, (client_side, replies)) = (Arc::clone(&limit), both());
                thread::spawn(move || forward(replies, client_side, &limit).ok());
            }
        });
        Self { streams }
    }

    /// Connections so far, including closed ones.
    pub fn accepted(&self) -> usize {
        self.streams.lock().unwrap().len() / 2
    }

    /// Closes every connection.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().iter() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

/// Forwards the server's bytes until one side closes or the limit is reached.
fn forward(mut from: UnixStream, mut to: UnixStream, limit: &Limit) -> io::Result<()> {
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
