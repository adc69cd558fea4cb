//! Tests `--with-sysstat`: sadc records in parallel and ends with the recorder.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Recorder;
use crate::common::assert_manifest;
use crate::common::column;
use crate::common::json;
use crate::common::names;
use crate::common::stderr;
use crate::common::succeed;
use crate::common::wait_for;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::tempdir;

/// Number of intervals that `sadf` reads from a file.
fn intervals(file: &Path) -> usize {
    let mut command = Command::new("sadf");
    let output = command.arg("-j").arg(file).env("LC_ALL", "C").output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let statistics = document["sysstat"]["hosts"][0]["statistics"].as_array();
    statistics.map_or(0, Vec::len)
}

/// The children of a recorder without the process that reads symbols for it.
fn children(recorder: &Recorder) -> Vec<String> {
    let pid = recorder.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let reads_symbols = |pid: &&str| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("\0symbols\0"))
    };
    let others = children.split_whitespace().filter(|pid| !reads_symbols(pid));
    others.map(str::to_owned).collect()
}

/// The pid of the only child named sadc.
fn sadc_of(recorder: &Recorder) -> String {
    let is_sadc =
        |pid: &String| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sadc\n");
    let pids: Vec<_> = children(recorder).into_iter().filter(is_sadc).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    pids.concat()
}

/// True if the process has exited; it may be a zombie.
fn has_ended(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn its_file_is_in_the_run_and_its_process_is_watched() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let recorder = Recorder::start(&run, "--with-sysstat");
    let sadc = sadc_of(&recorder);
    let file = run.join("server/sysstat.sa");
    wait_for("two intervals", || intervals(&file) >= 2);
    recorder.stop();
    assert!(has_ended(&sadc) && intervals(&file) >= 2);
    assert_manifest(&run);
    assert!(json(run.join("manifest.json"))["files"]["server/sysstat.sa"].is_object());
    assert!(column(run.join("server/process.parquet"), "role").contains(&"sadc".to_owned()));
    assert_eq!(
        json(run.join("server/fingerprint.json"))["sysstat"]["interval_s"],
        1
    );
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn it_ends_with_a_killed_recorder_and_finish_moves_its_file() {
    let dir = tempdir().unwrap();
    let (run, memory) = (dir.path().join("run"), dir.path().join("memory"));
    let words = format!(
        "--with-sysstat --interval 100ms --journal-dir {}",
        memory.display()
    );
    let recorder = Recorder::start(&run, &words);
    let sadc = sadc_of(&recorder);
    let file = run.join("server/sysstat.sa");
    assert!(file.is_symlink(), "it is written to the directory of the journal");
    wait_for("an interval", || intervals(&file) >= 1);
    recorder.signal(Signal::KILL);
    let message = stderr(&recorder.wait());
    assert!(
        message.contains("sadc supports whole seconds only: it samples every 1 s, the recorder every 100ms"),
        "{message}"
    );
    wait_for("sadc to end", || has_ended(&sadc));
    succeed(&format!("finish {}", run.display()));
    assert!(!file.is_symlink() && intervals(&file) >= 1);
    assert_manifest(&run);
    assert_eq!(names(&memory), Vec::<String>::new());
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
        let recorder = Recorder::start(&run, &format!("--with-sysstat --sadc {program}"));
        wait_for("its exit", || {
            children(&recorder).iter().all(|child| has_ended(child))
        });
        let message = recorder.stop();
        let warning = message.lines().rfind(|line| line.contains("--with-sysstat"));
        assert!(warning.unwrap().contains(expected), "{message}");
        assert!(run.join("server/ticks.parquet").exists());
    }
    let fingerprint = json(dir.path().join("-nonexistent-sadc/server/fingerprint.json"));
    let reason = fingerprint["sysstat"]["unavailable"].as_str().unwrap();
    assert!(reason.contains("/nonexistent/sadc"), "{reason}");
}
