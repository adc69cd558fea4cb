//! Decides, before a connection is opened, whether a password may be sent to its server.
//!
//! libmysqlclient sends it to any server that answers: as it is over TLS (`caching_sha2_password`,
//! `sha256_password`, `mysql_clear_password`), and without TLS under a key that the server chooses
//! (`sha256_password` ignores MYSQL_OPT_GET_SERVER_PUBLIC_KEY, sql-common/client_authentication.cc).

use std::env;
use std::net::IpAddr;
use std::net::ToSocketAddrs;

use crate::tls::SslMode;
use crate::tls::Tls;

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The host for the library; `None` and `localhost` mean the unix socket.
    pub host: Option<String>,
    /// Whether the server may send the key that encrypts the password without TLS.
    pub(crate) may_send_key: bool,
}

/// Why a connection is not opened, with the error number of the client library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDestination {
    /// The host has no address.
    #[error("{0}")]
    Unknown(String),
    /// Nothing shows that the server is the right one.
    #[error("the password is not sent to {0}: nothing verifies this server")]
    Unverified(String),
}

impl NoDestination {
    /// What to give so that the password is sent.
    pub const FIX: &str = "verify the server with --mysql-ssl=verify_ca and --mysql-ssl-ca, or without TLS by its key \
        in --mysql-server-public-key-path; on a network that you trust give --mysql-ssl=required, or \
        --mysql-get-server-public-key";

    /// CR_UNKNOWN_HOST or CR_AUTH_PLUGIN_ERR of errmsg.h.
    pub fn number(&self) -> u32 {
        match self {
            Self::Unknown(_) => 2005,
            Self::Unverified(_) => 2061,
        }
    }
}

impl Tls {
    /// The destination of a connection to `host`. A password is sent to a server that TLS or the pinned
    /// key verifies, to this host, or where the user permits it: with `required`, or the option for
    /// the server's key.
    ///
    /// # Errors
    /// If a password would be sent to another server, or the name of the host cannot be resolved.
    pub fn destination(
        &self,
        host: Option<&str>,
        port: u16,
        password: Option<&str>,
    ) -> Result<Destination, NoDestination> {
        let is_local = host.is_none_or(|host| host == "localhost");
        let by_library = Destination {
            host: host.map(str::to_owned),
            may_send_key: is_local || self.get_public_key,
        };
        if is_local || !sends_password(password) || self.is_trusted() {
            return Ok(by_library);
        }
        let host = host.unwrap_or_default();
        // The library connects to the address that was found: a second lookup could return another.
        let found = (host, port).to_socket_addrs();
        let found = found.map_err(|error| NoDestination::Unknown(format!("{host}: {error}")))?;
        let addresses: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
        let is_loopback = addresses.iter().all(IpAddr::is_loopback);
        // Servers listen on IPv4 unless they listen on both.
        let address = addresses.iter().min_by_key(|address| address.is_ipv6());
        match address.filter(|_| is_loopback) {
            Some(address) => Ok(Destination {
                host: Some(address.to_string()),
                may_send_key: true,
            }),
            None => Err(NoDestination::Unverified(format!("{host}:{port}"))),
        }
    }

    fn is_trusted(&self) -> bool {
        // With TLS the library sends the password without the key, and `mysql_clear_password` never uses one.
        let is_under_key = self.mode == SslMode::Disabled && !self.is_cleartext_enabled;
        self.mode >= SslMode::VerifyCa
            || self.get_public_key
            || self.is_given && self.mode == SslMode::Required
            || self.public_key.is_some() && is_under_key
    }
}

/// Whether there is a password, also in MYSQL_PWD, which the library reads itself.
fn sends_password(password: Option<&str>) -> bool {
    match password {
        Some(password) => !password.is_empty(),
        None => env::var_os("MYSQL_PWD").is_some_and(|password| !password.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_of(tls: &Tls, host: &str) -> Result<(Option<String>, bool), u32> {
        let found = tls.destination(Some(host), 3306, Some("secret"));
        found
            .map(|found| (found.host, found.may_send_key))
            .map_err(|error| error.number())
    }

    #[test]
    fn this_host_is_trusted_and_connected_by_its_address() {
        let tls = Tls::default();
        for (host, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.64.1.2", "127.64.1.2"),
            ("::1", "::1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("LOCALHOST", "127.0.0.1"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(
                host_of(&tls, host),
                Ok((Some(address.to_owned()), true)),
                "{host}"
            );
        }
        assert!(tls.destination(None, 3306, Some("secret")).is_ok());
    }

    #[test]
    fn other_hosts_need_verification_or_permission() {
        let with = |mode, is_given| Tls {
            mode,
            is_given,
            ..Tls::default()
        };
        let pinned = |mode, is_cleartext_enabled| Tls {
            public_key: Some("key.pem".to_owned()),
            is_cleartext_enabled,
            ..with(mode, true)
        };
        let permitted = Tls {
            get_public_key: true,
            ..Tls::default()
        };
        for (tls, is_sent) in [
            (with(SslMode::Disabled, false), false),
            (with(SslMode::Preferred, false), false),
            (with(SslMode::Disabled, true), false),
            (with(SslMode::Preferred, true), false),
            (with(SslMode::Required, true), true),
            (with(SslMode::VerifyCa, true), true),
            (with(SslMode::VerifyIdentity, true), true),
            (permitted, true),
            (pinned(SslMode::Disabled, false), true),
            // The server could ask for the password as it is.
            (pinned(SslMode::Disabled, true), false),
            (pinned(SslMode::Preferred, false), false),
        ] {
            for host in ["198.51.100.1", "2001:db8::1", "0.0.0.0"] {
                assert_eq!(host_of(&tls, host).is_ok(), is_sent, "{host} {tls:?}");
            }
            assert!(tls.destination(Some("198.51.100.1"), 3306, Some("")).is_ok());
        }
        assert_eq!(host_of(&Tls::default(), "198.51.100.1"), Err(2061));
        assert_eq!(host_of(&Tls::default(), "host.invalid"), Err(2005));
    }
}
