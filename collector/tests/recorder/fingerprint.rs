//! Tests `fingerprint` on fixtures and on this host.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::prelude::*;
use loadprint_cpulist::CpuSet;
use serde_json::Value;
use serde_json::json;
use tempfile::tempdir;

fn fingerprint(words: &str) -> Value {
    serde_json::from_str(&succeed(&format!("fingerprint {words}"))).unwrap()
}

fn roots(proc: &Path, sys: &Path) -> String {
    format!("--proc-root {} --sys-root {}", proc.display(), sys.display())
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

#[test]
fn a_host_is_read_from_the_given_roots() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/host/t0");
    let (proc, sys) = (host.join("proc"), host.join("sys"));
    let facts = fingerprint(&format!(
        "{} --root /nowhere --cpuset server=0,2",
        roots(&proc, &sys)
    ));
    let source = text(sys.join("devices/system/clocksource/clocksource0/current_clocksource"));
    assert_eq!(facts["clocksource"], json!(source));
    assert_eq!(facts["cpusets"], json!({"server": [0, 2]}));
    assert_eq!(facts["cpus"]["threads_per_core"], json!(2));
    assert_eq!(facts["root"]["filesystem"], json!("ext4"));
    // Facts that the host does not have are null, and without a recorder there is no journal.
    for absent in [
        "config_hz",
        "boost",
        "clocksources",
        "limits",
        "machine_id",
        "product_uuid",
    ] {
        assert_eq!(facts[absent], Value::Null, "{absent}");
    }
    assert_eq!(facts["storage"], json!([]));
    assert_eq!(facts["interrupts"], json!([]));
    assert_eq!(facts["virtualisation"]["instance_id"], Value::Null);
}

/// The object `cpus` of a host with these files in sysfs, and this `/proc/cpuinfo`.
fn cpus_of(files: &[(String, &str)], cpuinfo: &str) -> Value {
    let root = tempdir().unwrap();
    let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
    let cpuinfo = [(proc.join("cpuinfo"), cpuinfo)];
    let files = files
        .iter()
        .map(|(name, text)| (sys.join("devices/system/cpu").join(name), *text));
    for (path, text) in files.chain(cpuinfo) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fingerprint(&roots(&proc, &sys))["cpus"].take()
}

/// The files of CPUs 0, 1 …: package, number of the core, and the threads of the core.
fn topology(cpus: &[(&'static str, &'static str, &'static str)]) -> Vec<(String, &'static str)> {
    let online = ["", "0", "0-1", "0-2", "0-3"][cpus.len()];
    let mut files = vec![("online".to_owned(), online)];
    for (cpu, (package, core, threads)) in cpus.iter().enumerate() {
        let file = |name: &str| format!("cpu{cpu}/topology/{name}");
        files.push((file("physical_package_id"), package));
        files.push((file("core_id"), core));
        files.push((file("thread_siblings_list"), threads));
    }
    files
}

#[test]
fn a_core_is_the_threads_that_the_kernel_reports() {
    let counts = |cpus: &[(&'static str, &'static str, &'static str)]| {
        let facts = cpus_of(&topology(cpus), "");
        ["sockets", "cores", "threads_per_core"].map(|name| facts[name].as_u64())
    };
    // Two dies of a package have the same numbers.
    let dies = [("0", "0", "0"), ("0", "1", "1"), ("0", "0", "2"), ("0", "1", "3")];
    assert_eq!(counts(&dies), [Some(1), Some(4), Some(1)]);
    // A core of two threads and one of one, as of hybrid processors: the larger number, as lscpu prints.
    let hybrid = [("0", "0", "0-1"), ("0", "0", "0-1"), ("0", "8", "2")];
    assert_eq!(counts(&hybrid), [Some(1), Some(2), Some(2)]);
    // No firmware table has numbers for packages: they are unknown, the cores are not.
    let unnumbered = [("-1", "0", "0"), ("-1", "0", "1")];
    assert_eq!(counts(&unnumbered), [None, Some(2), Some(1)]);
    assert_eq!(counts(&[]), [None; 3]);
}

#[test]
fn a_guest_is_recognised_where_processors_have_no_flag_for_it() {
    let guest = |cpuinfo: &str, vendor: &str, product: &str| {
        let root = tempdir().unwrap();
        let (proc, dmi) = (root.path().join("proc"), root.path().join("sys/class/dmi/id"));
        fs::create_dir_all(&proc).unwrap();
        fs::create_dir_all(&dmi).unwrap();
        fs::write(proc.join("cpuinfo"), cpuinfo).unwrap();
        fs::write(dmi.join("sys_vendor"), vendor).unwrap();
        fs::write(dmi.join("product_name"), product).unwrap();
        fingerprint(&roots(&proc, &root.path().join("sys")))["virtualisation"]["guest"].as_bool()
    };
    let arm = "CPU implementer : 0x41\n";
    assert_eq!(guest(arm, "QEMU", "KVM Virtual Machine"), Some(true));
    assert_eq!(guest(arm, "Amazon EC2", "m6g.large"), Some(true));
    assert_eq!(guest(arm, "Amazon EC2", "m6g.metal"), None);
    assert_eq!(guest(arm, "Ampere", "Mt. Jade"), None);
    assert_eq!(guest("flags : fpu\n", "QEMU", ""), Some(false));
}

#[test]
fn the_machine_id_is_stable_and_hashed() {
    let root = tempdir().unwrap();
    let id = "0123456789abcdef0123456789abcdef";
    fs::create_dir(root.path().join("etc")).unwrap();
    fs::write(root.path().join("etc/machine-id"), format!("{id}\n")).unwrap();
    let read = || fingerprint(&format!("--root {}", root.path().display()))["machine_id"].clone();
    let hashed = read();
    assert_eq!(hashed, read());
    assert!(hashed != id && hashed.as_str().unwrap().len() == id.len());
}

#[test]
fn storage_has_the_file_system_of_the_data_directory() {
    let data = tempdir().unwrap();
    let facts = fingerprint(&format!("--data-dir {}", data.path().display()));
    let roles = facts["storage"].as_array().unwrap().iter();
    let roles: Vec<_> = roles.map(|entry| &entry["role"]).collect();
    assert_eq!(roles, ["data", "redo", "binlog"]);
    // The options of the mount, as the kernel prints them.
    let options = facts["storage"][0]["options"].as_str().unwrap();
    let mounts = text("/proc/self/mountinfo");
    let has_options = |line: &str| options.split(',').all(|option| line.contains(option));
    assert!(mounts.lines().any(has_options));
    assert!(facts["kernel"]["release"].is_string());
    if Path::new("/proc/config.gz").exists() {
        let hz = facts["config_hz"].as_u64();
        assert!(hz.is_some_and(|hz| (24..=1000).contains(&hz)));
        assert!(["y", "n"].contains(&facts["cpu_accounting"]["irq_time"].as_str().unwrap()));
    }
}

/// A host with the disk of the data directory, an interface that is up and one that is down.
fn host_with_interrupts(root: &Path, data: &Path) {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let link = |target: &str, path: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(root.join(target), path).unwrap();
    };
    for (slot, device, irqs) in [
        (1, "block/vdz", ["30 virtio0-config", "31 virtio0-req.0"]),
        (2, "net/eth8", ["40 eth8-rx-0", "41 eth8-tx-0"]),
        (3, "net/eth9", ["50 eth9-rx-0", "51 eth9-tx-0"]),
    ] {
        let function = format!("sys/devices/pci0000:00/0000:00:0{slot}.0");
        fs::create_dir_all(root.join(&function).join(device)).unwrap();
        link(&format!("{function}/{device}"), &format!("sys/class/{device}"));
        for (irq, handler) in irqs.iter().filter_map(|irq| irq.split_once(' ')) {
            write(&format!("{function}/msi_irqs/{irq}"), "msix\n");
            write(&format!("sys/kernel/irq/{irq}/actions"), &format!("{handler}\n"));
            write(&format!("proc/irq/{irq}/smp_affinity_list"), "0-3\n");
        }
    }
    write("proc/irq/31/effective_affinity_list", "2\n");
    write("sys/class/net/eth8/operstate", "up\n");
    write("sys/class/net/eth9/operstate", "down\n");
    let number = fs::metadata(data).unwrap().dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    link("sys/class/block/vdz", &format!("sys/dev/block/{major}:{minor}"));
}

#[test]
fn interrupts_of_the_data_disk_and_the_interfaces_have_their_cpus() {
    let root = tempdir().unwrap();
    let data = root.path().join("data");
    fs::create_dir(&data).unwrap();
    host_with_interrupts(root.path(), &data);
    let roots = roots(&root.path().join("proc"), &root.path().join("sys"));
    let nic = json!({"device": "eth8", "kind": "nic", "irqs": [
        {"irq": 40, "name": "eth8-rx-0", "cpus": "0-3"}, {"irq": 41, "name": "eth8-tx-0", "cpus": "0-3"}]});
    let disk = json!({"device": "vdz", "kind": "disk", "irqs": [
        {"irq": 30, "name": "virtio0-config", "cpus": "0-3"}, {"irq": 31, "name": "virtio0-req.0", "cpus": "2"}]});
    let facts = fingerprint(&format!("{roots} --data-dir {}", data.display()));
    assert_eq!(facts["interrupts"], json!([disk, nic]));
    assert_eq!(fingerprint(&roots)["interrupts"], json!([nic]));
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn interrupts_of_this_machine_have_the_names_and_cpus_that_the_kernel_reports() {
    let data = tempdir().unwrap();
    let facts = fingerprint(&format!("--data-dir {}", data.path().display()));
    let devices = facts["interrupts"].as_array().unwrap().iter();
    for interrupt in devices.flat_map(|device| device["irqs"].as_array().unwrap()) {
        let number = &interrupt["irq"];
        assert_eq!(
            interrupt["name"],
            text(format!("/sys/kernel/irq/{number}/actions"))
        );
        let allowed = text(format!("/proc/irq/{number}/smp_affinity_list"));
        let allowed: CpuSet = allowed.parse().unwrap();
        let serving: CpuSet = interrupt["cpus"].as_str().unwrap().parse().unwrap();
        assert!(!serving.is_empty(), "{interrupt}");
        // Another test may have moved it since.
        let overlaps = serving.cpus().any(|cpu| allowed.contains(cpu));
        assert!(overlaps || allowed.cpus().nth(1).is_none(), "{interrupt}");
    }
}
