//! `finish`: journal to tables. Works on a torn journal, verifies what it wrote, and only then removes the journal.
//!
//! The journal is read once per probe, so that memory holds one probe's columns at a time and not the recording.

mod columns;
mod ticks;

use std::path::Path;

use rustix::fs::FileType;
use serde_json::Value;
use serde_json::json;

use crate::Error;
use crate::Result;
use crate::files::Directory;
use crate::files::RunFile;
use crate::journal::Decoder;
use crate::journal::End;
use crate::journal::Ended;
use crate::journal::Frame;
use crate::journal::Header;
use crate::journal::ProbeStatus;
use crate::journal::Reader;
use crate::manifest;
use crate::rows::Rows;
use crate::staging;
use crate::table;
use columns::Columns;

/// The journal's name in its role's directory: a file, or a link to where `--journal-dir` put it.
pub const JOURNAL: &str = "journal";

/// What `finish` found in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The role that it recorded.
    pub role: String,
    /// When it began, CLOCK_REALTIME.
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

/// Finishes every leftover journal of a run directory and rewrites its manifest. Does no harm when there is nothing to do.
///
/// # Errors
/// When `run_dir` is not a directory, or at the first journal that cannot be finished; that journal stays as it is.
pub fn run(run_dir: &Path) -> Result<Vec<Finished>> {
    let run = Directory::open(run_dir)?;
    let mut finished = Vec::new();
    for (name, kind) in run.entries()? {
        if kind == FileType::Directory {
            let role = run.sub(&name)?;
            if role.file(JOURNAL).exists() {
                finished.push(journal(&role)?);
            }
        }
    }
    manifest::write(&run)?;
    Ok(finished)
}

/// Turns the journal of a role into the tables of the role's directory, and removes it.
///
/// # Errors
/// When it cannot be read, or the tables cannot be written or do not read back; the journal then stays.
pub fn journal(role: &Directory) -> Result<Finished> {
    let journal = staging::locate(role, JOURNAL)?.unwrap_or_else(|| role.file(JOURNAL));
    let survey = Survey::of(&journal)?;
    let header = &survey.header;
    let mut tables = vec![];
    for (index, probe) in header.probes.iter().enumerate() {
        if probe.status == ProbeStatus::Running {
            let columns = collect(&journal, index, header)?;
            let file = role.file(format!("{}.parquet", probe.name));
            let mut meta = metadata(
                header,
                &probe.name,
                json!(probe.schema.shape),
                json!(probe.schema.entity),
            );
            probe.schema.describe(&mut meta, |name| columns.has_entity(name));
            let rows = columns.len() as u64;
            table::write_stream(
                &file,
                &meta,
                columns.layout(),
                &columns.schema(),
                columns.batches(&file.path()),
            )?;
            drop(columns);
            tables.push((probe.name.clone(), rows));
        }
    }
    let rows = ticks::write(&role.file("ticks.parquet"), &journal, &survey)?;
    tables.push(("ticks".to_owned(), rows));
    for (name, rows) in &tables {
        let file = role.file(format!("{name}.parquet"));
        let found = table::count_rows(&file)?;
        if found != *rows {
            let message =
                format!("{found} rows read back of {rows} written; the journal is kept, run finish again");
            return Err(Error::format(&file.path(), message));
        }
    }
    staging::remove(role, JOURNAL, &journal)?;
    Ok(Finished {
        role: header.role.clone(),
        started_realtime_ns: header.started_realtime_ns,
        ticks: survey.ticks,
        missed: survey.missed,
        torn_bytes: survey.torn_bytes,
        ended: survey.end.as_ref().map_or(Ended::Torn, |end| end.ended),
        tables,
    })
}

/// What one reading of the whole journal tells.
struct Survey {
    header: Header,
    end: Option<End>,
    ticks: u64,
    missed: u64,
    torn_bytes: u64,
}

impl Survey {
    fn of(journal: &RunFile) -> Result<Self> {
        let mut reader = Reader::of(journal)?;
        let (mut end, mut ticks, mut missed) = (None, 0, 0);
        while let Some(frame) = reader.next_frame()? {
            match frame {
                Frame::Tick(tick) => {
                    ticks += 1;
                    missed += u64::from(tick.stamp.missed);
                }
                Frame::End(found) => end = Some(found),
            }
        }
        // Ticks that were missed after the last one that was taken are known to the end frame alone.
        let missed = end.as_ref().map_or(missed, |end: &End| end.missed.max(missed));
        Ok(Self {
            header: reader.header().clone(),
            end,
            ticks,
            missed,
            torn_bytes: reader.torn_bytes(),
        })
    }
}

/// Calls `take` for each tick's rows of one probe.
fn collect(journal: &RunFile, probe: usize, header: &Header) -> Result<Columns> {
    let schema = &header.probes[probe].schema;
    let mut columns = Columns::new(schema);
    let mut decoder = Decoder::new(schema);
    let mut rows = Rows::default();
    let mut reader = Reader::of(journal)?;
    while let Some(frame) = reader.next_frame()? {
        let Frame::Tick(mut tick) = frame else { continue };
        if tick.is_key {
            decoder.forget();
        }
        let number = tick.stamp.tick;
        let malformed = || Error::format(&journal.path(), format!("tick {number} does not decode"));
        while let Some(section) = tick.next_section() {
            let section = section.map_err(|()| malformed())?;
            if section.probe == probe {
                decoder.decode(&section, &mut rows).ok_or_else(malformed)?;
                columns.push(number, &rows);
            }
        }
    }
    columns.sort();
    Ok(columns)
}

/// The part of the metadata that all tables share.
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
