//! Reads block devices and network interfaces from sysfs, and which CPUs serve their interrupts.

use std::collections::BTreeSet;

use loadprint_cpulist::interrupts::of_device;
use loadprint_probes::Host;
use serde_json::Value;
use serde_json::json;

use super::chosen;
use super::line;
use super::names;
use super::number;

/// Whole block devices, without RAM and loop devices of size 0.
pub fn devices(host: &Host) -> Vec<Value> {
    let in_use = |name: &String| {
        let memory = name.starts_with("loop") || name.starts_with("ram") || name.starts_with("zram");
        !memory || number(&host.sys(&format!("block/{name}/size"))).is_some_and(|size| size > 0)
    };
    names(&host.sys("block"))
        .iter()
        .filter(|name| in_use(name))
        .map(|name| device(host, name))
        .collect()
}

fn device(host: &Host, name: &str) -> Value {
    let path = |file: &str| host.sys(&format!("block/{name}/{file}"));
    json!({
        "name": name,
        "model": line(&path("device/model")),
        "firmware": line(&path("device/firmware_rev")).or_else(|| line(&path("device/rev"))),
        "nvme": name.starts_with("nvme"),
        "rotational": number(&path("queue/rotational")).map(|value| value != 0),
        "scheduler": chosen(line(&path("queue/scheduler"))),
        "write_cache": line(&path("queue/write_cache")),
        "fua": number(&path("queue/fua")).map(|value| value != 0),
        // sysfs counts in units of 512 bytes for every block size.
        "size_bytes": number(&path("size")).map(|sectors| sectors * 512),
        "logical_block_bytes": number(&path("queue/logical_block_size")),
        "nr_requests": number(&path("queue/nr_requests")),
        "iostats": number(&path("queue/iostats")).map(|value| value != 0),
        "slaves": names(&path("slaves")),
    })
}

/// Network interfaces of this network namespace.
pub fn nics(host: &Host) -> Vec<Value> {
    let nic = |name: &String| {
        let path = |file: &str| host.sys(&format!("class/net/{name}/{file}"));
        let driver = std::fs::read_link(path("device/driver")).ok();
        json!({
            "name": name,
            "driver": driver.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned())),
            // Interfaces that are down and virtual ones return an error or -1.
            "speed_mbit": number(&path("speed")).filter(|speed| *speed > 0),
            "mtu": number(&path("mtu")),
            "state": line(&path("operstate")),
            "queues": names(&path("queues")).len(),
            "numa_node": number(&path("device/numa_node")),
        })
    };
    names(&host.sys("class/net")).iter().map(nic).collect()
}

/// The list `interrupts`: the disks of `storage` except the journal's, and the network interfaces that are
/// not down. Devices without interrupts are omitted.
pub fn interrupts(host: &Host, storage: &[Value]) -> Vec<Value> {
    let disks: BTreeSet<&str> = storage
        .iter()
        .filter(|entry| entry["role"] != "journal")
        .filter_map(|entry| entry["disks"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let nics = names(&host.sys("class/net"));
    let nics = nics
        .iter()
        .filter(|name| line(&host.sys(&format!("class/net/{name}/operstate"))).as_deref() != Some("down"));
    let disks = disks
        .into_iter()
        .map(|disk| device_interrupts(host, "disk", disk));
    disks
        .chain(nics.map(|nic| device_interrupts(host, "nic", nic)))
        .flatten()
        .collect()
}

fn device_interrupts(host: &Host, kind: &str, name: &str) -> Option<Value> {
    let interrupts = of_device(&host.proc(""), &host.sys(""), name).filter(|found| !found.is_empty())?;
    let irqs: Vec<Value> = interrupts
        .into_iter()
        .map(|each| json!({"irq": each.number, "name": each.name, "cpus": each.cpus}))
        .collect();
    Some(json!({"device": name, "kind": kind, "irqs": irqs}))
}
