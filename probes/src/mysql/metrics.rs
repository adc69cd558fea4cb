//! Declares the metrics of the table `mysql` with a documented meaning; the table also contains all
//! others of the server.

use crate::prelude::*;

const STATUS: &str = "SHOW GLOBAL STATUS";
const INNODB: &str = "information_schema.INNODB_METRICS";
const ENGINE: &str = "SHOW ENGINE INNODB STATUS, where SHOW GLOBAL STATUS has no checkpoint";
const RECORDER: &str = "counted by the recorder up to the SHOW GLOBAL STATUS of the same tick";

/// Names are those of the servers; units are from the manual pages on status variables and
/// INNODB_METRICS.
pub static METRICS: &[Column] = columns! {
    counter(One) "Questions", "statements that clients sent, without prepares and closes", STATUS;
    counter(One) "Queries", "statements executed, including those in stored programs", STATUS;
    counter(One) "Connections", "attempts to connect", STATUS;
    counter(One) "Aborted_clients", "connections that the client did not close", STATUS, lower;
    counter(One) "Aborted_connects", "attempts to connect that failed", STATUS, lower;
    counter(One) "Connection_errors_accept", "errors of accept() on a listening port", STATUS, lower;
    counter(One) "Connection_errors_internal",
        "connections refused for errors inside the server, such as lack of memory", STATUS, lower;
    counter(One) "Connection_errors_max_connections", "connections refused at max_connections", STATUS, lower;
    counter(One) "Connection_errors_peer_address", "errors in looking up the client's address", STATUS, lower;
    counter(One) "Connection_errors_select",
        "errors of select() or poll() on a listening port", STATUS, lower;
    counter(One) "Connection_errors_tcpwrap", "connections refused by libwrap", STATUS, lower;
    gauge(One) "Threads_connected", "connections open", STATUS;
    gauge(One) "Threads_running", "connections that run a statement", STATUS, lower;
    gauge(Second) "Uptime",
        "time since the server started; if it decreases, all counters have restarted", STATUS;
    counter(Byte) "Bytes_received", "received from clients", STATUS;
    counter(Byte) "Bytes_sent", "sent to clients", STATUS;
    counter(One) "Com_select",
        "SELECT statements; on MySQL without those answered from the query cache", STATUS;
    counter(One) "Com_insert", "INSERT statements", STATUS;
    counter(One) "Com_update", "UPDATE statements", STATUS;
    counter(One) "Com_delete", "DELETE statements", STATUS;
    counter(One) "Com_commit", "COMMIT statements", STATUS;
    counter(One) "Com_rollback", "ROLLBACK statements", STATUS;
    counter(One) "Com_stmt_prepare", "statements prepared, by the protocol or as text", STATUS;
    counter(One) "Com_stmt_execute", "prepared statements run", STATUS;
    counter(One) "Com_stmt_close", "prepared statements closed", STATUS;
    counter(One) "Slow_queries", "statements that took longer than long_query_time", STATUS, lower;
    counter(One) "Created_tmp_disk_tables", "temporary tables on disk", STATUS, lower;
    counter(One) "Innodb_buffer_pool_read_requests", "pages looked up in the buffer pool", STATUS;
    counter(One) "Innodb_buffer_pool_reads", "of these, pages that had to be read from disk", STATUS, lower;
    gauge(Page) "Innodb_buffer_pool_pages_total", "size of the buffer pool", STATUS;
    gauge(Page) "Innodb_buffer_pool_pages_data", "pages with data", STATUS;
    gauge(Page) "Innodb_buffer_pool_pages_dirty", "dirty pages", STATUS;
    gauge(Byte) "Innodb_buffer_pool_bytes_dirty", "dirty data", STATUS;
    counter(Page) "Innodb_buffer_pool_pages_flushed", "pages flushed from the buffer pool", STATUS;
    counter(Page) "Innodb_pages_written", "pages written", STATUS;
    counter(One) "Innodb_buffer_pool_wait_free", "waits for a free page", STATUS, lower;
    counter(One) "Innodb_log_waits", "waits for room in the log buffer", STATUS, lower;
    counter(One) "Innodb_data_fsyncs", "fsync calls, including those of the redo log", STATUS;
    counter(Byte) "Innodb_data_read", "read from files", STATUS;
    counter(Byte) "Innodb_data_written", "written to files", STATUS;
    counter(Byte) "Innodb_os_log_written", "written to the redo log, including padding of blocks", STATUS;
    counter(Byte) "Innodb_redo_log_current_lsn", "current position of the redo log (MySQL 8.0.30)", STATUS;
    counter(Byte) "Innodb_redo_log_checkpoint_lsn",
        "redo log position of the last checkpoint (MySQL 8.0.30)", STATUS;
    gauge(Byte) "Innodb_redo_log_capacity_resized", "capacity of the redo log (MySQL 8.0.30)", STATUS;
    counter(Byte) "Innodb_lsn_current", "current position of the redo log (MariaDB)", STATUS;
    counter(Byte) "Innodb_lsn_last_checkpoint", "redo log position of the last checkpoint (MariaDB)", STATUS;
    gauge(Byte) "Innodb_checkpoint_age", "redo log since the last checkpoint (MariaDB)", STATUS, lower;
    gauge(Byte) "Innodb_checkpoint_max_age", "age at which writers wait (MariaDB)", STATUS;
    gauge(One) "Innodb_history_list_length", "transactions that are not purged yet (MariaDB)", STATUS, lower;
    counter(One) "Innodb_rows_read", "rows read (MySQL)", STATUS;
    counter(One) "Innodb_row_lock_waits", "waits for row locks", STATUS, lower;
    counter(Millisecond) "Innodb_row_lock_time", "time in waits for row locks", STATUS, lower;
    counter(One) "Qcache_hits", "results returned from the query cache (MariaDB, MySQL before 8.0)", STATUS;
    counter(One) "Qcache_inserts", "results added to the query cache", STATUS;
    counter(One) "Qcache_not_cached", "statements that could not be cached", STATUS;
    counter(One) "Qcache_lowmem_prunes", "results removed for lack of memory", STATUS, lower;
    gauge(Byte) "Qcache_free_memory", "free memory of the query cache", STATUS;
    gauge(One) "Qcache_queries_in_cache", "results in the query cache", STATUS;
    gauge(Byte) "innodb_metrics.log_lsn_checkpoint_age", "redo log since the last checkpoint", INNODB, lower;
    gauge(One) "innodb_metrics.trx_rseg_history_len", "transactions that are not purged yet", INNODB, lower;
    counter(Page) "innodb_metrics.buffer_flush_adaptive_total_pages",
        "pages flushed because the redo log filled", INNODB;
    counter(Page) "innodb_metrics.buffer_flush_background_total_pages",
        "pages flushed in the background", INNODB;
    counter(Page) "innodb_metrics.buffer_flush_sync_total_pages",
        "pages flushed while writers waited", INNODB, lower;
    counter(Byte) "innodb_status.log_sequence_number", "current position of the redo log", ENGINE;
    counter(Byte) "innodb_status.log_flushed_up_to", "redo log position that is flushed to disk", ENGINE;
    counter(Byte) "innodb_status.last_checkpoint_at", "redo log position of the last checkpoint", ENGINE;
    counter(One) "loadprint.connections", "logins of the recorder, to subtract from Connections", RECORDER;
    counter(One) "loadprint.queries",
        "statements of the recorder, to subtract from Questions and Queries", RECORDER;
    counter(Byte) "loadprint.bytes_received",
        "bytes of the recorder in Bytes_received, without logins", RECORDER;
    counter(Byte) "loadprint.bytes_sent", "bytes of the recorder in Bytes_sent, without logins", RECORDER;
    counter(One) "loadprint.com_select", "statements of the recorder in Com_select", RECORDER;
    counter(One) "loadprint.com_show_status", "statements of the recorder in Com_show_status", RECORDER;
    counter(One) "loadprint.com_show_variables", "statements of the recorder in Com_show_variables", RECORDER;
    counter(One) "loadprint.com_show_engine_status",
        "statements of the recorder in Com_show_engine_status", RECORDER;
    counter(One) "loadprint.com_set_option", "statements of the recorder in Com_set_option", RECORDER;
};
