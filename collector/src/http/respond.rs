//! Answers one HTTP request: metrics, a page with a link to them, or an HTTP error.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use bytes::Bytes;
use http_body_util::Full;
use hyper::HeaderMap;
use hyper::Method;
use hyper::Request;
use hyper::Response;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::header::ALLOW;
use hyper::header::AUTHORIZATION;
use hyper::header::CONTENT_TYPE;
use hyper::header::HeaderName;
use hyper::header::HeaderValue;
use hyper::header::WWW_AUTHENTICATE;

use super::auth::Authenticator;
use super::snapshot::SnapshotRequester;
use super::web_config::Settings;
use super::web_config::WebConfig;
use crate::exposition;
use crate::exposition::Format;

const PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>loadprint-collect</title></head>\n\
    <body><h1>loadprint-collect</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>\n";
const TEXT: &str = "text/plain; charset=utf-8";

/// State of all connections.
#[derive(Debug)]
pub struct Shared {
    /// TLS, users, headers.
    pub config: Mutex<WebConfig>,
    /// Checks passwords.
    pub authenticator: Authenticator,
    /// The source of values.
    pub requester: SnapshotRequester,
}

impl Shared {
    /// The current settings.
    pub fn settings(&self) -> Arc<Settings> {
        self.config
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .current()
    }
}

type Reply = Response<Full<Bytes>>;

/// Answers one request without reading its body. Calls `mark` with true once the client is
/// authorized and with false when the reply is complete.
///
/// # Errors
/// Never.
pub async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    mark: impl Fn(bool),
) -> Result<Reply, Infallible> {
    let settings = shared.settings();
    let mut reply = if shared
        .authenticator
        .accepts(&settings, request.headers().get(AUTHORIZATION))
        .await
    {
        mark(true);
        let reply = route(&request, &shared).await;
        mark(false);
        reply
    } else {
        let refused = plain(StatusCode::UNAUTHORIZED, "Unauthorized\n");
        with(refused, WWW_AUTHENTICATE, HeaderValue::from_static("Basic"))
    };
    for (name, value) in &settings.headers {
        reply.headers_mut().insert(name.clone(), value.clone());
    }
    Ok(reply)
}

async fn route(request: &Request<Incoming>, shared: &Shared) -> Reply {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let refused = plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are supported\n",
        );
        return with(refused, ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    match request.uri().path() {
        "/metrics" => metrics(request.headers(), shared).await,
        "/" => with(
            plain(StatusCode::OK, PAGE),
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        _ => plain(StatusCode::NOT_FOUND, "not found; the metrics are at /metrics\n"),
    }
}

async fn metrics(headers: &HeaderMap, shared: &Shared) -> Reply {
    let Some(snapshot) = shared.requester.snapshot().await else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the recorder is stopping\n");
    };
    let accept: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let format = Format::accepted(&accept.join(","));
    let text = exposition::write(&snapshot, format);
    let reply = Response::new(Full::new(Bytes::from(text)));
    with(
        reply,
        CONTENT_TYPE,
        HeaderValue::from_static(format.content_type()),
    )
}

fn plain(status: StatusCode, text: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *reply.status_mut() = status;
    with(reply, CONTENT_TYPE, HeaderValue::from_static(TEXT))
}

fn with(mut reply: Reply, name: HeaderName, value: HeaderValue) -> Reply {
    reply.headers_mut().insert(name, value);
    reply
}
