"""Checks the units of a table's columns and metrics against those that the formulas expect.

The recorder stores values in the unit of their source (docs/metrics.md). A name has one unit in all tables;
names of later versions and of scraped endpoints may have any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadprint.reading.columns import page_size
from loadprint.reading.cpusets import user_hz
from loadprint.reading.recording import Run

_NAMES = {
    "1": """
        ctxt intr softirqs processes procs_running procs_blocked count description comm digest_text
        reads read_merges writes write_merges in_flight discards discard_merges flushes transfers
        rx_packets rx_errors rx_drops rx_fifo rx_frame rx_compressed rx_multicast
        tx_packets tx_errors tx_drops tx_fifo tx_collisions tx_carrier tx_compressed
        threads minflt majflt syscr syscw voluntary_ctxt_switches nonvoluntary_ctxt_switches timeslices
        tcp_inuse tcp_orphan tcp_tw tcp_alloc udp_inuse tcp6_inuse active_opens passive_opens attempt_fails
        estab_resets curr_estab in_segs out_segs retrans_segs nr_periods nr_throttled
        voluntary involuntary migrations lost retransmits opened closed pid
        samples cycles run_cnt calls value errors warnings rows_affected rows_sent rows_examined
        tmp_tables tmp_disk_tables sort_rows no_index_used no_good_index_used
        events queries commits rows others reconnects exchanges
        Ip.InReceives Ip.OutRequests Tcp.ActiveOpens Tcp.PassiveOpens Tcp.AttemptFails Tcp.EstabResets
        Tcp.CurrEstab Tcp.InSegs Tcp.OutSegs Tcp.RetransSegs Tcp.InErrs Tcp.OutRsts Udp.InDatagrams
        Udp.OutDatagrams TcpExt.TW TcpExt.ListenOverflows TcpExt.ListenDrops TcpExt.DelayedACKs
        TcpExt.TCPTimeouts TcpExt.TCPLostRetransmit TcpExt.TCPFastRetrans TcpExt.TCPAutoCorking
        TcpExt.TCPOrigDataSent sockstat.TCP.inuse sockstat.TCP.orphan sockstat.TCP.tw sockstat.TCP.alloc
        HugePages_Total HugePages_Free HugePages_Rsvd HugePages_Surp pgfault pgmajfault allocstall_normal
        compact_stall oom_kill thp_fault_alloc thp_fault_fallback thp_collapse_alloc thp_split_page
        Questions Queries Connections Aborted_clients Aborted_connects Connection_errors_accept
        Connection_errors_internal Connection_errors_max_connections Connection_errors_peer_address
        Connection_errors_select Connection_errors_tcpwrap Threads_connected Threads_running
        Com_select Com_insert Com_update Com_delete Com_commit Com_rollback Com_stmt_prepare
        Com_stmt_execute Com_stmt_close Slow_queries Created_tmp_disk_tables Handler_write Handler_update
        Handler_delete Rows_read Innodb_rows_read Innodb_rows_inserted Innodb_rows_updated
        Innodb_rows_deleted Innodb_buffer_pool_read_requests Innodb_buffer_pool_reads
        Innodb_buffer_pool_wait_free Innodb_log_waits Innodb_data_fsyncs Innodb_history_list_length
        Innodb_row_lock_waits Qcache_hits Qcache_inserts Qcache_not_cached Qcache_lowmem_prunes
        Qcache_queries_in_cache innodb_metrics.trx_rseg_history_len loadprint.connections loadprint.queries
        loadprint.com_select loadprint.com_show_status loadprint.com_show_variables
        loadprint.com_show_engine_status loadprint.com_set_option""",
    "tick": """
        user nice system idle iowait irq softirq steal guest guest_nice utime stime cutime cstime
        starttime""",
    "sector": "read_sectors write_sectors discard_sectors",
    "page": """
        rss tcp_mem sockstat.TCP.mem nr_free_pages nr_dirty nr_writeback nr_dirty_threshold
        nr_dirty_background_threshold nr_file_pages nr_anon_pages nr_mapped nr_shmem nr_dirtied nr_written
        pswpin pswpout pgfree pgsteal_kswapd pgsteal_direct pgscan_kswapd pgscan_direct numa_hit numa_miss
        numa_foreign numa_local numa_other numa_pages_migrated Innodb_buffer_pool_pages_total
        Innodb_buffer_pool_pages_data Innodb_buffer_pool_pages_dirty Innodb_buffer_pool_pages_flushed
        Innodb_pages_written innodb_metrics.buffer_flush_adaptive_total_pages
        innodb_metrics.buffer_flush_background_total_pages innodb_metrics.buffer_flush_sync_total_pages""",
    "B": """
        rx_bytes tx_bytes read_bytes write_bytes rchar wchar memory_bytes
        sum_bytes ebpf_block_size.buckets IpExt.InOctets IpExt.OutOctets
        Bytes_received Bytes_sent Innodb_buffer_pool_bytes_dirty Innodb_data_read Innodb_data_written
        Innodb_os_log_written Innodb_redo_log_current_lsn Innodb_redo_log_checkpoint_lsn
        Innodb_redo_log_capacity_resized Innodb_lsn_current Innodb_lsn_last_checkpoint Innodb_checkpoint_age
        Innodb_checkpoint_max_age Qcache_free_memory innodb_metrics.log_lsn_checkpoint_age
        innodb_status.log_sequence_number innodb_status.log_flushed_up_to innodb_status.last_checkpoint_at
        loadprint.bytes_received loadprint.bytes_sent""",
    "kB": """
        MemTotal MemFree MemAvailable Buffers Cached Active Inactive Unevictable Mlocked SwapTotal SwapFree
        Dirty Writeback AnonPages Mapped Shmem Slab SReclaimable SUnreclaim KernelStack PageTables
        CommitLimit Committed_AS Percpu AnonHugePages Hugepagesize Hugetlb pgpgin pgpgout""",
    "s": "Uptime",
    "ms": """
        read_ms write_ms io_ms weighted_ms discard_ms flush_ms transfer_ms latency_p95_ms
        Innodb_row_lock_time""",
    "us": """
        total_us throttled_us usage_us quota_us period_us read_us
        volume_iops_exceeded_us volume_throughput_exceeded_us instance_iops_exceeded_us
        instance_throughput_exceeded_us""",
    "ns": """
        on_cpu_ns run_delay_ns throttled_ns time_ns user_ns system_ns run_time_ns enabled_ns running_ns
        sum_ns buckets network_ns overlap_ns waiting_ns server_ns""",
    "ps": "sum_timer_wait sum_lock_time cpu_time mysql_statements.buckets",
    "uJ": "energy_uj max_energy_range_uj",
    "kHz": "khz",
}
# unit in base units; of a host's own units see `factor`
FACTORS = {
    "1": 1.0,
    "B": 1.0,
    "kB": 1024.0,
    "sector": 512.0,  # for every block size of the device (Documentation/block/stat.rst)
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
    "uJ": 1e-6,
    "kHz": 1e3,
    "percent": 1.0,
}
FIXED = frozenset({"throughput", "latency", "mysql_digests"})  # read without a conversion
# units that are converted to each other
KINDS = {"size": "B kB", "time": "s ms us ns ps"}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()}
SCRAPED = "scrape"


def unit_of(table: str, name: str) -> str | None:
    """Unit of a column or metric as the recorder stores it; None for a name that it does not record."""
    return None if table == SCRAPED else _UNITS.get(f"{table}.{name}") or _UNITS.get(name)


def factor(table: str, name: str, described: Mapping[str, Any], run: Run, role: str) -> float:
    """The unit of a column or metric in base units, by its metadata, else by its name."""
    unit = described.get("unit") or unit_of(table, name) or "1"
    if unit == "tick":
        return 1 / user_hz(run, role)
    if unit == "page" and table != "mysql":  # whose pages are InnoDB's, and counted
        return page_size(run, role)
    return FACTORS.get(unit, 1.0)


def unit_flaw(table: str, described: Mapping[str, Any]) -> str:
    """The first column or metric of a table's metadata in a unit of another kind; empty if there is none."""
    for kind in ("column", "metric"):
        for name, meaning in (described.get(f"{kind}s") or {}).items():
            found, expected = (meaning or {}).get("unit"), unit_of(table, name)
            if found in (None, expected) or expected is None:
                continue
            if table in FIXED or _kind(found) != _kind(expected):
                return f"{kind} `{name}` has the unit `{found}`, expected `{expected}`"
    return ""


def _kind(unit: str) -> str:
    """What a unit measures."""
    return next((kind for kind, units in KINDS.items() if unit in units.split()), unit)
