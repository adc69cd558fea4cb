//! Everything that goes wrong is one line with the mend and exit status 2 (or 128 + signal), and what was measured is kept.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use crate::common::Bench;
use crate::common::json;
use crate::common::only_line;
use crate::common::proxy::Proxy;
use crate::common::variable;

fn refused(output: &Output, parts: &[&str]) {
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let line = only_line(output);
    for part in parts {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
}

/// The generator without the test's connection options.
fn bare(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadprint-load"));
    command
        .args(words.split_whitespace())
        .env_remove("MYSQL_PWD")
        .output()
        .unwrap()
}

#[test]
fn wrong_credentials() {
    let bench = Bench::new("credentials");
    let secret = bench.path("secret");
    fs::write(&secret, "not-the-password\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let socket = variable("LOADPRINT_TEST_SOCKET");
    let out = bench.path("run");
    let output = bare(&format!(
        "run oltp_read_write --mysql-socket={socket} --mysql-user=nobody --mysql-password-file={} --out={}",
        secret.display(),
        out.display()
    ));
    refused(&output, &["error 1045", "--mysql-password-file"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("not-the-password"));
    assert!(!out.exists(), "nothing was measured, nothing is left");
}

#[test]
fn a_password_that_others_can_read() {
    let bench = Bench::new("readable");
    let secret = bench.path("secret");
    fs::write(&secret, "word\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    for option in ["--mysql-password-file", "--defaults-file"] {
        let output = bare(&format!("run oltp_read_write {option}={}", secret.display()));
        refused(&output, &[option, "chmod 600"]);
    }
}

#[test]
fn no_server() {
    let output = bare("run oltp_read_write --mysql-socket=/nonexistent/mysql.sock");
    refused(&output, &["error 2002", "is the server running"]);
    let output = bare("run oltp_read_write --mysql-host=127.0.0.1 --mysql-port=1");
    refused(&output, &["127.0.0.1:1", "error 2003"]);
}

#[test]
fn an_unknown_database_then_missing_tables() {
    let bench = Bench::new("missing");
    // The later --mysql-db wins.
    let mut command = bench.command("run oltp_read_write");
    let unknown = command
        .arg("--mysql-db=loadprint_no_such_database")
        .output()
        .unwrap();
    refused(&unknown, &["error 1049", "prepare"]);
    // Makes the database, not the tables of the other workload.
    bench.succeed("prepare arm_insert");
    for mode in ["auto", "disable"] {
        let output = bench.load(&format!("run oltp_point_select --time=1 --db-ps-mode={mode}"));
        refused(&output, &["sbtest1 is missing", "prepare"]);
    }
    refused(&bench.load("prepare arm_insert"), &["error 1050", "cleanup"]);
}

/// Starts a run and waits for a line of a second in which something was done: on a machine that stalls not every one is.
fn started(mut command: Command) -> Child {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    lines
        .map(Result::unwrap)
        .find(|line| line.contains(" tps: ") && !line.contains(" tps: 0.00 "))
        .expect("a line per second");
    child
}

#[test]
fn a_server_that_goes_away_leaves_what_was_measured() {
    let bench = Bench::new("lost");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let front = bench.path("front.sock");
    let proxy = Proxy::start(&front, &variable("LOADPRINT_TEST_SOCKET"));
    let run = bench.path("run");
    let words = "run oltp_point_select --table-size=1000 --threads=2 --time=600";
    // The later --mysql-socket wins.
    let mut command = bench.command(words);
    command
        .arg(format!("--mysql-socket={}", front.display()))
        .arg(format!("--out={}", run.display()));
    let child = started(command);
    proxy.cut();
    let output = child.wait_with_output().unwrap();
    refused(&output, &["the server went away"]);
    // While it waits for an answer, or as it asks.
    let line = only_line(&output);
    assert!(
        line.contains("error 2013") || line.contains("error 2006"),
        "{line}"
    );
    let result = json(&run.join("load/result.json"));
    assert!(result["events"].as_u64() > Some(0));
    assert_eq!(result["status"], "failed");
    assert_eq!(json(&run.join("run.json"))["status"], "failed");
    let server = json(&run.join("load/server.json"));
    assert!(server["status_begin"].is_object() && server["status_end"].is_null());
}

#[test]
fn a_lost_connection_in_the_list_of_ignored_errors_is_opened_again() {
    let bench = Bench::new("reconnect");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let front = bench.path("front.sock");
    // The reader of the counters gets a tenth of it.
    let proxy = Proxy::cutting_after(&front, &variable("LOADPRINT_TEST_SOCKET"), 1_000_000);
    let mut command = bench.command("run oltp_read_write --table-size=1000 --threads=1 --events=200 --mysql-ignore-errors=2006,2013 --format=json");
    command.arg(format!("--mysql-socket={}", front.display()));
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        proxy.accepted(),
        3,
        "the reader, the thread, and the thread again"
    );
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&result["reconnects"], &result["events"]),
        (&1.into(), &200.into())
    );
    assert_eq!(result["errors_by_code"]["2013"], 1);
}

#[test]
fn an_interrupted_run_keeps_its_results() {
    let bench = Bench::new("interrupted");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let run = bench.path(signal);
        let words = format!(
            "run oltp_point_select --table-size=1000 --time=600 --out={}",
            run.display()
        );
        let child = started(bench.command(&words));
        let killed = Command::new("kill")
            .args([format!("-{signal}"), child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status));
        assert!(only_line(&output).contains("interrupted"));
        let result = json(&run.join("load/result.json"));
        assert!(result["events"].as_u64() > Some(0) && result["seconds"].as_f64() > Some(1.0));
        let about = json(&run.join("run.json"));
        assert_eq!(about["status"], "failed");
        assert!(about["reason"].as_str().unwrap().contains("interrupted"));
    }
}
