//! Reads which CPUs serve the interrupts of the server's disks and of the network interfaces.

use std::collections::BTreeSet;

use loadprint_cpulist::interrupts::of_device;
use loadprint_probes::Host;
use serde_json::Value;
use serde_json::json;

use super::line;
use super::names;

/// The list `interrupts`: the disks of `storage` except the journal's, and the network interfaces that are
/// not down. Devices without interrupts are omitted.
pub fn devices(host: &Host, storage: &[Value]) -> Vec<Value> {
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
    let disks = disks.into_iter().map(|disk| device(host, "disk", disk));
    disks
        .chain(nics.map(|nic| device(host, "nic", nic)))
        .flatten()
        .collect()
}

fn device(host: &Host, kind: &str, name: &str) -> Option<Value> {
    let interrupts = of_device(&host.proc(""), &host.sys(""), name).filter(|found| !found.is_empty())?;
    let irqs: Vec<Value> = interrupts
        .into_iter()
        .map(|each| json!({"irq": each.number, "name": each.name, "cpus": each.cpus}))
        .collect();
    Some(json!({"device": name, "kind": kind, "irqs": irqs}))
}
