//! Holds the outcome of an external generator's run. Figures that the generator does not print are
//! absent, never zero.

use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::series::reported::ReportedInterval;

/// Latencies in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

impl Latency {
    /// As in `result.json`.
    pub fn to_json(self) -> Json {
        json!({
            "min": self.min, "mean": self.mean, "p50": self.p50, "p95": self.p95, "p99": self.p99, "p999": self.p999,
            "max": self.max,
        })
    }
}

/// Totals of the measured window, and whether they are valid.
#[derive(Debug, Default)]
pub struct ExternalOutcome {
    /// Length of the window by the generator's clock; `None` without totals.
    pub seconds: Option<f64>,
    /// Named as in `result.json`: `events`, `queries`, …
    pub totals: Map<String, Json>,
    /// Latency of all events.
    pub latency: Latency,
    /// Name, count, latency per transaction type.
    pub types: Vec<(String, u64, Latency)>,
    /// Values in milliseconds and their counts, if the generator printed a histogram.
    pub histogram: Vec<(f64, u64)>,
    /// Interval reports.
    pub series: Vec<ReportedInterval>,
    /// Facts for `details`.
    pub details: Map<String, Json>,
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
