//! `loadprint-collect canary`: times about a second of fixed work before and after a run. A shift
//! between the two times shows a noisy neighbour, a lower CPU clock or a slower disk.
//!
//! The work has four parts of equal slices, each timed separately, so that a reader can use a
//! statistic that is robust against single disturbances. The amount of work is the same on every
//! machine. Only a slow disk ends its part early; its operations are compared one by one.

mod parts;
mod topology;

use std::fs;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use loadprint_probes::options::CpuSet;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::clock;
use loadprint_recording::files;
use serde::Serialize;
use serde_json::json;

use crate::WRITER;
use crate::wakeup::Signals;

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
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
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

/// One of the four parts of the canary.
#[derive(Debug, Serialize)]
struct Part {
    /// `cpu`, `memory`, `syscall` or `fsync`.
    name: &'static str,
    /// Amount of work of one slice.
    work: u64,
    /// Unit of `work`.
    unit: &'static str,
    /// Size of the buffer of the memory part.
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer_bytes: Option<u64>,
    /// Size of the largest cache, if the kernel reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_bytes: Option<u64>,
    /// Why the part was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// One for each CPU; all worked at the same time.
    lanes: Vec<Lane>,
}

/// The slices of one CPU.
#[derive(Debug, Default, Serialize)]
struct Lane {
    /// The CPU.
    cpu: u32,
    /// Wall-clock time of all slices.
    seconds: f64,
    /// CPU time; less than `seconds` if other tasks ran on the CPU or the thread slept.
    on_cpu_seconds: f64,
    /// The shortest slice.
    min_ns: i64,
    /// The median slice.
    median_ns: i64,
    /// The CPU's frequency after the work, if the kernel reports it.
    mhz: Option<f64>,
    /// All slices.
    slices_ns: Vec<i64>,
}

impl Part {
    /// A completed part.
    fn done(name: &'static str, work: u64, unit: &'static str, lanes: Vec<Lane>) -> Self {
        Self {
            name,
            work,
            unit,
            buffer_bytes: None,
            cache_bytes: None,
            reason: None,
            lanes,
        }
    }

    /// A part that was not done.
    fn skipped(name: &'static str, reason: String) -> Self {
        let mut part = Self::done(name, 0, "1", vec![]);
        part.reason = Some(reason);
        part
    }

    /// Formats the part as one line.
    fn line(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("{:<8} skipped: {reason}", self.name);
        }
        let slices = self.lanes.first().map_or(0, |lane| lane.slices_ns.len());
        let mean = |value: fn(&Lane) -> f64| {
            self.lanes.iter().map(value).sum::<f64>() / self.lanes.len().max(1) as f64
        };
        let (min, median) = (
            mean(|lane| lane.min_ns as f64),
            mean(|lane| lane.median_ns as f64),
        );
        let on = match self.lanes.as_slice() {
            [lane] => format!("CPU {}", lane.cpu),
            lanes => format!("{} CPUs", lanes.len()),
        };
        format!(
            "{:<8} {slices:>3} × {:>9} {:<7} {:>9.3} s  min {:>9.1} µs  median {:>9.1} µs per slice  {on}",
            self.name,
            self.work,
            self.unit,
            mean(|lane| lane.seconds),
            min / 1e3,
            median / 1e3,
        )
    }
}

/// Does the work and prints its times.
///
/// # Errors
/// When a CPU cannot be used, the result cannot be written, or a signal arrives; the temporary file
/// is removed in any case.
pub fn run(options: &CanaryOptions) -> anyhow::Result<()> {
    // Before the temporary file exists, which a signal would leave behind.
    let signals = Signals::install(1).context("cannot install the handlers of signals")?;
    let cpus = topology::usable(options.cpus.as_ref())?;
    let (begin_monotonic_ns, begin_realtime_ns) = (clock::monotonic_ns(), clock::realtime_ns());
    let mut done = vec![];
    for part in [parts::integers, parts::copies, parts::syscalls] {
        done.push(part(&cpus)?);
        refuse_after_signal(&signals)?;
    }
    done.push(match &options.data_dir {
        Some(dir) => parts::appends(dir, cpus[0], &signals)?,
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
        parts: done,
    };
    if let Some(path) = &options.out {
        append(path, &record)?;
    }
    // `println!` panics where a pager has closed the pipe.
    let mut out = io::stdout();
    if options.format == "json" {
        writeln!(out, "{}", json!(record))?;
    } else {
        for part in &record.parts {
            writeln!(out, "{}", part.line())?;
        }
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
