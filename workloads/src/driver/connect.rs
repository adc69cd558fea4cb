//! Reads where to connect and as which user from options, files and the environment; refuses
//! secrets that other users can read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_mysqlclient::Tls;

use super::endpoint::Endpoint;
use super::endpoint::endpoints;
use super::tls;
use crate::options::Values;

/// Servers and an account. `None` leaves a value to the option file, else to the library's default.
#[derive(Clone)]
pub struct Account {
    /// Addresses, at least one; assigned to the connections round-robin.
    pub endpoints: Vec<Endpoint>,
    /// User name.
    pub user: Option<String>,
    /// The password. `None` leaves it to the option file and to MYSQL_PWD, which the library reads
    /// itself.
    pub password: Option<String>,
    /// Default database.
    pub database: Option<String>,
    /// Option file that the library reads, group `client`.
    pub option_file: Option<PathBuf>,
    /// TLS settings.
    pub tls: Tls,
    /// Compresses the protocol with zlib.
    pub compression: bool,
    /// Timeout for the server's answer to a new connection.
    pub answer_seconds: u32,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Account")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Account {
    /// Reads the `--mysql-*` options and the files they name.
    pub fn from_options(values: &Values) -> Result<Self> {
        let option_file = values.text("defaults-file")?.map(PathBuf::from);
        if let Some(file) = &option_file {
            read_private(file, "--defaults-file")?;
        }
        let password = match values.text("mysql-password-file")? {
            Some(file) => Some(read_password(Path::new(file))?),
            None => None,
        };
        // Values of an option file are used unless the command line sets them. Without a file, the
        // defaults of sysbench apply.
        let or_default = |name: &str, default: &str| -> Result<Option<String>> {
            Ok(match values.text(name)? {
                Some(given) => Some(given.to_owned()),
                None => option_file.is_none().then(|| default.to_owned()),
            })
        };
        Ok(Self {
            endpoints: endpoints(
                or_default("mysql-host", "localhost")?.as_deref(),
                or_default("mysql-port", "3306")?.as_deref(),
                values.text("mysql-socket")?,
            )?,
            user: or_default("mysql-user", "sbtest")?,
            password,
            database: values.text("mysql-db")?.map(str::to_owned),
            tls: tls::from_options(values)?,
            compression: values.flag("mysql-compression")?,
            answer_seconds: values.number("thread-init-timeout")?.clamp(1.0, 1e6) as u32,
            option_file,
        })
    }

    /// The address of connection `number`.
    pub fn endpoint(&self, number: usize) -> &Endpoint {
        &self.endpoints[number % self.endpoints.len()]
    }

    /// The servers, for messages and results.
    pub fn describe(&self) -> String {
        self.addresses().join(", ")
    }

    /// As [`Account::describe`], one entry for each server.
    pub fn addresses(&self) -> Vec<String> {
        let unnamed = |endpoint: &Endpoint| endpoint.host.is_none() && endpoint.socket.is_none();
        let describe = |endpoint: &Endpoint| match &self.option_file {
            Some(file) if unnamed(endpoint) => format!("the server of {}", file.display()),
            _ => endpoint.describe(),
        };
        self.endpoints.iter().map(describe).collect()
    }
}

fn read_password(path: &Path) -> Result<String> {
    let text = read_private(path, "--mysql-password-file")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads a file that contains a secret; refuses a file that group or others may read.
fn read_private(path: &Path, option: &str) -> Result<String> {
    let place = || format!("{option} {}", path.display());
    let mode = fs::metadata(path).with_context(place)?.mode();
    if mode & 0o077 != 0 {
        bail!(
            "{option} {}: mode {:04o} lets other users read the secret: chmod 600 {}",
            path.display(),
            mode & 0o7777,
            path.display()
        );
    }
    fs::read_to_string(path).with_context(place)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_password_file_that_others_can_read_is_refused_with_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(&path, "quite-secret\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let refusal = read_password(&path).unwrap_err().to_string();
        assert!(refusal.contains("chmod 600"), "{refusal}");
        assert!(!refusal.contains("quite-secret"), "{refusal}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_password(&path).unwrap(), "quite-secret");
    }
}
