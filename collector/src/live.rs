//! The newest sample of some probes as one JSON document, for programs that watch a recording.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use loadprint_recording::files;
use loadprint_recording::journal::Stamp;
use loadprint_recording::journal::Status;
use loadprint_recording::rows::Value;
use loadprint_recording::schema::Type;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::opened_probe::OpenedProbe;

/// The file, which is removed when the recording ends.
#[derive(Debug)]
pub struct Live {
    file: PathBuf,
    probes: Vec<String>,
    is_ours: bool,
    has_failed: bool,
}

impl Live {
    /// For the probes of these names.
    ///
    /// # Errors
    /// When the directory of the file cannot be opened.
    pub fn new(path: &Path, probes: &[String]) -> anyhow::Result<Self> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        fs::read_dir(dir.unwrap_or(Path::new("."))).with_context(|| format!("--live: {}", path.display()))?;
        Ok(Self {
            file: path.to_owned(),
            probes: probes.to_vec(),
            is_ours: false,
            has_failed: false,
        })
    }

    /// Replaces the file by the newest outcomes. A failure costs only this file, and is printed once.
    pub fn write(&mut self, tick: &Stamp, probes: &[OpenedProbe]) {
        let is_listed = |opened: &&OpenedProbe| self.probes.iter().any(|name| opened.entry.matches(name));
        let probes: Map<String, Json> = probes
            .iter()
            .filter(is_listed)
            .map(|opened| (opened.entry.name.to_owned(), to_json(opened)))
            .collect();
        let document = json!({
            "monotonic_ns": tick.start_ns,
            "realtime_ns": tick.realtime_ns,
            "probes": probes,
        });
        match files::publish(&self.file, document.to_string().as_bytes()) {
            Ok(()) => self.is_ours = true,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                eprintln!("loadprint-collect: warning: --live: {error}");
            }
            Err(_) => {}
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A recorder that ended before its first tick leaves the file of another program alone.
        if self.is_ours {
            drop(fs::remove_file(&self.file));
        }
    }
}

fn to_json(opened: &OpenedProbe) -> Json {
    let (schema, outcome) = (opened.schema(), &opened.newest);
    let (rows, width) = (&outcome.rows, schema.columns.len());
    let row = |row: usize| -> Map<String, Json> {
        let entity = schema.entity.iter().zip(rows.entity(row));
        let entity = entity.map(|(name, text)| (name.to_string(), String::from_utf8_lossy(text).into()));
        let values = schema.columns.iter().enumerate().map(|(place, column)| {
            let value = match (rows.value(row, place, width), column.storage) {
                (Value::Bits(bits), Type::Int64) => json!(bits.cast_signed()),
                (Value::Bits(bits), Type::Double) => json!(f64::from_bits(bits)),
                (Value::Bits(bits), _) => json!(bits),
                (Value::Text(text), _) => String::from_utf8_lossy(text).into(),
                (Value::List(buckets), _) => json!(buckets),
                (Value::Null, _) => Json::Null,
            };
            (column.name.to_string(), value)
        });
        entity.chain(values).collect()
    };
    // A probe that was not due keeps its previous rows; one that did not finish has a reason.
    let is_known = match outcome.status {
        Status::Ok => true,
        Status::Skipped => outcome.reason.is_empty() && !rows.is_empty(),
        Status::Failed | Status::Unavailable => false,
    };
    json!({
        "ok": is_known,
        "reason": outcome.reason,
        "rows": (0..if is_known { rows.len() } else { 0 }).map(row).collect::<Vec<_>>(),
    })
}
