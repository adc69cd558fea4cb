//! Parts of a load that several processes run at the same time: common start, divided threads,
//! events and rates, keys without collisions, the measured clock of the server.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use serde_json::Value;
use serde_json::json;

use crate::common::Bench;
use crate::common::assert_succeeded;
use crate::common::json as read_json;
use crate::common::number;
use crate::common::only_line;
use crate::common::running::Running;
use crate::common::sql::Sql;

/// Seconds from the first process to the common start. A part that is ready too late fails, as on a
/// machine that stalls: then all start again with the next number.
const AHEAD_S: [u64; 2] = [8, 60];

/// CLOCK_REALTIME, which is also the server's.
pub fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

fn role(part: usize) -> String {
    match part {
        1 => "load".to_owned(),
        _ => format!("load-{part}"),
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The run directory of parts that ran at the same time, and their results.
struct Parts {
    run: std::path::PathBuf,
    results: Vec<Value>,
}

impl Parts {
    /// Starts all parts of `words` for the same moment and waits for their end.
    fn run(bench: &Bench, name: &str, words: &str, of: usize) -> Self {
        for ahead in AHEAD_S {
            let run = bench.path(&format!("{name}-{ahead}"));
            // Each waits for the end of earlier connections: before the first one starts.
            let mut commands: Vec<_> = (1..=of)
                .map(|part| {
                    bench.command(&format!(
                        "run {words} --part={part}/{of} --role={} --out={}",
                        role(part),
                        run.display()
                    ))
                })
                .collect();
            let start = now_ns() + u128::from(ahead) * 1_000_000_000;
            for command in &mut commands {
                command.arg(format!("--start-at={start}"));
            }
            let running: Vec<Running> = commands.into_iter().map(Running::start).collect();
            let ended: Vec<Output> = running.into_iter().map(Running::end).collect();
            let late = |output: &Output| {
                !output.status.success()
                    && String::from_utf8_lossy(&output.stderr).contains("--start-at was ")
            };
            // If only some were late, the others have changed the data.
            if ended.iter().all(late) {
                continue;
            }
            for output in &ended {
                assert_succeeded(output, words);
            }
            let results = (1..=of).map(|part| read_json(&run.join(role(part)).join("result.json")));
            return Self {
                results: results.collect(),
                run,
            };
        }
        panic!("the threads were never ready in time: {words}");
    }

    fn sum(&self, key: &str) -> u64 {
        self.results.iter().map(|result| number(result, key)).sum()
    }

    /// CLOCK_MONOTONIC of a phase's begin in each part, which share this host.
    fn begins(&self, phase: &str) -> Vec<i64> {
        let begin = |part: usize| {
            let stamps = lines(&self.run.join(role(part)).join("phases.jsonl"));
            let mut begins = stamps
                .iter()
                .filter(|stamp| stamp["phase"] == phase && stamp["event"] == "begin");
            begins.next().unwrap()["monotonic_ns"].as_i64().unwrap()
        };
        (1..=self.results.len()).map(begin).collect()
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn three_parts_start_together_and_run_one_load() {
    let bench = Bench::new("parts_oltp");
    bench.succeed("prepare oltp_read_write --tables=2 --table-size=10000");
    let sql = Sql::open(&bench);
    let words = "oltp_read_write --tables=2 --table-size=10000 --rand-type=uniform --threads=7 --events=703 --rand-seed=5";
    // Ten rounds in which the machine stalls at the start fail the test.
    let together = (0..10).any(|round| {
        let commits = || {
            let rows = sql.rows("SHOW GLOBAL STATUS LIKE 'Com_commit'");
            rows[0][1].as_ref().unwrap().parse::<u64>().unwrap()
        };
        let before = commits();
        let parts = Parts::run(&bench, &format!("run-{round}"), words, 3);
        let threads: Vec<&Value> = parts.results.iter().map(|result| &result["threads"]).collect();
        assert_eq!(threads, [2, 2, 3]);
        for (part, result) in (1..).zip(&parts.results) {
            assert_eq!(result["part"], json!({"number": part, "of": 3}));
            assert_eq!(
                result["per_thread"].as_array().unwrap().len() as u64,
                number(result, "threads")
            );
            assert_eq!(result["options"]["threads"], 7, "the total, as given");
        }
        // 703 events: 2/7, 2/7 and 3/7 of them.
        assert_eq!(
            parts
                .results
                .iter()
                .map(|result| number(result, "events"))
                .collect::<Vec<_>>(),
            [200, 201, 302]
        );
        // A deadlock repeats a transaction up to its error.
        if parts.sum("errors") == 0 {
            assert_eq!(parts.sum("queries"), 20 * 703);
        }
        assert_eq!(parts.sum("commits"), 703);
        assert_eq!(commits() - before, 703, "the server's count");
        // A part is not a whole run, which only an orchestrator can describe.
        assert!(!parts.run.join("run.json").exists() && !parts.run.join("manifest.json").exists());
        let begins = parts.begins("measure");
        let spread = begins.iter().max().unwrap() - begins.iter().min().unwrap();
        spread < 100_000_000
    });
    assert!(together, "never within 100 ms");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn parts_insert_without_collisions() {
    let bench = Bench::new("parts_insert");
    bench.succeed("prepare oltp_insert --auto-inc=off --tables=1 --table-size=1000");
    let sql = Sql::open(&bench);
    // Error 1062 would fail a run.
    let parts = Parts::run(
        &bench,
        "oltp",
        "oltp_insert --auto-inc=off --tables=1 --table-size=1000 --threads=5 --events=3000 --rand-seed=3",
        3,
    );
    assert_eq!(parts.sum("events"), 3000);
    assert_eq!(sql.number("SELECT COUNT(*) FROM sbtest1"), 3000);

    bench.succeed("prepare arm_insert");
    let parts = Parts::run(
        &bench,
        "arm",
        "arm_insert --scenario=ctx1 --threads=3 --events=9001 --records-per-commit=100 --rand-seed=3",
        2,
    );
    assert_eq!(parts.sum("events"), 9001);
    assert_eq!(sql.number("SELECT COUNT(*) FROM arm_tran"), 9001);
    assert_eq!(sql.number("SELECT COUNT(*) FROM arm_ctx"), 9001);
    // Each thread of all parts has its range of keys: --ids=client is thread << 40.
    let writers = "SELECT COUNT(DISTINCT id >> 40) FROM arm_tran";
    assert!((2..=3).contains(&sql.number(writers)));
    assert_eq!(
        sql.number("SELECT COUNT(DISTINCT corr) FROM arm_tran"),
        9001,
        "the producers of the parts draw other records"
    );
    bench.succeed("check arm_insert");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn parts_of_bulk_insert_fill_a_table_per_thread() {
    let bench = Bench::new("parts_bulk");
    bench.succeed("prepare bulk_insert --threads=3");
    let sql = Sql::open(&bench);
    let parts = Parts::run(
        &bench,
        "bulk",
        "bulk_insert --threads=3 --events=30000 --rand-seed=3",
        2,
    );
    assert_eq!(parts.sum("events"), 30_000);
    let rows = |table| sql.number(&format!("SELECT COUNT(*) FROM sbtest{table}"));
    assert_eq!(rows(1), 10_000, "the table of the first part's only thread");
    assert_eq!(rows(2) + rows(3), 20_000);
    bench.succeed("check bulk_insert --threads=3");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn parts_of_tproc_c_keep_its_rules() {
    let bench = Bench::new("parts_tproc");
    bench.succeed("prepare tproc_c --warehouses=2 --threads=2");
    let sql = Sql::open(&bench);
    let orders = || sql.number("SELECT SUM(d_next_o_id) FROM district");
    let before = orders();
    let parts = Parts::run(
        &bench,
        "tproc",
        "tproc_c --threads=4 --all-warehouses=on --events=600 --rand-seed=11",
        2,
    );
    let counts = |result: &Value| -> u64 {
        let types = result["transactions"].as_object().unwrap();
        types.values().map(|kind| number(kind, "count")).sum()
    };
    assert_eq!(parts.results.iter().map(counts).sum::<u64>(), 600);
    // An event is a committed new order.
    assert_eq!(orders() - before, parts.sum("events") as i64);
    bench.succeed("check tproc_c --threads=2");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_rate_is_divided_by_the_threads() {
    let bench = Bench::new("parts_rate");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let words = "oltp_point_select --table-size=1000 --threads=3 --rate=300 --arrivals=constant --time=2 --rand-seed=4";
    let parts = Parts::run(&bench, "rate", words, 2);
    for (result, rate) in parts.results.iter().zip([100.0, 200.0]) {
        assert_eq!((&result["rate"], &result["mode"]), (&json!(rate), &json!("open")));
        // A stalled operation is late, not left out.
        let arrived = number(result, "events") + number(result, "backlog_end");
        let due = rate * result["seconds"].as_f64().unwrap() + 1.0;
        assert!(
            arrived as f64 >= rate * 2.0 - 1.0 && arrived as f64 <= due,
            "{arrived} of {due}"
        );
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_server_s_clock_is_measured_before_and_after_a_run() {
    let bench = Bench::new("parts_clock");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let run = bench.path("run");
    bench.succeed(&format!(
        "run oltp_point_select --table-size=1000 --warmup-time=0.2 --events=100 --role=load-2 --out={}",
        run.display()
    ));
    let load = run.join("load-2");
    let (clock, phases) = (
        lines(&load.join("clock.jsonl")),
        lines(&load.join("phases.jsonl")),
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
    assert!(read_json(&run.join("manifest.json"))["files"]["load-2/clock.jsonl"]["bytes"].as_u64() > Some(0));
    assert!(read_json(&load.join("result.json")).get("part").is_none());
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_clock_that_cannot_be_recorded_costs_its_file_only() {
    let bench = Bench::new("parts_no_clock");
    bench.succeed("prepare oltp_read_write --table-size=1000");
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
    let line = only_line(&output);
    assert!(
        line.contains("warning: no clock.jsonl") && line.contains("after the run"),
        "{line}"
    );
    let clock = lines(&run.join("load/clock.jsonl"));
    assert_eq!((clock.len(), &clock[0]["at"]), (1, &json!("before")));
}
