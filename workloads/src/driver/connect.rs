//! Reads where to connect and as which user from options, files and the environment.

use std::path::Path;

use anyhow::Result;
use loadprint_mysqlclient::AccountOptions;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::TlsOptions;

use super::endpoint::Endpoint;
use super::endpoint::endpoints;
use crate::options::Values;

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
    pub fn from_options(values: &Values) -> Result<Self> {
        let path = |name| Ok::<_, anyhow::Error>(values.text(name)?.map(Path::new));
        // Without a file, the defaults of sysbench apply; without TLS, so that a comparison has no CPU time of it.
        let options = AccountOptions {
            host: values.text("mysql-host")?,
            socket: values.text("mysql-socket")?,
            user: values.text("mysql-user")?,
            password_file: path("mysql-password-file")?,
            option_file: (path("defaults-file")?, "--defaults-file", &["client"]),
            tls: tls_options(values)?,
            default_user: "sbtest",
            default_mode: SslMode::Disabled,
        };
        let login = options.resolve()?;
        let port = login.port.unwrap_or(3306).to_string();
        Ok(Self {
            endpoints: endpoints(
                login.host.as_deref().unwrap_or("localhost"),
                values.text("mysql-port")?.unwrap_or(&port),
                login.socket.as_deref(),
            )?,
            login,
            database: values.text("mysql-db")?.map(str::to_owned),
            compression: values.flag("mysql-compression")?,
            answer_seconds: values.number("thread-init-timeout")?.clamp(1.0, 1e6) as u32,
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

fn tls_options(values: &Values) -> Result<TlsOptions> {
    let text = |name| Ok::<_, anyhow::Error>(values.text(name)?.map(str::to_owned));
    Ok(TlsOptions {
        mode: values.text("mysql-ssl")?.and_then(SslMode::from_word),
        ca: text("mysql-ssl-ca")?,
        cert: text("mysql-ssl-cert")?,
        key: text("mysql-ssl-key")?,
        cipher: text("mysql-ssl-cipher")?,
        public_key: text("mysql-server-public-key-path")?,
        get_public_key: values.flag("mysql-get-server-public-key")?,
    })
}
