//! The options of the MySQL probes: server and account, with the names and meanings of
//! `loadprint-load`.

use std::path::PathBuf;

use clap::Args;
use loadprint_probes::mysql::account::AccountOptions;
use loadprint_probes::mysql::account::SslMode;
use loadprint_probes::mysql::account::TlsOptions;
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
    /// TLS mode: disabled, preferred, required, verify_ca or verify_identity; off means disabled, on
    /// means required [default: the option file, verify_ca with a CA, disabled with the server's
    /// public key, else preferred].
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mysql_ssl: Option<SslMode>,
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
    /// The server's RSA public key, PEM, under which the password is sent without TLS.
    #[arg(long, value_name = "FILE")]
    pub mysql_server_public_key_path: Option<String>,
    /// Send the password to any server that answers at the address, without TLS under the key that it
    /// sends. Over a unix socket and loopback this is always permitted.
    #[arg(long)]
    pub mysql_get_server_public_key: bool,
    /// Change the server: enable the InnoDB counters of flushing and checkpoints that are off
    /// (innodb_monitor_enable), and disable them again at the end. Needs SYSTEM_VARIABLES_ADMIN
    /// (MariaDB: SUPER). After SIGKILL they stay on.
    #[arg(long)]
    pub mysql_monitor: bool,
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
        let options = AccountOptions {
            host: self.mysql_host.as_deref(),
            socket: self.mysql_socket.as_deref(),
            user: self.mysql_user.as_deref(),
            password_file: self.mysql_password_file.as_deref(),
            option_file: (
                self.mysql_defaults_file.as_deref(),
                "--mysql-defaults-file",
                &["client", "loadprint-collect"],
            ),
            tls: TlsOptions {
                mode: self.mysql_ssl,
                ca: self.mysql_ssl_ca.clone(),
                cert: self.mysql_ssl_cert.clone(),
                key: self.mysql_ssl_key.clone(),
                cipher: self.mysql_ssl_cipher.clone(),
                public_key: self.mysql_server_public_key_path.clone(),
                get_public_key: self.mysql_get_server_public_key,
            },
            default_user: USER,
            default_mode: SslMode::Preferred,
        };
        let mut account = options.resolve()?;
        account.port = self.mysql_port.or(account.port);
        Ok(Some(Server::new(account, self.mysql_monitor)))
    }
}

fn parse_mode(word: &str) -> Result<SslMode, String> {
    SslMode::from_word(word)
        .ok_or_else(|| "not disabled, preferred, required, verify_ca or verify_identity".to_owned())
}
