//! TLS of a connection: the modes of the MySQL clients, the files they need, and the cipher that came of it.

use std::ffi::CString;
use std::ffi::c_uint;
use std::ffi::c_void;
use std::path::Path;
use std::ptr;

use anyhow::Result;
use anyhow::bail;
use mysqlclient_sys as sys;

use super::Failure;
use super::mysql::local_failure;
use crate::options::Values;

/// `enum mysql_ssl_mode` of mysql.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum SslMode {
    /// Never TLS.
    Disabled = 1,
    /// TLS where the server offers it.
    Preferred = 2,
    /// TLS or no connection.
    Required = 3,
    /// As `Required`, and the server's certificate must come from `--mysql-ssl-ca`.
    VerifyCa = 4,
    /// As `VerifyCa`, and the certificate must name the host.
    VerifyIdentity = 5,
}

/// How a connection is encrypted. The names of files, not what is in them.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Whether, and what is verified.
    pub mode: SslMode,
    /// Certificates of the authorities, PEM.
    pub ca: Option<String>,
    /// The client's certificate, PEM.
    pub cert: Option<String>,
    /// The client's key, PEM.
    pub key: Option<String>,
    /// OpenSSL's list of permitted ciphers, for TLS 1.2; those of TLS 1.3 where the names say so (`TLS_…`).
    pub cipher: Option<String>,
}

impl SslMode {
    /// As `--mysql-ssl` takes it.
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

impl Tls {
    /// Reads the `--mysql-ssl*` options.
    pub fn from_options(values: &Values) -> Result<Self> {
        let text = |name| Ok::<_, anyhow::Error>(values.text(name)?.map(str::to_owned));
        let tls = Self {
            mode: match values.text("mysql-ssl")? {
                Some("required" | "on") => SslMode::Required,
                Some("preferred") => SslMode::Preferred,
                Some("verify_ca") => SslMode::VerifyCa,
                Some("verify_identity") => SslMode::VerifyIdentity,
                _ => SslMode::Disabled,
            },
            ca: text("mysql-ssl-ca")?,
            cert: text("mysql-ssl-cert")?,
            key: text("mysql-ssl-key")?,
            cipher: text("mysql-ssl-cipher")?,
        };
        let verifies = matches!(tls.mode, SslMode::VerifyCa | SslMode::VerifyIdentity);
        // An option file may name it, which only the library reads.
        if verifies && tls.ca.is_none() && values.text("defaults-file")?.is_none() {
            bail!(
                "--mysql-ssl=verify_ca and verify_identity need --mysql-ssl-ca, the file of the authority's certificate"
            );
        }
        let files = [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)];
        for (name, file) in files {
            if let Some(file) = file {
                if tls.mode == SslMode::Disabled {
                    bail!(
                        "--mysql-ssl-{name} has no effect with --mysql-ssl=disabled: give --mysql-ssl=verify_ca, say"
                    );
                }
                if !Path::new(file).is_file() {
                    bail!("--mysql-ssl-{name}={file}: there is no such file");
                }
            }
        }
        Ok(tls)
    }

    /// Sets the options of a handle.
    ///
    /// # Safety
    /// `mysql` must come from mysql_init and not be connected yet.
    pub unsafe fn set(&self, mysql: *mut sys::MYSQL) -> Result<(), Failure> {
        use sys::mysql_option as option;
        let mode: c_uint = self.mode as c_uint;
        // SAFETY: this option takes a pointer to an unsigned int and copies it (C API reference, mysql_options).
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
            let text = CString::new(text.as_str())
                .map_err(|_| local_failure("a --mysql-ssl option holds a zero byte"))?;
            // SAFETY: these options take a string and copy it.
            unsafe { sys::mysql_options(mysql, option, text.as_ptr().cast()) };
        }
        Ok(())
    }
}
