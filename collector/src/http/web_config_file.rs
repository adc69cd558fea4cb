//! The configuration file of the Prometheus exporters, as serde reads it (exporter-toolkit,
//! docs/web-configuration.md).
//!
//! Unsupported keys are errors with their line: a setting without effect must not look like
//! protection.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// The section `tls_server_config`.
    pub tls_server_config: Option<TlsSection>,
    /// The section `http_server_config`.
    pub http_server_config: HttpSection,
    /// Users and the hashes of their passwords.
    pub basic_auth_users: BTreeMap<String, Bcrypt>,
}

/// The section `tls_server_config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSection {
    /// The server's certificates, leaf first.
    pub cert_file: Option<PathBuf>,
    /// Its key.
    pub key_file: Option<PathBuf>,
    /// Certificates of the CAs of client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// Whether clients need a certificate.
    pub client_auth_type: ClientAuth,
    /// The oldest accepted version.
    pub min_version: Option<Version>,
    /// The newest accepted version.
    pub max_version: Option<Version>,
}

/// Whether clients need a certificate. Go's other two values accept any certificate and are not
/// supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ClientAuth {
    /// No.
    #[default]
    NoClientCert,
    /// No, but a certificate that a client sends must be valid.
    VerifyClientCertIfGiven,
    /// Yes.
    RequireAndVerifyClientCert,
}

/// A TLS version. Older ones are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Version {
    /// RFC 5246.
    #[serde(rename = "TLS12")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "TLS13")]
    Tls13,
}

/// The section `http_server_config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSection {
    /// Accepted and ignored, so that exporters can share a file.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    /// Headers of every reply.
    pub headers: Headers,
}

/// The permitted headers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Headers {
    #[serde(rename = "Content-Security-Policy")]
    pub content_security_policy: Option<String>,
    #[serde(rename = "X-Frame-Options")]
    pub frame_options: Option<String>,
    #[serde(rename = "X-Content-Type-Options")]
    pub content_type_options: Option<String>,
    #[serde(rename = "X-XSS-Protection")]
    pub xss_protection: Option<String>,
    #[serde(rename = "Strict-Transport-Security")]
    pub strict_transport_security: Option<String>,
}

/// A bcrypt hash, as `htpasswd -nBC 10 ""` prints it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Bcrypt(pub String);

impl TryFrom<String> for Bcrypt {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse::<bcrypt::HashParts>() {
            Ok(_) => Ok(Self(text)),
            // The message must not contain the hash.
            Err(_) => Err("not a bcrypt hash; create one with `htpasswd -nBC 10 \"\"`".to_owned()),
        }
    }
}
