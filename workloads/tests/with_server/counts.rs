//! The generator's counts against the server's, and the files of a run directory.

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;
use crate::common::number;
use serde_json::Value;

/// Runs 14/4/2 statements a transaction and compares each counter of the server. False after a
/// deadlock: the statements of the rolled-back transaction count too, so that only begins and
/// commits can be compared.
fn oltp_counts(bench: &Bench, mode: &str, seed: u64) -> bool {
    let words = format!(
        "run oltp_read_write --tables=2 --table-size=10000 --rand-type=uniform --threads=2 --warmup-time=0.2 --events=1000 \
         --db-ps-mode={mode} --rand-seed={seed}"
    );
    let (result, server) = bench.recorded(&words, &format!("run-{mode}-{seed}"));
    let (events, errors) = (number(&result, "events"), number(&result, "errors"));
    assert_eq!(events, 1000);
    if errors > 0 {
        assert_eq!(growth(&server, "Com_begin"), events + errors, "{mode}");
        assert_eq!(growth(&server, "Com_commit"), events, "{mode}");
        return false;
    }
    for (counter, per_event) in [
        ("Com_select", 14),
        ("Com_update", 2),
        ("Com_delete", 1),
        ("Com_insert", 1),
        ("Com_begin", 1),
        ("Com_commit", 1),
    ] {
        assert_eq!(growth(&server, counter), per_event * events, "{counter}, {mode}");
    }
    for (key, per_event) in [
        ("queries", 20),
        ("reads", 14),
        ("writes", 4),
        ("others", 2),
        ("commits", 1),
    ] {
        assert_eq!(number(&result, key), per_event * events, "{key}, {mode}");
    }
    // The statement that reads the counters is the only other one.
    assert_eq!(growth(&server, "Questions"), 20 * events + 1);
    assert_eq!(growth(&server, "Com_stmt_prepare"), 0);
    assert_eq!(growth(&server, "Connections"), 0);
    let prepared = growth(&server, "Com_stmt_execute");
    match mode {
        "auto" => assert!(prepared >= 18 * events, "{prepared}"),
        _ => assert_eq!(prepared, 0),
    }
    true
}

#[test]
fn oltp_statements_equal_the_server_s_counters_in_both_protocols() {
    let bench = Bench::new("oltp_counts");
    bench.succeed("prepare oltp_read_write --tables=2 --table-size=10000 --threads=2");
    // One thread would hide a lost count. Two threads deadlock in one run of some thousands, and
    // not in five runs in a row. Each run has another seed: the same one would set columns to their
    // present values, and such an UPDATE affects no row.
    let mut seeds = 5..;
    for mode in ["auto", "disable"] {
        let compared = seeds.by_ref().take(5).any(|seed| oltp_counts(&bench, mode, seed));
        assert!(compared, "{mode}: a deadlock in each of five runs");
    }
}

#[test]
fn arm_rows_and_commits_equal_the_server_s_counters() {
    let bench = Bench::new("arm_counts");
    bench.succeed("prepare arm_insert");
    for (scenario, statements, rows, records) in [
        ("parent", 1, 1, 1755),
        ("metrics", 2, 4, 1170),
        ("ctx5", 2, 6, 585),
    ] {
        let events = 4000;
        let (result, server) = bench.recorded(
            &format!("run arm_insert --scenario={scenario} --threads=2 --events={events}"),
            scenario,
        );
        assert_eq!(number(&result, "events"), events);
        assert_eq!(number(&result, "rows"), rows * events);
        assert_eq!(growth(&server, "Com_insert"), statements * events);
        assert_eq!(growth(&server, "Com_commit"), number(&result, "commits"));
        assert_eq!(number(&result, "commits"), events.div_ceil(records));
        assert_eq!(result["details"]["records_per_commit"], records);
    }
}

#[test]
fn a_standalone_run_writes_a_complete_directory_and_never_overwrites_it() {
    let bench = Bench::new("directory");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let run = bench.path("run");
    let words = format!(
        "run oltp_point_select --table-size=1000 --threads=2 --time=2 --rand-seed=9 --out={}",
        run.display()
    );
    let text = bench.succeed(&words);
    assert!(
        text.lines()
            .any(|line| line.starts_with("[ ") && line.contains("s ] thds: 2 tps: ")),
        "{text}"
    );

    let about = json(&run.join("run.json"));
    assert_eq!(
        (about["status"].as_str(), about["seed"].as_u64()),
        (Some("complete"), Some(9))
    );
    let files = json(&run.join("manifest.json"))["files"].clone();
    for name in [
        "phases.jsonl",
        "result.json",
        "server.json",
        "throughput.parquet",
        "latency.hlog",
    ] {
        assert!(
            files[format!("load/{name}")]["bytes"].as_u64() > Some(0),
            "{name}: {files}"
        );
    }
    let again = bench.load(&words);
    assert_eq!(again.status.code(), Some(2));
    assert!(crate::common::only_line(&again).contains("new directory"));
}

#[test]
fn an_existing_run_json_is_kept_and_json_is_printed() {
    let bench = Bench::new("orchestrated");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let run = bench.path("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("run.json"), "{}").unwrap();
    let words = format!(
        "run oltp_point_select --table-size=1000 --time=1 --format=json --out={}",
        run.display()
    );
    let printed: Value = serde_json::from_str(&bench.succeed(&words)).unwrap();
    assert_eq!(printed, json(&run.join("load/result.json")));
    assert_eq!(json(&run.join("run.json")), serde_json::json!({}));
    assert!(!run.join("manifest.json").exists());
}
