//! Options about the endpoints that the recorder scrapes.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use loadprint_probes::scrape::target::Credentials;
use loadprint_probes::scrape::target::Scrapes;
use loadprint_probes::scrape::target::Target;

const LONGEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The endpoints to scrape.
#[derive(Debug, Args)]
pub struct ScrapeOptions {
    /// Record a Prometheus or OpenMetrics endpoint under a name, such as
    /// node=http://127.0.0.1:9100/metrics; may be repeated.
    #[arg(long = "scrape", value_name = "NAME=URL")]
    pub targets: Vec<Target>,
    /// Log in to the endpoint of this name: FILE (mode 0600) holds `basic USER:PASSWORD` or `bearer
    /// TOKEN`; may be repeated.
    #[arg(long = "scrape-auth", value_name = "NAME=FILE", value_parser = parse_auth)]
    pub credentials: Vec<(String, Credentials)>,
    /// Timeout of a scrape [default: the interval, at most 10s].
    #[arg(long, value_name = "T", value_parser = parse_timeout)]
    pub scrape_timeout: Option<Duration>,
    /// Largest response, uncompressed, in bytes, KiB or MiB.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = parse_limit)]
    pub scrape_limit: u64,
    /// Trust these certificates (PEM) for https, instead of Mozilla's list.
    #[arg(long, value_name = "FILE", conflicts_with = "scrape_insecure")]
    pub scrape_ca: Option<PathBuf>,
    /// Trust any certificate for https.
    #[arg(long)]
    pub scrape_insecure: bool,
}

impl ScrapeOptions {
    /// The options of the scrape probe at ticks every `interval`.
    ///
    /// # Errors
    /// When two endpoints have the same name, or a password is for an unknown endpoint.
    pub fn scrapes(&self, interval: Duration) -> anyhow::Result<Scrapes> {
        let mut targets: Vec<Target> = vec![];
        for target in &self.targets {
            if targets.iter().any(|known| known.name == target.name) {
                anyhow::bail!(
                    "two endpoints are named `{}`; give each --scrape a different name",
                    target.name
                );
            }
            targets.push(target.clone());
        }
        for (name, credentials) in &self.credentials {
            let Some(target) = targets.iter_mut().find(|target| target.name == *name) else {
                anyhow::bail!("--scrape-auth {name}=…: unknown endpoint `{name}`; add --scrape {name}=URL");
            };
            target.credentials = Some(credentials.clone());
        }
        Ok(Scrapes {
            targets,
            timeout: self.scrape_timeout.unwrap_or(interval.min(LONGEST_TIMEOUT)),
            limit: self.scrape_limit,
            authorities: self.scrape_ca.clone(),
            insecure: self.scrape_insecure,
        })
    }
}

fn parse_auth(text: &str) -> Result<(String, Credentials), String> {
    let (name, file) = text
        .split_once('=')
        .filter(|(name, file)| !name.is_empty() && !file.is_empty())
        .ok_or("not of the form NAME=FILE")?;
    Ok((name.to_owned(), Credentials::read(Path::new(file))?))
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let timeout = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if timeout.is_zero() {
        return Err("the timeout must be greater than 0".to_owned());
    }
    Ok(timeout)
}

fn parse_limit(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size such as 1000000, 512KiB or 16MiB");
    let (digits, shift) = match (text.strip_suffix("KiB"), text.strip_suffix("MiB")) {
        (Some(digits), _) => (digits, 10),
        (_, Some(digits)) => (digits, 20),
        _ => (text, 0),
    };
    let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
    // A response is held in memory.
    match number.checked_shl(shift).filter(|bytes| bytes >> shift == number) {
        Some(bytes) if (1..=1 << 30).contains(&bytes) => Ok(bytes),
        _ => Err(format!("`{text}`: the limit must be between 1 byte and 1024MiB")),
    }
}
