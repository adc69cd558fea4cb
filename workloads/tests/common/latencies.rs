//! Reads `latency.parquet` of a run directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::types::UInt64Type;
use hdrhistogram::Histogram;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The latencies of each transaction type over all intervals, and the ends of these intervals
/// (CLOCK_MONOTONIC).
pub fn read(run: &Path) -> BTreeMap<String, (Histogram<u64>, Vec<i64>)> {
    let mut types = BTreeMap::new();
    for batch in batches(&run.join("load/latency.parquet")) {
        let kinds = batch["type"].as_string::<i32>();
        let [from, to, count] =
            ["from_ns", "to_ns", "count"].map(|name| batch[name].as_primitive::<UInt64Type>().values());
        for (row, end) in ends(&batch).into_iter().enumerate() {
            let (histogram, ends) = types
                .entry(kinds.value(row).to_owned())
                .or_insert_with(|| (Histogram::new(3).unwrap(), Vec::new()));
            histogram.record_n(from[row], count[row]).unwrap();
            assert_eq!(histogram.lowest_equivalent(from[row]), from[row]);
            assert_eq!(histogram.next_non_equivalent(from[row]), to[row]);
            ends.push(end);
            ends.dedup();
        }
    }
    types
}

/// The ends of the intervals of throughput.parquet, in the order of its rows.
pub fn interval_ends(run: &Path) -> Vec<i64> {
    let batches = batches(&run.join("load/throughput.parquet"));
    batches.iter().flat_map(ends).collect()
}

fn ends(batch: &RecordBatch) -> Vec<i64> {
    batch["monotonic_ns"]
        .as_primitive::<Int64Type>()
        .values()
        .to_vec()
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}
