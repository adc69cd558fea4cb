//! Tests the recorder without privileges: it records the readable sources; the other probes are
//! unavailable with a reason.

use std::collections::BTreeMap;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::process::Output;

use crate::common::assert_manifest;
use crate::common::copy_program;
use crate::common::stderr;
use serde_json::Value;
use tempfile::tempdir;

/// Runs a copy of the program as `nobody`, who may have no access to the build directory.
fn as_nobody(dir: &Path, arguments: &[&str]) -> Output {
    let program = dir.join("loadprint-collect");
    if !program.exists() {
        fs::set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
        copy_program(env!("CARGO_BIN_EXE_loadprint-collect"), &program);
    }
    Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ])
        .arg(program)
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap()
}

#[test]
fn an_unprivileged_user_records_the_readable_sources() {
    let dir = tempdir().unwrap();
    // The first process belongs to root.
    let record = [
        "record",
        "--out",
        "run",
        "--duration",
        "200ms",
        "--interval",
        "50ms",
        "--process",
        "init=1",
    ];
    let output = as_nobody(dir.path(), &record);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_manifest(&dir.path().join("run"));

    let listed = as_nobody(dir.path(), &["probes", "--format", "json", "--process", "init=1"]);
    assert!(listed.status.success(), "{}", stderr(&listed));
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let statuses: BTreeMap<_, _> = listed
        .iter()
        .map(|probe| {
            (
                probe["name"].as_str().unwrap(),
                (probe["status"].as_str().unwrap(), probe["reason"].as_str()),
            )
        })
        .collect();
    for name in [
        "cpu",
        "interrupts",
        "softirqs",
        "disk",
        "nic",
        "tcp",
        "memory",
        "vmstat",
        "process",
        "threads",
        "sockets",
        "cgroup",
    ] {
        assert_eq!(statuses[name], ("running", None), "{name}");
        assert!(
            dir.path().join(format!("run/server/{name}.parquet")).exists(),
            "{name}"
        );
    }
    for (name, (status, reason)) in &statuses {
        // Only root can load eBPF programs.
        assert!(!name.starts_with("ebpf") || *status != "running", "{name}");
        if *status == "unavailable" {
            let reason = reason.unwrap();
            assert!(
                reason.contains(": ") && reason.lines().count() == 1,
                "{name}: {reason}"
            );
        }
    }
}
