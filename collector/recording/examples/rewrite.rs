//! Writes tables again in the layout of `finish`: for benchmarks with generated recordings.
//!
//! Usage: `rewrite FILE…`. Assumes that every entity has a row at every tick.
#![allow(clippy::unwrap_used, reason = "a bench without its tables must stop")]

use std::env;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::types::UInt32Type;
use arrow_schema::DataType;
use arrow_schema::Schema;
use loadprint_recording::table::Layout;
use loadprint_recording::table::read_meta;
use loadprint_recording::table::write_stream;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn main() {
    for path in env::args_os().skip(1) {
        rewrite(Path::new(&path));
    }
}

fn rewrite(path: &Path) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let read: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    let schema = Arc::new(declared(&read));
    let ticks = read.iter().filter_map(last_tick).max().unwrap_or(0) as usize + 1;
    let rows: usize = read.iter().map(RecordBatch::num_rows).sum();
    let has_lists = schema.fields().iter().any(|field| field.data_type().is_list());
    let layout = Layout::for_series(rows, rows.div_ceil(ticks), has_lists);
    let batches = read
        .iter()
        .map(|batch| Ok(RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).unwrap()));
    write_stream(path, &read_meta(path).unwrap(), layout, &schema, batches).unwrap();
}

/// The schema as the recorder declares it: ticks and entities are required.
fn declared(read: &[RecordBatch]) -> Schema {
    let schema = read[0].schema();
    let fields = schema.fields().iter().enumerate().map(|(index, field)| {
        let is_key = field.name() == "tick" || *field.data_type() == DataType::Utf8;
        let is_complete = read.iter().all(|batch| batch.column(index).null_count() == 0);
        field.as_ref().clone().with_nullable(!(is_key && is_complete))
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// The largest tick of a batch; the recorder writes unsigned ticks, generators may write signed
/// ones.
fn last_tick(batch: &RecordBatch) -> Option<u64> {
    let ticks = batch.column_by_name("tick")?;
    let signed = || ticks.as_primitive::<Int64Type>().values().iter().max();
    ticks
        .as_primitive_opt::<UInt32Type>()
        .and_then(|ticks| ticks.values().iter().max().map(|&tick| u64::from(tick)))
        .or_else(|| signed().map(|tick| tick.unsigned_abs()))
}
