//! Tests what the MySQL probes send to a server that only wants the password, on loopback and away
//! from it.
#![cfg(feature = "mysql")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::fake_login::FakeLogin;
use crate::fake_login::Trap;
use crate::fake_login::away_from_loopback;
use crate::prelude::*;
use tempfile::tempdir;

const PASSWORD: &str = "not-to-be-seen";
const TRAPS: [Trap; 4] = [Trap::Tls, Trap::CachingSha2, Trap::Sha256, Trap::Clear];

fn option_file(path: &Path, lines: &str) {
    let text = format!("[client]\nuser=probe\npassword={PASSWORD}\n{lines}");
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Opens the probes with an option file of these lines; returns the reasons of those that do not run.
fn opened(address: &str, server: &FakeLogin, lines: &str, options: &str) -> String {
    let dir = tempdir().unwrap();
    let path = dir.path().join("my.cnf");
    let port = server.port();
    option_file(&path, &format!("host={address}\nport={port}\n{lines}"));
    probes(dir.path(), path.to_str().unwrap(), options)
}

fn probes(directory: &Path, file: &str, options: &str) -> String {
    let words = format!("probes --format json --mysql-defaults-file {file} {options}");
    let output = collect(&words)
        .env_remove("MYSQL_PWD")
        .env("HOME", directory)
        .current_dir(directory)
        .output()
        .unwrap();
    assert_eq!(stderr(&output), "");
    String::from_utf8(output.stdout).unwrap()
}

fn has_password(server: &FakeLogin) -> bool {
    server.received().iter().any(|packet| packet.contains(PASSWORD))
}

#[test]
fn the_mode_of_an_option_file_applies() {
    let authority = tempfile::NamedTempFile::new().unwrap();
    let authority = format!("ssl-ca={}\n", authority.path().display());
    for trap in [Trap::CachingSha2, Trap::Sha256, Trap::Clear] {
        for lines in [
            "ssl-mode=REQUIRED\n",
            &format!("ssl-mode=VERIFY_CA\n{authority}"),
            &authority,
        ] {
            let server = FakeLogin::start("127.0.0.1", trap);
            let text = opened("127.0.0.1", &server, lines, "");
            assert_eq!(server.received(), Vec::<String>::new(), "{trap:?} {lines}");
            assert!(
                text.contains("error 2026") && text.contains("--mysql-ssl"),
                "{text}"
            );
        }
    }
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

#[test]
fn over_loopback_the_server_may_send_its_key() {
    let server = FakeLogin::start("127.0.0.1", Trap::Sha256);
    opened("127.0.0.1", &server, "", "");
    assert!(has_password(&server));
}

#[test]
fn a_server_gets_no_local_file() {
    let server = FakeLogin::start("127.0.0.1", Trap::LocalFile);
    opened("127.0.0.1", &server, "local-infile=1\n", "");
    let sent = server.received();
    // A statement, and the empty packet in place of the file.
    assert!(sent.len() >= 2 && sent[1].is_empty(), "{sent:?}");
}

#[test]
fn a_relative_option_file_is_that_of_the_working_directory() {
    let dir = tempdir().unwrap();
    let server = FakeLogin::start("127.0.0.1", Trap::CachingSha2);
    let address = format!("host=127.0.0.1\nport={}\n", server.port());
    option_file(&dir.path().join("my.cnf"), &address);
    // The place in which the client library looks for a name without a directory.
    option_file(
        &dir.path().join(".my.cnf"),
        &format!("{address}password=of-another-file\n"),
    );
    probes(dir.path(), "my.cnf", "");
    assert_eq!(server.received(), ["\u{2}", PASSWORD]);
}
