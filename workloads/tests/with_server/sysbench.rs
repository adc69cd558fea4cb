//! This generator runs every script on the tables that the real sysbench prepared; `statements` runs
//! sysbench on tables of this generator.

use std::env;
use std::fs;
use std::process::Command;

use crate::prelude::*;

/// The scripts that use the same tables. Deletes come last.
const SCRIPTS: [&str; 10] = [
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "select_random_points",
    "select_random_ranges",
    "oltp_insert",
    "oltp_delete",
];

/// Runs sysbench on the test's database and expects success without a FATAL. The account is in a
/// file of mode 0600.
pub fn sysbench(bench: &Bench, words: &str) -> String {
    let mut account = vec![("user".to_owned(), "root".to_owned())];
    if let Ok(file) = env::var("LOADPRINT_TEST_DEFAULTS") {
        let text = fs::read_to_string(file).unwrap();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        account = pairs
            .map(|(key, value)| (key.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
            .filter(|(key, _)| key == "user" || key == "password")
            .collect();
    }
    let lines = account
        .iter()
        .map(|(key, value)| format!("mysql-{key}={value}\n"));
    let config = bench.private_file("sysbench.cnf", &lines.collect::<String>());
    let output = Command::new("sysbench")
        .arg(format!("--config-file={config}"))
        .arg(format!("--mysql-socket={}", variable("LOADPRINT_TEST_SOCKET")))
        .arg(format!("--mysql-db={}", bench.database()))
        .args(words.split_whitespace())
        .output()
        .expect("sysbench: apt-get install sysbench");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && !text.contains("FATAL"),
        "sysbench {words}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// The table options of a script: the random selects use one table only.
fn tables(script: &str) -> &'static str {
    match script.starts_with("select") {
        true => "--table-size=2000 --threads=2 --rand-type=uniform",
        false => "--tables=2 --table-size=2000 --threads=2 --rand-type=uniform",
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn our_scripts_run_on_tables_of_sysbench() {
    let bench = Bench::new("sysbench_to_ours");
    // Creates the database, which sysbench does not.
    bench.succeed("prepare arm_insert");
    sysbench(&bench, &format!("{} {} prepare", SCRIPTS[0], tables(SCRIPTS[0])));
    let checked = bench.succeed(&format!("check {} {}", SCRIPTS[0], tables(SCRIPTS[0])));
    assert!(!checked.contains("BROKEN"), "{checked}");
    bench.succeed(&format!("warmup {} {}", SCRIPTS[0], tables(SCRIPTS[0])));
    for script in SCRIPTS {
        let text = bench.succeed(&format!("run {script} {} --events=40", tables(script)));
        assert!(
            text.contains("total number of events:              40"),
            "{script}: {text}"
        );
    }
    bench.succeed("run lookup --tables=2 --table-size=2000 --events=40");
    bench.succeed(&format!("cleanup {} {}", SCRIPTS[0], tables(SCRIPTS[0])));
    // No table is left: sysbench can prepare again.
    sysbench(&bench, &format!("{} {} prepare", SCRIPTS[0], tables(SCRIPTS[0])));
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn scripts_with_separate_tables_exchange_them_too() {
    let bench = Bench::new("own_tables");
    let insert = "oltp_insert --auto-inc=off --tables=2 --threads=2";
    let bulk = "bulk_insert --threads=2";
    for (script, events) in [(insert, 40), (bulk, 100_000)] {
        bench.succeed(&format!("prepare {script}"));
        sysbench(&bench, &format!("{script} --events={events} --time=0 run"));
        sysbench(&bench, &format!("{script} cleanup"));
        sysbench(&bench, &format!("{script} prepare"));
        bench.succeed(&format!("run {script} --events={events}"));
        if script == bulk {
            // The rows of partly filled buffers are stored too, each with k = id from 1 on.
            let checked = bench.succeed(&format!("check {script}"));
            assert!(!checked.contains("BROKEN"), "{checked}");
        }
        bench.succeed(&format!("cleanup {script}"));
    }
}
