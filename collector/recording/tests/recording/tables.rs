//! Tests the tables that `finish` writes with the Parquet reader: order, types, missing values,
//! metadata.

use std::fs::File;
use std::path::Path;

use crate::common::write_journal;
use arrow_array::Array;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::types::Int64Type;
use arrow_array::types::UInt32Type;
use arrow_array::types::UInt64Type;
use loadprint_recording::finish;
use loadprint_recording::table::read_meta;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;
use tempfile::tempdir;

fn recorded(ticks: u32) -> TempDir {
    let dir = tempdir().unwrap();
    write_journal(&dir.path().join("journal"), ticks);
    finish::journal(dir.path()).unwrap();
    dir
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader
        .with_batch_size(1 << 20)
        .build()
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
}

fn names(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn strings(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(column).unwrap();
    column
        .as_string::<i32>()
        .iter()
        .map(|text| text.map(str::to_owned))
        .collect()
}

#[test]
fn a_table_is_sorted_by_entity_and_tick_and_keeps_its_types() {
    let dir = recorded(70);
    let table = read(&dir.path().join("disk.parquet"));
    let expected = ["tick", "device", "queue", "reads", "cutime", "avg10", "model"];
    assert_eq!(names(&table), expected);
    let devices = strings(&table, "device");
    let is_sorted = |row: usize| devices[row].as_deref() == Some(["dm-0", "vda"][row / 70]);
    assert!((0..140).all(is_sorted));
    let ticks = table.column(0).as_primitive::<UInt32Type>();
    assert!((0..140).all(|row| ticks.value(row) as usize == row % 70));
    let reads = table.column(3).as_primitive::<UInt64Type>();
    assert_eq!((reads.value(0), reads.value(69)), (1000, 1207));
    assert_eq!(table.column(4).as_primitive::<Int64Type>().value(3), -8);
    let averages = table.column(5).as_primitive::<Float64Type>();
    assert!(averages.is_null(1) && averages.is_valid(0));
    assert_eq!(averages.value(0), 0.25);
    assert_eq!(strings(&table, "model")[75].as_deref(), Some("vda"));
}

#[test]
fn an_open_key_set_has_values_or_texts() {
    let dir = recorded(3);
    let table = read(&dir.path().join("memory.parquet"));
    assert_eq!(names(&table), ["metric", "tick", "value", "text"]);
    assert_eq!(table.column(2).as_primitive::<Int64Type>().value(0), 77);
    assert!(table.column(2).is_null(3));
    assert_eq!(strings(&table, "text")[3].as_deref(), Some("9.7.4"));
    let meta = read_meta(&dir.path().join("memory.parquet")).unwrap();
    assert_eq!(meta["metrics"]["Dirty"]["unit"], "kB");
    assert_eq!(meta["shape"], "metrics");
}

#[test]
fn histograms_have_bounds_and_a_failed_tick_has_no_row() {
    let dir = recorded(5);
    let path = dir.path().join("latency.parquet");
    let table = read(&path);
    assert_eq!(table.num_rows(), 4);
    let ticks = table.column(0).as_primitive::<UInt32Type>();
    assert_eq!(ticks.values().to_vec(), [0, 1, 3, 4]);
    let buckets = table.column_by_name("buckets").unwrap().as_list::<i32>().value(3);
    assert_eq!(buckets.as_primitive::<UInt64Type>().values().to_vec(), [4, 8, 0]);
    let meta = read_meta(&path).unwrap();
    assert_eq!(
        meta["columns"]["buckets"]["bounds"],
        serde_json::json!([0.0, 1.0, 2.0, null])
    );
}

#[test]
fn long_tables_of_lists_have_row_groups_with_statistics_of_ticks() {
    let groups = |ticks, name: &str| -> Vec<(i64, bool)> {
        let file = File::open(recorded(ticks).path().join(name)).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let groups = reader.metadata().row_groups().iter();
        groups
            .map(|group| (group.num_rows(), group.column(0).statistics().is_some()))
            .collect()
    };
    assert_eq!(
        groups(600, "latency.parquet"),
        [(256, true), (256, true), (87, true)]
    );
    assert_eq!(groups(600, "disk.parquet"), [(1200, true)]);
    assert_eq!(groups(200, "latency.parquet"), [(199, false)]);
}

#[test]
fn the_table_ticks_contains_times_failures_and_the_end() {
    let dir = recorded(5);
    let path = dir.path().join("ticks.parquet");
    let table = read(&path);
    assert_eq!(table.num_rows(), 15);
    let (status, reason) = (strings(&table, "status"), strings(&table, "reason"));
    let failed = status.iter().filter(|status| status.as_deref() == Some("failed"));
    assert_eq!(failed.count(), 1);
    assert_eq!(
        (status[12].as_deref(), reason[12].as_deref()),
        (Some("failed"), Some("no such device"))
    );
    assert_eq!(reason[0], None);
    let stamp = |column: &str, row| {
        table
            .column_by_name(column)
            .unwrap()
            .as_primitive::<Int64Type>()
            .value(row)
    };
    assert_eq!(stamp("intended_ns", 3), 3_000_000_000);
    assert_eq!(stamp("end_ns", 8) - stamp("start_ns", 8), 10);
    assert_eq!(
        stamp("realtime_ns", 0) - stamp("start_ns", 0),
        1_795_226_976_562_094_043
    );
    let meta = read_meta(&path).unwrap();
    assert_eq!(
        (meta["ticks"].as_u64(), meta["ended"].as_str()),
        (Some(5), Some("duration"))
    );
    assert_eq!(meta["probes"][2]["name"], "latency");
}
