"""Declares the rows of the eBPF tables, shown if a run has them."""

from __future__ import annotations

from dataclasses import replace

from loadprint.metrics.derived import Metric, View, rate, with_view

WAITING = (
    "mean number of threads in this state (time in it per second), including idle background threads; the "
    "sum of all states is the number of threads that are not on a CPU"
)
BUCKET = 0.0625  # largest distance of a value to the middle of its bucket
BUCKETS = "a quantile of a histogram: its error is at most 6.25 %, and its interval includes this error"
PRINTED = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9"}
PLAIN = ("run queue", "block I/O", "lock", "network")
STATES = {
    "run queue": "run queue",
    "block I/O": "block I/O",
    "lock": "lock (futex)",
    "network": "network",
    "sleep": "timer (sleep)",
    "other": "other",
}


def _quantile(key: str, label: str, source: str, shown: str = "µs") -> Metric:
    row = rate(key, label, "s", shown, source)
    return replace(row, better="lower", footnote=BUCKETS, rounding=BUCKET)


def _quantiles(
    key: str, label: str, source: str, shown: str = "µs", plain: str = "p99"
) -> tuple[Metric, ...]:
    """Rows of all quantiles of one histogram; only `plain` is in every view."""
    return tuple(
        replace(
            _quantile(f"{key}_{word}", label.format(printed), f"{source}.{word}", shown),
            view="always" if word == plain else "all",
        )
        for word, printed in PRINTED.items()
    )


def _waiting(state: str, label: str) -> Metric:
    key = f"waiting_{_word(state)}"
    row = rate(key, f"waiting threads: {label}", "1", "", f"sched.server.{state}.sum")
    plain: View = "always" if state in PLAIN else "all"
    return replace(row, footnote=WAITING, view=plain)


def _word(state: str) -> str:
    return state.replace(" ", "_").replace("/", "").lower()


SCHEDULER = (
    *_quantiles("runq", "run queue latency {}, server", "sched.server.run queue"),
    *(_waiting(state, label) for state, label in STATES.items()),
    *(
        replace(row, view="all")
        for state, label in STATES.items()
        if state != "run queue"
        for row in _quantiles(f"offcpu_{_word(state)}", f"off CPU, {label} {{}}", f"sched.server.{state}")
    ),
    *with_view(
        "all",
        rate("voluntary_server", "voluntary switches, server", "1/s", "/s", "switches.server.voluntary"),
        rate(
            "involuntary_server", "involuntary switches, server", "1/s", "/s", "switches.server.involuntary"
        ),
        rate("migrations_server", "migrations, server", "1/s", "/s", "switches.server.migrations"),
    ),
)
TCP = (
    *_quantiles("rtt", "TCP RTT {}, to clients", "tcp_rtt"),
    *with_view(
        "all",
        replace(
            rate(
                "rtt_retransmits",
                "retransmits, to clients",
                "1/s",
                "/s",
                "tcp_rtt.retransmits",
            ),
            better="lower",
        ),
        rate("rtt_opened", "connections accepted", "1/s", "/s", "tcp_rtt.opened"),
    ),
)
STATEMENTS = tuple(
    row
    for command in ("COM_QUERY", "COM_STMT_EXECUTE")
    for row in _quantiles(f"statement_{command.lower()}", f"{command} {{}}", f"statements.server.{command}")
)
SYSCALLS = (
    rate("syscalls_server", "system calls, server", "1/s", "/s", "syscalls.server.all"),
    rate("syncs_server", "fsync and fdatasync, server", "1/s", "/s", "syscalls.server.sync"),
    *(
        row
        for call in ("fsync", "fdatasync", "pread64", "pwrite64")
        for row in _quantiles(call, f"{call} {{}}, server", f"syscall_latency.server.{call}", "ms")
    ),
)
INTERRUPTS = with_view(
    "all",
    rate("irq_hard", "hard interrupts, whole host", "cores", "cores", "irq.hard.sum"),
    rate("irq_net_rx", "NET_RX softirqs, whole host", "cores", "cores", "irq.NET_RX.sum"),
    rate("irq_block", "BLOCK softirqs, whole host", "cores", "cores", "irq.BLOCK.sum"),
)
EBPF = (*SCHEDULER, *SYSCALLS, *STATEMENTS, *TCP, *INTERRUPTS)

# in addition to the rows of a disk
DISK = (
    *(
        row
        for word in ("read", "write", "write_fua", "flush", "discard")
        for row in _quantiles(
            f"disk_{{}}_{word}",
            f"{word.replace('_fua', ' with FUA')} {{}}",
            f"block.{{}}.{word}.device",
            "ms",
            plain="p99" if word in ("read", "write", "flush") else "",
        )
    ),
    *(
        replace(row, view="all")
        for word in ("read", "write")
        for row in _quantiles(
            f"disk_{{}}_{word}_queue", f"{word} queue time {{}}", f"block.{{}}.{word}.queue", "ms"
        )
    ),
    *(
        replace(row, unit="B", shown="kB", better="neither", view="all")
        for word in ("read", "write")
        for row in _quantiles(f"disk_{{}}_{word}_size", f"{word} size {{}}", f"block_size.{{}}.{word}")
    ),
)
