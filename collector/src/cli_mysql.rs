//! The options of the MySQL probes: where the server is and as whom to ask it. Names and meanings are those of `loadprint-load`.

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

/// The account where no option names one; docs/mysql-probe.md has its grants.
const USER: &str = "loadprint_probe";

/// Options of the MySQL probes.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "MySQL server (its probes are off when none of these is given)")]
pub struct MysqlOptions {
    /// The server; localhost means the unix socket.
    #[arg(long, value_name = "HOST")]
    pub mysql_host: Option<String>,
    /// TCP port [default: 3306].
    #[arg(long, value_name = "PORT")]
    pub mysql_port: Option<u16>,
    /// Unix socket.
    #[arg(long, value_name = "PATH")]
    pub mysql_socket: Option<String>,
    /// Account [default: loadprint_probe]. It needs no more than PROCESS and SELECT on two tables of performance_schema
    /// (docs/mysql-probe.md has the statements that make it).
    #[arg(long, value_name = "USER")]
    pub mysql_user: Option<String>,
    /// File with the password, mode 0600; else the option file, else MYSQL_PWD.
    #[arg(long, value_name = "FILE")]
    pub mysql_password_file: Option<PathBuf>,
    /// Option file of mode 0600 as the mysql client reads it, groups [client] and [loadprint-collect].
    #[arg(long, value_name = "FILE")]
    pub mysql_defaults_file: Option<PathBuf>,
    /// TLS; off and on are disabled and required [default: disabled].
    #[arg(long, value_name = "MODE", value_enum)]
    pub mysql_ssl: Option<Ssl>,
    /// Certificate of the authority, for verify_ca and verify_identity.
    #[arg(long, value_name = "FILE")]
    pub mysql_ssl_ca: Option<String>,
    /// The client's certificate.
    #[arg(long, value_name = "FILE")]
    pub mysql_ssl_cert: Option<String>,
    /// The client's key.
    #[arg(long, value_name = "FILE")]
    pub mysql_ssl_key: Option<String>,
    /// Permitted ciphers, as OpenSSL names them; TLS_… for TLS 1.3.
    #[arg(long, value_name = "LIST")]
    pub mysql_ssl_cipher: Option<String>,
    /// Change the server: enable InnoDB's counters of flushing and checkpoints that are off (innodb_monitor_enable), and disable
    /// just those at the end. Needs SYSTEM_VARIABLES_ADMIN (MariaDB: SUPER). A recorder that is killed leaves them on.
    #[arg(long)]
    pub mysql_monitor: bool,
}

/// How the connection is encrypted, in the words of the MySQL clients' `--ssl-mode`.
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
    /// The server, where one was named.
    ///
    /// # Errors
    /// When a file cannot be read, or others may read the secret in it; when options do not go together.
    pub fn server(&self) -> anyhow::Result<Option<&'static Server>> {
        let named = self.mysql_host.is_some()
            || self.mysql_port.is_some()
            || self.mysql_socket.is_some()
            || self.mysql_user.is_some()
            || self.mysql_password_file.is_some()
            || self.mysql_defaults_file.is_some();
        if !named {
            if self.mysql_monitor {
                anyhow::bail!("--mysql-monitor: no server was named; add --mysql-socket or --mysql-host");
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
        // With an option file its values stand unless the command line says otherwise.
        let user = self.mysql_user.clone();
        let socket = self.mysql_socket.clone();
        Ok(Some(Server::new(Account {
            // The library takes the socket only of a server that is called so.
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
                "--mysql-ssl: verify_ca and verify_identity need --mysql-ssl-ca, the authority's certificate"
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
                    "--mysql-ssl-{name} has no effect without --mysql-ssl: give --mysql-ssl verify_ca, say"
                );
            }
            if !Path::new(file).is_file() {
                anyhow::bail!("--mysql-ssl-{name} {file}: there is no such file");
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

/// Reads a file that holds a secret; one that group or others may read is refused.
fn read_private(path: &Path, option: &str) -> anyhow::Result<String> {
    let place = || format!("{option} {}", path.display());
    let mode = fs::metadata(path).with_context(place)?.mode();
    if mode & 0o077 != 0 {
        anyhow::bail!(
            "{}: others may read it (mode {:04o}): chmod 600 {}",
            place(),
            mode & 0o7777,
            path.display()
        );
    }
    fs::read_to_string(path).with_context(place)
}
