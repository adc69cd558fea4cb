//! The text a person reads while a load runs and after it, in the form that sysbench users know.
//! A rendering of figures computed elsewhere; the machine-readable result is `result.json`.

use serde_json::Map;
use serde_json::Value as Json;

use crate::engine::Measured;
use crate::stats::Counter;
use crate::stats::Totals;
use crate::stats::histogram::HistogramError;

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

fn milliseconds(nanoseconds: f64) -> f64 {
    nanoseconds / 1e6
}

/// One interval line: `[ 4s ] thds: 2 tps: … qps: … (r/w/o: …) lat (ms,95%): … err/s: … reconn/s: …`.
pub fn interval_line(
    elapsed_s: f64,
    seconds: f64,
    threads: usize,
    percentile: u8,
    totals: &Totals,
) -> Result<String, HistogramError> {
    let rate = |count: u64| per_second(count, seconds);
    let latency = totals
        .latency
        .to_hdr()?
        .value_at_quantile(f64::from(percentile) / 100.0);
    Ok(format!(
        "[ {elapsed_s:.0}s ] thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{percentile}%): {:.2} \
         err/s: {:.2} reconn/s: {:.2}",
        rate(totals.get(Counter::Events)),
        rate(totals.queries()),
        rate(totals.get(Counter::Reads)),
        rate(totals.get(Counter::Writes)),
        rate(totals.get(Counter::Others)),
        milliseconds(latency as f64),
        rate(totals.get(Counter::Errors)),
        rate(totals.reconnects()),
    ))
}

/// The blocks at the end, as sysbench 1.0 prints them, and the workload's own facts.
pub fn summary(
    measured: &Measured,
    percentile: u8,
    details: &Map<String, Json>,
) -> Result<String, HistogramError> {
    let totals = Totals::sum(&measured.totals);
    let rate = |count: u64| per_second(count, measured.seconds);
    let (reads, writes) = (totals.get(Counter::Reads), totals.get(Counter::Writes));
    let (others, queries) = (totals.get(Counter::Others), totals.queries());
    let (events, errors) = (totals.get(Counter::Events), totals.get(Counter::Errors));
    let reconnects = totals.reconnects();
    let mut text = format!(
        "SQL statistics:
    queries performed:
        read:                            {reads}
        write:                           {writes}
        other:                           {others}
        total:                           {queries}
    transactions:                        {events:<6} ({:.2} per sec.)
    queries:                             {queries:<6} ({:.2} per sec.)
    ignored errors:                      {errors:<6} ({:.2} per sec.)
    reconnects:                          {reconnects:<6} ({:.2} per sec.)

General statistics:
    total time:                          {:.4}s
    total number of events:              {events}

",
        rate(events),
        rate(queries),
        rate(errors),
        rate(reconnects),
        measured.seconds,
    );
    text.push_str(&latency_block(&totals, percentile)?);
    text.push_str(&fairness_block(&measured.per_thread));
    if !details.is_empty() {
        text.push_str("\nWorkload:\n");
        let rows = totals.get(Counter::Rows);
        let commits = totals.get(Counter::Commits);
        let line = |name: &str, value: String| format!("    {:<37}{value}\n", format!("{name}:"));
        text.push_str(&line(
            "commits",
            format!("{commits} ({:.2} per sec.)", rate(commits)),
        ));
        text.push_str(&line(
            "rows written",
            format!("{rows} ({:.2} per sec.)", rate(rows)),
        ));
        text.push_str(&line(
            "drain after the time was over",
            format!("{:.4}s", measured.drain_seconds),
        ));
        for (name, value) in details {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&line(&name.replace('_', " "), value));
        }
    }
    Ok(text)
}

fn latency_block(totals: &Totals, percentile: u8) -> Result<String, HistogramError> {
    let histogram = totals.latency.to_hdr()?;
    let sum = totals.get(Counter::LatencyNs) as f64;
    let count = histogram.len();
    let mean = if count == 0 { 0.0 } else { sum / count as f64 };
    let quantile = histogram.value_at_quantile(f64::from(percentile) / 100.0) as f64;
    let smallest = if count == 0 { 0 } else { histogram.min() };
    Ok(format!(
        "Latency (ms):
         min:                              {:>10.2}
         avg:                              {:>10.2}
         max:                              {:>10.2}
        {percentile:>3}th percentile:                  {:>10.2}
         sum:                              {:>10.2}

",
        milliseconds(smallest as f64),
        milliseconds(mean),
        milliseconds(histogram.max() as f64),
        milliseconds(quantile),
        milliseconds(sum),
    ))
}

/// One line for each result of several runs.
pub fn points_table(results: &[Json]) -> String {
    let name = |result: &Json| result["point"].as_str().unwrap_or("-").to_owned();
    let width = results.iter().map(|result| name(result).len()).max().unwrap_or(0);
    let width = width.max("point".len());
    let mut text = format!(
        "{:<width$} {:>8} {:>10} {:>12} {:>12} {:>12} {:>10} {:>10} {:>8}\n",
        "point", "threads", "seconds", "events/s", "queries/s", "lat avg ms", "p95 ms", "p99 ms", "errors"
    );
    for result in results {
        let number = |value: &Json| value.as_f64().unwrap_or(0.0);
        let seconds = number(&result["seconds"]);
        let rate = |key: &str| {
            if seconds > 0.0 {
                number(&result[key]) / seconds
            } else {
                0.0
            }
        };
        let latency = |key: &str| match result["latency_ms"][key].as_f64() {
            Some(value) => format!("{value:.2}"),
            None => "-".to_owned(),
        };
        let failed = if result["status"] == "failed" {
            "  failed"
        } else {
            ""
        };
        text.push_str(&format!(
            "{:<width$} {:>8} {seconds:>10.2} {:>12.2} {:>12.2} {:>12} {:>10} {:>10} {:>8}{failed}\n",
            name(result),
            number(&result["threads"]),
            rate("events"),
            rate("queries"),
            latency("mean"),
            latency("p95"),
            latency("p99"),
            number(&result["errors"]),
        ));
    }
    text.trim_end().to_owned()
}

fn fairness_block(per_thread: &[(u64, f64)]) -> String {
    let (events, events_sd) = mean_and_deviation(per_thread.iter().map(|(events, _)| *events as f64));
    let (seconds, seconds_sd) = mean_and_deviation(per_thread.iter().map(|(_, seconds)| *seconds));
    format!(
        "Threads fairness:
    events (avg/stddev):           {events:.4}/{events_sd:.2}
    execution time (avg/stddev):   {seconds:.4}/{seconds_sd:.2}
"
    )
}

/// Mean and population standard deviation, as sysbench prints them.
fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Snapshot;
    use crate::stats::ThreadStats;

    fn totals() -> Vec<Totals> {
        let threads = [ThreadStats::new(1)];
        let before = Snapshot::take(&threads);
        threads[0].add(0, Counter::Events, 10);
        threads[0].add(0, Counter::Reads, 140);
        threads[0].add(0, Counter::Writes, 40);
        threads[0].add(0, Counter::Others, 20);
        (0..10).for_each(|_| threads[0].latency(0, 2_000_000));
        Snapshot::take(&threads).since(&before)
    }

    #[test]
    fn the_interval_line_is_sysbench_s() {
        let line = interval_line(4.0, 2.0, 2, 95, &Totals::sum(&totals())).unwrap();
        assert_eq!(
            line,
            "[ 4s ] thds: 2 tps: 5.00 qps: 100.00 (r/w/o: 70.00/20.00/10.00) lat (ms,95%): 2.00 err/s: 0.00 reconn/s: 0.00"
        );
    }

    #[test]
    fn the_summary_has_sysbench_s_blocks_and_figures() {
        let measured = Measured {
            seconds: 2.0,
            totals: totals(),
            per_thread: vec![(4, 2.0), (6, 2.0)],
            ..Measured::default()
        };
        let text = summary(&measured, 95, &Map::new()).unwrap();
        for part in [
            "SQL statistics:\n    queries performed:\n        read:                            140\n",
            "    transactions:                        10     (5.00 per sec.)\n",
            "    total time:                          2.0000s\n",
            "\n         95th percentile:                        2.00\n",
            "    events (avg/stddev):           5.0000/1.00\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
