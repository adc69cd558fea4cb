//! Defines the address and the account of the server. Plain values: the caller reads option and
//! password files.

use std::fmt::Debug;
use std::fmt::Formatter;

pub use loadprint_mysqlclient::OptionFile;
pub use loadprint_mysqlclient::Refusal;
pub use loadprint_mysqlclient::SslMode;
pub use loadprint_mysqlclient::Tls;
pub use loadprint_mysqlclient::TlsOptions;
pub use loadprint_mysqlclient::read_private;

/// A server and an account, those of the option file included. A value of `None` is the default of
/// the library.
#[derive(Clone, Default)]
pub struct Account {
    /// `localhost` means the unix socket.
    pub host: Option<String>,
    /// TCP port.
    pub port: Option<u16>,
    /// Path of the unix socket.
    pub socket: Option<String>,
    /// User name.
    pub user: Option<String>,
    /// The password; with `None` the library reads it from MYSQL_PWD.
    pub password: Option<String>,
    /// The groups `client` and `loadprint-collect` of the option file, for its other settings.
    pub option_file: Option<OptionFile>,
    /// TLS and the server's key.
    pub tls: Tls,
    /// Enable the InnoDB counters that are read, and disable them at the end.
    pub monitor: bool,
}

impl Debug for Account {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Account")
            .field("server", &self.describe())
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Account {
    /// A description of the server for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.socket, &self.host) {
            (Some(socket), _) => socket.clone(),
            (None, Some(host)) if host != "localhost" => format!("{host}:{}", self.port.unwrap_or(3306)),
            _ => "localhost (unix socket)".to_owned(),
        }
    }
}
