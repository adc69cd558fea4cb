//! Holds the outcome of an external generator's run, and builds `result.json` from it: the keys of a
//! native run, null where the generator prints no figure, never zero.

use hdrhistogram::Histogram;
use loadprint_recording::FORMAT_VERSION;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::series::reported::ReportedInterval;

/// Latencies in milliseconds, as in `result.json`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// Totals of the measured window, and whether they are valid.
#[derive(Debug, Default)]
pub struct ExternalOutcome {
    /// Length of the window by the generator's clock; `None` without totals.
    pub seconds: Option<f64>,
    /// An object with the totals of `result.json`: `events`, `queries`, …
    pub totals: Json,
    /// Latency of all events.
    pub latency: Latency,
    /// Name, count, latency per transaction type.
    pub types: Vec<(String, u64, Latency)>,
    /// Values in milliseconds and their counts, if the generator printed a histogram.
    pub histogram: Vec<(f64, u64)>,
    /// Interval reports.
    pub series: Vec<ReportedInterval>,
    /// An object with facts for `details`.
    pub details: Json,
    /// The operation, if it differs from the workload's.
    pub operation: Option<String>,
    /// The program and its version.
    pub version: Option<String>,
    /// Why the figures are not valid; one line.
    pub failure: Option<String>,
    /// Warnings about the figures; one line each.
    pub flags: Vec<String>,
    /// The signal that ended the run.
    pub signal: Option<i32>,
}

impl ExternalOutcome {
    /// A run without figures.
    pub fn failed(reason: String) -> Self {
        Self {
            failure: Some(reason),
            ..Self::default()
        }
    }

    /// A run that was interrupted.
    pub fn interrupted(signal: i32) -> Self {
        Self {
            signal: Some(signal),
            ..Self::default()
        }
    }

    /// The content of `result.json`, with the settings of the run in `about`; `None` without totals.
    pub fn to_json(&self, about: &Json, reason: Option<&str>) -> Option<Json> {
        let seconds = self.seconds.filter(|seconds| *seconds > 0.0)?;
        let total = |name: &str| &self.totals[name];
        let types = self.types.iter();
        let transactions: Map<String, Json> = types
            .map(|(name, count, latency)| (name.clone(), json!({"count": count, "latency_ms": latency})))
            .collect();
        Some(json!({
            "format_version": FORMAT_VERSION,
            "workload": about["workload"],
            "generator": about["generator"],
            "generator_version": self.version,
            "point": about["point"],
            "operation": about["operation"],
            "options": about["options"],
            "threads": about["threads"],
            "seed": about["seed"],
            "server": about["server"],
            "protocol": null,
            "status": if reason.is_none() { "complete" } else { "failed" },
            "reason": reason,
            "flags": self.flags,
            "events": total("events"),
            "queries": total("queries"),
            "reads": total("reads"),
            "writes": total("writes"),
            "others": total("others"),
            "commits": total("commits"),
            "rollbacks": total("rollbacks"),
            "rows": total("rows"),
            "errors": total("errors"),
            "reconnects": total("reconnects"),
            "seconds": seconds,
            "drain_seconds": null,
            "latency_ms": self.latency,
            "transactions": transactions,
            "errors_by_code": null,
            "per_thread": null,
            "reconnects_by_cause": null,
            "protocol_calls": null,
            "details": self.details,
        }))
    }

    /// The printed histogram in nanoseconds, for `latency.hlog`; `None` without one.
    pub fn nanoseconds(&self) -> Option<Histogram<u64>> {
        if self.histogram.is_empty() {
            return None;
        }
        let mut histogram = Histogram::new(3).ok()?;
        for (milliseconds, count) in &self.histogram {
            histogram.record_n((milliseconds * 1e6) as u64, *count).ok()?;
        }
        Some(histogram)
    }
}

/// Reduces output of a generator to one line of limited length.
pub fn short(text: &str) -> String {
    const LONGEST: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
