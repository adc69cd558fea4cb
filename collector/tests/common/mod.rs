//! Runs the real binary and reads its tables.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

#[cfg(feature = "mysql")]
pub mod database;

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use arrow_array::Array;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use loadprint_recording::manifest;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

pub fn collect(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadprint-collect"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A recorder that is killed at the end of the test.
pub struct Recorder(pub Option<Child>);

impl Recorder {
    /// Starts `record --out RUN …` and waits for the pid file, which appears after the first tick.
    pub fn start(run: &Path, arguments: &[&str]) -> Self {
        Self::launch(collect(&["record"]).args(arguments), run)
    }

    /// The same with a prepared `command`.
    pub fn launch(command: &mut Command, run: &Path) -> Self {
        let pid_file = run.with_extension("pid");
        command.arg("--out").arg(run).arg("--pid-file").arg(&pid_file);
        let mut recorder = Self(Some(command.spawn().unwrap()));
        wait_for("the pid file", || {
            let ended = recorder.0.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the recorder ended: {ended:?}");
            pid_file.exists()
        });
        let pid = fs::read_to_string(&pid_file).unwrap();
        assert_eq!(pid.trim(), recorder.0.as_ref().unwrap().id().to_string());
        recorder
    }

    pub fn signal(&self, signal: i32) {
        let pid = self.0.as_ref().unwrap().id();
        let status = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(pid.to_string())
            .status()
            .unwrap();
        assert!(status.success());
    }

    pub fn wait(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Copies a program by cp(1). If this process wrote the file, a child that another test is starting
/// could hold it open for writing, and executing it would fail (ETXTBSY).
pub fn copy_program(from: &str, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Polls until the condition is true; the deadline is far longer than any machine needs.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "timeout waiting for {what}"
        );
        sleep(Duration::from_millis(5));
    }
}

pub fn read(path: PathBuf) -> RecordBatch {
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    reader
        .with_batch_size(1 << 24)
        .build()
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
}

pub fn strings(batch: &RecordBatch, column: &str) -> Vec<String> {
    let column = batch.column_by_name(column).unwrap().as_string::<i32>();
    (0..column.len())
        .map(|row| {
            if column.is_null(row) {
                String::new()
            } else {
                column.value(row).to_owned()
            }
        })
        .collect()
}

pub fn ticks_of(batch: &RecordBatch) -> Vec<u32> {
    batch
        .column_by_name("tick")
        .unwrap()
        .as_primitive::<UInt32Type>()
        .values()
        .to_vec()
}

/// The manifest has the current files of the run, with their sizes and checksums.
pub fn assert_manifest(run: &Path) {
    let read = || fs::read_to_string(run.join("manifest.json")).unwrap();
    let recorded = read();
    manifest::write(run).unwrap();
    assert_eq!(recorded, read());
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
