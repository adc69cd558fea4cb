//! Converts a journal to tables, and then removes it. A torn journal is converted up to its last
//! whole tick.
//!
//! The journal is read once per table, so that memory contains the columns of one probe at a time.

mod columns;
mod ticks;

use std::path::Path;

use serde_json::Value;
use serde_json::json;

use crate::At;
use crate::Error;
use crate::Result;
use crate::files;
use crate::journal::Decoder;
use crate::journal::End;
use crate::journal::Ended;
use crate::journal::Frame;
use crate::journal::Header;
use crate::journal::ProbeStatus;
use crate::journal::Reader;
use crate::journal::Tick;
use crate::manifest;
use crate::rows::Rows;
use crate::staging;
use crate::table;
use columns::Columns;

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
    for (index, probe) in header.probes.iter().enumerate() {
        if probe.status == ProbeStatus::Running {
            let columns = collect(&journal, index, &header)?;
            let path = role.join(format!("{}.parquet", probe.name));
            let schema = &probe.schema;
            let mut meta = metadata(&header, &probe.name, json!(schema.shape), json!(schema.entity));
            schema.describe(&mut meta, |name| columns.has_entity(name));
            let schema = columns.batch(&[]).at(&path)?.schema();
            let batches = columns.batches(&path);
            let rows = table::write_stream(&path, &meta, columns.layout(), &schema, batches)?;
            finished.tables.push((probe.name.clone(), rows));
        }
    }
    let rows = ticks::write(&role.join("ticks.parquet"), &journal, &header, &finished)?;
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

/// Reads the rows of one probe from the whole journal.
fn collect(journal: &Path, probe: usize, header: &Header) -> Result<Columns> {
    let schema = &header.probes[probe].schema;
    let mut columns = Columns::new(schema);
    let mut decoder = Decoder::new(schema);
    let mut rows = Rows::default();
    for_each_tick(journal, |tick| {
        if tick.is_key {
            decoder.reset();
        }
        for section in tick.sections.iter().filter(|section| section.probe == probe) {
            decoder.decode(section, &mut rows)?;
            columns.push(tick.stamp.tick, &rows);
        }
        Some(())
    })?;
    columns.sort();
    Ok(columns)
}

/// Calls `take` with every tick; it returns `None` if the tick cannot be decoded.
fn for_each_tick(journal: &Path, mut take: impl FnMut(Tick<'_>) -> Option<()>) -> Result<()> {
    let mut reader = Reader::open(journal)?;
    while let Some(frame) = reader.next_frame()? {
        if let Frame::Tick(tick) = frame {
            let number = tick.stamp.tick;
            let malformed = || Error::format(journal, format!("tick {number} cannot be decoded"));
            take(tick).ok_or_else(malformed)?;
        }
    }
    Ok(())
}

/// The metadata that all tables have.
fn metadata(header: &Header, name: &str, shape: Value, entity: Value) -> Value {
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
