//! Writes `run.json` for a recorder that ran without a playbook. A playbook writes that file before
//! it starts the recorder.

use std::fs;
use std::path::Path;

use anyhow::Context;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::clock;
use loadprint_recording::files;
use loadprint_recording::finish::Finished;
use loadprint_recording::journal::Ended;
use serde_json::Value;
use serde_json::json;

/// Writes `run.json` unless it exists; true if it was written. A torn journal makes the run a
/// failed one without an end time.
///
/// # Errors
/// When `fingerprint.json` cannot be read or `run.json` cannot be written.
pub fn write_run_json(run: &Path, finished: &Finished) -> anyhow::Result<bool> {
    let file = run.join("run.json");
    if file.exists() {
        return Ok(false);
    }
    let path = run.join(&finished.role).join("fingerprint.json");
    let context = || format!("{}: cannot be read", path.display());
    let text = fs::read(&path).with_context(context)?;
    let fingerprint: Value = serde_json::from_slice(&text).with_context(context)?;
    let full_path = run.canonicalize().unwrap_or_else(|_| run.to_owned());
    let is_torn = matches!(finished.ended, Ended::Torn);
    let document = json!({
        "format_version": FORMAT_VERSION,
        "id": full_path.file_name().map(|name| name.to_string_lossy()),
        "roles": {&finished.role: {
            "host": fingerprint["host"],
            "cpus": fingerprint["cpusets"][&finished.role],
        }},
        "versions": {"loadprint-collect": env!("CARGO_PKG_VERSION")},
        "status": if is_torn { "failed" } else { "complete" },
        "reason": is_torn.then_some("the recorder was killed: the recording is torn"),
        "started_realtime_ns": finished.started_realtime_ns,
        "ended_realtime_ns": (!is_torn).then(clock::realtime_ns),
    });
    files::write_json(&file, &document)?;
    Ok(true)
}
