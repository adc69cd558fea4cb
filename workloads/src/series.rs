//! Writes the per-second series of `measure`: `throughput.parquet` and `latency.parquet`.

pub mod latencies;
pub mod reported;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use anyhow::Result;
use arrow_array::ArrayRef;
use arrow_array::Float64Array;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_array::UInt64Array;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::table::write_table;
use serde_json::Value as Json;
use serde_json::json;

use crate::engine::Interval;
use crate::engine::backlog::Backlog;
use crate::stats::Counter;
use crate::stats::Totals;
use latencies::LatencyTable;
use reported::Timestamp;

/// A column of counts: name, value, help.
type Count<T> = (&'static str, fn(&T) -> u64, &'static str);

/// The columns of counts.
const COUNTS: [Count<Totals>; 9] = [
    (
        "events",
        |totals| totals.get(Counter::Events),
        "operations that ended in the interval",
    ),
    ("queries", Totals::queries, "client statements"),
    (
        "reads",
        |totals| totals.get(Counter::Reads),
        "statements that returned a result set",
    ),
    (
        "writes",
        |totals| totals.get(Counter::Writes),
        "statements that affected rows",
    ),
    (
        "others",
        |totals| totals.get(Counter::Others),
        "statements that did neither",
    ),
    (
        "commits",
        |totals| totals.get(Counter::Commits),
        "explicit commits",
    ),
    ("rows", |totals| totals.get(Counter::Rows), "rows written"),
    ("errors", |totals| totals.get(Counter::Errors), "ignored errors"),
    ("reconnects", |totals| totals.reconnects(), "connections reopened"),
];

/// Columns of the backlog: name, value, help.
const BACKLOG: [Count<Backlog>; 2] = [
    (
        "backlog",
        |backlog| backlog.waiting,
        "arrivals that are due and not started at the end of the interval; open loop, all types together",
    ),
    (
        "concurrency",
        |backlog| backlog.running,
        "events that are started and not ended, likewise",
    ),
];

/// A row of `throughput.parquet`: one interval and transaction type.
#[derive(Debug)]
struct Row<'a> {
    kind: &'a str,
    number: u32,
    end: Timestamp,
    /// Null where the client cannot count.
    counts: [Option<u64>; COUNTS.len()],
    backlog: Option<Backlog>,
    p95_ms: Option<f64>,
}

/// The series of a run. Latencies are written at once; counts stay in memory until the end, about
/// 200 bytes per second and transaction type.
#[derive(Debug)]
pub struct Series {
    types: &'static [&'static str],
    /// Rows of each type.
    rows: Vec<Vec<Row<'static>>>,
    latencies: LatencyTable,
}

impl Series {
    /// For these transaction types.
    pub fn new(types: &'static [&'static str], latencies: LatencyTable) -> Self {
        Self {
            types,
            rows: types.iter().map(|_| Vec::new()).collect(),
            latencies,
        }
    }

    /// Adds an interval.
    ///
    /// # Errors
    /// If the latencies cannot be written.
    pub fn add(&mut self, interval: &Interval) -> Result<()> {
        for ((totals, kind), rows) in interval.totals.iter().zip(self.types).zip(&mut self.rows) {
            rows.push(Row {
                kind,
                number: interval.number,
                end: Timestamp {
                    monotonic_ns: interval.monotonic_ns,
                    realtime_ns: interval.realtime_ns,
                },
                counts: COUNTS.map(|(_, count, _)| Some(count(totals))),
                backlog: interval.backlog,
                p95_ms: totals.latency.quantile(0.95).map(|p95| p95 as f64 / 1e6),
            });
            self.latencies
                .add((interval.number, interval.monotonic_ns), kind, &totals.latency)?;
        }
        Ok(())
    }

    /// Finishes `latency.parquet` and writes `throughput.parquet`: one row per interval and
    /// transaction type, null in columns for which `unseen` is true.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(&mut self, throughput: &Path, boot_id: &str, unseen: impl Fn(&str) -> bool) -> Result<()> {
        self.latencies.finish()?;
        // Sorted by entity, as every table of the format.
        let mut rows: Vec<Row> = self.rows.drain(..).flatten().collect();
        for (position, _) in COUNTS.iter().enumerate().filter(|(_, (name, ..))| unseen(name)) {
            rows.iter_mut().for_each(|row| row.counts[position] = None);
        }
        let mut columns = columns(&rows, unseen);
        let mut about = throughput_metadata(boot_id);
        for (name, of, help) in BACKLOG {
            let counts = rows.iter().map(|row| row.backlog.as_ref().map(of));
            columns.push((name, Arc::new(UInt64Array::from_iter(counts)), true));
            about["columns"][name] = describe("1", "gauge", "neither", help);
        }
        write(throughput, &about, columns)
    }
}

/// Name, values, whether it has nulls.
type Column = (&'static str, ArrayRef, bool);

fn columns(rows: &[Row<'_>], has_nulls: impl Fn(&str) -> bool) -> Vec<Column> {
    let signed =
        |of: fn(&Row<'_>) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) };
    let seconds = UInt32Array::from_iter_values(rows.iter().map(|row| row.number));
    let kinds = StringArray::from_iter_values(rows.iter().map(|row| row.kind));
    let mut columns: Vec<Column> = vec![
        ("second", Arc::new(seconds), false),
        ("monotonic_ns", signed(|row| row.end.monotonic_ns), false),
        ("realtime_ns", signed(|row| row.end.realtime_ns), false),
        ("type", Arc::new(kinds), false),
    ];
    for (position, (name, ..)) in COUNTS.iter().enumerate() {
        let counts = UInt64Array::from_iter(rows.iter().map(|row| row.counts[position]));
        columns.push((name, Arc::new(counts), has_nulls(name)));
    }
    let latencies = Float64Array::from_iter(rows.iter().map(|row| row.p95_ms));
    columns.push(("latency_p95_ms", Arc::new(latencies), true));
    columns
}

fn write(throughput: &Path, about: &Json, columns: Vec<Column>) -> Result<()> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns).context("throughput table")?;
    Ok(write_table(throughput, about, &[batch])?)
}

fn describe(unit: &str, kind: &str, better: &str, help: &str) -> Json {
    json!({"unit": unit, "kind": kind, "better": better, "help": help, "source": "loadprint-load"})
}

fn throughput_metadata(boot_id: &str) -> Json {
    let mut about = metadata("throughput", boot_id);
    about["interval_ns"] = json!(1_000_000_000_i64);
    for (name, _, help) in COUNTS {
        about["columns"][name] = describe("1", "gauge", "neither", help);
    }
    about["columns"]["latency_p95_ms"] = describe("ms", "gauge", "lower", "95th percentile of the interval");
    about
}

/// Metadata of a table without its columns.
fn metadata(probe: &str, boot_id: &str) -> Json {
    json!({
        "format_version": FORMAT_VERSION,
        "probe": probe,
        "role": "load",
        "shape": "table",
        "entity": ["type"],
        "boot_id": boot_id,
        "writer": concat!("loadprint-load ", env!("CARGO_PKG_VERSION")),
        "columns": {},
    })
}
