"""The recorder on Debian's kernels: the status of every probe, and known work counted exactly.

Each kernel boots in QEMU with an initramfs of busybox and the recorder, does known work (guest.sh) and packs
its recording onto a disk. The tables must have what was done, and what the kernel itself counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache

import duckdb
import pytest
from loadprint.metrics.gather import gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from programs import ROOT

from .guest_recording import CONNECTIONS, PINGS, WRITES, Kernel, Recording, record

KERNELS = (
    Kernel("5.10", "bullseye"),
    Kernel("6.1", "bookworm"),
    Kernel("6.12", "trixie"),
    Kernel("newest", "sid"),
)
# Needs the recorder of `./setup --targets`.
AARCH64 = Kernel("6.1 aarch64", "bookworm", "arm64")
each_kernel = pytest.mark.parametrize(
    "kernel", [*KERNELS, pytest.param(AARCH64, marks=pytest.mark.on_request)], ids=str
)
PING_BYTES = 1000 + 8 + 20  # data, ICMP header, IP header
# What the guest lacks: a server and endpoints (off), and hardware (unavailable).
OFF = {"ebpf_exchanges", "ebpf_statements", "mysql", "mysql_statements", "mysql_digests", "scrape"}
UNAVAILABLE = {"energy", "frequency", "ethtool", "nvme", "perf"}
LEAST_SAMPLES, NEAR = 20, 0.2  # of the spinner; of its CPU time
DOCUMENT = ROOT / "docs" / "hosts.md"


Recordings = Callable[[Kernel], Recording]


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """Each kernel boots once."""
    return cache(lambda kernel: record(kernel, tmp_path_factory.mktemp(str(kernel))))


def known_work(of: Recording) -> dict[str, tuple[int, int]]:
    """Return what was recorded and what it must be, by the name of the work."""
    before, after = of.witness("before"), of.witness("after")
    spinner = "role = 'spinner'"
    data = f"device = '{of.text('data').strip()}'"
    flush = f"{data} AND operation = 'flush' AND stage = 'device'"
    connected = "port = '4444' AND side = '{}'"
    return {
        "flushes, `disk`": (of.growth("disk", "flushes", data), WRITES),
        "flushes, `ebpf_block`": (of.growth("ebpf_block", "list_sum(buckets)", flush), WRITES),
        "sectors written, `disk`": (of.growth("disk", "write_sectors", data), WRITES * 8),
        "bytes on `lo`, `nic`": (of.growth("nic", "rx_bytes", "interface = 'lo'"), 2 * PINGS * PING_BYTES),
        "packets on `lo`, `nic`": (of.growth("nic", "tx_packets", "interface = 'lo'"), 2 * PINGS),
        "connections accepted, `ebpf_tcp`": (
            of.growth("ebpf_tcp", "opened", connected.format("accepted")),
            CONNECTIONS,
        ),
        "connections made, `ebpf_tcp`": (
            of.growth("ebpf_tcp", "opened", connected.format("connected")),
            CONNECTIONS,
        ),
        "`sendto` of ping, `ebpf_syscalls`": (
            of.growth("ebpf_syscalls", "count", "role = 'pinger' AND syscall = 'sendto'"),
            PINGS,
        ),
        "CPU ticks of the spinner, `process`": (
            of.growth("process", "utime + stime", spinner),
            after.cpu_ticks - before.cpu_ticks,
        ),
        "its wait for a CPU in ns, `ebpf_sched`": (
            of.growth("ebpf_sched", "sum_ns", f"{spinner} AND state = 'run queue'"),
            after.waited_ns - before.waited_ns,
        ),
        "its voluntary switches, `ebpf_switches`": (
            of.growth("ebpf_switches", "voluntary", spinner),
            after.voluntary - before.voluntary,
        ),
        "its involuntary switches, `ebpf_switches`": (
            of.growth("ebpf_switches", "involuntary", spinner),
            after.involuntary - before.involuntary,
        ),
    }


@each_kernel
def test_every_probe_runs_that_the_machine_has_a_source_for(recording: Recordings, kernel: Kernel) -> None:
    probes = recording(kernel).probes("probes.json")
    statuses = {name: status for name, (status, _) in probes.items()}
    unavailable = UNAVAILABLE - ({"perf"} if kernel is AARCH64 else set())  # its machine has a PMU
    expected = {
        name: "off" if name in OFF else "unavailable" if name in unavailable else "running" for name in probes
    }
    assert statuses == expected, probes
    for name, (status, reason) in probes.items():
        assert status != "unavailable" or ": " in reason, name


@each_kernel
def test_known_work_is_counted_exactly(recording: Recordings, kernel: Kernel) -> None:
    work = known_work(recording(kernel))
    assert {name: found for name, (found, _) in work.items()} == {
        name: must for name, (_, must) in work.items()
    }
    assert work["CPU ticks of the spinner, `process`"][1] > 10


@each_kernel
def test_stacks_of_the_spinner_have_its_program_and_kernel_functions(
    recording: Recordings, kernel: Kernel
) -> None:
    of = recording(kernel)
    with duckdb.connect() as database:
        query = "SELECT DISTINCT stack FROM read_parquet(?) WHERE role = 'spinner'"
        sampled = database.execute(
            query, [str(of.directory / "run" / "server" / "profile.parquet")]
        ).fetchall()
    stacks = of.stacks()
    frames = set()
    for node in (int(stack) for (stack,) in sampled):
        while node >= 0:
            node, frame = stacks["nodes"][node]  # noqa: PLW2901 - towards the outermost frame
            module, symbol = stacks["frames"][frame]
            frames.add((stacks["modules"][module]["path"], symbol))
    assert any(path.endswith("/busybox") for path, _ in frames)
    assert all(symbol for path, symbol in frames if path == "[kernel]")
    assert not any("reason" in key for key in stacks)
    assert stacks["event"] == event_of(kernel)
    assert stacks["lost"] == 0


def event_of(kernel: Kernel) -> str:
    """The event that `profile` samples: QEMU interprets x86 processors without a PMU."""
    return "cycles" if kernel is AARCH64 else "cpu-clock"


@each_kernel
def test_samples_of_the_spinner_stand_for_its_cpu_time(recording: Recordings, kernel: Kernel) -> None:
    """QEMU's PMU counts a cycle for each nanosecond."""
    found = gather(open_run(recording(kernel).directory / "run"), Store()).quantities
    cpu, samples = (found.values[name].rate for name in ("process.spinner.cpu", "profiled.spinner.samples"))
    assert samples > LEAST_SAMPLES
    if event_of(kernel) == "cycles":
        stand_for = found.values["profiled.spinner.hertz"].rate / 1e9
    else:
        stand_for = 1 - found.values["profiled.spinner.not_sampled"].rate / cpu
    assert stand_for == pytest.approx(1.0, abs=NEAR), f"{samples} samples"
    # a shell loop: nearly all in user mode
    program = found.values["profile.spinner.in_busybox"].rate / cpu
    user = found.values["process.spinner.utime"].rate / cpu
    assert program == pytest.approx(user, abs=NEAR), f"{samples} samples"


@each_kernel
def test_time_of_a_pinned_process_is_in_the_time_of_its_cpu(recording: Recordings, kernel: Kernel) -> None:
    """The first tick precedes the reading of /proc before the work, the last tick the one after it."""
    of = recording(kernel)
    first, last = of.ends("cpu", '"user" + system', "cpu = '3'")
    before, after = of.witness("before").cpu3_ticks, of.witness("after").cpu3_ticks
    assert first <= before < last <= after


@each_kernel
def test_without_type_information_only_ebpf_is_unavailable(recording: Recordings, kernel: Kernel) -> None:
    of = recording(kernel)
    probes = of.probes("probes-without-btf.json")
    for name, (status, _) in of.probes("probes.json").items():
        if status == "running" and (name.startswith("ebpf_") or name == "profile"):
            assert probes[name][0] != "running"
            assert "CONFIG_DEBUG_INFO_BTF" in probes[name][1] or "not in the standard set" in probes[name][1]
        elif status == "running" and name != "threads":  # no process is watched
            assert probes[name][0] == "running", name
    assert (of.directory / "run-without-btf" / "server" / "disk.parquet").exists()
    for table in ("ebpf_*.parquet", "profile.parquet", "stacks.json"):
        assert not list(of.directory.glob(f"run-without-btf/server/{table}"))


@pytest.mark.on_request
def test_matrix_is_that_of_the_documentation(
    recording: Recordings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints the matrix. LOADPRINT_BLESS=1 writes it into the documentation."""
    recordings = [recording(kernel) for kernel in (*KERNELS, AARCH64)]
    matrix = f"{_status_table(recordings)}\n\n{_work_table(recordings)}\n"
    with capsys.disabled():
        print(f"\n{matrix}")
    text = DOCUMENT.read_text()
    marked = re.compile(r"(?<=<!-- kernels: written by the test -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)
    if os.environ.get("LOADPRINT_BLESS") == "1":
        DOCUMENT.write_text(marked.sub(lambda _: matrix, text))
        return
    documented = marked.search(text)
    assert documented is not None
    # Debian updates its kernels: their release is not compared.
    rows = [line for line in documented[0].splitlines() if not line.startswith("| release")]
    assert rows == [line for line in matrix.splitlines() if not line.startswith("| release")]


def _table(first: str, recordings: list[Recording], rows: dict[str, Callable[[Recording], str]]) -> str:
    titles = " | ".join(of.kernel.title for of in recordings)
    lines = [f"| {first} | {titles} |", "|---|" + "---|" * len(recordings)]
    lines += [f"| {name} | {' | '.join(map(cell, recordings))} |" for name, cell in rows.items()]
    return "\n".join(lines)


def _status_table(recordings: list[Recording]) -> str:
    names = recordings[0].probes("probes.json")
    words = {"running": "yes", "off": "off", "unavailable": "no"}

    def status(name: str) -> Callable[[Recording], str]:
        if name == "profile":
            return lambda of: str(of.stacks()["event"])
        return lambda of: words[of.probes("probes.json")[name][0]]

    release = {"release": lambda of: of.text("release").strip()}
    return _table("probe", recordings, release | {f"`{name}`": status(name) for name in names})


def _work_table(recordings: list[Recording]) -> str:
    """Exact values of the work that was given; for values that differ from run to run, their difference."""

    def cell(name: str) -> Callable[[Recording], str]:
        def shown(of: Recording) -> str:
            found, must = known_work(of)[name]
            fixed = name.split(",", maxsplit=1)[0] in GIVEN
            return f"{found:,}" if fixed else f"{found - must:+,}".replace("+0", "equal")

        return shown

    return _table("work", recordings, {name: cell(name) for name in known_work(recordings[0])})


GIVEN = {
    *("flushes", "sectors written", "bytes on `lo`", "packets on `lo`"),
    *("connections accepted", "connections made", "`sendto` of ping"),
}
