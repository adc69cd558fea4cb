//! Serves `/metrics` over HTTP or HTTPS from one dedicated thread. Limits on sizes, times and
//! connections bound the cost of any client.

mod auth;
mod connections;
mod respond;
mod snapshot;
mod tls;
mod web_config;
mod web_config_file;

use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::sleep;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use connections::Connections;
use respond::Shared;
use respond::respond;
use snapshot::SnapshotRequester;
pub use snapshot::SnapshotResponder;
use web_config::WebConfig;

/// Timeout of a request's head, and of an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a TLS handshake, and of sent data that the client does not acknowledge.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);
/// Limits on a request's head.
const MAX_HEAD_BYTES: usize = 8192;
const MAX_HEADERS: usize = 64;

/// Listening sockets whose connections are not accepted yet.
#[derive(Debug)]
pub struct Listening {
    listeners: Vec<TcpListener>,
    config: WebConfig,
}

impl Listening {
    /// Binds every address; warns about those that other machines can reach unprotected.
    ///
    /// # Errors
    /// When an address is in use, or the configuration file cannot be used.
    pub fn bind(addresses: &[SocketAddr], config: Option<&Path>) -> anyhow::Result<Self> {
        let mut config = WebConfig::open(config)?;
        let settings = config.current();
        let bind = |address: &SocketAddr| {
            let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => {
                    anyhow::anyhow!("{address}: address already in use; choose another --listen")
                }
                _ => anyhow::anyhow!("{address}: cannot listen: {error}; choose another --listen"),
            })?;
            listener
                .set_nonblocking(true)
                .with_context(|| address.to_string())?;
            if !address.ip().is_loopback() && (settings.tls.is_none() || !settings.needs_credentials()) {
                eprintln!(
                    "loadprint-collect: warning: other machines can read the metrics at {address}, {}; protect them with --web-config-file",
                    match (settings.tls.is_none(), settings.needs_credentials()) {
                        (true, false) => "without TLS and without a password",
                        (true, true) => "and passwords cross the network in plain text, without TLS",
                        (false, _) => "without a password",
                    }
                );
            }
            Ok(listener)
        };
        let listeners = addresses.iter().map(bind).collect::<anyhow::Result<_>>()?;
        Ok(Self { listeners, config })
    }

    /// Starts the server; the caller answers its requests for snapshots.
    ///
    /// # Errors
    /// When the process cannot have another thread or descriptor.
    pub fn start(self) -> anyhow::Result<(Server, SnapshotResponder)> {
        let (requester, responder) = snapshot::channel().context("cannot start the server of /metrics")?;
        let (end, ended) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        for listener in &self.listeners {
            if let Ok(address) = listener.local_addr() {
                let scheme = if self.config.has_tls() { "https" } else { "http" };
                eprintln!("loadprint-collect: serving {scheme}://{address}/metrics");
            }
        }
        let work = move || {
            runtime.block_on(serve(self, requester, ended));
            // Without waiting for a password check in progress.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(work)?;
        let server = Server {
            end: Some(end),
            thread: Some(thread),
        };
        Ok((server, responder))
    }
}

/// A running server, which dropping stops.
#[derive(Debug)]
pub struct Server {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is on stderr already; the recording continues.
            drop(thread.join());
        }
    }
}

async fn serve(listening: Listening, requester: SnapshotRequester, ended: oneshot::Receiver<()>) {
    let shared = Arc::new(Shared {
        config: Mutex::new(listening.config),
        authenticator: Default::default(),
        requester,
    });
    let connections = Arc::new(Connections::default());
    for listener in listening.listeners {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => {
                tokio::spawn(accept(listener, Arc::clone(&shared), Arc::clone(&connections)));
            }
            Err(error) => eprintln!("loadprint-collect: cannot serve /metrics: {error}"),
        }
    }
    // Returns an error when `Server` drops the sender.
    drop(ended.await);
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>, connections: Arc<Connections>) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let entry = Entry {
                    connections: Arc::clone(&connections),
                    number: connections.next_number(),
                };
                let number = entry.number;
                let task = tokio::spawn(connection(stream, Arc::clone(&shared), entry));
                connections.add(number, client.ip(), task.abort_handle());
                // The connection reads a request that is there already before the next one may
                // displace it.
                yield_now().await;
            }
            // Usually out of descriptors: wait until other connections close.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The entry of a connection in `Connections`; dropping it removes the entry.
struct Entry {
    connections: Arc<Connections>,
    number: u64,
}

impl Entry {
    fn mark(&self, is_busy: bool) {
        self.connections.mark(self.number, is_busy);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.remove(self.number);
    }
}

/// Serves one client until it disconnects or a timeout passes. Errors here concern the client alone
/// and are not reported.
async fn connection(stream: TcpStream, shared: Arc<Shared>, entry: Entry) {
    // The kernel closes a connection whose client does not acknowledge sent data (tcp(7)).
    let limit = u32::try_from(PEER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    if set_tcp_user_timeout(&stream, limit).is_err() || stream.set_nodelay(true).is_err() {
        return;
    }
    match &shared.settings().tls {
        None => http(stream, shared, &entry).await,
        Some(tls) => {
            let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
            if let Ok(Ok(stream)) = timeout(PEER_TIMEOUT, handshake).await {
                http(stream, shared, &entry).await;
            }
        }
    }
}

async fn http(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>, entry: &Entry) {
    let service = service_fn(move |request| respond(request, Arc::clone(&shared), |busy| entry.mark(busy)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    drop(served);
}
