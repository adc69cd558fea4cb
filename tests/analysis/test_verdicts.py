"""The lines at the head of a table: was the load the limit, who strayed, what the observer took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loadprint.judging import client, observer, separation
from loadprint.judging.comparability import Comparability
from loadprint.judging.findings import Verdict
from loadprint.judging.verdicts import verdicts
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.quantities import Quantity
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.sides import Side
from loadprint.reading.window import Window
from loadprint.tables import header
from recordings import Host, Tables, change_json, make_run

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


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"threads.load.busiest": 0.91}, "busiest thread 91 % of a CPU (limit 90 %)"),
        ({"threads.load.busiest": 0.904}, "busiest thread 90.4 % of a CPU (limit 90 %)"),
        ({"cpu.load.user": 0.9, "cpu.load.idle": 0.1, "cpu.load.system": 0.0}, "its CPUs 90 % (limit 80 %)"),
        (
            {"threads.load.run_delay_ns": 0.08, "threads.load.on_cpu_ns": 0.4},
            "CPU wait 8 % of latency (limit 5 %)",
        ),
        ({"sockets.load.time_wait": 20_000.0}, "71 % of ports in TIME_WAIT (limit 50 %)"),
        # 600 a second that each hold their port for a minute
        (
            {"sockets.load.time_wait": 9.0, "sockets.load.active_opens": 600.0},
            "128 % of ports",
        ),
    ],
)
def test_each_limit_alone_makes_a_side_client_bound(
    tmp_path: Path, rates: dict[str, float], said: str
) -> None:
    run = measured(tmp_path / "r", rates, {"sysctl": PORTS})
    result = client.bound([run])
    assert result.answer == "yes"
    assert result.text.startswith(said)
    assert client.client_bound("a", [run]).startswith("a is client-bound")


def test_below_all_limits_it_is_not_and_the_numbers_are_told(tmp_path: Path) -> None:
    kept = {"sockets.load.time_wait": 0.0, "sockets.load.active_opens": 600.0}
    result = client.bound([measured(tmp_path / "r", kept, {"sysctl": PORTS})])
    assert result.answer == "no"
    assert result.text.startswith("busiest thread 33 % of a CPU, its CPUs 40 %, CPU wait 0.1 % of latency")
    assert result.text.endswith("0 % of ports in TIME_WAIT"), "connections that stay open hold no other port"


WAITS = {"threads.load.run_delay_ns": 0.11, "threads.load.on_cpu_ns": 0.06}
STOLEN = {"cpu.load.steal": 0.07, "cpu.load.user": 0.05, "cpu.load.system": 0.01, "cpu.load.idle": 0.87}


def test_a_wait_for_stolen_cpus_is_a_disturbance_and_does_not_make_the_client_the_limit(
    tmp_path: Path,
) -> None:
    run = measured(tmp_path / "stolen", WAITS | STOLEN)
    result = client.bound([run])
    assert result.answer == "no"
    assert (
        "not counted: CPU wait 11 % of latency where 7.0 % of the load's CPU time was stolen" in result.text
    )
    (disturbed,) = (
        each
        for each in verdicts([Side("a", "A", (run.run,))], [[run]], Comparability("yes", "", (), ()), {})
        if each.key == "disturbed"
    )
    assert disturbed.answer == "1 of 1 runs"
    assert disturbed.text.endswith("7.0 % of the load's CPU time stolen")

    calm = {"cpu.load.steal": 0.0, "cpu.load.idle": 0.94}
    assert client.bound([measured(tmp_path / "own", WAITS | STOLEN | calm)]).answer == "yes", "no steal"
    busy = {"cpu.load.user": 0.6, "cpu.load.idle": 0.32, "threads.load.on_cpu_ns": 0.61}
    assert client.bound([measured(tmp_path / "busy", WAITS | STOLEN | busy)]).answer == "yes", "own demand"


def test_a_wait_behind_other_processes_counts_only_as_far_as_the_load_ran_itself(tmp_path: Path) -> None:
    others = {"cpu.load.user": 0.3, "cpu.load.system": 0.0, "cpu.load.idle": 0.7}
    result = client.bound([measured(tmp_path / "others", WAITS | others)])
    assert result.answer == "no"
    assert "CPU wait 2 % of latency" in result.text  # 0.11 × 0.06 / 0.3


def test_one_bound_repeat_makes_the_side_bound_and_an_unmeasured_one_cannot_tell(tmp_path: Path) -> None:
    calm = measured(tmp_path / "calm")
    assert client.bound([calm, measured(tmp_path / "busy", {"threads.load.busiest": 0.99})]).answer == "yes"
    blind = measured(tmp_path / "blind")
    for name in ("threads.load.busiest", "threads.load.run_delay_ns"):
        del blind.quantities.values[name]
    result = client.bound([replace(blind, load_cpus=None)])
    assert (result.answer, result.text.count("no CPU set was given for the load")) == ("inconclusive", 1)


SEEN = {"threads": 7, "outside_allowed": 0, "outside_ran": 0}
CHECKED = "checked during the run: no thread ran elsewhere"
TWO_NODES = "memory: server 100.0 % on node 0, load 0.9 % on node 0 and 99.1 % on node 1"


def on_nodes(bound: str | None, *pages: int) -> dict[str, Any]:
    """Threads that did not stray, whose process has these pages on the nodes."""
    nodes = {str(node): count for node, count in enumerate(pages)}
    return SEEN | {"memory": {"nodes": nodes, "bound": bound}}


@pytest.mark.parametrize(
    ("server", "load", "further", "answer", "text"),
    [
        (SEEN, SEEN, {"connection": "veth"}, "yes", f"load CPU 1, connected by veth; {CHECKED}"),
        # which int() refuses
        (SEEN | {"outside_ran": "9" * 5000}, SEEN, {}, "yes", CHECKED),
        (SEEN, SEEN | {"outside_ran": 3}, {}, "not separated", "threads were seen on other CPUs 3 times"),
        (None, None, {"verified": None}, "inconclusive", ""),
        # an existing server is not watched
        (None, SEEN, {"connection": "socket"}, "inconclusive", "only the load's threads"),
        (None, None, {"separated": False, "how": "one core"}, "not separated", "one core"),
        # 0.9 % elsewhere: within the tolerance
        (on_nodes("0", 4_000_000), on_nodes("1", 900, 99_100), {}, "yes", f"{TWO_NODES}; {CHECKED}"),
        (on_nodes("0-1", 970, 20, 10), SEEN, {}, "yes", CHECKED),
        (on_nodes("0", 970, 20, 10), SEEN, {}, "not separated", "2.0 % on node 1 and 1.0 % on node 2"),
        (on_nodes(None, 600, 400), SEEN, {}, "yes", "server 60.0 % on node 0 and 40.0 % on node 1; checked"),
        (on_nodes("0"), SEEN, {}, "yes", f"load CPU 1; {CHECKED}"),
    ],
)
def test_pinned_as_the_supervisor_saw_it(  # noqa: PLR0917
    tmp_path: Path, server: Any, load: Any, further: dict[str, Any], answer: str, text: str
) -> None:
    roles = {role: seen for role, seen in (("server", server), ("load", load)) if seen}
    run = measured(tmp_path / "run", placement={"verified": True} | roles | further)
    result = separation.pinned([run])
    assert result.answer == answer
    assert text in result.text


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
    return dict(header.facts([side], [[run]], Comparability("yes", "", (), ()))).get("interrupts")


def test_the_header_names_the_cpus_that_serve_interrupts(tmp_path: Path) -> None:
    run = measured(tmp_path / "a", None, {"interrupts": [VIRTIO, NIC]})
    assert interrupts(run) == "vda on CPU 0-2, eth0 on CPU 1 (server's CPU 0)"
    # only the admin queue, or a kernel that does not report the CPUs
    admin = {"device": "nvme0n1", "irqs": [{"irq": 9, "name": "nvme0q0", "cpus": "2"}]}
    silent = {"device": "eth0", "irqs": [{"irq": 9, "name": "eth0", "cpus": None}]}
    run = measured(tmp_path / "b", None, {"interrupts": [admin, silent]})
    assert interrupts(run) == "nvme0n1 on CPU 2 (server's CPU 0)"


def test_one_run_that_was_not_separated_decides(tmp_path: Path) -> None:
    good = measured(tmp_path / "a")
    bad = measured(tmp_path / "b")
    bad = replace(bad, load_cpus=(0, 1))
    result = separation.pinned([good, bad])
    assert result.answer == "not separated"
    assert result.text.endswith("CPU 0 is in both (in 1 of 2 runs)")


def test_what_the_recorder_took_and_where_it_was(tmp_path: Path) -> None:
    data = {"role": "data", "filesystem": "ext4", "disks": ["vda"]}
    memory = {"role": "journal", "filesystem": "tmpfs", "disks": []}
    cheap = {"process.recorder.cpu": 0.001}
    facts = {"recorder": {"cpus": "1"}, "storage": [data, memory], "cpus": {"online": 2}}
    result = observer.observed([measured(tmp_path / "a", cheap, facts)])
    assert result.answer == "small"
    assert result.cost == "0.10 % of a core and 8 MB"
    assert result.where == "recorder on CPU 1, not the server's, journal in memory"
    facts = {
        "recorder": {"cpus": "0-1"},
        "storage": [data, data | {"role": "journal"}],
        "cpus": {"online": 2},
    }
    result = observer.observed([measured(tmp_path / "b", cheap, facts)])
    assert result.answer == "matters"
    assert result.where == "*recorder on the server's CPU 0*, *journal on the data's disk vda*"
    dear = observer.observed([measured(tmp_path / "c", {"process.recorder.cpu": 0.02})])
    assert (dear.answer, dear.cost) == ("matters", "2.00 % of a core and 8 MB")


def test_what_the_recorder_read_is_told_beside_its_cost(tmp_path: Path) -> None:
    """A recorder that asks MySQL and reads every thread takes more than one that reads a few files."""
    run = measured(tmp_path / "a", {"process.recorder.cpu": 0.002})
    read = ("cpu", "disk", "threads", "ebpf_sched", "ebpf_block", "mysql")
    probes = {name: {1: 0.0, 2: 1.0} for name in read}
    window = Window("server", 1, 2, 1.0, probes, 0, {}, {}, 1_000_000_000)
    result = observer.observed([replace(run, window=window)])
    assert result.reads == "6 probes, including threads, mysql, 2 eBPF"
    assert observer.observed([replace(run, window=None)]).reads == ""


def with_programs(
    path: Path, ns: Mapping[str, int], *, sets: Mapping[str, int] | None = None, cpus: str = "0"
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
                rows += [
                    entity | {"cpus": name, "run_time_ns": None, "run_cnt": None, "calls": calls * tick}
                    for name, calls in sets.items()
                ]
        result = {"ebpf_switches": (switches, {"shape": "table"})}
        return result | ({"ebpf_programs": (rows, {"shape": "table"})} if ns else {})

    roles = {"server": {"host": "db1", "cpus": cpus}, "load": {"host": "db1", "cpus": "1"}}
    run = gather(open_run(make_run(path, Host(seconds=4, more=tables), roles=roles)), Store(), brief=True)
    run.quantities.values["process.recorder.cpu"] = Quantity(0.002, 100.0)
    return run


def test_the_recorder_and_its_ebpf_programs_are_judged_by_one_limit(tmp_path: Path) -> None:
    """The recorder alone is small; with the programs it takes 1.6 % of the server's one CPU."""
    run = with_programs(tmp_path / "a", {"sched_switch": 11_000_000, "sched_wakeup": 3_000_000})
    result = observer.observed([run])
    assert (result.answer, result.limit) == ("matters", "limit 1 % of a core")
    assert result.cost == (
        "0.20 % of a core and 8 MB, its eBPF programs 1.40 % (1.26 % on the server's CPUs), together 1.60 %; "
        "most expensive program sched_switch, 1.10 %"
    )
    small = observer.observed([with_programs(tmp_path / "b", {"sched_switch": 5_000_000})])
    assert small.answer == "small"
    assert small.cost.endswith("its eBPF programs 0.50 % (0.45 % on the server's CPUs), together 0.70 %")


def test_the_limit_grows_with_the_servers_cpus(tmp_path: Path) -> None:
    run = with_programs(tmp_path / "a", {"sched_switch": 14_000_000}, cpus="0,2-4")
    result = observer.observed([run])
    assert (result.answer, result.limit) == (
        "small",
        "limit 1 % of the server's 4 CPUs, i.e. 4 % of a core",
    )


def test_without_the_servers_cpus_the_programs_time_is_of_the_whole_host(tmp_path: Path) -> None:
    result = observer.observed([with_programs(tmp_path / "a", {"sched_switch": 14_000_000}, sets={})])
    assert "its eBPF programs 1.40 % (on all CPUs of the host)" in result.cost


def test_programs_whose_time_is_unknown_are_not_small(tmp_path: Path) -> None:
    """As in a recording from before the table, or where the kernel refused to measure."""
    result = observer.observed([with_programs(tmp_path / "old", {})])
    assert result.answer == "inconclusive"
    assert result.cost == (
        "0.20 % of a core and 8 MB, the time of its eBPF programs not measured: "
        "probe ebpf_programs was not recorded"
    )
    measured_too = with_programs(tmp_path / "new", {"sched_switch": 1_000_000})
    mixed = observer.observed([measured_too, with_programs(tmp_path / "old2", {})])
    assert mixed.answer == "inconclusive", "one repeat without the table"
    run = with_programs(tmp_path / "dear", {})
    run.quantities.values["process.recorder.cpu"] = Quantity(0.02, 100.0)
    assert observer.observed([run]).answer == "matters", "the recorder alone is over the limit"


def test_stolen_time_and_a_quota_disturb_a_run(tmp_path: Path) -> None:
    run = measured(tmp_path / "r", {"cpu.server.steal": 0.04, "cgroup.server.throttled": 0.25})
    calm = measured(tmp_path / "calm")
    sides = [Side("a", "a", (run.run,)), Side("b", "b", (calm.run,))]
    result = verdicts(sides, [[run], [calm]], Comparability("yes", "", (), ()), {})
    assert result[-1] == Verdict(
        "disturbed",
        "1 of 2 runs",
        "r 4.0 % of the server's CPU time stolen; r throttled by its quota in 25 % of periods",
    )
    quiet = verdicts(sides[1:], [[calm]], Comparability("yes", "", (), ()), {})
    assert [each.key for each in result] == ["comparable", *(each.key for each in quiet)]
    # one side alone has no comparability
    assert (quiet[-1].answer, [each.key for each in quiet]) == (
        "inconclusive",
        ["client-bound", "pinned", "observer", "disturbed"],
    )
