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

/// The fields of `/proc/cpuinfo` that identify a model, by architecture (`arch/*/kernel`).
const MODEL: &[&[&str]] = &[
    &["CPU implementer", "CPU part", "CPU variant", "CPU revision"], // ARM
    &["model name"],                                                 // x86
];

/// The object `cpus`.
pub fn read(host: &Host) -> Value {
    let cpuinfo = line(&host.proc("cpuinfo")).unwrap_or_default();
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
        "model": model(&cpuinfo),
        "sockets": (!packages.is_empty() && !packages.contains(&None)).then_some(packages.len()),
        "cores": are_all_known.then_some(threads.len()),
        "threads_per_core": threads.values().max().filter(|_| are_all_known),
        "numa": nodes,
        "microcode": field(&cpuinfo, "microcode"),
        "online": list.len(),
        "list": list,
    })
}

/// The models of all CPUs, each once, such as `AMD EPYC 7R13` or `implementer 0x41, part 0xd0c, variant 0x3,
/// revision 1`. Processors with different cores have several.
fn model(cpuinfo: &str) -> Option<String> {
    let of_block = |names: &[&str], block: &str| {
        let known = names.iter().filter_map(|name| Some((*name, field(block, name)?)));
        let texts = known.map(|(name, value)| match names {
            [_] => value,
            _ => format!("{} {value}", name.trim_start_matches("CPU ")),
        });
        Some(texts.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
    };
    MODEL.iter().find_map(|names| {
        let mut models = vec![];
        for model in cpuinfo.split("\n\n").filter_map(|block| of_block(names, block)) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        (!models.is_empty()).then(|| models.join("; "))
    })
}

/// The value of a field of `/proc/cpuinfo`.
fn field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
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
        .map(|set| set.cpus().collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_names_its_model() {
        for (cpuinfo, expected) in [
            (
                "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n",
                "AMD EPYC",
            ),
            (
                "processor\t: 0\nFeatures\t: fp\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n\
                 CPU part\t: 0xd0c\nCPU revision\t: 1\n",
                "implementer 0x41, part 0xd0c, variant 0x3, revision 1",
            ),
            // Two kinds of cores; a kernel may also print a name, which is the same for all of them.
            (
                "processor : 0\nmodel name : ARMv8\nCPU implementer : 0x41\nCPU part : 0xd05\n\n\
                 processor : 1\nmodel name : ARMv8\nCPU implementer : 0x41\nCPU part : 0xd0a\n",
                "implementer 0x41, part 0xd05; implementer 0x41, part 0xd0a",
            ),
        ] {
            assert_eq!(model(cpuinfo).as_deref(), Some(expected), "{cpuinfo}");
        }
        assert_eq!(model("processor : 0\n"), None);
    }
}
