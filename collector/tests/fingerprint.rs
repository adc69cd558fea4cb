//! `fingerprint` on the fake host and on the real one: what a recording keeps of a host, without a recording.
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
fn a_fake_host_is_read_from_its_own_roots() {
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
    let found = fingerprint(&[&roots[..], &["--cpuset", "server=0,2"]].concat());

    let text = |path: &Path| fs::read_to_string(path).unwrap().trim().to_owned();
    let source = text(&sys.join("devices/system/clocksource/clocksource0/current_clocksource"));
    assert_eq!(found["clocksource"], json!(source));
    assert_eq!(found["cpusets"], json!({"server": [0, 2]}));
    assert_eq!(found["cpus"]["threads_per_core"], json!(2));
    assert_eq!(found["root"]["filesystem"], json!("ext4"));
    // What this host does not tell is null, and no journal is named where nothing records.
    for absent in ["config_hz", "boost", "clocksources", "limits", "product_uuid"] {
        assert_eq!(found[absent], Value::Null, "{absent}");
    }
    assert_eq!(found["storage"], json!([]));
    // The machine's own id stays with it.
    let id = found["machine_id"].as_str().unwrap();
    assert_eq!((id.len(), id == "0123456789abcdef0123456789abcdef"), (32, false));
    assert_eq!(found["virtualisation"]["instance_id"], Value::Null);
}

#[test]
fn a_machine_keeps_its_id_and_does_not_tell_it() {
    let found = fingerprint(&[]);
    assert_eq!(found["machine_id"], fingerprint(&[])["machine_id"]);
    let own = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    assert_ne!(found["machine_id"].as_str(), Some(own.trim()));
}

#[test]
fn the_real_host_says_what_a_data_directory_lies_on() {
    let data = tempdir().unwrap();
    let found = fingerprint(&["--data-dir", data.path().to_str().unwrap()]);
    let roles: Vec<_> = found["storage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["role"])
        .collect();
    assert_eq!(roles, ["data", "redo", "binlog"]);
    // The kernel's own word for the mount that holds it.
    let told = found["storage"][0]["options"].as_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        mounts
            .lines()
            .any(|line| told.split(',').all(|option| line.contains(option)))
    );
    assert!(found["kernel"]["release"].is_string());
    if Path::new("/proc/config.gz").exists() {
        assert!(
            found["config_hz"]
                .as_u64()
                .is_some_and(|hz| (24..=1000).contains(&hz))
        );
        assert!(["y", "n"].contains(&found["cpu_accounting"]["irq_time"].as_str().unwrap()));
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
