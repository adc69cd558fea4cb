//! Where the server is and as whom to ask it. Plain values: files are read by whoever takes the options.

use std::fmt::Debug;
use std::fmt::Formatter;
use std::path::PathBuf;

pub use loadprint_mysqlclient::SslMode;
pub use loadprint_mysqlclient::Tls;

/// A server and an account. What is `None` comes from the option file, else from the library's defaults.
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
    /// The secret; `None` leaves it to the option file and to MYSQL_PWD, which the library reads itself.
    pub password: Option<String>,
    /// Read by the library, groups `client` and `loadprint-collect`.
    pub option_file: Option<PathBuf>,
    /// TLS.
    pub tls: Tls,
    /// Enable the InnoDB counters that are read, and disable them again.
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
    /// The server in words.
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
