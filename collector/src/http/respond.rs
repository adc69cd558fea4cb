//! What a request gets: metrics, the page that leads to them, or the refusal that HTTP has for it.

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

use super::auth::Guard;
use super::snapshot::Asker;
use super::web_config::Settings;
use super::web_config::WebConfig;
use crate::exposition;
use crate::exposition::Format;

const PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>loadprint-collect</title></head>\n\
    <body><h1>loadprint-collect</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>\n";
const TEXT: &str = "text/plain; charset=utf-8";

/// What all connections have in common.
#[derive(Debug)]
pub struct Shared {
    /// TLS, users, headers.
    pub config: Mutex<WebConfig>,
    /// Who got in before.
    pub guard: Guard,
    /// Where the values come from.
    pub asker: Asker,
}

impl Shared {
    /// The settings as they are now.
    pub fn settings(&self) -> Arc<Settings> {
        self.config
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .current()
    }
}

type Answer = Response<Full<Bytes>>;

/// Answers one request; a body that comes with it is not read. `mark` is called with true when the client may have an answer and with
/// false when there is one.
///
/// # Errors
/// Never.
pub async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    mark: impl Fn(bool),
) -> Result<Answer, Infallible> {
    let settings = shared.settings();
    let mut answer = if shared
        .guard
        .admits(&settings, request.headers().get(AUTHORIZATION))
        .await
    {
        mark(true);
        let answer = route(&request, &shared).await;
        mark(false);
        answer
    } else {
        let refused = plain(StatusCode::UNAUTHORIZED, "Unauthorized\n");
        with(refused, WWW_AUTHENTICATE, HeaderValue::from_static("Basic"))
    };
    for (name, value) in &settings.headers {
        answer.headers_mut().insert(name.clone(), value.clone());
    }
    Ok(answer)
}

async fn route(request: &Request<Incoming>, shared: &Shared) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        return with(refused, ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    match request.uri().path() {
        "/metrics" => metrics(request.headers(), shared).await,
        "/" => with(
            plain(StatusCode::OK, PAGE),
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        _ => plain(StatusCode::NOT_FOUND, "there is /metrics\n"),
    }
}

async fn metrics(headers: &HeaderMap, shared: &Shared) -> Answer {
    let Some(published) = shared.asker.published().await else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the recorder is ending\n");
    };
    let accept: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let format = Format::accepted(&accept.join(","));
    let text = exposition::write(&published, format);
    let answer = Response::new(Full::new(Bytes::from(text)));
    with(
        answer,
        CONTENT_TYPE,
        HeaderValue::from_static(format.content_type()),
    )
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = status;
    with(answer, CONTENT_TYPE, HeaderValue::from_static(TEXT))
}

fn with(mut answer: Answer, name: HeaderName, value: HeaderValue) -> Answer {
    answer.headers_mut().insert(name, value);
    answer
}
