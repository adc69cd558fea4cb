//! Builds the TLS configuration of the server (rustls) from certificate and key files.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::SupportedProtocolVersion;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS12;
use rustls::version::TLS13;

use super::web_config_file::ClientAuth;
use super::web_config_file::TlsSection;
use super::web_config_file::Version;

/// The configuration of a section `tls_server_config`.
///
/// # Errors
/// When a file cannot be used, or settings contradict each other.
pub fn config(section: &TlsSection) -> anyhow::Result<ServerConfig> {
    let cert_file = section.cert_file.as_ref().context("cert_file is missing")?;
    let key_file = section.key_file.as_ref().context("key_file is missing")?;
    let certificates = certificates(cert_file)?;
    let key = PrivateKeyDer::from_pem_file(key_file)
        .with_context(|| format!("{}: contains no private key in PEM format", key_file.display()))?;
    let provider = Arc::new(ring::default_provider());
    let versions: Vec<&SupportedProtocolVersion> = [(Version::Tls12, &TLS12), (Version::Tls13, &TLS13)]
        .into_iter()
        .filter(|(version, _)| {
            section.min_version.is_none_or(|min| *version >= min)
                && section.max_version.is_none_or(|max| *version <= max)
        })
        .map(|(_, version)| version)
        .collect();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .context("min_version is greater than max_version")?;
    let builder = match (section.client_auth_type, &section.client_ca_file) {
        (ClientAuth::NoClientCert, None) => builder.with_no_client_auth(),
        (ClientAuth::NoClientCert, Some(_)) => {
            anyhow::bail!("client_ca_file needs client_auth_type: RequireAndVerifyClientCert")
        }
        (_, None) => anyhow::bail!("client_auth_type needs client_ca_file"),
        (client_auth, Some(path)) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider);
            let verifier = if client_auth == ClientAuth::VerifyClientCertIfGiven {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            builder.with_client_cert_verifier(verifier.build().with_context(|| path.display().to_string())?)
        }
    };
    builder
        .with_single_cert(certificates, key)
        .with_context(|| format!("{} and {}", cert_file.display(), key_file.display()))
}

fn roots(path: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .with_context(|| path.display().to_string())?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let missing = || format!("{}: contains no certificate in PEM format", path.display());
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .with_context(missing)?;
    anyhow::ensure!(!certificates.is_empty(), missing());
    Ok(certificates)
}
