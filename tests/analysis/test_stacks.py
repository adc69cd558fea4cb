"""`loadprint stacks`: the formats of other tools, runs without samples, and limits of deep stacks.

Quadratic in their depth, a recording of 300 kB would become 320 MB of text.
"""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from damage import ask, bounded
from loadprint.reading import bounds
from profiles import CUT, PARSE, SEND, make_cycles_run, make_profiled_run
from recordings import Host, Rows, change_json, make_run, write_json, write_manifest

SAMPLES = {SEND: 20, PARSE: 10, CUT: 5}
SECONDS = 20  # of the window, after its first tick


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_profiled_run(tmp_path / "run", server=SAMPLES, load={PARSE: 1})


def written(run: Path, name: str, *options: str) -> bytes:
    output = run.parent / f"out.{name}"
    assert ask("stacks", run, "--format", name, "-o", output, *options).status == 0
    return output.read_bytes()


def test_folded(run: Path) -> None:
    lines = written(run, "folded").decode().splitlines()
    assert len(lines) == 3
    assert f"[mysqld] {5 * SECONDS}" in lines
    command = "dispatch_command(THD*, COM_DATA const*, enum_server_command)"
    start = f"[libc.so.6];pfs_spawn_thread(void*);handle_connection;do_command(THD*);{command}"
    parse = f"{start};dispatch_sql_command(THD*, Parser_state*);MYSQLparse(THD*) {10 * SECONDS}"
    assert parse in lines
    kernel = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_sendto", "tcp_sendmsg_locked")
    frames = ";".join(f"{name}_[k]" for name in (*kernel, "_raw_spin_unlock_bh"))
    assert f"{start};[libc.so.6];{frames} {20 * SECONDS}" in lines


def test_speedscope(run: Path) -> None:
    document = json.loads(written(run, "speedscope"))
    (profile,) = document["profiles"]
    assert profile["endValue"] == pytest.approx(35 * SECONDS / 99)
    assert sum(profile["weights"]) == pytest.approx(profile["endValue"])
    leaves = {document["shared"]["frames"][stack[-1]]["name"] for stack in profile["samples"]}
    assert leaves == {"_raw_spin_unlock_bh", "MYSQLparse(THD*)", "[mysqld]"}


def varints(packed: bytes) -> Iterator[tuple[int, int]]:
    """Numbers of a protocol buffer, each with the place after it."""
    value = shift = 0
    for place, byte in enumerate(packed):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value, place + 1
            value = shift = 0


def fields(message: bytes) -> dict[int, list[Any]]:
    """Fields of a protocol buffer: numbers, and bytes that are not decoded."""
    result: dict[int, list[Any]] = {}
    while message:
        (key, _), (value, end) = itertools.islice(varints(message), 2)
        length = value if key & 7 == 2 else 0
        result.setdefault(key >> 3, []).append(message[end : end + length] if key & 7 == 2 else value)
        message = message[end + length :]
    return result


def pprof(run: Path) -> tuple[list[str], dict[str, list[int]], dict[int, list[Any]]]:
    """The strings of a profile, the values of its samples by the function of their leaf, and all fields."""
    message = fields(gzip.decompress(written(run, "pprof")))
    strings = [text.decode() for text in message[6]]
    functions = {inner[1][0]: strings[inner[2][0]] for inner in map(fields, message[5])}
    locations = {inner[1][0]: fields(inner[4][0])[1][0] for inner in map(fields, message[4])}
    samples = [
        [[n for n, _ in varints(inner[key][0])] for key in (1, 2)] for inner in map(fields, message[2])
    ]
    return strings, {functions[locations[stack[0]]]: values for stack, values in samples}, message


def test_pprof(run: Path) -> None:
    strings, leaves, message = pprof(run)
    assert strings[0] == ""
    period = round(1e9 / 99)
    counts = {"_raw_spin_unlock_bh": 20, "MYSQLparse(THD*)": 10, "[mysqld]": 5}
    assert leaves == {name: [n * SECONDS, n * SECONDS * period] for name, n in counts.items()}
    assert message[12] == [period]


def test_stacks_of_hardware_cycles_have_their_cycles(tmp_path: Path) -> None:
    run = make_cycles_run(tmp_path / "run", server={SEND: 20, PARSE: 10})
    cycles = {"_raw_spin_unlock_bh_[k]": 20_000_000 * SECONDS, "MYSQLparse(THD*)": 30_000_000 * SECONDS}
    lines = [line.rpartition(" ") for line in written(run, "folded").decode().splitlines()]
    assert {stack.rpartition(";")[2]: int(count) for stack, _, count in lines} == cycles
    (profile,) = json.loads(written(run, "speedscope"))["profiles"]
    assert (profile["unit"], sorted(profile["weights"])) == ("none", sorted(cycles.values()))
    strings, leaves, _ = pprof(run)
    assert "cycles" in strings
    assert "nanoseconds" not in strings
    assert sorted(values[1] for values in leaves.values()) == sorted(cycles.values())


@pytest.mark.parametrize("is_of_cycles", [False, True], ids=["clock", "cycles"])
def test_equal_recordings_give_equal_bytes(tmp_path: Path, is_of_cycles: bool) -> None:
    """Rows in another order are the same recording."""
    stacks = {f"{SEND};[kernel]!f{n}": 1 + n % 7 for n in range(200)}
    make = make_cycles_run if is_of_cycles else make_profiled_run
    run = make(tmp_path / "run", server=stacks)
    path = run / "server" / "profile.parquet"
    rows = pq.read_table(path)
    expected = {name: written(run, name) for name in ("pprof", "folded", "speedscope")}
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(rows))
        pq.write_table(rows.take(order), path)
        write_manifest(run)
        assert {name: written(run, name) for name in expected} == expected


def test_another_role(run: Path) -> None:
    assert len(written(run, "folded", "--role", "load").decode().splitlines()) == 1


def test_a_role_without_samples_is_refused(run: Path) -> None:
    assert "roles with samples: load, server" in ask("stacks", run, "--role", "client").line


def test_a_run_without_the_probe_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "plain", Host())
    assert "probe profile was not recorded" in ask("stacks", run).line


def test_hostile_symbols_cannot_end_a_frame_or_colour_a_terminal(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", server={CUT: 1})
    change_json(run / "server/stacks.json", frames=[[0, "a;b\n\x1b[31m 7"]])
    assert written(run, "folded").decode() == f"a:b \N{REPLACEMENT CHARACTER}[31m 7 {SECONDS}\n"


FORMATS = ("folded", "pprof", "speedscope")


def forest(path: Path, chains: int, depth: int, names: Sequence[str] = ("f",)) -> Path:
    """A run with a sample at every node of some chains of calls."""
    count = chains * depth

    def sampled(_: range) -> dict[str, tuple[Rows, dict[str, str]]]:
        rows: Rows = [
            {"tick": 3, "role": "server", "stack": str(node), "samples": 1} for node in range(count)
        ]
        return {"profile": (rows, {"shape": "table"})}

    make_run(path, Host(seconds=4, more=sampled))
    tree = {"event": "cpu-clock", "frequency_hz": 99, "lost": 0, "modules": [{"path": "/m"}]}
    nodes = [[node - 1 if node % depth else -1, node % len(names)] for node in range(count)]
    write_json(path / "server/stacks.json", tree | {"frames": [[0, name] for name in names], "nodes": nodes})
    write_manifest(path)
    return path


@pytest.mark.parametrize("form", FORMATS)
def test_a_stack_deeper_than_the_recorder_stores_is_refused(form: str, tmp_path: Path) -> None:
    run = forest(tmp_path / "run", 1, 20_000)
    assert (run / "server/stacks.json").stat().st_size < 340_000
    line = bounded("stacks", run, "--format", form).line
    assert "a stack of 20,000 frames, more than the limit of 512" in line
    for command in (["compare", run, run], ["report", run, "-o", tmp_path / "page.html"]):
        assert ask(*command).status == 2


def test_deepest_stacks_within_the_limit_are_written(tmp_path: Path) -> None:
    run = forest(tmp_path / "run", 20, bounds.STACK_DEPTH)
    for form in FORMATS:
        assert bounded("stacks", run, "--format", form, "-o", tmp_path / form).status == 0
    lines = (tmp_path / "folded").read_text().splitlines()
    assert max(line.count(";") for line in lines) == bounds.STACK_DEPTH - 1


def test_long_names_of_deep_stacks_are_refused_as_text(tmp_path: Path) -> None:
    """60,000 stacks of 256 names of 8000 characters would be 120 GB."""
    run = forest(tmp_path / "run", 117, bounds.STACK_DEPTH, ["x" * 8000])
    assert "the names in its stacks have 14,668 MiB" in bounded("stacks", run).line
    assert ask("stacks", run, "--format", "pprof", "-o", tmp_path / "a.pb.gz").status == 0


def test_more_frames_than_memory_are_refused(tmp_path: Path) -> None:
    run = forest(tmp_path / "run", 200, bounds.STACK_DEPTH)
    line = ask("stacks", run, "--format", "speedscope").line
    assert "its stacks have 26,265,600 frames, more than the limit of 16,000,000" in line
