//! Where the server is and as whom to ask it. Plain values: files are read by whoever takes the options.

use std::fmt::Debug;
use std::fmt::Formatter;
use std::path::PathBuf;

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

/// `enum mysql_ssl_mode` of mysql.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum SslMode {
    /// Never TLS.
    #[default]
    Disabled = 1,
    /// TLS where the server offers it.
    Preferred = 2,
    /// TLS or no connection.
    Required = 3,
    /// As `Required`, and the server's certificate must come from the authority.
    VerifyCa = 4,
    /// As `VerifyCa`, and the certificate must name the host.
    VerifyIdentity = 5,
}

/// How the connection is encrypted: the names of files, not what is in them.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Whether, and what is verified.
    pub mode: SslMode,
    /// Certificate of the authority, PEM.
    pub ca: Option<String>,
    /// The client's certificate, PEM.
    pub cert: Option<String>,
    /// The client's key, PEM.
    pub key: Option<String>,
    /// OpenSSL's list of permitted ciphers; those of TLS 1.3 where the names say so (`TLS_…`).
    pub cipher: Option<String>,
}
