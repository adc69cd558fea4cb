//! Every script against the real sysbench, by the server's general log: the same commands, texts
//! and counts.

use std::collections::BTreeMap;

use crate::prelude::*;
use crate::sysbench::sysbench;

/// The number of times that each command and text was sent.
type Statements = BTreeMap<(String, String), usize>;

/// The statements that the server receives while `load` runs, without those of the connection on
/// which the generator reads the server's counters and tables.
fn logged(sql: &Sql, exact: bool, load: impl FnOnce()) -> Statements {
    sql.start_log();
    load();
    // A close has no reply: the log is complete when the connections are closed.
    sql.wait_until_disconnected();
    sql.stop_log();
    let rows = sql.rows(
        "SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log \
         WHERE command_type IN ('Query', 'Prepare', 'Execute', 'Close stmt', 'Reset stmt') \
         AND thread_id <> CONNECTION_ID() AND thread_id NOT IN (SELECT thread_id FROM mysql.general_log \
         WHERE CONVERT(argument USING utf8mb4) LIKE '%information_schema%' \
         OR CONVERT(argument USING utf8mb4) LIKE '%GLOBAL STATUS%')",
    );
    let mut statements = Statements::new();
    for row in rows {
        let [command, text] = [0, 1].map(|cell| row[cell].clone().unwrap());
        let text = if exact { text } else { normalised(&text) };
        *statements.entry((command, text)).or_default() += 1;
    }
    statements
}

/// Replaces every number by `#`, with the sign of an id.
fn normalised(text: &str) -> String {
    let mut shape = String::new();
    for character in text.chars() {
        match character.is_ascii_digit() {
            true if shape.ends_with('#') => {}
            true if shape.ends_with("(-") => {
                shape.pop();
                shape.push('#');
            }
            true => shape.push('#'),
            false => shape.push(character),
        }
    }
    shape
}

/// Runs the verb of both programs and compares their statements.
fn assert_same(bench: &Bench, sql: &Sql, exact: bool, verb: &str, words: &str) -> Statements {
    let theirs = match verb {
        "run" => format!("{words} --time=0 --rand-seed=1 run"),
        "warmup" => format!("{words} prewarm"),
        other => format!("{words} {other}"),
    };
    let theirs = logged(sql, exact, || drop(sysbench(bench, &theirs)));
    // The second program must start from the same tables as the first.
    match verb {
        "prepare" => drop(sysbench(bench, &format!("{words} cleanup"))),
        "run" if words.starts_with("bulk") => {
            sysbench(bench, &format!("{words} cleanup"));
            sysbench(bench, &format!("{words} prepare"));
        }
        _ => {}
    }
    let ours = logged(sql, exact, || drop(bench.succeed(&format!("{verb} {words}"))));
    assert_eq!(short(&ours), short(&theirs), "{verb} {words}");
    assert!(!theirs.is_empty(), "{verb} {words}: nothing was logged");
    ours
}

/// Shortens long texts to their ends and their length, for a readable failure.
fn short(statements: &Statements) -> Vec<(String, usize)> {
    let text = |text: &str| match text.len() {
        0..=400 => text.to_owned(),
        length => format!("{} … {} ({length} bytes)", &text[..100], &text[length - 100..]),
    };
    statements
        .iter()
        .map(|((command, sql), count)| (format!("{command}: {}", text(sql)), *count))
        .collect()
}

#[test]
fn runs_send_what_sysbench_sends() {
    let bench = Bench::new("same_runs");
    // Creates the database.
    bench.succeed("prepare arm_insert");
    let sql = Sql::open(&bench);
    for mode in ["auto", "disable"] {
        // New tables for each mode: the deletes at the end leave gaps.
        bench.succeed("cleanup oltp_read_write --tables=2");
        bench.succeed("prepare oltp_read_write --tables=2 --table-size=500");
        for script in [
            "oltp_read_write --tables=2",
            "oltp_read_write --tables=2 --skip-trx --range-selects=off --point-selects=3 --delete-inserts=2",
            "oltp_read_only --tables=1",
            "oltp_read_only --tables=1 --simple-ranges=2 --sum-ranges=3 --order-ranges=4 --distinct-ranges=5",
            "oltp_write_only --tables=1",
            "oltp_write_only --tables=1 --index-updates=3 --non-index-updates=2 --skip-trx=on",
            "oltp_point_select --tables=1 --point-selects=7",
            "oltp_update_index --tables=1",
            "oltp_update_non_index --tables=1 --non-index-updates=2",
            "select_random_points",
            "select_random_points --random-points=3",
            "select_random_ranges",
            "select_random_ranges --number-of-ranges=1 --delta=20",
            "oltp_insert --tables=1",
            "oltp_delete --tables=1",
        ] {
            let words = format!(
                "{script} --table-size=500 --threads=1 --events=20 --db-ps-mode={mode} --rand-type=uniform"
            );
            if script.contains("--tables=2") {
                assert_same_over_tables(&bench, &sql, &words);
            } else {
                assert_same(&bench, &sql, false, "run", &words);
            }
        }
    }
}

/// With two tables the two programs draw different ones: compares the sums over both tables.
fn assert_same_over_tables(bench: &Bench, sql: &Sql, words: &str) {
    let whole = |statements: Statements| {
        let mut whole = Statements::new();
        for ((command, text), count) in statements {
            *whole
                .entry((command, text.replace("sbtest2", "sbtest1")))
                .or_default() += count;
        }
        whole
    };
    let theirs = logged(sql, false, || {
        drop(sysbench(bench, &format!("{words} --time=0 --rand-seed=1 run")))
    });
    let ours = logged(sql, false, || drop(bench.succeed(&format!("run {words}"))));
    assert_eq!(short(&whole(ours)), short(&whole(theirs)), "run {words}");
}

#[test]
fn unique_ids_and_full_packets_equal_those_of_sysbench() {
    let bench = Bench::prepared("same_inserts", "oltp_insert --auto-inc=off");
    let sql = Sql::open(&bench);
    let inserts = assert_same(
        &bench,
        &sql,
        false,
        "run",
        "oltp_insert --auto-inc=off --threads=1 --events=50 --rand-type=uniform",
    );
    assert_eq!(inserts.len(), 1, "{inserts:?}");
    bench.succeed("cleanup oltp_insert");
    bench.succeed("prepare bulk_insert");
    // Two packets and a part of a third, byte for byte.
    let packets = assert_same(
        &bench,
        &sql,
        true,
        "run",
        "bulk_insert --threads=1 --events=100000",
    );
    let mut lengths: Vec<usize> = packets.keys().map(|(_, text)| text.len()).collect();
    lengths.sort_unstable();
    assert!(lengths.len() == 3 && lengths[1] > 512 * 1024 - 16, "{lengths:?}");
}

#[test]
fn prepare_warmup_and_cleanup_send_what_sysbench_sends() {
    let bench = Bench::new("same_tables");
    // Creates the database.
    bench.succeed("prepare arm_insert");
    let sql = Sql::open(&bench);
    for words in [
        "oltp_read_write --tables=2 --table-size=20",
        "oltp_read_write --table-size=20 --auto-inc=off",
        "oltp_read_write --table-size=20 --secondary --create-secondary=off --mysql-storage-engine=myisam",
        "oltp_insert --auto-inc=off",
        "select_random_points --table-size=20",
        "bulk_insert --threads=2",
    ] {
        assert_same(&bench, &sql, false, "prepare", words);
        if words.contains("--tables=2") {
            assert_same(&bench, &sql, false, "warmup", words);
        }
        assert_same(&bench, &sql, false, "cleanup", words);
    }
}

#[test]
fn lookups_are_one_text_each_without_the_protocol_option() {
    let bench = Bench::prepared("lookups", "lookup --tables=3 --table-size=200");
    let sql = Sql::open(&bench);
    let run = |options: &str| {
        let words = format!("run lookup --tables=3 --table-size=200 --events=90 {options}");
        logged(&sql, false, || drop(bench.succeed(&words)))
    };
    let text = (
        "Query".to_owned(),
        "SELECT k FROM sbtest# WHERE id = #".to_owned(),
    );
    for options in ["", "--db-ps-mode=disable", "--protocol=text", "--reconnect=1"] {
        assert_eq!(run(options), Statements::from([(text.clone(), 90)]), "{options}");
    }
    let prepared = run("--protocol=ps");
    assert_eq!(
        prepared[&("Execute".to_owned(), text.1.clone())],
        90,
        "{prepared:?}"
    );
    assert!(!prepared.contains_key(&text), "{prepared:?}");
    // Table and id are uniform: all three tables and many ids occur.
    let exact = logged(&sql, true, || {
        drop(bench.succeed("run lookup --tables=3 --table-size=200 --events=90"));
    });
    let used = |table: u8| {
        exact
            .keys()
            .any(|(_, text)| text.contains(&format!("sbtest{table} ")))
    };
    assert!((1..=3).all(used) && exact.len() > 60, "{exact:?}");
}
