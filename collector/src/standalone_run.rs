//! Writes `run.json` for a recorder that ran without a playbook. A playbook writes that file before
//! it starts the recorder.

use std::fs;
use std::io::BufReader;

use anyhow::Context;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::clock;
use loadprint_recording::files::Directory;
use loadprint_recording::finish::Finished;
use loadprint_recording::journal::Ended;
use loadprint_recording::json::write_atomic;
use serde_json::Value;
use serde_json::json;

/// Writes `run.json` unless it exists; true if it was written. A torn journal makes the run a
/// failed one without an end time.
///
/// # Errors
/// When `fingerprint.json` cannot be read or `run.json` cannot be written.
pub fn write_run_json(run: &Directory, finished: &Finished) -> anyhow::Result<bool> {
    let file = run.file("run.json");
    if file.exists() {
        return Ok(false);
    }
    let fingerprint = run.sub(&finished.role)?.file("fingerprint.json");
    let context = || format!("{}: cannot be read", fingerprint.path().display());
    let fingerprint: Value =
        serde_json::from_reader(BufReader::new(fingerprint.open()?)).with_context(context)?;
    let full_path = fs::canonicalize(run.path()).unwrap_or_else(|_| run.path().to_owned());
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
    write_atomic(&file, &document)?;
    Ok(true)
}
