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
use hdrhistogram::Histogram;
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

/// The series of a run. Histograms are written to their file at once; counts stay in memory until
/// the end, about 200 bytes per second and transaction type.
#[derive(Debug)]
pub struct Series {
    types: &'static [&'static str],
    /// Rows of each type.
    rows: Vec<Vec<Row<'static>>>,
    log: LatencyLog,
}

impl Series {
    /// For these transaction types; histograms are written to `latency_log`.
    pub fn new(types: &'static [&'static str], latency_log: PathBuf) -> Self {
        Self {
            types,
            rows: types.iter().map(|_| Vec::new()).collect(),
            log: LatencyLog::new(latency_log),
        }
    }

    /// Adds an interval.
    ///
    /// # Errors
    /// If the histograms cannot be written.
    pub fn add(&mut self, interval: &Interval) -> Result<()> {
        let mut histograms = Vec::new();
        for ((totals, kind), rows) in interval.totals.iter().zip(self.types).zip(&mut self.rows) {
            let histogram = totals.latency.to_hdr()?;
            rows.push(Row {
                kind,
                number: interval.number,
                end: Timestamp {
                    monotonic_ns: interval.monotonic_ns,
                    realtime_ns: interval.realtime_ns,
                },
                counts: COUNTS.map(|(_, count, _)| Some(count(totals))),
                backlog: interval.backlog,
                p95_ms: (!histogram.is_empty()).then(|| histogram.value_at_quantile(0.95) as f64 / 1e6),
            });
            histograms.push((*kind, histogram));
        }
        let began_ns = interval.realtime_ns - interval.to_ns;
        self.log
            .add(began_ns, (interval.from_ns, interval.to_ns), &histograms)
    }

    /// Finishes the histograms and writes `throughput.parquet`: one row per interval and
    /// transaction type, null in columns for which `unseen` is true.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(&mut self, throughput: &Path, boot_id: &str, unseen: impl Fn(&str) -> bool) -> Result<()> {
        self.log.finish()?;
        // Sorted by entity, as every table of the format.
        let mut rows: Vec<Row> = self.rows.drain(..).flatten().collect();
        for (position, _) in COUNTS.iter().enumerate().filter(|(_, (name, ..))| unseen(name)) {
            rows.iter_mut().for_each(|row| row.counts[position] = None);
        }
        let mut columns = columns(&rows, unseen);
        let mut about = metadata(boot_id);
        for (name, of, help) in BACKLOG {
            let counts = rows.iter().map(|row| row.backlog.as_ref().map(of));
            columns.push((name, Arc::new(UInt64Array::from_iter(counts)), true));
            about["columns"][name] = gauge("1", "neither", help);
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

fn gauge(unit: &str, better: &str, help: &str) -> Json {
    json!({"unit": unit, "kind": "gauge", "better": better, "help": help, "source": "loadprint-load"})
}

/// Metadata of the table.
fn metadata(boot_id: &str) -> Json {
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
pub struct LatencyLog {
    to: PathBuf,
    /// Opened at the first interval.
    file: Option<BufWriter<File>>,
}

impl LatencyLog {
    /// Writes to this file.
    pub fn new(to: PathBuf) -> Self {
        Self { to, file: None }
    }

    /// Adds the histograms of an interval, by type. The start of the phase is on CLOCK_REALTIME;
    /// the interval counts from it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(
        &mut self,
        began_ns: i64,
        (from_ns, to_ns): (i64, i64),
        histograms: &[(&str, Histogram<u64>)],
    ) -> Result<()> {
        let span = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        let mut text = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.with_max_value_divisor(1e6);
        if self.file.is_none() {
            let began = SystemTime::UNIX_EPOCH + span(began_ns);
            builder
                .add_comment("[Histogram log format version 1.3]")
                .add_comment("values in nanoseconds; the maximum column in milliseconds")
                .with_start_time(began)
                .with_base_time(began);
        }
        let mut log = builder.begin_log_with(&mut text, &mut serializer)?;
        for (name, histogram) in histograms {
            log.write_histogram(histogram, span(from_ns), span(to_ns - from_ns), Tag::new(name))
                .map_err(|error| anyhow!("latency log: {error:?}"))?;
        }
        let (file, lines) = match &mut self.file {
            // The writer starts each log with its divisor; this file is one log.
            Some(file) => {
                let head = text.iter().position(|byte| *byte == b'\n');
                (file, &text[head.map_or(0, |end| end + 1)..])
            }
            None => {
                let file = BufWriter::new(files::create(&self.to)?);
                (self.file.insert(file), &text[..])
            }
        };
        file.write_all(lines)
            .with_context(|| format!("{}", self.to.display()))
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) => file.flush().with_context(|| format!("{}", self.to.display())),
            None => Ok(()),
        }
    }
}
