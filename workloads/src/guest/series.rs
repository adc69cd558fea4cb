//! A guest's interval reports as `throughput.parquet`, with the columns of the native series; what it does not report is null.

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
use loadprint_recording::clock;
use loadprint_recording::files::RunFile;
use loadprint_recording::table::write_table;

use crate::series::COUNTS;
use crate::series::metadata;

/// One interval of a guest's reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// CLOCK_MONOTONIC of its end, as near as its line came.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME of its end.
    pub realtime_ns: i64,
    /// By column.
    pub counts: Vec<(&'static str, u64)>,
    /// Milliseconds.
    pub p95: Option<f64>,
}

impl Second {
    /// An interval that ends now.
    pub fn now(counts: Vec<(&'static str, u64)>, p95: Option<f64>) -> Self {
        Self {
            monotonic_ns: clock::monotonic_ns(),
            realtime_ns: clock::realtime_ns(),
            counts,
            p95,
        }
    }

    /// The count of a column, where it was reported.
    pub fn get(&self, column: &str) -> Option<u64> {
        let mut counts = self.counts.iter();
        counts.find(|(name, _)| *name == column).map(|(_, count)| *count)
    }
}

/// Adds a column that is so much of another one.
pub fn share(seconds: &mut [Second], of: &str, column: &'static str, share: f64) {
    for second in seconds {
        if let Some(count) = second.get(of) {
            second
                .counts
                .push((column, (count as f64 * share).round() as u64));
        }
    }
}

/// Makes the intervals add up to `total` of a column: what the last report left out becomes an interval of its own, which ends
/// with the window, and what rounding put in too much is taken off the end.
pub fn close(seconds: &mut Vec<Second>, column: &'static str, total: u64) {
    let sum: u64 = seconds.iter().filter_map(|second| second.get(column)).sum();
    if sum < total {
        match seconds.last_mut().filter(|_| (total - sum) * 100 <= total) {
            Some(last) => add(last, column, total - sum),
            None => seconds.push(Second::now(vec![(column, total - sum)], None)),
        }
        return;
    }
    let mut excess = sum - total;
    for second in seconds.iter_mut().rev() {
        for (_, count) in second.counts.iter_mut().filter(|(name, _)| *name == column) {
            let taken = excess.min(*count);
            *count -= taken;
            excess -= taken;
        }
    }
}

fn add(second: &mut Second, column: &'static str, amount: u64) {
    match second.counts.iter_mut().find(|(name, _)| *name == column) {
        Some((_, count)) => *count += amount,
        None => second.counts.push((column, amount)),
    }
}

/// Writes the table, all intervals under one transaction type.
///
/// # Errors
/// When the file cannot be written.
pub fn write(file: &RunFile, seconds: &[Second], kind: &str, boot_id: &str) -> Result<()> {
    let numbers = (0u32..).take(seconds.len());
    let ints = |of: fn(&Second) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(seconds.iter().map(of)))
    };
    let kinds = StringArray::from_iter_values(seconds.iter().map(|_| kind));
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("second", Arc::new(UInt32Array::from_iter_values(numbers)), false),
        ("monotonic_ns", ints(|second| second.monotonic_ns), false),
        ("realtime_ns", ints(|second| second.realtime_ns), false),
        ("type", Arc::new(kinds), false),
    ];
    for (name, ..) in COUNTS {
        let counts = seconds.iter().map(|second| second.get(name));
        columns.push((name, Arc::new(UInt64Array::from_iter(counts)), true));
    }
    let p95 = seconds.iter().map(|second| second.p95);
    columns.push(("latency_p95_ms", Arc::new(Float64Array::from_iter(p95)), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).context("throughput table")?;
    write_table(file, &metadata(boot_id), &[batch])?;
    Ok(())
}

/// Writes a histogram of the whole phase as `latency.hlog`: one interval, nanoseconds.
///
/// # Errors
/// When the file cannot be written.
pub fn write_histogram(
    file: &RunFile,
    histogram: &Histogram<u64>,
    kind: &str,
    window: (i64, i64),
) -> Result<()> {
    let nanoseconds = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    let (began, length) = (
        SystemTime::UNIX_EPOCH + nanoseconds(window.0),
        nanoseconds(window.1 - window.0),
    );
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("values in nanoseconds; the maximum column in milliseconds")
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)?;
    let written = log.write_histogram(histogram, Duration::ZERO, length, Tag::new(kind));
    written.map_err(|error| anyhow!("latency log: {error:?}"))?;
    Ok(file.write(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(counts: &[u64]) -> Vec<Second> {
        counts
            .iter()
            .map(|count| Second::now(vec![("events", *count)], None))
            .collect()
    }

    fn closed(counts: &[u64], total: u64) -> Vec<u64> {
        let mut seconds = events(counts);
        close(&mut seconds, "events", total);
        seconds.iter().filter_map(|second| second.get("events")).collect()
    }

    #[test]
    fn the_sum_of_the_intervals_is_the_total() {
        assert_eq!(closed(&[100, 100], 201), [100, 101]);
        assert_eq!(closed(&[100, 100], 290), [100, 100, 90]);
        assert_eq!(closed(&[100, 100], 198), [100, 98]);
        assert_eq!(closed(&[5, 1], 3), [3, 0]);
        assert_eq!(closed(&[], 7), [7]);
    }
}
