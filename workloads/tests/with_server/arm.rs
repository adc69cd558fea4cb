//! ARM inserts: statements by the server's counters for every mode and scenario, rows in the
//! tables, retries without duplicates.

use std::process::Stdio;

use serde_json::Value;

use crate::prelude::*;

/// Name, parent, metrics, contexts.
const SCENARIOS: [(&str, bool, u64, u64); 8] = [
    ("simple", false, 0, 0),
    ("parent", true, 0, 0),
    ("metrics", false, 3, 0),
    ("ctx1", false, 0, 1),
    ("ctx5", false, 0, 5),
    ("ctx10", false, 0, 10),
    ("ctx20", false, 0, 20),
    ("custom", true, 4, 25),
];
const EVENTS: u64 = 230;
const PER_COMMIT: u64 = 50;

/// The INSERTs of a run.
fn inserts(mode: &str, metrics: u64, contexts: u64) -> u64 {
    match mode {
        "row" => EVENTS * (1 + metrics + contexts),
        "multi" => EVENTS * (1 + metrics.min(1) + contexts.min(1)),
        _ => EVENTS.div_ceil(PER_COMMIT) * (1 + metrics.min(1) + contexts.min(1)),
    }
}

fn run(bench: &Bench, name: &str, words: &str) -> (Value, Value) {
    bench.recorded(&format!("run arm_insert {words}"), name)
}

#[test]
fn every_mode_and_scenario_sends_its_number_of_statements() {
    let bench = Bench::prepared("arm_modes", "arm_insert");
    let sql = Sql::open(&bench);
    for mode in ["row", "multi", "bulk"] {
        for ids in ["client", "server"] {
            for (scenario, parent, metrics, contexts) in SCENARIOS {
                let custom = if scenario == "custom" {
                    "--parent --metrics=4 --contexts=25"
                } else {
                    ""
                };
                for table in ["arm_tran", "arm_metric", "arm_ctx"] {
                    sql.rows(&format!("TRUNCATE TABLE {table}"));
                }
                let name = format!("{mode}-{ids}-{scenario}");
                let (result, server) = run(
                    &bench,
                    &name,
                    &format!(
                        "--scenario={scenario} {custom} --arm-mode={mode} --ids={ids} --threads=2 --events={EVENTS} \
                         --records-per-commit={PER_COMMIT} --verify --report-interval=0"
                    ),
                );
                let rows = EVENTS * (1 + metrics + contexts);
                let commits = EVENTS.div_ceil(PER_COMMIT);
                let count = |table: &str| sql.number(&format!("SELECT COUNT(*) FROM {table}")) as u64;
                for (measured, expected) in [
                    (number(&result, "events"), EVENTS),
                    (number(&result, "rows"), rows),
                    (number(&result, "commits"), commits),
                    (growth(&server, "Com_commit"), commits),
                    (growth(&server, "Com_insert"), inserts(mode, metrics, contexts)),
                    // The statement that reads the counters is the only other one.
                    (growth(&server, "Questions"), number(&result, "queries") + 1),
                    (count("arm_tran"), EVENTS),
                    (count("arm_metric"), EVENTS * metrics),
                    (count("arm_ctx"), EVENTS * contexts),
                ] {
                    assert_eq!(measured, expected, "{name}: {result}");
                }
                assert_eq!(
                    result["details"]["verified"], true,
                    "{name}: {}",
                    result["details"]
                );
                let parents = sql.number("SELECT COUNT(parent_corr) FROM arm_tran") as u64;
                assert_eq!(parents, if parent { EVENTS } else { 0 }, "{name}");
                bench.succeed(&format!(
                    "check arm_insert --check-strict --scenario={scenario} {custom}"
                ));
            }
        }
    }
}

#[test]
fn details_of_split_bulk_statements_belong_to_their_records() {
    let bench = Bench::prepared("arm_cut", "arm_insert");
    for ids in ["client", "server"] {
        let (result, server) = run(
            &bench,
            ids,
            &format!(
                "--scenario=ctx5 --arm-mode=bulk --ids={ids} --threads=2 --events=20000 --records-per-commit=10000"
            ),
        );
        // 10,000 records of more than 100 bytes each are more than one statement of 512 KiB; their
        // 50,000 details more than four.
        assert_eq!(number(&result, "commits"), 2);
        assert!(growth(&server, "Com_insert") > 2 * (2 + 4), "{ids}");
        bench.succeed("check arm_insert --check-strict --scenario=ctx5");
    }
    let sql = Sql::open(&bench);
    assert_eq!(sql.number("SELECT COUNT(*) FROM arm_tran"), 40_000);
}

#[test]
fn a_mix_draws_the_scenario_of_each_record() {
    let bench = Bench::prepared("arm_mix", "arm_insert");
    let (result, _) = run(
        &bench,
        "mix",
        "--mix=simple:3,ctx5:1,custom:1 --metrics=2 --events=2000 --threads=2 --verify --rand-seed=7",
    );
    assert_eq!(result["details"]["verified"], true);
    let sql = Sql::open(&bench);
    let with = |table: &str| sql.number(&format!("SELECT COUNT(DISTINCT tran_id) FROM {table}"));
    // Six standard deviations of a binomial with p = 1/5: the seed does not determine how many
    // records each thread stores.
    assert!((293..508).contains(&with("arm_ctx")) && (293..508).contains(&with("arm_metric")));
    bench.succeed("check arm_insert --check-strict --mix=simple,ctx5,custom --metrics=2");
    let broken = bench.load("check arm_insert --check-strict --scenario=simple");
    assert_eq!(broken.status.code(), Some(1));
}

#[test]
fn check_reports_details_without_a_record() {
    let bench = Bench::prepared("arm_orphans", "arm_insert");
    run(&bench, "run", "--scenario=ctx5 --events=100");
    let sql = Sql::open(&bench);
    sql.rows("DELETE FROM arm_tran ORDER BY id LIMIT 1");
    sql.rows("DELETE FROM arm_ctx WHERE pos = 3 ORDER BY tran_id DESC LIMIT 1");
    let output = bench.load("check arm_insert");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "passes  each row of arm_metric belongs to a record",
        "BROKEN  each row of arm_ctx belongs to a record: 5 do not",
        "BROKEN  details of a record are numbered without gaps: gaps in 1 records",
        "1 records with parent 0, metrics 0, contexts 4",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_lock_wait_writes_the_buffer_again_without_duplicates() {
    let bench = Bench::prepared("arm_retry", "arm_insert");
    for (mode, ids) in [("multi", "client"), ("bulk", "server"), ("row", "server")] {
        let sql = Sql::open(&bench);
        let before = sql.number("SELECT COUNT(*) FROM arm_ctx");
        let timeout = sql.number("SELECT @@global.innodb_lock_wait_timeout");
        // New connections wait one second. The gap after the last row is locked, so that every
        // INSERT of a detail waits.
        sql.rows("SET GLOBAL innodb_lock_wait_timeout = 1");
        sql.rows("BEGIN");
        sql.rows("SELECT * FROM arm_ctx WHERE tran_id >= 0 FOR UPDATE");
        let run = bench.path(mode);
        let words = format!(
            "run arm_insert --scenario=ctx5 --arm-mode={mode} --ids={ids} --events=100 --records-per-commit=10 --out={}",
            run.display()
        );
        let mut running = Running::start(bench.command(&words));
        running.wait_for_line(|line| line.contains("err/s: ") && !line.contains("err/s: 0.00"));
        sql.rows("ROLLBACK");
        sql.rows(&format!("SET GLOBAL innodb_lock_wait_timeout = {timeout}"));
        assert_succeeded(&running.end(), &words);
        let result = json(&run.join("load/result.json"));
        assert_eq!(number(&result, "events"), 100, "{mode} {ids}");
        assert_eq!(
            result["errors_by_code"]["1205"],
            number(&result, "errors"),
            "{mode} {ids}"
        );
        assert_eq!(
            sql.number("SELECT COUNT(*) FROM arm_ctx") - before,
            500,
            "{mode} {ids}"
        );
        bench.succeed("check arm_insert --check-strict --scenario=ctx5");
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_deadlock_writes_the_buffer_again_without_duplicates() {
    let bench = Bench::prepared("arm_deadlock", "arm_insert");
    let sql = Sql::open(&bench);
    sql.rows("BEGIN");
    // Fifty changed rows against the writer's one: InnoDB chooses the writer as the victim.
    sql.rows("UPDATE arm_tran_def SET name = CONCAT(name, '!')");
    sql.rows("SELECT * FROM arm_ctx WHERE tran_id >= 0 FOR UPDATE");
    let child = bench
        .command("run arm_insert --scenario=ctx5 --events=100 --records-per-commit=10 --format=json")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The writer has inserted its first record and waits for the gap of its details. (innodb_trx
    // would not show this: the server caches it until no query has read it for 0.1 s.)
    sql.wait_until(
        "the writer waits for a lock",
        "SELECT COUNT(*) FROM performance_schema.data_lock_waits",
        |waits| waits > 0,
    );
    sql.rows("SELECT * FROM arm_tran FOR UPDATE");
    sql.rows("ROLLBACK");
    let result = printed_json(&child.wait_with_output().unwrap());
    assert_eq!(result["errors_by_code"]["1213"], 1);
    assert_eq!(number(&result, "events"), 100);
    assert_eq!(sql.number("SELECT COUNT(*) FROM arm_ctx"), 500);
    // The same ids as before the deadlock, without a gap.
    assert_eq!(sql.number("SELECT MAX(id) FROM arm_tran"), 100);
    bench.succeed("check arm_insert --check-strict --scenario=ctx5");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn buffers_filled_within_the_time_are_written_after_it_and_counted() {
    let bench = Bench::prepared("arm_drain", "arm_insert");
    // Both buffers of 50 records with 21 rows each are full before the first one is written.
    let (result, server) = run(
        &bench,
        "run",
        "--scenario=ctx20 --arm-mode=row --threads=1 --time=3 --records-per-commit=50",
    );
    let seconds = |key: &str| result[key].as_f64().unwrap();
    assert!(seconds("drain_seconds") > 0.0 && seconds("seconds") - seconds("drain_seconds") >= 3.0);
    assert!(
        result["per_thread"][0]["seconds"].as_f64().unwrap() <= seconds("seconds"),
        "the last commit is inside the measurement"
    );
    let sql = Sql::open(&bench);
    let records = sql.number("SELECT COUNT(*) FROM arm_tran") as u64;
    assert_eq!(number(&result, "events"), records);
    assert!(records >= 2 * 50, "the drain is counted: {records}");
    assert_eq!(growth(&server, "Com_commit"), records / 50);
    assert_eq!(result["details"]["producer_bound"], false);
    assert!(result["details"]["queue_full_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn wrong_tables_are_refused_before_the_run() {
    let bench = Bench::prepared("arm_wrong", "oltp_read_write --table-size=10");
    bench.refused("run arm_insert", &["prepare arm_insert"]);
    bench.succeed("prepare arm_insert");
    Sql::open(&bench).rows("ALTER TABLE arm_ctx DROP COLUMN val");
    bench.refused("run arm_insert", &["arm_ctx has the columns tran_id, pos, pdef;"]);
}
