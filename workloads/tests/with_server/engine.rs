//! The engine on a real server: open loop, thousands of connections, budgets, error storms, threads that hang.

use std::process::Output;

use serde_json::Value;

use crate::common::Bench;
use crate::common::json;
use crate::common::only_line;
use crate::common::sql::Sql;

/// Standard output as JSON, of a run that succeeded.
fn result(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A variable of the server, as it was when dropped.
struct Set<'a> {
    sql: &'a Sql,
    name: &'static str,
    before: i64,
}

impl<'a> Set<'a> {
    fn global(sql: &'a Sql, name: &'static str, value: i64) -> Self {
        let before = sql.number(&format!("SELECT @@GLOBAL.{name}"));
        sql.rows(&format!("SET GLOBAL {name} = {value}"));
        Self { sql, name, before }
    }
}

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.sql
            .rows(&format!("SET GLOBAL {} = {}", self.name, self.before));
    }
}

#[test]
fn a_rate_is_run_as_asked_for_and_recorded() {
    let bench = Bench::new("rate");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    // A machine that stands still for a tenth of a second at the end does not hold the rate, and that must be said. One that
    // does so ten times in a row is none to test on.
    let held = (0..10).any(|round| {
        let run = bench.path(&format!("run-{round}"));
        let words = format!(
            "run oltp_point_select --table-size=1000 --threads=4 --rate=100 --arrivals=constant --warmup-time=1 --time=2 \
             --rand-seed=4 --out={}",
            run.display()
        );
        let text = bench.succeed(&words);
        assert!(
            text.lines().any(|line| line.starts_with("[ ") && line.contains("s ] queue length: ")),
            "{text}"
        );
        let result = json(&run.join("load/result.json"));
        assert_eq!(
            (&result["mode"], &result["arrivals"]),
            (&"open".into(), &"constant".into())
        );
        assert_eq!(result["rate"], 100.0);
        let (events, left) = (
            result["events"].as_u64().unwrap(),
            result["backlog_end"].as_u64().unwrap(),
        );
        // Ten may wait.
        assert_eq!(result["rate_held"], left <= 10, "{text}");
        // Due at 0, 10, … ms, 200 of them before the end of the time, which the host may be late to see. Whoever it holds up is
        // late, not left out.
        let due = 100.0 * result["seconds"].as_f64().unwrap() + 1.0;
        assert!(
            events + left >= 200 && events as f64 <= due,
            "{events} + {left} of {due}"
        );
        assert!(result["latency_ms"]["mean"].as_f64() >= result["wait_ms_mean"].as_f64());
        left <= 10
    });
    assert!(held, "never held");
}

#[test]
fn a_rate_that_cannot_be_held_is_reported_and_is_no_failure() {
    let bench = Bench::new("overload");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let words = "run oltp_point_select --table-size=1000 --threads=2 --rate=5000000 --time=2 --format=json";
    let output = bench.load(words);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = result(&output);
    assert_eq!(
        (&result["rate_held"], &result["status"]),
        (&false.into(), &"complete".into())
    );
    let number = |key: &str| result[key].as_f64().unwrap();
    assert!(number("achieved_rate") < number("rate") / 2.0);
    assert!(number("backlog_max") >= number("backlog_end") && number("backlog_end") > 5e6);
    // From the intended start: most of it was waiting.
    assert!(number("wait_ms_mean") > 100.0 && number("service_ms_mean") < number("wait_ms_mean"));
    assert_eq!(
        told.lines()
            .filter(|line| line.starts_with("The rate was not held: "))
            .count(),
        1,
        "{told}"
    );
}

/// The texts of each connection's statements on `sbtest1`, in their order, as the general log has them.
fn texts(sql: &Sql, act: impl FnOnce()) -> Vec<Vec<String>> {
    sql.start_log();
    act();
    sql.stop_log();
    let mut connections: Vec<(String, Vec<String>)> = Vec::new();
    // The table is in the order of the statements.
    for row in sql.rows(
        "SELECT thread_id, CONVERT(argument USING utf8mb4) FROM mysql.general_log \
         WHERE command_type = 'Query' AND argument REGEXP '^(SELECT (c|SUM|DISTINCT)|UPDATE|DELETE|INSERT)' AND thread_id <> CONNECTION_ID()",
    ) {
        let [thread, text] = [0, 1].map(|cell| row[cell].clone().unwrap());
        match connections.iter_mut().find(|(of, _)| *of == thread) {
            Some((_, texts)) => texts.push(text),
            None => connections.push((thread, vec![text])),
        }
    }
    let mut texts: Vec<Vec<String>> = connections.into_iter().map(|(_, texts)| texts).collect();
    texts.sort();
    texts
}

#[test]
fn the_same_seed_sends_the_same_statements_in_both_loops() {
    let bench = Bench::new("determinism");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let sql = Sql::open(&bench);
    let of = |workload: &str, seed: u64, options: &str| {
        texts(&sql, || {
            bench.succeed(&format!(
                "run {workload} --table-size=1000 --events=40 --protocol=emulated --rand-seed={seed} {options}"
            ));
        })
    };
    // One thread: what writes cannot meet a lock and begin its transaction anew with other numbers.
    let alone = of("oltp_read_write", 5, "--threads=1");
    assert_eq!(alone[0].len(), 40 * 18);
    assert_eq!(of("oltp_read_write", 5, "--threads=1 --rate=400"), alone);
    assert_ne!(of("oltp_read_write", 6, "--threads=1"), alone);

    // Two threads share the transactions as they come: each sends a part of its own sequence, perhaps none.
    let closed = of("oltp_read_only", 5, "--threads=2");
    // A thread may have all of them: in twenty rounds of the open loop each of those that worked in the closed one gets some.
    let compared = (0..20).any(|_| {
        let open = of("oltp_read_only", 5, "--threads=2 --rate=400");
        let mut compared = 0;
        for one in &closed {
            for other in open.iter().filter(|other| other[0] == one[0]) {
                let common = one.len().min(other.len());
                assert_eq!(one[..common], other[..common]);
                compared += common;
            }
        }
        compared >= 14
    });
    assert!(compared, "no thread worked in both loops");
}

#[test]
fn budgets_are_told_with_their_numbers_before_anything_starts() {
    let bench = Bench::new("budgets");
    bench.succeed("prepare oltp_read_write --tables=4 --table-size=100");
    let sql = Sql::open(&bench);
    let out = bench.path("run");
    let refused = |words: &str, parts: &[&str]| {
        let output = bench.load(&format!(
            "run oltp_read_write --tables=4 --table-size=100 --events=10 {words} --out={}",
            out.display()
        ));
        assert_eq!(output.status.code(), Some(2));
        let line = only_line(&output);
        for part in parts {
            assert!(line.contains(part), "`{part}` is not in: {line}");
        }
        assert!(!out.exists());
    };
    {
        let _statements = Set::global(&sql, "max_prepared_stmt_count", 100);
        // 4 tables × 9 statements, BEGIN and COMMIT.
        refused(
            "--threads=3",
            &[
                "3 threads × 38 statements = 114",
                "100 are free",
                "max_prepared_stmt_count",
            ],
        );
        bench.succeed(
            "run oltp_read_write --tables=4 --table-size=100 --events=10 --threads=3 --protocol=emulated",
        );
    }
    let _connections = Set::global(&sql, "max_connections", 20);
    refused(
        "--threads=40",
        &["40 connections are needed", "max_connections 20", "--threads"],
    );
}

#[test]
fn a_connection_that_is_refused_is_named_with_its_thread() {
    let bench = Bench::new("refused");
    bench.succeed("prepare oltp_read_write --table-size=100");
    let sql = Sql::open(&bench);
    let _few = Set::global(&sql, "max_user_connections", 6);
    let output = bench.load("run oltp_point_select --table-size=100 --threads=20 --time=600");
    assert_eq!(output.status.code(), Some(2));
    let line = only_line(&output);
    for part in ["thread ", "connecting (", "error 1203", "--threads"] {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
}

#[test]
fn two_thousand_connections() {
    let bench = Bench::new("thousands");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let sql = Sql::open(&bench);
    let _connections = Set::global(&sql, "max_connections", 2100);
    let words = "run oltp_point_select --table-size=1000 --threads=2000 --ramp-time=1 --events=20000 --format=json \
                 --thread-init-timeout=600";
    let result = result(&bench.load(words));
    sql.wait_until_let_go();
    assert_eq!(result["events"], 20_000);
    assert_eq!(result["per_thread"].as_array().unwrap().len(), 2000);
}

#[test]
fn a_lock_wait_storm_is_counted_and_ends_with_the_time() {
    let bench = Bench::new("storm");
    bench.succeed("prepare oltp_read_write --table-size=100");
    let sql = Sql::open(&bench);
    let _timeout = Set::global(&sql, "innodb_lock_wait_timeout", 1);
    sql.rows("BEGIN");
    sql.rows("SELECT COUNT(*) FROM (SELECT id FROM sbtest1 FOR UPDATE) AS locked");
    let words = "run oltp_write_only --table-size=100 --threads=4 --time=4 --format=json";
    let result = result(&bench.load(words));
    sql.rows("ROLLBACK");
    let errors = result["errors_by_code"]["1205"].as_u64().unwrap();
    assert!(errors >= 4, "{result}");
    assert_eq!(
        result["transactions"]["oltp_write_only"]["errors_by_code"]["1205"],
        errors
    );
    assert_eq!(
        (&result["events"], &result["status"]),
        (&0.into(), &"complete".into())
    );
}

#[test]
fn threads_that_hang_are_cut_off_and_the_run_has_failed() {
    let bench = Bench::new("hang");
    bench.succeed("prepare oltp_read_write --table-size=100");
    let sql = Sql::open(&bench);
    sql.rows("BEGIN");
    sql.rows("SELECT COUNT(*) FROM (SELECT id FROM sbtest1 FOR UPDATE) AS locked");
    let run = bench.path("run");
    // The server lets them wait for 50 s. All three have begun an event before the time is over, also on a machine that stalls.
    let words = format!(
        "run oltp_write_only --table-size=100 --threads=3 --time=4 --forced-shutdown=1 --out={}",
        run.display()
    );
    let output = bench.load(&words);
    sql.rows("ROLLBACK");
    assert_eq!(output.status.code(), Some(2));
    let line = only_line(&output);
    assert!(
        line.contains("3 threads did not end their event") && line.contains("--forced-shutdown"),
        "{line}"
    );
    assert_eq!(json(&run.join("load/result.json"))["status"], "failed");
    assert_eq!(json(&run.join("run.json"))["status"], "failed");
}

#[test]
fn an_error_that_is_not_ignored_is_named_with_thread_type_and_statement() {
    let bench = Bench::new("fatal");
    bench.succeed("prepare oltp_read_write --table-size=100");
    let sql = Sql::open(&bench);
    let _timeout = Set::global(&sql, "innodb_lock_wait_timeout", 1);
    sql.rows("BEGIN");
    sql.rows("SELECT COUNT(*) FROM (SELECT id FROM sbtest1 FOR UPDATE) AS locked");
    let words = "run oltp_write_only --table-size=100 --threads=2 --time=600 --mysql-ignore-errors=none";
    let output = bench.load(words);
    sql.rows("ROLLBACK");
    assert_eq!(output.status.code(), Some(2));
    let line = only_line(&output);
    for part in [
        "thread ",
        "oltp_write_only, `UPDATE sbtest1 SET k=k+",
        "error 1205",
    ] {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
}

#[test]
fn the_histogram_and_the_percentile_are_printed_as_sysbench_prints_them() {
    let bench = Bench::new("histogram");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let text = bench.succeed(
        "run oltp_point_select --table-size=1000 --events=500 --histogram=on --percentile=90 --verbosity=3 --db-driver=mysql",
    );
    let rows = text
        .lines()
        .skip_while(|line| !line.contains("distribution"))
        .skip(1)
        .take_while(|line| line.contains('|'));
    let counts: u64 = rows
        .map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(counts, 500, "{text}");
    assert!(text.contains("         90th percentile:"), "{text}");
}
