//! The eBPF probes where the user or a limit is in their way.
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use common::Recorder;
use common::copy_program;
use common::read;
use common::stderr;
use common::strings;
use rustix::process::getppid;
use serde_json::Value;
use tempfile::tempdir;

/// What `probes` says of the eBPF probes when it is run by `command`, from where every user can reach it.
fn listed(command: &[&str]) -> Vec<Value> {
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let binary = dir.path().join("loadprint-collect");
    copy_program(env!("CARGO_BIN_EXE_loadprint-collect"), &binary);
    let output = Command::new(command[0])
        .args(&command[1..])
        .arg(&binary)
        .args(["probes", "--format", "json", "--process", "server=1"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let of_ebpf: Vec<_> = list
        .into_iter()
        .filter(|probe| probe["name"].as_str().unwrap().starts_with("ebpf_"))
        .collect();
    assert!(of_ebpf.iter().any(|probe| probe["name"] == "ebpf_sched"));
    of_ebpf
}

#[test]
fn an_ordinary_user_is_told_what_would_help() {
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

/// Since Linux 5.11 maps are charged to the control group, not to the limit on locked memory (RLIMIT_MEMLOCK).
#[test]
fn no_locked_memory_is_needed() {
    let running = |probes: Vec<Value>| -> Vec<Value> {
        let of = probes.into_iter().filter(|probe| probe["status"] == "running");
        of.map(|probe| probe["name"].clone()).collect()
    };
    let with = running(listed(&["env"]));
    assert!(with.contains(&"ebpf_sched".into()), "{with:?}");
    assert_eq!(running(listed(&["prlimit", "--memlock=0:0"])), with);
}

/// Loading programs needs CAP_BPF and CAP_PERFMON; having the kernel measure them needs CAP_SYS_ADMIN.
#[test]
fn without_the_right_to_measure_the_programs_run_and_their_time_is_unavailable_with_a_reason() {
    let capabilities = "-all,+bpf,+perfmon,+dac_read_search,+sys_resource";
    let probes = listed(&["setpriv", "--bounding-set", capabilities]);
    let status = |name: &str| probes.iter().find(|probe| probe["name"] == name).unwrap().clone();
    assert_eq!(status("ebpf_irq")["status"], "running", "{probes:?}");
    let programs = status("ebpf_programs");
    assert_eq!(programs["status"], "unavailable", "{programs}");
    let reason = programs["reason"].as_str().unwrap();
    assert!(reason.contains("BPF_ENABLE_STATS"), "{reason}");
    assert!(
        reason.contains("CAP_SYS_ADMIN") && reason.lines().count() == 1,
        "{reason}"
    );
}

/// The recorder gives up its capabilities before its first tick, and still reads what its programs cost.
#[test]
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
