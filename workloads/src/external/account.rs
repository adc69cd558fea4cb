//! Resolves address, account and TLS for generators that do not read MySQL option files.

use std::env;
use std::net::IpAddr;

use anyhow::Result;
use anyhow::bail;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::Tls;

use crate::driver::connect::Account;

/// Address and account.
#[derive(Clone)]
pub struct ResolvedAccount {
    /// Host name; `localhost` means the socket.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path of the unix socket, if one is used.
    pub socket: Option<String>,
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
    let password = account.password.clone();
    Ok(ResolvedAccount {
        socket: endpoint.socket.clone(),
        host: endpoint.host.clone(),
        port: endpoint.port,
        user: account.user.clone().unwrap_or_else(|| "sbtest".to_owned()),
        password: password
            .or_else(|| env::var("MYSQL_PWD").ok())
            .unwrap_or_default(),
        database: account.database.clone().unwrap_or_default(),
        tls: account.tls.clone(),
    })
}

impl ResolvedAccount {
    /// Refuses a program that has no option for the server's key and would use the one that the
    /// server sends.
    ///
    /// # Errors
    /// If the password would leave this host without TLS and `--mysql-get-server-public-key`.
    pub fn require_trusted_network(&self, program: &str) -> Result<()> {
        let is_loopback = |host: &str| host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let is_local = self.host == "localhost" || is_loopback(&self.host);
        if is_local
            || self.password.is_empty()
            || self.tls.get_public_key
            || self.tls.mode >= SslMode::Required
        {
            return Ok(());
        }
        bail!(
            "{}: {program} sends the password without TLS under a key that the server sends: give \
             --mysql-get-server-public-key on a network that you trust, or use --generator=native",
            self.host
        )
    }
}
