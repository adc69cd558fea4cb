"""The table of rules: each looks at a subject and gives the evidence of a mistake, or nothing.

`ruins`: the figures do not say what they seem to say. `distorts`: they do, of a machine that nobody runs.
`note`: a reader who compares with other machines should know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadprint.commands.check import rules_host, rules_server, rules_storage
from loadprint.commands.check.subject import Subject

SEVERITIES = ("ruins", "distorts", "note")
Look = Callable[[Subject], str | None]


@dataclass(frozen=True)
class Rule:
    """`look` returns the evidence of the mistake, None where all is well, and raises Unknown.

    In `mend`, {disk}, {mount} and {pool} stand for the disk and mount under the data, and a size that fits.
    """

    id: str
    severity: str
    look: Look
    why: str
    mend: str


HOST = (
    Rule(
        "governor",
        "ruins",
        rules_host.governor,
        "the clock follows the load, so that CPU time per operation depends on how busy the machine was",
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
        "reading the time becomes a system call or a device access, in every statement",
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    Rule(
        "few_cpus",
        "ruins",
        rules_host.few_cpus,
        "server and load share a core: each takes the other's time",
        "use a host with two cores or more, or two hosts (ansible/inventory/hosts.example.yml)",
    ),
    Rule(
        "little_room",
        "note",
        rules_host.little_room,
        "the load and the kernel's own work have no core to spare",
        "use a larger host, or two hosts",
    ),
    Rule(
        "shared_cores",
        "ruins",
        rules_host.shared_cores,
        "server and load take each other's time; a busy thread sibling alone slows a core by a third",
        "give whole cores: --cpuset server=… load=… (placement in a campaign)",
    ),
    Rule(
        "cpu_quota",
        "ruins",
        rules_host.quota,
        "a control group holds threads back for tens of milliseconds when the quota is used up",
        "echo max > cpu.max of the group, or run outside of the container",
    ),
    Rule(
        "throttled",
        "ruins",
        rules_host.throttled,
        "the server was held back by its quota in the window",
        "raise or remove cpu.max of its control group",
    ),
    Rule(
        "steal",
        "ruins",
        rules_host.steal,
        "the hypervisor ran others on these CPUs",
        "use dedicated CPUs, or another time of the day",
    ),
    Rule(
        "mitigations",
        "note",
        rules_host.mitigations,
        "every system call and switch costs another time than on a host with all of them",
        "compare only with hosts booted alike",
    ),
    Rule(
        "thp",
        "distorts",
        rules_host.huge_pages,
        "memory grows in steps of 2 MiB and khugepaged stops threads when it likes",
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
        "the kernel moves pages between memory nodes while it is measured",
        "sysctl kernel.numa_balancing=0",
    ),
    Rule(
        "zone_reclaim",
        "distorts",
        rules_host.zone_reclaim,
        "a full memory node is emptied although the others have room",
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
        "new connections fail or wait for a port",
        "sysctl net.ipv4.ip_local_port_range='1024 65535' net.ipv4.tcp_tw_reuse=1, or a unix socket",
    ),
    Rule(
        "recorder_cpus",
        "distorts",
        rules_host.recorder_cpus,
        "the recorder's own work counts as the server's",
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
        "every page that is written moves, and the file system has a log of its own",
        "put the data directory on ext4 or xfs, or say so when comparing",
    ),
    Rule(
        "loop_device",
        "distorts",
        rules_storage.loop_device,
        "two file systems and a kernel thread lie between the server and the disk",
        "put the data directory on a partition or a logical volume",
    ),
    Rule(
        "os_disk",
        "distorts",
        rules_storage.os_disk,
        "logs, packages and swap of the system share the disk's queue and its bandwidth",
        "put the data directory on a disk of its own",
    ),
    Rule(
        "io_scheduler",
        "distorts",
        rules_storage.scheduler,
        "the kernel holds requests back to sort them for a disk with a moving arm",
        "echo none > /sys/block/{disk}/queue/scheduler (mq-deadline for a spinning disk)",
    ),
    Rule(
        "iostats",
        "ruins",
        rules_storage.iostats,
        "the kernel counts no requests: every row of the disk is empty or wrong",
        "echo 1 > /sys/block/{disk}/queue/iostats",
    ),
    Rule(
        "write_cache",
        "note",
        rules_storage.write_cache,
        "flushes end in the kernel: 0 of them does not mean that MySQL asked for none; its own counters tell",
        "echo 'write back' > /sys/block/{disk}/queue/write_cache where the cache is volatile",
    ),
    Rule(
        "barriers",
        "ruins",
        rules_storage.barriers,
        "an fsync ends before its data are safe, so that commits are faster than this disk allows",
        "mount -o remount,barrier=1 {mount}",
    ),
    Rule(
        "mount_sync",
        "ruins",
        rules_storage.mount_sync,
        "every write waits for the disk, also those that the server did not ask it of",
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
        "the default of 128 MiB makes a benchmark of the page cache or of the disk",
        "SET GLOBAL innodb_buffer_pool_size = {pool}",
    ),
    Rule(
        "buffer_pool_large",
        "ruins",
        rules_server.pool_large,
        "with connections and page cache the host runs out of memory and swaps, or kills the server",
        "SET GLOBAL innodb_buffer_pool_size = {pool}",
    ),
    Rule(
        "data_ratio",
        "note",
        rules_server.data_ratio,
        "the data fit into the buffer pool: reads never reach storage",
        "more rows, or a smaller innodb_buffer_pool_size, where storage is the question",
    ),
    Rule(
        "redo_small",
        "distorts",
        rules_server.redo_small,
        "a writing workload is held back by checkpoints that follow one another",
        "SET GLOBAL innodb_redo_log_capacity = 4294967296 (innodb_log_file_size before 8.0.30, MariaDB)",
    ),
    Rule(
        "durability",
        "distorts",
        rules_server.durability,
        "commits do not wait for the disk: faster than any server that keeps its promises",
        "innodb_flush_log_at_trx_commit=1, sync_binlog=1, innodb_doublewrite=ON",
    ),
    Rule(
        "query_cache",
        "ruins",
        rules_server.cache_of_queries,
        "repeated SELECTs are answered without the engine, and a mutex serialises all others",
        "SET GLOBAL query_cache_type = OFF; SET GLOBAL query_cache_size = 0",
    ),
    Rule(
        "page_cache",
        "distorts",
        rules_server.page_cache,
        "data are cached twice, and what memory is left decides how fast reads are",
        "innodb_flush_method=O_DIRECT",
    ),
    Rule(
        "io_capacity",
        "distorts",
        rules_server.io_capacity,
        "flushing is held to what a spinning disk can do, until the redo log forces it",
        "SET GLOBAL innodb_io_capacity = 10000, innodb_io_capacity_max = 20000",
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
        "costs some percent of CPU, more with more instruments: compare with servers that have it too",
        "performance_schema=OFF, or ON everywhere",
    ),
    Rule(
        "numa_interleave",
        "distorts",
        rules_server.interleave,
        "the buffer pool lies where its first user ran, and the others reach it through the interconnect",
        "innodb_numa_interleave=ON, numactl --interleave=all, or a CPU set of one node",
    ),
    Rule(
        "max_connections",
        "ruins",
        rules_server.connections,
        "some of the load's connections are refused",
        "SET GLOBAL max_connections = twice the threads",
    ),
    Rule(
        "prepared_statements",
        "ruins",
        rules_server.prepared,
        "statements beyond the limit are refused with error 1461",
        "SET GLOBAL max_prepared_stmt_count = 1048576",
    ),
)


RULES: tuple[Rule, ...] = (*HOST, *STORAGE, *SERVER)
