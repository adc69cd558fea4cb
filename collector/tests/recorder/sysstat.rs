//! Tests `--with-sysstat`: sadc records in parallel and ends with the recorder.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Recorder;
use crate::common::assert_manifest;
use crate::common::collect;
use crate::common::read;
use crate::common::stderr;
use crate::common::strings;
use crate::common::wait_for;
use serde_json::Value;
use tempfile::tempdir;

const TERM: i32 = 15;
const KILL: i32 = 9;

/// Number of intervals that `sadf` reads from a file.
fn intervals(file: &Path) -> usize {
    let output = Command::new("sadf")
        .arg("-j")
        .arg(file)
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    document["sysstat"]["hosts"][0]["statistics"]
        .as_array()
        .map_or(0, Vec::len)
}

fn fingerprint(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("server/fingerprint.json")).unwrap()).unwrap()
}

/// The children of a recorder without the process that reads symbols for it.
fn children_of(parent: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let reads_symbols = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("\0symbols\0"))
    };
    children
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .filter(|pid| !reads_symbols(pid))
        .collect()
}

/// The pid of the only child of `parent` named sadc.
fn sadc_of(parent: u32) -> u32 {
    let is_sadc =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "sadc");
    let pids: Vec<u32> = children_of(parent).into_iter().filter(is_sadc).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    pids[0]
}

/// True if the process has exited; it may be a zombie.
fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn its_file_is_in_the_run_and_its_process_is_watched() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let recorder = Recorder::start(&run, &["--with-sysstat"]);
    let sadc = sadc_of(recorder.0.as_ref().unwrap().id());
    let file = run.join("server/sysstat.sa");
    wait_for("two intervals", || intervals(&file) >= 2);
    recorder.signal(TERM);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(has_ended(sadc));
    assert!(intervals(&file) >= 2);
    assert_manifest(&run);
    assert!(
        fs::read_to_string(run.join("manifest.json"))
            .unwrap()
            .contains("server/sysstat.sa")
    );
    assert!(strings(&read(run.join("server/process.parquet")), "role").contains(&"sadc".to_owned()));
    assert_eq!(fingerprint(&run)["sysstat"]["interval_s"], 1);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn it_ends_with_a_killed_recorder_and_finish_moves_its_file() {
    let dir = tempdir().unwrap();
    let (run, memory) = (dir.path().join("run"), dir.path().join("memory"));
    let arguments = [
        "--with-sysstat",
        "--interval",
        "100ms",
        "--journal-dir",
        memory.to_str().unwrap(),
    ];
    let recorder = Recorder::start(&run, &arguments);
    let sadc = sadc_of(recorder.0.as_ref().unwrap().id());
    let file = run.join("server/sysstat.sa");
    assert!(file.is_symlink(), "it is written to the directory of the journal");
    wait_for("an interval", || intervals(&file) >= 1);
    recorder.signal(KILL);
    let message = stderr(&recorder.wait());
    assert!(
        message.contains("sadc supports whole seconds only: it samples every 1 s, the recorder every 100ms"),
        "{message}"
    );
    wait_for("sadc to end", || has_ended(sadc));
    let finished = collect(&["finish", run.to_str().unwrap()]).output().unwrap();
    assert!(finished.status.success(), "{}", stderr(&finished));
    assert!(!file.is_symlink() && intervals(&file) >= 1);
    assert_manifest(&run);
    assert_eq!(fs::read_dir(&memory).unwrap().count(), 0);
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn without_sadc_the_recorder_continues() {
    let dir = tempdir().unwrap();
    for (program, expected) in [
        ("/nonexistent/sadc", "No such file or directory"),
        ("/bin/false", "ended before the recording (exit status: 1)"),
    ] {
        let run = dir.path().join(program.replace('/', "-"));
        let recorder = Recorder::start(&run, &["--with-sysstat", "--sadc", program]);
        wait_for("its exit", || {
            children_of(recorder.0.as_ref().unwrap().id())
                .into_iter()
                .all(has_ended)
        });
        recorder.signal(TERM);
        let output = recorder.wait();
        let message = stderr(&output);
        assert!(output.status.success(), "{message}");
        let warnings = message
            .lines()
            .filter(|line| line.contains("--with-sysstat"))
            .collect::<Vec<_>>();
        assert!(warnings.last().unwrap().contains(expected), "{message}");
        assert!(run.join("server/ticks.parquet").exists());
    }
    let reason = fingerprint(&dir.path().join("-nonexistent-sadc"))["sysstat"]["unavailable"].clone();
    assert!(reason.as_str().unwrap().contains("/nonexistent/sadc"), "{reason}");
}
