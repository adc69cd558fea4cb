//! The measured clock of the server.

use std::fs;

use serde_json::Value;
use serde_json::json;

use crate::common::json as read_json;
use crate::prelude::*;

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_server_s_clock_is_measured_before_and_after_a_run() {
    let bench = Bench::prepared("clock", "oltp_read_write --table-size=1000");
    let words = "run oltp_point_select --table-size=1000 --warmup-time=0.2 --events=100";
    bench.recorded(words, "run");
    let run = bench.path("run");
    let load = run.join("load");
    let (clock, phases) = (
        json_lines(&load.join("clock.jsonl")),
        json_lines(&load.join("phases.jsonl")),
    );
    assert_eq!(clock.len(), 2);
    for (line, at) in clock.iter().zip(["before", "after"]) {
        assert_eq!(
            (&line["at"], &line["boot_id"]),
            (&json!(at), &phases[0]["boot_id"])
        );
        let value = |key: &str| line[key].as_i64().unwrap();
        // One host: both clocks are the same.
        let difference = value("server_realtime_ns") - value("realtime_ns");
        assert!(difference.abs() <= value("bound_ns"), "{line}");
        assert!(value("bound_ns") > 1000, "{line}");
    }
    let stamp = |line: &Value| line["monotonic_ns"].as_i64().unwrap();
    assert!(stamp(&clock[0]) < stamp(&phases[0]) && stamp(&clock[1]) > stamp(phases.last().unwrap()));
    assert!(read_json(&run.join("manifest.json"))["files"]["load/clock.jsonl"]["bytes"].as_u64() > Some(0));
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_clock_that_cannot_be_recorded_costs_its_file_only() {
    let bench = Bench::prepared("no_clock", "oltp_read_write --table-size=1000");
    let run = bench.path("blocked");
    fs::create_dir_all(run.join("load/clock.jsonl")).unwrap();
    let words = format!(
        "run oltp_point_select --table-size=1000 --events=100 --out={}",
        run.display()
    );
    let output = bench.load(&words);
    assert_succeeded(&output, &words);
    let line = only_line(&output);
    assert!(
        line.contains("warning: no clock.jsonl") && line.contains("before the run"),
        "{line}"
    );
    assert_eq!(read_json(&run.join("load/result.json"))["status"], "complete");

    // The connection that reads the counters is the first one; the server closes it during the run.
    let sql = Sql::open(&bench);
    let run = bench.path("killed");
    let words = format!(
        "run oltp_point_select --table-size=1000 --time=4 --out={}",
        run.display()
    );
    let mut running = Running::start(bench.command(&words));
    running.wait_for_transactions();
    let first =
        "SELECT MIN(id) FROM performance_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()";
    sql.rows(&format!("KILL {}", sql.number(first)));
    let output = running.end();
    assert_succeeded(&output, &words);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        json_lines(&run.join("load/clock.jsonl")).len(),
        2,
        "it is opened again"
    );
}
