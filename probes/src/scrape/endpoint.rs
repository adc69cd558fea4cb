//! Scrapes one endpoint: sends a GET and parses the response into rows. If it fails, `up` is 0 with
//! the reason, as in Prometheus.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loadprint_recording::clock::monotonic_ns;
use loadprint_recording::clock::realtime_ns;
use loadprint_recording::rows::Rows;
use ureq::Agent;
use ureq::http::header::ACCEPT;
use ureq::http::header::AUTHORIZATION;
use ureq::http::header::CONTENT_TYPE;
use ureq::tls::Certificate;
use ureq::tls::PemItem;
use ureq::tls::RootCerts;
use ureq::tls::TlsConfig;

use super::exposition::Format;
use super::exposition::Item;
use super::exposition::parse;
use super::rows::RecordedDescriptions;
use super::target::Scrapes;
use super::target::Target;

/// The Accept header of Prometheus 3.
const FORMATS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
application/openmetrics-text;version=0.0.1;q=0.4,\
text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
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
        let Self {
            target,
            body,
            descriptions,
            ..
        } = self;
        let name = target.name.as_bytes();
        let (up, samples, reason) = match &scraped {
            Ok((_, samples)) => (1.0, *samples, None),
            Err(reason) => (0.0, 0, Some(reason.as_str())),
        };
        descriptions.synthetic(rows, name, b"up", up, realtime_ns, reason);
        descriptions.synthetic(rows, name, b"scrape_duration_seconds", seconds, realtime_ns, None);
        descriptions.synthetic(
            rows,
            name,
            b"scrape_samples_scraped",
            samples as f64,
            realtime_ns,
            None,
        );
        descriptions.url(rows, name, &target.url);
        if let Ok((format, _)) = scraped {
            // The check above found no malformed line.
            drop(parse(body, format, &mut |item| {
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

    /// Fills `self.body`.
    fn fetch(&mut self) -> Result<Format, String> {
        let seconds = self.timeout.as_secs_f64();
        let mut request = self
            .client
            .get(&self.target.url)
            .header(ACCEPT, FORMATS)
            .header("X-Prometheus-Scrape-Timeout-Seconds", seconds.to_string());
        if let Some(credentials) = &self.target.credentials {
            request = request.header(AUTHORIZATION, credentials.header());
        }
        let why = |error: ureq::Error| match error {
            ureq::Error::Timeout(_) => format!("no complete response within {seconds} s"),
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        };
        let answer = request.call().map_err(why)?;
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
            .map_err(|error| why(error.into()))?;
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
