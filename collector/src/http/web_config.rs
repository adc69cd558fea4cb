//! Turns `--web-config-file` into settings of the server, and reads the file again when it changes.
//! The server does not offer HTTP/2, regardless of the value of `http2`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use hyper::header::HeaderName;
use hyper::header::HeaderValue;
use rustls::ServerConfig;

use super::tls;
use super::web_config_file::Bcrypt;
use super::web_config_file::ClientAuth;
use super::web_config_file::File;
use super::web_config_file::Headers;

/// Limit on the file; each user needs a line.
const MAX_BYTES: u64 = 1 << 20;

/// The validated settings.
#[derive(Debug, Default)]
pub struct Settings {
    /// TLS, if configured.
    pub tls: Option<Arc<ServerConfig>>,
    /// True if every client needs a certificate.
    pub needs_certificate: bool,
    /// Users and their hashes; without users no client needs a password.
    pub users: BTreeMap<String, Bcrypt>,
    /// Headers of every reply.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The configuration file and the files that it names.
    files: Vec<PathBuf>,
}

impl Settings {
    /// Reads the file and the files that it names; its paths are relative to its directory.
    ///
    /// # Errors
    /// Names the file and, where known, the line.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut text = String::new();
        fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
            .with_context(|| path.display().to_string())?;
        if text.len() as u64 > MAX_BYTES {
            anyhow::bail!("{}: larger than {MAX_BYTES} bytes", path.display());
        }
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

    /// True if every client needs a certificate or a password.
    pub fn needs_credentials(&self) -> bool {
        self.needs_certificate || !self.users.is_empty()
    }

    /// # Errors
    /// When `previous` required TLS or credentials, and this does not.
    fn refuse_weaker_than(self, previous: &Self, path: &Path) -> anyhow::Result<Self> {
        let removed = match (previous.tls.is_some(), previous.needs_credentials()) {
            (true, _) if self.tls.is_none() => "TLS (tls_server_config)",
            (_, true) if !self.needs_credentials() => "passwords (basic_auth_users) or client certificates",
            _ => return Ok(self),
        };
        anyhow::bail!(
            "{}: no longer requires {removed}; restore the setting, or restart to serve without it",
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
    let require_one_of = |name: &str, value: &Option<String>, allowed: &[&str]| match value {
        Some(value) if !allowed.contains(&&*value.to_ascii_lowercase()) => {
            anyhow::bail!("{name}: `{value}` is not one of {}", allowed.join(", "))
        }
        _ => Ok(()),
    };
    require_one_of("X-Frame-Options", &section.frame_options, &["deny", "sameorigin"])?;
    require_one_of(
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
    named
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)))
        .map(|(name, value)| {
            let value = HeaderValue::from_str(&value).with_context(|| name.to_owned())?;
            Ok((HeaderName::from_static(name), value))
        })
        .collect()
}

/// The current settings: the file is read again when it, or a file that it names, has changed.
#[derive(Debug)]
pub struct WebConfig {
    path: Option<PathBuf>,
    stamps: Vec<Option<(SystemTime, u64)>>,
    settings: Arc<Settings>,
}

impl WebConfig {
    /// Reads the file; without one there is no TLS and no password.
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

    /// True if TLS is configured.
    pub fn has_tls(&self) -> bool {
        self.settings.tls.is_some()
    }

    /// The settings of the newest valid file. A file that cannot be read, or that removes the
    /// protection with which the server was started, changes nothing: while an editor writes the
    /// file, it is empty for a moment.
    pub fn current(&mut self) -> Arc<Settings> {
        let stamps = self.settings.stamps();
        if let Some(path) = &self.path
            && stamps != self.stamps
        {
            self.stamps = stamps;
            match Settings::read(path).and_then(|settings| settings.refuse_weaker_than(&self.settings, path))
            {
                Ok(settings) => {
                    self.stamps = settings.stamps();
                    self.settings = Arc::new(settings);
                }
                Err(error) => {
                    eprintln!("loadprint-collect: warning: {error:#}; the previous settings stay in force");
                }
            }
        }
        Arc::clone(&self.settings)
    }
}
