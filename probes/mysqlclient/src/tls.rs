//! Resolves the options of TLS and of the server's key, from the command line and the option file,
//! and sets them for a connection.

use std::env;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::fs;
use std::path::Path;
use std::ptr;

use mysqlclient_sys as sys;

use crate::library::set_text;
use crate::library::set_value;
use crate::option_file::OptionFile;
use crate::private_file::Refusal;

/// `enum mysql_ssl_mode` of mysql.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    const ALL: [Self; 5] = [
        Self::Disabled,
        Self::Preferred,
        Self::Required,
        Self::VerifyCa,
        Self::VerifyIdentity,
    ];

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

    /// The mode of a word in any case; `off` and `on` are those of sysbench.
    pub fn from_word(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "off" => Some(Self::Disabled),
            "on" => Some(Self::Required),
            word => Self::ALL.into_iter().find(|mode| mode.word() == word),
        }
    }
}

/// The options of the command line, `--mysql-ssl*` and those of the server's key.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// `--mysql-ssl`.
    pub mode: Option<SslMode>,
    /// `--mysql-ssl-ca`.
    pub ca: Option<String>,
    /// `--mysql-ssl-cert`.
    pub cert: Option<String>,
    /// `--mysql-ssl-key`.
    pub key: Option<String>,
    /// `--mysql-ssl-cipher`.
    pub cipher: Option<String>,
    /// `--mysql-server-public-key-path`.
    pub public_key: Option<String>,
    /// `--mysql-get-server-public-key`.
    pub get_public_key: bool,
}

/// How a connection is encrypted, and under which key of the server a password is sent without TLS.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The mode.
    pub mode: SslMode,
    /// True if command line or option file select the mode.
    pub is_given: bool,
    /// Certificates of the CAs, PEM.
    pub ca: Option<String>,
    /// The client's certificate, PEM.
    pub cert: Option<String>,
    /// The client's key, PEM.
    pub key: Option<String>,
    /// OpenSSL's list of permitted ciphers, for TLS 1.2, or for TLS 1.3 if it starts with `TLS_`.
    pub cipher: Option<String>,
    /// Directory of CA certificates; CRL file and directory; TLS versions; ciphers of TLS 1.3.
    pub further: [Option<String>; 5],
    /// The server's RSA public key, PEM.
    pub public_key: Option<String>,
    /// Without TLS, use the RSA key that the server sends, also of a server on another host.
    pub get_public_key: bool,
    /// Whether the library may send the password as it is (`enable-cleartext-plugin`).
    pub is_cleartext_enabled: bool,
}

/// The options of [`Tls::further`].
const FURTHER: [&str; 5] = [
    "ssl-capath",
    "ssl-crl",
    "ssl-crlpath",
    "tls-version",
    "tls-ciphersuites",
];

impl TlsOptions {
    /// Adds the values of the option file; those of the command line have precedence. Without a
    /// mode in either, a CA selects `VerifyCa`, as in the clients of MySQL, then the server's key
    /// `Disabled`: with TLS that nothing verifies the password is sent without the key. Otherwise
    /// `default` applies.
    ///
    /// # Errors
    /// If a file does not exist, options contradict each other, or a mode is unknown.
    pub fn resolve(self, file: Option<&OptionFile>, default: SslMode) -> Result<Tls, Refusal> {
        let has_files = self.ca.is_some() || self.cert.is_some() || self.key.is_some();
        let from_file = |name: &str| file.and_then(|file| file.get(name)).map(str::to_owned);
        let further = FURTHER.map(from_file);
        let ca = self.ca.or_else(|| from_file("ssl-ca"));
        let mut mode = match self.mode {
            Some(mode) => Some(mode),
            None => file.map(mode_of).transpose()?.flatten(),
        };
        if mode.is_none() && (ca.is_some() || further[0].is_some()) {
            mode = Some(SslMode::VerifyCa);
        }
        let get_public_key = match file {
            Some(file) if !self.get_public_key => file.flag("get-server-public-key")? == Some(true),
            _ => self.get_public_key,
        };
        let public_key = self.public_key.or_else(|| from_file("server-public-key-path"));
        let default = if public_key.is_some() {
            SslMode::Disabled
        } else {
            default
        };
        let in_file = file
            .map(|file| file.flag("enable-cleartext-plugin"))
            .transpose()?;
        let tls = Tls {
            mode: mode.unwrap_or(default),
            is_given: mode.is_some(),
            ca,
            cert: self.cert.or_else(|| from_file("ssl-cert")),
            key: self.key.or_else(|| from_file("ssl-key")),
            cipher: self.cipher.or_else(|| from_file("ssl-cipher")),
            further,
            public_key,
            get_public_key,
            // The library enables it by either, sql-common/client_plugin.cc.
            is_cleartext_enabled: in_file.flatten() == Some(true)
                || env::var_os("LIBMYSQL_ENABLE_CLEARTEXT_PLUGIN").is_some(),
        };
        if has_files && tls.mode == SslMode::Disabled {
            return Err(Refusal(
                "--mysql-ssl-ca, -cert and -key have no effect without TLS; add --mysql-ssl=required, verify_ca or verify_identity"
                    .to_owned(),
            ));
        }
        tls.check()?;
        Ok(tls)
    }
}

/// The mode in an option file: that of MySQL's `ssl-mode`, else of MariaDB's switches.
fn mode_of(file: &OptionFile) -> Result<Option<SslMode>, Refusal> {
    if let Some(word) = file.get("ssl-mode") {
        return SslMode::from_word(word).map(Some).ok_or_else(|| {
            Refusal(format!(
                "{}: ssl-mode={word}: use DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
                file.path().display()
            ))
        });
    }
    if file.flag("ssl-verify-server-cert")? == Some(true) {
        return Ok(Some(SslMode::VerifyIdentity));
    }
    let mode = |is_on| {
        if is_on {
            SslMode::Required
        } else {
            SslMode::Disabled
        }
    };
    Ok(file.flag("ssl")?.map(mode))
}

impl Tls {
    fn check(&self) -> Result<(), Refusal> {
        if self.mode >= SslMode::VerifyCa && self.ca.is_none() && self.further[0].is_none() {
            return Err(Refusal(format!(
                "--mysql-ssl={} needs the certificate of the CA; add --mysql-ssl-ca, or ssl-ca in the option file",
                self.mode.word()
            )));
        }
        let files = [
            ("mysql-ssl-ca", &self.ca),
            ("mysql-ssl-cert", &self.cert),
            ("mysql-ssl-key", &self.key),
        ];
        let of_tls = files.into_iter().filter(|_| self.mode != SslMode::Disabled);
        let all = of_tls.filter_map(|(name, file)| Some((name, file.as_ref()?)));
        let key = self.public_key.as_ref();
        for (name, file) in all.chain(key.map(|key| ("mysql-server-public-key-path", key))) {
            if !Path::new(file).is_file() {
                return Err(Refusal(format!("--{name}={file}: no such file")));
            }
        }
        match key {
            // The library would request another key from the server.
            Some(key) if !is_public_key(&fs::read(key).unwrap_or_default()) => Err(Refusal(format!(
                "--mysql-server-public-key-path={key}: not an RSA public key in PEM format; copy public_key.pem \
                 from the server's data directory"
            ))),
            _ => Ok(()),
        }
    }

    /// Sets the options of a handle; `may_send_key` is that of the destination. LOAD DATA LOCAL is off: a server
    /// could request any file.
    ///
    /// # Errors
    /// When an option contains a zero byte.
    ///
    /// # Safety
    /// `mysql` must come from mysql_init and must not be connected yet.
    pub unsafe fn set(&self, mysql: *mut sys::MYSQL, may_send_key: bool) -> Result<(), Refusal> {
        use sys::mysql_option as option;
        // SAFETY: these options take an unsigned int, the last one a bool.
        unsafe {
            set_value(mysql, option::MYSQL_OPT_SSL_MODE, self.mode as c_uint);
            set_value(mysql, option::MYSQL_OPT_LOCAL_INFILE, 0 as c_uint);
            set_value(mysql, option::MYSQL_OPT_GET_SERVER_PUBLIC_KEY, may_send_key);
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
        let [capath, crl, crlpath, version, suites] = &self.further;
        let texts = [
            (option::MYSQL_OPT_SSL_CAPATH, capath),
            (option::MYSQL_OPT_SSL_CRL, crl),
            (option::MYSQL_OPT_SSL_CRLPATH, crlpath),
            (option::MYSQL_OPT_TLS_VERSION, version),
            (option::MYSQL_OPT_TLS_CIPHERSUITES, suites),
            (option::MYSQL_OPT_SSL_CA, &self.ca),
            (option::MYSQL_OPT_SSL_CERT, &self.cert),
            (option::MYSQL_OPT_SSL_KEY, &self.key),
            (cipher, &self.cipher),
            (option::MYSQL_SERVER_PUBLIC_KEY, &self.public_key),
        ];
        for (option, text) in texts {
            if let Some(text) = text {
                // SAFETY: these options take a string.
                unsafe { set_text(mysql, option, text) }?;
            }
        }
        Ok(())
    }
}

/// Whether the library can use it, which parses it by the same function.
fn is_public_key(pem: &[u8]) -> bool {
    let Ok(length) = c_int::try_from(pem.len()) else {
        return false;
    };
    // SAFETY: pointer and length describe `pem`, which outlives the calls; what they return is null or
    // freed once. Null is allowed for each other argument, and for the functions that free.
    unsafe {
        let memory = openssl_sys::BIO_new_mem_buf(pem.as_ptr().cast(), length);
        let key = openssl_sys::PEM_read_bio_RSA_PUBKEY(memory, ptr::null_mut(), None, ptr::null_mut());
        openssl_sys::RSA_free(key);
        openssl_sys::BIO_free_all(memory);
        openssl_sys::ERR_clear_error();
        !key.is_null()
    }
}
