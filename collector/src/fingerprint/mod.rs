//! Reads `fingerprint.json`: the host's hardware, kernel and settings at the start. A fact that
//! cannot be read is null.

mod block;
mod cpus;
mod identity;
mod limits;
pub mod storage;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use flate2::read::GzDecoder;
use identity::Identity;
use loadprint_cpulist::small_files::line;
use loadprint_cpulist::small_files::names;
use loadprint_probes::Host;
use loadprint_probes::options::CpuSet;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// Kernel settings that affect the performance of a database.
const SYSCTL: &[&str] = &[
    "vm.swappiness",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.overcommit_memory",
    "vm.nr_hugepages",
    "vm.zone_reclaim_mode",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.perf_event_paranoid",
    "kernel.randomize_va_space",
    "kernel.watchdog",
    "kernel.task_delayacct",
    "fs.aio-max-nr",
    "fs.file-max",
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// Reads all facts. `root` contains `etc` and `run`; `journal_dir` is the recorder's, `data_dir`
/// that of the server under test.
pub fn read(
    host: &Host,
    root: &Path,
    cpusets: &[(String, CpuSet)],
    data_dir: Option<&Path>,
    journal_dir: Option<&Path>,
) -> Value {
    let kernel_config = kernel_config(host);
    let config = |name: &str| {
        kernel_config
            .as_ref()
            .and_then(|config| config.get(name).cloned())
    };
    // The file does not contain options that are off; without the file they are unknown.
    let accounting = |name: &str| {
        kernel_config
            .as_ref()
            .map(|config| config.get(name).map_or("n", String::as_str))
    };
    let sysctl: Map<String, Value> = SYSCTL
        .iter()
        .map(|name| ((*name).to_owned(), json!(line(&host.proc(&sysctl_path(name))))))
        .collect();
    let sets: Map<String, Value> = cpusets
        .iter()
        .map(|(role, set)| (role.clone(), set.cpus().collect()))
        .collect();
    let setting = |name: &str| chosen(line(&host.sys(&format!("kernel/mm/transparent_hugepage/{name}"))));
    let identity = identity::read(host, root);
    let storage = storage::roles(host, data_dir, journal_dir);
    json!({
        "host": host_name(host),
        "machine_id": identity.machine_id,
        "product_uuid": identity.product_uuid,
        "boot_id": line(&host.proc("sys/kernel/random/boot_id")),
        "kernel": {
            "release": line(&host.proc("sys/kernel/osrelease")),
            "version": line(&host.proc("sys/kernel/version")),
        },
        "cmdline": line(&host.proc("cmdline")),
        "user_hz": rustix::param::clock_ticks_per_second(),
        "config_hz": config("CONFIG_HZ").and_then(|hz| hz.parse::<u32>().ok()),
        "cpu_accounting": {
            "tick": accounting("CONFIG_TICK_CPU_ACCOUNTING"),
            "full": accounting("CONFIG_VIRT_CPU_ACCOUNTING_GEN"),
            "irq_time": accounting("CONFIG_IRQ_TIME_ACCOUNTING"),
        },
        "page_size": rustix::param::page_size(),
        "cpus": cpus::read(host),
        "mitigations": folder(&host.sys("devices/system/cpu/vulnerabilities")),
        "memory": memory(host),
        "sysctl": sysctl,
        "thp": {"enabled": setting("enabled"), "defrag": setting("defrag")},
        "governor": cpus::governors(host),
        "clocksource": line(&host.sys("devices/system/clocksource/clocksource0/current_clocksource")),
        "clocksources": line(&host.sys("devices/system/clocksource/clocksource0/available_clocksource")),
        "boost": boost(host),
        "limits": limits::read(host),
        "block_devices": block::devices(host),
        "interrupts": block::interrupts(host, &storage),
        "storage": storage,
        "root": storage::root(host),
        "nics": block::nics(host),
        "virtualisation": virtualisation(host, &identity),
        "cpusets": sets,
    })
}

/// The CPUs that the recorder may use, in the kernel's list format.
pub fn recorder(host: &Host) -> Value {
    let status = line(&host.proc("self/status")).unwrap_or_default();
    let cpus = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    json!({"cpus": cpus.map(str::trim)})
}

/// The host's name, or null.
pub fn host_name(host: &Host) -> Option<String> {
    line(&host.proc("sys/kernel/hostname"))
}

/// A file's text as a number.
fn number(path: &Path) -> Option<i64> {
    line(path)?.parse().ok()
}

/// The bracketed word of `always [madvise] never`.
fn chosen(text: Option<String>) -> Option<String> {
    let text = text?;
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(word, _)| word.to_owned());
    Some(inside.unwrap_or(text))
}

/// The files of a directory with their texts; `None` if the directory does not exist.
fn folder(path: &Path) -> Option<BTreeMap<String, Option<String>>> {
    let file = |name: String| (name.clone(), line(&path.join(name)));
    path.is_dir().then(|| names(path).into_iter().map(file).collect())
}

fn sysctl_path(name: &str) -> String {
    format!("sys/{}", name.replace('.', "/"))
}

fn memory(host: &Host) -> Value {
    let text = line(&host.proc("meminfo")).unwrap_or_default();
    let field = |name: &str| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse::<u64>().ok()
    };
    json!({"total_kB": field("MemTotal"), "swap_kB": field("SwapTotal"), "hugepage_kB": field("Hugepagesize")})
}

/// True if the CPUs may exceed their base frequency; `None` if the kernel does not control the
/// frequency.
fn boost(host: &Host) -> Option<bool> {
    let cpus = |name: &str| number(&host.sys(&format!("devices/system/cpu/{name}")));
    let turbo = cpus("intel_pstate/no_turbo").map(|off| off == 0);
    turbo.or_else(|| cpus("cpufreq/boost").map(|on| on != 0))
}

/// Build options of the running kernel: from `config.gz`, else from `/boot` (not with another
/// --proc-root).
fn kernel_config(host: &Host) -> Option<BTreeMap<String, String>> {
    let in_kernel = fs::File::open(host.proc("config.gz"))
        .and_then(|file| io::read_to_string(GzDecoder::new(file)))
        .ok();
    let in_boot = || {
        let is_this_host = host.proc("") == Path::new("/proc/");
        let release = line(&host.proc("sys/kernel/osrelease")).filter(|_| is_this_host)?;
        fs::read_to_string(format!("/boot/config-{release}")).ok()
    };
    let text = in_kernel.or_else(in_boot)?;
    let pair = |line: &str| {
        line.split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    Some(text.lines().filter_map(pair).collect())
}

/// Vendors and products in DMI that are of hypervisors only.
const HYPERVISORS: &[&str] = &[
    "QEMU",
    "KVM",
    "KubeVirt",
    "VMware",
    "VirtualBox",
    "Google Compute Engine",
];

fn virtualisation(host: &Host, identity: &Identity) -> Value {
    let dmi = |name: &str| line(&host.sys(&format!("class/dmi/id/{name}")));
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let cpuinfo = line(&host.proc("cpuinfo")).unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    // Only x86 has a flag for it. Elsewhere a guest may be recognised, but never excluded.
    let guest = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let is_virtual = |name: &String| HYPERVISORS.iter().any(|known| name.starts_with(known));
    let is_guest = host.proc("device-tree/hypervisor").exists()
        || [&vendor, &product].into_iter().flatten().any(is_virtual)
        || (vendor.as_deref() == Some("Amazon EC2")
            && product
                .as_ref()
                .is_some_and(|product| !product.contains(".metal")));
    json!({
        "guest": guest.or_else(|| is_guest.then_some(true)),
        "hypervisor": line(&host.sys("hypervisor/type")),
        "vendor": vendor,
        "product": product,
        "cloud": identity.cloud,
        "instance_id": identity.instance_id,
        "instance_type": identity.instance_type,
    })
}
