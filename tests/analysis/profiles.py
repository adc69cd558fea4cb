"""Writes the samples of probe `profile`: a table and stacks.json, with stacks that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recordings import Host, Rows, Tables, make_execution, make_run, write_json, write_manifest

KERNEL = "[kernel]"
MYSQLD, LIBC = "/usr/sbin/mysqld", "/usr/lib/x86_64-linux-gnu/libc.so.6"


def _in(module: str, *symbols: str) -> str:
    return ";".join(f"{module}!{symbol}" for symbol in symbols)


COMMAND = ";".join(
    (
        _in(LIBC, ""),
        _in(MYSQLD, "pfs_spawn_thread(void*)", "handle_connection", "do_command(THD*)"),
        _in(MYSQLD, "dispatch_command(THD*, COM_DATA const*, enum_server_command)"),
    )
)
SYSTEM_CALL = f"{COMMAND};{_in(LIBC, '')};{_in(KERNEL, 'entry_SYSCALL_64_after_hwframe', 'do_syscall_64')}"
SEND = f"{SYSTEM_CALL};{_in(KERNEL, '__x64_sys_sendto', 'tcp_sendmsg_locked', '_raw_spin_unlock_bh')}"
PARSE = f"{COMMAND};{_in(MYSQLD, 'dispatch_sql_command(THD*, Parser_state*)', 'MYSQLparse(THD*)')}"
SEARCH = f"{COMMAND};{_in(MYSQLD, 'row_search_mvcc(unsigned char*, page_cur_mode_t)')}"
NAMELESS, CUT = f"{_in(LIBC, '')};{_in(MYSQLD, '')}", _in(MYSQLD, "")

# samples a second by stack: frames `module!symbol` from the outermost inwards
Samples = Mapping[str, int]
PERIODS = {SEND: 1_000_000, PARSE: 3_000_000}  # cycles of each sample
OLTP = {SEND: 20, SYSTEM_CALL: 5, PARSE: 10, SEARCH: 60, NAMELESS: 3, CUT: 2}
INSERT = {SEND: 40, SYSTEM_CALL: 5, PARSE: 30, SEARCH: 61, NAMELESS: 3, CUT: 1}
FREQUENCY_HZ = 99


def document(stacks: Samples) -> tuple[dict[str, Any], dict[str, int]]:
    """stacks.json of some stacks, and the node of each."""
    modules: dict[str, int] = {}
    frames: dict[tuple[int, str | None], int] = {}
    nodes: dict[tuple[int, int], int] = {}
    ends: dict[str, int] = {}
    for stack in stacks:
        node = -1
        for frame in stack.split(";"):
            module, _, symbol = frame.partition("!")
            place = modules.setdefault(module, len(modules))
            key = node, frames.setdefault((place, symbol or None), len(frames))
            node = nodes.setdefault(key, len(nodes))
        ends[stack] = node
    described = [{"path": path, "build_id": None} for path in modules]
    tree = {"event": "cpu-clock", "frequency_hz": FREQUENCY_HZ, "lost": 0, "modules": described}
    return tree | {"frames": [list(frame) for frame in frames], "nodes": [list(node) for node in nodes]}, ends


def profiled(
    periods: Samples | None = None, **roles: Samples
) -> Callable[[range], dict[str, tuple[Rows, dict[str, Any]]]]:
    """The table `profile` for `Host.more`: the same samples in every second, with periods of cycles."""
    _, ends = document(together(roles))

    def rows(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
        return {
            "profile": (
                [
                    {"tick": tick, "role": role, "stack": str(ends[stack]), "samples": count}
                    | ({"cycles": count * periods.get(stack, 1_000_000)} if periods else {})
                    for role, stacks in roles.items()
                    for stack, count in stacks.items()
                    for tick in ticks
                    if count
                ],
                {"shape": "table"},
            )
        }

    return rows


def together(roles: Mapping[str, Samples]) -> Samples:
    """All stacks of all roles."""
    return {stack: 1 for stacks in roles.values() for stack in stacks}


def make_profiled_run(path: Path, host: Host | None = None, **roles: Samples) -> Path:
    """Write a run directory whose recorder sampled these stacks."""
    host = host or Host()
    host.more = profiled(**roles)
    make_run(path, host)
    write_stacks(path, roles)
    return path


def make_cycles_run(path: Path, clocks: Sequence[int] = (), **roles: Samples) -> Path:
    """As `make_profiled_run`, of hardware cycles with the periods of `PERIODS`.

    The server's CPU has these clock frequencies in turn, in kHz; without any they are not recorded.
    """

    def rows(ticks: range) -> Tables:
        of_cpu: Rows = [
            {"tick": tick, "cpu": "0", "khz": clocks[tick % len(clocks)]} for tick in ticks if clocks
        ]
        frequency: Tables = {"frequency": (of_cpu, {"shape": "table"})} if clocks else {}
        return profiled(PERIODS, **roles)(ticks) | frequency

    make_run(path, Host(more=rows))
    write_json(path / "server" / "stacks.json", document(together(roles))[0] | {"event": "cycles"})
    write_manifest(path)
    return path


def write_stacks(path: Path, roles: Mapping[str, Samples], frequency_hz: int = FREQUENCY_HZ) -> None:
    """Write stacks.json of a run directory."""
    tree = document(together(roles))[0] | {"frequency_hz": frequency_hz}
    write_json(path / "server" / "stacks.json", tree)
    write_manifest(path)


def profiled_execution(path: Path, *, scale: int = 1, repeats: int = 3) -> Path:
    """Two sides of which the second needs more CPU time per statement: to send, and to parse.

    The samples stand for 1.01 and 1.41 s of CPU time in each second, on the second 1 % more in each repeat.
    """

    def samples(stacks: Samples, more: float) -> dict[str, int]:
        return {stack: round(scale * count * (1 + more)) for stack, count in stacks.items()}

    sides = {
        "oltp": [Host(server_ticks={"utime": 68, "stime": 34}) for k in range(repeats)],
        "insert": [Host(server_ticks={"utime": 90, "stime": 52 + k}) for k in range(repeats)],
    }
    written = {
        name: [samples(stacks, more * k) for k in range(repeats)]
        for name, stacks, more in (("oltp", OLTP, 0.0), ("insert", INSERT, 0.01))
    }
    for name, hosts in sides.items():
        for host, stacks in zip(hosts, written[name], strict=True):
            host.more = profiled(server=stacks)
    make_execution(path, sides, "oltp")
    for run in json.loads((path / "execution.json").read_text())["runs"]:
        samples_of = written[run["side"]][run["repeat"] - 1]
        write_stacks(path / run["id"], {"server": samples_of}, scale * FREQUENCY_HZ)
    return path
