//! Reads where to connect and as which user from options, files and the environment.

use std::path::Path;

use anyhow::Result;
use loadprint_mysqlclient::OptionFile;
use loadprint_mysqlclient::SslMode;
use loadprint_mysqlclient::Tls;
use loadprint_mysqlclient::TlsOptions;
use loadprint_mysqlclient::read_private;

use super::endpoint::Endpoint;
use super::endpoint::endpoints;
use crate::options::Values;

/// Servers and an account, those of the option file included. `None` leaves a value to the library's
/// default.
#[derive(Clone)]
pub struct Account {
    /// Addresses, at least one; assigned to the connections round-robin.
    pub endpoints: Vec<Endpoint>,
    /// User name.
    pub user: Option<String>,
    /// The password. `None` leaves it to MYSQL_PWD, which the library reads itself.
    pub password: Option<String>,
    /// Default database.
    pub database: Option<String>,
    /// Option file, group `client`, for its other settings.
    pub option_file: Option<OptionFile>,
    /// TLS and the server's key.
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
        let file = match values.text("defaults-file")? {
            Some(path) => Some(OptionFile::read(Path::new(path), "--defaults-file", &["client"])?),
            None => None,
        };
        let from_file = |name: &str| file.as_ref().and_then(|file| file.get(name)).map(str::to_owned);
        let password = match values.text("mysql-password-file")? {
            Some(path) => Some(read_password(Path::new(path))?),
            None => from_file("password"),
        };
        let (host, socket) = (values.text("mysql-host")?, values.text("mysql-socket")?);
        let (host, socket) = file.clone().unwrap_or_default().address(host, socket);
        let port = file.as_ref().map(OptionFile::port).transpose()?.flatten();
        let port = port.unwrap_or(3306).to_string();
        // Without a file, the defaults of sysbench apply.
        let user = values.text("mysql-user")?.map(str::to_owned);
        let user = user.or_else(|| from_file("user"));
        Ok(Self {
            endpoints: endpoints(
                host.as_deref().unwrap_or("localhost"),
                values.text("mysql-port")?.unwrap_or(&port),
                socket.as_deref(),
            )?,
            user: user.or_else(|| file.is_none().then(|| "sbtest".to_owned())),
            password,
            database: values.text("mysql-db")?.map(str::to_owned),
            // Without TLS as sysbench, so that a comparison has no CPU time of TLS.
            tls: tls_options(values)?.resolve(file.as_ref(), SslMode::Disabled)?,
            compression: values.flag("mysql-compression")?,
            answer_seconds: values.number("thread-init-timeout")?.clamp(1.0, 1e6) as u32,
            option_file: file,
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

fn read_password(path: &Path) -> Result<String> {
    let text = read_private(path, "--mysql-password-file")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
