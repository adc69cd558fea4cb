//! Tests the tables that `finish` writes with the Parquet reader: order, types, missing values,
//! metadata.

use std::fs::File;
use std::path::Path;

use crate::common::write_journal;
use loadprint_recording::finish;
use loadprint_recording::table::read_meta;
use parquet::basic::ConvertedType;
use parquet::file::reader::FileReader;
use parquet::file::reader::SerializedFileReader;
use serde_json::json;
use tempfile::TempDir;
use tempfile::tempdir;

fn recorded(ticks: u32) -> TempDir {
    let dir = tempdir().unwrap();
    write_journal(&dir.path().join("journal"), ticks);
    finish::journal(dir.path()).unwrap();
    dir
}

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

/// The rows of a table as the Parquet reader prints them.
fn read(path: &Path) -> Vec<String> {
    let rows = open(path).into_iter();
    rows.map(|row| row.unwrap().to_string()).collect()
}

/// The names and types of the columns.
fn types(path: &Path) -> String {
    let reader = open(path);
    let columns = reader.metadata().file_metadata().schema_descr().columns().iter();
    let columns = columns.map(|column| match column.converted_type() {
        ConvertedType::NONE => format!("{} {}", column.name(), column.physical_type()),
        kind => format!("{} {kind}", column.name()),
    });
    columns.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_table_is_sorted_by_entity_and_tick_and_keeps_its_types() {
    let dir = recorded(70);
    let path = dir.path().join("disk.parquet");
    let row = |tick: usize, device: &str| {
        let average = if tick % 3 == 1 { "null" } else { "0.25" };
        let (reads, cutime) = (1000 + 3 * tick, -5 - tick as i64);
        format!(
            "{{tick: {tick}, device: \"{device}\", queue: \"0\", reads: {reads}, cutime: {cutime}, avg10: {average}, model: \"{device}\"}}"
        )
    };
    let expected = ["dm-0", "vda"].map(|device| (0..70).map(move |tick| row(tick, device)));
    assert_eq!(read(&path), expected.into_iter().flatten().collect::<Vec<_>>());
    assert_eq!(
        types(&path),
        "tick UINT_32, device UTF8, queue UTF8, reads UINT_64, cutime INT64, avg10 DOUBLE, model UTF8"
    );
}

#[test]
fn an_open_key_set_has_values_or_texts() {
    let dir = recorded(2);
    let path = dir.path().join("memory.parquet");
    let expected = [
        r#"{metric: "Dirty", tick: 0, value: 77, text: null}"#,
        r#"{metric: "Dirty", tick: 1, value: 77, text: null}"#,
        r#"{metric: "version", tick: 0, value: null, text: "9.7.4"}"#,
        r#"{metric: "version", tick: 1, value: null, text: "9.7.4"}"#,
    ];
    assert_eq!(read(&path), expected);
    assert_eq!(types(&path), "metric UTF8, tick UINT_32, value INT64, text UTF8");
    let meta = read_meta(&path).unwrap();
    assert_eq!(meta["metrics"]["Dirty"]["unit"], "kB");
    assert_eq!(meta["shape"], "metrics");
}

#[test]
fn histograms_have_bounds_and_a_failed_tick_has_no_row() {
    let dir = recorded(5);
    let path = dir.path().join("latency.parquet");
    let expected = [
        r#"{tick: 0, device: "vda", buckets: [0, 0, 0], sum: 0}"#,
        r#"{tick: 1, device: "vda", buckets: [1, 2, 0], sum: 5}"#,
        r#"{tick: 3, device: "vda", buckets: [3, 6, 0], sum: 15}"#,
        r#"{tick: 4, device: "vda", buckets: [4, 8, 0], sum: 20}"#,
    ];
    assert_eq!(read(&path), expected);
    let meta = read_meta(&path).unwrap();
    assert_eq!(meta["columns"]["buckets"]["bounds"], json!([0.0, 1.0, 2.0, null]));
}

#[test]
fn long_tables_of_lists_have_row_groups_with_statistics_of_ticks() {
    let groups = |ticks, name: &str| -> Vec<(i64, bool)> {
        let reader = open(&recorded(ticks).path().join(name));
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
    let rows = read(&path);
    assert_eq!(rows.len(), 15);
    assert_eq!(
        rows[3],
        "{tick: 3, probe: \"disk\", intended_ns: 3000000000, start_ns: 3000780235, end_ns: 3000780245, realtime_ns: 1795226979562874278, status: \"ok\", missed: 0, reason: null}"
    );
    assert!(rows[12].starts_with("{tick: 2, probe: \"latency\","));
    assert!(rows[12].ends_with("status: \"failed\", missed: 0, reason: \"no such device\"}"));
    assert_eq!(rows.iter().filter(|row| row.contains("failed")).count(), 1);
    let meta = read_meta(&path).unwrap();
    assert_eq!(json!([meta["ticks"], meta["ended"]]), json!([5, "duration"]));
    assert_eq!(meta["probes"][2]["name"], "latency");
}
