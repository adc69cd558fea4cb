//! Failures of a run: one line with the fix, exit status 2 (or 128 + signal), and the measurements
//! up to then are kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::common::hostile::Act;
use crate::common::hostile::Hostile;
use crate::common::hostile::Moment;
use crate::hostile::through;
use crate::prelude::*;

/// Runs the generator without the test's connection options.
fn without_account(words: &str) -> Output {
    generator(words).output().unwrap()
}

#[test]
fn wrong_credentials() {
    let bench = Bench::new("credentials");
    let secret = bench.private_file("secret", "not-the-password\n");
    let socket = variable("LOADPRINT_TEST_SOCKET");
    let out = bench.path("run");
    let output = without_account(&format!(
        "run oltp_read_write --mysql-socket={socket} --mysql-user=stranger --mysql-password-file={secret} --out={}",
        out.display()
    ));
    assert_refused(&output, &["error 1045", "--mysql-password-file"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("not-the-password"));
    assert!(!out.exists(), "a run directory without a measurement");
}

#[test]
fn a_password_that_others_can_read() {
    let bench = Bench::new("readable");
    let secret = bench.path("secret");
    fs::write(&secret, "word\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    for option in ["--mysql-password-file", "--defaults-file"] {
        let output = without_account(&format!("run oltp_read_write {option}={}", secret.display()));
        assert_refused(&output, &[option, "chmod 600"]);
    }
}

#[test]
fn no_server() {
    let output = without_account("run oltp_read_write --mysql-socket=/nonexistent/mysql.sock");
    assert_refused(&output, &["error 2002", "check that the server runs"]);
    let output = without_account("run oltp_read_write --mysql-host=127.0.0.1 --mysql-port=1");
    assert_refused(&output, &["127.0.0.1:1", "error 2003"]);
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
    assert_refused(&unknown, &["error 1049", "prepare"]);
    // Makes the database, not the tables of the other workload.
    bench.succeed("prepare arm_insert");
    for mode in ["auto", "disable"] {
        bench.refused(
            &format!("run oltp_point_select --time=1 --db-ps-mode={mode}"),
            &["sbtest1 is missing", "prepare"],
        );
    }
    bench.refused("prepare arm_insert", &["error 1050", "cleanup"]);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_connection_lost_by_an_ignored_error_is_opened_again() {
    let bench = Bench::new("reconnect");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    // The connection that reads the counters receives a tenth of it.
    let act = Act::CloseAfter(1_000_000);
    let server = Hostile::start(&variable("LOADPRINT_TEST_SOCKET"), 0, Moment::Later, act);
    let mut command = through(
        &server,
        &bench,
        "run oltp_read_write --table-size=1000 --threads=1 --events=200 --mysql-ignore-errors=2006,2013 --format=json",
    );
    let result = printed_json(&command.output().unwrap());
    assert_eq!(
        server.accepted(),
        3,
        "the reader, the thread, and the thread again"
    );
    assert_eq!(
        (&result["reconnects"], &result["events"]),
        (&1.into(), &200.into())
    );
    assert_eq!(result["errors_by_code"]["2013"], 1);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn an_interrupted_run_keeps_its_results() {
    let bench = Bench::prepared("interrupted", "oltp_read_write --table-size=1000");
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let run = bench.path(signal);
        let words = format!(
            "run oltp_point_select --table-size=1000 --time=600 --out={}",
            run.display()
        );
        let mut running = Running::start(bench.command(&words));
        running.wait_for_transactions();
        running.signal(signal);
        let output = running.end();
        assert_eq!(output.status.code(), Some(status));
        assert!(only_line(&output).contains("interrupted"));
        let result = json(&run.join("load/result.json"));
        assert!(result["events"].as_u64() > Some(0) && result["seconds"].as_f64() > Some(1.0));
        let about = json(&run.join("run.json"));
        assert_eq!(about["status"], "failed");
        assert!(about["reason"].as_str().unwrap().contains("interrupted"));
    }
}
