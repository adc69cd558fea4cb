//! Data prepared by the real sysbench serve this generator, and the other way round.

use std::process::Command;

use crate::common::Bench;
use crate::common::variable;

/// The account as sysbench takes it; its password, where there is one, stands in the test's own option file.
fn sysbench(bench: &Bench, verb: &str) {
    let (mut user, mut password) = ("root".to_owned(), String::new());
    if let Ok(file) = std::env::var("LOADPRINT_TEST_DEFAULTS") {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            match line
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim().trim_matches('"')))
            {
                Some(("user", value)) => user = value.to_owned(),
                Some(("password", value)) => password = value.to_owned(),
                _ => {}
            }
        }
    }
    let output = Command::new("sysbench")
        .args([
            "oltp_read_write",
            "--tables=2",
            "--table-size=2000",
            "--threads=2",
            "--rand-type=uniform",
            "--events=20",
            "--time=0",
        ])
        .arg(format!("--mysql-socket={}", variable("LOADPRINT_TEST_SOCKET")))
        .arg(format!("--mysql-db={}", bench.database()))
        .args([
            format!("--mysql-user={user}"),
            format!("--mysql-password={password}"),
        ])
        .arg(verb)
        .output()
        .expect("sysbench: apt-get install sysbench");
    assert!(
        output.status.success(),
        "sysbench {verb}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

const OURS: &str = "oltp_read_write --tables=2 --table-size=2000 --threads=2";

#[test]
fn data_sets_are_exchanged_with_sysbench() {
    let bench = Bench::new("sysbench");
    bench.succeed(&format!("prepare {OURS}"));
    sysbench(&bench, "run");
    sysbench(&bench, "cleanup");

    sysbench(&bench, "prepare");
    bench.succeed(&format!("warmup {OURS}"));
    let text = bench.succeed(&format!("run {OURS} --events=20 --rand-type=uniform"));
    assert!(text.contains("total number of events:              20"), "{text}");
    bench.succeed(&format!("cleanup {OURS}"));
    // Nothing is left: sysbench can prepare again.
    sysbench(&bench, "prepare");
}
