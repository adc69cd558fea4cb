//! Writes `ticks.parquet`: times and status of each read, one row per probe and tick, sorted by
//! (probe, tick).

use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_schema::ArrowError;
use serde_json::json;

use super::Finished;
use super::for_each_tick;
use super::metadata;
use crate::At;
use crate::Result;
use crate::journal::Header;
use crate::journal::Stamp;
use crate::table;
use crate::table::Layout;

struct Row {
    stamp: Stamp,
    start_ns: i64,
    end_ns: i64,
    status: &'static str,
    missed: u32,
    reason: Option<String>,
}

/// Writes the table to `path`; returns its number of rows.
pub(super) fn write(path: &Path, journal: &Path, header: &Header, finished: &Finished) -> Result<u64> {
    let mut meta = metadata(header, "ticks", json!("table"), json!(["probe"]));
    meta["probes"] = header
        .probes
        .iter()
        .map(|probe| json!({"name": probe.name, "status": probe.status, "reason": probe.reason}))
        .collect();
    meta["ticks"] = json!(finished.ticks);
    meta["missed"] = json!(finished.missed);
    meta["torn_bytes"] = json!(finished.torn_bytes);
    meta["ended"] = json!(finished.ended);
    let batches = header
        .probes
        .iter()
        .enumerate()
        .map(|(index, probe)| batch(&probe.name, &collect(journal, index)?).at(path));
    let layout = Layout::for_series(finished.ticks as usize, 1, false);
    let schema = batch("", &[]).at(path)?.schema();
    table::write_stream(path, &meta, layout, &schema, batches)
}

fn collect(journal: &Path, probe: usize) -> Result<Vec<Row>> {
    let mut rows = vec![];
    for_each_tick(journal, |tick| {
        let sections = tick.sections.iter().enumerate();
        rows.extend(
            sections
                .filter(|(_, section)| section.probe == probe)
                .map(|(place, section)| Row {
                    stamp: tick.stamp,
                    start_ns: section.start_ns,
                    end_ns: section.end_ns,
                    status: section.status.word(),
                    missed: if place == 0 { tick.stamp.missed } else { 0 },
                    reason: section.reason.map(str::to_owned),
                }),
        );
        Some(())
    })?;
    Ok(rows)
}

fn batch(probe: &str, rows: &[Row]) -> std::result::Result<RecordBatch, ArrowError> {
    let number = |value: fn(&Row) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(value)))
    };
    let time = |value: fn(&Row) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(value)))
    };
    let probes = StringArray::from_iter_values(rows.iter().map(|_| probe));
    let status = StringArray::from_iter_values(rows.iter().map(|row| row.status));
    let reason: StringArray = rows.iter().map(|row| row.reason.as_deref()).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("tick", number(|row| row.stamp.tick), false),
        ("probe", Arc::new(probes), false),
        ("intended_ns", time(|row| row.stamp.intended_ns), false),
        ("start_ns", time(|row| row.start_ns), false),
        ("end_ns", time(|row| row.end_ns), false),
        ("realtime_ns", time(|row| row.stamp.realtime_ns), false),
        ("status", Arc::new(status), false),
        ("missed", number(|row| row.missed), false),
        ("reason", Arc::new(reason), true),
    ])
}
