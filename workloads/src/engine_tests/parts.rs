//! Tests of the common start of several parts of a load, and of their statements.

use std::collections::HashSet;

use super::*;
use crate::share::Part;

/// A run whose first phase starts at this time of CLOCK_MONOTONIC.
fn run_at(start_ns: i64, plan: &Plan) -> (Result<Outcome>, Notes) {
    let workload = registry::find("lookup").unwrap();
    let values = Values::defaults(&[workload.descriptor().options[0], options::COMMON], &[]);
    let load = workload.load(&values, plan.share, 1).unwrap();
    let mut notes = Notes {
        start_ns: Some(start_ns),
        ..Notes::default()
    };
    let driver = DryRun::default();
    let outcome = run(
        load.as_ref(),
        &driver,
        1,
        plan,
        &Interrupts::default(),
        &mut notes,
    );
    (outcome, notes)
}

#[test]
fn the_first_phase_starts_at_the_given_time_after_all_reading_at_rest() {
    let warm = Plan {
        warmup: Some(Duration::from_millis(1)),
        ..plan(3, 10)
    };
    let closed = plan(3, 10);
    for (plan, first) in [
        (&warm, ["before warmup", "begin warmup"]),
        (&closed, ["before", "begin measure"]),
    ] {
        let start_ns = monotonic_ns() + 1_000_000_000;
        let (outcome, notes) = run_at(start_ns, plan);
        assert!(outcome.unwrap().measured.is_some());
        assert_eq!(notes.calls[..2], first);
        assert!(notes.first_ns.unwrap() >= start_ns);
    }
}

#[test]
fn a_start_in_the_past_fails_with_the_delay() {
    let (outcome, notes) = run_at(monotonic_ns() - 2_500_000_000, &plan(2, 10));
    let line = outcome.unwrap_err().to_string();
    assert!(
        line.starts_with("--start-at was ") && line.contains(" s ago by the server's clock"),
        "{line}"
    );
    let seconds: f64 = line.split(' ').nth(2).unwrap().parse().unwrap();
    assert!(seconds >= 2.5, "{line}");
    assert_eq!(notes.first_ns, None);
}

/// A thread of a part sends what the thread of this number sends without parts.
#[test]
fn the_threads_of_parts_send_the_statements_of_one_process() {
    const THREADS: usize = 4;
    for (name, given) in [
        ("oltp_read_write", vec![("tables", "3"), ("table-size", "1000")]),
        ("oltp_insert", vec![("auto-inc", "off")]),
        ("select_random_points", vec![("rand-type", "uniform")]),
    ] {
        let sent = |share: Share| -> Vec<Vec<String>> {
            let driver = DryRun::default();
            let part = Plan {
                share,
                ..plan(1, 200)
            };
            run_dry(name, &given, 7, &part, &driver);
            let log = driver.log.lock().unwrap();
            let of = |number| log.iter().filter(move |(of, _)| *of == number);
            let texts = |number| of(number).map(|(_, text)| text.clone()).collect();
            (0..share.threads).map(texts).collect()
        };
        // One thread each, so that it takes all events.
        let parts: Vec<Vec<String>> = (1..=THREADS)
            .flat_map(|number| sent(Share::of(Part { number, of: THREADS }, THREADS)))
            .collect();
        assert_eq!(
            parts.iter().collect::<HashSet<_>>().len(),
            THREADS,
            "{name}: repeated"
        );
        for texts in sent(Share::whole(THREADS)) {
            assert!(
                parts.iter().any(|part| part.starts_with(&texts)),
                "{name}: {texts:?}"
            );
        }
    }
}
