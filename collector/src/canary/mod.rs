//! `loadprint-collect canary`: times about a second of fixed work before and after a run. A shift
//! between the two times shows a noisy neighbour, a lower CPU clock or a slower disk.
//!
//! The work has four parts of equal slices, each timed separately, so that a reader can use a
//! statistic that is robust against single disturbances. The amount of work is the same on every
//! machine. Only a slow disk ends its part early; its operations are compared one by one.

mod compute;
mod disk;
mod memory;
mod pin;
mod slices;
mod topology;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap::ValueEnum;
use loadprint_probes::options::CpuSet;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::clock;
use loadprint_recording::files;
use serde::Serialize;
use serde_json::json;

use crate::version::WRITER;
use crate::wakeup::Signals;

use slices::Part;

const EXAMPLES: &str = "\
Examples:
  loadprint-collect canary --cpus 0-7 --data-dir /var/lib/mysql --label before --out RUN/server/canary.jsonl
  loadprint-collect canary                      prints the times and stores nothing";

/// Options of `canary`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CanaryOptions {
    /// CPUs to use, such as 0-7 [default: all that this process may use].
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Append to and sync a temporary file here; without this option the disk part is skipped.
    #[arg(long, value_name = "D")]
    data_dir: Option<PathBuf>,
    /// Append the result to this file, as one line of JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Label of the result.
    #[arg(long, value_name = "WORD", default_value = "alone", value_parser = ["before", "after", "alone"])]
    label: String,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Print::Text)]
    format: Print,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Print {
    /// A table.
    Text,
    /// JSON.
    Json,
}

/// The result: one line of `canary.jsonl`.
#[derive(Debug, Serialize)]
struct Record {
    format_version: u32,
    label: String,
    writer: &'static str,
    boot_id: Option<String>,
    begin_monotonic_ns: i64,
    begin_realtime_ns: i64,
    end_monotonic_ns: i64,
    cpus: Vec<u32>,
    parts: Vec<Part>,
}

/// Does the work and prints its times.
///
/// # Errors
/// When a CPU cannot be used, the result cannot be written, or a signal arrives; the temporary file
/// is removed in any case.
pub fn run(options: &CanaryOptions) -> anyhow::Result<()> {
    // Before the temporary file exists, which a signal would leave behind.
    let signals = Signals::install().context("cannot install the handlers of SIGTERM and SIGINT")?;
    let cpus = pin::usable(options.cpus.as_ref())?;
    let (begin_monotonic_ns, begin_realtime_ns) = (clock::monotonic_ns(), clock::realtime_ns());
    let mut parts = vec![];
    for part in [compute::integers, memory::copies, compute::syscalls] {
        parts.push(part(&cpus)?);
        refuse_after_signal(&signals)?;
    }
    parts.push(match &options.data_dir {
        Some(dir) => disk::appends(dir, cpus[0], &signals)?,
        None => Part::skipped("fsync", "no --data-dir".to_owned()),
    });
    refuse_after_signal(&signals)?;
    let record = Record {
        format_version: FORMAT_VERSION,
        label: options.label.clone(),
        writer: WRITER,
        boot_id: clock::boot_id().ok(),
        begin_monotonic_ns,
        begin_realtime_ns,
        end_monotonic_ns: clock::monotonic_ns(),
        cpus,
        parts,
    };
    if let Some(path) = &options.out {
        append(path, &record)?;
    }
    match options.format {
        Print::Json => println!("{}", json!(record)),
        Print::Text => record.parts.iter().for_each(|part| println!("{}", part.line())),
    }
    Ok(())
}

fn refuse_after_signal(signals: &Signals) -> anyhow::Result<()> {
    anyhow::ensure!(
        !signals.stop_requested()?,
        "stopped by a signal before the work was complete; nothing was written"
    );
    Ok(())
}

/// Appends the line with one write(2), so that concurrent canaries do not mix their lines
/// (O_APPEND).
fn append(path: &Path, record: &Record) -> anyhow::Result<()> {
    let context = || format!("{}: cannot append the result", path.display());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(context)?;
    }
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    let mut file = files::append(path).context("cannot append the result")?;
    file.write_all(&line).with_context(context)
}
