//! Connections that share threads: the same statements as with a thread each, counted by the server, through deadlocks and a lost
//! server, and a thousand at once.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;
use crate::common::only_line;
use crate::common::proxy::Proxy;
use crate::common::sql::Sql;
use crate::common::variable;

const OLTP: &str = "--tables=2 --table-size=2000 --rand-type=uniform";

fn run(bench: &Bench, name: &str, words: &str) -> (Value, Value) {
    bench.recorded(&format!("run {words} --multiplex=on"), name)
}

fn number(result: &Value, key: &str) -> u64 {
    result[key].as_u64().unwrap()
}

#[test]
fn statements_equal_the_server_s_counters_by_every_protocol() {
    let bench = Bench::new("multiplexed_counts");
    bench.succeed(&format!("prepare oltp_read_write {OLTP}"));
    let protocols = [
        "text",
        "emulated",
        "ps",
        "ps_cached",
        "ps_uncached",
        "sql_prepare",
    ];
    for (seed, protocol) in (1..).zip(protocols) {
        let words = format!("{OLTP} --threads=16 --workers=2 --protocol={protocol} --rand-seed={seed}");
        let (result, server) = run(&bench, protocol, &format!("oltp_read_write {words} --events=300"));
        assert_eq!(
            (&result["connections"], &result["workers"]),
            (&"multiplexed".into(), &2.into())
        );
        let (events, errors) = (number(&result, "events"), number(&result, "errors"));
        assert_eq!(events, 300, "{protocol}");
        assert_eq!(growth(&server, "Com_commit"), events, "{protocol}");
        assert_eq!(growth(&server, "Com_begin"), events + errors, "{protocol}");
        if errors == 0 {
            for (counter, per_event) in [
                ("Com_select", 14),
                ("Com_update", 2),
                ("Com_delete", 1),
                ("Com_insert", 1),
            ] {
                assert_eq!(
                    growth(&server, counter),
                    per_event * events,
                    "{counter}, {protocol}"
                );
            }
        }
        for (key, counter) in [
            ("prepares", "Com_stmt_prepare"),
            ("executes", "Com_stmt_execute"),
            ("closes", "Com_stmt_close"),
        ] {
            if protocol != "sql_prepare" {
                let (calls, counted) = (number(&result["protocol_calls"], key), growth(&server, counter));
                // A close has no reply: the last one of each connection may be counted just after the reading.
                let late = if key == "closes" { 16 } else { 0 };
                assert!(
                    counted <= calls && calls <= counted + late,
                    "{counter}, {protocol}: {counted} of {calls}"
                );
            }
        }
        let (result, server) = run(
            &bench,
            &format!("point-{protocol}"),
            &format!("oltp_point_select {words} --warmup-time=1 --events=1000"),
        );
        assert_eq!(number(&result, "events"), 1000);
        assert_eq!(growth(&server, "Com_select"), 1000, "{protocol}");
    }
}

#[test]
fn the_same_seed_leaves_the_same_rows_as_with_a_thread_each() {
    let bench = Bench::new("multiplexed_seed");
    bench.succeed(&format!("prepare oltp_read_write {OLTP}"));
    let sql = Sql::open(&bench);
    bench.succeed("cleanup oltp_read_write --tables=2");
    let left = |mode: &str, protocol: &str| {
        bench.succeed(&format!("prepare oltp_read_write {OLTP} --rand-seed=3"));
        bench.succeed(&format!(
            "run oltp_read_write {OLTP} --rand-seed=4 --events=200 --protocol={protocol} --multiplex={mode}"
        ));
        let tables = format!("CHECKSUM TABLE {0}.sbtest1, {0}.sbtest2", bench.database());
        let sums = sql.rows(&tables);
        bench.succeed("cleanup oltp_read_write --tables=2");
        sums
    };
    let expected = left("off", "ps");
    assert_eq!(left("on", "ps"), expected);
    assert_eq!(left("on", "text"), expected);
}

#[test]
fn arm_writers_wait_for_their_producer_without_holding_up_each_other() {
    let bench = Bench::new("multiplexed_arm");
    bench.succeed("prepare arm_insert");
    let (result, server) = run(
        &bench,
        "run",
        "arm_insert --scenario=ctx5 --threads=8 --workers=2 --events=6000",
    );
    assert_eq!(number(&result, "events"), 6000);
    assert_eq!(growth(&server, "Com_insert"), 2 * 6000);
    assert_eq!(growth(&server, "Com_commit"), number(&result, "commits"));
}

#[test]
fn deadlocks_are_rolled_back_and_the_events_run_again() {
    let bench = Bench::new("multiplexed_deadlock");
    bench.succeed("prepare oltp_read_write --table-size=10");
    let words = "oltp_read_write --table-size=10 --rand-type=uniform --threads=16 --workers=2 --events=400";
    let (result, server) = run(&bench, "run", words);
    assert!(result["errors_by_code"]["1213"].as_u64() > Some(0), "{result}");
    assert_eq!(growth(&server, "Com_commit"), 400);
    assert_eq!(growth(&server, "Com_rollback"), number(&result, "errors"));
}

#[test]
fn a_thousand_connections_on_two_threads() {
    let bench = Bench::new("multiplexed_thousand");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let sql = Sql::open(&bench);
    let before = sql.number("SELECT @@max_connections");
    sql.rows("SET GLOBAL max_connections = 1100");
    let words = "oltp_point_select --table-size=1000 --threads=1000 --workers=2 --events=20000 --time=0 \
                 --thread-init-timeout=600";
    let (result, server) = run(&bench, "run", words);
    sql.wait_until_let_go();
    sql.rows(&format!("SET GLOBAL max_connections = {before}"));
    assert_eq!(number(&result, "events"), 20_000);
    assert_eq!(growth(&server, "Com_select"), 20_000);
    assert_eq!(result["per_thread"].as_array().unwrap().len(), 1000);
}

#[test]
fn a_server_that_goes_away_is_named_and_ends_the_run() {
    let bench = Bench::new("multiplexed_lost");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    let front = bench.path("front.sock");
    let proxy = Proxy::start(&front, &variable("LOADPRINT_TEST_SOCKET"));
    let run = bench.path("run");
    let mut command = bench.command(
        "run oltp_point_select --table-size=1000 --threads=50 --workers=2 --time=600 --multiplex=on",
    );
    command
        .arg(format!("--mysql-socket={}", front.display()))
        .arg(format!("--out={}", run.display()));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The phase has begun when its file says so; then the run is cut in the middle of it.
    while !std::fs::read_to_string(run.join("load/phases.jsonl")).is_ok_and(|text| text.contains("measure")) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
    proxy.cut();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let line = only_line(&output);
    assert!(
        line.contains("error 2013") || line.contains("error 2006"),
        "{line}"
    );
    assert_eq!(json(&run.join("load/result.json"))["status"], "failed");
}

#[test]
fn what_lives_inside_of_the_library_is_refused() {
    let bench = Bench::new("multiplexed_refused");
    bench.succeed("prepare oltp_read_write --table-size=1000");
    for (option, word) in [
        ("--mysql-ssl=required", "TLS"),
        ("--mysql-compression=on", "compression"),
    ] {
        let output = bench.load(&format!(
            "run oltp_point_select --table-size=1000 --multiplex=on --time=1 {option}"
        ));
        assert_eq!(output.status.code(), Some(2));
        let line = only_line(&output);
        assert!(line.contains(word) && line.contains("--multiplex"), "{line}");
    }
    let output = bench.load("run oltp_point_select --workers=2");
    assert!(only_line(&output).contains("--multiplex=on, which is off"));
}
