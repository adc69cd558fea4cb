//! The engine and the suites with a driver that needs no server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use super::*;
use crate::cli;
use crate::driver::dry_run::DryRun;
use crate::options::Values;
use crate::stats::Counter;
use crate::workload;

/// Notes the order of calls and the events of each interval.
#[derive(Default)]
struct Notes {
    calls: Vec<String>,
    events: u64,
}

impl Observer for Notes {
    fn begins(&mut self, phase: &str) -> Result<()> {
        self.calls.push(format!("begin {phase}"));
        Ok(())
    }

    fn interval(&mut self, phase: &str, interval: Interval) -> Result<()> {
        if phase == "measure" {
            self.events += Totals::sum(&interval.totals).get(Counter::Events);
        }
        Ok(())
    }

    fn ended(&mut self, phase: &str) -> Result<()> {
        self.calls.push(format!("end {phase}"));
        Ok(())
    }

    fn at_rest_before(&mut self) -> Result<()> {
        self.calls.push("before".to_owned());
        Ok(())
    }

    fn at_rest_after(&mut self) -> Result<()> {
        self.calls.push("after".to_owned());
        Ok(())
    }
}

fn plan(threads: usize, events: u64) -> Plan {
    Plan {
        threads,
        time: None,
        events: Some(events),
        warmup: None,
    }
}

fn run_dry(name: &str, given: &[(&str, &str)], seed: u64, plan: &Plan, driver: &DryRun) -> (Outcome, Notes) {
    let workload = workload::find(name).unwrap();
    let mut tables = workload.descriptor().options.to_vec();
    tables.push(cli::COMMON);
    let values = Values::defaults(&tables, given);
    let load = workload.load(&values, plan.threads, seed).unwrap();
    let mut notes = Notes::default();
    let types = workload.descriptor().types.len();
    let outcome = run(
        load.as_ref(),
        driver,
        types,
        plan,
        &Interrupts::default(),
        &mut notes,
    )
    .unwrap();
    (outcome, notes)
}

/// The statements of one run with one thread.
fn statements(name: &str, given: &[(&str, &str)], seed: u64) -> Vec<String> {
    let driver = DryRun::default();
    run_dry(name, given, seed, &plan(1, 20), &driver);
    let log = driver.log.lock().unwrap();
    log.iter().map(|(_, text)| text.clone()).collect()
}

#[test]
fn a_transaction_has_fourteen_reads_four_writes_and_two_others() {
    let (outcome, notes) = run_dry("oltp_read_write", &[], 1, &plan(3, 100), &DryRun::default());
    let measured = outcome.measured.unwrap();
    let totals = &measured.totals[0];
    let counts = [
        Counter::Events,
        Counter::Reads,
        Counter::Writes,
        Counter::Others,
        Counter::Commits,
    ];
    assert_eq!(
        counts.map(|counter| totals.get(counter)),
        [100, 1400, 400, 200, 100]
    );
    assert_eq!(totals.latency.count(), 100);
    assert_eq!(
        measured.per_thread.iter().map(|(events, _)| events).sum::<u64>(),
        100
    );
    assert_eq!(notes.events, 100, "the intervals add up to the total");
}

#[test]
fn the_server_is_read_at_rest_around_the_measurement_only() {
    let warm = Plan {
        warmup: Some(Duration::from_millis(20)),
        ..plan(2, 10)
    };
    let (outcome, notes) = run_dry("oltp_point_select", &[], 1, &warm, &DryRun::default());
    let expected = [
        "begin warmup",
        "end warmup",
        "before",
        "begin measure",
        "end measure",
        "after",
    ];
    assert_eq!(notes.calls, expected);
    assert_eq!(outcome.measured.unwrap().totals[0].get(Counter::Events), 10);
}

#[test]
fn the_same_seed_gives_the_same_statements() {
    let mixed = [("tables", "3"), ("table-size", "1000")];
    assert_eq!(
        statements("oltp_read_write", &mixed, 7),
        statements("oltp_read_write", &mixed, 7)
    );
    assert_ne!(
        statements("oltp_read_write", &mixed, 7),
        statements("oltp_read_write", &mixed, 8)
    );
    let arm = [("scenario", "ctx5"), ("records-per-commit", "10")];
    assert_eq!(
        statements("arm_insert", &arm, 7),
        statements("arm_insert", &arm, 7)
    );
}

#[test]
fn statements_are_sysbench_s_in_its_order() {
    let texts = statements("oltp_read_write", &[("table-size", "9")], 1);
    let shape = |text: &str| -> String {
        let words = text.split('\'').step_by(2).collect::<Vec<_>>().join("S");
        words
            .chars()
            .map(|letter| if letter.is_ascii_digit() { '#' } else { letter })
            .collect()
    };
    let shapes: Vec<String> = texts[..20]
        .iter()
        .map(|text| shape(text).replace("##", "#").replace("##", "#"))
        .collect();
    let mut expected = vec!["BEGIN"];
    expected.extend(["SELECT c FROM sbtest# WHERE id=#"; 10]);
    expected.extend([
        "SELECT c FROM sbtest# WHERE id BETWEEN # AND #",
        "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN # AND #",
        "SELECT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
        "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
        "UPDATE sbtest# SET k=k+# WHERE id=#",
        "UPDATE sbtest# SET c=S WHERE id=#",
        "DELETE FROM sbtest# WHERE id=#",
        "INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, S, S)",
        "COMMIT",
    ]);
    assert_eq!(shapes, expected);
}

#[test]
fn a_deleted_row_is_the_one_inserted_again() {
    let texts = statements("oltp_read_write", &[], 3);
    for (delete, insert) in texts
        .iter()
        .zip(&texts[1..])
        .filter(|(first, _)| first.starts_with("DELETE"))
    {
        let id = delete.rsplit('=').next().unwrap();
        assert!(insert.contains(&format!("VALUES ({id}, ")), "{delete} / {insert}");
    }
}

#[test]
fn an_ignored_error_is_rolled_back_counted_and_the_event_run_again() {
    let driver = DryRun {
        deadlocks: Arc::new(Mutex::new(3)),
        ..DryRun::default()
    };
    let (outcome, _) = run_dry("oltp_read_write", &[], 1, &plan(1, 10), &driver);
    assert_eq!(outcome.errors_by_code, [(1213, 3)]);
    let totals = &outcome.measured.unwrap().totals[0];
    let counts = [Counter::Events, Counter::Errors, Counter::Commits, Counter::Rows];
    assert_eq!(counts.map(|counter| totals.get(counter)), [10, 3, 10, 40]);
    let log = driver.log.lock().unwrap();
    assert_eq!(log.iter().filter(|(_, text)| text == "ROLLBACK").count(), 3);
}

#[test]
fn arm_scenarios_send_one_insert_per_record_and_one_per_detail_table() {
    for (scenario, inserts, rows) in [
        ("simple", 1, 1),
        ("parent", 1, 1),
        ("metrics", 2, 4),
        ("ctx1", 2, 2),
        ("ctx20", 2, 21),
    ] {
        let driver = DryRun::default();
        let given = [("scenario", scenario), ("records-per-commit", "10")];
        let (outcome, _) = run_dry("arm_insert", &given, 1, &plan(2, 35), &driver);
        let totals = &outcome.measured.unwrap().totals[0];
        let counts = [Counter::Events, Counter::Writes, Counter::Commits];
        assert_eq!(
            counts.map(|counter| totals.get(counter)),
            [35, 35 * inserts, 4],
            "{scenario}"
        );
        let log = driver.log.lock().unwrap();
        let values: usize = log
            .iter()
            .filter(|(_, text)| text.starts_with("INSERT"))
            .map(|(_, text)| text.matches('(').count() - 1)
            .sum();
        assert_eq!(values as u64, 35 * rows, "{scenario}");
    }
}

#[test]
fn an_arm_buffer_is_not_lost_to_a_deadlock_and_no_id_is_used_twice() {
    let driver = DryRun {
        deadlocks: Arc::new(Mutex::new(2)),
        ..DryRun::default()
    };
    let (outcome, _) = run_dry(
        "arm_insert",
        &[("records-per-commit", "5")],
        1,
        &plan(2, 50),
        &driver,
    );
    assert_eq!(outcome.measured.unwrap().totals[0].get(Counter::Events), 50);
    let log = driver.log.lock().unwrap();
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    for (_, text) in log
        .iter()
        .filter(|(_, text)| text.starts_with("INSERT INTO arm_tran "))
    {
        let id = text.split("VALUES (").nth(1).unwrap().split(',').next().unwrap();
        *ids.entry(id.to_owned()).or_default() += 1;
    }
    assert_eq!(ids.len(), 60, "50 records and two buffers of 5 again");
    assert!(ids.values().all(|count| *count == 1));
}
