//! Tests the recorder without privileges: it records the readable sources; the other probes are
//! unavailable with a reason.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::prelude::*;
use serde_json::Value;
use tempfile::tempdir;

/// Runs a copy of the program as `nobody`, who may have no access to the build directory.
fn as_nobody(dir: &Path, words: &str) -> String {
    let mut command = Command::new("setpriv");
    command.args("--reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all".split(' '));
    command.arg(dir.join("loadprint-collect")).args(words.split(' '));
    succeeded(&command.current_dir(dir).output().unwrap())
}

#[test]
fn an_unprivileged_user_records_the_readable_sources() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    fs::set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
    copy(PROGRAM, &dir.join("loadprint-collect"));
    // The first process belongs to root.
    as_nobody(
        dir,
        "record --out run --duration 200ms --interval 50ms --process init=1",
    );
    assert_manifest(&dir.join("run"));

    let listed = as_nobody(dir, "probes --format json --process init=1");
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let names =
        "cpu interrupts softirqs disk nic tcp memory vmstat process threads sockets cgroup".split(' ');
    for name in names {
        let probe = listed.iter().find(|probe| probe["name"] == name).unwrap();
        assert!(
            probe["status"] == "running" && probe["reason"].is_null(),
            "{probe}"
        );
        assert!(dir.join(format!("run/server/{name}.parquet")).exists(), "{name}");
    }
    for probe in &listed {
        // Only root can load eBPF programs.
        let is_ebpf = probe["name"].as_str().unwrap().starts_with("ebpf");
        assert!(!is_ebpf || probe["status"] != "running", "{probe}");
        if probe["status"] == "unavailable" {
            let reason = probe["reason"].as_str().unwrap();
            assert!(reason.contains(": ") && reason.lines().count() == 1, "{probe}");
        }
    }
}
