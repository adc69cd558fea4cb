//! `loadprint-collect canary`: about a second of fixed work, done before and after a run. What it takes tells whether the machine
//! was the same: a neighbour, a lower clock, a slower disk show as a shift between the two.
//!
//! Four parts, each in equal slices that are timed one by one, so that a reader can choose a statistic that single disturbances
//! do not move. The work never adapts to the machine; only a slow disk ends its part early, whose operations compare one by one.

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
use loadprint_recording::files::RunFile;
use serde::Serialize;
use serde_json::json;

use crate::record::WRITER;
use crate::schedule::Stop;

use slices::Part;

const EXAMPLES: &str = "\
Examples:
  loadprint-collect canary --cpus 0-7 --data-dir /var/lib/mysql --label before --out RUN/server/canary.jsonl
  loadprint-collect canary                      prints how this machine does, and keeps nothing";

/// Options of `canary`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CanaryOptions {
    /// CPUs to work on, such as 0-7 [default: all that this process may use].
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Append and sync a temporary file here; without it that part is left out.
    #[arg(long, value_name = "D")]
    data_dir: Option<PathBuf>,
    /// Append the result to this file, as one line of JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A word that is kept with the result: before, after.
    #[arg(long, value_name = "WORD", default_value = "alone", value_parser = ["before", "after", "alone"])]
    label: String,
    /// text or json.
    #[arg(long, value_enum, default_value_t = Print::Text)]
    format: Print,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Print {
    /// For a person.
    Text,
    /// For a program.
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

/// Does the work and tells how long it took.
///
/// # Errors
/// When a CPU cannot be used, the result cannot be written, or a signal came; the temporary file is gone in any case.
pub fn run(options: &CanaryOptions) -> anyhow::Result<()> {
    // Taken before there is a file that would be left behind.
    let stop = Stop::on_signals().context("cannot take over SIGTERM and SIGINT")?;
    let cpus = pin::usable(options.cpus.as_ref())?;
    let (begin_monotonic_ns, begin_realtime_ns) = (clock::monotonic_ns(), clock::realtime_ns());
    let mut parts = vec![];
    for part in [compute::integers, memory::copies, compute::syscalls] {
        parts.push(part(&cpus)?);
        interrupted(&stop)?;
    }
    parts.push(match &options.data_dir {
        Some(dir) => disk::appends(dir, cpus[0], &stop)?,
        None => Part::lacking("fsync", "no --data-dir was given".to_owned()),
    });
    interrupted(&stop)?;
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

fn interrupted(stop: &Stop) -> anyhow::Result<()> {
    anyhow::ensure!(
        !stop.wait_until(0)?,
        "ended by a signal before its work was done; nothing was written"
    );
    Ok(())
}

/// One write of the whole line: two canaries never mix theirs (write(2), O_APPEND).
fn append(path: &Path, record: &Record) -> anyhow::Result<()> {
    let place = || format!("{}: cannot append the result", path.display());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(place)?;
    }
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    let mut file = RunFile::at(path)
        .and_then(|file| file.append())
        .context("cannot append the result")?;
    file.write_all(&line).with_context(place)
}
