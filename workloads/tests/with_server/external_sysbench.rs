//! The real sysbench as an external generator: its figures in our run directory, and runs that it
//! fails.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::prelude::*;

const SYSBENCH: &str = "--generator=sysbench --tables=2 --table-size=2000 --threads=2 --rand-type=uniform";

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_run_of_sysbench_has_the_files_of_our_runs() {
    let bench = Bench::new("external_run");
    bench.succeed(&format!("prepare oltp_read_write {SYSBENCH}"));
    // Two programs read their clocks: a program that stalls sees another window. Ten such stalls in
    // a row fail the test.
    let agreed = (0..10).any(|round| windows_agree(&bench, &format!("run-{round}")));
    assert!(agreed, "the windows never agreed");
    bench.succeed(&format!("cleanup oltp_read_write {SYSBENCH}"));
}

/// Runs sysbench once; true if the window that it reports, the recorded one and the server's count
/// of transactions agree.
fn windows_agree(bench: &Bench, name: &str) -> bool {
    let run = bench.path(name);
    let words = format!("run oltp_read_write {SYSBENCH} --warmup-time=1 --time=3 --histogram");
    let (result, server) = bench.recorded(&words, name);
    assert_eq!(
        (result["generator"].as_str(), result["status"].as_str()),
        (Some("sysbench"), Some("complete"))
    );
    assert_eq!(result["operation"], "sysbench event (one transaction)");
    assert_eq!(json(&run.join("run.json"))["generator"], "sysbench");
    let count = |name: &str| result[name].as_u64().unwrap();
    let events = count("events");
    // 20 client statements a transaction, some more for one that a lock error repeats. sysbench
    // reads its counters while its threads run.
    let started = events + count("errors");
    for (name, each) in [("queries", 20), ("reads", 14), ("writes", 4)] {
        let expected = (each * events).saturating_sub(40)..=each * started + 40;
        assert!(expected.contains(&count(name)), "{name}: {result}");
    }
    assert!(result["commits"].is_null() && result["protocol"].is_null());
    let seconds = result["seconds"].as_f64().unwrap();
    for name in ["min", "mean", "p50", "p95", "p99", "p999", "max"] {
        assert!(result["latency_ms"][name].as_f64().unwrap() > 0.0, "{name}");
    }
    let phases = json_lines(&run.join("load/phases.jsonl"));
    let names = phases
        .iter()
        .map(|line| (line["phase"].as_str(), line["event"].as_str()));
    let expected = [
        ("warmup", "begin"),
        ("warmup", "end"),
        ("measure", "begin"),
        ("measure", "end"),
    ];
    assert!(
        names.eq(expected.map(|(phase, event)| (Some(phase), Some(event)))),
        "{phases:?}"
    );
    let stamp = |line: usize| phases[line]["monotonic_ns"].as_i64().unwrap();
    let clock = fs::read_to_string(run.join("load/clock.jsonl")).unwrap();
    assert_eq!(clock.lines().count(), 2, "before and after the run: {clock}");
    let measured = (stamp(3) - stamp(2)) as f64 / 1e9;
    let end = latencies::interval_ends(&run).last().copied().unwrap();
    for (histogram, ends) in latencies::read(&run).values() {
        assert!(histogram.len().abs_diff(events) <= 40, "{result}");
        assert_eq!(ends, &[end], "one histogram, with the stamp of the last interval");
    }
    // The server's count in the window, without the warm-up: both statuses were read while sysbench
    // ran.
    let commits = growth(&server, "Com_commit") as f64;
    (2.9..3.2).contains(&seconds)
        && (measured - seconds).abs() < 0.3
        && (commits / events as f64 - 1.0).abs() < 0.1
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn sysbench_runs_a_fixed_number_of_events_on_our_tables() {
    let bench = Bench::prepared("external_events", "oltp_read_write --tables=2 --table-size=2000");
    let words = format!("run oltp_point_select {SYSBENCH} --events=500");
    let (result, _) = bench.recorded(&words, "run");
    assert_eq!(
        (result["events"].as_u64(), result["queries"].as_u64()),
        (Some(500), Some(500))
    );
    assert_eq!(
        result["latency_ms"]["p99"],
        Value::Null,
        "sysbench prints one percentile"
    );
}

#[test]
fn options_that_sysbench_lacks_are_refused_before_the_run() {
    let bench = Bench::prepared(
        "external_refusals",
        "oltp_read_write --tables=2 --table-size=2000",
    );
    let run = bench.path("run");
    for (words, part) in [
        ("--time=1.5", "whole seconds"),
        ("--protocol=sql_prepare", "--protocol=sql_prepare"),
        ("--sysbench-path=/bin/echo", "is not sysbench"),
        ("--rand-seed=3000000000", "seeds up to 2147483647"),
    ] {
        let output = bench.load(&format!(
            "run oltp_read_write {SYSBENCH} {words} --out={}",
            run.display()
        ));
        assert_refused(&output, &[part]);
        assert!(!run.join("load/result.json").exists());
        fs::remove_dir_all(&run).ok();
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_fatal_error_of_sysbench_is_reported() {
    let bench = Bench::prepared("external_fatal", "oltp_read_write --tables=1 --table-size=2000");
    let run = bench.path("run");
    // The second table is missing; sysbench reports it, as there is no preflight.
    let output = bench.load(&format!(
        "run oltp_read_write {SYSBENCH} --time=2 --out={}",
        run.display()
    ));
    assert_refused(&output, &["sbtest2"]);
    assert!(!run.join("load/result.json").exists());
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn an_interrupted_run_ends_sysbench() {
    let bench = Bench::prepared("external_signal", "oltp_read_write --tables=2 --table-size=2000");
    let run = bench.path("run");
    let mut command = bench.command(&format!(
        "run oltp_read_write {SYSBENCH} --time=600 --out={}",
        run.display()
    ));
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let children = format!("/proc/{id}/task/{id}/children");
    wait_until("the phase measure", || {
        fs::read_to_string(run.join("load/phases.jsonl")).is_ok_and(|text| text.contains("measure"))
    });
    let sysbench = fs::read_to_string(&children).unwrap().trim().to_owned();
    assert!(!sysbench.is_empty());
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(only_line(&output).contains("interrupted by signal 2"));
    assert!(
        !Path::new(&format!("/proc/{sysbench}/cmdline")).exists(),
        "{sysbench} still runs"
    );
    assert_eq!(json(&run.join("run.json"))["status"], "failed");
}
