//! Reads the CPUs from `/proc/cpuinfo` and `/sys/devices/system/cpu`: sockets, cores, threads,
//! NUMA, microcode, governor.

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
    let (mut packages, mut cores, mut list) = (BTreeSet::new(), BTreeSet::new(), vec![]);
    for cpu in online(host) {
        let topology = |name: &str| host.sys(&format!("devices/system/cpu/cpu{cpu}/topology/{name}"));
        let package = number(&topology("physical_package_id"));
        let core = number(&topology("core_id"));
        let siblings = line(&topology("thread_siblings_list"));
        packages.extend(package);
        cores.extend(package.zip(core));
        list.push(json!({"cpu": cpu, "package": package, "core": core, "siblings": siblings}));
    }
    let known = |count: usize| (count > 0).then_some(count);
    let nodes = names(&host.sys("devices/system/node"));
    let nodes: Vec<Value> = nodes
        .iter()
        .filter(|name| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok()))
        .map(|name| json!({"node": name, "cpus": line(&host.sys(&format!("devices/system/node/{name}/cpulist")))}))
        .collect();
    json!({
        "model": field("model name"),
        "sockets": known(packages.len()),
        "cores": known(cores.len()),
        "threads_per_core": known(cores.len()).map(|cores| list.len() / cores),
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
