//! Resolves server and account from the command line, the option file and the password file, and logs in.

use std::ffi::CString;
use std::ffi::c_uint;
use std::ffi::c_ulong;
use std::fmt;
use std::path::Path;
use std::ptr;

use mysqlclient_sys as sys;

use crate::destination::Destination;
use crate::library::c_text;
use crate::library::set_text;
use crate::option_file::OptionFile;
use crate::private_file::Refusal;
use crate::private_file::read_private;
use crate::tls::SslMode;
use crate::tls::Tls;
use crate::tls::TlsOptions;

/// The options of the command line; those that are given have precedence over the option file.
#[derive(Debug)]
pub struct AccountOptions<'a> {
    /// Host.
    pub host: Option<&'a str>,
    /// Path of the unix socket.
    pub socket: Option<&'a str>,
    /// User name.
    pub user: Option<&'a str>,
    /// `--mysql-password-file`.
    pub password_file: Option<&'a Path>,
    /// The option file, the name of its option, and the groups to read.
    pub option_file: (Option<&'a Path>, &'a str, &'a [&'a str]),
    /// TLS and the server's key.
    pub tls: TlsOptions,
    /// The user without an option file.
    pub default_user: &'a str,
    /// The mode of TLS if nothing selects one.
    pub default_mode: SslMode,
}

impl AccountOptions<'_> {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or is readable by other users, or options contradict each other.
    pub fn resolve(self) -> Result<Account, Refusal> {
        let (path, option, groups) = self.option_file;
        let file = path
            .map(|path| OptionFile::read(path, option, groups))
            .transpose()?;
        let from_file = |name: &str| file.as_ref().and_then(|file| file.get(name)).map(str::to_owned);
        let password = match self.password_file {
            Some(path) => {
                let text = read_private(path, "--mysql-password-file")?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            None => from_file("password"),
        };
        let (host, socket) = file.clone().unwrap_or_default().address(self.host, self.socket);
        let user = self.user.map(str::to_owned).or_else(|| from_file("user"));
        Ok(Account {
            host,
            port: file.as_ref().map(OptionFile::port).transpose()?.flatten(),
            socket,
            user: user.or_else(|| file.is_none().then(|| self.default_user.to_owned())),
            password,
            tls: self.tls.resolve(file.as_ref(), self.default_mode)?,
            option_file: file,
        })
    }
}

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
    /// The option file, for its other settings.
    pub option_file: Option<OptionFile>,
    /// TLS and the server's key.
    pub tls: Tls,
}

impl fmt::Debug for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
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

    /// Logs in at a destination, which is not necessarily the account's own host; port 0 is the default. False
    /// if it fails: the error is that of the handle.
    ///
    /// # Errors
    /// If a text contains a zero byte, or a switch of the option file is neither on nor off.
    ///
    /// # Safety
    /// `mysql` must come from mysql_init and must not be connected yet.
    pub unsafe fn log_in(
        &self,
        mysql: *mut sys::MYSQL,
        destination: &Destination,
        (port, socket): (u16, Option<&str>),
        database: Option<&str>,
        flags: c_ulong,
    ) -> Result<bool, Refusal> {
        let texts = [
            destination.host.as_deref(),
            self.user.as_deref(),
            self.password.as_deref(),
            database,
            socket,
        ];
        let texts = texts.map(|text| text.map(c_text).transpose());
        let [host, user, password, database, socket] = texts;
        let texts: [Option<CString>; 5] = [host?, user?, password?, database?, socket?];
        let [host, user, password, database, socket] = texts
            .each_ref()
            .map(|text| text.as_ref().map_or(ptr::null(), |text| text.as_ptr()));
        // SAFETY: the caller's promise; each pointer is null or a zero-terminated string that outlives the call.
        unsafe {
            if let Some(file) = &self.option_file {
                file.set(mysql)?;
            }
            self.tls.set(mysql, destination.may_send_key)?;
            set_text(mysql, sys::mysql_option::MYSQL_SET_CHARSET_NAME, "utf8mb4")?;
            let port = c_uint::from(port);
            let connected =
                sys::mysql_real_connect(mysql, host, user, password, database, port, socket, flags);
            Ok(!connected.is_null())
        }
    }
}
