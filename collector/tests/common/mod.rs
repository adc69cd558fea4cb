//! Runs the real binary and reads its tables.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

#[cfg(feature = "mysql")]
pub mod database;
#[cfg(feature = "mysql")]
#[path = "../../../workloads/tests/common/mysql_program.rs"]
mod mysql_program;

use std::fs;
use std::fs::File;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use loadprint_recording::manifest;
use parquet::file::reader::SerializedFileReader;
use parquet::record::Field;
use parquet::record::Row;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_loadprint-collect");

/// The program with the words of `words` as its arguments.
pub fn collect(words: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the program, which must succeed; returns its standard output.
pub fn succeed(words: &str) -> String {
    succeeded(&collect(words).output().unwrap())
}

/// The standard output of a command, which must have succeeded.
pub fn succeeded(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", stderr(output));
    text
}

/// Runs the program, which must refuse its input in one line that contains `expected`.
pub fn refused(words: &str, expected: &str) -> String {
    let output = collect(words).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{words}: {message}");
    assert_eq!(message.lines().count(), 1, "{words}: {message}");
    assert!(
        message.starts_with("loadprint-collect: ") && message.contains(expected),
        "{words}: {message}"
    );
    message
}

/// A recorder that is killed at the end of the test.
pub struct Recorder(pub Option<Child>);

impl Recorder {
    /// Starts `record --out RUN …` and waits for the pid file, which appears after the first tick.
    pub fn start(run: &Path, words: &str) -> Self {
        Self::launch(&mut collect(&format!("record {words}")), run)
    }

    /// The same with a prepared `command`.
    pub fn launch(command: &mut Command, run: &Path) -> Self {
        let pid_file = run.with_extension("pid");
        command.arg("--out").arg(run).arg("--pid-file").arg(&pid_file);
        let mut recorder = Self(Some(command.spawn().unwrap()));
        wait_for("the pid file", || {
            assert!(!recorder.has_ended(), "the recorder ended");
            pid_file.exists()
        });
        let pid = fs::read_to_string(&pid_file).unwrap();
        assert_eq!(pid.trim(), recorder.pid().to_string());
        recorder
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub fn wait(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    /// Sends SIGTERM; the recording must succeed. Returns its messages.
    pub fn stop(self) -> String {
        self.signal(Signal::TERM);
        let output = self.wait();
        succeeded(&output);
        stderr(&output)
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

/// Copies a file or a directory by cp(1). If this process wrote a program, a child that another test
/// is starting could hold it open for writing, and executing it would fail (ETXTBSY).
pub fn copy(from: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.as_ref()).arg(to).status();
    assert!(copied.unwrap().success());
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

/// These columns of a table's rows as text; a missing value is empty.
pub fn rows<const N: usize>(path: impl AsRef<Path>, columns: [&str; N]) -> Vec<[String; N]> {
    let path = path.as_ref();
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cell = |row: &Row, column: &str| {
        let mut fields = row.get_column_iter();
        let (_, field) = fields.find(|(name, _)| *name == column).unwrap();
        match field {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            other => other.to_string(),
        }
    };
    let rows = SerializedFileReader::new(file).unwrap().into_iter();
    rows.map(|row| row.unwrap())
        .map(|row| columns.map(|column| cell(&row, column)))
        .collect()
}

pub fn column(path: impl AsRef<Path>, name: &str) -> Vec<String> {
    rows(path, [name]).concat()
}

pub fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
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
