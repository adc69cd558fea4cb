//! Tests that the MySQL probes send no password to a server that only wants it. Its other cases are those of
//! the same options of the load generator (`workloads/tests/credentials.rs`).
#![cfg(feature = "mysql")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::fake_login::FakeLogin;
use crate::fake_login::Trap;
use crate::fake_login::away_from_loopback;
use crate::prelude::*;
use tempfile::tempdir;

const PASSWORD: &str = "not-to-be-seen";
const TRAPS: [Trap; 4] = [Trap::Tls, Trap::CachingSha2, Trap::Sha256, Trap::Clear];

/// Opens the probes with an option file of these lines; returns the reasons of those that do not run.
fn opened(address: &str, server: &FakeLogin, lines: &str, options: &str) -> String {
    let dir = tempdir().unwrap();
    let path = dir.path().join("my.cnf");
    let port = server.port();
    let text = format!("[client]\nuser=probe\npassword={PASSWORD}\nhost={address}\nport={port}\n{lines}");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let file = path.display();
    let words = format!("probes --format json --mysql-defaults-file {file} {options}");
    let output = collect(&words).env_remove("MYSQL_PWD").output().unwrap();
    assert_eq!(stderr(&output), "");
    String::from_utf8(output.stdout).unwrap()
}

fn has_password(server: &FakeLogin) -> bool {
    server.received().iter().any(|packet| packet.contains(PASSWORD))
}

#[test]
fn a_password_leaves_the_host_only_under_a_trusted_key() {
    away_from_loopback(|address| {
        for trap in TRAPS {
            for lines in [
                "",
                "ssl-mode=PREFERRED\n",
                "enable-cleartext-plugin=1\n",
                "ssl-mode=DISABLED\nenable-cleartext-plugin\n",
            ] {
                let server = FakeLogin::start(address, trap);
                let text = opened(address, &server, lines, "");
                assert_eq!(server.received(), Vec::<String>::new(), "{trap:?} {lines}");
                assert!(
                    text.contains("error 2061") && text.contains("--mysql-server-public-key-path"),
                    "{text}"
                );
            }
        }
        let server = FakeLogin::start(address, Trap::CachingSha2);
        let text = opened(address, &server, "ssl-mode=REQUIRED\n", "");
        assert!(
            text.contains("error 2026") && text.contains("--mysql-ssl"),
            "{text}"
        );
        assert_eq!(server.received(), Vec::<String>::new());
        opened(address, &server, "", "--mysql-get-server-public-key");
        assert!(has_password(&server));
        let (owner, other) = (
            FakeLogin::start(address, Trap::CachingSha2),
            FakeLogin::start(address, Trap::CachingSha2),
        );
        let key = format!("--mysql-server-public-key-path {}", owner.public_key().display());
        for server in [&owner, &other] {
            opened(address, server, "", &key);
        }
        assert!(has_password(&owner) && !has_password(&other));
        assert!(!other.received().is_empty());
        // With TLS the password would not be under the key.
        let server = FakeLogin::start(address, Trap::Tls);
        opened(address, &server, "", &key);
        assert!(!has_password(&server));
    });
}
