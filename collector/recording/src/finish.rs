//! Converts a journal to tables, and then removes it. A torn journal is converted up to its last
//! whole tick.
//!
//! The journal is read once per probe, so that memory contains the rows of one probe at a time.

use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::Float64Array;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_array::UInt64Array;
use arrow_array::builder::ListBuilder;
use arrow_array::builder::UInt64Builder;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::Field;
use serde_json::Value;
use serde_json::json;

use crate::At;
use crate::Error;
use crate::Result;
use crate::body::Columns;
use crate::files;
use crate::journal::End;
use crate::journal::Ended;
use crate::journal::Frame;
use crate::journal::Header;
use crate::journal::ProbeHeader;
use crate::journal::ProbeStatus;
use crate::journal::Reader;
use crate::journal::Stamp;
use crate::manifest;
use crate::rows::entity_parts;
use crate::schema::Schema;
use crate::schema::Shape;
use crate::schema::Type;
use crate::staging;
use crate::table;
use crate::table::Layout;

/// Rows per batch: enough for the encodings without much memory.
const BATCH: usize = 64 * 1024;
/// A row with a list is about a hundred times longer.
const LIST_BATCH: usize = 1024;

/// The journal's name in its role's directory: a file, or a link into `--journal-dir`.
pub const JOURNAL: &str = "journal";

/// Summary of a finished recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The role.
    pub role: String,
    /// Start of the recording (CLOCK_REALTIME).
    pub started_realtime_ns: i64,
    /// Ticks taken.
    pub ticks: u64,
    /// Ticks missed.
    pub missed: u64,
    /// Bytes dropped from the end of the journal.
    pub torn_bytes: u64,
    /// Why the recording ended.
    pub ended: Ended,
    /// Rows per table, by name.
    pub tables: Vec<(String, u64)>,
}

/// Finishes every journal of a run directory and writes its manifest again. Safe to repeat.
///
/// # Errors
/// When `run` is not a directory, or a journal cannot be finished; that journal stays unchanged.
pub fn run(run: &Path) -> Result<Vec<Finished>> {
    let mut finished = Vec::new();
    for role in files::subdirectories(run)? {
        if role.join(JOURNAL).symlink_metadata().is_ok() {
            finished.push(journal(&role)?);
        }
    }
    manifest::write(run)?;
    Ok(finished)
}

/// Converts the journal of a role to tables in the role's directory, and removes it.
///
/// # Errors
/// When the journal cannot be read, or a table cannot be written; the journal then stays.
pub fn journal(role: &Path) -> Result<Finished> {
    let journal = staging::locate(role, JOURNAL)?;
    let (header, mut finished) = survey(&journal)?;
    let path = role.join("ticks.parquet");
    let mut meta = metadata(&header, "ticks", Shape::Table, json!(["probe"]));
    meta["probes"] = header
        .probes
        .iter()
        .map(|probe| json!({"name": probe.name, "status": probe.status, "reason": probe.reason}))
        .collect();
    meta["ticks"] = json!(finished.ticks);
    meta["missed"] = json!(finished.missed);
    meta["torn_bytes"] = json!(finished.torn_bytes);
    meta["ended"] = json!(finished.ended);
    let layout = Layout::for_series(finished.ticks as usize, 1, false);
    let schema = read_batch("", &[]).at(&path)?.schema();
    let reads = header.probes.iter().enumerate().map(|(index, probe)| {
        let (columns, reads) = collect(&journal, index, &probe.schema)?;
        if probe.status == ProbeStatus::Running {
            let path = role.join(format!("{}.parquet", probe.name));
            let rows = write(&path, &header, probe, &columns)?;
            finished.tables.push((probe.name.clone(), rows));
        }
        read_batch(&probe.name, &reads).at(&path)
    });
    let rows = table::write_stream(&path, &meta, layout, &schema, reads)?;
    finished.tables.push(("ticks".to_owned(), rows));
    staging::remove(role, JOURNAL, &journal)?;
    Ok(finished)
}

/// Reads the header and the totals of a whole journal.
fn survey(journal: &Path) -> Result<(Header, Finished)> {
    let mut reader = Reader::open(journal)?;
    let (mut end, mut ticks, mut missed) = (None::<End>, 0, 0);
    while let Some(frame) = reader.next_frame()? {
        match frame {
            Frame::Tick(tick) => {
                ticks += 1;
                missed += u64::from(tick.stamp.missed);
            }
            Frame::End(frame) => end = Some(frame),
        }
    }
    let header = reader.header().clone();
    let finished = Finished {
        role: header.role.clone(),
        started_realtime_ns: header.started_realtime_ns,
        ticks,
        // Only the end frame counts ticks that were missed after the last taken one.
        missed: end.as_ref().map_or(missed, |end| end.missed.max(missed)),
        torn_bytes: reader.torn_bytes(),
        ended: end.map_or(Ended::Torn, |end| end.ended),
        tables: vec![],
    };
    Ok((header, finished))
}

/// Times and result of a probe's read at a tick.
struct Read {
    stamp: Stamp,
    start_ns: i64,
    end_ns: i64,
    status: &'static str,
    missed: u32,
    reason: Option<String>,
}

/// Reads one probe from the whole journal.
fn collect(journal: &Path, probe: usize, schema: &Schema) -> Result<(Columns, Vec<Read>)> {
    let (mut columns, mut reads) = (Columns::new(schema), vec![]);
    let mut reader = Reader::open(journal)?;
    while let Some(frame) = reader.next_frame()? {
        let Frame::Tick(tick) = frame else { continue };
        if tick.is_key {
            columns.begin_key_tick();
        }
        for (place, section) in tick.sections.iter().enumerate() {
            if section.probe != probe {
                continue;
            }
            let number = tick.stamp.tick;
            let malformed = || Error::format(journal, format!("tick {number} cannot be decoded"));
            columns.push(number, section.body).ok_or_else(malformed)?;
            reads.push(Read {
                stamp: tick.stamp,
                start_ns: section.start_ns,
                end_ns: section.end_ns,
                status: section.status.word(),
                missed: if place == 0 { tick.stamp.missed } else { 0 },
                reason: section.reason.map(str::to_owned),
            });
        }
    }
    Ok((columns, reads))
}

/// The rows of `ticks.parquet` of one probe.
fn read_batch(probe: &str, reads: &[Read]) -> std::result::Result<RecordBatch, ArrowError> {
    let number = |value: fn(&Read) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(reads.iter().map(value)))
    };
    let time = |value: fn(&Read) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(reads.iter().map(value)))
    };
    let probes = StringArray::from_iter_values(reads.iter().map(|_| probe));
    let status = StringArray::from_iter_values(reads.iter().map(|read| read.status));
    let reason: StringArray = reads.iter().map(|read| read.reason.as_deref()).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("tick", number(|read| read.stamp.tick), false),
        ("probe", Arc::new(probes), false),
        ("intended_ns", time(|read| read.stamp.intended_ns), false),
        ("start_ns", time(|read| read.start_ns), false),
        ("end_ns", time(|read| read.end_ns), false),
        ("realtime_ns", time(|read| read.stamp.realtime_ns), false),
        ("status", Arc::new(status), false),
        ("missed", number(|read| read.missed), false),
        ("reason", Arc::new(reason), true),
    ])
}

/// Writes the table of a probe, sorted by (entity, tick); returns its number of rows.
fn write(path: &Path, header: &Header, probe: &ProbeHeader, columns: &Columns) -> Result<u64> {
    let schema = &probe.schema;
    let mut meta = metadata(header, &probe.name, schema.shape, json!(schema.entity));
    let has_entity = |name: &str| {
        let mut keys = columns.keys.iter();
        keys.any(|key| entity_parts(key).next() == Some(name.as_bytes()))
    };
    schema.describe(&mut meta, has_entity);
    let has_lists = schema
        .columns
        .iter()
        .any(|column| column.storage == Type::Buckets);
    let layout = Layout::for_series(columns.ticks.len(), columns.keys.len(), has_lists);
    let mut lists = vec![vec![]; schema.columns.len()];
    let mut batch = |rows: &[u32]| batch(schema, columns, rows, &mut lists).at(path);
    let fields = batch(&[])?.schema();
    let rows = sorted(columns);
    let batches = rows.chunks(if has_lists { LIST_BATCH } else { BATCH });
    table::write_stream(path, &meta, layout, &fields, batches.map(batch))
}

/// Row numbers in order of (entity, tick); the rows are in order of ticks.
fn sorted(columns: &Columns) -> Vec<u32> {
    let parts = |&key: &u32| -> Vec<Vec<u8>> {
        entity_parts(&columns.keys[key as usize])
            .map(<[u8]>::to_vec)
            .collect()
    };
    let mut by_name: Vec<u32> = (0..columns.keys.len() as u32).collect();
    by_name.sort_by_cached_key(parts);
    let mut rank = vec![0; by_name.len()];
    for (index, &key) in by_name.iter().enumerate() {
        rank[key as usize] = index;
    }
    let mut rows: Vec<u32> = (0..columns.ticks.len() as u32).collect();
    rows.sort_by_key(|&row| rank[columns.row_keys[row as usize] as usize]);
    rows
}

/// The rows of these numbers. `lists` has the last list of each column in the batch before.
fn batch(
    schema: &Schema,
    columns: &Columns,
    rows: &[u32],
    lists: &mut [Vec<u64>],
) -> std::result::Result<RecordBatch, ArrowError> {
    let entities = schema.entity.iter().enumerate().map(|(part, name)| {
        let names: Vec<_> = columns
            .keys
            .iter()
            .map(|key| entity_parts(key).nth(part).map(String::from_utf8_lossy))
            .collect();
        let cells = rows
            .iter()
            .map(|&row| names[columns.row_keys[row as usize] as usize].as_deref());
        let array: ArrayRef = Arc::new(cells.collect::<StringArray>());
        (name.as_ref(), array, false)
    });
    let mut arrays: Vec<_> = entities.collect();
    let ticks = rows.iter().map(|&row| columns.ticks[row as usize]);
    let ticks: ArrayRef = Arc::new(UInt32Array::from_iter_values(ticks));
    let place = match schema.shape {
        Shape::Metrics => arrays.len(),
        Shape::Table | Shape::Histogram => 0,
    };
    arrays.insert(place, ("tick", ticks, false));
    for (index, column) in schema.columns.iter().enumerate() {
        let cells = columns.cells(index, rows);
        let array: ArrayRef = match column.storage {
            Type::Uint64 => Arc::new(cells.collect::<UInt64Array>()),
            Type::Int64 => Arc::new(
                cells
                    .map(|cell| cell.map(u64::cast_signed))
                    .collect::<Int64Array>(),
            ),
            Type::Double => Arc::new(
                cells
                    .map(|cell| cell.map(f64::from_bits))
                    .collect::<Float64Array>(),
            ),
            Type::Text => {
                // The kernel does not restrict process names to UTF-8, Parquet does.
                let text = |cell| String::from_utf8_lossy(columns.text(cell));
                Arc::new(cells.map(|cell| cell.map(text)).collect::<StringArray>())
            }
            Type::Buckets => {
                let item = Field::new("element", DataType::UInt64, false);
                let mut builder = ListBuilder::new(UInt64Builder::new()).with_field(item);
                for cell in cells {
                    if let Some(cell) = cell {
                        columns.next_list(cell, &mut lists[index]);
                        builder.values().append_slice(&lists[index]);
                    }
                    builder.append(cell.is_some());
                }
                Arc::new(builder.finish())
            }
        };
        arrays.push((column.name.as_ref(), array, true));
    }
    RecordBatch::try_from_iter_with_nullable(arrays)
}

/// The metadata that all tables have.
fn metadata(header: &Header, name: &str, shape: Shape, entity: Value) -> Value {
    json!({
        "format_version": header.format_version,
        "probe": name,
        "role": header.role,
        "shape": shape,
        "entity": entity,
        "interval_ns": header.interval_ns,
        "boot_id": header.boot_id,
        "writer": header.writer,
    })
}
