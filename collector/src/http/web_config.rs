//! TLS and passwords, from a file in the format of Prometheus's exporters (exporter-toolkit, docs/web-configuration.md).
//!
//! Keys that are not supported are errors with their line: a setting that protects nothing must not look as if it did. HTTP/2 is
//! not offered, whatever `http2` says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use hyper::header::HeaderName;
use hyper::header::HeaderValue;
use rustls::ServerConfig;
use serde::Deserialize;

use super::tls;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tls_server_config: Option<TlsSection>,
    http_server_config: HttpSection,
    basic_auth_users: BTreeMap<String, Bcrypt>,
}

/// The section `tls_server_config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSection {
    /// The server's certificates, leaf first.
    pub cert_file: Option<PathBuf>,
    /// Its key.
    pub key_file: Option<PathBuf>,
    /// What clients' certificates are signed by.
    pub client_ca_file: Option<PathBuf>,
    /// Whether clients need one.
    pub client_auth_type: ClientAuth,
    /// The oldest version that is spoken.
    pub min_version: Option<Version>,
    /// The newest one.
    pub max_version: Option<Version>,
}

/// Whether clients need a certificate. Go's other two values accept any certificate at all and are not supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ClientAuth {
    /// They do not.
    #[default]
    NoClientCert,
    /// One that is sent must be right.
    VerifyClientCertIfGiven,
    /// They do.
    RequireAndVerifyClientCert,
}

/// A version of TLS. Older ones are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Version {
    /// RFC 5246.
    #[serde(rename = "TLS12")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "TLS13")]
    Tls13,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    /// Only so that a file that other exporters share can be read.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    headers: Headers,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Headers {
    #[serde(rename = "Content-Security-Policy")]
    content_security_policy: Option<String>,
    #[serde(rename = "X-Frame-Options")]
    frame_options: Option<String>,
    #[serde(rename = "X-Content-Type-Options")]
    content_type_options: Option<String>,
    #[serde(rename = "X-XSS-Protection")]
    xss_protection: Option<String>,
    #[serde(rename = "Strict-Transport-Security")]
    strict_transport_security: Option<String>,
}

/// A hash by bcrypt, as `htpasswd -nBC 10 ""` prints it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Bcrypt(pub String);

impl TryFrom<String> for Bcrypt {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse::<bcrypt::HashParts>() {
            Ok(_) => Ok(Self(text)),
            // The hash itself does not belong into a message.
            Err(_) => Err("not a bcrypt hash; `htpasswd -nBC 10 \"\"` makes one".to_owned()),
        }
    }
}

/// What the file says, ready to be used.
#[derive(Debug, Default)]
pub struct Settings {
    /// TLS, where it is wanted.
    pub tls: Option<Arc<ServerConfig>>,
    /// True if only clients with a certificate get in.
    pub needs_certificate: bool,
    /// Users and their hashes; everybody gets in if there are none.
    pub users: BTreeMap<String, Bcrypt>,
    /// Headers of every answer.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The files that this was read from.
    files: Vec<PathBuf>,
}

impl Settings {
    /// Reads the file and what it names; paths in it are relative to it.
    ///
    /// # Errors
    /// With file and line, where the place has one.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let file: Option<File> = serde_yaml_ng::from_str(&text).map_err(|error| {
            let line = error.location().map_or(1, |place| place.line());
            anyhow::anyhow!("{}:{line}: {error}", path.display())
        })?;
        let mut settings = Self {
            files: vec![path.to_owned()],
            ..Self::default()
        };
        let Some(file) = file else { return Ok(settings) };
        if let Some(mut section) = file.tls_server_config {
            let dir = path.parent().unwrap_or(Path::new(""));
            let named = [
                &mut section.cert_file,
                &mut section.key_file,
                &mut section.client_ca_file,
            ];
            for file in named.into_iter().flatten() {
                *file = dir.join(&*file);
                settings.files.push(file.clone());
            }
            let config =
                tls::config(&section).with_context(|| format!("{}: tls_server_config", path.display()))?;
            settings.tls = Some(Arc::new(config));
            settings.needs_certificate = section.client_auth_type == ClientAuth::RequireAndVerifyClientCert;
        }
        settings.users = file.basic_auth_users;
        settings.headers = headers(file.http_server_config.headers)
            .with_context(|| format!("{}: http_server_config: headers", path.display()))?;
        Ok(settings)
    }

    /// True if nobody gets in who is not known.
    pub fn is_guarded(&self) -> bool {
        self.needs_certificate || !self.users.is_empty()
    }

    /// # Errors
    /// When `before` had TLS or let only known clients in, and this does not.
    fn refuse_less_than(self, before: &Self, path: &Path) -> anyhow::Result<Self> {
        let lost = match (before.tls.is_some(), before.is_guarded()) {
            (true, _) if self.tls.is_none() => "TLS (tls_server_config)",
            (_, true) if !self.is_guarded() => "passwords (basic_auth_users) or client certificates",
            _ => return Ok(self),
        };
        anyhow::bail!(
            "{}: no longer asks for {lost}; put it back, or restart the server to serve without it",
            path.display()
        )
    }

    fn stamps(&self) -> Vec<Option<(SystemTime, u64)>> {
        let stamp = |path: &PathBuf| {
            let meta = fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        };
        self.files.iter().map(stamp).collect()
    }
}

fn headers(section: Headers) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
    let one_of = |name: &str, value: &Option<String>, allowed: &[&str]| match value {
        Some(value) if !allowed.contains(&&*value.to_ascii_lowercase()) => {
            anyhow::bail!("{name}: `{value}` is not one of {}", allowed.join(", "))
        }
        _ => Ok(()),
    };
    one_of("X-Frame-Options", &section.frame_options, &["deny", "sameorigin"])?;
    one_of(
        "X-Content-Type-Options",
        &section.content_type_options,
        &["nosniff"],
    )?;
    let named = [
        ("content-security-policy", section.content_security_policy),
        ("x-frame-options", section.frame_options),
        ("x-content-type-options", section.content_type_options),
        ("x-xss-protection", section.xss_protection),
        ("strict-transport-security", section.strict_transport_security),
    ];
    let given = named
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    given
        .map(|(name, value)| {
            let value = HeaderValue::from_str(&value).with_context(|| name.to_owned())?;
            Ok((HeaderName::from_static(name), value))
        })
        .collect()
}

/// The settings as they are now: the file is read again when it, or a file that it names, has changed.
#[derive(Debug)]
pub struct WebConfig {
    path: Option<PathBuf>,
    stamps: Vec<Option<(SystemTime, u64)>>,
    settings: Arc<Settings>,
}

impl WebConfig {
    /// Reads the file; without one there is neither TLS nor a password.
    ///
    /// # Errors
    /// As [`Settings::read`].
    pub fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let settings = path.map(Settings::read).transpose()?.unwrap_or_default();
        Ok(Self {
            path: path.map(Path::to_owned),
            stamps: settings.stamps(),
            settings: Arc::new(settings),
        })
    }

    /// True if it sets up TLS.
    pub fn has_tls(&self) -> bool {
        self.settings.tls.is_some()
    }

    /// The settings of the newest file that could be used. One that cannot be read, or that takes away the protection which the
    /// server was started with, changes nothing: a file that is being written is empty for a moment.
    pub fn current(&mut self) -> Arc<Settings> {
        let stamps = self.settings.stamps();
        if let Some(path) = &self.path
            && stamps != self.stamps
        {
            self.stamps = stamps;
            match Settings::read(path).and_then(|settings| settings.refuse_less_than(&self.settings, path)) {
                Ok(settings) => {
                    self.stamps = settings.stamps();
                    self.settings = Arc::new(settings);
                }
                Err(error) => {
                    eprintln!("loadprint-collect: {error:#}; the settings from before stay in force");
                }
            }
        }
        Arc::clone(&self.settings)
    }
}
