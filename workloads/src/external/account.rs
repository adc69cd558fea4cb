//! What a program needs to log in: address, account and TLS for generators that do not read MySQL
//! option files, and a private directory for files with the password.

use std::env;
use std::fs;
use std::fs::OpenOptions;
use std::fs::Permissions;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::Tls;
use tempfile::TempDir;

use crate::driver::connect::Account;
use crate::driver::endpoint::Endpoint;

/// Address and account.
#[derive(Clone, Default)]
pub struct ResolvedAccount {
    /// The only server.
    pub endpoint: Endpoint,
    /// User name.
    pub user: String,
    /// The password.
    pub password: String,
    /// Database.
    pub database: String,
    /// TLS and the server's key.
    pub tls: Tls,
}

/// Adds the value of MYSQL_PWD and the defaults.
///
/// # Errors
/// If there are several addresses.
pub fn resolve(account: &Account) -> Result<ResolvedAccount> {
    let [endpoint] = account.endpoints.as_slice() else {
        bail!(
            "{}: an external generator supports one server address only",
            account.describe()
        );
    };
    let password = account.login.password.clone();
    let password = password.or_else(|| env::var("MYSQL_PWD").ok());
    Ok(ResolvedAccount {
        endpoint: endpoint.clone(),
        user: account.login.user.clone().unwrap_or_else(|| "sbtest".to_owned()),
        password: password.unwrap_or_default(),
        database: account.database.clone().unwrap_or_default(),
        tls: account.login.tls.clone(),
    })
}

impl ResolvedAccount {
    /// Refuses a program that has no option for the server's key and would use the one that the
    /// server sends.
    ///
    /// # Errors
    /// If the password would leave this host without TLS and `--mysql-get-server-public-key`.
    pub fn require_trusted_network(&self, program: &str) -> Result<()> {
        let host = &self.endpoint.host;
        let is_loopback = host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let is_local = self.endpoint.is_local() || is_loopback;
        if is_local
            || self.password.is_empty()
            || self.tls.get_public_key
            || self.tls.mode >= SslMode::Required
        {
            return Ok(());
        }
        bail!(
            "{host}: {program} sends the password without TLS under a key that the server sends: give \
             --mysql-get-server-public-key on a network that you trust, or use --generator=native"
        )
    }
}

/// A directory of mode 0700 under TMPDIR, removed after the run.
#[derive(Debug)]
pub struct PrivateDir(TempDir);

impl PrivateDir {
    /// Creates one.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create() -> Result<Self> {
        let mut dir = tempfile::Builder::new();
        dir.prefix("loadprint-external-")
            .permissions(Permissions::from_mode(0o700));
        Ok(Self(dir.tempdir().context("create a private directory")?))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a new file of mode 0600.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        let mut file = OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600);
        let written = file
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("{}", path.display()))?;
        Ok(path)
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(self.path()) {
            eprintln!(
                "loadprint-load: {}: {error}: remove it, it may contain a password",
                self.path().display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_private_directory_is_private_and_removed() {
        let dir = PrivateDir::create().unwrap();
        let file = dir.write("secret", "word").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(dir.path()), mode(&file)), (0o700, 0o600));
        assert!(dir.write("secret", "again").is_err());
        let path = dir.path().to_owned();
        drop(dir);
        assert!(!path.exists());
    }
}
