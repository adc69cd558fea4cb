//! The per-second series of `measure`: `throughput.parquet`, and `latency.hlog` for any HdrHistogram reader.

use std::fs;
use std::path::Path;
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
use loadprint_recording::table::write_table;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::engine::Interval;
use crate::stats::Counter;
use crate::stats::Totals;

/// A column that counts: name, value, help text of its metadata.
pub type Count = (&'static str, fn(&Totals) -> u64, &'static str);

/// The columns that count.
pub const COUNTS: [Count; 9] = [
    (
        "events",
        |totals| totals.get(Counter::Events),
        "operations that ended in this second",
    ),
    ("queries", Totals::queries, "client statements"),
    (
        "reads",
        |totals| totals.get(Counter::Reads),
        "statements that gave a result set",
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
    (
        "reconnects",
        |totals| totals.reconnects(),
        "connections opened again",
    ),
];

/// Writes `throughput.parquet`: one row per interval and transaction type, counts of that interval.
///
/// # Errors
/// When the file cannot be written.
pub fn write_throughput(path: &Path, intervals: &[Interval], types: &[&str], boot_id: &str) -> Result<()> {
    // Sorted by entity, as every table of the format.
    let rows: Vec<(&str, &Interval, &Totals)> = types
        .iter()
        .enumerate()
        .flat_map(|(kind, name)| {
            let of_type = move |interval| Some((*name, interval, Interval::totals_of(interval, kind)?));
            intervals.iter().filter_map(of_type)
        })
        .collect();
    let latencies = rows
        .iter()
        .map(|(_, _, totals)| p95_ms(totals))
        .collect::<Result<Vec<_>>>()?;
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        (
            "second",
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.1.number))),
            false,
        ),
        (
            "monotonic_ns",
            Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|row| row.1.monotonic_ns),
            )),
            false,
        ),
        (
            "realtime_ns",
            Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|row| row.1.realtime_ns),
            )),
            false,
        ),
        (
            "type",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
            false,
        ),
    ];
    for (name, count, _) in COUNTS {
        let counts = rows.iter().map(|(_, _, totals)| count(totals));
        columns.push((name, Arc::new(UInt64Array::from_iter_values(counts)), false));
    }
    columns.push((
        "latency_p95_ms",
        Arc::new(Float64Array::from_iter(latencies)),
        true,
    ));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).context("throughput table")?;
    write_table(path, &metadata(boot_id), &[batch])?;
    Ok(())
}

/// Null where nothing ended in the interval.
fn p95_ms(totals: &Totals) -> Result<Option<f64>> {
    if totals.latency.count() == 0 {
        return Ok(None);
    }
    Ok(Some(
        totals.latency.to_hdr()?.value_at_quantile(0.95) as f64 / 1e6,
    ))
}

/// What a reader needs to know of the table.
pub fn metadata(boot_id: &str) -> Json {
    let mut columns = Map::new();
    for (name, _, help) in COUNTS {
        let meaning = json!({"unit": "1", "kind": "gauge", "better": "neither", "help": help, "source": "loadprint-load"});
        columns.insert(name.to_owned(), meaning);
    }
    columns.insert(
        "latency_p95_ms".to_owned(),
        json!({"unit": "ms", "kind": "gauge", "better": "lower", "help": "95th percentile of the interval", "source": "loadprint-load"}),
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

/// Writes `latency.hlog`: nanoseconds, one tagged interval per second and transaction type, stamps relative to the phase's begin.
///
/// # Errors
/// When the file cannot be written.
pub fn write_latency(path: &Path, intervals: &[Interval], types: &[&str]) -> Result<()> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let nanoseconds = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    let began = intervals
        .first()
        .map_or(0, |first| first.realtime_ns - first.to_ns);
    let began = SystemTime::UNIX_EPOCH + nanoseconds(began);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("values in nanoseconds; the maximum column in milliseconds")
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)?;
    for interval in intervals {
        for (totals, name) in interval.totals.iter().zip(types) {
            log.write_histogram(
                &totals.latency.to_hdr()?,
                nanoseconds(interval.from_ns),
                nanoseconds(interval.to_ns - interval.from_ns),
                Tag::new(name),
            )
            .map_err(|error| anyhow!("latency log: {error:?}"))?;
        }
    }
    fs::write(path, text).with_context(|| format!("{}", path.display()))
}
