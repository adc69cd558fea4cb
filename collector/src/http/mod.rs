//! The server of `/metrics`: one thread of its own, beside the ticks. Limits keep what anybody sends from costing more than that.

mod auth;
mod connections;
mod respond;
mod snapshot;
mod tls;
mod web_config;

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

use connections::Slots;
use respond::Shared;
use respond::answer;
use snapshot::Asker;
pub use snapshot::Desk;
use web_config::WebConfig;

/// A request's head must have come in this time, which is also how long an idle connection is kept.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A handshake must have ended in this time, and what is sent be taken.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);
/// A request's head may have so many bytes, and so many headers.
const HEAD_BYTES: usize = 8192;
const HEADERS: usize = 64;

/// Listens, and does not answer yet.
#[derive(Debug)]
pub struct Listening {
    listeners: Vec<TcpListener>,
    config: WebConfig,
}

impl Listening {
    /// Binds every address; says so where strangers could connect.
    ///
    /// # Errors
    /// When an address is taken, or the configuration file cannot be used.
    pub fn bind(addresses: &[SocketAddr], config: Option<&Path>) -> anyhow::Result<Self> {
        let mut config = WebConfig::open(config)?;
        let settings = config.current();
        let bind = |address: &SocketAddr| {
            let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => {
                    anyhow::anyhow!("{address}: something listens there already; name another --listen")
                }
                _ => anyhow::anyhow!("{address}: cannot listen: {error}; name another --listen"),
            })?;
            listener
                .set_nonblocking(true)
                .with_context(|| address.to_string())?;
            if !address.ip().is_loopback() && (settings.tls.is_none() || !settings.is_guarded()) {
                eprintln!(
                    "loadprint-collect: warning: other machines may read the metrics at {address}, {}; --web-config-file sets both",
                    match (settings.tls.is_none(), settings.is_guarded()) {
                        (true, false) => "without TLS and without a password",
                        (true, true) => "and passwords go over the network as they are, without TLS",
                        (false, _) => "without a password",
                    }
                );
            }
            Ok(listener)
        };
        let listeners = addresses.iter().map(bind).collect::<anyhow::Result<_>>()?;
        Ok(Self { listeners, config })
    }

    /// Starts to answer; the other side of it is the desk.
    ///
    /// # Errors
    /// When there can be no further thread or descriptor.
    pub fn start(self) -> anyhow::Result<(Server, Desk)> {
        let (asker, desk) = snapshot::sides().context("cannot start the server of /metrics")?;
        let (end, ended) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        for listener in &self.listeners {
            if let Ok(address) = listener.local_addr() {
                let scheme = if self.config.has_tls() { "https" } else { "http" };
                eprintln!("loadprint-collect: serving {scheme}://{address}/metrics");
            }
        }
        let work = move || {
            runtime.block_on(serve(self, asker, ended));
            // A password that is being checked is not waited for.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(work)?;
        let server = Server {
            end: Some(end),
            thread: Some(thread),
        };
        Ok((server, desk))
    }
}

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server is printed by then, and the recording goes on.
            drop(thread.join());
        }
    }
}

async fn serve(listening: Listening, asker: Asker, ended: oneshot::Receiver<()>) {
    let shared = Arc::new(Shared {
        config: Mutex::new(listening.config),
        guard: Default::default(),
        asker,
    });
    let slots = Arc::new(Slots::default());
    for listener in listening.listeners {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => {
                tokio::spawn(accept(listener, Arc::clone(&shared), Arc::clone(&slots)));
            }
            Err(error) => eprintln!("loadprint-collect: cannot serve /metrics: {error}"),
        }
    }
    // It ends with an error when the sender is dropped, which is how it is told.
    drop(ended.await);
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>, slots: Arc<Slots>) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let place = Place {
                    slots: Arc::clone(&slots),
                    number: slots.next(),
                };
                let number = place.number;
                let task = tokio::spawn(connection(stream, Arc::clone(&shared), place));
                slots.add(number, client.ip(), task.abort_handle());
                // What has come with it is read before the next one may take its place.
                yield_now().await;
            }
            // Out of descriptors, mostly: others must end first.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The place of a connection among the open ones, until it ends.
struct Place {
    slots: Arc<Slots>,
    number: u64,
}

impl Place {
    fn mark(&self, is_busy: bool) {
        self.slots.mark(self.number, is_busy);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.slots.remove(self.number);
    }
}

/// One client, until it or its patience ends. What goes wrong here is the client's to see.
async fn connection(stream: TcpStream, shared: Arc<Shared>, place: Place) {
    // The kernel ends a connection whose client does not take what was sent (tcp(7)).
    let limit = u32::try_from(PEER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    if set_tcp_user_timeout(&stream, limit).is_err() || stream.set_nodelay(true).is_err() {
        return;
    }
    match &shared.settings().tls {
        None => http(stream, shared, &place).await,
        Some(tls) => {
            let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
            if let Ok(Ok(stream)) = timeout(PEER_TIMEOUT, handshake).await {
                http(stream, shared, &place).await;
            }
        }
    }
}

async fn http(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>, place: &Place) {
    let service = service_fn(move |request| answer(request, Arc::clone(&shared), |busy| place.mark(busy)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    drop(served);
}
