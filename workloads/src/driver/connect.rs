//! Reads where to connect and as which user from options, files and the environment.

use anyhow::Result;
use loadprint_mysqlclient::AccountOptions;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::TlsOptions;

use super::endpoint::Endpoint;
use super::endpoint::endpoints;
use crate::options::Common;

/// Servers and an account.
#[derive(Debug, Clone)]
pub struct Account {
    /// Addresses, at least one; assigned to the connections round-robin.
    pub endpoints: Vec<Endpoint>,
    /// User, password, TLS and other settings.
    pub login: loadprint_mysqlclient::Account,
    /// Default database.
    pub database: Option<String>,
    /// Compresses the protocol with zlib.
    pub compression: bool,
    /// Timeout for the server's answer to a new connection.
    pub answer_seconds: u32,
}

impl Account {
    /// Reads the `--mysql-*` options and the files they name.
    pub fn from_options(given: &Common) -> Result<Self> {
        // Without a file, the defaults of sysbench apply; without TLS, so that a comparison has no CPU time of it.
        let options = AccountOptions {
            host: given.mysql_host.as_deref(),
            socket: given.mysql_socket.as_deref(),
            user: given.mysql_user.as_deref(),
            password_file: given.mysql_password_file.as_deref(),
            option_file: (given.defaults_file.as_deref(), "--defaults-file", &["client"]),
            tls: TlsOptions {
                mode: given.mysql_ssl.as_deref().and_then(SslMode::from_word),
                ca: given.mysql_ssl_ca.clone(),
                cert: given.mysql_ssl_cert.clone(),
                key: given.mysql_ssl_key.clone(),
                cipher: given.mysql_ssl_cipher.clone(),
                public_key: given.mysql_server_public_key_path.clone(),
                get_public_key: given.mysql_get_server_public_key,
            },
            default_user: "sbtest",
            default_mode: SslMode::Disabled,
        };
        let login = options.resolve()?;
        let port = login.port.unwrap_or(3306).to_string();
        Ok(Self {
            endpoints: endpoints(
                login.host.as_deref().unwrap_or("localhost"),
                given.mysql_port.as_deref().unwrap_or(&port),
                login.socket.as_deref(),
            )?,
            login,
            database: given.mysql_db.clone(),
            compression: given.mysql_compression,
            answer_seconds: given.thread_init_timeout.clamp(1.0, 1e6) as u32,
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
        self.endpoints.iter().map(Endpoint::describe).collect()
    }
}
