"""The verdicts on trust: was the load the limit, did threads stay on their CPUs, what the recorder cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from conftest import Golden
from loadprint.judging import client
from loadprint.judging.comparability import Comparability
from loadprint.judging.findings import Verdict
from loadprint.judging.verdicts import verdicts
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.quantities import Quantity
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.sides import Side
from loadprint.reading.time_series import Grid
from loadprint.reading.window import Window
from loadprint.tables import header
from recordings import Host, Tables, change_json, make_run

COMPARABLE = Comparability("yes", "", (), ())
PORTS = {"net.ipv4.ip_local_port_range": "32768\t60999"}


def measured(
    path: Path,
    rates: Mapping[str, float] | None = None,
    facts: Mapping[str, Any] | None = None,
    **meta: Any,
) -> Measured:
    """A run as it is read, with some of its quantities as this test wants them."""
    made = make_run(path, Host(seconds=4), **meta)
    change_json(made / "server/fingerprint.json", **(facts or {}))
    result = gather(open_run(made), Store(), brief=True)
    for name, rate in (rates or {}).items():
        result.quantities.values[name] = Quantity(rate, 100.0)
    return result


def with_programs(
    path: Path,
    ns: Mapping[str, int],
    *,
    sets: Mapping[str, int] | None = None,
    cpus: str = "0",
    recorder: float = 0.002,
) -> Measured:
    """A run with eBPF programs that take `ns` a second in 1,000 calls; `sets`: calls of CPU sets."""
    sets = {"server": 900, "load": 100} if sets is None else sets

    def tables(ticks: range) -> Tables:
        figures = ("voluntary", "involuntary", "migrations")
        switches = [{"tick": t, "role": "all", **dict.fromkeys(figures, t)} for t in ticks]
        rows: list[dict[str, Any]] = []
        for tick in ticks:
            for program, rate in ns.items():
                entity = {"tick": tick, "object": "sched", "program": program}
                calls = {"run_cnt": 1000 * tick, "calls": 1000 * tick}
                rows.append(entity | calls | {"cpus": "all", "run_time_ns": 7 + rate * tick})
                none = dict.fromkeys(("run_time_ns", "run_cnt"))
                rows += [
                    entity | none | {"cpus": name, "calls": calls * tick} for name, calls in sets.items()
                ]
        result = {"ebpf_switches": (switches, {"shape": "table"})}
        return result | ({"ebpf_programs": (rows, {"shape": "table"})} if ns else {})

    roles = {"server": {"host": "db1", "cpus": cpus}, "load": {"host": "db1", "cpus": "1"}}
    run = gather(open_run(make_run(path, Host(seconds=4, more=tables), roles=roles)), Store(), brief=True)
    run.quantities.values["process.recorder.cpu"] = Quantity(recorder, 100.0)
    return run


Runs = Callable[[Path], list[Measured]]


def of(rates: Mapping[str, float] | None = None, facts: Mapping[str, Any] | None = None, **meta: Any) -> Runs:
    """One run with these quantities and facts."""
    return lambda path: [measured(path / "r", rates, facts, **meta)]


def placed(server: Any, load: Any, **further: Any) -> Runs:
    """One run whose supervisor saw this of the roles."""
    roles = {role: seen for role, seen in (("server", server), ("load", load)) if seen}
    return of(placement={"verified": True} | roles | further)


def on_nodes(bound: str | None, *pages: int) -> dict[str, Any]:
    """Threads that did not stray, whose process has these pages on the nodes."""
    nodes = {str(node): count for node, count in enumerate(pages)}
    return SEEN | {"memory": {"nodes": nodes, "bound": bound}}


def unknown_load(path: Path) -> list[Measured]:
    blind = measured(path / "r")
    for name in ("threads.load.busiest", "threads.load.run_delay_ns"):
        del blind.quantities.values[name]
    return [replace(blind, load_cpus=None)]


def without_threads(cpus: int, used: float) -> Runs:
    """One run without times of threads, whose load uses `used` cores of its set of CPUs."""
    times = {"cpu.load.cores": cpus, "cpu.load.user": used, "cpu.load.idle": cpus - used}
    times |= {"cpu.load.system": 0.0, "process.load.cpu": used}

    def made(path: Path) -> list[Measured]:
        run = measured(path / "r", times)
        for name in [name for name in run.quantities.values if name.startswith("threads.load.")]:
            del run.quantities.values[name]
        run.quantities.mark_missing("threads.load.", "probe threads was not recorded")
        return [replace(run, load_cpus=tuple(range(1, 1 + cpus)))]

    return made


def read(*probes: str) -> Runs:
    """One run whose recorder read these probes."""
    twice = Grid(np.arange(2), np.arange(2.0), np.zeros(1, bool), np.zeros(2, np.intp), np.arange(2.0))
    grids = dict.fromkeys(probes, twice)
    window = Window("server", 1.0, 0, {}, {}, 1_000_000_000, grids=grids) if probes else None
    return lambda path: [replace(measured(path / "r", {"process.recorder.cpu": 0.002}), window=window)]


def programs(ns: Mapping[str, int], **how: Any) -> Runs:
    return lambda path: [with_programs(path / "r", ns, **how)]


SEEN = {"threads": 7, "outside_allowed": 0, "outside_ran": 0}
SYSCTL = {"sysctl": PORTS}
WAITS = {"threads.load.run_delay_ns": 0.11, "threads.load.on_cpu_ns": 0.06}
STOLEN = {"cpu.load.steal": 0.07, "cpu.load.user": 0.05, "cpu.load.system": 0.01, "cpu.load.idle": 0.87}
LONG_WAIT = {"threads.load.run_delay_ns": 0.4, "cpu.load.steal": 0.012, "cpu.load.idle": 0.928}
CALM = {"cpu.load.steal": 0.0, "cpu.load.idle": 0.94}
BUSY = {"cpu.load.user": 0.6, "cpu.load.idle": 0.32, "threads.load.on_cpu_ns": 0.61}
OTHERS = {"cpu.load.user": 0.3, "cpu.load.system": 0.0, "cpu.load.idle": 0.7}
DISK = {"role": "data", "filesystem": "ext4", "disks": ["vda"]}
MEMORY = {"role": "journal", "filesystem": "tmpfs", "disks": []}
AWAY = {"recorder": {"cpus": "1"}, "storage": [DISK, MEMORY], "cpus": {"online": 2}}
IN_THE_WAY = {
    "recorder": {"cpus": "0-1"},
    "storage": [DISK, DISK | {"role": "journal"}],
    "cpus": {"online": 2},
}
CASES: dict[str, Runs] = {
    "a busy thread": of({"threads.load.busiest": 0.91}, SYSCTL),
    "a thread near the limit": of({"threads.load.busiest": 0.904}, SYSCTL),
    "busy CPUs": of({"cpu.load.user": 0.9, "cpu.load.idle": 0.1, "cpu.load.system": 0.0}, SYSCTL),
    "CPU wait": of({"threads.load.run_delay_ns": 0.08, "threads.load.on_cpu_ns": 0.4}, SYSCTL),
    "ports in TIME_WAIT": of({"sockets.load.time_wait": 20_000.0}, SYSCTL),
    # 600 a second that each hold their port for a minute
    "connections that end": of({"sockets.load.time_wait": 9.0, "sockets.load.active_opens": 600.0}, SYSCTL),
    "connections that stay open": of(
        {"sockets.load.time_wait": 0.0, "sockets.load.active_opens": 600.0}, SYSCTL
    ),
    "a wait for stolen CPUs is a disturbance": of(WAITS | STOLEN),
    "the same wait without steal": of(WAITS | STOLEN | CALM),
    "the same wait by its own demand": of(WAITS | STOLEN | BUSY),
    "a wait that the stolen time does not explain": of(WAITS | STOLEN | LONG_WAIT),
    "a wait behind other processes": of(WAITS | OTHERS),  # 0.11 × 0.06 / 0.3
    "one of two repeats is client-bound": lambda path: [
        measured(path / "calm"),
        measured(path / "busy", {"threads.load.busiest": 0.99}),
    ],
    "no quantity of the load": unknown_load,
    # the set is only 12 % busy
    "one full thread on eight CPUs, without thread times": without_threads(8, 1.0),
    "too little CPU time for a full thread": without_threads(8, 0.89),
    "one CPU, without thread times": without_threads(1, 0.79),
    "threads that stayed": placed(SEEN, SEEN, connection="veth"),
    "threads that strayed": placed(SEEN, SEEN | {"outside_ran": 3}),
    "threads that were not checked": placed(None, None, verified=None),
    "an existing server": placed(None, SEEN, connection="socket"),
    "one core": placed(None, None, separated=False, how="one core"),
    "memory within the tolerance": placed(on_nodes("0", 4_000_000), on_nodes("1", 900, 99_100)),
    "memory of two nodes": placed(on_nodes("0-1", 970, 20, 10), SEEN),
    "memory elsewhere": placed(on_nodes("0", 970, 20, 10), SEEN),
    "memory that is not bound": placed(on_nodes(None, 600, 400), SEEN),
    "memory that was not read": placed(on_nodes("0"), SEEN),
    "one of two repeats is not separated": lambda path: [
        measured(path / "a"),
        replace(measured(path / "b"), load_cpus=(0, 1)),
    ],
    "a recorder elsewhere": of({"process.recorder.cpu": 0.001}, AWAY),
    "a recorder in the way": of({"process.recorder.cpu": 0.001}, IN_THE_WAY),
    "an expensive recorder": of({"process.recorder.cpu": 0.02}),
    "probes": read("cpu", "disk", "threads", "ebpf_sched", "ebpf_block", "mysql"),
    "no window": read(),
    "programs over the limit of both": programs({"sched_switch": 11_000_000, "sched_wakeup": 3_000_000}),
    "programs below it": programs({"sched_switch": 5_000_000}),
    "a limit of four CPUs": programs({"sched_switch": 14_000_000}, cpus="0,2-4"),
    "programs on the whole host": programs({"sched_switch": 14_000_000}, sets={}),
    # as in a recording from before the table, or where the kernel refused to measure
    "programs of unknown time": programs({}),
    "programs of unknown time in one repeat": lambda path: [
        with_programs(path / "new", {"sched_switch": 1_000_000}),
        with_programs(path / "old", {}),
    ],
    "an expensive recorder with unknown programs": programs({}, recorder=0.02),
    "an effect of the programs": of(
        {
            "process.recorder.cpu": 0.001,
            "turns.probed": -0.003,
            "turns.probed.variance": 1e-5,
            "turns.probed.freedom": 60,
        }
    ),
    "stolen time and a quota": of({"cpu.server.steal": 0.04, "cgroup.server.throttled": 0.25}),
}


def test_verdicts(tmp_path: Path, golden: Golden) -> None:
    """The golden file has the lines of each case above a table, and the warning of a client-bound side."""
    lines = []
    for number, (name, made) in enumerate(CASES.items()):
        runs = made(tmp_path / str(number))
        judged = verdicts([Side("a", "a", tuple(run.run for run in runs))], [runs], COMPARABLE, {})
        shown = [f"{verdict.key} {verdict.summary()}" for verdict in judged] + [
            client.client_bound("a", runs)
        ]
        lines += [f"# {name}", *(f"  {text}" for text in shown if text)]
    golden("verdicts.txt", "\n".join(lines) + "\n")


def test_verdicts_of_two_sides(tmp_path: Path) -> None:
    runs = [measured(tmp_path / "r", {"cpu.server.steal": 0.04}), measured(tmp_path / "calm")]
    sides = [Side("a", "a", (runs[0].run,)), Side("b", "b", (runs[1].run,))]
    result = verdicts(sides, [[run] for run in runs], COMPARABLE, {})
    keys = ["comparable", "client-bound", "pinned", "overhead", "disturbed"]
    assert [verdict.key for verdict in result] == keys
    text = "r 4.0 % of the server's CPU time stolen; no canary ran"
    assert result[-1] == Verdict("disturbed", "1 of 2 runs", text, "1 of 2")


VIRTIO = {
    "device": "vda",
    "kind": "disk",
    "irqs": [
        {"irq": 35, "name": "virtio1-config", "cpus": "3"},
        {"irq": 36, "name": "virtio1-req.0", "cpus": "0"},
        {"irq": 37, "name": "virtio1-req.1", "cpus": "1-2"},
    ],
}
NIC = {"device": "eth0", "kind": "nic", "irqs": [{"irq": 38, "name": "eth0-rx-0", "cpus": "1"}]}


def interrupts(run: Measured) -> str | None:
    side = Side("a", "a", (run.run,))
    return dict(header.facts([side], [[run]], COMPARABLE, [None], {})).get("interrupts")


def test_the_header_names_the_cpus_that_serve_interrupts(tmp_path: Path) -> None:
    run = measured(tmp_path / "a", None, {"interrupts": [VIRTIO, NIC]})
    assert interrupts(run) == "vda on CPU 0-2, eth0 on CPU 1 (server's CPU 0)"
    # only the admin queue, or a kernel that does not report the CPUs
    admin = {"device": "nvme0n1", "irqs": [{"irq": 9, "name": "nvme0q0", "cpus": "2"}]}
    silent = {"device": "eth0", "irqs": [{"irq": 9, "name": "eth0", "cpus": None}]}
    run = measured(tmp_path / "b", None, {"interrupts": [admin, silent]})
    assert interrupts(run) == "nvme0n1 on CPU 2 (server's CPU 0)"
