//! Writes `latency.parquet`: one row for each interval, transaction type and bucket that is not
//! empty. An hour can have 50 million rows, so that they are not kept in memory but written at once,
//! under a temporary name until the end of the run.

use std::iter::repeat_n;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::ArrayRef;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_array::UInt64Array;
use loadprint_recording::table::Layout;
use loadprint_recording::table::TableWriter;
use serde_json::Value as Json;
use serde_json::json;

use super::describe;
use super::metadata;
use crate::stats::histogram::Bucket;
use crate::stats::histogram::Sparse;

/// The table; it is created with its first row.
#[derive(Debug)]
pub struct LatencyTable {
    path: PathBuf,
    about: Json,
    writer: Option<TableWriter>,
}

impl LatencyTable {
    /// Writes to this file.
    pub fn new(path: PathBuf, boot_id: &str) -> Self {
        let mut about = metadata("latency", boot_id);
        let count = describe(
            "1",
            "gauge",
            "neither",
            "latencies from `from_ns` to less than `to_ns`",
        );
        about["columns"] = json!({
            "from_ns": describe("ns", "gauge", "neither", "lowest value of the bucket"),
            "to_ns": describe("ns", "gauge", "neither", "lowest value above the bucket; HdrHistogram reports its values as to_ns - 1"),
            "count": count,
        });
        Self {
            path,
            about,
            writer: None,
        }
    }

    /// Adds the latencies of a transaction type in the interval of this number and end.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, (number, monotonic_ns): (u32, i64), kind: &str, latency: &Sparse) -> Result<()> {
        let buckets: Vec<Bucket> = latency.iter().collect();
        if buckets.is_empty() {
            return Ok(());
        }
        let each = |of: fn(&Bucket) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(buckets.iter().map(of)))
        };
        let kinds = StringArray::from_iter_values(repeat_n(kind, buckets.len()));
        let columns: [(&str, ArrayRef); 6] = [
            ("second", Arc::new(UInt32Array::from_value(number, buckets.len()))),
            (
                "monotonic_ns",
                Arc::new(Int64Array::from_value(monotonic_ns, buckets.len())),
            ),
            ("type", Arc::new(kinds)),
            ("from_ns", each(|bucket| bucket.from_ns)),
            ("to_ns", each(|bucket| bucket.to_ns)),
            ("count", each(|bucket| bucket.count)),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, false)))?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(TableWriter::create(
                &self.path,
                &self.about,
                Layout::Long {
                    group: Layout::NUMBERS,
                },
                &batch.schema(),
            )?),
        };
        Ok(writer.write(&batch)?)
    }

    /// Gives the table its name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        Ok(self.writer.take().map_or(Ok(()), TableWriter::finish)?)
    }
}
