//! Writes the per-second series of `measure`: `throughput.parquet`, and `latency.hlog` in the
//! HdrHistogram log format.

pub mod reported;

use std::fs::File;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::SystemTime;

use anyhow::Context;
use anyhow::Result;
use anyhow::anyhow;
use arrow_array::ArrayRef;
use arrow_array::Float64Array;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_array::UInt64Array;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use hdrhistogram::serialization::interval_log::Tag;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::files;
use loadprint_recording::table::write_table;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::engine::Interval;
use crate::engine::backlog::Backlog;
use crate::stats::Counter;
use crate::stats::Totals;

/// A column of counts: name, value, help.
pub type Count = (&'static str, fn(&Totals) -> u64, &'static str);

/// The columns of counts.
pub const COUNTS: [Count; 9] = [
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

/// A row of `throughput.parquet`: one interval and transaction type.
#[derive(Debug)]
struct Row {
    kind: usize,
    number: u32,
    monotonic_ns: i64,
    realtime_ns: i64,
    counts: [u64; COUNTS.len()],
    backlog: Option<Backlog>,
    p95_ms: Option<f64>,
}

/// The series of a run. Histograms are written to their file at once; counts stay in memory until
/// the end, about 150 bytes per second and transaction type.
#[derive(Debug)]
pub struct Series {
    types: &'static [&'static str],
    rows: Vec<Row>,
    log: LatencyLog,
}

impl Series {
    /// For these transaction types; histograms are written to `latency_log`.
    pub fn new(types: &'static [&'static str], latency_log: PathBuf) -> Self {
        Self {
            types,
            rows: Vec::new(),
            log: LatencyLog::new(latency_log),
        }
    }

    /// Adds an interval.
    ///
    /// # Errors
    /// If the histograms cannot be written.
    pub fn add(&mut self, interval: &Interval) -> Result<()> {
        for (kind, totals) in interval.totals.iter().enumerate() {
            self.rows.push(Row {
                kind,
                number: interval.number,
                monotonic_ns: interval.monotonic_ns,
                realtime_ns: interval.realtime_ns,
                counts: COUNTS.map(|(_, count, _)| count(totals)),
                backlog: interval.backlog,
                p95_ms: p95_ms(totals)?,
            });
        }
        self.log.add(interval, self.types)
    }

    /// Finishes the histograms and writes `throughput.parquet`: one row per interval and
    /// transaction type, null in columns for which `unseen` is true.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(&mut self, throughput: &Path, boot_id: &str, unseen: impl Fn(&str) -> bool) -> Result<()> {
        self.log.finish()?;
        // Sorted by entity, as every table of the format; the sort is stable.
        self.rows.sort_by_key(|row| row.kind);
        let batch = self.batch(unseen).context("throughput table")?;
        let mut about = metadata(boot_id);
        for (name, help) in [
            (
                "backlog",
                "arrivals that are due and not started at the end of the interval; open loop, all types together",
            ),
            ("concurrency", "events that are started and not ended, likewise"),
        ] {
            about["columns"][name] = gauge("1", "neither", help);
        }
        write_table(throughput, &about, &[batch])?;
        Ok(())
    }

    fn batch(&self, unseen: impl Fn(&str) -> bool) -> Result<RecordBatch> {
        let rows = &self.rows;
        let signed =
            |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) };
        let optional = |of: fn(Backlog) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter(rows.iter().map(|row| row.backlog.map(of))))
        };
        let names = rows
            .iter()
            .map(|row| self.types.get(row.kind).copied().unwrap_or_default());
        let seconds = UInt32Array::from_iter_values(rows.iter().map(|row| row.number));
        let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
            ("second", Arc::new(seconds), false),
            ("monotonic_ns", signed(|row| row.monotonic_ns), false),
            ("realtime_ns", signed(|row| row.realtime_ns), false),
            ("type", Arc::new(StringArray::from_iter_values(names)), false),
        ];
        for (position, (name, ..)) in COUNTS.iter().enumerate() {
            let seen = !unseen(name);
            let counts = rows.iter().map(|row| seen.then_some(row.counts[position]));
            columns.push((*name, Arc::new(UInt64Array::from_iter(counts)), !seen));
        }
        let latencies = Float64Array::from_iter(rows.iter().map(|row| row.p95_ms));
        columns.push(("latency_p95_ms", Arc::new(latencies), true));
        columns.push(("backlog", optional(|backlog| backlog.waiting), true));
        columns.push(("concurrency", optional(|backlog| backlog.running), true));
        Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
    }
}

/// The 95th percentile; null if no event ended in the interval.
fn p95_ms(totals: &Totals) -> Result<Option<f64>> {
    if totals.latency.count() == 0 {
        return Ok(None);
    }
    Ok(Some(
        totals.latency.to_hdr()?.value_at_quantile(0.95) as f64 / 1e6,
    ))
}

fn gauge(unit: &str, better: &str, help: &str) -> Json {
    json!({"unit": unit, "kind": "gauge", "better": better, "help": help, "source": "loadprint-load"})
}

/// Metadata of the table.
pub fn metadata(boot_id: &str) -> Json {
    let mut columns = Map::new();
    for (name, _, help) in COUNTS {
        columns.insert(name.to_owned(), gauge("1", "neither", help));
    }
    columns.insert(
        "latency_p95_ms".to_owned(),
        gauge("ms", "lower", "95th percentile of the interval"),
    );
    json!({
        "format_version": FORMAT_VERSION,
        "probe": "throughput",
        "role": "load",
        "shape": "table",
        "entity": ["type"],
        "interval_ns": 1_000_000_000_i64,
        "boot_id": boot_id,
        "writer": concat!("loadprint-load ", env!("CARGO_PKG_VERSION")),
        "columns": columns,
    })
}

/// Writes `latency.hlog`: nanoseconds, one tagged interval per second and transaction type, times
/// relative to the start of the phase.
#[derive(Debug)]
struct LatencyLog {
    to: PathBuf,
    /// Opened at the first interval.
    file: Option<BufWriter<File>>,
}

fn span(ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

impl LatencyLog {
    fn new(to: PathBuf) -> Self {
        Self { to, file: None }
    }

    fn write(&mut self, text: &[u8]) -> Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(files::create(&self.to)?),
        };
        let file = self.file.insert(file);
        file.write_all(text)
            .with_context(|| format!("{}", self.to.display()))
    }

    fn add(&mut self, interval: &Interval, types: &[&str]) -> Result<()> {
        let mut text = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.with_max_value_divisor(1e6);
        if self.file.is_none() {
            let began = SystemTime::UNIX_EPOCH + span(interval.realtime_ns - interval.to_ns);
            builder
                .add_comment("[Histogram log format version 1.3]")
                .add_comment("values in nanoseconds; the maximum column in milliseconds")
                .with_start_time(began)
                .with_base_time(began);
        }
        let mut log = builder.begin_log_with(&mut text, &mut serializer)?;
        for (totals, name) in interval.totals.iter().zip(types) {
            log.write_histogram(
                &totals.latency.to_hdr()?,
                span(interval.from_ns),
                span(interval.to_ns - interval.from_ns),
                Tag::new(name),
            )
            .map_err(|error| anyhow!("latency log: {error:?}"))?;
        }
        // The writer starts each log with its divisor; this file is one log.
        let head = text
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let skipped = if self.file.is_none() { 0 } else { head };
        self.write(&text[skipped..])
    }

    fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) => file.flush().with_context(|| format!("{}", self.to.display())),
            None => Ok(()),
        }
    }
}
