//! Reads the CPUs that the canary may use, and their NUMA nodes, caches and frequencies.

use std::fs;
use std::path::Path;

use anyhow::Context;
use loadprint_probes::options::CpuSet;
use rustix::thread::CpuSet as Mask;
use rustix::thread::sched_getaffinity;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// The CPUs of `--cpus`, or all that this process may use.
///
/// # Errors
/// When this process may not use one of them.
pub fn usable(option: Option<&CpuSet>) -> anyhow::Result<Vec<u32>> {
    let allowed = sched_getaffinity(None).context("cannot read the CPUs of this process")?;
    let allowed: Vec<u32> = (0..Mask::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .map(|cpu| cpu as u32)
        .collect();
    let Some(requested) = option else {
        return Ok(allowed);
    };
    for cpu in requested.cpus() {
        anyhow::ensure!(
            allowed.contains(&cpu),
            "--cpus: CPU {cpu} does not exist, or this process may not use it (see taskset -cp $$)"
        );
    }
    Ok(requested.cpus().collect())
}

/// The first CPU of `cpus` on each NUMA node; the first of all if the kernel reports no nodes.
pub fn one_per_node(cpus: &[u32]) -> Vec<u32> {
    let nodes = fs::read_dir(NODES).into_iter().flatten().flatten();
    let lists = nodes.filter_map(|node| fs::read_to_string(node.path().join("cpulist")).ok());
    let sets = lists.filter_map(|list| list.trim().parse::<CpuSet>().ok());
    let mut first: Vec<u32> = sets
        .filter_map(|set| cpus.iter().copied().find(|&cpu| set.contains(cpu)))
        .collect();
    first.sort_unstable();
    if first.is_empty() {
        first.extend(cpus.first());
    }
    first
}

/// The size in bytes of a CPU's largest cache (Documentation/ABI/testing/sysfs-devices-system-cpu).
pub fn largest_cache(cpu: u32) -> Option<u64> {
    let caches = fs::read_dir(format!("{CPUS}/cpu{cpu}/cache")).ok()?;
    let size = |dir: &Path| {
        let text = fs::read_to_string(dir.join("size")).ok()?;
        Some(text.trim().strip_suffix('K')?.parse::<u64>().ok()? << 10)
    };
    caches.flatten().filter_map(|cache| size(&cache.path())).max()
}

/// The CPU's current frequency, from cpufreq.
pub fn mhz(cpu: u32) -> Option<f64> {
    let khz = fs::read_to_string(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq")).ok()?;
    Some(khz.trim().parse::<f64>().ok()? / 1e3)
}
