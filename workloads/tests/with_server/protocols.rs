//! Every protocol mode against the server's counters: exact numbers of prepares, executes, closes
//! and questions.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::prelude::*;

fn point_selects(bench: &Bench, name: &str, options: &str) -> (serde_json::Value, serde_json::Value) {
    let words = "run oltp_point_select --table-size=1000 --threads=2 --warmup-time=0.2 --events=3000";
    bench.recorded(&format!("{words} {options}"), name)
}

#[test]
fn each_protocol_sends_its_number_of_calls() {
    let bench = Bench::prepared("protocols", "oltp_point_select --table-size=1000");
    // Of one event: calls that prepare, execute and close; Questions and Queries of the server. It
    // counts the text EXECUTE like the command; SET is a separate question.
    for (protocol, calls, questions, queries) in [
        ("text", [0, 0, 0], 1, 1),
        ("emulated", [0, 0, 0], 1, 1),
        ("ps", [0, 1, 0], 1, 1),
        ("ps_cached", [0, 1, 0], 1, 1),
        ("ps_uncached", [1, 1, 1], 1, 3),
        ("sql_prepare", [0, 1, 0], 2, 2),
    ] {
        let (result, server) = point_selects(&bench, protocol, &format!("--protocol={protocol}"));
        assert_eq!(result["protocol"], protocol);
        assert_eq!(result["events"], 3000);
        assert_eq!(result["reads"], 3000, "{protocol}");
        let [prepares, executes, closes] = calls.map(|per_event| per_event * 3000);
        let expected = serde_json::json!({"prepares": prepares, "executes": executes, "closes": closes});
        assert_eq!(result["protocol_calls"], expected, "{protocol}");
        for (counter, expected) in [
            ("Com_stmt_prepare", prepares),
            ("Com_stmt_execute", executes),
            ("Com_stmt_close", closes),
            ("Questions", questions * 3000 + 1),
            ("Queries", queries * 3000 + 1),
            ("Com_select", 3000),
        ] {
            // A close has no reply: the last one of each thread may be counted after the counters
            // are read.
            let late = if closes > 0 && matches!(counter, "Com_stmt_close" | "Queries") {
                2
            } else {
                0
            };
            let counted = growth(&server, counter);
            assert!(
                counted.abs_diff(expected) <= late,
                "{counter}, {protocol}: {counted} for {expected}"
            );
        }
    }
}

#[test]
fn a_full_cache_closes_the_least_recently_used_statement() {
    let bench = Bench::prepared("cache", "oltp_read_write --tables=2 --table-size=1000");
    let words = "run oltp_read_write --tables=2 --table-size=1000 --rand-type=uniform --threads=1 --events=200 --protocol=ps_cached";
    let counts = |options: &str, name: &str| {
        let (_, server) = bench.recorded(&format!("{words} {options}"), name);
        ["prepare", "execute", "close"].map(|call| growth(&server, &format!("Com_stmt_{call}")))
    };
    // Nine statements for each of two tables and COMMIT fit; BEGIN cannot be prepared, which one
    // attempt per connection shows.
    let [prepares, executes, closes] = counts("", "fits");
    assert_eq!((prepares, executes, closes), (9 * 2 + 2, 19 * 200, 0));
    // A cache of one: each change of the statement, ten in a transaction, prepares one and closes
    // one.
    let [prepares, executes, closes] = counts("--ps-cache-size=1", "one");
    assert_eq!(executes, 19 * 200);
    assert!(
        (1..=2).contains(&(prepares - closes - 1)),
        "all except BEGIN and the cached one are closed, {closes} of {prepares}; the last close may be counted late"
    );
    assert_eq!(prepares, 10 * 200 + 1);
    // A limit that only COMMIT and BEGIN meet: all other statements are sent as text.
    let [prepares, executes, closes] = counts("--ps-cache-sql-limit=10", "short");
    assert_eq!((prepares, executes, closes), (2, 200, 0));
}

#[test]
fn the_summary_prints_the_calls_that_questions_do_not_count() {
    let bench = Bench::prepared("traffic", "oltp_read_write --table-size=1000");
    let text = |protocol: &str| {
        let words = "run oltp_point_select --table-size=1000 --threads=1 --events=1000";
        bench.succeed(&format!("{words} --protocol={protocol}"))
    };
    let uncached = text("ps_uncached");
    for part in [
        "Protocol (ps_uncached), per event by the server's counters:",
        "prepare / execute / close:           1.00 / 1.00 / 1.00",
        "questions:                           1.00",
    ] {
        assert!(uncached.contains(part), "`{part}` is not in: {uncached}");
    }
    // 31 characters, then the id, mostly of three digits; a header of 4 bytes, the command, 2 bytes
    // of query attributes.
    let text = text("text");
    let received = text
        .lines()
        .find(|line| line.contains("bytes received / sent:"))
        .unwrap();
    let received = received.split([':', '/']).nth(2).unwrap().trim();
    let received: f64 = received.parse().unwrap();
    assert!((40.5..=41.1).contains(&received), "{received}");
    assert!(
        !bench
            .succeed("run oltp_point_select --table-size=1000 --events=10")
            .contains("Protocol (")
    );
}

#[test]
fn an_error_among_the_rows_is_an_error() {
    let bench = Bench::new("among_rows");
    let server = Mysqld::start();
    let size = "--table-size=200000 --range-size=200000";
    server.succeed(&format!("prepare oltp_read_only {size} --threads=1"));
    let sql = server.sql();
    let selecting = "SELECT id FROM performance_schema.processlist WHERE info LIKE 'SELECT c FROM sbtest%'";
    for protocol in ["ps", "text"] {
        let run = bench.path(protocol);
        let mut child = server
            .command(&format!(
                "run oltp_read_only {size} --point-selects=0 --sum-ranges=0 --order-ranges=0 --distinct-ranges=0 \
                 --simple-ranges=1 --time=600 --report-interval=0 --protocol={protocol} --out={}",
                run.display()
            ))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The server sends rows for most of the time: KILL QUERY ends the statement among them.
        while child.try_wait().unwrap().is_none() {
            for row in sql.rows(selecting) {
                let id = row[0].as_deref().unwrap();
                // The connection may have ended.
                sql.attempt(&format!("KILL QUERY {id}"));
            }
            sleep(Duration::from_millis(20));
        }
        assert_refused(&child.wait_with_output().unwrap(), &["error 1317"]);
        assert_eq!(json(&run.join("load/result.json"))["status"], "failed");
    }
}
