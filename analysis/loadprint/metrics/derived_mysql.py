"""Declares the rows of the MySQL probe, shown if a run has them."""

from __future__ import annotations

from dataclasses import replace

from loadprint.metrics.derived import Metric, quotient, rate, with_view

PERFORMANCE_SCHEMA = "of all statements in performance_schema, including the recorder's"
QUERIES = "includes statements in stored programs"
QUERIES_MIXED = "MySQL and MariaDB count Queries differently"
# 413.0 and 417.0 rows, 136 and 103 page requests per transaction of the same oltp_read_write (9.7 and 10.11)
ROWS_READ = "Innodb_rows_read of MySQL; Rows_read of MariaDB, which counts 1 % more for oltp_read_write"
PAGE_REQUESTS = "MariaDB counts a quarter fewer page requests than MySQL for the same work"
NOT_AMPLIFICATION = "all bytes written to the disk per byte of redo; not the write amplification"

# the server's histogram of statements has fifty buckets for each power of ten
BUCKET = (10 ** (1 / 50) - 1) / 2

_FLUSHED = "rates(mysql.Innodb_buffer_pool_pages_flushed)"
BURSTS = f"p99({_FLUSHED}) / median({_FLUSHED})"
STALLS = (
    "count(stretches of 2 s in which the checkpoint age exceeds 75 % of the redo capacity, pages flushed "
    "exceed 3 × their median, and throughput falls by more than 30 %)"
)
BURST, SPIKES = "mysql.flush_burst", "mysql.checkpoint_spikes"


def _share(key: str, label: str, *needs: str) -> Metric:
    whole = "+".join(map(str, range(1, len(needs))))
    return Metric(
        key,
        label,
        "%",
        "%",
        needs,
        lambda part, *rest: 100 * part / sum(rest),
        f"100 × {{0}} / ({{{whole}}})",
    )


MYSQL = (
    replace(
        _share(
            "buffer_pool_miss",
            "buffer pool misses",
            "mysql.page_reads",
            "mysql.page_requests",
        ),
        mixed_flavours_footnote=PAGE_REQUESTS,
    ),
    _share(
        "dirty_pages",
        "dirty pages (mean)",
        "mysql.dirty_pages.mean",
        "mysql.data_pages.mean",
    ),
    rate("pages_flushed", "pages flushed", "1/s", "/s", "mysql.pages_flushed"),
    rate("redo", "redo written", "B/s", "kB/s", "mysql.redo"),
    _share(
        "checkpoint_age_max",
        "checkpoint age, largest, of redo",
        "mysql.checkpoint_age.max",
        "mysql.redo_capacity.mean",
    ),
    replace(rate("flush_burst", "flush burst, p99 / median", "1", "", BURST), formula=BURSTS),
    *with_view(
        "nonzero",
        replace(rate("checkpoint_spikes", "checkpoint spikes", "1", "", SPIKES), formula=STALLS),
    ),
    rate("mysql_fsyncs", "fsyncs of InnoDB", "1/s", "/s", "mysql.fsyncs"),
    *with_view(
        "all",
        _share(
            "checkpoint_age",
            "checkpoint age (mean)",
            "mysql.checkpoint_age.mean",
            "mysql.redo_capacity.mean",
        ),
        _share(
            "buffer_pool_fill",
            "buffer pool in use (mean)",
            "mysql.data_pages.mean",
            "mysql.total_pages.mean",
        ),
    ),
    *with_view(
        "nonzero",
        rate("row_lock", "sessions waiting for a row lock", "1", "", "mysql.row_lock_ms"),
        rate("row_lock_waits", "waits for a row lock", "1/s", "/s", "mysql.row_lock_waits"),
        rate("log_waits", "waits for the log buffer", "1/s", "/s", "mysql.log_waits"),
        rate("wait_free", "waits for a free page", "1/s", "/s", "mysql.wait_free"),
    ),
    rate("history", "history list (largest)", "1", "", "mysql.history.max"),
    rate("threads_running", "threads running (mean)", "1", "", "mysql.threads_running.mean"),
    *(
        replace(
            rate(
                f"statement_{word}", f"statement latency {printed}", "s", "µs", f"mysql_statements.all.{word}"
            ),
            better="lower",
            footnote=PERFORMANCE_SCHEMA,
            rounding=BUCKET,
            view="always" if word == "p99" else "all",
        )
        for word, printed in (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"))
    ),
    *with_view(
        "all",
        rate("questions", "Questions", "1/s", "/s", "status.Questions"),
        replace(
            rate("queries", "Queries", "1/s", "/s", "status.Queries"),
            footnote=QUERIES,
            mixed_flavours_footnote=QUERIES_MIXED,
        ),
        replace(
            rate("rows_read", "rows read", "1/s", "/s", "mysql.rows_read"), mixed_flavours_footnote=ROWS_READ
        ),
        rate("rows_changed", "rows inserted, updated, deleted", "1/s", "/s", "mysql.rows_written"),
        replace(
            rate(
                "disk_write_per_redo_byte",
                "disk written per redo byte",
                "1",
                "",
                "storage.data.write_sectors",
            ),
            needs=("storage.data.write_sectors", "mysql.redo"),
            compute=quotient,
            formula="{0} / ({1})",
            better="lower",
            footnote=NOT_AMPLIFICATION,
        ),
    ),
    *with_view(
        "measured",  # a cache without hits only costs
        _share(
            "qcache_hits",
            "query cache hits, of reads",
            "mysql.qcache_hits",
            "mysql.qcache_hits",
            "mysql.qcache_inserts",
            "mysql.qcache_not_cached",
        ),
    ),
)
