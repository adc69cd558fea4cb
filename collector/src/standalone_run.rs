//! run.json of a recorder that ran alone. Where an orchestrator runs it, the orchestrator has written that file before.

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

/// Says what the run was, unless run.json is there; true if it was written. A torn journal makes it a failed run, whose end nobody saw.
///
/// # Errors
/// When the fingerprint beside the tables cannot be read, or the file cannot be written.
pub fn write_run_json(run: &Directory, finished: &Finished) -> anyhow::Result<bool> {
    let file = run.file("run.json");
    if file.exists() {
        return Ok(false);
    }
    let fingerprint = run.sub(&finished.role)?.file("fingerprint.json");
    let place = || format!("{}: cannot be read", fingerprint.path().display());
    let fingerprint: Value =
        serde_json::from_reader(BufReader::new(fingerprint.open()?)).with_context(place)?;
    let whole = fs::canonicalize(run.path()).unwrap_or_else(|_| run.path().to_owned());
    let torn = matches!(finished.ended, Ended::Torn);
    let about = json!({
        "format_version": FORMAT_VERSION,
        "id": whole.file_name().map(|name| name.to_string_lossy()),
        "roles": {&finished.role: {
            "host": fingerprint["host"],
            "cpus": fingerprint["cpusets"][&finished.role],
        }},
        "versions": {"loadprint-collect": env!("CARGO_PKG_VERSION")},
        "status": if torn { "failed" } else { "complete" },
        "reason": torn.then_some("the recorder was killed: the recording is torn"),
        "started_realtime_ns": finished.started_realtime_ns,
        "ended_realtime_ns": (!torn).then(clock::realtime_ns),
    });
    write_atomic(&file, &about)?;
    Ok(true)
}
