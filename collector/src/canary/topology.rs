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

/// The CPU's current frequency, from cpufreq, else from `/proc/cpuinfo`, which is often constant in
/// guests.
pub fn mhz(cpu: u32) -> Option<f64> {
    let khz = fs::read_to_string(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq"));
    if let Some(khz) = khz.ok().and_then(|text| text.trim().parse::<f64>().ok()) {
        return Some(khz / 1e3);
    }
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    cpuinfo_mhz(&info, cpu)
}

/// Finds `cpu MHz` in the block of `processor : CPU`.
fn cpuinfo_mhz(info: &str, cpu: u32) -> Option<f64> {
    let lines = info.lines().filter_map(|line| line.split_once(':'));
    let mut fields = lines.map(|(name, value)| (name.trim(), value.trim()));
    fields.find(|field| *field == ("processor", &cpu.to_string()))?;
    let mut block = fields.take_while(|(name, _)| *name != "processor");
    block.find(|(name, _)| *name == "cpu MHz")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frequency_is_that_of_the_processor() {
        let info = "processor\t: 0\ncpu MHz\t\t: 2600.000\n\nprocessor\t: 10\nmodel name\t: x\ncpu MHz\t\t: 3100.5\n";
        assert_eq!(cpuinfo_mhz(info, 10), Some(3100.5));
        assert_eq!(cpuinfo_mhz(info, 1), None);
        // ARM prints no frequency.
        assert_eq!(
            cpuinfo_mhz(
                "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\ncpu MHz : 1\n",
                0
            ),
            None
        );
    }
}
