//! What a guest's run gave, as far as the guest tells: what it does not tell is absent, never a zero.

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
    /// As `result.json` has it.
    pub fn to_json(self) -> Json {
        json!({
            "min": self.min, "mean": self.mean, "p50": self.p50, "p95": self.p95, "p99": self.p99, "p999": self.p999,
            "max": self.max,
        })
    }
}

/// Totals of the measured window, and the verdict on them.
#[derive(Debug, Default)]
pub struct ExternalOutcome {
    /// Length of the window by the guest's own clock; none if there are no totals.
    pub seconds: Option<f64>,
    /// Named as in `result.json`: `events`, `queries`, …
    pub totals: Map<String, Json>,
    /// Of all events together.
    pub latency: Latency,
    /// Name, count, latency per transaction type.
    pub types: Vec<(String, u64, Latency)>,
    /// Values in milliseconds and how often they came, when the guest printed a histogram.
    pub histogram: Vec<(f64, u64)>,
    /// Per interval of its own reports.
    pub series: Vec<ReportedInterval>,
    /// Facts for `details`.
    pub details: Map<String, Json>,
    /// The operation, where it is not the one that the workload declares.
    pub operation: Option<String>,
    /// The program and its version.
    pub version: Option<String>,
    /// Why the figures cannot stand; one line.
    pub failure: Option<String>,
    /// What is odd about them; one line each.
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

/// A guest's own words in one line of a bearable length, for a message.
pub fn short(text: &str) -> String {
    const LONGEST: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
