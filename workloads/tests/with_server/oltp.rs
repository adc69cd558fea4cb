//! The scripts' statement counts against the server's counters, and how preflight and `check` judge
//! tables.

use crate::prelude::*;

/// Options, and statements of one event: reads, writes, others. What they are is compared with sysbench in
/// `statements.rs`.
const SCRIPTS: &[(&str, [u64; 3])] = &[
    ("oltp_read_write", [14, 4, 2]),
    ("oltp_read_write --db-ps-mode=disable", [14, 4, 2]),
    ("oltp_read_write --skip-trx", [14, 4, 0]),
    ("oltp_read_only", [14, 0, 2]),
    ("oltp_write_only", [0, 4, 2]),
    ("oltp_point_select", [1, 0, 0]),
    ("oltp_update_index", [0, 1, 0]),
    ("oltp_update_non_index", [0, 1, 0]),
    ("select_random_points", [1, 0, 0]),
    ("select_random_ranges", [1, 0, 0]),
    ("lookup", [1, 0, 0]),
    ("oltp_insert", [0, 1, 0]),
];

#[test]
fn each_script_sends_exactly_its_statements() {
    const EVENTS: u64 = 300;
    let bench = Bench::prepared("per_event", "oltp_read_write --table-size=1000");
    for (number, (script, statements)) in SCRIPTS.iter().enumerate() {
        // One thread: a deadlock would add statements. Each run has another seed: an UPDATE to the
        // same value affects no row.
        let seed = number + 1;
        let words = format!("run {script} --table-size=1000 --events={EVENTS} --rand-seed={seed}");
        let (result, server) = bench.recorded(&words, &number.to_string());
        assert_eq!(result["events"], EVENTS);
        for (key, per_event) in ["reads", "writes", "others"].iter().zip(statements) {
            assert_eq!(result[key], per_event * EVENTS, "{key}, {script}");
        }
        let queries = statements.iter().sum::<u64>() * EVENTS;
        // The statement that reads the counters is the only other one.
        assert_eq!(growth(&server, "Questions"), queries + 1, "{script}");
    }
}

#[test]
fn deletes_without_a_row_count_as_others() {
    let bench = Bench::prepared("deletes", "oltp_delete --table-size=100");
    let (result, server) = bench.recorded(
        "run oltp_delete --table-size=100 --threads=2 --events=5000 --rand-type=uniform",
        "run",
    );
    assert_eq!(result["events"], 5000);
    assert_eq!(growth(&server, "Com_delete"), 5000);
    let deleted = 100 - Sql::open(&bench).number("SELECT COUNT(*) FROM sbtest1") as u64;
    assert_eq!(
        (number(&result, "writes"), number(&result, "rows")),
        (deleted, deleted)
    );
    assert_eq!(number(&result, "others"), 5000 - deleted);
    // 5000 draws of 100 keys leave almost no rows, too few for a run.
    bench.refused(
        "run oltp_read_only --table-size=100 --time=1",
        &["sbtest1", "cleanup"],
    );
}

#[test]
fn bulk_insert_counts_rows_as_events_and_sends_full_packets() {
    let bench = Bench::prepared("bulk", "bulk_insert --threads=2");
    let (result, server) = bench.recorded("run bulk_insert --threads=2 --events=200000", "run");
    assert_eq!(result["events"], 200_000);
    assert_eq!(result["writes"].as_u64(), Some(growth(&server, "Com_insert")));
    let sql = Sql::open(&bench);
    let rows = |table: u8| sql.number(&format!("SELECT COUNT(*) FROM sbtest{table}"));
    assert_eq!(rows(1) + rows(2), 200_000);
    assert!(
        bench
            .succeed("check bulk_insert --threads=2")
            .contains("k is the id")
    );
    // Its ids start at 1 again.
    bench.refused("run bulk_insert --threads=2 --time=1", &["cleanup"]);
    bench.succeed("cleanup bulk_insert --threads=2");
}

#[test]
fn a_seed_gives_the_same_rows_with_unique_ids() {
    let bench = Bench::new("unique");
    let sum = || {
        bench.succeed("prepare oltp_insert --auto-inc=off");
        bench.succeed("run oltp_insert --auto-inc=off --threads=1 --events=500 --rand-seed=3");
        let sql = Sql::open(&bench);
        let sums = sql.rows("SELECT COUNT(*), SUM(id), SUM(k), SUM(CRC32(CONCAT(c, pad))) FROM sbtest1");
        // The same seed on the same tables repeats its ids.
        bench.refused(
            "run oltp_insert --auto-inc=off --threads=1 --events=500 --rand-seed=3",
            &["error 1062"],
        );
        bench.succeed("cleanup oltp_insert");
        sums
    };
    assert_eq!(sum(), sum());
}

#[test]
fn unsuitable_tables_are_refused_with_the_difference() {
    let bench = Bench::prepared("preflight", "oltp_read_write --table-size=200");
    let refused = |words: &str, parts: &[&str]| bench.refused(words, parts);
    let missing = "run oltp_read_only --table-size=200 --tables=2 --time=1";
    refused(
        missing,
        &[
            "sbtest2 is missing",
            "which has sbtest1",
            "prepare oltp_read_only",
        ],
    );
    let small = "run lookup --table-size=300 --time=1";
    refused(
        small,
        &["sbtest1 end at 200", "--table-size=300", "--table-size=200"],
    );
    refused(
        "run bulk_insert --time=1",
        &["c char(120)", "bulk_insert needs id int, k int"],
    );
    refused(
        "prepare oltp_read_only --table-size=200",
        &["error 1050", "cleanup"],
    );

    let sql = Sql::open(&bench);
    sql.rows("DELETE FROM sbtest1 WHERE id BETWEEN 50 AND 149");
    let gaps = "run oltp_read_only --table-size=200 --time=1";
    refused(gaps, &["sbtest1 has gaps", "100 of 200 sampled ids", "cleanup"]);
    sql.rows("DELETE FROM sbtest1");
    refused(gaps, &["sbtest1 is empty"]);
    // Inserts need no rows.
    bench.succeed("run oltp_insert --table-size=200 --events=10");
    sql.rows("ALTER TABLE sbtest1 MODIFY c CHAR(130)");
    refused(gaps, &["c char(130)", "c char(120)", "another workload's table"]);
}

#[test]
fn a_table_with_few_gaps_is_accepted_and_a_shorter_one_refused() {
    let bench = Bench::prepared("few_deletes", "oltp_read_write --table-size=500");
    let sql = Sql::open(&bench);
    // Every 13th id and the last one, like some deletes of oltp_delete.
    sql.rows("DELETE FROM sbtest1 WHERE id % 13 = 0 OR id = 500");
    let run = "run oltp_read_only --table-size=500 --events=10";
    bench.succeed(run);
    sql.rows("DELETE FROM sbtest1 WHERE id > 491");
    bench.refused(run, &["sbtest1 end at 491", "--table-size=500"]);
}

#[test]
fn check_names_the_rule_and_the_table() {
    let bench = Bench::prepared("check", "oltp_read_write --tables=2 --table-size=200");
    let check = "check oltp_read_write --tables=2 --table-size=200";
    let text = bench.succeed(check);
    assert_eq!(
        text.lines().filter(|line| line.starts_with("passes")).count(),
        5,
        "{text}"
    );
    bench.succeed("run oltp_read_write --tables=2 --table-size=200 --threads=2 --events=200");
    bench.succeed(check);
    let sql = Sql::open(&bench);
    for (damage, rule) in [
        ("DROP INDEX k_2 ON sbtest2", "k has an index"),
        ("UPDATE sbtest2 SET pad = 'x' WHERE id = 7", "pad has five"),
        (
            "UPDATE sbtest2 SET id = 900 WHERE id = 8",
            "each id from 1 to 200 exists once",
        ),
        ("DROP TABLE sbtest2", "exist with their columns"),
    ] {
        sql.rows(damage);
        let output = bench.load(check);
        assert_eq!(output.status.code(), Some(1), "{damage}");
        let text = String::from_utf8(output.stdout).unwrap();
        let broken = text
            .lines()
            .find(|line| line.starts_with("BROKEN") && line.contains(rule));
        assert!(
            broken.is_some_and(|line| line.contains("sbtest2")),
            "{damage}: {text}"
        );
    }
}

#[test]
fn tables_of_every_form_can_be_prepared_warmed_up_and_run() {
    let bench = Bench::new("forms");
    for options in [
        "--create-secondary=off",
        "--auto-inc=off",
        "--secondary",
        "--secondary --auto-inc=off --create-secondary=off",
        "--create-table-options=ROW_FORMAT=COMPRESSED",
    ] {
        let words = format!("oltp_read_write --table-size=200 {options}");
        bench.succeed(&format!("prepare {words}"));
        bench.succeed(&format!("warmup {words}"));
        bench.succeed(&format!("run {words} --events=20"));
        let text = bench.succeed(&format!("check {words}"));
        assert!(!text.contains("BROKEN"), "{options}: {text}");
        let sql = Sql::open(&bench);
        let made = sql.rows("SHOW CREATE TABLE sbtest1")[0][1].clone().unwrap();
        for (part, is_expected) in [
            ("AUTO_INCREMENT", !options.contains("--auto-inc=off")),
            ("KEY `xid` (`id`)", options.contains("--secondary")),
            ("PRIMARY KEY", !options.contains("--secondary")),
            ("KEY `k_1` (`k`)", !options.contains("create-secondary=off")),
            ("ROW_FORMAT=COMPRESSED", options.contains("COMPRESSED")),
        ] {
            assert_eq!(made.contains(part), is_expected, "{part}: {made}");
        }
        bench.succeed("cleanup oltp_read_write");
    }
}
