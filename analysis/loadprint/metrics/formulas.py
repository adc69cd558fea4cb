"""Writes the formulas of rows: the quantities of a template as expressions of recorded columns.

In a template `{0}` is the first quantity of a row, `{0+1}` the sum of two, and `{Δ0+1}` their increase,
without a unit or a time. A formula gives the value in the row's base unit. Its names are TABLE.ENTITY.COLUMN
or TABLE.METRIC of the recording; `load` is the generator's result.json, `status` and `variables` are in
server.json, a CPU set or a role is the sum over its CPUs or processes. `Δx` is the increase of a counter
over the measure phase, `s` the seconds between the first and the last reading of its table, `rates` its
increase per second in each interval, `HZ` the clock ticks per second; `a | b` is b where a is not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from loadprint.reading.mysql_names import AGES, COUNTERS, GAUGES, PROBE_TRAFFIC, SUMS

PER_SECOND, PER_LOAD_SECOND, CPU_TIME = "Δ{} / s", "{} / load.seconds", "Δ{} / HZ / s"
SYNCS = r"ebpf_syscalls.\1.(fsync.count + fdatasync.count)"
TIME_WAIT = "load.details.sockets.after.tcp_time_wait"
LIMITED = r"Δcgroup.\1.nr_throttled / Δcgroup.\1.nr_periods"
# pattern of a quantity's name, expression of its value in base units, and the recorded name
EXPRESSIONS: tuple[tuple[str, str, str], ...] = (
    (r"load\.(rate|achieved_rate|backlog_\w+)", "{}", r"load.\1"),
    (r"load\.errors\.(.+)", PER_LOAD_SECOND, r"load.errors_by_code.\1"),
    (r"load\.retries", PER_LOAD_SECOND, "(load.retries | load.errors)"),
    (r"load\.(\w+)", PER_LOAD_SECOND, r"load.\1"),
    (r"latency\.(\w+)", "{} / 1000", r"load.latency_ms.\1"),
    (r"type\.(.+)\.(\w+)", "{} / 1000", r"load.transactions.\1.latency_ms.\2"),
    (r"details\.(\w+)", "{}", r"load.details.\1"),
    (r"status\.(\w+)", "Δ{} / load.seconds", r"status.\1"),
    (r"host\.(\w+)", PER_SECOND, r"cpu.all.\1"),
    (r"process\.(\w+)\.cpu", CPU_TIME, r"process.\1.(utime + stime)"),
    (r"process\.(\w+)\.rss", "page_size × max({})", r"process.\1.rss"),
    (r"cpu\.(\w+)\.cores", "{}", r"cpu.\1.CPUs"),
    (r"(?:cpu|process)\..+", CPU_TIME, r"\g<0>"),
    (r"(?:interrupts|softirqs)\..+", PER_SECOND, r"\g<0>.count"),
    (r"pressure\.([a-z]+)_([a-z]+)", "Δ{} / 10⁶ / s", r"pressure.\1.\2.total_us"),
    (r"tcp\.(\w+)", PER_SECOND, r"tcp.Tcp.\1"),
    (r"frequency\.(\w+)\.mean", "1000 × mean({})", r"frequency.\1.khz"),
    (r"frequency\.(\w+)\.least", "1000 × min({})", r"frequency.\1.khz"),
    (r"perf\..+", "Δ{}.value × Δ{}.enabled_ns / Δ{}.running_ns / s", r"\g<0>"),
    (r"energy\.\w+", "Δ{} / 10⁶ / s", r"\g<0>.energy_uj"),
    (r"cgroup\.(\w+)\.throttled", "max({})", LIMITED),
    (r"cgroup\.(\w+)\.held", "(Δ{}_us / 10⁶ | Δ{}_ns / 10⁹) / s", r"cgroup.\1.throttled"),
    (r"allowance\.(\w+)", "sum(Δ{}) / s", r"ethtool.*.\1_allowance_exceeded"),
    (r"nvme\.(\w+)", "max(Δ{}) / 10⁶ / s", r"nvme.*.\1_exceeded_us"),
    (r"sockets\.(\w+)\.time_wait", f"max({{}} | {TIME_WAIT})", r"sockets.\1.tcp_tw"),
    (r"syscalls\.(\w+)\.all", "sum(Δ{}) / s", r"ebpf_syscalls.\1.*.count"),
    (r"syscalls\.(\w+)\.sync", PER_SECOND, SYNCS),
    (r"switches\..+", PER_SECOND, r"ebpf_\g<0>"),
    (r"(.+)\.sum", "Δ{} / 10⁹ / s", r"ebpf_\1.sum_ns"),
    (r"block_size\.(.+)\.(p\d+)", r"\2(Δ{})", r"ebpf_block_size.\1.buckets"),
    (r"mysql_statements\.(\w+)\.(p\d+)", r"\2(Δ{}) / 10¹²", r"mysql_statements.\1.buckets"),
    (r"tcp_rtt\.(p\d+)", r"\1(Δ{}) / 10⁹", "ebpf_tcp.port.accepted.buckets"),
    (r"tcp_rtt\.(\w+)", PER_SECOND, r"ebpf_tcp.port.accepted.\1"),
    (r"(.+)\.(p\d+)", r"\2(Δ{}) / 10⁹", r"ebpf_\1.buckets"),
    (r".+_sectors", "512 × Δ{} / s", r"\g<0>"),
    (r".+_ms", "Δ{} / 1000 / s", r"\g<0>"),
    (r".+_ns", "Δ{} / 10⁹ / s", r"\g<0>"),
    (r".+", PER_SECOND, r"\g<0>"),
)
CAPACITY = (
    "variables.innodb_redo_log_capacity | "
    "variables.innodb_log_file_size × (variables.innodb_log_files_in_group | 1)"
)
PLACE = re.compile(r"\{(Δ?)([\d+]+)\}")


@cache
def written(template: str, names: Sequence[str]) -> str:
    """The formula of a row: a template with the expressions of its quantities."""

    def expression(place: re.Match[str]) -> str:
        found = [_expression(names[int(number)]) for number in place[2].split("+")]
        recorded = _together([name for _, name in found])
        return f"Δ{recorded}" if place[1] else found[0][0].replace("{}", recorded)

    return PLACE.sub(expression, template)


def divisor(formula: str) -> str:
    """The last divisor of a formula, without its parentheses."""
    depth = 0
    for place in reversed(range(len(formula))):
        depth += {")": 1, "(": -1}.get(formula[place], 0)
        if formula[place] == "/" and not depth:
            return formula[place + 1 :].strip().removeprefix("(").removesuffix(")")
    return formula


def _expression(name: str) -> tuple[str, str]:
    """Expression of a quantity, and the recorded name that it contains as {}."""
    table, _, rest = name.partition(".")
    if table == "mysql":
        return _of_server(rest)
    name = ".".join(part if re.fullmatch(r"[\w*-]+", part) else f'"{part}"' for part in name.split("."))
    if own := PROBE_TRAFFIC.get(name):  # without the generator's second SHOW and the recorder's statements
        counted = "(Δ{} − 1)" if own == "loadprint.queries" else "Δ{}"
        return f"({counted} / load.seconds − (Δmysql.{own} | 0) / s)", name
    for pattern, value, recorded in EXPRESSIONS:
        if match := re.fullmatch(pattern, name):
            return match.expand(value), match.expand(recorded)
    raise LookupError(name)  # the last pattern matches every name


def _of_server(name: str) -> tuple[str, str]:
    """Expression of a quantity of the MySQL probe, with all names that a server may have."""
    name, _, figure = name.partition(".")
    if figure:
        names = [f"mysql.{each}" for each in GAUGES[name]]
        if name == "checkpoint_age":
            names += [f"mysql.{last} − mysql.{first}" for last, first in AGES]
        names += [CAPACITY] if name == "redo_capacity" else []
        return f"{figure}({{}})", " | ".join(names)
    names = [f"mysql.{each}" for each in COUNTERS.get(name, ())]
    names += [_together([f"mysql.{each}" for each in of_sum]) for of_sum in SUMS.get(name, ())]
    recorded = names[0] if len(names) == 1 else f"({' | '.join(names)})"
    return ("Δ{} / 1000 / s" if name.endswith("_ms") else PER_SECOND), recorded


def _together(names: Sequence[str]) -> str:
    """The sum of some names; those of one entity have it once."""
    if len(names) == 1:
        return names[0]
    heads = {name.rpartition(".")[0] for name in names}
    if len(heads) > 1:
        return f"({' + '.join(names)})"
    (head,) = heads
    return f"{head}.({' + '.join(name.rpartition('.')[2] for name in names)})"
