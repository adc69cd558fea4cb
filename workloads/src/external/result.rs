//! Builds `result.json` of an external generator: the keys of a native run, null where the
//! generator prints no figure.

use hdrhistogram::Histogram;
use loadprint_recording::FORMAT_VERSION;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use super::outcome::ExternalOutcome;

/// The integer totals of every result.
const TOTALS: [&str; 10] = [
    "events",
    "queries",
    "reads",
    "writes",
    "others",
    "commits",
    "rollbacks",
    "rows",
    "errors",
    "reconnects",
];

/// What the result repeats of the run's settings.
pub struct ResultContext<'a> {
    pub point: &'a str,
    pub workload: &'a str,
    pub generator: &'a str,
    pub operation: &'a str,
    pub options: &'a Json,
    pub threads: usize,
    pub seed: u64,
    pub server: &'a str,
}

/// Builds the content of `result.json`; `None` if the run has no totals.
pub fn result_json(
    context: &ResultContext<'_>,
    outcome: &ExternalOutcome,
    reason: Option<&str>,
) -> Option<Json> {
    let seconds = outcome.seconds.filter(|seconds| *seconds > 0.0)?;
    let transactions: Map<String, Json> = outcome
        .types
        .iter()
        .map(|(name, count, latency)| {
            (
                name.clone(),
                json!({"count": count, "latency_ms": latency.to_json()}),
            )
        })
        .collect();
    let mut result = json!({
        "format_version": FORMAT_VERSION,
        "workload": context.workload,
        "generator": context.generator,
        "generator_version": outcome.version,
        "point": Some(context.point).filter(|name| !name.is_empty()),
        "operation": context.operation,
        "options": context.options,
        "threads": context.threads,
        "seed": context.seed,
        "server": context.server,
        "protocol": null,
        "status": if reason.is_none() { "complete" } else { "failed" },
        "reason": reason,
        "flags": outcome.flags,
    });
    if let Some(result) = result.as_object_mut() {
        for name in TOTALS {
            result.insert(
                name.to_owned(),
                outcome.totals.get(name).cloned().unwrap_or(Json::Null),
            );
        }
        let rest = json!({
            "seconds": seconds,
            "drain_seconds": null,
            "latency_ms": outcome.latency.to_json(),
            "transactions": transactions,
            "errors_by_code": null,
            "per_thread": null,
            "reconnects_by_cause": null,
            "protocol_calls": null,
            "details": outcome.details,
        });
        result.extend(rest.as_object().cloned().unwrap_or_default());
    }
    Some(result)
}

/// A printed histogram in nanoseconds, for `latency.hlog`; `None` without one.
pub fn histogram(values: &[(f64, u64)]) -> Option<Histogram<u64>> {
    if values.is_empty() {
        return None;
    }
    let mut histogram = Histogram::new(3).ok()?;
    for (milliseconds, count) in values {
        histogram.record_n((milliseconds * 1e6) as u64, *count).ok()?;
    }
    Some(histogram)
}
