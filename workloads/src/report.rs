//! Formats interval lines and the summary as sysbench does.
//! The summary contains only figures of `result.json`.

use std::fmt::Write;

use serde_json::Map;
use serde_json::Value as Json;

use crate::engine::backlog::Backlog;
use crate::stats::Counter;
use crate::stats::Totals;

mod histogram;
mod points;

pub use histogram::histogram;
pub use points::points_table;

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// A number of `result.json`; null and missing numbers are zero, as in sysbench.
fn number(value: &Json) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// An interval line: `[ 4s ] thds: 2 tps: … qps: … (r/w/o: …) lat (ms,95%): … err/s: … reconn/s:
/// …`.
pub fn interval_line(
    elapsed_s: f64,
    seconds: f64,
    threads: usize,
    percentile: u8,
    totals: &Totals,
) -> String {
    let rate = |count: u64| per_second(count as f64, seconds);
    let latency = match percentile {
        0 => None,
        _ => totals.latency.quantile(f64::from(percentile) / 100.0),
    };
    format!(
        "[ {elapsed_s:.0}s ] thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{percentile}%): {:.2} \
         err/s: {:.2} reconn/s: {:.2}",
        rate(totals.get(Counter::Events)),
        rate(totals.queries()),
        rate(totals.get(Counter::Reads)),
        rate(totals.get(Counter::Writes)),
        rate(totals.get(Counter::Others)),
        latency.unwrap_or(0) as f64 / 1e6,
        rate(totals.get(Counter::Errors)),
        rate(totals.reconnects()),
    )
}

/// The second line of an interval, in an open loop.
pub fn backlog_line(elapsed_s: f64, backlog: Backlog) -> String {
    format!(
        "[ {elapsed_s:.0}s ] queue length: {}, concurrency: {}",
        backlog.waiting, backlog.running
    )
}

/// The summary in the format of sysbench 1.0, with the workload's details.
pub fn summary(result: &Json, percentile: u8) -> String {
    let seconds = number(&result["seconds"]);
    let count = |key: &str| number(&result[key]);
    let writes = match result["writes"].as_u64() {
        Some(writes) => writes.to_string(),
        None => "n/a".to_owned(),
    };
    let rate = |key: &str| per_second(count(key), seconds);
    let mut text = format!(
        "SQL statistics:
    queries performed:
        read:                            {}
        write:                           {writes}
        other:                           {}
        total:                           {}
    transactions:                        {:<6} ({:.2} per sec.)
    queries:                             {:<6} ({:.2} per sec.)
    ignored errors:                      {:<6} ({:.2} per sec.)
    reconnects:                          {:<6} ({:.2} per sec.)

General statistics:
    total time:                          {seconds:.4}s
    total number of events:              {}

",
        count("reads"),
        count("others"),
        count("queries"),
        count("events"),
        rate("events"),
        count("queries"),
        rate("queries"),
        count("errors"),
        rate("errors"),
        count("reconnects"),
        rate("reconnects"),
        count("events"),
    );
    text.push_str(&open_loop_block(result));
    text.push_str(&latency_block(&result["latency_ms"], percentile));
    text.push_str(&fairness_block(&result["per_thread"]));
    if let Some(details) = result["details"]
        .as_object()
        .filter(|details| !details.is_empty())
    {
        text.push_str(&workload_block(result, details));
    }
    text
}

fn line(name: &str, value: &str) -> String {
    format!("    {:<37}{value}\n", format!("{name}:"))
}

/// The block of an open loop, with a line if the rate was not held.
fn open_loop_block(result: &Json) -> String {
    if result["mode"] != "open" {
        return String::new();
    }
    let (rate, achieved) = (number(&result["rate"]), number(&result["achieved_rate"]));
    let arrivals = result["arrivals"].as_str().unwrap_or_default();
    let (max, end) = (&result["backlog_max"], &result["backlog_end"]);
    let (wait, service) = (
        number(&result["wait_ms_mean"]),
        number(&result["service_ms_mean"]),
    );
    let lines = [
        line("rate", &format!("{rate:.2} per sec., {arrivals}")),
        line("achieved rate", &format!("{achieved:.2} per sec.")),
        line("backlog (max/at the end)", &format!("{max}/{end}")),
        line("wait, service (avg, ms)", &format!("{wait:.2}, {service:.2}")),
    ];
    let mut text = format!("Open loop:\n{}", lines.concat());
    if result["rate_held"] == false {
        // `write!` into a String does not fail.
        writeln!(
            text,
            "The rate was not held: {achieved:.2} of {rate:.2} per sec.; {end} events were due and not started when the time was over."
        )
        .ok();
    }
    text.push('\n');
    text
}

fn workload_block(result: &Json, details: &Map<String, Json>) -> String {
    let seconds = number(&result["seconds"]);
    let mut text = String::from("\nWorkload:\n");
    for (name, key) in [("commits", "commits"), ("rows written", "rows")] {
        if result[key].is_null() {
            text.push_str(&line(
                name,
                "n/a: the client cannot count the work of stored procedures",
            ));
            continue;
        }
        let count = number(&result[key]);
        let value = format!("{count} ({:.2} per sec.)", per_second(count, seconds));
        text.push_str(&line(name, &value));
    }
    let drain = number(&result["drain_seconds"]);
    if drain > 0.0 {
        text.push_str(&line("drain after the time was over", &format!("{drain:.4}s")));
    }
    for (name, value) in details {
        text.push_str(&line(&name.replace('_', " "), &display_value(value)));
    }
    text
}

/// Formats a value of `details`: text without quotes, fractions with two decimals, or four below
/// one.
fn display_value(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or_default();
            let places = if number.abs() < 1.0 { 4 } else { 2 };
            format!("{number:.places$}")
        }
        other => other.to_string(),
    }
}

fn latency_block(latency: &Json, percentile: u8) -> String {
    let milliseconds = |key: &str| number(&latency[key]);
    format!(
        "Latency (ms):
         min:                              {:>10.2}
         avg:                              {:>10.2}
         max:                              {:>10.2}
        {percentile:>3}th percentile:                  {:>10.2}
         sum:                              {:>10.2}

",
        milliseconds("min"),
        milliseconds("mean"),
        milliseconds("max"),
        milliseconds(&format!("p{percentile}")),
        milliseconds("sum"),
    )
}

fn fairness_block(per_thread: &Json) -> String {
    let threads = per_thread.as_array().map(Vec::as_slice).unwrap_or_default();
    let (events, events_sd) = mean_and_deviation(threads.iter().map(|thread| number(&thread["events"])));
    let (seconds, seconds_sd) = mean_and_deviation(threads.iter().map(|thread| number(&thread["seconds"])));
    format!(
        "Threads fairness:
    events (avg/stddev):           {events:.4}/{events_sd:.2}
    execution time (avg/stddev):   {seconds:.4}/{seconds_sd:.2}
"
    )
}

/// Mean and population standard deviation, as in sysbench.
fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stats::Snapshot;
    use crate::stats::Stats;

    #[test]
    fn the_interval_line_has_the_format_of_sysbench() {
        let stats = Stats::new(1, 1);
        let thread = &stats.threads()[0];
        let before = Snapshot::take(&stats);
        thread.add(0, Counter::Events, 10);
        thread.add(0, Counter::Reads, 140);
        thread.add(0, Counter::Writes, 40);
        thread.add(0, Counter::Others, 20);
        (0..10).for_each(|_| thread.latency(0, 2_000_000));
        let totals = Totals::sum(&Snapshot::take(&stats).since(&before));
        let line = interval_line(4.0, 2.0, 2, 95, &totals);
        assert_eq!(
            line,
            "[ 4s ] thds: 2 tps: 5.00 qps: 100.00 (r/w/o: 70.00/20.00/10.00) lat (ms,95%): 2.00 err/s: 0.00 reconn/s: 0.00"
        );
        let backlog = Backlog {
            waiting: 3,
            running: 2,
        };
        assert_eq!(
            backlog_line(4.0, backlog),
            "[ 4s ] queue length: 3, concurrency: 2"
        );
    }

    fn result() -> Json {
        json!({
            "reads": 140, "writes": 40, "others": 20, "queries": 200, "events": 10, "errors": 0, "reconnects": 0,
            "seconds": 2.0, "latency_ms": {"min": 2.0, "mean": 2.0, "max": 2.0, "p95": 2.0, "sum": 20.0},
            "per_thread": [{"events": 4, "seconds": 2.0}, {"events": 6, "seconds": 2.0}], "mode": "closed", "details": {},
        })
    }

    #[test]
    fn the_summary_has_the_format_of_sysbench() {
        let text = summary(&result(), 95);
        for part in [
            "SQL statistics:\n    queries performed:\n        read:                            140\n",
            "    transactions:                        10     (5.00 per sec.)\n",
            "    total time:                          2.0000s\n",
            "\n         95th percentile:                        2.00\n",
            "    events (avg/stddev):           5.0000/1.00\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("Open loop"));
    }

    #[test]
    fn a_rate_that_was_not_held_adds_a_line() {
        let mut open = result();
        for (key, value) in [
            ("mode", json!("open")),
            ("rate", json!(100.0)),
            ("achieved_rate", json!(5.0)),
            ("arrivals", json!("poisson")),
            ("backlog_max", json!(190)),
            ("backlog_end", json!(185)),
            ("rate_held", json!(false)),
        ] {
            open[key] = value;
        }
        let text = summary(&open, 95);
        let expected = "The rate was not held: 5.00 of 100.00 per sec.; 185 events were due and not started when the time was over.";
        assert!(text.lines().any(|line| line == expected), "{text}");
        open["rate_held"] = json!(true);
        assert!(!summary(&open, 95).contains("not held"));
    }
}
