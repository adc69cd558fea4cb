"""Lists the rules of `loadprint check`.

Severities: `ruins`: the figures do not measure what they claim to measure. `distorts`: the figures
are those of a machine that is not used like this. `note`: relevant when machines are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadprint.commands.check import rules_host, rules_server, rules_storage
from loadprint.commands.check.subject import Subject

SEVERITIES = ("ruins", "distorts", "note")
Condition = Callable[[Subject], str | None]
Fix = Callable[[Subject], str]


@dataclass(frozen=True)
class Rule:
    """`condition` returns the evidence of the mistake, or None; it raises Unknown if a fact is missing.

    `fix` may contain {disk} and {mount}, those of the data, and {pool}, half of the memory. It is a function
    where it depends on the server: it names no variable that the server's version does not have.
    """

    id: str
    severity: str
    condition: Condition
    why: str
    fix: str | Fix


HOST = (
    Rule(
        "governor",
        "ruins",
        rules_host.governor,
        "the clock frequency follows the load, so that CPU time per operation depends on utilisation",
        "cpupower frequency-set -g performance",
    ),
    Rule(
        "boost",
        "note",
        rules_host.boost,
        "the clock depends on temperature and on how many cores are busy",
        "echo 0 > /sys/devices/system/cpu/cpufreq/boost, or 1 > …/intel_pstate/no_turbo",
    ),
    Rule(
        "clocksource",
        "ruins",
        rules_host.clocksource,
        "every statement reads the time, which is a system call or a device access with this clock source",
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    Rule(
        "few_cpus",
        "ruins",
        rules_host.few_cpus,
        "server and load share a core and compete for its time",
        "use a host with two cores or more, or two hosts (ansible/inventory/hosts.example.yml)",
    ),
    Rule(
        "little_room",
        "note",
        rules_host.few_spare_cpus,
        "server and load have one core each; the kernel, interrupts and the recorder share them",
        "use a larger host, or two hosts",
    ),
    Rule(
        "shared_cores",
        "ruins",
        rules_host.shared_cores,
        "server and load compete for CPU time; a busy thread sibling alone slows a core by a third",
        "give whole cores: --cpuset server=… load=… (placement in a campaign)",
    ),
    Rule(
        "cpu_quota",
        "ruins",
        rules_host.quota,
        "a control group throttles threads for tens of milliseconds when the quota is used up",
        "echo max > cpu.max of the group, or run outside of the container",
    ),
    Rule(
        "throttled",
        "ruins",
        rules_host.throttled,
        "the control group throttled the server in the measured window",
        "raise or remove cpu.max of its control group",
    ),
    Rule(
        "steal",
        "ruins",
        rules_host.steal,
        "the hypervisor ran other guests on these CPUs",
        "use dedicated CPUs, or another time of the day",
    ),
    Rule(
        "mitigations",
        "note",
        rules_host.mitigations,
        "system calls and context switches have another cost than on a host with all mitigations",
        "compare only with hosts that have the same boot parameters",
    ),
    Rule(
        "thp",
        "distorts",
        rules_host.huge_pages,
        "memory grows in steps of 2 MiB, and khugepaged stalls threads",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
    Rule(
        "swap",
        "distorts",
        rules_host.swap,
        "the kernel may write the buffer pool to disk in favour of its page cache",
        "swapoff -a, or sysctl vm.swappiness=1",
    ),
    Rule(
        "numa_balancing",
        "distorts",
        rules_host.numa_balancing,
        "the kernel moves pages between memory nodes during the measurement",
        "sysctl kernel.numa_balancing=0",
    ),
    Rule(
        "zone_reclaim",
        "distorts",
        rules_host.zone_reclaim,
        "the kernel reclaims pages of a full memory node although other nodes have free memory",
        "sysctl vm.zone_reclaim_mode=0",
    ),
    Rule(
        "ports",
        "distorts",
        rules_host.ports,
        "workloads that reconnect run out of ports, and connect() searches for free ones",
        "sysctl net.ipv4.ip_local_port_range='10000 65535' net.ipv4.tcp_tw_reuse=1",
    ),
    Rule(
        "time_wait",
        "ruins",
        rules_host.time_wait,
        "new connections fail, or wait for a port",
        "sysctl net.ipv4.ip_local_port_range='1024 65535' net.ipv4.tcp_tw_reuse=1, or a unix socket",
    ),
    Rule(
        "recorder_cpus",
        "distorts",
        rules_host.recorder_cpus,
        "the recorder's CPU time is counted as the server's",
        "start the recorder on the load's CPUs: taskset -c … loadprint-collect record …",
    ),
)


STORAGE = (
    Rule(
        "file_system",
        "ruins",
        rules_storage.file_system,
        "no disk of this host is measured",
        "put the data directory on ext4 or xfs of a local disk",
    ),
    Rule(
        "copy_on_write",
        "distorts",
        rules_storage.copy_on_write,
        "every written page moves, and the file system writes a log in addition",
        "put the data directory on ext4 or xfs, or report the file system with the results",
    ),
    Rule(
        "loop_device",
        "distorts",
        rules_storage.loop_device,
        "two file systems and a kernel thread are between the server and the disk",
        "put the data directory on a partition or a logical volume",
    ),
    Rule(
        "os_disk",
        "distorts",
        rules_storage.os_disk,
        "logs, packages and swap of the system share the disk's queue and its bandwidth",
        "put the data directory on a dedicated disk",
    ),
    Rule(
        "io_scheduler",
        "distorts",
        rules_storage.scheduler,
        "the kernel delays requests to sort them, which helps only rotating disks",
        "echo none > /sys/block/{disk}/queue/scheduler (mq-deadline for a spinning disk)",
    ),
    Rule(
        "iostats",
        "ruins",
        rules_storage.iostats,
        "the kernel does not count requests: every row of the disk is empty or wrong",
        "echo 1 > /sys/block/{disk}/queue/iostats",
    ),
    Rule(
        "write_cache",
        "note",
        rules_storage.write_cache,
        "the kernel does not pass flushes on: a count of 0 does not mean that MySQL requested none",
        "echo 'write back' > /sys/block/{disk}/queue/write_cache where the cache is volatile",
    ),
    Rule(
        "barriers",
        "ruins",
        rules_storage.barriers,
        "fsync returns before the data are durable, so that commits are faster than this disk allows",
        "mount -o remount,barrier=1 {mount}",
    ),
    Rule(
        "mount_sync",
        "ruins",
        rules_storage.mount_sync,
        "every write waits for the disk, even if the server did not request it",
        "mount -o remount,async {mount}",
    ),
    Rule(
        "atime",
        "distorts",
        rules_storage.atime,
        "every read of a file writes its inode",
        "mount -o remount,noatime {mount}",
    ),
    Rule(
        "journal",
        "distorts",
        rules_storage.journal,
        "the recorder writes to the disk that it measures",
        "loadprint-collect record --journal-dir /dev/shm …",
    ),
)


SERVER = (
    Rule(
        "buffer_pool_default",
        "ruins",
        rules_server.pool_default,
        "with the default of 128 MiB the benchmark measures the page cache or the disk",
        "SET GLOBAL innodb_buffer_pool_size = {pool}",
    ),
    Rule(
        "buffer_pool_large",
        "ruins",
        rules_server.pool_large,
        "with connections and page cache the host runs out of memory, and swaps or kills the server",
        "SET GLOBAL innodb_buffer_pool_size = {pool}",
    ),
    Rule(
        "data_ratio",
        "note",
        rules_server.data_ratio,
        "the data fit into the buffer pool: reads never reach storage",
        "to measure storage: more rows, or a smaller innodb_buffer_pool_size",
    ),
    Rule(
        "redo_small",
        "distorts",
        rules_server.redo_small,
        "continuous checkpoints limit a workload that writes",
        rules_server.redo_fix,
    ),
    Rule(
        "durability",
        "distorts",
        rules_server.durability,
        "commits do not wait for the disk: the server is faster than a durable one",
        "innodb_flush_log_at_trx_commit=1, sync_binlog=1, innodb_doublewrite=ON",
    ),
    Rule(
        "query_cache",
        "ruins",
        rules_server.query_cache_on,
        "the cache answers repeated SELECTs without the engine, and its mutex serialises all others",
        "SET GLOBAL query_cache_type = OFF; SET GLOBAL query_cache_size = 0",
    ),
    Rule(
        "page_cache",
        "distorts",
        rules_server.page_cache,
        "data are cached twice, and free memory determines the speed of reads",
        "innodb_flush_method=O_DIRECT",
    ),
    Rule(
        "io_capacity",
        "distorts",
        rules_server.io_capacity,
        "flushing is limited to the rate of a rotating disk, until the redo log forces it",
        # the other order is limited to the old maximum
        "SET GLOBAL innodb_io_capacity_max = 20000; SET GLOBAL innodb_io_capacity = 10000",
    ),
    Rule(
        "query_logs",
        "ruins",
        rules_server.query_logs,
        "every statement is written to a file or table",
        "SET GLOBAL general_log = OFF; SET GLOBAL long_query_time = 10",
    ),
    Rule(
        "performance_schema",
        "note",
        rules_server.performance_schema,
        "it uses some percent of CPU, more with more instruments: compare servers with equal settings",
        "performance_schema=OFF, or ON everywhere",
    ),
    Rule(
        "numa_interleave",
        "distorts",
        rules_server.interleave,
        "the buffer pool is on the node of its first user; other nodes access it through the interconnect",
        rules_server.interleave_fix,
    ),
    Rule(
        "max_connections",
        "ruins",
        rules_server.connections,
        "the server refuses some of the load's connections",
        "SET GLOBAL max_connections = twice the threads",
    ),
    Rule(
        "prepared_statements",
        "ruins",
        rules_server.prepared,
        "the server refuses statements beyond the limit with error 1461",
        "SET GLOBAL max_prepared_stmt_count = 1048576",
    ),
)


RULES: tuple[Rule, ...] = (*HOST, *STORAGE, *SERVER)
