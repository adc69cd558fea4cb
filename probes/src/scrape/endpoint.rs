//! Scrapes one endpoint: sends a GET and parses the response into rows. If it fails, `up` is 0 with
//! the reason, as in Prometheus.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use loadprint_recording::clock::monotonic_ns;
use loadprint_recording::clock::realtime_ns;
use loadprint_recording::schema::Shape;
use ureq::Agent;
use ureq::Body;
use ureq::http::Response;
use ureq::http::Uri;
use ureq::http::header::ACCEPT;
use ureq::http::header::AUTHORIZATION;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::header::LOCATION;
use ureq::tls::Certificate;
use ureq::tls::PemItem;
use ureq::tls::RootCerts;
use ureq::tls::TlsConfig;

use super::exposition::Format;
use super::exposition::Item;
use super::exposition::parse;
use super::target::Scrapes;
use super::target::Target;
use crate::prelude::*;

/// The Accept header of Prometheus 3.
const FORMATS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
application/openmetrics-text;version=0.0.1;q=0.4,\
text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
/// Limit on redirects of one scrape.
const MAX_REDIRECTS: usize = 5;
/// Characters of an address that a message shows.
const MAX_SHOWN: usize = 200;
const PROGRAM: &str = concat!("loadprint-collect/", env!("CARGO_PKG_VERSION"));

/// The HTTP client that all endpoints of a recorder share.
///
/// # Errors
/// When the certificates cannot be read; the text names the file.
pub fn client(scrapes: &Scrapes) -> Result<Agent, String> {
    let mut tls = TlsConfig::builder().disable_verification(scrapes.insecure);
    if let Some(path) = &scrapes.authorities {
        tls = tls.root_certs(RootCerts::Specific(Arc::new(certificates(path)?)));
    }
    let config = Agent::config_builder()
        .timeout_global(Some(scrapes.timeout))
        .http_status_as_error(false)
        // Followed by `Endpoint::request`, within the origin of the endpoint.
        .max_redirects(0)
        .user_agent(PROGRAM)
        .tls_config(tls.build())
        // Endpoints are local; a proxy of the environment is for other hosts.
        .proxy(None)
        .build();
    Ok(config.into())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let file = path.display();
    let text = fs::read(path).map_err(|error| format!("{file}: {error}"))?;
    let mut certificates = vec![];
    for item in ureq::tls::parse_pem(&text) {
        let item = item.map_err(|error| format!("{file}: {error}; the file must be in PEM format"))?;
        if let PemItem::Certificate(certificate) = item {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(format!("{file}: no certificate in PEM format"));
    }
    Ok(certificates)
}

/// One endpoint and its state between scrapes.
#[derive(Debug)]
pub struct Endpoint {
    target: Target,
    client: Agent,
    timeout: Duration,
    limit: u64,
    body: Vec<u8>,
    descriptions: RecordedDescriptions,
}

impl Endpoint {
    /// An endpoint that is read with `client`.
    #[must_use]
    pub fn new(target: Target, client: Agent, scrapes: &Scrapes) -> Self {
        Self {
            target,
            client,
            timeout: scrapes.timeout,
            limit: scrapes.limit,
            body: vec![],
            descriptions: RecordedDescriptions::default(),
        }
    }

    /// Scrapes once. An endpoint that does not answer has rows too: `up` and `scrape_*`.
    pub fn read(&mut self, rows: &mut Rows) {
        let (realtime_ns, start_ns) = (realtime_ns(), monotonic_ns());
        let format = self.fetch();
        let seconds = (monotonic_ns() - start_ns) as f64 / 1e9;
        let scraped = format.and_then(|format| self.check(format));
        let (up, samples, reason) = match &scraped {
            Ok((_, samples)) => (1.0, *samples, None),
            Err(reason) => (0.0, 0, Some(reason.as_str())),
        };
        let name = self.target.name.as_str();
        for (metric, value, text) in [
            ("up", up, reason),
            ("scrape_duration_seconds", seconds, None),
            ("scrape_samples_scraped", samples as f64, None),
        ] {
            sample(rows, [name, metric], value, Some(realtime_ns), text);
        }
        let descriptions = &mut self.descriptions;
        // The query can contain a secret.
        let url = self.target.url.split('?').next().unwrap_or_default();
        descriptions.description(rows, name, "# URL", url);
        if let Ok((format, _)) = scraped {
            // The check above found no malformed line.
            drop(parse(&self.body, format, &mut |item| {
                descriptions.item(rows, name, item)
            }));
        }
    }

    /// Parses the response without storing it: a single malformed line makes all of it invalid.
    fn check(&self, format: Format) -> Result<(Format, u64), String> {
        parse(&self.body, format, &mut |_: Item<'_>| {})
            .map(|samples| (format, samples))
            .map_err(|error| format!("line {}: {}: {}", error.line, error.item, error.message))
    }

    /// Why a request failed.
    fn why(&self, error: &ureq::Error) -> String {
        match error {
            ureq::Error::Timeout(_) => {
                format!("no complete response within {} s", self.timeout.as_secs_f64())
            }
            // Without the words that ureq puts before it.
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        }
    }

    /// Sends the request, and again to the places that responses redirect to. Only the origin of the
    /// endpoint gets one: the recorder runs as root, and an endpoint must not choose what it reads,
    /// such as the metadata service of a cloud.
    fn request(&self) -> Result<Response<Body>, String> {
        let start = Instant::now();
        let mut url: Uri = self.target.url.parse().map_err(|error| format!("{error}"))?;
        for _ in 0..=MAX_REDIRECTS {
            let rest = self.timeout.saturating_sub(start.elapsed());
            let mut request = self
                .client
                .get(&url)
                .header(ACCEPT, FORMATS)
                .header(
                    "X-Prometheus-Scrape-Timeout-Seconds",
                    self.timeout.as_secs_f64().to_string(),
                )
                .config()
                .timeout_global(Some(rest))
                .build();
            if let Some(credentials) = &self.target.credentials {
                request = request.header(AUTHORIZATION, credentials.header());
            }
            let answer = request.call().map_err(|error| self.why(&error))?;
            let Some(place) = answer
                .headers()
                .get(LOCATION)
                .filter(|_| answer.status().is_redirection())
            else {
                return Ok(answer);
            };
            let place = String::from_utf8_lossy(place.as_bytes()).into_owned();
            url = within_origin(&url, &place).ok_or_else(|| {
                let shown: String = place.chars().take(MAX_SHOWN).collect();
                format!("it redirects to another origin, {shown:?}; if this is right, scrape that URL")
            })?;
        }
        Err(format!("more than {MAX_REDIRECTS} redirects"))
    }

    /// Fills `self.body`.
    fn fetch(&mut self) -> Result<Format, String> {
        let answer = self.request()?;
        let status = answer.status();
        if !status.is_success() {
            return Err(format!("the server returned HTTP status {status}"));
        }
        let kind = answer
            .headers()
            .get(CONTENT_TYPE)
            .map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        let format = format_of(kind.as_deref())?;
        self.body.clear();
        let mut reader = answer.into_body().into_reader().take(self.limit + 1);
        reader
            .read_to_end(&mut self.body)
            .map_err(|error| self.why(&error.into()))?;
        if self.body.len() as u64 > self.limit {
            self.body = vec![];
            return Err(format!(
                "the response has more than {} bytes; raise the limit with --scrape-limit",
                self.limit
            ));
        }
        Ok(format)
    }
}

/// The URL of a header `Location` (RFC 9110, section 10.2.2); None if it has another scheme, host or
/// port than `url`, or a path that is relative to that of `url`.
fn within_origin(url: &Uri, place: &str) -> Option<Uri> {
    let port = |uri: &Uri| {
        uri.port_u16()
            .or_else(|| Some(if uri.scheme_str()? == "https" { 443 } else { 80 }))
    };
    let (scheme, authority) = (url.scheme_str()?, url.authority()?);
    if place.starts_with('/') && !place.starts_with("//") {
        return format!("{scheme}://{authority}{place}").parse().ok();
    }
    let other: Uri = place.parse().ok()?;
    let is_same = other.scheme() == url.scheme()
        && other.host()?.eq_ignore_ascii_case(url.host()?)
        && port(&other) == port(url)
        && !other.authority()?.as_str().contains('@');
    is_same.then_some(other)
}

/// The format of a response. Without a content type it is the text format.
fn format_of(kind: Option<&str>) -> Result<Format, String> {
    let kind = kind.unwrap_or("text/plain");
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("text/plain") {
        Ok(Format::Text)
    } else if essence.eq_ignore_ascii_case("application/openmetrics-text") {
        Ok(Format::OpenMetrics)
    } else {
        Err(format!(
            "content type {essence:?} is not a text format of metrics; check the path (/metrics)"
        ))
    }
}

static ENTITY: &[Text] = &[text("endpoint"), text("metric")];

/// Each endpoint has its own set of metrics.
pub static SCHEMA: Schema = {
    let mut schema = Schema::table(ENTITY, COLUMNS);
    schema.shape = Shape::Metrics;
    schema
};

static COLUMNS: &[Column] = columns! {
    gauge(One) "value", "as exposed; null in rows of descriptions", "exposition", stored(Type::Double);
    gauge(Nanosecond) "timestamp_ns",
        "timestamp that the endpoint exposes, CLOCK_REALTIME; of up and scrape_* the start of the scrape",
        "exposition", stored(Type::Int64);
    info "text",
        "text of # HELP, # TYPE, # UNIT and # URL; of up the reason for 0; otherwise the exemplar",
        "exposition";
};

/// Appends a row with a value.
fn sample(rows: &mut Rows, entity: [&str; 2], value: f64, timestamp_ns: Option<i64>, text: Option<&str>) {
    rows.row(&entity.map(str::as_bytes));
    rows.double(value);
    match timestamp_ns {
        Some(timestamp_ns) => rows.int(timestamp_ns),
        None => rows.null(),
    }
    match text {
        Some(text) => rows.text(text.as_bytes()),
        None => rows.null(),
    }
}

/// The descriptions that were recorded: a description has a row only when it is new or has changed.
#[derive(Debug, Default)]
struct RecordedDescriptions(HashMap<String, String>);

impl RecordedDescriptions {
    /// Appends the row of a sample, or of a new description.
    fn item(&mut self, rows: &mut Rows, endpoint: &str, item: Item<'_>) {
        match item {
            Item::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => sample(rows, [endpoint, series], value, timestamp_ns, exemplar),
            Item::Description { keyword, name, text } => {
                self.description(rows, endpoint, &format!("# {keyword} {name}"), text);
            }
        }
    }

    /// Appends the row of a description, if `text` is new.
    fn description(&mut self, rows: &mut Rows, endpoint: &str, key: &str, text: &str) {
        if self.0.get(key).is_some_and(|before| before == text) {
            return;
        }
        rows.row(&[endpoint.as_bytes(), key.as_bytes()]);
        rows.nulls(2);
        rows.text(text.as_bytes());
        self.0.insert(key.to_owned(), text.to_owned());
    }
}
