//! Holds the outcome of an external generator's run, and builds `result.json` from it: the keys of a
//! native run, null where the generator prints no figure, never zero.

use loadprint_recording::FORMAT_VERSION;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::series::reported::ReportedInterval;
use crate::stats::histogram::Sparse;

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

/// Relative width of a histogram bucket: a percentile is the edge of one (1.8 % in sysbench).
const WIDTH: f64 = 0.02;
/// Milliseconds by which printed figures are rounded.
const ROUNDING: f64 = 0.01;

impl Latency {
    /// Whether a value is between the smallest and the largest latency, as far as they are known.
    fn includes(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min * (1.0 - WIDTH) - ROUNDING)
            && self.max.is_none_or(|max| value <= max * (1.0 + WIDTH) + ROUNDING)
    }

    /// Removes figures that contradict others, and names them: means and percentiles outside of the smallest
    /// and the largest latency, percentiles of 0, all percentiles if they decrease, all figures if the smallest
    /// exceeds the largest.
    fn remove_contradictions(&mut self) -> Vec<&'static str> {
        let before = *self;
        let percentiles: Vec<f64> = [self.p50, self.p95, self.p99, self.p999]
            .into_iter()
            .flatten()
            .collect();
        let decrease = percentiles
            .windows(2)
            .any(|pair| pair[1] < pair[0] * (1.0 - WIDTH) - ROUNDING);
        for percentile in [&mut self.p50, &mut self.p95, &mut self.p99, &mut self.p999] {
            *percentile = percentile.filter(|value| !decrease && *value > 0.0 && before.includes(*value));
        }
        self.mean = self.mean.filter(|mean| before.includes(*mean));
        if before.min.zip(before.max).is_some_and(|(min, max)| min > max) {
            *self = Self::default();
        }
        let figures = [
            ("min", before.min, self.min),
            ("mean", before.mean, self.mean),
            ("p50", before.p50, self.p50),
            ("p95", before.p95, self.p95),
            ("p99", before.p99, self.p99),
            ("p999", before.p999, self.p999),
            ("max", before.max, self.max),
        ];
        let removed = figures.iter().filter(|(_, before, after)| before != after);
        removed.map(|(name, ..)| *name).collect()
    }
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

    /// Removes latencies that contradict each other, with a flag.
    pub fn without_contradictions(mut self) -> Self {
        let bounds = self.latency;
        let mut removed: Vec<String> = self
            .latency
            .remove_contradictions()
            .iter()
            .map(ToString::to_string)
            .collect();
        for (name, _, latency) in &mut self.types {
            let is_new = *latency != bounds;
            let of_type = latency.remove_contradictions();
            removed.extend(
                of_type
                    .iter()
                    .filter(|_| is_new)
                    .map(|figure| format!("{figure} of {name}")),
            );
        }
        let mut intervals = 0;
        for interval in &mut self.series {
            let p95 = interval.p95.filter(|p95| *p95 > 0.0 && bounds.includes(*p95));
            // An interval without events has no percentile.
            intervals += u64::from(p95 != interval.p95 && interval.get("events") != Some(0));
            interval.p95 = p95;
        }
        if intervals > 0 {
            removed.push(format!("p95 of {intervals} of {} intervals", self.series.len()));
        }
        if self
            .histogram
            .iter()
            .any(|(value, count)| *count > 0 && !bounds.includes(*value))
        {
            self.histogram.clear();
            removed.push("the histogram".to_owned());
        }
        if !removed.is_empty() && self.totals["events"] != 0 {
            let bound =
                |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{value} ms"));
            self.flags.push(format!(
                "latencies of the generator contradict each other (min {}, max {}), these are null: {}",
                bound(bounds.min),
                bound(bounds.max),
                removed.join(", ")
            ));
        }
        self
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

    /// The printed histogram, for `latency.parquet`; empty without one.
    pub fn buckets(&self) -> Sparse {
        let values = self.histogram.iter();
        Sparse::of(values.map(|(milliseconds, count)| ((milliseconds * 1e6) as u64, *count)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::reported::Timestamp;

    /// Figures from min, mean, p50, p95, p99, p999, max; and those that are removed.
    fn removed(figures: [f64; 7]) -> Vec<&'static str> {
        let [min, mean, p50, p95, p99, p999, max] = figures.map(Some);
        let mut latency = Latency {
            min,
            mean,
            p50,
            p95,
            p99,
            p999,
            max,
        };
        latency.remove_contradictions()
    }

    #[test]
    fn latencies_that_contradict_each_other_are_removed() {
        assert_eq!(removed([1.0, 3.0, 2.0, 5.0, 6.0, 7.0, 8.0]), [""; 0]);
        // A percentile is the edge of a bucket.
        assert_eq!(removed([2.0, 2.0, 1.97, 2.03, 2.03, 2.03, 2.0]), [""; 0]);
        assert_eq!(removed([0.0, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01]), [""; 0]);
        assert_eq!(
            removed([1.0, 5.0, 0.0, 0.0, 0.0, 0.0, 30.0]),
            ["p50", "p95", "p99", "p999"]
        );
        assert_eq!(removed([1.0, 5.0, 2.0, 20.0, 31.0, 40.0, 30.0]), ["p99", "p999"]);
        assert_eq!(removed([1.0, 40.0, 2.0, 3.0, 4.0, 5.0, 30.0]), ["mean"]);
        assert_eq!(
            removed([1.0, 5.0, 9.0, 3.0, 9.0, 9.0, 30.0]),
            ["p50", "p95", "p99", "p999"]
        );
        assert_eq!(removed([30.0, 5.0, 2.0, 3.0, 4.0, 5.0, 1.0]).len(), 7);
        let mut unknown = Latency {
            p95: Some(5.0),
            ..Latency::default()
        };
        assert_eq!(unknown.remove_contradictions(), [""; 0]);
    }

    #[test]
    fn types_intervals_and_the_histogram_have_the_same_limits() {
        let latency = |p95: f64| Latency {
            min: Some(1.0),
            p95: Some(p95),
            max: Some(30.0),
            ..Latency::default()
        };
        let interval = |events: u64, p95: f64| ReportedInterval {
            end: Timestamp::default(),
            counts: vec![("events", events)],
            p95: Some(p95),
        };
        let outcome = ExternalOutcome {
            totals: json!({"events": 800}),
            latency: latency(20.0),
            types: vec![
                ("payment".to_owned(), 400, latency(0.0)),
                ("neword".to_owned(), 400, latency(5.0)),
            ],
            series: vec![interval(400, 0.0), interval(0, 0.0), interval(400, 12.0)],
            histogram: vec![(0.5, 0), (2.0, 400), (100_000.0, 400)],
            ..ExternalOutcome::default()
        };
        let checked = outcome.without_contradictions();
        assert_eq!(
            checked.flags,
            [
                "latencies of the generator contradict each other (min 1 ms, max 30 ms), these are null: \
              p95 of payment, p95 of 1 of 3 intervals, the histogram"
            ]
        );
        let p95: Vec<_> = checked.series.iter().map(|interval| interval.p95).collect();
        assert_eq!(p95, [None, None, Some(12.0)]);
        assert_eq!(checked.buckets(), Sparse::default());
        assert_eq!(checked.latency, latency(20.0));
    }
}
