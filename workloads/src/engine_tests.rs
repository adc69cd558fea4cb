//! Tests the engine and the suites with a driver that needs no server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use crate::driver::DbError;
use crate::driver::StatementId;
use crate::driver::dry_run::DryRun;
use crate::driver::dry_run::Log;
use crate::engine::Interval;
use crate::engine::Observer;
use crate::engine::Outcome;
use crate::engine::Plan;
use crate::engine::Reconnects;
use crate::engine::Undo;
use crate::engine::client::Client;
use crate::engine::interrupts::Interrupts;
use crate::engine::load::Load;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::engine::run;
use crate::engine::schedule::Arrivals;
use crate::engine::schedule::Rate;
use crate::options;
use crate::options::Values;
use crate::registry;
use crate::stats::Counter;
use crate::stats::Totals;
use anyhow::Result;
use signal_hook::consts::SIGUSR1;
use signal_hook::consts::SIGUSR2;

/// Length of a pause.
const PAUSE: Duration = Duration::from_millis(30);

/// Records the order of the calls and counts the events of the intervals.
#[derive(Default)]
struct Notes {
    calls: Vec<String>,
    events: u64,
    /// The signals of the run, if it is to be paused.
    signals: Option<Interrupts>,
    /// The driver's log, if it is to be paused twice; else a pause ends before the load begins it.
    log: Option<Log>,
    /// What fails.
    fails: &'static str,
}

impl Observer for Notes {
    fn waiting(&mut self, _line: &str) -> Result<()> {
        Ok(())
    }

    fn ready(&mut self) -> Result<()> {
        Ok(())
    }

    fn at_rest_before_warmup(&mut self) -> Result<()> {
        self.calls.push("before warmup".to_owned());
        Ok(())
    }

    fn phase_starts(&mut self, phase: &str) -> Result<()> {
        self.calls.push(format!("begin {phase}"));
        if let Some(signals) = &self.signals {
            signals.received(SIGUSR1);
            if self.log.is_none() {
                signals.received(SIGUSR2);
            }
        }
        Ok(())
    }

    fn interval(&mut self, phase: &str, interval: Interval) -> Result<()> {
        if phase == "measure" {
            self.events += Totals::sum(&interval.totals).get(Counter::Events);
            anyhow::ensure!(self.fails != "interval", "the disk is full");
        }
        Ok(())
    }

    fn turn(&mut self, event: &str, in_event: usize) -> Result<()> {
        self.calls.push(format!("{event} {in_event}"));
        let Some((signals, log)) = self.signals.as_ref().zip(self.log.as_ref()) else {
            return Ok(());
        };
        match event {
            "paused" => {
                let statements = log.lock().unwrap().len();
                std::thread::sleep(PAUSE);
                assert_eq!(log.lock().unwrap().len(), statements, "no statement in a pause");
                signals.received(SIGUSR2);
            }
            // The end of an interval, then a second pause, while events run.
            "resumed" if !self.calls.contains(&"boundary 0".to_owned()) => signals.received(SIGUSR2),
            "boundary" => signals.received(SIGUSR1),
            _ => {}
        }
        Ok(())
    }

    fn phase_ended(&mut self, phase: &str) -> Result<()> {
        self.calls.push(format!("end {phase}"));
        Ok(())
    }

    fn at_rest_before(&mut self) -> Result<()> {
        self.calls.push("before".to_owned());
        Ok(())
    }

    fn at_rest_after(&mut self) -> Result<()> {
        self.calls.push("after".to_owned());
        anyhow::ensure!(self.fails != "after", "the server is gone");
        Ok(())
    }
}

fn plan(threads: usize, events: u64) -> Plan {
    Plan {
        paused: false,
        threads,
        time: None,
        events: Some(events),
        warmup: None,
        ramp: None,
        rate: None,
        undo: Undo::Rollback,
        reconnects: Reconnects::default(),
        init_timeout: Duration::from_secs(600),
        disconnect_after: None,
    }
}

fn run_dry(name: &str, given: &[(&str, &str)], seed: u64, plan: &Plan, driver: &DryRun) -> (Outcome, Notes) {
    run_noting(name, given, seed, plan, driver, Notes::default())
}

fn run_noting(
    name: &str,
    given: &[(&str, &str)],
    seed: u64,
    plan: &Plan,
    driver: &DryRun,
    mut notes: Notes,
) -> (Outcome, Notes) {
    let workload = registry::find(name).unwrap();
    let mut tables = workload.descriptor().options.to_vec();
    tables.push(options::COMMON);
    let values = Values::defaults(&tables, given);
    let load = workload.load(&values, plan.threads, seed).unwrap();
    let interrupts = notes.signals.clone();
    let types = workload.descriptor().types.len();
    let outcome = run(
        load.as_ref(),
        driver,
        types,
        plan,
        &interrupts.unwrap_or_default(),
        &mut notes,
    );
    let has_failed = outcome.error.is_some();
    assert_eq!(has_failed, !notes.fails.is_empty(), "{:?}", outcome.error);
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
        "before warmup",
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
fn a_paused_run_sends_nothing_and_leaves_the_pause_out_of_its_clock() {
    for rate in [None, Some(2000.0)] {
        let driver = DryRun::default();
        let paced = open(2000.0, 200);
        let plan = Plan {
            threads: 3,
            rate: paced.rate.filter(|_| rate.is_some()),
            ..paced
        };
        let notes = Notes {
            signals: Some(Interrupts::default()),
            log: Some(Arc::clone(&driver.log)),
            ..Notes::default()
        };
        let began = Instant::now();
        let (outcome, notes) = run_noting("oltp_point_select", &[], 1, &plan, &driver, notes);
        let took = began.elapsed().as_secs_f64();
        let pauses = ["paused 0", "resumed 0"];
        let turns = [&pauses[..], &["boundary 0"], &pauses[..]].concat();
        assert_eq!(notes.calls[2..notes.calls.len() - 2], turns);
        let measured = outcome.measured.unwrap();
        assert!(
            measured.seconds + 2.0 * PAUSE.as_secs_f64() <= took,
            "{measured:?} {took}"
        );
        assert_eq!(notes.events, measured.totals[0].get(Counter::Events));
        if let Some((arrived, rate)) = measured.arrived.zip(rate) {
            assert!(arrived.due as f64 <= measured.seconds * rate + 1.0, "{arrived:?}");
        }
    }
}

#[test]
fn a_pause_whose_end_comes_before_it_began_is_reported_with_its_end() {
    let notes = Notes {
        signals: Some(Interrupts::default()),
        ..Notes::default()
    };
    let driver = DryRun::default();
    let (_, notes) = run_noting("oltp_point_select", &[], 1, &plan(1, 10), &driver, notes);
    assert!(notes.calls[2].starts_with("paused"), "{:?}", notes.calls);
    assert_eq!(notes.calls[3], "resumed 0");
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
fn statements_are_those_of_sysbench_in_its_order() {
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
    assert_eq!(outcome.errors, BTreeMap::from([((0, 1213), 3)]));
    let totals = &outcome.measured.unwrap().totals[0];
    let counts = [Counter::Events, Counter::Errors, Counter::Commits, Counter::Rows];
    assert_eq!(counts.map(|counter| totals.get(counter)), [10, 3, 10, 40]);
    let log = driver.log.lock().unwrap();
    assert_eq!(log.iter().filter(|(_, text)| text == "ROLLBACK").count(), 3);
}

#[test]
fn an_arm_buffer_is_not_lost_to_a_deadlock_and_is_written_again_under_its_ids() {
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
    assert_eq!(ids.len(), 50);
    assert_eq!(ids.values().sum::<usize>(), 60, "two buffers of 5 again");
}

#[test]
fn in_compat_mode_an_ignored_error_sends_no_rollback() {
    let driver = DryRun {
        deadlocks: Arc::new(Mutex::new(3)),
        ..DryRun::default()
    };
    let compat = Plan {
        undo: Undo::Nothing,
        ..plan(1, 10)
    };
    run_dry("oltp_read_write", &[], 1, &compat, &driver);
    let log = driver.log.lock().unwrap();
    assert!(log.iter().all(|(_, text)| text != "ROLLBACK"));
    assert_eq!(log.iter().filter(|(_, text)| text == "BEGIN").count(), 13);
}

/// A plan at this rate and of this length.
fn open(per_second: f64, milliseconds: u64) -> Plan {
    Plan {
        time: Some(Duration::from_millis(milliseconds)),
        events: None,
        rate: Some(Rate {
            per_second,
            arrivals: Arrivals::Constant,
            seed: 1,
        }),
        ..plan(2, 0)
    }
}

#[test]
fn an_open_loop_runs_what_is_due_and_waits_for_the_rest() {
    let (outcome, _) = run_dry("oltp_point_select", &[], 1, &open(500.0, 400), &DryRun::default());
    let measured = outcome.measured.unwrap();
    let arrived = measured.arrived.unwrap();
    // Arrival n is due at n × 2 ms: 200 of them are before the end of the time, which a loaded host
    // may notice late.
    let limit = (measured.seconds * 500.0) as u64 + 1;
    assert!((200..=limit).contains(&arrived.due), "{arrived:?} of {limit}");
    let events = measured.totals[0].get(Counter::Events);
    assert!(
        events <= limit && arrived.started <= events,
        "{events} {arrived:?} of {limit}"
    );
}

#[test]
fn a_rate_above_capacity_builds_a_backlog_that_counts_in_the_latency() {
    let (outcome, _) = run_dry("oltp_point_select", &[], 1, &open(50e6, 1000), &DryRun::default());
    assert_eq!((outcome.failure, outcome.early_end), (None, None));
    let measured = outcome.measured.unwrap();
    let arrived = measured.arrived.unwrap();
    assert!(!arrived.rate_held() && arrived.left() > 0 && arrived.max_waiting >= arrived.left());
    // Nearly all events started long after they were due, at the end limit of a second late; also
    // on a host that ran the threads only for a part of that second.
    let totals = &measured.totals[0];
    let wait_ns = totals.get(Counter::WaitNs) / totals.latency.count();
    let mean_ns = totals.get(Counter::LatencyNs) / totals.latency.count();
    assert!(
        wait_ns > 1_000_000 && mean_ns >= wait_ns,
        "{wait_ns} of {mean_ns}"
    );
}

#[test]
fn both_loops_send_the_same_statements_per_thread() {
    let sent = |plan: &Plan| {
        let driver = DryRun::default();
        let mixed = [("tables", "3"), ("table-size", "1000")];
        run_dry("oltp_read_write", &mixed, 7, plan, &driver);
        let log = driver.log.lock().unwrap();
        // Connections are numbered as they are opened; the threads have the same statements in
        // either order.
        let statements_of = |number| -> Vec<String> {
            let statements = log.iter().filter(|(of, _)| *of == number);
            statements.map(|(_, text)| text.clone()).collect()
        };
        [statements_of(0), statements_of(1)]
    };
    // The threads may share the 400 events in any way, and one may get none of them, but not in
    // each of twenty rounds.
    let compared = (0..20).any(|_| {
        let closed = sent(&plan(2, 400));
        let paced = sent(&Plan {
            events: Some(400),
            time: None,
            ..open(2000.0, 0)
        });
        let mut compared = 0;
        for one in &closed {
            // A thread is identified by its first SELECT, which follows BEGIN.
            for other in paced
                .iter()
                .filter(|other| one.get(1).is_some() && other.get(1) == one.get(1))
            {
                let common = one.len().min(other.len());
                assert_eq!(one[..common], other[..common]);
                compared += common;
            }
        }
        compared >= 20
    });
    assert!(compared, "no thread worked in both loops");
}

#[test]
fn threads_start_one_by_one_in_the_ramp() {
    let ramp = Plan {
        ramp: Some(Duration::from_millis(200)),
        ..plan(4, 10)
    };
    let (outcome, notes) = run_dry("oltp_point_select", &[], 1, &ramp, &DryRun::default());
    assert_eq!(
        notes.calls[..4],
        ["before warmup", "begin ramp", "end ramp", "before"]
    );
    assert_eq!(outcome.measured.unwrap().totals[0].get(Counter::Events), 10);
}

/// Work for three events per thread and phase.
struct Three;

impl Load for Three {
    fn session(&self, _thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError> {
        let statement = client.prepare("SELECT 1", &[])?;
        Ok(Box::new(ThreeSession { statement, left: 3 }))
    }
}

struct ThreeSession {
    statement: StatementId,
    left: usize,
}

impl Session for ThreeSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        if self.left == 0 {
            return Ok(Step::Exhausted);
        }
        self.left -= 1;
        client.execute(self.statement, &[])?;
        Ok(Step::Done(1))
    }
}

#[test]
fn a_run_that_ends_before_its_time_has_a_reason() {
    let hour = Plan {
        time: Some(Duration::from_secs(3600)),
        events: None,
        ..plan(2, 0)
    };
    let interrupts = Interrupts::default();
    let outcome = run(
        &Three,
        &DryRun::default(),
        1,
        &hour,
        &interrupts,
        &mut Notes::default(),
    );
    assert_eq!(outcome.measured.unwrap().totals[0].get(Counter::Events), 6);
    let early_end = outcome.early_end.unwrap();
    assert!(
        early_end.contains("ran out of work") && early_end.contains("of 3600 s"),
        "{early_end}"
    );
}

#[test]
fn an_error_of_the_observer_loses_no_figures() {
    for (fails, plan) in [("after", plan(2, 100)), ("interval", open(2000.0, 3_600_000))] {
        let notes = Notes {
            fails,
            ..Notes::default()
        };
        let driver = DryRun::default();
        let (outcome, _) = run_noting("oltp_point_select", &[], 1, &plan, &driver, notes);
        assert!(outcome.failure.is_none());
        let measured = outcome.measured.unwrap();
        let events = measured.totals[0].get(Counter::Events);
        assert!(events >= 100 && measured.seconds > 0.0, "{measured:?}");
    }
}
