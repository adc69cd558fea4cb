//! The canary does its work on the real machine, notices a busy neighbour, and leaves nothing behind however it ends.
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use common::Recorder;
use common::collect;
use common::stderr;
use common::wait_for;
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
fn the_work_is_fixed_and_each_slice_is_told() {
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
    let told = lines(&out);
    assert_eq!(
        (told[0]["label"].as_str(), told[1]["label"].as_str()),
        (Some("before"), Some("after"))
    );
    assert!(told[0]["end_monotonic_ns"].as_i64() < told[1]["begin_monotonic_ns"].as_i64());
    for (number, name) in PARTS.iter().enumerate() {
        let [before, after] = [0, 1].map(|line: usize| &told[line]["parts"][number]);
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
    let buffer = &told[0]["parts"][1];
    assert!(
        buffer["cache_bytes"].is_null() || buffer["buffer_bytes"].as_u64() > buffer["cache_bytes"].as_u64()
    );
}

/// The lower quartile of the slices of the CPU part: what `loadprint compare` judges.
fn cpu_slice(output: &Output) -> i64 {
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut slices: Vec<_> = told["parts"][0]["lanes"][0]["slices_ns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ns| ns.as_i64().unwrap())
        .collect();
    slices.sort_unstable();
    slices[slices.len() / 4]
}

/// Programs that keep a CPU busy until the test ends. As root they outweigh whatever else runs there (nice -10 is the weight of nine
/// processes at nice 0; sched(7)): the shift is as clear on a busy machine.
struct Busy(Vec<Child>);

impl Busy {
    fn on(cpu: &str, count: usize) -> Self {
        let spin = || {
            Command::new("taskset")
                .args(["--cpu-list", cpu])
                .args(["nice", "-n", "-10", "sh", "-c", "while :; do :; done"])
                .stdout(Stdio::null())
                // Other users are told that they may not; the program runs all the same.
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
fn a_busy_neighbour_on_the_same_cpu_is_a_shift() {
    let allowed: Value = serde_json::from_slice(&canary(&["--format", "json"]).stdout).unwrap();
    let cpu = allowed["cpus"][0].to_string();
    let arguments = ["--cpus", cpu.as_str(), "--format", "json"];
    let mut seen = vec![];
    // Where much other work came or went meanwhile it may weigh more all the same; that does not happen ten times in a row. Half as
    // long again, where it is many times as long by itself: what a machine's noise does in one of ten rounds is no shift.
    let shifted = (0..10).any(|_| {
        let before = cpu_slice(&canary(&arguments));
        let busy = Busy::on(&cpu, 2);
        let after = cpu_slice(&canary(&arguments));
        drop(busy);
        seen.push((before, after));
        after * 2 > before * 3
    });
    assert!(shifted, "ns before and after: {seen:?}");
}

/// A canary that is stopped (SIGSTOP) while its temporary file is there.
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
        wait_for("its file, or its end", || {
            !files(data).is_empty() || canary.0.as_mut().unwrap().try_wait().unwrap().is_some()
        });
        if canary.0.as_mut().unwrap().try_wait().unwrap().is_none() {
            canary.signal(STOP);
            // Until it has stopped it may remove its file still, or end.
            let stat = format!("/proc/{}/stat", canary.0.as_ref().unwrap().id());
            wait_for("it to stop or to end", || {
                let stat = fs::read_to_string(&stat).unwrap();
                stat.contains(") T ") || stat.contains(") Z ")
            });
            if let [file] = &files(data)[..] {
                return (canary, file.clone());
            }
            canary.signal(CONT);
        }
        // It was done before it could be stopped: this one proves nothing.
        assert!(canary.wait().status.success());
        fs::remove_file(out).unwrap();
    }
}

#[test]
fn its_file_goes_when_it_is_told_to_stop_and_with_the_next_one_when_it_was_killed() {
    let dir = tempdir().unwrap();
    let (data, out) = (dir.path().join("data"), dir.path().join("canary.jsonl"));
    fs::create_dir(&data).unwrap();
    let (canary, file) = stopped_at_its_file(&data, &out);
    canary.signal(TERM);
    canary.signal(CONT);
    let output = canary.wait();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("ended by a signal"),
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

/// Needs to mount a small tmpfs: `unshare` gives it a mount namespace, as root or where user namespaces are allowed.
#[test]
fn a_full_or_read_only_disk_costs_its_own_part_only() {
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
    for (told, expected) in [
        (full, "No space left on device"),
        (read_only, "Read-only file system"),
    ] {
        let told: Value = serde_json::from_str(told).unwrap();
        let reason = told["parts"][3]["reason"].as_str().unwrap();
        assert!(reason.contains(expected) && reason.contains("disk: "), "{reason}");
        assert!(told["parts"][0]["lanes"][0]["min_ns"].as_i64().unwrap() > 0);
    }
}

#[test]
fn what_cannot_be_done_is_one_line_and_status_two() {
    for (arguments, expected) in [
        (["--cpus", "5000"], "CPU 5000 is not there"),
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
