//! What to scrape: endpoints by name, how long and how much one may answer, and what to show it.

use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What a scrape may take and read.
#[derive(Clone, Debug)]
pub struct Scrapes {
    /// The endpoints; no two of one name.
    pub targets: Vec<Target>,
    /// How long one read may last, from the first look at its name to the last byte.
    pub timeout: Duration,
    /// How many bytes one answer may have, uncompressed.
    pub limit: u64,
    /// Certificates (PEM) that are trusted for https in place of Mozilla's list.
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

/// `NAME=URL`, with what stands in its password file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name in the table.
    pub name: String,
    /// Where it is.
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
                "`{}`: an endpoint's name has letters, digits, - _ and . only",
                without_userinfo(name)
            ));
        }
        let uri: ureq::http::Uri = url
            .parse()
            .map_err(|error| format!("`{}` is no URL: {error}", without_userinfo(url)))?;
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
                "{name}: a password in a URL is seen by all users of this host; put it into a file of mode 0600 and give --scrape-auth {name}=FILE"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            url: url.to_owned(),
            credentials: None,
        })
    }
}

/// A secret must not come back in an error message.
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
    /// Reads `basic USER:PASSWORD` or `bearer TOKEN` from the only line of a file that nobody else may read.
    ///
    /// # Errors
    /// When the file cannot be read, is open to others, or holds something else.
    pub fn read(path: &Path) -> Result<Self, String> {
        let place = path.display();
        let mut file = fs::File::open(path).map_err(|error| format!("{place}: {error}"))?;
        let mode = file
            .metadata()
            .map_err(|error| format!("{place}: {error}"))?
            .mode();
        if mode & 0o077 != 0 {
            return Err(format!("{place}: others may read it; chmod 600 {place}"));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)
            .map_err(|error| format!("{place}: {error}"))?;
        let wrong = || format!("{place}: its one line must be `basic USER:PASSWORD` or `bearer TOKEN`");
        let line = text.trim_end_matches(['\r', '\n']);
        let (scheme, secret) = line.split_once(' ').ok_or_else(wrong)?;
        let printable = !secret.is_empty() && !secret.bytes().any(|byte| byte.is_ascii_control());
        let header = match scheme.to_ascii_lowercase().as_str() {
            "basic" if printable && secret.contains(':') => format!("Basic {}", base64(secret.as_bytes())),
            "bearer" if printable && secret.bytes().all(|byte| byte.is_ascii_graphic()) => {
                format!("Bearer {secret}")
            }
            _ => return Err(wrong()),
        };
        Ok(Self { header })
    }

    /// The header's value.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) as usize & 63;
            out.push(if place <= three.len() {
                char::from(ALPHABET[six])
            } else {
                '='
            });
        }
    }
    out
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
        for (wrong, said) in [
            ("http://127.0.0.1:9100", "NAME=URL"),
            ("no/de=http://127.0.0.1:9100", "an endpoint's name"),
            ("node", "NAME=URL"),
            ("node=", "NAME=URL"),
            ("node=ftp://127.0.0.1/", "http://HOST:PORT"),
            ("node=127.0.0.1:9100", "http://HOST:PORT"),
            ("node=http://", "no URL"),
            ("node=http://me:secret@127.0.0.1/", "--scrape-auth node=FILE"),
            ("http://me:secret@127.0.0.1/", "NAME=URL"),
        ] {
            let error = wrong.parse::<Target>().unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn secrets_come_from_a_file_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Credentials::read(&path)
        };
        // The example of RFC 7617, section 2.
        let found = write("basic Aladdin:open sesame\n", 0o600).unwrap();
        assert_eq!(found.header(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(write("Bearer abc.def", 0o400).unwrap().header(), "Bearer abc.def");
        assert!(write("bearer abc", 0o640).unwrap_err().contains("chmod 600"));
        for wrong in [
            "",
            "abc",
            "basic abc",
            "bearer ",
            "bearer a b",
            "digest a:b",
            "bearer a\nbearer b",
        ] {
            let error = write(wrong, 0o600).unwrap_err();
            assert!(error.contains("one line must be"), "{wrong}: {error}");
        }
        assert!(!format!("{found:?}").contains("QWx"));
        assert!(Credentials::read(&dir.path().join("none")).is_err());
    }
}
