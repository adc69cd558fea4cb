"""Maps quantities to MySQL and MariaDB status names; of several names the first recorded one is used."""

from __future__ import annotations

COUNTERS = {
    "pages_flushed": ("Innodb_buffer_pool_pages_flushed",),
    "page_reads": ("Innodb_buffer_pool_reads",),
    "page_requests": ("Innodb_buffer_pool_read_requests",),
    "fsyncs": ("Innodb_data_fsyncs",),
    "redo": ("Innodb_redo_log_current_lsn", "Innodb_lsn_current", "innodb_status.log_sequence_number"),
    "log_waits": ("Innodb_log_waits",),
    "wait_free": ("Innodb_buffer_pool_wait_free",),
    "row_lock_ms": ("Innodb_row_lock_time",),
    "row_lock_waits": ("Innodb_row_lock_waits",),
    # not MariaDB's Handler_read_*, which include rows of temporary tables and sorts
    "rows_read": ("Innodb_rows_read", "Rows_read"),
    "qcache_hits": ("Qcache_hits",),
    "qcache_inserts": ("Qcache_inserts",),
    "qcache_not_cached": ("Qcache_not_cached",),
}
GAUGES = {
    "dirty_pages": ("Innodb_buffer_pool_pages_dirty",),
    "data_pages": ("Innodb_buffer_pool_pages_data",),
    "total_pages": ("Innodb_buffer_pool_pages_total",),
    "history": ("innodb_metrics.trx_rseg_history_len", "Innodb_history_list_length"),
    "threads_running": ("Threads_running",),
    "threads_connected": ("Threads_connected",),
    "checkpoint_age": ("Innodb_checkpoint_age", "innodb_metrics.log_lsn_checkpoint_age"),
    "redo_capacity": ("Innodb_redo_log_capacity_resized",),
}
# LSN and checkpoint LSN: from 8.0.30, and before
AGES = (
    ("Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn"),
    ("innodb_status.log_sequence_number", "innodb_status.last_checkpoint_at"),
)
CAPACITY = ("innodb_redo_log_capacity", "innodb_log_file_size")
# sums of counters, the first complete set is used: MariaDB dropped Innodb_rows_*
SUMS = {
    "rows_written": (
        ("Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"),
        ("Handler_write", "Handler_update", "Handler_delete"),
    ),
}
# server counters and the probe's share in them
PROBE_TRAFFIC = {
    "status.Questions": "loadprint.queries",
    "status.Queries": "loadprint.queries",
    "status.Bytes_received": "loadprint.bytes_received",
    "status.Bytes_sent": "loadprint.bytes_sent",
}
