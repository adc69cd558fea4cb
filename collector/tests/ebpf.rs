//! The eBPF probes where the user or a limit is in their way.
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::copy_program;
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
