//! Defines the address and the account of the server. Plain values: the caller reads option and
//! password files.

use std::fmt::Debug;
use std::fmt::Formatter;
use std::path::PathBuf;

pub use loadprint_mysqlclient::SslMode;
pub use loadprint_mysqlclient::Tls;

/// A server and an account. A value of `None` comes from the option file, or from the defaults of
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
    /// The password; with `None` the library reads it from the option file or from MYSQL_PWD.
    pub password: Option<String>,
    /// The option file, of which the library reads the groups `client` and `loadprint-collect`.
    pub option_file: Option<PathBuf>,
    /// TLS.
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
        match (&self.socket, &self.host, &self.option_file) {
            (Some(socket), _, _) => socket.clone(),
            (None, Some(host), _) if host != "localhost" => format!("{host}:{}", self.port.unwrap_or(3306)),
            (None, None, Some(file)) => format!("the server of {}", file.display()),
            _ => "localhost (unix socket)".to_owned(),
        }
    }
}
