//! Sets the TLS options of a connection: the modes of the MySQL clients and the paths of
//! certificates and keys.

use std::error::Error;
use std::ffi::CString;
use std::ffi::c_uint;
use std::ffi::c_void;
use std::fmt::Display;
use std::fmt::Formatter;
use std::ptr;

use mysqlclient_sys as sys;

/// `enum mysql_ssl_mode` of mysql.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum SslMode {
    /// Never TLS.
    #[default]
    Disabled = 1,
    /// TLS if the server supports it.
    Preferred = 2,
    /// TLS or no connection.
    Required = 3,
    /// As `Required`, and the server's certificate must be signed by the given CA.
    VerifyCa = 4,
    /// As `VerifyCa`, and the certificate must be for the host.
    VerifyIdentity = 5,
}

impl SslMode {
    /// The value on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Preferred => "preferred",
            Self::Required => "required",
            Self::VerifyCa => "verify_ca",
            Self::VerifyIdentity => "verify_identity",
        }
    }
}

/// How a connection is encrypted.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The mode.
    pub mode: SslMode,
    /// Certificates of the CAs, PEM.
    pub ca: Option<String>,
    /// The client's certificate, PEM.
    pub cert: Option<String>,
    /// The client's key, PEM.
    pub key: Option<String>,
    /// OpenSSL's list of permitted ciphers, for TLS 1.2, or for TLS 1.3 if it starts with `TLS_`.
    pub cipher: Option<String>,
}

/// An option that contains a zero byte, which a C string cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroByte;

impl Display for ZeroByte {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        out.write_str("a --mysql-ssl option contains a zero byte")
    }
}

impl Error for ZeroByte {}

impl Tls {
    /// Sets the options of a handle.
    ///
    /// # Errors
    /// When an option contains a zero byte.
    ///
    /// # Safety
    /// `mysql` must come from mysql_init and must not be connected yet.
    pub unsafe fn set(&self, mysql: *mut sys::MYSQL) -> Result<(), ZeroByte> {
        use sys::mysql_option as option;
        let mode: c_uint = self.mode as c_uint;
        // SAFETY: this option takes a pointer to an unsigned int and copies it (C API reference,
        // mysql_options).
        unsafe {
            sys::mysql_options(
                mysql,
                option::MYSQL_OPT_SSL_MODE,
                ptr::from_ref(&mode).cast::<c_void>(),
            );
        }
        let tls13 = self
            .cipher
            .as_deref()
            .is_some_and(|names| names.starts_with("TLS_"));
        let cipher = if tls13 {
            option::MYSQL_OPT_TLS_CIPHERSUITES
        } else {
            option::MYSQL_OPT_SSL_CIPHER
        };
        let texts = [
            (option::MYSQL_OPT_SSL_CA, &self.ca),
            (option::MYSQL_OPT_SSL_CERT, &self.cert),
            (option::MYSQL_OPT_SSL_KEY, &self.key),
            (cipher, &self.cipher),
        ];
        for (option, text) in texts {
            let Some(text) = text else { continue };
            let text = CString::new(text.as_str()).map_err(|_| ZeroByte)?;
            // SAFETY: these options take a string and copy it.
            unsafe { sys::mysql_options(mysql, option, text.as_ptr().cast()) };
        }
        Ok(())
    }
}
