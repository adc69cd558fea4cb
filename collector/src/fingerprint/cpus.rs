//! Reads the CPUs from `/proc/cpuinfo` and `/sys/devices/system/cpu`: sockets, cores, threads,
//! NUMA, microcode, governor.
//!
//! The kernel's list of the threads of a core identifies the core: `core_id` repeats on each die or
//! cluster of a package.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use loadprint_probes::Host;
use loadprint_probes::options::CpuSet;
use serde_json::Value;
use serde_json::json;

use super::line;
use super::names;
use super::number;

/// The object `cpus`.
pub fn read(host: &Host) -> Value {
    let cpuinfo = line(&host.proc("cpuinfo")).unwrap_or_default();
    let field = |name: &str| {
        let value = cpuinfo
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        value.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let (mut packages, mut threads, mut list) = (BTreeSet::new(), BTreeMap::new(), vec![]);
    for cpu in online(host) {
        let topology = |name: &str| host.sys(&format!("devices/system/cpu/cpu{cpu}/topology/{name}"));
        // -1 where the architecture or the firmware does not number them.
        let known = |name: &str| number(&topology(name)).filter(|number| *number >= 0);
        let (package, core) = (known("physical_package_id"), known("core_id"));
        let siblings = line(&topology("thread_siblings_list")).or_else(|| line(&topology("core_cpus_list")));
        packages.insert(package);
        *threads.entry(siblings.clone()).or_insert(0_usize) += 1;
        list.push(json!({"cpu": cpu, "package": package, "core": core, "siblings": siblings}));
    }
    let are_all_known = !threads.is_empty() && !threads.contains_key(&None);
    let nodes = names(&host.sys("devices/system/node"));
    let nodes: Vec<Value> = nodes
        .iter()
        .filter(|name| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok()))
        .map(|name| json!({"node": name, "cpus": line(&host.sys(&format!("devices/system/node/{name}/cpulist")))}))
        .collect();
    json!({
        "model": field("model name"),
        "sockets": (!packages.is_empty() && !packages.contains(&None)).then_some(packages.len()),
        "cores": are_all_known.then_some(threads.len()),
        "threads_per_core": threads.values().max().filter(|_| are_all_known),
        "numa": nodes,
        "microcode": field("microcode"),
        "online": list.len(),
        "list": list,
    })
}

/// The frequency governors in use; `None` if the kernel does not control the frequency.
pub fn governors(host: &Host) -> Option<BTreeSet<String>> {
    let path = |cpu| host.sys(&format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    let governors: BTreeSet<_> = online(host)
        .into_iter()
        .filter_map(|cpu| line(&path(cpu)))
        .collect();
    (!governors.is_empty()).then_some(governors)
}

fn online(host: &Host) -> Vec<u32> {
    let list = line(&host.sys("devices/system/cpu/online")).unwrap_or_default();
    list.parse::<CpuSet>()
        .map(|set| set.cpus().to_vec())
        .unwrap_or_default()
}
