//! Builds `result.json` of a native run from the totals of `measure`.

use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::engine::Measured;
use crate::engine::Outcome;
use crate::engine::schedule::Rate;
use crate::stats::Counter;
use crate::stats::Totals;

/// Builds the content of `result.json`, see `docs/recording-format.md`, except for what the workload
/// adds; `about` are the settings of the run.
pub fn result_json(
    about: Json,
    types: &[&str],
    rate: Option<Rate>,
    percentile: u8,
    outcome: &Outcome,
    measured: &Measured,
) -> Map<String, Json> {
    let totals = Totals::sum(&measured.totals);
    let per_second = |count: u64| Some(count as f64 / measured.seconds).filter(|rate| rate.is_finite());
    let achieved = rate.and(per_second(totals.get(Counter::Events)));
    let mut transactions = Map::new();
    for (kind, (name, totals)) in types.iter().zip(&measured.totals).enumerate() {
        let value = json!({
            "count": totals.latency.count(),
            "latency_ms": latency_json(totals, percentile),
            "wait_ms_mean": mean_ms(totals.get(Counter::WaitNs), totals),
            "errors_by_code": by_code(outcome.errors.iter().filter(|((of, _), _)| *of == kind)),
        });
        transactions.insert((*name).to_owned(), value);
    }
    let open_loop = json!({
        "mode": if rate.is_some() { "open" } else { "closed" },
        "rate": rate.map(|rate| rate.per_second),
        "arrivals": rate.map(|rate| rate.arrivals),
        "achieved_rate": achieved,
        "rate_held": measured.arrived.map(|arrived| arrived.rate_held()),
        "backlog_max": measured.arrived.map(|arrived| arrived.max_waiting),
        "backlog_end": measured.arrived.map(|arrived| arrived.left()),
    });
    let waited = totals.get(Counter::WaitNs);
    let counted = json!({
        "events": totals.get(Counter::Events),
        "queries": totals.queries(),
        "reads": totals.get(Counter::Reads),
        "writes": totals.get(Counter::Writes),
        "others": totals.get(Counter::Others),
        "commits": totals.get(Counter::Commits),
        "rollbacks": totals.get(Counter::Rollbacks),
        "rows": totals.get(Counter::Rows),
        "errors": totals.get(Counter::Errors),
        "reconnects": totals.reconnects(),
        "reconnects_by_cause": {
            "asked": totals.get(Counter::Reopens),
            "error": totals.get(Counter::Reconnects),
        },
        "protocol_calls": {
            "prepares": totals.get(Counter::Prepares),
            "executes": totals.get(Counter::Executes),
            "closes": totals.get(Counter::Closes),
        },
        "seconds": measured.seconds,
        "drain_seconds": measured.drain_seconds,
        "latency_ms": latency_json(&totals, percentile),
        "wait_ms_mean": mean_ms(waited, &totals),
        "service_ms_mean": mean_ms(totals.get(Counter::LatencyNs).saturating_sub(waited), &totals),
        "transactions": transactions,
        "errors_by_code": by_code(outcome.errors.iter()),
        "per_thread": per_thread_json(measured),
    });
    let parts = [about, open_loop, counted];
    let objects = parts.iter().filter_map(Json::as_object);
    objects.flat_map(Clone::clone).collect()
}

fn per_thread_json(measured: &Measured) -> Vec<Json> {
    let each = measured.per_thread.iter();
    each.map(|(events, seconds)| json!({"events": events, "seconds": seconds}))
        .collect()
}

/// Latencies in milliseconds; null without events.
fn latency_json(totals: &Totals, percentile: u8) -> Json {
    let (counted, sum) = (&totals.latency, totals.get(Counter::LatencyNs));
    let smallest = counted.iter().next();
    let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    let quantile = |q: f64| counted.quantile(q).map(ms);
    let mut latency = json!({
        "min": smallest.map(|bucket| ms(bucket.from_ns)),
        "mean": mean_ms(sum, totals),
        "p50": quantile(0.5),
        "p95": quantile(0.95),
        "p99": quantile(0.99),
        "p999": quantile(0.999),
        "max": quantile(1.0),
        "sum": smallest.map(|_| ms(sum)),
    });
    if percentile > 0 {
        latency[format!("p{percentile}")] = json!(quantile(f64::from(percentile) / 100.0));
    }
    latency
}

/// Counts by error number, over all types.
fn by_code<'a>(errors: impl Iterator<Item = (&'a (usize, u32), &'a u64)>) -> Json {
    let mut codes = BTreeMap::new();
    errors.for_each(|((_, code), count)| *codes.entry(*code).or_insert(0) += count);
    let entries = codes.iter().map(|(code, count)| (code.to_string(), json!(count)));
    Json::Object(entries.collect())
}

fn mean_ms(nanoseconds: u64, totals: &Totals) -> Option<f64> {
    let count = totals.latency.count();
    (count > 0).then(|| nanoseconds as f64 / count as f64 / 1e6)
}
