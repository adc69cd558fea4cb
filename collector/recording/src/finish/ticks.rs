//! Writes `ticks.parquet`: times and status of each read, one row per probe and tick, sorted by
//! (probe, tick).

use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::Schema;
use serde_json::json;

use super::Finished;
use super::for_each_tick;
use super::metadata;
use crate::Error;
use crate::Result;
use crate::journal::Header;
use crate::journal::Section;
use crate::journal::Stamp;
use crate::table;
use crate::table::Layout;

#[derive(Default)]
struct Stamps {
    tick: Vec<u32>,
    intended_ns: Vec<i64>,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    realtime_ns: Vec<i64>,
    status: Vec<&'static str>,
    missed: Vec<u32>,
    reason: Vec<Option<String>>,
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
    let batches = header.probes.iter().enumerate().map(|(index, probe)| {
        let batch = collect(journal, index)?.batch(&probe.name);
        batch.map_err(|error| Error::format(path, error))
    });
    let layout = Layout::for_series(finished.ticks as usize, 1, false);
    table::write_stream(path, &meta, layout, &Arc::new(schema()), batches)
}

fn collect(journal: &Path, probe: usize) -> Result<Stamps> {
    let mut stamps = Stamps::default();
    for_each_tick(journal, |mut tick| {
        let mut first = true;
        while let Some(section) = tick.next_section() {
            let section = section.ok()?;
            if section.probe == probe {
                stamps.push(&tick.stamp, &section, first);
            }
            first = false;
        }
        Some(())
    })?;
    Ok(stamps)
}

impl Stamps {
    fn push(&mut self, stamp: &Stamp, section: &Section<'_>, first: bool) {
        self.tick.push(stamp.tick);
        self.intended_ns.push(stamp.intended_ns);
        self.start_ns.push(section.start_ns);
        self.end_ns.push(section.end_ns);
        self.realtime_ns.push(stamp.realtime_ns);
        self.status.push(section.status.word());
        self.missed.push(if first { stamp.missed } else { 0 });
        self.reason.push(section.reason.map(str::to_owned));
    }

    fn batch(self, probe: &str) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
        let probes = StringArray::from_iter_values(self.tick.iter().map(|_| probe));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from(self.tick)),
            Arc::new(probes),
            Arc::new(Int64Array::from(self.intended_ns)),
            Arc::new(Int64Array::from(self.start_ns)),
            Arc::new(Int64Array::from(self.end_ns)),
            Arc::new(Int64Array::from(self.realtime_ns)),
            Arc::new(StringArray::from(self.status)),
            Arc::new(UInt32Array::from(self.missed)),
            Arc::new(StringArray::from(self.reason)),
        ];
        RecordBatch::try_new(Arc::new(schema()), columns)
    }
}

fn schema() -> Schema {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    Schema::new(vec![
        required("tick", DataType::UInt32),
        required("probe", DataType::Utf8),
        required("intended_ns", DataType::Int64),
        required("start_ns", DataType::Int64),
        required("end_ns", DataType::Int64),
        required("realtime_ns", DataType::Int64),
        required("status", DataType::Utf8),
        required("missed", DataType::UInt32),
        Field::new("reason", DataType::Utf8, true),
    ])
}
