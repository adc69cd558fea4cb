//! Converts a journal to tables, verifies the tables, and then removes the journal. A torn journal
//! is converted up to its last whole tick.
//!
//! The journal is read once per probe, so that memory contains the columns of one probe at a time.

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
/// When `run_dir` is not a directory, or a journal cannot be finished; that journal stays
/// unchanged.
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

/// Converts the journal of a role to tables in the role's directory, and removes it.
///
/// # Errors
/// When the journal cannot be read, or a table cannot be written or read back; the journal then
/// stays.
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
        let read_back = table::count_rows(&file)?;
        if read_back != *rows {
            let message =
                format!("read back {read_back} of {rows} rows; the journal is kept, run finish again");
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

/// Totals of a whole journal.
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
                Frame::End(frame) => end = Some(frame),
            }
        }
        // Only the end frame counts ticks that were missed after the last taken one.
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

/// Reads the rows of one probe from the whole journal.
fn collect(journal: &RunFile, probe: usize, header: &Header) -> Result<Columns> {
    let schema = &header.probes[probe].schema;
    let mut columns = Columns::new(schema);
    let mut decoder = Decoder::new(schema);
    let mut rows = Rows::default();
    let mut reader = Reader::of(journal)?;
    while let Some(frame) = reader.next_frame()? {
        let Frame::Tick(mut tick) = frame else { continue };
        if tick.is_key {
            decoder.reset();
        }
        let number = tick.stamp.tick;
        let malformed = || Error::format(&journal.path(), format!("tick {number} cannot be decoded"));
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
