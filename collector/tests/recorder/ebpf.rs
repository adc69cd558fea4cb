//! Tests the eBPF probes without privileges, with limits, and their own cost.

use std::env;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use crate::common::Recorder;
use crate::common::assert_manifest;
use crate::common::copy_program;
use crate::common::read;
use crate::common::stderr;
use crate::common::strings;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::getppid;
use rustix::process::kill_process;
use serde_json::Value;
use tempfile::tempdir;

/// The eBPF probes in the output of `probes`, run by `command` from a directory that every user can
/// read.
fn listed(command: &[&str]) -> Vec<Value> {
    let of_ebpf = listed_of(command, &[]);
    for name in ["ebpf_sched", "profile"] {
        assert!(of_ebpf.iter().any(|probe| probe["name"] == name));
    }
    of_ebpf
}

fn listed_of(command: &[&str], selection: &[&str]) -> Vec<Value> {
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let binary = dir.path().join("loadprint-collect");
    copy_program(env!("CARGO_BIN_EXE_loadprint-collect"), &binary);
    let output = Command::new(command[0])
        .args(&command[1..])
        .arg(&binary)
        .args(["probes", "--format", "json", "--process", "server=1"])
        .args(selection)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    list.into_iter()
        .filter(|probe| {
            let name = probe["name"].as_str().unwrap();
            name.starts_with("ebpf_") || name == "profile"
        })
        .collect()
}

/// Probes share roles and programs, which the first of them creates; `ebpf_programs` reports
/// on the programs of the others.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn each_probe_runs_without_the_others() {
    let running = listed(&["env"])
        .into_iter()
        .filter(|probe| probe["status"] == "running" && probe["name"] != "ebpf_programs");
    for probe in running {
        let name = probe["name"].as_str().unwrap();
        let alone = listed_of(&["env"], &["--probes", name]);
        let alone = alone.iter().find(|other| other["name"] == name).unwrap();
        assert_eq!(alone["status"], "running", "{alone}");
    }
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn unprivileged_users_get_a_reason_with_the_fix() {
    let probes = listed(&[
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
    ]);
    for probe in probes.iter().filter(|probe| probe["status"] != "off") {
        let reason = probe["reason"].as_str().unwrap_or_default();
        assert_eq!(probe["status"], "unavailable", "{probe}");
        assert!(
            reason.contains("CAP_BPF") && reason.lines().count() == 1,
            "{}: {reason}",
            probe["name"]
        );
    }
}

/// Linux 5.11 and later charge maps to the control group, not to the limit on locked memory
/// (RLIMIT_MEMLOCK).
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn no_locked_memory_is_needed() {
    let running = |probes: Vec<Value>| -> Vec<Value> {
        let of = probes.into_iter().filter(|probe| probe["status"] == "running");
        of.map(|probe| probe["name"].clone()).collect()
    };
    let with = running(listed(&["env"]));
    assert!(with.contains(&"ebpf_sched".into()), "{with:?}");
    assert_eq!(running(listed(&["prlimit", "--memlock=0:0"])), with);
}

/// Each program, map and event needs a descriptor: which one is refused depends on the limit.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn without_free_descriptors_the_fix_is_their_limit() {
    let mut refused = 0;
    for limit in 32..60 {
        let limit = format!("--nofile={limit}:{limit}");
        for probe in listed(&["prlimit", &limit]) {
            let name = probe["name"].as_str().unwrap();
            let is_ebpf = name.starts_with("ebpf") || name == "profile";
            if is_ebpf && probe["status"] == "unavailable" {
                refused += 1;
                let reason = probe["reason"].as_str().unwrap();
                assert!(reason.contains("ulimit -n"), "{probe}");
            }
        }
    }
    assert!(refused > 2, "{refused}");
}

/// Loading programs needs CAP_BPF and CAP_PERFMON; measuring their run time (BPF_ENABLE_STATS)
/// needs CAP_SYS_ADMIN.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn without_cap_sys_admin_programs_run_and_their_times_are_unavailable() {
    let capabilities = "-all,+bpf,+perfmon,+dac_read_search,+sys_resource";
    let probes = listed(&["setpriv", "--bounding-set", capabilities]);
    let status = |name: &str| probes.iter().find(|probe| probe["name"] == name).unwrap().clone();
    for name in ["ebpf_irq", "profile"] {
        assert_eq!(status(name)["status"], "running", "{probes:?}");
    }
    let programs = status("ebpf_programs");
    assert_eq!(programs["status"], "unavailable", "{programs}");
    let reason = programs["reason"].as_str().unwrap();
    assert!(reason.contains("BPF_ENABLE_STATS"), "{reason}");
    assert!(
        reason.contains("CAP_SYS_ADMIN") && reason.lines().count() == 1,
        "{reason}"
    );
}

/// The recorder drops its capabilities before the first tick and can still read the run time of its
/// programs.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_recording_contains_the_time_of_its_own_programs() {
    const CALLS: u64 = 5_000;
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let own = format!("load={}", std::process::id());
    let probes = "ebpf_syscalls,ebpf_programs";
    let recorder = Recorder::start(
        &run,
        &["--interval", "20ms", "--probes", probes, "--process", &own],
    );
    for _ in 0..CALLS {
        let _ = getppid();
    }
    recorder.signal(15);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = read(run.join("server/ebpf_programs.parquet"));
    let (names, cpus) = (strings(&table, "program"), strings(&table, "cpus"));
    let growth = |column: &str| {
        let column = table.column_by_name(column).unwrap().as_primitive::<UInt64Type>();
        let rows = (0..table.num_rows()).filter(|row| names[*row] == "sys_enter" && cpus[*row] == "all");
        let values: Vec<_> = rows
            .inspect(|row| assert!(!column.is_null(*row)))
            .map(|row| column.value(row))
            .collect();
        values.iter().max().unwrap() - values.iter().min().unwrap()
    };
    assert!(growth("run_cnt") >= CALLS, "run_cnt: {}", growth("run_cnt"));
    assert!(growth("calls") >= CALLS, "calls: {}", growth("calls"));
    assert!(growth("run_time_ns") > 0);
}

/// The names of stacks are in a file next to the table, and in the manifest.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_recording_contains_the_stacks_of_its_samples() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let own = format!("load={}", std::process::id());
    let recorder = Recorder::start(
        &run,
        &["--interval", "50ms", "--probes", "profile", "--process", &own],
    );
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        let _ = getppid();
    }
    recorder.signal(15);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = read(run.join("server/profile.parquet"));
    let stacks: Value = serde_json::from_slice(&fs::read(run.join("server/stacks.json")).unwrap()).unwrap();
    let nodes = stacks["nodes"].as_array().unwrap().len();
    let recorded = strings(&table, "stack");
    assert!(!recorded.is_empty());
    for stack in recorded {
        assert!(stack.parse::<usize>().unwrap() < nodes, "{stack} of {nodes}");
    }
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("manifest.json")).unwrap()).unwrap();
    assert!(manifest["files"]["server/stacks.json"].is_object(), "{manifest}");
}

/// Frames have no names then; samples, tables and manifest are as usual.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn recording_is_whole_when_the_helper_that_reads_symbols_is_killed() {
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let own = format!("load={}", std::process::id());
    let recorder = Recorder::start(
        &run,
        &["--interval", "50ms", "--probes", "profile", "--process", &own],
    );
    let pid = recorder.0.as_ref().unwrap().id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let helper: i32 = children.trim().parse().unwrap();
    let work = || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(1) {
            let _ = getppid();
        }
    };
    work();
    kill_process(Pid::from_raw(helper).unwrap(), Signal::KILL).unwrap();
    work();
    recorder.signal(15);
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_manifest(&run);
    let stacks: Value = serde_json::from_slice(&fs::read(run.join("server/stacks.json")).unwrap()).unwrap();
    let frames = stacks["frames"].as_array().unwrap();
    let names: Vec<_> = frames.iter().filter_map(|frame| frame[1].as_str()).collect();
    let program = env::current_exe().unwrap();
    let by_address = format!("{}+0x", program.file_name().unwrap().display());
    assert!(
        names.iter().any(|name| name.starts_with(&by_address)),
        "{names:?}"
    );
    assert!(
        names.iter().any(|name| name.ends_with("sys_getppid")),
        "{names:?}"
    );
}
