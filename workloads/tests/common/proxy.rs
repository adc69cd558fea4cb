//! A unix socket in front of the server's that can be cut: for the client, the server is then gone.

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

/// How many bytes of answers the first connection that gets so many may have; it ends in the middle of them. Shared by all.
type Limit = Arc<Mutex<Option<usize>>>;

impl Proxy {
    /// Listens at `front` and forwards to `back`.
    pub fn start(front: &Path, back: &str) -> Self {
        Self::start_with(front, back, None)
    }

    /// As [`Proxy::start`]; the first connection that is answered with more than `bytes` is cut in the middle of an answer.
    /// That comes at a place of the work and not at a time, so that it comes on every machine.
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
                // Known before its first byte comes through: whoever has been answered is counted and can be cut.
                kept.lock().unwrap().extend(<[_; 2]>::from(both()));
                let (mut questions, mut asked) = both();
                thread::spawn(move || {
                    io::copy(&mut questions, &mut asked).ok();
                    asked.shutdown(Shutdown::Write).ok();
                });
                let (limit, (told, answers)) = (Arc::clone(&limit), both());
                thread::spawn(move || answer(answers, told, &limit).ok());
            }
        });
        Self { streams }
    }

    /// Connections that came, also those that ended.
    pub fn accepted(&self) -> usize {
        self.streams.lock().unwrap().len() / 2
    }

    /// Ends every connection.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().iter() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

/// Hands the server's bytes on until one of the two ends, or the limit is reached.
fn answer(mut from: UnixStream, mut to: UnixStream, limit: &Limit) -> io::Result<()> {
    let (mut buffer, mut passed) = ([0; 8192], 0);
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return to.shutdown(Shutdown::Write);
        }
        passed += length;
        let mut limit = limit.lock().unwrap();
        if limit.is_some_and(|limit| passed > limit) {
            // These bytes are not handed on: the client is waiting for them.
            *limit = None;
            to.shutdown(Shutdown::Both)?;
            return from.shutdown(Shutdown::Both);
        }
        drop(limit);
        to.write_all(&buffer[..length])?;
    }
}
