//! The totals of `measure` as `result.json`: every figure from the same counters as the text.

use loadprint_recording::FORMAT_VERSION;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::engine::Measured;
use crate::engine::Outcome;
use crate::stats::Counter;
use crate::stats::Totals;
use crate::stats::histogram::HistogramError;
use crate::workload::Descriptor;

/// What the result repeats of the invocation.
pub struct Invocation<'a> {
    /// Its name among several runs of one command, or nothing.
    pub point: &'a str,
    /// The workload.
    pub descriptor: &'a Descriptor,
    /// What one event is.
    pub operation: &'a str,
    /// All options.
    pub options: &'a Json,
    /// Threads.
    pub threads: usize,
    /// Master seed.
    pub seed: u64,
    /// Where the server was.
    pub server: &'a str,
    /// All addresses, where there were several.
    pub servers: &'a [String],
    /// `{"mode", "cipher"}`.
    pub tls: Json,
    /// Whether the protocol was compressed.
    pub compression: bool,
    /// How statements went to it.
    pub protocol: &'a str,
}

/// The content of `result.json`, as `docs/recording-format.md` says.
///
/// # Errors
/// Does not happen for counters of the engine.
pub fn result_json(
    invocation: &Invocation<'_>,
    outcome: &Outcome,
    measured: &Measured,
    details: Map<String, Json>,
    reason: Option<&str>,
) -> Result<Json, HistogramError> {
    let totals = Totals::sum(&measured.totals);
    let descriptor = invocation.descriptor;
    let mut transactions = Map::new();
    for (name, totals) in descriptor.types.iter().zip(&measured.totals) {
        let value = json!({"count": totals.latency.count(), "latency_ms": latency_json(totals)?});
        transactions.insert((*name).to_owned(), value);
    }
    let errors_by_code: Map<String, Json> = outcome
        .errors_by_code
        .iter()
        .map(|(code, count)| (code.to_string(), json!(count)))
        .collect();
    let per_thread: Vec<Json> = measured
        .per_thread
        .iter()
        .map(|(events, seconds)| json!({"events": events, "seconds": seconds}))
        .collect();
    Ok(json!({
        "format_version": FORMAT_VERSION,
        "workload": descriptor.name,
        "generator": "native",
        "point": Some(invocation.point).filter(|name| !name.is_empty()),
        "operation": invocation.operation,
        "options": invocation.options,
        "threads": invocation.threads,
        "seed": invocation.seed,
        "server": invocation.server,
        "servers": invocation.servers,
        "tls": invocation.tls,
        "compression": invocation.compression,
        "protocol": invocation.protocol,
        "status": if reason.is_none() { "complete" } else { "failed" },
        "reason": reason,
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
        "latency_ms": latency_json(&totals)?,
        "transactions": transactions,
        "errors_by_code": errors_by_code,
        "per_thread": per_thread,
        "details": details,
    }))
}

/// Milliseconds; null where nothing was counted.
fn latency_json(totals: &Totals) -> Result<Json, HistogramError> {
    let histogram = totals.latency.to_hdr()?;
    let count = histogram.len();
    let ms = |nanoseconds: f64| (count > 0).then_some(nanoseconds / 1e6);
    let quantile = |q: f64| ms(histogram.value_at_quantile(q) as f64);
    Ok(json!({
        "min": ms(histogram.min() as f64),
        "mean": ms(totals.get(Counter::LatencyNs) as f64 / count as f64),
        "p50": quantile(0.5),
        "p95": quantile(0.95),
        "p99": quantile(0.99),
        "p999": quantile(0.999),
        "max": ms(histogram.max() as f64),
    }))
}
