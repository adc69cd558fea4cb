//! Tests what the generator sends to a server that only wants the password, on loopback and away
//! from it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails by panicking"
)]

#[allow(dead_code, reason = "most of it needs a server")]
mod common;
#[path = "common/fake_login.rs"]
mod fake_login;
#[path = "common/packets.rs"]
mod packets;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use common::assert_refused;
use common::generator;
use common::has_go_client;
use common::private_file;
use fake_login::FakeLogin;
use fake_login::Trap;
use fake_login::away_from_loopback;
use tempfile::TempDir;

const PASSWORD: &str = "not-to-be-seen";
const RUN: &str = "run oltp_point_select --threads=1 --events=1";
const KEYS: [Trap; 2] = [Trap::CachingSha2, Trap::Sha256];

/// A directory with option files.
struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes an option file with the account and these lines in `[client]`.
    fn file(&self, name: &str, lines: &str) -> String {
        let text = format!("[client]\nuser=bench\npassword={PASSWORD}\n{lines}");
        private_file(self.0.path(), name, &text)
    }

    /// Runs the generator on a server, with an option file of these lines.
    fn run(&self, address: &str, server: &FakeLogin, lines: &str, options: &[&str]) -> Output {
        self.run_words(RUN, address, server, lines, options)
    }

    fn run_words(
        &self,
        words: &str,
        address: &str,
        server: &FakeLogin,
        lines: &str,
        options: &[&str],
    ) -> Output {
        let file = self.file("client.cnf", lines);
        generator(words)
            .arg(format!("--defaults-file={file}"))
            .arg(format!("--mysql-host={address}"))
            .arg(format!("--mysql-port={}", server.port()))
            .args(options)
            .output()
            .unwrap()
    }
}

fn has_password(server: &FakeLogin) -> bool {
    server.received().iter().any(|packet| packet.contains(PASSWORD))
}

#[test]
fn the_mode_of_an_option_file_applies() {
    let bench = Bench::new();
    let authority = bench.path("ca.pem");
    fs::write(&authority, "").unwrap();
    let authority = format!("ssl-ca={}\n", authority.display());
    let verify = format!("ssl-mode=VERIFY_CA\n{authority}");
    for trap in [Trap::CachingSha2, Trap::Sha256, Trap::Clear] {
        for lines in [
            "ssl-mode=REQUIRED\n",
            "loose_ssl_mode=required\n",
            "ssl\n",
            &verify,
            &authority,
        ] {
            let server = FakeLogin::start("127.0.0.1", trap);
            let output = bench.run("127.0.0.1", &server, lines, &[]);
            assert_eq!(server.received(), Vec::<String>::new(), "{trap:?} {lines}");
            assert_refused(&output, &["error 2026"]);
        }
    }
    // The command line has precedence.
    let server = FakeLogin::start("127.0.0.1", Trap::CachingSha2);
    bench.run("127.0.0.1", &server, &verify, &["--mysql-ssl=disabled"]);
    assert!(has_password(&server));
}

#[test]
fn settings_that_cannot_be_followed_are_refused() {
    let bench = Bench::new();
    let server = FakeLogin::start("127.0.0.1", Trap::CachingSha2);
    for (lines, part) in [
        ("ssl-mode=ALWAYS\n", "ssl-mode=ALWAYS: use DISABLED"),
        ("ssl-mode=VERIFY_CA\n", "needs the certificate of the CA"),
        ("ssl-fp=0123\n", "`ssl-fp` is not supported"),
        (
            "!include /etc/mysql/my.cnf\n",
            "!include and !includedir are not supported",
        ),
        (
            "server-public-key-path=/nonexistent\n",
            "/nonexistent: no such file",
        ),
    ] {
        assert_refused(&bench.run("127.0.0.1", &server, lines, &[]), &[part]);
    }
    assert_eq!(server.received(), Vec::<String>::new());
}

#[test]
fn a_password_leaves_the_host_only_under_a_trusted_key() {
    away_from_loopback(|address| {
        let bench = Bench::new();
        for trap in [Trap::CachingSha2, Trap::Sha256, Trap::Clear, Trap::Tls] {
            let server = FakeLogin::start(address, trap);
            let key = server.public_key();
            let with_tls = format!("ssl-mode=PREFERRED\nserver-public-key-path={}\n", key.display());
            for lines in [
                "",
                "ssl-mode=PREFERRED\n",
                "ssl-mode=DISABLED\n",
                "enable-cleartext-plugin\n",
                &with_tls,
            ] {
                let output = bench.run(address, &server, lines, &[]);
                assert_eq!(server.received(), Vec::<String>::new(), "{trap:?} {lines}");
                assert_refused(&output, &["error 2061", "--mysql-ssl=verify_ca"]);
            }
        }
        for trap in KEYS {
            for (lines, options) in [
                ("", &["--mysql-get-server-public-key"][..]),
                ("get-server-public-key=1\n", &[]),
            ] {
                let server = FakeLogin::start(address, trap);
                bench.run(address, &server, lines, options);
                assert!(has_password(&server), "{trap:?} {lines}");
            }
        }
        // The user has permitted it.
        let server = FakeLogin::start(address, Trap::Tls);
        bench.run(address, &server, "ssl-mode=REQUIRED\n", &[]);
        assert!(has_password(&server));
    });
}

#[test]
fn under_a_pinned_key_only_its_owner_can_read_the_password() {
    away_from_loopback(|address| {
        let bench = Bench::new();
        for trap in KEYS {
            let owner = FakeLogin::start(address, trap);
            let other = FakeLogin::start(address, trap);
            let key = owner.public_key().display().to_string();
            for option in ["--mysql-server-public-key-path", "server-public-key-path"] {
                let option = format!("{option}={key}");
                let (lines, options) = match option.starts_with("--") {
                    true => ("", vec![option.as_str()]),
                    false => (option.as_str(), vec![]),
                };
                for server in [&owner, &other] {
                    bench.run(address, server, lines, &options);
                }
            }
            assert_eq!(owner.received(), [PASSWORD, PASSWORD]);
            assert_eq!((other.received().len(), has_password(&other)), (2, false));
        }
        // These plugins do not use the key.
        let clear = FakeLogin::start(address, Trap::Clear);
        let key = format!("server-public-key-path={}\n", clear.public_key().display());
        bench.run(address, &clear, &key, &[]);
        let enabled = format!("{key}enable-cleartext-plugin\n");
        assert_refused(&bench.run(address, &clear, &enabled, &[]), &["error 2061"]);
        // Without a key that it can load, the library would request one.
        fs::write(
            bench.path("cut.pem"),
            &fs::read(clear.public_key()).unwrap()[..200],
        )
        .unwrap();
        let cut = format!("server-public-key-path={}\n", bench.path("cut.pem").display());
        let output = bench.run(address, &clear, &cut, &[]);
        assert_refused(&output, &["cut.pem: not an RSA public key in PEM format"]);
        assert_eq!(clear.received(), Vec::<String>::new());
    });
}

#[test]
fn over_loopback_the_server_may_send_its_key() {
    let bench = Bench::new();
    for address in ["127.0.0.1", "::1"] {
        for trap in KEYS {
            let server = FakeLogin::start(address, trap);
            bench.run(address, &server, "", &[]);
            assert!(has_password(&server), "{address} {trap:?}");
        }
    }
}

#[test]
fn a_server_gets_no_local_file() {
    let bench = Bench::new();
    let server = FakeLogin::start("127.0.0.1", Trap::LocalFile);
    let output = bench.run("127.0.0.1", &server, "local-infile=1\n", &[]);
    let sent = server.received();
    // A statement, and the empty packet in place of the file.
    assert!(sent.len() >= 2 && sent[1].is_empty(), "{sent:?}");
    assert_refused(&output, &["that is all"]);
}

#[test]
fn a_relative_option_file_is_that_of_the_working_directory() {
    let bench = Bench::new();
    let server = FakeLogin::start("127.0.0.1", Trap::CachingSha2);
    let address = format!("host=127.0.0.1\nport={}\n", server.port());
    bench.file("client.cnf", &address);
    // The places in which the client library looks for a name without a directory.
    for name in ["home/.client.cnf", "home/client.cnf"] {
        fs::create_dir_all(bench.path("home")).unwrap();
        bench.file(name, &format!("{address}password=of-another-file\n"));
    }
    generator(RUN)
        .arg("--defaults-file=client.cnf")
        .current_dir(bench.0.path())
        .env("HOME", bench.path("home"))
        .env("MYSQL_HOME", bench.path("home"))
        .output()
        .unwrap();
    assert_eq!(server.received(), ["\u{2}", PASSWORD]);
}

#[test]
fn external_generators_do_not_send_the_password_under_an_untrusted_key() {
    away_from_loopback(|address| {
        let bench = Bench::new();
        let server = FakeLogin::start(address, Trap::CachingSha2);
        let words = "cleanup oltp_point_select --generator=sysbench";
        let output = bench.run_words(words, address, &server, "", &[]);
        let part = "sysbench sends the password without TLS under a key that the server sends";
        assert_refused(&output, &[part]);
        assert_eq!(server.received(), Vec::<String>::new());
        let permission = ["--mysql-get-server-public-key"];
        bench.run_words(words, address, &server, "", &permission);
        assert!(has_password(&server));
    });
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_go_client_follows_the_option_file() {
    let bench = Bench::new();
    let program = bench.path("loadprint-go-lookup");
    if !has_go_client(&program) {
        return;
    }
    let words = format!("prepare command --prepare-command={}", program.display());
    away_from_loopback(|address| {
        let server = FakeLogin::start(address, Trap::CachingSha2);
        let key = format!("server-public-key-path={}\n", server.public_key().display());
        for (lines, part) in [
            (
                "",
                "without TLS the password is not sent under a key that the server sends",
            ),
            (
                "ssl-mode=REQUIRED\n",
                "TLS requested but server does not support TLS",
            ),
            ("ssl-mode=VERIFY_IDENTITY\nssl-ca=/dev/null\n", "/dev/null"),
        ] {
            let output = bench.run_words(&words, address, &server, lines, &[]);
            assert_refused(&output, &[part]);
        }
        assert_eq!(server.received(), Vec::<String>::new());
        bench.run_words(&words, address, &server, &key, &[]);
        assert_eq!(server.received(), [PASSWORD]);
        bench.run_words(&words, address, &server, "get-server-public-key\n", &[]);
        assert_eq!(server.received()[1..], ["\u{2}", PASSWORD]);
    });
}
