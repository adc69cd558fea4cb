//! Tests `fingerprint` on fixtures and on this host.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::collect;
use crate::common::stderr;
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
    assert_eq!(facts["interrupts"], json!([]));
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

/// A host with the disk of the data directory, an interface that is up and one that is down.
fn host_with_interrupts(root: &Path, data: &Path) {
    let sys = root.join("sys");
    let number = fs::metadata(data).unwrap().dev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    for (class, name, function, irqs) in [
        (
            "block",
            "vdz",
            "0000:00:01.0",
            [(30, "virtio0-config"), (31, "virtio0-req.0")],
        ),
        (
            "net",
            "eth8",
            "0000:00:02.0",
            [(40, "eth8-rx-0"), (41, "eth8-tx-0")],
        ),
        (
            "net",
            "eth9",
            "0000:00:03.0",
            [(50, "eth9-rx-0"), (51, "eth9-tx-0")],
        ),
    ] {
        let function = sys.join("devices/pci0000:00").join(function);
        let device = function.join(class).join(name);
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(sys.join("class").join(class)).unwrap();
        symlink(&device, sys.join("class").join(class).join(name)).unwrap();
        fs::create_dir_all(function.join("msi_irqs")).unwrap();
        for (irq, handler) in irqs {
            fs::write(function.join(format!("msi_irqs/{irq}")), "msix\n").unwrap();
            let (kernel, proc) = (
                sys.join(format!("kernel/irq/{irq}")),
                root.join(format!("proc/irq/{irq}")),
            );
            fs::create_dir_all(&kernel).unwrap();
            fs::create_dir_all(&proc).unwrap();
            fs::write(kernel.join("actions"), format!("{handler}\n")).unwrap();
            fs::write(proc.join("smp_affinity_list"), "0-3\n").unwrap();
        }
    }
    fs::write(root.join("proc/irq/31/effective_affinity_list"), "2\n").unwrap();
    fs::write(sys.join("class/net/eth8/operstate"), "up\n").unwrap();
    fs::write(sys.join("class/net/eth9/operstate"), "down\n").unwrap();
    fs::create_dir_all(sys.join("dev/block")).unwrap();
    symlink(sys.join("class/block/vdz"), sys.join("dev/block").join(number)).unwrap();
}

#[test]
fn interrupts_of_the_data_disk_and_the_interfaces_have_their_cpus() {
    let root = tempdir().unwrap();
    let data = root.path().join("data");
    fs::create_dir(&data).unwrap();
    host_with_interrupts(root.path(), &data);
    let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
    let roots = [
        "--proc-root",
        proc.to_str().unwrap(),
        "--sys-root",
        sys.to_str().unwrap(),
    ];
    let nic = json!({"device": "eth8", "kind": "nic", "irqs": [
        {"irq": 40, "name": "eth8-rx-0", "cpus": "0-3"}, {"irq": 41, "name": "eth8-tx-0", "cpus": "0-3"}]});
    let disk = json!({"device": "vdz", "kind": "disk", "irqs": [
        {"irq": 30, "name": "virtio0-config", "cpus": "0-3"}, {"irq": 31, "name": "virtio0-req.0", "cpus": "2"}]});
    let facts = fingerprint(&[&roots[..], &["--data-dir", data.to_str().unwrap()]].concat());
    assert_eq!(facts["interrupts"], json!([disk, nic]));
    assert_eq!(fingerprint(&roots)["interrupts"], json!([nic]));
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn interrupts_of_this_machine_have_the_names_and_cpus_that_the_kernel_reports() {
    let data = tempdir().unwrap();
    let facts = fingerprint(&["--data-dir", data.path().to_str().unwrap()]);
    for device in facts["interrupts"].as_array().unwrap() {
        for each in device["irqs"].as_array().unwrap() {
            let read = |path: String| fs::read_to_string(path).unwrap().trim().to_owned();
            let number = &each["irq"];
            assert_eq!(each["name"], read(format!("/sys/kernel/irq/{number}/actions")));
            let allowed = read(format!("/proc/irq/{number}/smp_affinity_list"));
            let allowed = loadprint_cpulist::parse(&allowed).unwrap();
            let serving = loadprint_cpulist::parse(each["cpus"].as_str().unwrap()).unwrap();
            assert!(!serving.is_empty(), "{each}");
            // Another test may have moved it since.
            assert!(
                serving.iter().any(|cpu| allowed.contains(cpu)) || allowed.len() == 1,
                "{each}"
            );
        }
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
