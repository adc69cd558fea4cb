//! The options of the MySQL probes: server and account, with the names and meanings of
//! `loadprint-load`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap::ValueEnum;
use loadprint_probes::mysql::account::Account;
use loadprint_probes::mysql::account::SslMode;
use loadprint_probes::mysql::account::Tls;
use loadprint_probes::mysql::server::Server;

/// The default account; docs/mysql-probe.md lists its grants.
const USER: &str = "loadprint_probe";

/// Options of the MySQL probes.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "MySQL server (without these options the MySQL probes are off)")]
pub struct MysqlOptions {
    /// Host; localhost means the unix socket.
    #[arg(long, value_name = "HOST")]
    pub mysql_host: Option<String>,
    /// TCP port [default: 3306].
    #[arg(long, value_name = "PORT")]
    pub mysql_port: Option<u16>,
    /// Unix socket.
    #[arg(long, value_name = "PATH")]
    pub mysql_socket: Option<String>,
    /// Account [default: loadprint_probe]. It needs PROCESS and SELECT on two tables of
    /// performance_schema (docs/mysql-probe.md lists the statements).
    #[arg(long, value_name = "USER")]
    pub mysql_user: Option<String>,
    /// File with the password, mode 0600 [default: the option file, else MYSQL_PWD].
    #[arg(long, value_name = "FILE")]
    pub mysql_password_file: Option<PathBuf>,
    /// Option file of the mysql client, mode 0600; groups [client] and [loadprint-collect].
    #[arg(long, value_name = "FILE")]
    pub mysql_defaults_file: Option<PathBuf>,
    /// TLS mode; off means disabled, on means required [default: disabled].
    #[arg(long, value_name = "MODE", value_enum)]
    pub mysql_ssl: Option<Ssl>,
    /// Certificate of the CA, for verify_ca and verify_identity.
    #[arg(long, value_name = "FILE")]
    pub mysql_ssl_ca: Option<String>,
    /// The client's certificate.
    #[arg(long, value_name = "FILE")]
    pub mysql_ssl_cert: Option<String>,
    /// The client's key.
    #[arg(long, value_name = "FILE")]
    pub mysql_ssl_key: Option<String>,
    /// Permitted ciphers, by their OpenSSL names; TLS_… for TLS 1.3.
    #[arg(long, value_name = "LIST")]
    pub mysql_ssl_cipher: Option<String>,
    /// Change the server: enable the InnoDB counters of flushing and checkpoints that are off
    /// (innodb_monitor_enable), and disable them again at the end. Needs SYSTEM_VARIABLES_ADMIN
    /// (MariaDB: SUPER). After SIGKILL they stay on.
    #[arg(long)]
    pub mysql_monitor: bool,
}

/// TLS modes by the names of the MySQL clients' `--ssl-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Ssl {
    #[value(alias = "off")]
    Disabled,
    Preferred,
    #[value(alias = "on")]
    Required,
    VerifyCa,
    VerifyIdentity,
}

impl MysqlOptions {
    /// The server, if the options name one.
    ///
    /// # Errors
    /// When a file cannot be read or is readable by other users, or options contradict each other.
    pub fn server(&self) -> anyhow::Result<Option<&'static Server>> {
        let named = self.mysql_host.is_some()
            || self.mysql_port.is_some()
            || self.mysql_socket.is_some()
            || self.mysql_user.is_some()
            || self.mysql_password_file.is_some()
            || self.mysql_defaults_file.is_some();
        if !named {
            if self.mysql_monitor {
                anyhow::bail!("--mysql-monitor needs a server; add --mysql-socket or --mysql-host");
            }
            return Ok(None);
        }
        if let Some(file) = &self.mysql_defaults_file {
            read_private(file, "--mysql-defaults-file")?;
        }
        let secret = self.mysql_password_file.as_deref();
        let secret = secret
            .map(|file| read_private(file, "--mysql-password-file"))
            .transpose()?;
        // The values of an option file apply unless the command line overrides them.
        let user = self.mysql_user.clone();
        let socket = self.mysql_socket.clone();
        Ok(Some(Server::new(Account {
            // libmysqlclient uses the socket only for the host name localhost.
            host: socket
                .as_ref()
                .map(|_| "localhost".to_owned())
                .or_else(|| self.mysql_host.clone()),
            port: self.mysql_port,
            socket,
            user: user.or_else(|| self.mysql_defaults_file.is_none().then(|| USER.to_owned())),
            password: secret.map(|text| text.trim_end_matches(['\r', '\n']).to_owned()),
            option_file: self.mysql_defaults_file.clone(),
            tls: self.tls()?,
            monitor: self.mysql_monitor,
        })))
    }

    fn tls(&self) -> anyhow::Result<Tls> {
        let mode = match self.mysql_ssl {
            None | Some(Ssl::Disabled) => SslMode::Disabled,
            Some(Ssl::Preferred) => SslMode::Preferred,
            Some(Ssl::Required) => SslMode::Required,
            Some(Ssl::VerifyCa) => SslMode::VerifyCa,
            Some(Ssl::VerifyIdentity) => SslMode::VerifyIdentity,
        };
        let verifies = matches!(mode, SslMode::VerifyCa | SslMode::VerifyIdentity);
        if verifies && self.mysql_ssl_ca.is_none() && self.mysql_defaults_file.is_none() {
            anyhow::bail!(
                "--mysql-ssl: verify_ca and verify_identity need the CA's certificate; add --mysql-ssl-ca"
            );
        }
        let files = [
            ("ca", &self.mysql_ssl_ca),
            ("cert", &self.mysql_ssl_cert),
            ("key", &self.mysql_ssl_key),
        ];
        for (name, file) in files {
            let Some(file) = file else { continue };
            if mode == SslMode::Disabled {
                anyhow::bail!(
                    "--mysql-ssl-{name} has no effect without --mysql-ssl; add --mysql-ssl verify_ca"
                );
            }
            if !Path::new(file).is_file() {
                anyhow::bail!("--mysql-ssl-{name} {file}: no such file");
            }
        }
        Ok(Tls {
            mode,
            ca: self.mysql_ssl_ca.clone(),
            cert: self.mysql_ssl_cert.clone(),
            key: self.mysql_ssl_key.clone(),
            cipher: self.mysql_ssl_cipher.clone(),
        })
    }
}

/// Reads a file that contains a secret; refuses one that group or others can read.
fn read_private(path: &Path, option: &str) -> anyhow::Result<String> {
    let place = || format!("{option} {}", path.display());
    let mode = fs::metadata(path).with_context(place)?.mode();
    if mode & 0o077 != 0 {
        anyhow::bail!(
            "{}: readable by other users (mode {:04o}); run: chmod 600 {}",
            place(),
            mode & 0o7777,
            path.display()
        );
    }
    fs::read_to_string(path).with_context(place)
}
