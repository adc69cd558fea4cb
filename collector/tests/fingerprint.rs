//! Tests `fingerprint` on fixtures and on this host.
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;

use std::fs;
use std::path::Path;

use common::collect;
use common::stderr;
use serde_json::Value;
use serde_json::json;
use tempfile::tempdir;

fn fingerprint(arguments: &[&str]) -> Value {
    let output = collect(&[&["fingerprint"], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_host_is_read_from_the_given_roots() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/host/t0");
    let (proc, sys) = (host.join("proc"), host.join("sys"));
    let root = tempdir().unwrap();
    fs::create_dir(root.path().join("etc")).unwrap();
    fs::write(
        root.path().join("etc/machine-id"),
        "0123456789abcdef0123456789abcdef\n",
    )
    .unwrap();
    let roots = [
        "--proc-root",
        proc.to_str().unwrap(),
        "--sys-root",
        sys.to_str().unwrap(),
        "--root",
        root.path().to_str().unwrap(),
    ];
    let facts = fingerprint(&[&roots[..], &["--cpuset", "server=0,2"]].concat());

    let text = |path: &Path| fs::read_to_string(path).unwrap().trim().to_owned();
    let source = text(&sys.join("devices/system/clocksource/clocksource0/current_clocksource"));
    assert_eq!(facts["clocksource"], json!(source));
    assert_eq!(facts["cpusets"], json!({"server": [0, 2]}));
    assert_eq!(facts["cpus"]["threads_per_core"], json!(2));
    assert_eq!(facts["root"]["filesystem"], json!("ext4"));
    // Facts that the host does not have are null, and without a recorder there is no journal.
    for absent in ["config_hz", "boost", "clocksources", "limits", "product_uuid"] {
        assert_eq!(facts[absent], Value::Null, "{absent}");
    }
    assert_eq!(facts["storage"], json!([]));
    // The machine ID is hashed.
    let id = facts["machine_id"].as_str().unwrap();
    assert_eq!((id.len(), id == "0123456789abcdef0123456789abcdef"), (32, false));
    assert_eq!(facts["virtualisation"]["instance_id"], Value::Null);
}

#[test]
fn the_machine_id_is_stable_and_hashed() {
    let facts = fingerprint(&[]);
    assert_eq!(facts["machine_id"], fingerprint(&[])["machine_id"]);
    let machine_id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    assert_ne!(facts["machine_id"].as_str(), Some(machine_id.trim()));
}

#[test]
fn storage_has_the_file_system_of_the_data_directory() {
    let data = tempdir().unwrap();
    let facts = fingerprint(&["--data-dir", data.path().to_str().unwrap()]);
    let roles: Vec<_> = facts["storage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["role"])
        .collect();
    assert_eq!(roles, ["data", "redo", "binlog"]);
    // The options of the mount, as the kernel prints them.
    let options = facts["storage"][0]["options"].as_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        mounts
            .lines()
            .any(|line| options.split(',').all(|option| line.contains(option)))
    );
    assert!(facts["kernel"]["release"].is_string());
    if Path::new("/proc/config.gz").exists() {
        assert!(
            facts["config_hz"]
                .as_u64()
                .is_some_and(|hz| (24..=1000).contains(&hz))
        );
        assert!(["y", "n"].contains(&facts["cpu_accounting"]["irq_time"].as_str().unwrap()));
    }
}

#[test]
fn a_wrong_option_is_one_line() {
    let output = collect(&["fingerprint", "--cpuset", "server=x"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).lines().count(), 1);
}
