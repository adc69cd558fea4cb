//! Tests the canary on this machine: fixed work, a busy process on the same CPU, and cleanup after
//! every kind of end.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use crate::common::Recorder;
use crate::common::collect;
use crate::common::stderr;
use crate::common::wait_for;
use serde_json::Value;
use tempfile::tempdir;

const TERM: i32 = 15;
const KILL: i32 = 9;
const STOP: i32 = 19;
const CONT: i32 = 18;
const PARTS: [&str; 4] = ["cpu", "memory", "syscall", "fsync"];

fn canary(arguments: &[&str]) -> Output {
    collect(&[&["canary"], arguments].concat()).output().unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_work_is_fixed_and_every_slice_is_reported() {
    let dir = tempdir().unwrap();
    let (data, out) = (
        dir.path().join("data"),
        dir.path().join("run/server/canary.jsonl"),
    );
    fs::create_dir(&data).unwrap();
    let arguments = [
        "--data-dir",
        data.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ];
    for label in ["before", "after"] {
        let output = canary(&[&arguments[..], &["--label", label]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(
            String::from_utf8(output.stdout).unwrap().lines().count(),
            PARTS.len()
        );
    }
    assert_eq!(files(&data), Vec::<PathBuf>::new());
    let records = lines(&out);
    assert_eq!(
        (records[0]["label"].as_str(), records[1]["label"].as_str()),
        (Some("before"), Some("after"))
    );
    assert!(records[0]["end_monotonic_ns"].as_i64() < records[1]["begin_monotonic_ns"].as_i64());
    for (number, name) in PARTS.iter().enumerate() {
        let [before, after] = [0, 1].map(|line: usize| &records[line]["parts"][number]);
        assert_eq!(before["name"], *name);
        assert!(before["reason"].is_null(), "{before}");
        assert_eq!(
            (&before["work"], &before["buffer_bytes"]),
            (&after["work"], &after["buffer_bytes"])
        );
        for lane in before["lanes"].as_array().unwrap() {
            let slices: Vec<_> = lane["slices_ns"]
                .as_array()
                .unwrap()
                .iter()
                .map(|ns| ns.as_i64().unwrap())
                .collect();
            assert_eq!(slices.iter().min().copied(), lane["min_ns"].as_i64());
            let seconds = slices.iter().sum::<i64>() as f64 / 1e9;
            assert!((seconds - lane["seconds"].as_f64().unwrap()).abs() < 1e-6);
            assert!(slices.iter().all(|&ns| ns > 0), "{slices:?}");
        }
    }
    let buffer = &records[0]["parts"][1];
    assert!(
        buffer["cache_bytes"].is_null() || buffer["buffer_bytes"].as_u64() > buffer["cache_bytes"].as_u64()
    );
}

/// The lower quartile of the slices of the CPU part, which `loadprint compare` uses.
fn cpu_slice(output: &Output) -> i64 {
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut slices: Vec<_> = record["parts"][0]["lanes"][0]["slices_ns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ns| ns.as_i64().unwrap())
        .collect();
    slices.sort_unstable();
    slices[slices.len() / 4]
}

/// Processes that keep a CPU busy until the end of the test. As root they have nice -10, the weight
/// of nine processes at nice 0 (sched(7)), so that the shift is clear on a busy machine, too.
struct Busy(Vec<Child>);

impl Busy {
    fn on(cpu: &str, count: usize) -> Self {
        let spin = || {
            Command::new("taskset")
                .args(["--cpu-list", cpu])
                .args(["nice", "-n", "-10", "sh", "-c", "while :; do :; done"])
                .stdout(Stdio::null())
                // For other users nice(1) prints a warning and runs the program.
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        Self((0..count).map(|_| spin()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_busy_process_on_the_same_cpu_is_a_shift() {
    let allowed: Value = serde_json::from_slice(&canary(&["--format", "json"]).stdout).unwrap();
    let cpu = allowed["cpus"][0].to_string();
    let arguments = ["--cpus", cpu.as_str(), "--format", "json"];
    let mut slices = vec![];
    // Other load on the machine can hide the shift in one round, but not in ten rounds. The
    // threshold of 1.5 is far below the real shift and above the noise of ten rounds.
    let shifted = (0..10).any(|_| {
        let before = cpu_slice(&canary(&arguments));
        let busy = Busy::on(&cpu, 2);
        let after = cpu_slice(&canary(&arguments));
        drop(busy);
        slices.push((before, after));
        after * 2 > before * 3
    });
    assert!(shifted, "ns before and after: {slices:?}");
}

/// A canary that is stopped (SIGSTOP) while its temporary file exists.
fn stopped_at_its_file(data: &Path, out: &Path) -> (Recorder, PathBuf) {
    loop {
        let arguments = [
            "canary",
            "--data-dir",
            data.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
        ];
        let mut canary = Recorder(Some(collect(&arguments).spawn().unwrap()));
        wait_for("its file or its exit", || {
            !files(data).is_empty() || canary.0.as_mut().unwrap().try_wait().unwrap().is_some()
        });
        if canary.0.as_mut().unwrap().try_wait().unwrap().is_none() {
            canary.signal(STOP);
            // Before it has stopped it can remove its file or exit.
            let stat = format!("/proc/{}/stat", canary.0.as_ref().unwrap().id());
            wait_for("it to stop or exit", || {
                let stat = fs::read_to_string(&stat).unwrap();
                stat.contains(") T ") || stat.contains(") Z ")
            });
            if let [file] = &files(data)[..] {
                return (canary, file.clone());
            }
            canary.signal(CONT);
        }
        // It completed before it was stopped: try again.
        assert!(canary.wait().status.success());
        fs::remove_file(out).unwrap();
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn its_file_is_removed_at_a_stop_and_after_a_kill_by_the_next_canary() {
    let dir = tempdir().unwrap();
    let (data, out) = (dir.path().join("data"), dir.path().join("canary.jsonl"));
    fs::create_dir(&data).unwrap();
    let (canary, file) = stopped_at_its_file(&data, &out);
    canary.signal(TERM);
    canary.signal(CONT);
    let output = canary.wait();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("stopped by a signal"),
        "{}",
        stderr(&output)
    );
    assert!(!file.exists() && !out.exists());

    let (canary, file) = stopped_at_its_file(&data, &out);
    canary.signal(KILL);
    canary.wait();
    assert!(file.exists(), "nothing can clean up after SIGKILL");
    let output = collect(&["canary", "--data-dir", data.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(files(&data), Vec::<PathBuf>::new());
}

/// Mounts a small tmpfs in a mount namespace of `unshare`, which needs root or user namespaces.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_full_or_read_only_disk_only_skips_its_part() {
    let dir = tempdir().unwrap();
    let script = r#"
        set -eu
        mount -t tmpfs -o size=16k tmpfs "$2"
        "$1" canary --data-dir "$2" --format json 2>"$2.message"
        wc -l <"$2.message"
        ls -A "$2" | wc -l
        mount -o remount,ro "$2"
        "$1" canary --data-dir "$2" --format json 2>>"$2.message"
    "#;
    let path = dir.path().join("disk");
    fs::create_dir(&path).unwrap();
    let output = Command::new("unshare")
        .args([
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_loadprint-collect"),
        ])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let [full, messages, left, read_only] = text.lines().collect::<Vec<_>>()[..] else {
        unreachable!("{text}");
    };
    assert_eq!((messages.trim(), left.trim()), ("1", "0"));
    for (line, expected) in [
        (full, "No space left on device"),
        (read_only, "Read-only file system"),
    ] {
        let record: Value = serde_json::from_str(line).unwrap();
        let reason = record["parts"][3]["reason"].as_str().unwrap();
        assert!(reason.contains(expected) && reason.contains("disk: "), "{reason}");
        assert!(record["parts"][0]["lanes"][0]["min_ns"].as_i64().unwrap() > 0);
    }
}

#[test]
fn errors_are_one_line_with_status_two() {
    for (arguments, expected) in [
        (["--cpus", "5000"], "CPU 5000 does not exist"),
        (["--cpus", "3-1"], "is not a CPU list"),
        (["--label", "between"], "between"),
        (
            ["--out", "/proc/nowhere/canary.jsonl"],
            "cannot append the result",
        ),
    ] {
        let output = canary(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = stderr(&output);
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}
