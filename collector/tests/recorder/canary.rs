//! Tests the canary on this machine: fixed work, a busy process on the same CPU, and cleanup after
//! every kind of end.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::prelude::*;
use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;
use tempfile::tempdir;

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// The times of the slices of a part on its first CPU.
fn slices(lane: &Value) -> Vec<i64> {
    serde_json::from_value(lane["slices_ns"].clone()).unwrap()
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
    let words = format!("canary --data-dir {} --out {}", data.display(), out.display());
    for label in ["before", "after"] {
        assert_eq!(succeed(&format!("{words} --label {label}")).lines().count(), 4);
    }
    assert_eq!(names(&data), Vec::<String>::new());
    let text = fs::read_to_string(&out).unwrap();
    let [before, after] = &text.lines().map(parse).collect::<Vec<_>>()[..] else {
        unreachable!("{text}");
    };
    assert_eq!(
        json!([before["label"], after["label"]]),
        json!(["before", "after"])
    );
    assert!(before["end_monotonic_ns"].as_i64() < after["begin_monotonic_ns"].as_i64());
    for (number, name) in ["cpu", "memory", "syscall", "fsync"].into_iter().enumerate() {
        let (before, after) = (&before["parts"][number], &after["parts"][number]);
        assert_eq!(before["name"], name);
        assert!(before["reason"].is_null(), "{before}");
        for fixed in ["work", "buffer_bytes"] {
            assert_eq!(before[fixed], after[fixed]);
        }
        for lane in before["lanes"].as_array().unwrap() {
            let slices = slices(lane);
            assert_eq!(slices.iter().min().copied(), lane["min_ns"].as_i64());
            let seconds = slices.iter().sum::<i64>() as f64 / 1e9;
            assert!((seconds - lane["seconds"].as_f64().unwrap()).abs() < 1e-6);
            assert!(slices.iter().all(|&ns| ns > 0), "{slices:?}");
        }
    }
    let buffer = &before["parts"][1];
    assert!(
        buffer["cache_bytes"].is_null() || buffer["buffer_bytes"].as_u64() > buffer["cache_bytes"].as_u64()
    );
}

/// The lower quartile of the slices of the CPU part, which `loadprint compare` uses.
fn cpu_slice(cpu: &str) -> i64 {
    let record = parse(&succeed(&format!("canary --cpus {cpu} --format json")));
    let mut slices = slices(&record["parts"][0]["lanes"][0]);
    slices.sort_unstable();
    slices[slices.len() / 4]
}

/// Keeps a CPU busy until the end of the test. As root it has nice -10, the weight of nine processes
/// at nice 0 (sched(7)), so that the shift is clear on a busy machine, too.
struct Busy(Child);

impl Busy {
    fn on(cpu: &str) -> Self {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", cpu]);
        command.args(["nice", "-n", "-10", "sh", "-c", "while :; do :; done"]);
        // For other users nice(1) prints a warning and runs the program.
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_busy_process_on_the_same_cpu_is_a_shift() {
    let cpu = parse(&succeed("canary --format json"))["cpus"][0].to_string();
    let mut slices = vec![];
    // Other load on the machine can hide the shift in one round, but not in ten rounds. The
    // threshold of 1.5 is far below the real shift and above the noise of ten rounds.
    let shifted = (0..10).any(|_| {
        let before = cpu_slice(&cpu);
        let _busy = [Busy::on(&cpu), Busy::on(&cpu)];
        let after = cpu_slice(&cpu);
        slices.push((before, after));
        after * 2 > before * 3
    });
    assert!(shifted, "ns before and after: {slices:?}");
}

/// A canary that is stopped (SIGSTOP) while its temporary file exists.
fn stopped_at_its_file(data: &Path, out: &Path) -> (Recorder, PathBuf) {
    loop {
        let words = format!("canary --data-dir {} --out {}", data.display(), out.display());
        let mut canary = Recorder(Some(collect(&words).spawn().unwrap()));
        wait_for("its file or its exit", || {
            !names(data).is_empty() || canary.has_ended()
        });
        if !canary.has_ended() {
            canary.signal(Signal::STOP);
            // Before it has stopped it can remove its file or exit.
            wait_for("it to stop or exit", || {
                let stat = fs::read_to_string(format!("/proc/{}/stat", canary.pid())).unwrap();
                stat.contains(") T ") || stat.contains(") Z ")
            });
            if let [file] = &names(data)[..] {
                return (canary, data.join(file));
            }
            canary.signal(Signal::CONT);
        }
        // It completed before it was stopped: try again.
        succeeded(&canary.wait());
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
    canary.signal(Signal::TERM);
    canary.signal(Signal::CONT);
    let output = canary.wait();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("stopped by a signal"), "{message}");
    assert!(!file.exists() && !out.exists());

    let (canary, file) = stopped_at_its_file(&data, &out);
    canary.signal(Signal::KILL);
    canary.wait();
    assert!(file.exists(), "nothing can clean up after SIGKILL");
    succeed(&format!("canary --data-dir {}", data.display()));
    assert_eq!(names(&data), Vec::<String>::new());
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
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh", PROGRAM]);
    let text = succeeded(&command.arg(&path).output().unwrap());
    let [full, messages, left, read_only] = text.lines().collect::<Vec<_>>()[..] else {
        unreachable!("{text}");
    };
    assert_eq!((messages.trim(), left.trim()), ("1", "0"));
    for (line, expected) in [
        (full, "disk: No space left on device"),
        (read_only, "disk: Read-only file system"),
    ] {
        let parts = &parse(line)["parts"];
        let reason = parts[3]["reason"].as_str().unwrap();
        assert!(reason.contains(expected), "{reason}");
        assert!(parts[0]["lanes"][0]["min_ns"].as_i64() > Some(0));
    }
}
