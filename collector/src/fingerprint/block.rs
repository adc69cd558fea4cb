//! Reads block devices and network interfaces from sysfs.

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
