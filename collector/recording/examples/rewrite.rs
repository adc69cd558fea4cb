//! Writes tables anew as `finish` lays them in files: for benches, whose recordings no recorder made.
//!
//! `rewrite FILE…`; every entity is taken to have a row of every tick.
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
use loadprint_recording::files::RunFile;
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
    let file = RunFile::at(path).unwrap();
    write_stream(&file, &read_meta(path).unwrap(), layout, &schema, batches).unwrap();
}

/// The columns as the recorder declares them: what every row has is required.
fn declared(read: &[RecordBatch]) -> Schema {
    let schema = read[0].schema();
    let fields = schema.fields().iter().enumerate().map(|(place, field)| {
        let names = field.name() == "tick" || *field.data_type() == DataType::Utf8;
        let whole = read.iter().all(|batch| batch.column(place).null_count() == 0);
        field.as_ref().clone().with_nullable(!(names && whole))
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// The largest tick of a batch, unsigned as the recorder writes it, or signed.
fn last_tick(batch: &RecordBatch) -> Option<u64> {
    let ticks = batch.column_by_name("tick")?;
    let signed = || ticks.as_primitive::<Int64Type>().values().iter().max();
    ticks
        .as_primitive_opt::<UInt32Type>()
        .and_then(|ticks| ticks.values().iter().max().map(|&tick| u64::from(tick)))
        .or_else(|| signed().map(|tick| tick.unsigned_abs()))
}
