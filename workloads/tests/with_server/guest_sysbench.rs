//! The real sysbench as a guest: its figures in our run directory, and what becomes of runs that it spoils.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;
use crate::common::only_line;

const GUEST: &str = "--generator=sysbench --tables=2 --table-size=2000 --threads=2 --rand-type=uniform";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn phases(run: &Path) -> Vec<(String, String, i64)> {
    let text = fs::read_to_string(run.join("load/phases.jsonl")).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    lines
        .map(|line| {
            (
                word(&line["phase"]),
                word(&line["event"]),
                line["monotonic_ns"].as_i64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_run_of_sysbench_is_a_run_like_ours() {
    let bench = Bench::new("guest_run");
    bench.succeed(&format!("prepare oltp_read_write {GUEST}"));
    // Two programs look at their clocks: one that the machine holds up for a moment sees another window. Not ten times in a row.
    let agreed = (0..10).any(|round| sysbench_s_window_is_ours(&bench, &format!("run-{round}")));
    assert!(agreed, "the windows never agreed");
    bench.succeed(&format!("cleanup oltp_read_write {GUEST}"));
}

/// One run; true if the window that sysbench tells, the one that was stamped and what the server counted in it are the same.
fn sysbench_s_window_is_ours(bench: &Bench, name: &str) -> bool {
    let run = bench.path(name);
    bench.succeed(&format!(
        "run oltp_read_write {GUEST} --warmup-time=1 --time=3 --histogram --out={}",
        run.display()
    ));
    let result = json(&run.join("load/result.json"));
    assert_eq!(
        (result["generator"].as_str(), result["status"].as_str()),
        (Some("sysbench"), Some("complete"))
    );
    assert_eq!(result["operation"], "sysbench event (one transaction)");
    assert_eq!(json(&run.join("run.json"))["generator"], "sysbench");
    let count = |name: &str| result[name].as_u64().unwrap();
    let events = count("events");
    // 20 client statements a transaction, some more for one that met a lock and began anew; sysbench's counters are read while its
    // threads run.
    let begun = events + count("errors");
    for (name, each) in [("queries", 20), ("reads", 14), ("writes", 4)] {
        let told = count(name);
        assert!(
            (each * events).saturating_sub(40) <= told && told <= each * begun + 40,
            "{name}: {result}"
        );
    }
    assert!(result["commits"].is_null() && result["protocol"].is_null());
    let seconds = result["seconds"].as_f64().unwrap();
    for name in ["min", "mean", "p50", "p95", "p99", "p999", "max"] {
        assert!(result["latency_ms"][name].as_f64().unwrap() > 0.0, "{name}");
    }
    let stamps = phases(&run);
    let names: Vec<_> = stamps
        .iter()
        .map(|(phase, event, _)| format!("{phase} {event}"))
        .collect();
    assert_eq!(
        names,
        ["warmup begin", "warmup end", "measure begin", "measure end"]
    );
    let measured = (stamps[3].2 - stamps[2].2) as f64 / 1e9;
    assert!(run.join("load/throughput.parquet").exists() && run.join("load/latency.hlog").exists());
    // The server's own count of the window: the two statuses were read while sysbench ran. The warm-up is not in it.
    let commits = growth(&json(&run.join("load/server.json")), "Com_commit") as f64;
    (2.9..3.2).contains(&seconds)
        && (measured - seconds).abs() < 0.3
        && (commits / events as f64 - 1.0).abs() < 0.1
}

#[test]
fn our_tables_serve_it_and_a_fixed_number_of_events_is_all_of_it() {
    let bench = Bench::new("guest_events");
    bench.succeed("prepare oltp_read_write --tables=2 --table-size=2000");
    let run = bench.path("run");
    bench.succeed(&format!(
        "run oltp_point_select {GUEST} --events=500 --out={}",
        run.display()
    ));
    let result = json(&run.join("load/result.json"));
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
fn what_sysbench_cannot_do_is_refused_before_anything_runs() {
    let bench = Bench::new("guest_refusals");
    bench.succeed("prepare oltp_read_write --tables=2 --table-size=2000");
    let run = bench.path("run");
    for (words, part) in [
        ("--time=1.5", "whole seconds"),
        ("--protocol=sql_prepare", "--protocol=sql_prepare"),
        ("--sysbench-path=/bin/echo", "is not sysbench"),
        ("--rand-seed=3000000000", "no seed above 2147483647"),
    ] {
        let output = bench.load(&format!(
            "run oltp_read_write {GUEST} {words} --out={}",
            run.display()
        ));
        assert_eq!(output.status.code(), Some(2), "{words}");
        let said = text(&output);
        assert!(said.lines().last().unwrap().contains(part), "{words}: {said}");
        assert!(!run.join("load/result.json").exists());
        fs::remove_dir_all(&run).ok();
    }
}

#[test]
fn a_run_that_sysbench_gives_up_fails_with_its_own_words() {
    let bench = Bench::new("guest_fatal");
    bench.succeed("prepare oltp_read_write --tables=1 --table-size=2000");
    let run = bench.path("run");
    // The second table is not there, which sysbench finds out by itself when preflight is not asked about it.
    let output = bench.load(&format!(
        "run oltp_read_write {GUEST} --time=2 --out={}",
        run.display()
    ));
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output);
    assert!(said.contains("sbtest2") && !said.contains("panicked"), "{said}");
    assert!(!run.join("load/result.json").exists());
}

#[test]
fn an_interrupted_run_leaves_no_sysbench_behind() {
    let bench = Bench::new("guest_signal");
    bench.succeed("prepare oltp_read_write --tables=2 --table-size=2000");
    let run = bench.path("run");
    let mut command = bench.command(&format!(
        "run oltp_read_write {GUEST} --time=600 --out={}",
        run.display()
    ));
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = i32::try_from(child.id()).unwrap();
    let children = format!("/proc/{id}/task/{id}/children");
    let stamped =
        || fs::read_to_string(run.join("load/phases.jsonl")).is_ok_and(|text| text.contains("measure"));
    let limit = Instant::now() + Duration::from_secs(300);
    while !stamped() {
        assert!(Instant::now() < limit, "it never measured");
        thread::sleep(Duration::from_millis(10));
    }
    let guest = fs::read_to_string(&children).unwrap().trim().to_owned();
    assert!(!guest.is_empty());
    // SAFETY: a signal to a child of this test.
    assert_eq!(unsafe { libc::kill(id, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(only_line(&output).contains("interrupted by signal 2"));
    assert!(
        !Path::new(&format!("/proc/{guest}/cmdline")).exists(),
        "{guest} is still there"
    );
    assert_eq!(json(&run.join("run.json"))["status"], "failed");
}
