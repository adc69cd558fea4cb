//! TPROC-C on a real server: its statements by the server's own counters, the data after runs and after a killed one, what is refused.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::Bench;
use crate::common::growth;
use crate::common::json;
use crate::common::only_line;
use crate::common::sql::Sql;

const TYPES: [&str; 5] = ["neword", "payment", "delivery", "slev", "ostat"];
/// Questions of each type in HammerDB's driver: SET, CALL and SELECT of what there is to set and to see.
const CALL: [u64; 5] = [3, 3, 1, 2, 3];
/// With prepared calls all inputs are variables.
const PREPARED: [u64; 5] = [3, 3, 2, 3, 3];
const EVENTS: u64 = 2300;

/// The result and the server's counters of a run.
struct Ran {
    result: Value,
    server: Value,
}

impl Ran {
    /// Two threads with a warehouse each: they hardly meet, so that nothing deadlocks and counts are exact; an error fails the run.
    fn of(bench: &Bench, name: &str, words: &str) -> Self {
        let run = bench.path(name);
        bench.succeed(&format!(
            "run tproc_c --threads=2 --all-warehouses=on --rand-seed=11 --mysql-ignore-errors=none {words} --out={}",
            run.display()
        ));
        Self {
            result: json(&run.join("load/result.json")),
            server: json(&run.join("load/server.json")),
        }
    }

    fn number(&self, key: &str) -> u64 {
        self.result[key].as_u64().unwrap()
    }

    fn counts(&self) -> [u64; 5] {
        TYPES.map(|kind| self.result["transactions"][kind]["count"].as_u64().unwrap())
    }

    fn transactions(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// Per transaction.
    fn per(&self, counter: &str) -> f64 {
        growth(&self.server, counter) as f64 / self.transactions() as f64
    }

    fn near(&self, counter: &str, wanted: f64, tolerance: f64) {
        let found = self.per(counter);
        assert!(
            (found - wanted).abs() < tolerance,
            "{counter} per transaction: {found}"
        );
    }

    /// What holds in every mode: the mix, what the server committed, HammerDB's figures, its statements inside procedures or outside.
    fn judge(&self) {
        let counts = self.counts();
        assert_eq!(self.transactions(), EVENTS);
        // Six standard deviations of a binomial: which thread runs how many of its transactions is not in the seed.
        for (kind, (count, share)) in TYPES.iter().zip(counts.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0])) {
            let p = share / 23.0;
            let (mean, deviation) = (EVENTS as f64 * p, (EVENTS as f64 * p * (1.0 - p)).sqrt());
            assert!(
                (*count as f64 - mean).abs() < 6.0 * deviation,
                "{kind}: {count}, not {mean}"
            );
        }
        let rollbacks = self.number("rollbacks");
        // One in 99 of a thousand new orders: more than 40 are so in one of 10^11 cases. None is so in one of 20,000, hence `modes`.
        assert!(rollbacks < 40, "{rollbacks}");
        assert_eq!(self.number("events"), counts[0] - rollbacks);
        assert_eq!(self.number("commits"), EVENTS - rollbacks);
        assert_eq!(growth(&self.server, "Com_commit"), EVENTS - rollbacks);
        assert_eq!(growth(&self.server, "Com_rollback"), rollbacks);
        let seconds = self.result["seconds"].as_f64().unwrap();
        let detail = |name: &str| self.result["details"][name].as_f64().unwrap();
        let minute = |count: u64| count as f64 * 60.0 / seconds;
        assert!((detail("nopm") / minute(self.number("events")) - 1.0).abs() < 1e-9);
        assert!((detail("tpm") / minute(EVENTS) - 1.0).abs() < 1e-9);
        assert_eq!(detail("warehouses"), 2.0);
        // Measured on HammerDB 6.0 in all three modes.
        self.near("Com_select", 13.8, 1.5);
        self.near("Com_update", 7.4, 0.8);
        self.near("Com_insert", 5.6, 0.6);
        self.near("Com_delete", 0.44, 0.2);
        // The loads' own SHOW of the counters is one of each.
        assert_eq!(growth(&self.server, "Questions"), self.number("queries") + 1);
    }

    fn questions(&self, each: [u64; 5]) {
        let wanted: u64 = self
            .counts()
            .iter()
            .zip(each)
            .map(|(count, each)| count * each)
            .sum();
        assert_eq!(self.number("queries"), wanted);
    }
}

fn modes(bench: &Bench) {
    let events = format!("--events={EVENTS}");
    let call = Ran::of(bench, "call", &format!("{events} --tproc-mode=call"));
    call.judge();
    call.questions(CALL);
    assert!(
        call.result["rows"].is_null(),
        "a client sees no rows of a procedure"
    );
    assert!(call.result["writes"].is_null());
    call.near("Questions", 2.87, 0.1);
    call.near("Bytes_received", 438.0, 44.0);
    call.near("Bytes_sent", 809.0, 81.0);

    let prepared = Ran::of(bench, "prepared", &format!("{events} --tproc-mode=prepared"));
    prepared.judge();
    prepared.questions(PREPARED);
    prepared.near("Questions", 2.96, 0.1);
    assert_eq!(growth(&prepared.server, "Com_stmt_execute"), EVENTS);

    let text = Ran::of(bench, "statements", &format!("{events} --tproc-mode=statements"));
    text.judge();
    assert!(text.number("rows") > 0);
    text.near("Questions", 28.4, 2.0);
    text.near("Bytes_received", 3404.0, 340.0);
    text.near("Bytes_sent", 7881.0, 790.0);
    assert_eq!(growth(&text.server, "Com_stmt_execute"), 0);

    let ps = Ran::of(
        bench,
        "ps",
        &format!("{events} --tproc-mode=statements --protocol=ps"),
    );
    ps.judge();
    ps.near("Questions", 28.4, 2.0);
    assert!(ps.per("Com_stmt_execute") > 25.0 && ps.per("Bytes_received") < 2000.0);
    let rollbacks = [call, prepared, text, ps].map(|ran| ran.number("rollbacks"));
    assert!(rollbacks.iter().sum::<u64>() > 0, "{rollbacks:?}");
}

/// SIGKILL in mid-run: what had begun is taken back by the server or done whole.
fn killed(bench: &Bench, mode: &str) {
    let sql = Sql::open(bench);
    let orders = || sql.number("SELECT SUM(d_next_o_id) FROM district");
    let before = orders();
    let words = format!("run tproc_c --threads=4 --tproc-mode={mode} --time=0 --report-interval=0");
    let mut child = bench
        .command(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while orders() < before + 100 {
        sleep(Duration::from_millis(1));
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The server finds out by itself; only then nothing moves any more.
    let others =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()";
    sql.wait_until("the killed load's connections stay", others, |others| others == 0);
    let told = bench.succeed("check tproc_c --threads=2");
    assert_eq!(told.lines().filter(|line| line.starts_with("holds")).count(), 10);
}

fn pauses(bench: &Bench) {
    let run = bench.path("pauses");
    bench.succeed(&format!(
        "run tproc_c --keying-thinking=on --threads=20 --time=10 --out={}",
        run.display()
    ));
    let result = json(&run.join("load/result.json"));
    // Nobody keys in a new order within 18 seconds, some have done the shorter ones, which take three: the rest of the ten is for
    // a machine that stalls.
    assert_eq!(result["transactions"]["neword"]["count"], 0);
    assert_eq!(result["events"], 0);
    assert!(result["commits"].as_u64().unwrap() > 0);
}

fn refused(bench: &Bench, words: &str, parts: &[&str]) {
    let output = bench.load(words);
    assert_eq!(output.status.code(), Some(2), "{words}");
    let line = only_line(&output);
    for part in parts {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
}

fn what_does_not_fit_is_refused(bench: &Bench) {
    let sql = Sql::open(bench);
    refused(
        bench,
        "prepare tproc_c",
        &["is not empty (14 tables and procedures)", "cleanup tproc_c"],
    );
    refused(
        bench,
        "run tproc_c --warehouses=3",
        &["--warehouses=3", "has 2", "prepare"],
    );
    refused(
        bench,
        "run tproc_c --strict",
        &["loaded without it", "prepare tproc_c --strict"],
    );
    sql.rows("ALTER TABLE stock RENAME COLUMN s_ytd TO s_sum");
    refused(bench, "run tproc_c", &["table stock has no column s_ytd"]);
    sql.rows("ALTER TABLE stock RENAME COLUMN s_sum TO s_ytd");

    // The comment tells whose a procedure is; those of another tool are called, with a word about what they do not tell.
    sql.rows("ALTER PROCEDURE NEWORD COMMENT 'of another tool'");
    let output = bench.load("run tproc_c --warehouses=1 --threads=2 --events=50");
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("another tool's") && told.contains("2 threads on 1 warehouses"),
        "{told}"
    );

    sql.rows("DROP PROCEDURE SLEV");
    refused(
        bench,
        "run tproc_c",
        &["no procedure SLEV", "--tproc-mode=statements"],
    );
    bench.succeed("run tproc_c --tproc-mode=statements --events=50 --check=on");
    sql.rows("DROP TABLE history");
    refused(bench, "run tproc_c", &["no table history", "prepare tproc_c"]);
}

#[test]
fn tproc_c_counts_as_hammerdb_does_and_its_data_outlive_a_kill() {
    let bench = Bench::new("tproc");
    let told = bench.succeed("prepare tproc_c --warehouses=2 --threads=2 --rand-seed=3");
    assert!(told.contains("2.0 of 2 warehouses"), "{told}");
    bench.succeed("warmup tproc_c --threads=2");
    modes(&bench);
    killed(&bench, "call");
    killed(&bench, "statements");
    pauses(&bench);
    what_does_not_fit_is_refused(&bench);
}

/// A change, how it is taken back, and the rules that it breaks.
const BREAKS: [(&str, &str, &[&str]); 11] = [
    (
        "UPDATE warehouse SET w_ytd = w_ytd + 1",
        "UPDATE warehouse SET w_ytd = w_ytd - 1",
        &["1", "8"],
    ),
    (
        "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 3",
        "UPDATE district SET d_ytd = d_ytd - 1 WHERE d_id = 3",
        &["1", "9"],
    ),
    (
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 7",
        "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 7",
        &["2"],
    ),
    (
        "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500",
        "INSERT INTO new_order VALUES (1, 4, 2500)",
        &["3", "5"],
    ),
    (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 5 AND o_id = 2500",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 5 AND o_id = 2500",
        &["4", "6"],
    ),
    (
        "UPDATE orders SET o_carrier_id = 3 WHERE o_d_id = 6 AND o_id = 2500",
        "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 6 AND o_id = 2500",
        &["5", "7"],
    ),
    (
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_d_id = 6 AND ol_o_id = 2500 AND ol_number = 2 AND ol_amount = 0",
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 6 AND ol_o_id = 2500 AND ol_number = 2",
        &["7"],
    ),
    (
        "UPDATE history SET h_d_id = 9 WHERE h_c_id = 77 AND h_c_d_id = 8 AND h_d_id = 8 AND h_data = 'mine'",
        "UPDATE history SET h_d_id = 8 WHERE h_c_id = 77 AND h_c_d_id = 8 AND h_d_id = 9 AND h_data = 'mine'",
        &["9"],
    ),
    (
        "UPDATE stock SET s_w_id = 2 WHERE s_i_id = 4711",
        "UPDATE stock SET s_w_id = 1 WHERE s_i_id = 4711",
        &["population"],
    ),
    (
        "UPDATE customer SET c_balance = c_balance + 1 WHERE c_d_id = 10 AND c_id = 99",
        "UPDATE customer SET c_balance = c_balance - 1 WHERE c_d_id = 10 AND c_id = 99",
        &["10", "12"],
    ),
    (
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 10 AND c_id = 99",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 10 AND c_id = 99",
        &["12"],
    ),
];

#[test]
fn each_broken_rule_is_named_and_the_strict_ones_hold_after_strict_runs() {
    let bench = Bench::new("tproc_strict");
    bench.succeed("prepare tproc_c --strict --history-pk=on --threads=2 --rand-seed=4");
    for mode in ["call", "statements"] {
        let told = bench.succeed(&format!(
            "run tproc_c --strict --tproc-mode={mode} --threads=4 --events=600 --report-interval=0 --check=on"
        ));
        assert_eq!(
            told.lines().filter(|line| line.starts_with("holds")).count(),
            12,
            "{told}"
        );
    }
    let refusal = bench.load("run tproc_c");
    assert!(only_line(&refusal).contains("made with --strict"));

    let sql = Sql::open(&bench);
    // Rows that the statements below find again.
    sql.rows("UPDATE history SET h_data = 'mine' WHERE h_c_id = 77 AND h_c_d_id = 8 AND id <= 30000");
    sql.rows("UPDATE order_line SET ol_amount = 0 WHERE ol_d_id = 6 AND ol_o_id = 2500 AND ol_number = 2");
    for (change, back, rules) in BREAKS {
        sql.rows(change);
        let output = bench.load("check tproc_c --strict --format=json");
        assert_eq!(output.status.code(), Some(1), "{change}");
        let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
        let broken: Vec<&str> = findings
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["holds"] == false)
            .map(|finding| {
                assert!(finding["broken"].as_str().unwrap().starts_with("warehouse 1: "));
                finding["rule"].as_str().unwrap().split(':').next().unwrap()
            })
            .collect();
        assert_eq!(broken, rules, "{change}");
        sql.rows(back);
    }
    bench.succeed("check tproc_c --strict");
}
