"""Declares the rows that only some generators report: open loop, NOPM, latencies by type, protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.metrics.connection_time import REST
from loadprint.metrics.derived import Metric, percent, quotient, rate, with_view

TYPE_FIGURES = ("mean", "p50", "p95", "p99", "max")
BACKLOG = "transactions that were due and not started; if it grows, the side cannot sustain the rate"
ARRIVALS = "with random (Poisson) arrivals a short window has slightly more or fewer than requested"
NEW_ORDERS = "per new order of the whole mix: every cost includes the other four transaction types"
CACHED = "about 0 if prepared statements are reused, about 1 if each execution prepares its statement"
CONNECTION_TIME = (
    "100 × load.transactions.TYPE.count × (load.transactions.TYPE.latency_ms.mean − "
    "(load.transactions.TYPE.wait_ms_mean | 0)) / 1000 / (load.threads × load.seconds)"
)
PROTOCOL = "Protocol, per operation (server counters, all clients)"


NEW_ORDER_ROWS = (
    replace(
        rate("nopm", "NOPM", "1/min", "/min", "details.nopm"),
        better="higher",
        headline=True,
        per_operation=True,
        footnote=NEW_ORDERS,
    ),
    rate("tpm", "TPM", "1/min", "/min", "details.tpm"),
)
OPEN_LOOP = (
    rate("rate_asked", "requested rate", "1/s", "/s", "load.rate"),
    replace(rate("rate_achieved", "achieved rate", "1/s", "/s", "load.achieved_rate"), footnote=ARRIVALS),
    replace(
        rate("backlog_max", "backlog, largest", "1", "", "load.backlog_max"),
        better="lower",
        footnote=BACKLOG,
    ),
    rate("backlog_end", "backlog, at the end", "1", "", "load.backlog_end"),
)


def types(kinds: Sequence[str], latency: Metric) -> tuple[Metric, ...]:
    """Rows of every transaction type, with the footnote and verdict of `latency`, the row of all types."""
    return tuple(
        replace(
            latency,
            key=f"latency_{kind}_{name}",
            label=f"{kind} {name}",
            needs=(f"type.{kind}.{name}",),
            headline=latency.headline and name == "p99",
            view="all" if name == "mean" else "always",
        )
        for kind in kinds
        for name in TYPE_FIGURES
    )


def connection_time(kinds: Sequence[str]) -> tuple[Metric, ...]:
    """Rows of the shares of the connections' time, which add up to all of it."""
    return (
        *(
            replace(
                rate(f"connection_time_{kind}", kind, "%", "%", f"connections.in.{kind}"),
                compute=percent,
                formula=CONNECTION_TIME.replace("TYPE", kind),
            )
            for kind in kinds
        ),
        replace(
            rate("connection_time_rest", "between transactions", "%", "%", f"connections.{REST}"),
            compute=percent,
            formula="100 − sum(rows above)",
        ),
    )


def _per_operation(key: str, label: str, unit: str, source: str) -> Metric:
    return Metric(
        f"{key}_per_operation",
        label,
        unit,
        "B" if unit == "B" else "",
        (f"status.{source}", "load.events"),
        quotient,
        "{0} / ({1})",
        better="lower",
        per_operation=True,
    )


def errors(codes: Sequence[str]) -> tuple[Metric, ...]:
    """Errors and retries per 1000 operations: in total, and by the server's error number."""
    wanted = {
        "errors_per_kop": ("errors", "load.errors"),
        **{f"errors_{code}_per_kop": (f"error {code}", f"load.errors.{code}") for code in codes},
        "retries_per_kop": ("events retried", "load.retries"),
    }
    return tuple(
        Metric(
            key,
            label,
            "1",
            "",
            (source, "load.events"),
            lambda failed, events: 1000 * failed / events,
            "1000 × {0} / ({1})",
            better="lower",
            per_operation=True,
            view="nonzero",
        )
        for key, (label, source) in wanted.items()
    )


ROUND_TRIPS = replace(
    _per_operation("round_trips", "round trips", "1", "Questions"),
    needs=("status.Questions", "status.Com_stmt_prepare", "status.Com_prepare_sql", "load.events"),
    # SQL-level PREPARE also increases Com_stmt_prepare, and is already a question
    compute=lambda questions, prepared, in_sql, events: (questions + prepared - in_sql) / events,
    formula="({0} + {1} − {2}) / ({3})",
)
PROTOCOL_ROWS = (
    ROUND_TRIPS,
    replace(
        ROUND_TRIPS,
        key="round_trips_per_commit",
        label="round trips per commit",
        needs=(*ROUND_TRIPS.needs[:-1], "load.commits"),
        per_operation=False,
        view="all",
    ),
    Metric(
        "prepares_per_execute",
        "prepares per execute",
        "1",
        "",
        ("status.Com_stmt_prepare", "status.Com_stmt_execute"),
        quotient,
        "{Δ0} / {Δ1}",
        better="lower",
        view="nonzero",
        footnote=CACHED,
    ),
    *with_view(
        "all",
        _per_operation("questions", "Questions", "1", "Questions"),
        _per_operation("stmt_prepare", "Com_stmt_prepare", "1", "Com_stmt_prepare"),
        _per_operation("stmt_execute", "Com_stmt_execute", "1", "Com_stmt_execute"),
        _per_operation("stmt_close", "Com_stmt_close", "1", "Com_stmt_close"),
    ),
    _per_operation("bytes_received", "Bytes_received", "B", "Bytes_received"),
    _per_operation("bytes_sent", "Bytes_sent", "B", "Bytes_sent"),
)
