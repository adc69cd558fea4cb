//! Tests the memory nodes of a process and the interrupts of devices, on this machine.

use std::fs;
use std::process::Command;

use crate::prelude::*;
use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn bound_memory_is_on_its_node_and_the_reading_outlives_the_process() {
    let supervisor = Supervisor::start();
    // head stores 20 MB, because it must know the last byte.
    let script = "cat /proc/self/numa_maps; head -c 20000000 /dev/zero | tail -c 19000000 | { read -r x; sleep 1000; }";
    supervisor.run_script("bound", &["--memory-nodes", "0"], &format!("({script}) & wait"));
    let placement = until("a reading with the children's memory", || {
        let report = supervisor.ask("wait", &["bound", "--for", "0s"]).unwrap();
        let on_node = report["placement"]["memory"]["nodes"]["0"].as_u64()?;
        (on_node > 18_000).then(|| report["placement"].clone())
    });
    assert_eq!(placement["memory"]["bound"], "0");
    assert_eq!(placement["memory"]["nodes"].as_object().unwrap().len(), 1);
    assert_eq!(placement["outside_allowed"], 0);
    // The policy that the kernel reports for every mapping is inherited by the children.
    let maps = supervisor.output("bound");
    assert!(maps.lines().all(|line| line.contains(" bind:0")), "{maps}");
    let report = supervisor.ask("stop", &["bound"]).unwrap();
    assert!(
        report["placement"]["memory"]["nodes"]["0"].as_u64() > Some(18_000),
        "{report}"
    );
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn stop_reads_the_memory_before_it_stops() {
    let supervisor = Supervisor::start();
    // Stopped at once: usually before the first sample.
    supervisor.run_script("brief", &["--memory-nodes", "0"], "echo $$; exec sleep 1000");
    supervisor.printed_pid("brief");
    let report = supervisor.ask("stop", &["brief"]).unwrap();
    let memory = &report["placement"]["memory"];
    assert!(memory["nodes"]["0"].as_u64() > Some(0), "{report}");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn unbound_memory_is_read_on_hosts_with_several_nodes() {
    let supervisor = Supervisor::start();
    supervisor.run_script("pinned", &["--cpus", "0"], "echo $$; exec sleep 1000");
    supervisor.printed_pid("pinned");
    let report = supervisor.ask("stop", &["pinned"]).unwrap();
    let nodes = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap();
    match nodes.trim() {
        "0" => assert_eq!(report["placement"].get("memory"), None, "{report}"),
        _ => assert_eq!(report["placement"]["memory"]["bound"], Value::Null, "{report}"),
    }
}

/// The affinity of every interrupt of this machine.
fn affinities() -> Vec<(String, String)> {
    let mut all: Vec<_> = fs::read_dir("/proc/irq")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let cpus = fs::read_to_string(entry.path().join("smp_affinity_list")).ok()?;
            Some((
                entry.file_name().to_string_lossy().into_owned(),
                cpus.trim().to_owned(),
            ))
        })
        .collect();
    all.sort();
    all
}

/// The network interfaces that are not virtual.
fn interfaces() -> Vec<String> {
    fs::read_dir("/sys/class/net")
        .unwrap()
        .flatten()
        .filter(|entry| {
            !fs::read_link(entry.path())
                .unwrap()
                .to_string_lossy()
                .contains("virtual")
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// One test: the interrupts are those of the whole machine.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn interrupts_are_moved_and_return_however_the_supervisor_ends() {
    let before = affinities();
    let interfaces = interfaces();
    let nic = interfaces
        .first()
        .expect("a network interface that is not virtual");
    for end in ["end", "controller", "kill the daemon", "kill both"] {
        let mut controller = Command::new("sleep").arg("1000").spawn().unwrap();
        let controller_pid = controller.id().to_string();
        let supervisor = Supervisor::start_with(&["--controller-pid", &controller_pid, "--lease", "600s"]);
        let reply = supervisor.ask("irqs", &["--cpus", "0", nic]).unwrap();
        let moved = reply["moved"].as_array().unwrap();
        for entry in moved {
            let path = format!("/proc/irq/{}/smp_affinity_list", entry["irq"]);
            assert_eq!(fs::read_to_string(path).unwrap().trim(), "0", "{entry}");
        }
        assert!(!moved.is_empty() || reply["refused"] != json!([]), "{reply}");
        // Again: the first affinity remains the one to restore.
        supervisor.ask("irqs", &["--cpus", "0", nic]).unwrap();
        match end {
            "end" => drop(supervisor.ask("end", &[]).unwrap()),
            "controller" => controller.kill().unwrap(),
            "kill the daemon" => signal(supervisor.pid, Signal::KILL),
            _ => {
                stop(supervisor.guard);
                signal(supervisor.pid, Signal::KILL);
                signal(supervisor.guard, Signal::KILL);
                until_dead(supervisor.guard);
                assert_eq!(moved.is_empty(), affinities() == before);
                drop(Supervisor::start_in(supervisor.into_scratch(), &[]));
                assert_eq!(affinities(), before, "after: {end}");
                controller.kill().unwrap();
                controller.wait().unwrap();
                continue;
            }
        }
        controller.kill().ok();
        controller.wait().unwrap();
        assert_eq!(supervisor.ended()["left"], json!([]));
        assert_eq!(affinities(), before, "after: {end}");
    }
}
