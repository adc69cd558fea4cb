//! Maps columns to the metrics of node_exporter, so that its dashboards also work with this
//! recorder.
//!
//! Names, labels, types and excluded devices are those of node_exporter 1.5 to 1.10 (its files
//! `collector/*_linux.go`). A row without a rule is exported under its generated name.

use rustix::param::page_size;

use super::families::Kind;

/// Selects the rows of a table by their entity.
#[derive(Clone, Copy, Debug)]
pub enum RowFilter {
    /// All rows.
    All,
    /// Rows of exactly this entity.
    Only(&'static [&'static str]),
    /// Rows of one CPU; the row of all CPUs is not exported.
    OneCpu,
    /// Rows of one line (first entity column) and one CPU (second).
    OneCpuOfLine,
    /// Rows of the block devices that node_exporter includes; the others are not exported.
    Devices,
}

/// Exports one column as a metric of node_exporter.
#[derive(Debug)]
pub struct Rule {
    /// The column.
    pub column: &'static str,
    /// The name of the metric.
    pub name: &'static str,
    /// The help text; the column's help if empty.
    pub help: &'static str,
    /// Label names of the entity columns, in their order; an empty one is omitted.
    pub labels: &'static [&'static str],
    /// A constant label that distinguishes the columns of one metric.
    pub fixed: Option<(&'static str, &'static str)>,
    /// The rows.
    pub filter: RowFilter,
    /// True if the value is exported in the unit of its source.
    pub unscaled: bool,
}

const fn rule(
    column: &'static str,
    name: &'static str,
    labels: &'static [&'static str],
    filter: RowFilter,
) -> Rule {
    Rule {
        column,
        name,
        help: "",
        labels,
        fixed: None,
        filter,
        unscaled: false,
    }
}

const fn cpu(column: &'static str, mode: &'static str) -> Rule {
    let mut rule = rule(column, "node_cpu_seconds_total", &["cpu"], RowFilter::OneCpu);
    rule.help = "time of each CPU by mode; user and nice include guests";
    rule.fixed = Some(("mode", mode));
    rule
}

const fn guest(column: &'static str, mode: &'static str) -> Rule {
    let mut rule = rule(
        column,
        "node_cpu_guest_seconds_total",
        &["cpu"],
        RowFilter::OneCpu,
    );
    rule.help = "time of each CPU spent in guests";
    rule.fixed = Some(("mode", mode));
    rule
}

const fn host(column: &'static str, name: &'static str) -> Rule {
    rule(column, name, &[""], RowFilter::Only(&["all"]))
}

const fn disk(column: &'static str, name: &'static str) -> Rule {
    rule(column, name, &["device"], RowFilter::Devices)
}

const fn nic(column: &'static str, name: &'static str) -> Rule {
    rule(column, name, &["device"], RowFilter::All)
}

const fn pressure(name: &'static str, help: &'static str, entity: &'static [&'static str]) -> Rule {
    let mut rule = rule("total_us", name, &["", ""], RowFilter::Only(entity));
    rule.help = help;
    rule
}

const fn as_read(mut rule: Rule) -> Rule {
    rule.unscaled = true;
    rule
}

/// The rules by table.
static TABLES: &[(&str, &[Rule])] = &[
    ("cpu", CPU),
    (
        "interrupts",
        &[rule(
            "count",
            "node_interrupts_total",
            &["type", "cpu"],
            RowFilter::OneCpuOfLine,
        )],
    ),
    (
        "softirqs",
        &[rule(
            "count",
            "node_softirqs_functions_total",
            &["type", "cpu"],
            RowFilter::OneCpuOfLine,
        )],
    ),
    ("disk", DISK),
    ("nic", NIC),
    ("pressure", PRESSURE),
];

static CPU: &[Rule] = &[
    cpu("user", "user"),
    cpu("nice", "nice"),
    cpu("system", "system"),
    cpu("idle", "idle"),
    cpu("iowait", "iowait"),
    cpu("irq", "irq"),
    cpu("softirq", "softirq"),
    cpu("steal", "steal"),
    guest("guest", "user"),
    guest("guest_nice", "nice"),
    host("ctxt", "node_context_switches_total"),
    host("intr", "node_intr_total"),
    host("processes", "node_forks_total"),
    host("procs_running", "node_procs_running"),
    host("procs_blocked", "node_procs_blocked"),
];

static DISK: &[Rule] = &[
    disk("reads", "node_disk_reads_completed_total"),
    disk("read_merges", "node_disk_reads_merged_total"),
    disk("read_sectors", "node_disk_read_bytes_total"),
    disk("read_ms", "node_disk_read_time_seconds_total"),
    disk("writes", "node_disk_writes_completed_total"),
    disk("write_merges", "node_disk_writes_merged_total"),
    disk("write_sectors", "node_disk_written_bytes_total"),
    disk("write_ms", "node_disk_write_time_seconds_total"),
    disk("in_flight", "node_disk_io_now"),
    disk("io_ms", "node_disk_io_time_seconds_total"),
    disk("weighted_ms", "node_disk_io_time_weighted_seconds_total"),
    disk("discards", "node_disk_discards_completed_total"),
    disk("discard_merges", "node_disk_discards_merged_total"),
    as_read(disk("discard_sectors", "node_disk_discarded_sectors_total")),
    disk("discard_ms", "node_disk_discard_time_seconds_total"),
    disk("flushes", "node_disk_flush_requests_total"),
    disk("flush_ms", "node_disk_flush_requests_time_seconds_total"),
];

static NIC: &[Rule] = &[
    nic("rx_bytes", "node_network_receive_bytes_total"),
    nic("rx_packets", "node_network_receive_packets_total"),
    nic("rx_errors", "node_network_receive_errs_total"),
    nic("rx_drops", "node_network_receive_drop_total"),
    nic("rx_fifo", "node_network_receive_fifo_total"),
    nic("rx_frame", "node_network_receive_frame_total"),
    nic("rx_compressed", "node_network_receive_compressed_total"),
    nic("rx_multicast", "node_network_receive_multicast_total"),
    nic("tx_bytes", "node_network_transmit_bytes_total"),
    nic("tx_packets", "node_network_transmit_packets_total"),
    nic("tx_errors", "node_network_transmit_errs_total"),
    nic("tx_drops", "node_network_transmit_drop_total"),
    nic("tx_fifo", "node_network_transmit_fifo_total"),
    nic("tx_collisions", "node_network_transmit_colls_total"),
    nic("tx_carrier", "node_network_transmit_carrier_total"),
    nic("tx_compressed", "node_network_transmit_compressed_total"),
];

static PRESSURE: &[Rule] = &[
    pressure(
        "node_pressure_cpu_waiting_seconds_total",
        "some task waited for a CPU",
        &["cpu", "some"],
    ),
    pressure(
        "node_pressure_io_waiting_seconds_total",
        "some task waited for I/O",
        &["io", "some"],
    ),
    pressure(
        "node_pressure_io_stalled_seconds_total",
        "all tasks waited for I/O",
        &["io", "full"],
    ),
    pressure(
        "node_pressure_memory_waiting_seconds_total",
        "some task waited for memory",
        &["memory", "some"],
    ),
    pressure(
        "node_pressure_memory_stalled_seconds_total",
        "all tasks waited for memory",
        &["memory", "full"],
    ),
    pressure(
        "node_pressure_irq_stalled_seconds_total",
        "all tasks waited for interrupts",
        &["irq", "full"],
    ),
];

/// The rules of a column.
pub fn rules<'a>(probe: &str, column: &'a str) -> impl Iterator<Item = &'static Rule> + use<'a> {
    let rules = TABLES
        .iter()
        .find(|(name, _)| *name == probe)
        .map_or(&[][..], |(_, rules)| *rules);
    rules.iter().filter(move |rule| rule.column == column)
}

/// The result of a filter for one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The rule exports the row.
    Yes,
    /// The row is not exported.
    Drop,
    /// The rule does not apply.
    No,
}

impl RowFilter {
    /// The result for the row of this entity.
    pub fn matches<'a>(self, mut entity: impl Iterator<Item = &'a [u8]>) -> Match {
        let is_number = |part: Option<&[u8]>| part.is_some_and(|part| part.iter().all(u8::is_ascii_digit));
        let is_match = match self {
            Self::All => true,
            Self::Only(parts) => entity.eq(parts.iter().map(|part| part.as_bytes())),
            // PromQL computes the sum.
            Self::OneCpu if !is_number(entity.next()) => return Match::Drop,
            Self::OneCpu => true,
            Self::OneCpuOfLine => entity.next() != Some(b"all") && is_number(entity.next()),
            Self::Devices => {
                let device = entity.next().unwrap_or_default();
                return if is_excluded(device) {
                    Match::Drop
                } else {
                    Match::Yes
                };
            }
        };
        if is_match { Match::Yes } else { Match::No }
    }
}

/// node_exporter's default `--collector.diskstats.device-exclude`:
/// `^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`.
fn is_excluded(device: &[u8]) -> bool {
    let Some(last) = device.iter().rposition(|byte| !byte.is_ascii_digit()) else {
        return false;
    };
    let (stem, number) = device.split_at(last + 1);
    if number.is_empty() {
        return false;
    }
    let is_disk = |prefix: &[u8]| {
        stem.strip_prefix(prefix)
            .is_some_and(|letter| letter.len() == 1 && letter[0].is_ascii_lowercase())
    };
    let is_nvme_partition = || {
        let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let rest = stem
            .strip_prefix(b"nvme")
            .and_then(|rest| rest.strip_suffix(b"p"));
        let mut parts = rest.unwrap_or_default().split(|byte| *byte == b'n');
        parts.next().is_some_and(digits) && parts.next().is_some_and(digits) && parts.next().is_none()
    };
    matches!(stem, b"ram" | b"zram" | b"loop" | b"fd")
        || [b"hd".as_slice(), b"sd", b"vd", b"xvd"].into_iter().any(is_disk)
        || is_nvme_partition()
}

/// A metric of node_exporter for a key of an open key set.
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: Kind,
    /// The value is multiplied by this.
    pub factor: u64,
}

/// node_exporter's metric for `key`. The outer `None` means that node_exporter does not read this
/// source, the inner `None` that it does not export the key by default. Declared keys
/// (`is_declared`) are always exported.
pub fn metric(probe: &str, key: &str, is_declared: bool) -> Option<Option<Metric>> {
    let metric = |name: String, kind, factor| Some(Metric { name, kind, factor });
    match probe {
        // All lines are exported. Sizes are in kB on every kernel.
        "memory" => Some(match key.strip_prefix("HugePages_") {
            Some(_) => metric(format!("node_memory_{key}"), Kind::Gauge, 1),
            None => {
                let flat = key.replace('(', "_").replace(')', "");
                metric(format!("node_memory_{flat}_bytes"), Kind::Gauge, 1024)
            }
        }),
        "vmstat" => {
            let is_default = ["oom_kill", "pgpg", "pswp"]
                .iter()
                .any(|start| key.starts_with(start))
                || (key.starts_with("pg") && key.contains("fault"));
            let name = || metric(format!("node_vmstat_{key}"), Kind::Unknown, 1);
            Some((is_default || is_declared).then(name).flatten())
        }
        "tcp" => match key.strip_prefix("sockstat.") {
            Some(rest) => Some(metric(
                format!("node_sockstat_{}", rest.replace('.', "_")),
                Kind::Gauge,
                1,
            )),
            None => {
                let flat = key.replacen('.', "_", 1);
                let is_exported = is_declared || is_default_netstat(&flat);
                Some(
                    is_exported
                        .then(|| metric(format!("node_netstat_{flat}"), Kind::Unknown, 1))
                        .flatten(),
                )
            }
        },
        _ => None,
    }
}

/// A second metric that node_exporter exports from the same value: socket memory in bytes in
/// addition to pages.
pub fn second_metric(probe: &str, key: &str) -> Option<Metric> {
    let protocol = match (probe, key) {
        ("tcp", "sockstat.TCP.mem") => "TCP",
        ("tcp", "sockstat.UDP.mem") => "UDP",
        _ => return None,
    };
    Some(Metric {
        name: format!("node_sockstat_{protocol}_mem_bytes"),
        kind: Kind::Gauge,
        factor: page_size() as u64,
    })
}

/// True for node_exporter's default fields of `/proc/net/snmp` and `/proc/net/netstat`
/// (`--collector.netstat.fields`).
fn is_default_netstat(flat: &str) -> bool {
    let Some((protocol, field)) = flat.split_once('_') else {
        return false;
    };
    if matches!(field, "InErrors" | "InErrs") {
        return true;
    }
    match protocol {
        "Ip" => field == "Forwarding",
        "IpExt" => matches!(field, "InOctets" | "OutOctets"),
        "Icmp" => matches!(field, "InMsgs" | "OutMsgs"),
        "TcpExt" => {
            field.starts_with("Listen")
                || field.starts_with("Syncookies")
                || matches!(
                    field,
                    "TCPSynRetrans" | "TCPTimeouts" | "TCPOFOQueue" | "TCPRcvQDrop"
                )
        }
        "Tcp" => matches!(
            field,
            "ActiveOpens" | "InSegs" | "OutSegs" | "OutRsts" | "PassiveOpens" | "RetransSegs" | "CurrEstab"
        ),
        "Udp" => matches!(
            field,
            "InDatagrams" | "OutDatagrams" | "NoPorts" | "RcvbufErrors" | "SndbufErrors"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use loadprint_probes::PROBES;

    use super::*;

    #[test]
    fn every_rule_has_its_column() {
        for (probe, rules) in TABLES {
            let entry = PROBES.iter().find(|entry| entry.name == *probe).unwrap();
            for rule in *rules {
                let column = entry
                    .schema
                    .columns
                    .iter()
                    .find(|column| column.name == rule.column);
                assert!(column.is_some(), "{probe} has no column {}", rule.column);
                assert_eq!(rule.labels.len(), entry.schema.entity.len(), "{}", rule.name);
            }
        }
    }

    #[test]
    fn partitions_and_memory_devices_are_excluded() {
        for excluded in [
            "loop0",
            "ram1",
            "zram0",
            "fd0",
            "sda1",
            "xvdb3",
            "nvme0n1p2",
            "vda1",
        ] {
            assert!(is_excluded(excluded.as_bytes()), "{excluded}");
        }
        for device in [
            "sda", "nvme0n1", "dm-0", "md127", "mmcblk0", "sdaa1", "vda", "nvmep1",
        ] {
            assert!(!is_excluded(device.as_bytes()), "{device}");
        }
    }
}
