//! The insert benchmark: rows, indexes and statements of each step, the promised rate, and restored
//! server variables.

use std::process::Child;
use std::process::Stdio;

use serde_json::Value;

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;
use crate::common::number;
use crate::common::printed_json;
use crate::common::signal;
use crate::common::sql::Sql;
use crate::common::wait_until;

const SIZES: &str = "--rows-i0=2030 --rows-i1=1030 --rows-i2=52";

fn step(bench: &Bench, step: &str, words: &str) -> (Value, Value) {
    let run = bench.path(step);
    bench.succeed(&format!(
        "run insert_benchmark --steps={step} {SIZES} {words} --report-interval=0 --out={}",
        run.display()
    ));
    let about = json(&run.join("run.json"));
    let result = json(&run.join("load/result.json"));
    assert_eq!(about["operation"], result["operation"], "{step}");
    (result, json(&run.join("load/server.json")))
}

fn rows(sql: &Sql, table: &str) -> u64 {
    sql.number(&format!("SELECT COUNT(*) FROM {table}")) as u64
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn each_step_leaves_its_rows_and_indexes() {
    let bench = Bench::new("ib_steps");
    bench.succeed("prepare insert_benchmark --threads=2");
    let sql = Sql::open(&bench);

    let (result, server) = step(&bench, "l.i0", "--threads=2");
    assert_eq!(number(&result, "events"), 2 * 2030);
    assert_eq!(growth(&server, "Com_insert"), 2 * 21);
    assert_eq!(number(&result, "commits"), 2 * 21);
    assert_eq!(result["operation"], "insert benchmark row (inserted)");
    assert_eq!((rows(&sql, "pi1"), rows(&sql, "pi2")), (2030, 2030));
    bench.succeed(&format!("check insert_benchmark --threads=2 {SIZES}"));

    let (result, server) = step(&bench, "l.x", "--threads=2");
    assert_eq!(number(&result, "events"), 2 * 2130);
    assert_eq!(growth(&server, "Com_alter_table"), 2);
    assert_eq!(result["transactions"]["create_index"]["count"], 2);
    let indexes = "SELECT COUNT(*) FROM information_schema.statistics \
                   WHERE table_schema = DATABASE() AND index_name LIKE 'pi_\\_%'";
    assert_eq!(sql.number(indexes), 2 * 9);

    for (name, each, statements) in [("l.i1", 1030, 21), ("l.i2", 52, 11)] {
        let (result, server) = step(&bench, name, "--threads=2");
        assert_eq!(number(&result, "events"), 2 * each, "{name}");
        assert_eq!(number(&result["details"], "rows_deleted"), 2 * each, "{name}");
        assert_eq!(growth(&server, "Com_insert"), 2 * statements, "{name}");
        assert_eq!(growth(&server, "Com_delete"), 2 * statements, "{name}");
        assert_eq!(
            result["transactions"]["delete"]["count"],
            2 * statements,
            "{name}"
        );
        assert_eq!(number(&result["details"], "connections"), 4, "{name}");
        // Rows are inserted at the high end of the key and the same number deleted at the low end.
        assert_eq!((rows(&sql, "pi1"), rows(&sql, "pi2")), (2130, 2130), "{name}");
    }
    for table in ["pi1", "pi2"] {
        let smallest = sql.number(&format!("SELECT MIN(transactionid) FROM {table}"));
        assert_eq!(smallest, 1030 + 52 + 1);
        let beyond = "price NOT BETWEEN 0 AND 499 OR cashregisterid NOT BETWEEN 0 AND 999 OR productid NOT BETWEEN 0 AND 9999 \
                      OR customerid NOT BETWEEN 0 AND 99999 OR LENGTH(data) NOT BETWEEN 10 AND 20 OR dateandtime IS NULL";
        assert_eq!(
            sql.number(&format!("SELECT COUNT(*) FROM {table} WHERE {beyond}")),
            0
        );
    }

    for (name, kind) in [("qr100", "range_query"), ("qp100", "point_query")] {
        // On a machine that stalls for half a second the rate is not held, and the result must
        // report it. Ten such stalls in a row fail the test.
        let held = (0..10).any(|_| query_step(&bench, name, kind));
        assert!(held, "{name}: the promised rate was never held");
    }
    bench.succeed(&format!("check insert_benchmark --threads=2 {SIZES}"));
    bench.succeed("cleanup insert_benchmark");
    assert_eq!(
        sql.number("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"),
        0
    );
}

/// One step of queries next to inserts and deletes; true if the promised rate was held.
fn query_step(bench: &Bench, name: &str, kind: &str) -> bool {
    let (result, server) = step(bench, name, "--threads=2 --time=2");
    let events = number(&result, "events");
    assert_eq!(number(&result["transactions"][kind], "count"), events);
    assert_eq!(growth(&server, "Com_select"), events, "{name}");
    let details = &result["details"];
    assert_eq!(number(details, "connections"), 6);
    let (inserted, deleted) = (number(details, "rows_inserted"), number(details, "rows_deleted"));
    assert_eq!(growth(&server, "Com_insert") * 50, inserted);
    assert_eq!(growth(&server, "Com_delete") * 50, deleted);
    // Two clients with 100 rows per second each; one transaction of each may be late.
    let due = 200.0 * result["seconds"].as_f64().unwrap();
    let held = (inserted + 100) as f64 >= 0.97 * due;
    assert_eq!(details["promise_held"], held, "{name}: {result}");
    // A transaction every half second from the start on; more only where the run ended late.
    assert!(!held || inserted >= 2 * 4 * 50 - 100, "{inserted}");
    held && events > 0
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn one_table_for_all_clients_and_several_steps_in_one_command() {
    let bench = Bench::new("ib_shared");
    bench.succeed("prepare insert_benchmark --threads=3 --shared-table");
    let out = bench.path("out");
    let output = bench.load(&format!(
        "run insert_benchmark --threads=3 --shared-table {SIZES} --steps=l.i0,l.x,l.i1,l.i2,settle,qr500 --settle-time=0 --time=2 \
         --rand-seed=7 --format=json --out={}",
        out.display()
    ));
    let printed = printed_json(&output);
    let names = ["l.i0", "l.x", "l.i1", "l.i2", "settle", "qr500"];
    for (position, name) in names.into_iter().enumerate() {
        let result = json(&out.join(name).join("load/result.json"));
        assert_eq!(result, printed[position]);
        assert_eq!(result["details"]["step"], name);
        assert_eq!(json(&out.join(name).join("run.json"))["status"], "complete");
    }
    assert_ne!(printed[0]["operation"], printed[5]["operation"]);
    assert_eq!(printed[1]["events"], 3 * 2030 + 100);
    let sql = Sql::open(&bench);
    // The last step deletes as many rows as it inserts, except in the transactions in progress at
    // its end.
    let details = &printed[5]["details"];
    assert_eq!(
        rows(&sql, "pi1") + number(details, "rows_deleted"),
        3 * 2030 + 100 + number(details, "rows_inserted")
    );
    bench.succeed(&format!(
        "check insert_benchmark --threads=3 --shared-table {SIZES}"
    ));
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn range_queries_are_covered_by_their_index() {
    let bench = Bench::new("ib_explain");
    bench.succeed("prepare insert_benchmark");
    let sql = Sql::open(&bench);
    bench.succeed(&format!(
        "run insert_benchmark --steps=l.i0,l.x {SIZES} --report-interval=0"
    ));
    sql.rows("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest");
    // Four queries, with their values, as the server recorded them. A second is enough for all of
    // them unless the machine stalls; ten seconds are enough on every machine.
    let mut seen = Vec::new();
    for _ in 0..10 {
        bench.succeed(
            "run insert_benchmark --steps=qr100,qp100 --time=1 --db-ps-mode=disable --report-interval=0",
        );
        seen = sql.rows(&format!(
            "SELECT query_sample_text FROM performance_schema.events_statements_summary_by_digest WHERE schema_name = '{}' \
             AND query_sample_text REGEXP '^SELECT [a-z, ]+ FROM pi1 .*(LIMIT 10|IN )'",
            bench.database()
        ));
        if seen.len() == 4 {
            break;
        }
    }
    let mut keys = Vec::new();
    for statement in seen.into_iter().flatten().flatten() {
        let plan = sql.rows(&format!("EXPLAIN FORMAT=TRADITIONAL {statement}"));
        assert_eq!(plan.len(), 1, "{statement}");
        // Columns of EXPLAIN: … 4 type, 6 key, 11 Extra.
        let [access, key, extra] = [4, 6, 11].map(|column| plan[0][column].clone().unwrap_or_default());
        assert_eq!(access, "range", "{statement}");
        if key == "PRIMARY" {
            assert!(statement.contains("transactionid IN ("));
        } else {
            assert!(extra.contains("Using index"), "{statement}: {extra}");
            assert!(!extra.contains("filesort"), "{statement}: {extra}");
        }
        keys.push(key);
    }
    keys.sort();
    assert_eq!(
        keys,
        ["PRIMARY", "pi1_marketsegment", "pi1_pdc", "pi1_registersegment"]
    );
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_missed_insert_rate_is_reported() {
    let bench = Bench::new("ib_promise");
    bench.succeed("prepare insert_benchmark");
    bench.succeed(&format!(
        "run insert_benchmark --steps=l.i0,l.x {SIZES} --report-interval=0"
    ));
    let run = bench.path("run");
    // A million rows per second.
    let text = bench.succeed(&format!(
        "run insert_benchmark --steps=qr1000000 --time=1 --out={}",
        run.display()
    ));
    assert!(text.contains("promise:") && text.contains("NOT HELD"), "{text}");
    let details = json(&run.join("load/result.json"))["details"].clone();
    assert_eq!(details["promise_held"], false);
    assert!(details["insert_rate_share"].as_f64().unwrap() < 0.97);
    // The same rate without a promise.
    let again = bench.path("again");
    bench.succeed(&format!(
        "run insert_benchmark --steps=qr1000000 --time=1 --rate-promise=0 --out={}",
        again.display()
    ));
    let details = json(&again.join("load/result.json"))["details"].clone();
    assert_eq!(details["promise_held"], true);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_step_out_of_order_is_refused_with_the_step_to_run_first() {
    let bench = Bench::new("ib_order");
    let refused = |step: &str, words: &str, part: &str| {
        bench.refused(
            &format!("run insert_benchmark --steps={step} {SIZES} {words}"),
            &[part],
        );
    };
    // Creates the database.
    bench.succeed("prepare arm_insert");
    refused("qr100", "", "prepare insert_benchmark --threads=1");
    bench.succeed("prepare insert_benchmark");
    refused("qr100", "", "run the step l.i0 first");
    refused("l.i0", "--threads=2", "table pi2 is missing");
    refused("l.i0", "--events=100", "--rows-i0");
    refused("qr0", "", "`qr0` is not a step");
    bench.succeed(&format!("run insert_benchmark --steps=l.i0 {SIZES}"));
    refused("l.i1", "", "run the step l.x first");
    refused("l.i0", "", "has rows already");
    refused("qr100", "--time=0", "needs a time limit");
    bench.succeed(&format!("run insert_benchmark --steps=l.x {SIZES}"));
    refused("l.x", "", "has secondary indexes already");
    Sql::open(&bench).rows("ALTER TABLE pi1 DROP COLUMN data");
    refused("l.i1", "", "table pi1 has the columns");
}

const VARIABLES: [(&str, &str); 3] = [
    ("innodb_max_dirty_pages_pct", "77"),
    ("innodb_max_dirty_pages_pct_lwm", "7"),
    ("innodb_idle_flush_pct", "55"),
];

fn variables(sql: &Sql) -> [String; 3] {
    VARIABLES.map(|(name, _)| {
        let value = sql.rows(&format!("SELECT FORMAT(@@global.{name}, 0)"));
        value[0][0].clone().unwrap()
    })
}

/// Starts a `settle` of ten minutes; returns once it has set the variables.
fn start_settle(bench: &Bench, sql: &Sql) -> Child {
    let mut child = bench
        .command(&format!(
            "run insert_benchmark --steps=settle --settle-time=600 {SIZES}"
        ))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("settle sets the variables", || {
        assert!(child.try_wait().unwrap().is_none(), "settle ended");
        variables(sql) == ["1", "1", "100"]
    });
    child
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn settle_restores_the_variables_after_a_signal_and_a_lost_connection() {
    let bench = Bench::new("ib_settle");
    bench.succeed("prepare insert_benchmark");
    bench.succeed(&format!("run insert_benchmark --steps=l.i0 {SIZES}"));
    let sql = Sql::open(&bench);
    let before: Vec<String> = VARIABLES
        .iter()
        .map(|(name, _)| {
            sql.rows(&format!("SELECT @@global.{name}"))[0][0]
                .clone()
                .unwrap()
        })
        .collect();
    for (name, value) in VARIABLES {
        sql.rows(&format!("SET GLOBAL {name} = {value}"));
    }
    let expected = ["77", "7", "55"];

    let (result, _) = step(&bench, "settle", "--settle-time=1");
    assert_eq!(variables(&sql), expected);
    assert!(result["seconds"].as_f64() >= Some(1.0));
    assert_eq!(
        (number(&result, "events"), &result["status"]),
        (0, &Value::from("complete"))
    );
    assert!(result["details"]["dirty_pages_after"].is_u64());

    for kill_connection in [false, true] {
        let child = start_settle(&bench, &sql);
        if kill_connection {
            // The connection of the session, by its last statement, and not the one that reads
            // counters.
            let id = sql.number(
                "SELECT t.processlist_id FROM performance_schema.threads t \
                 JOIN performance_schema.events_statements_current s USING (thread_id) WHERE s.sql_text LIKE 'SET GLOBAL%1, innodb%'",
            );
            sql.rows(&format!("KILL {id}"));
        }
        signal(&child, "TERM");
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(143),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(variables(&sql), expected, "connection killed: {kill_connection}");
    }
    for ((name, _), value) in VARIABLES.iter().zip(before) {
        sql.rows(&format!("SET GLOBAL {name} = {value}"));
    }
}
