//! Defines the endpoints to scrape: names, URLs, credentials, timeout and size limit.

use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base64::prelude::*;

/// The endpoints and their limits.
#[derive(Clone, Debug)]
pub struct Scrapes {
    /// The endpoints, with unique names.
    pub targets: Vec<Target>,
    /// The timeout of a scrape, from the name lookup to the last byte.
    pub timeout: Duration,
    /// The maximum size of a response, uncompressed, in bytes.
    pub limit: u64,
    /// Trusted certificates (PEM) for https, in place of Mozilla's list.
    pub authorities: Option<PathBuf>,
    /// Do not verify certificates.
    pub insecure: bool,
}

/// The default of [`Scrapes::limit`].
pub const LIMIT: u64 = 16 << 20;

impl Default for Scrapes {
    fn default() -> Self {
        Self {
            targets: vec![],
            timeout: Duration::from_secs(10),
            limit: LIMIT,
            authorities: None,
            insecure: false,
        }
    }
}

/// An endpoint `NAME=URL` with the content of its password file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name in the table.
    pub name: String,
    /// The URL.
    pub url: String,
    /// How to log in.
    pub credentials: Option<Credentials>,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, url) = text
            .split_once('=')
            .filter(|(name, url)| !name.is_empty() && !url.is_empty())
            .ok_or_else(|| format!("`{}` is not of the form NAME=URL", without_userinfo(text)))?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.bytes().all(fits) {
            return Err(format!(
                "`{}`: the name of an endpoint can have only letters, digits, - _ and .",
                without_userinfo(name)
            ));
        }
        let uri: ureq::http::Uri = url
            .parse()
            .map_err(|error| format!("`{}` is not a URL: {error}", without_userinfo(url)))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err(format!(
                "`{}` is not of the form http://HOST:PORT/PATH or https://…",
                without_userinfo(url)
            ));
        }
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(format!(
                "{name}: all users of this host can see a password in a URL; put it into a file with mode 0600 and use --scrape-auth {name}=FILE"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            url: url.to_owned(),
            credentials: None,
        })
    }
}

/// Removes a password, which must not appear in an error message.
fn without_userinfo(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => text.to_owned(),
    }
}

/// The value of an Authorization header (RFC 7617, RFC 6750).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    header: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(…)")
    }
}

impl Credentials {
    /// Reads `basic USER:PASSWORD` or `bearer TOKEN` from a file with one line that no other user
    /// can read.
    ///
    /// # Errors
    /// When the file cannot be read, other users can read it, or it has another content.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file_name = path.display();
        let failed = |error| format!("{file_name}: {error}");
        let mut file = fs::File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode();
        if mode & 0o077 != 0 {
            return Err(format!(
                "{file_name}: other users can read it; run chmod 600 {file_name}"
            ));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let malformed =
            || format!("{file_name}: it must have one line, `basic USER:PASSWORD` or `bearer TOKEN`");
        let line = text.trim_end_matches(['\r', '\n']);
        let (scheme, secret) = line.split_once(' ').ok_or_else(malformed)?;
        let printable = !secret.is_empty() && !secret.bytes().any(|byte| byte.is_ascii_control());
        let header = match scheme.to_ascii_lowercase().as_str() {
            "basic" if printable && secret.contains(':') => {
                format!("Basic {}", BASE64_STANDARD.encode(secret))
            }
            "bearer" if printable && secret.bytes().all(|byte| byte.is_ascii_graphic()) => {
                format!("Bearer {secret}")
            }
            _ => return Err(malformed()),
        };
        Ok(Self { header })
    }

    /// The value of the header.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn endpoints_have_a_name_and_a_url_without_a_password() {
        let target: Target = "node=http://127.0.0.1:9100/metrics?collect[]=cpu"
            .parse()
            .unwrap();
        assert_eq!(
            (target.name.as_str(), target.url.as_str()),
            ("node", "http://127.0.0.1:9100/metrics?collect[]=cpu")
        );
        for (malformed, expected) in [
            ("http://127.0.0.1:9100", "NAME=URL"),
            ("no/de=http://127.0.0.1:9100", "the name of an endpoint"),
            ("node", "NAME=URL"),
            ("node=", "NAME=URL"),
            ("node=ftp://127.0.0.1/", "http://HOST:PORT"),
            ("node=127.0.0.1:9100", "http://HOST:PORT"),
            ("node=http://", "not a URL"),
            ("node=http://me:secret@127.0.0.1/", "--scrape-auth node=FILE"),
            ("http://me:secret@127.0.0.1/", "NAME=URL"),
        ] {
            let error = malformed.parse::<Target>().unwrap_err();
            assert!(error.contains(expected), "{malformed}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn secrets_are_read_from_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Credentials::read(&path)
        };
        // The example of RFC 7617, section 2.
        let credentials = write("basic Aladdin:open sesame\n", 0o600).unwrap();
        assert_eq!(credentials.header(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(write("Bearer abc.def", 0o400).unwrap().header(), "Bearer abc.def");
        assert!(write("bearer abc", 0o640).unwrap_err().contains("chmod 600"));
        for malformed in [
            "",
            "abc",
            "basic abc",
            "bearer ",
            "bearer a b",
            "digest a:b",
            "bearer a\nbearer b",
        ] {
            let error = write(malformed, 0o600).unwrap_err();
            assert!(error.contains("must have one line"), "{malformed}: {error}");
        }
        assert!(!format!("{credentials:?}").contains("QWx"));
        assert!(Credentials::read(&dir.path().join("none")).is_err());
    }
}
