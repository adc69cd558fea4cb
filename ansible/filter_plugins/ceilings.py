"""Lists the steps of `ceilings.yml`: the command of each measurement, its order and its host.

`loadprint ceilings --gather` reads their outputs; docs/ceilings.md describes the measurements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BLOCK = "128M"  # sysbench's memory block, one a thread: larger than a cache
PIPES_PER_S = 100_000  # operations of `perf bench sched pipe` that a slow CPU does in a second
SYNCING = 8  # threads that sync at once
SEQUENTIAL = 16  # requests of 1 MiB in flight
# One ping-pong per CPU, all at once; a line is operations and seconds.
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
PACKAGES = {"perf": "linux-perf"}  # Debian's; other packages have the name of their program
MEASURES = {
    "storage": ["read_bandwidth", "write_bandwidth", "read_iops", "write_iops", "flushes", "flushes_all"],
    "network": ["receive_bandwidth", "send_bandwidth", "round_trips"],
    "memory": ["memory_read", "memory_write", "memory_read_all", "memory_write_all"],
    "switches": ["switches"],
    "cpu": ["cpu_events", "cpu_events_all"],
}


def ceiling_tools(parts: list[str], role: str) -> list[str]:
    """Return the programs that `server` or `load` needs for these parts."""
    needed = ["network"] if role == "load" else list(TOOLS)
    return sorted({tool for part in needed if part in parts for tool in TOOLS[part]})


def ceiling_packages(tools: list[str], given: dict[str, str]) -> list[str]:
    """Return `tool=package=program` of each tool; the program is empty if none was given."""
    return [f"{tool}={PACKAGES.get(tool, tool)}={given.get(tool, '')}" for tool in tools]


def ceiling_tool_paths(lines: list[str]) -> dict[str, Any]:
    """Parse the list of tools: `programs` and `versions` by tool, and the packages that can be unpacked.

    A line is tool, program, version and `package=version`, separated by tabs; missing fields are empty.
    """
    rows = [line.split("\t") for line in lines]
    return {
        "programs": {tool: program for tool, program, _, _ in rows if program},
        "versions": {tool: f"{tool} {version}" for tool, _, version, _ in rows if version},
        "missing": [
            {"tool": tool, "package": package}
            for tool, program, _, package in rows
            if not program and package
        ],
    }


def ceiling_steps(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all steps, in their order.

    `settings`: parts, seconds, depths, file, file_bytes, cpus (all CPUs that switch), threads (of the
    server), address, port, streams, and `programs`, of server and load by tool. A step: id, measure, part,
    tool, where (`server`, `load` or `host`: without a CPU set), argv, depth or None. Steps without their tool
    are omitted.
    """
    kinds = {"storage": _storage, "network": _network, "memory": _memory, "switches": _switches, "cpu": _cpu}
    steps = [step for part in kinds if part in settings["parts"] for step in kinds[part](settings)]
    programs = settings["programs"]
    possible = []
    for step in steps:
        role = "load" if step["where"] == "load" else "server"
        both = [programs[role].get(step["tool"]), programs["server"].get(step["tool"])]
        if all(both):
            step["argv"] = [both[0] if word == "TOOL" else word for word in step["argv"]]
            possible.append(step)
    return possible


def ceiling_left_out(
    settings: dict[str, Any], hosts: dict[str, str], reasons: dict[str, str]
) -> dict[str, str]:
    """Return why a measurement of the chosen parts has no step; `hosts` by role, `reasons` by part."""
    out = {}
    for part in settings["parts"]:
        for measure in MEASURES[part] if part in reasons else []:
            out[measure] = reasons[part]
        for tool in TOOLS[part]:
            without = [
                hosts[role]
                for role in ("server", "load")
                if tool in ceiling_tools([part], role) and not settings["programs"][role].get(tool)
            ]
            for measure in MEASURES[part] if without else []:
                if (measure == "round_trips") == (tool == "sockperf"):
                    out.setdefault(measure, f"{without[0]} has no {tool} and no package of it")
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
    # sockperf omits the first 400 ms and the last 50
    # A separate port: that of iperf3 is in TIME_WAIT, and sockperf's server does not reuse it.
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
    """Return one thread and all threads; on a single CPU they are the same."""
    return [("", 1), *([("_all", settings["threads"])] if settings["threads"] > 1 else [])]


def _numbers(cpus: str) -> list[int]:
    """Parse `0-3,8`."""
    numbers: set[int] = set()
    for part in cpus.split(","):
        first, _, last = part.strip().partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return sorted(numbers)


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {
            "ceiling_tools": ceiling_tools,
            "ceiling_left_out": ceiling_left_out,
            "ceiling_packages": ceiling_packages,
            "ceiling_steps": ceiling_steps,
            "ceiling_tool_paths": ceiling_tool_paths,
        }
