//! Declares the metrics of the table `mysql` with a documented meaning; the table also contains all
//! others of the server.

use loadprint_recording::schema::Column;
use loadprint_recording::schema::Unit;

const STATUS: &str = "SHOW GLOBAL STATUS";
const INNODB: &str = "information_schema.INNODB_METRICS";
const ENGINE: &str = "SHOW ENGINE INNODB STATUS, where SHOW GLOBAL STATUS has no checkpoint";
const RECORDER: &str = "counted by the recorder up to the SHOW GLOBAL STATUS of the same tick";

const fn count(name: &'static str, help: &'static str) -> Column {
    Column::counter(name, Unit::One, help, STATUS)
}

const fn bytes(name: &'static str, help: &'static str) -> Column {
    Column::counter(name, Unit::Byte, help, STATUS)
}

const fn pages(name: &'static str, help: &'static str) -> Column {
    Column::counter(name, Unit::Page, help, STATUS)
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Column {
    Column::gauge(name, unit, help, STATUS)
}

const fn innodb(name: &'static str, unit: Unit, help: &'static str) -> Column {
    Column::counter(name, unit, help, INNODB)
}

const fn recorder(name: &'static str, unit: Unit, help: &'static str) -> Column {
    Column::counter(name, unit, help, RECORDER)
}

/// Names are those of the servers; units are from the manual pages on status variables and
/// INNODB_METRICS.
pub static METRICS: &[Column] = &[
    count(
        "Questions",
        "statements that clients sent, without prepares and closes",
    ),
    count(
        "Queries",
        "statements executed, including those in stored programs",
    ),
    count("Connections", "attempts to connect"),
    count("Aborted_clients", "connections that the client did not close").lower(),
    count("Aborted_connects", "attempts to connect that failed").lower(),
    count(
        "Connection_errors_accept",
        "errors of accept() on a listening port",
    )
    .lower(),
    count(
        "Connection_errors_internal",
        "connections refused for errors inside the server, such as lack of memory",
    )
    .lower(),
    count(
        "Connection_errors_max_connections",
        "connections refused at max_connections",
    )
    .lower(),
    count(
        "Connection_errors_peer_address",
        "errors in looking up the client's address",
    )
    .lower(),
    count(
        "Connection_errors_select",
        "errors of select() or poll() on a listening port",
    )
    .lower(),
    count("Connection_errors_tcpwrap", "connections refused by libwrap").lower(),
    gauge("Threads_connected", Unit::One, "connections open"),
    gauge("Threads_running", Unit::One, "connections that run a statement").lower(),
    gauge(
        "Uptime",
        Unit::Second,
        "time since the server started; if it decreases, all counters have restarted",
    ),
    bytes("Bytes_received", "received from clients"),
    bytes("Bytes_sent", "sent to clients"),
    count(
        "Com_select",
        "SELECT statements; on MySQL without those answered from the query cache",
    ),
    count("Com_insert", "INSERT statements"),
    count("Com_update", "UPDATE statements"),
    count("Com_delete", "DELETE statements"),
    count("Com_commit", "COMMIT statements"),
    count("Com_rollback", "ROLLBACK statements"),
    count(
        "Com_stmt_prepare",
        "statements prepared, by the protocol or as text",
    ),
    count("Com_stmt_execute", "prepared statements run"),
    count("Com_stmt_close", "prepared statements closed"),
    count("Slow_queries", "statements that took longer than long_query_time").lower(),
    count("Created_tmp_disk_tables", "temporary tables on disk").lower(),
    count(
        "Innodb_buffer_pool_read_requests",
        "pages looked up in the buffer pool",
    ),
    count(
        "Innodb_buffer_pool_reads",
        "of these, pages that had to be read from disk",
    )
    .lower(),
    gauge(
        "Innodb_buffer_pool_pages_total",
        Unit::Page,
        "size of the buffer pool",
    ),
    gauge("Innodb_buffer_pool_pages_data", Unit::Page, "pages with data"),
    gauge("Innodb_buffer_pool_pages_dirty", Unit::Page, "dirty pages"),
    gauge("Innodb_buffer_pool_bytes_dirty", Unit::Byte, "dirty data"),
    pages(
        "Innodb_buffer_pool_pages_flushed",
        "pages flushed from the buffer pool",
    ),
    pages("Innodb_pages_written", "pages written"),
    count("Innodb_buffer_pool_wait_free", "waits for a free page").lower(),
    count("Innodb_log_waits", "waits for room in the log buffer").lower(),
    count(
        "Innodb_data_fsyncs",
        "fsync calls, including those of the redo log",
    ),
    bytes("Innodb_data_read", "read from files"),
    bytes("Innodb_data_written", "written to files"),
    bytes(
        "Innodb_os_log_written",
        "written to the redo log, including padding of blocks",
    ),
    bytes(
        "Innodb_redo_log_current_lsn",
        "current position of the redo log (MySQL 8.0.30)",
    ),
    bytes(
        "Innodb_redo_log_checkpoint_lsn",
        "redo log position of the last checkpoint (MySQL 8.0.30)",
    ),
    gauge(
        "Innodb_redo_log_capacity_resized",
        Unit::Byte,
        "capacity of the redo log (MySQL 8.0.30)",
    ),
    bytes("Innodb_lsn_current", "current position of the redo log (MariaDB)"),
    bytes(
        "Innodb_lsn_last_checkpoint",
        "redo log position of the last checkpoint (MariaDB)",
    ),
    gauge(
        "Innodb_checkpoint_age",
        Unit::Byte,
        "redo log since the last checkpoint (MariaDB)",
    )
    .lower(),
    gauge(
        "Innodb_checkpoint_max_age",
        Unit::Byte,
        "age at which writers wait (MariaDB)",
    ),
    gauge(
        "Innodb_history_list_length",
        Unit::One,
        "transactions that are not purged yet (MariaDB)",
    )
    .lower(),
    count("Innodb_rows_read", "rows read (MySQL)"),
    count("Innodb_row_lock_waits", "waits for row locks").lower(),
    Column::counter(
        "Innodb_row_lock_time",
        Unit::Millisecond,
        "time in waits for row locks",
        STATUS,
    )
    .lower(),
    count(
        "Qcache_hits",
        "results returned from the query cache (MariaDB, MySQL before 8.0)",
    ),
    count("Qcache_inserts", "results added to the query cache"),
    count("Qcache_not_cached", "statements that could not be cached"),
    count("Qcache_lowmem_prunes", "results removed for lack of memory").lower(),
    gauge("Qcache_free_memory", Unit::Byte, "free memory of the query cache"),
    gauge("Qcache_queries_in_cache", Unit::One, "results in the query cache"),
    Column::gauge(
        "innodb_metrics.log_lsn_checkpoint_age",
        Unit::Byte,
        "redo log since the last checkpoint",
        INNODB,
    )
    .lower(),
    Column::gauge(
        "innodb_metrics.trx_rseg_history_len",
        Unit::One,
        "transactions that are not purged yet",
        INNODB,
    )
    .lower(),
    innodb(
        "innodb_metrics.buffer_flush_adaptive_total_pages",
        Unit::Page,
        "pages flushed because the redo log filled",
    ),
    innodb(
        "innodb_metrics.buffer_flush_background_total_pages",
        Unit::Page,
        "pages flushed in the background",
    ),
    innodb(
        "innodb_metrics.buffer_flush_sync_total_pages",
        Unit::Page,
        "pages flushed while writers waited",
    )
    .lower(),
    Column::counter(
        "innodb_status.log_sequence_number",
        Unit::Byte,
        "current position of the redo log",
        ENGINE,
    ),
    Column::counter(
        "innodb_status.log_flushed_up_to",
        Unit::Byte,
        "redo log position that is flushed to disk",
        ENGINE,
    ),
    Column::counter(
        "innodb_status.last_checkpoint_at",
        Unit::Byte,
        "redo log position of the last checkpoint",
        ENGINE,
    ),
    recorder(
        "loadprint.connections",
        Unit::One,
        "logins of the recorder, to subtract from Connections",
    ),
    recorder(
        "loadprint.queries",
        Unit::One,
        "statements of the recorder, to subtract from Questions and Queries",
    ),
    recorder(
        "loadprint.bytes_received",
        Unit::Byte,
        "bytes of the recorder in Bytes_received, without logins",
    ),
    recorder(
        "loadprint.bytes_sent",
        Unit::Byte,
        "bytes of the recorder in Bytes_sent, without logins",
    ),
    recorder(
        "loadprint.com_select",
        Unit::One,
        "statements of the recorder in Com_select",
    ),
    recorder(
        "loadprint.com_show_status",
        Unit::One,
        "statements of the recorder in Com_show_status",
    ),
    recorder(
        "loadprint.com_show_variables",
        Unit::One,
        "statements of the recorder in Com_show_variables",
    ),
    recorder(
        "loadprint.com_show_engine_status",
        Unit::One,
        "statements of the recorder in Com_show_engine_status",
    ),
    recorder(
        "loadprint.com_set_option",
        Unit::One,
        "statements of the recorder in Com_set_option",
    ),
];
