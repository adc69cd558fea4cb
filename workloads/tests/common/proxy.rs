//! A unix socket in front of the server's that can be cut: for the client, the server is then gone.

use std::io;
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

impl Proxy {
    /// Listens at `front` and forwards to `back`.
    pub fn start(front: &Path, back: &str) -> Self {
        let listener = UnixListener::bind(front).unwrap();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (kept, back) = (Arc::clone(&streams), back.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&back).unwrap();
                let pump = |from: &UnixStream, to: &UnixStream| {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || io::copy(&mut from, &mut to).ok());
                };
                pump(&client, &server);
                pump(&server, &client);
                kept.lock().unwrap().extend([client, server]);
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
