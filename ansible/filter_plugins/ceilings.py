"""The steps of `ceilings.yml`: which command measures what, in which order, where.

`loadprint ceilings --gather` reads their outputs; docs/ceilings.md says what each number is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BLOCK = "128M"  # sysbench's memory block, one a thread: larger than a cache
PIPES_PER_S = 100_000  # operations of `perf bench sched pipe` that a slow CPU does in a second
SYNCING = 8  # threads that sync at once
SEQUENTIAL = 16  # requests of 1 MiB in flight
# One ping-pong a CPU, all at once; a line is operations and seconds.
PIPES = (
    "perf=$1 loops=$2; shift 2; for cpu; do { "
    'took=$(taskset -c "$cpu" "$perf" bench -f simple sched pipe -l "$loops"); echo "$loops $took"; } & '
    "done; wait"
)
TOOLS = {
    "storage": ["fio"],
    "network": ["iperf3", "sockperf"],
    "memory": ["sysbench"],
    "switches": ["perf"],
    "cpu": ["sysbench"],
}
PACKAGES = {"perf": "linux-perf"}  # Debian's; the others are called as their programs
MEASURES = {
    "storage": ["read_bandwidth", "write_bandwidth", "read_iops", "write_iops", "flushes", "flushes_all"],
    "network": ["receive_bandwidth", "send_bandwidth", "round_trips"],
    "memory": ["memory_read", "memory_write", "memory_read_all", "memory_write_all"],
    "switches": ["switches"],
    "cpu": ["cpu_events", "cpu_events_all"],
}


def ceiling_tools(parts: list[str], role: str) -> list[str]:
    """Programs that `server` or `load` needs for these parts."""
    needed = ["network"] if role == "load" else list(TOOLS)
    return sorted({tool for part in needed if part in parts for tool in TOOLS[part]})


def ceiling_packages(tools: list[str], given: dict[str, str]) -> list[str]:
    """`tool=package=program` of each; the program is empty where none was given."""
    return [f"{tool}={PACKAGES.get(tool, tool)}={given.get(tool, '')}" for tool in tools]


def ceiling_found(lines: list[str]) -> dict[str, Any]:
    """Read what the look for tools printed: `programs` and `versions` by tool, and what can be unpacked.

    A line is tool, program, version and `package=version`, with tabs between; what is not there is empty.
    """
    rows = [line.split("\t") for line in lines]
    return {
        "programs": {tool: program for tool, program, _, _ in rows if program},
        "versions": {tool: f"{tool} {version}" for tool, _, version, _ in rows if version},
        "lacking": [
            {"tool": tool, "package": package}
            for tool, program, _, package in rows
            if not program and package
        ],
    }


def ceiling_measures(part: str) -> list[str]:
    """What a part measures."""
    return MEASURES[part]


def ceiling_steps(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """All steps, in their order.

    `settings`: parts, seconds, depths, file, file_bytes, cpus (all CPUs that switch), threads (of the
    server), address, port, streams, and `programs`, of server and load by tool. A step: id, measure, part,
    tool, where (`server`, `load` or `host`: on no CPUs of its own), argv, depth or None. Steps whose tool is
    not there are left out.
    """
    kinds = {"storage": _storage, "network": _network, "memory": _memory, "switches": _switches, "cpu": _cpu}
    steps = [step for part in kinds if part in settings["parts"] for step in kinds[part](settings)]
    there = settings["programs"]
    found = []
    for step in steps:
        role = "load" if step["where"] == "load" else "server"
        both = [there[role].get(step["tool"]), there["server"].get(step["tool"])]
        if all(both):
            step["argv"] = [both[0] if word == "TOOL" else word for word in step["argv"]]
            found.append(step)
    return found


def ceiling_left_out(
    settings: dict[str, Any], hosts: dict[str, str], reasons: dict[str, str]
) -> dict[str, str]:
    """Why a measure of the chosen parts has no step; `hosts` by role, `reasons` by part."""
    out = {}
    for part in settings["parts"]:
        for measure in MEASURES[part] if part in reasons else []:
            out[measure] = reasons[part]
        for tool in TOOLS[part]:
            lacking = [
                hosts[role]
                for role in ("server", "load")
                if tool in ceiling_tools([part], role) and not settings["programs"][role].get(tool)
            ]
            for measure in MEASURES[part] if lacking else []:
                if (measure == "round_trips") == (tool == "sockperf"):
                    out.setdefault(measure, f"{lacking[0]} has no {tool}, and no package of it")
    return out


def _step(
    measure: str, tool: str, argv: list[str], where: str = "server", depth: int | None = None
) -> dict[str, Any]:
    part = next((part for part, names in MEASURES.items() if measure in names), "storage")
    name = measure if depth is None else f"{measure}-{depth}"
    return {
        "id": name,
        "measure": measure,
        "part": part,
        "tool": tool,
        "where": where,
        "argv": argv,
        "depth": depth,
    }


def _storage(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    file = [f"--filename={settings['file']}", f"--size={settings['file_bytes']}", "--direct=1"]
    timed = [
        "--time_based",
        f"--runtime={settings['seconds']}s",
        f"--ramp_time={settings['seconds'] * 250}ms",
    ]

    def fio(measure: str, options: list[str], depth: int | None = None) -> dict[str, Any]:
        argv = ["TOOL", f"--name={measure}", *file, *options, "--output-format=json"]
        return _step(measure, "fio", argv, depth=depth)

    large = ["--bs=1M", "--ioengine=libaio", f"--iodepth={SEQUENTIAL}"]
    yield fio("layout", ["--rw=write", *large])
    yield fio("read_bandwidth", ["--rw=read", *large, *timed])
    yield fio("write_bandwidth", ["--rw=write", *large, *timed])
    for measure, way in (("read_iops", "randread"), ("write_iops", "randwrite")):
        for depth in settings["depths"]:
            small = [f"--rw={way}", "--bs=16k", "--ioengine=libaio", f"--iodepth={depth}"]
            yield fio(measure, [*small, *timed], depth)
    synced = ["--bs=4k", "--ioengine=psync", "--fdatasync=1", *timed]
    yield fio("flushes", ["--rw=write", *synced])
    yield fio(
        "flushes_all", ["--rw=randwrite", f"--numjobs={SYNCING}", "--thread", "--group_reporting", *synced]
    )


def _network(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    address, port, seconds = settings["address"], str(settings["port"]), str(settings["seconds"])
    iperf = ["TOOL", "--client", address, "--port", port, "--time", seconds]
    iperf += ["--parallel", str(settings["streams"]), "--json"]
    yield _step("receive_bandwidth", "iperf3", iperf, "load")
    yield _step("send_bandwidth", "iperf3", [*iperf, "--reverse"], "load")
    # sockperf leaves out the first 400 ms and the last 50
    # A port of its own: that of iperf3 is in TIME_WAIT, and sockperf's server does not reuse it.
    own = str(int(settings["port"]) + 1)
    pings = ["TOOL", "ping-pong", "--tcp", "-i", address, "-p", own, "-m", "64"]
    pings += ["-t", str(settings["seconds"] + 1)]
    yield _step("round_trips", "sockperf", pings, "load")


def _memory(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, threads in _by_threads(settings):
        for way in ("read", "write"):
            argv = ["TOOL", "memory", f"--threads={threads}", f"--time={settings['seconds']}"]
            argv += [f"--memory-oper={way}", f"--memory-block-size={BLOCK}", "--memory-scope=local"]
            yield _step(f"memory_{way}{name}", "sysbench", [*argv, "--memory-total-size=100T", "run"])


def _switches(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    loops = str(settings["seconds"] * PIPES_PER_S)
    argv = ["/bin/sh", "-c", PIPES, "sh", "TOOL", loops, *map(str, _numbers(settings["cpus"]))]
    yield _step("switches", "perf", argv, "host")


def _cpu(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, threads in _by_threads(settings):
        argv = ["TOOL", "cpu", f"--threads={threads}", f"--time={settings['seconds']}", "run"]
        yield _step(f"cpu_events{name}", "sysbench", argv)


def _by_threads(settings: dict[str, Any]) -> list[tuple[str, int]]:
    """One thread, and all; a single CPU's are the same."""
    return [("", 1), *([("_all", settings["threads"])] if settings["threads"] > 1 else [])]


def _numbers(cpus: str) -> list[int]:
    """Read `0-3,8`."""
    found: set[int] = set()
    for part in cpus.split(","):
        first, _, last = part.strip().partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return sorted(found)


class FilterModule:
    """Registers the filters."""

    def filters(self) -> dict[str, Any]:
        """Name them."""
        return {
            "ceiling_found": ceiling_found,
            "ceiling_left_out": ceiling_left_out,
            "ceiling_measures": ceiling_measures,
            "ceiling_packages": ceiling_packages,
            "ceiling_steps": ceiling_steps,
            "ceiling_tools": ceiling_tools,
        }
