"""`loadprint stacks`: the formats of other tools, and runs without samples."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from loadprint.__main__ import main
from profiles import CUT, PARSE, SEND, make_cycles_run, make_profiled_run
from recordings import Host, make_run, write_json, write_manifest

SAMPLES = {SEND: 20, PARSE: 10, CUT: 5}
SECONDS = 20  # of the window, after its first tick


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_profiled_run(tmp_path / "run", server=SAMPLES, load={PARSE: 1})


def written(run: Path, name: str, *options: str) -> bytes:
    output = run.parent / f"out.{name}"
    assert main(["stacks", str(run), "--format", name, "-o", str(output), *options]) == 0
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


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protocol buffer: numbers, and bytes that are not decoded."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            size = varint()
            yield key >> 3, message[place : place + size]
            place += size


def numbers(packed: int | bytes) -> list[int]:
    assert isinstance(packed, bytes)
    # as the varints of fields without keys
    values, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def test_pprof(run: Path) -> None:
    message = list(fields(gzip.decompress(written(run, "pprof"))))
    strings = [text.decode() for number, text in message if number == 6 and isinstance(text, bytes)]
    assert strings[0] == ""
    functions, locations = {}, {}
    for number, value in message:
        if number in (4, 5):
            assert isinstance(value, bytes)
            inner = dict(fields(value))
            if number == 5:
                name = inner[2]
                assert isinstance(name, int)
                functions[inner[1]] = strings[name]
            else:
                line = inner[4]
                assert isinstance(line, bytes)
                locations[inner[1]] = dict(fields(line))[1]
    leaves = {}
    for number, value in message:
        if number == 2:
            assert isinstance(value, bytes)
            inner = dict(fields(value))
            leaves[functions[locations[numbers(inner[1])[0]]]] = numbers(inner[2])
    period = round(1e9 / 99)
    counts = {"_raw_spin_unlock_bh": 20, "MYSQLparse(THD*)": 10, "[mysqld]": 5}
    assert leaves == {name: [n * SECONDS, n * SECONDS * period] for name, n in counts.items()}
    assert dict(message)[12] == period


def test_stacks_of_hardware_cycles_have_their_cycles(tmp_path: Path) -> None:
    run = make_cycles_run(tmp_path / "run", server={SEND: 20, PARSE: 10})
    cycles = {"_raw_spin_unlock_bh_[k]": 20_000_000 * SECONDS, "MYSQLparse(THD*)": 30_000_000 * SECONDS}
    lines = [line.rpartition(" ") for line in written(run, "folded").decode().splitlines()]
    assert {stack.rpartition(";")[2]: int(count) for stack, _, count in lines} == cycles
    (profile,) = json.loads(written(run, "speedscope"))["profiles"]
    assert (profile["unit"], sorted(profile["weights"])) == ("none", sorted(cycles.values()))
    message = list(fields(gzip.decompress(written(run, "pprof"))))
    strings = [text for number, text in message if number == 6]
    assert b"cycles" in strings
    assert b"nanoseconds" not in strings
    samples = [dict(fields(value)) for number, value in message if number == 2 and isinstance(value, bytes)]
    assert sorted(numbers(sample[2])[1] for sample in samples) == sorted(cycles.values())


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


@pytest.mark.parametrize("name", ["folded", "pprof", "speedscope"])
def test_a_role_without_samples_is_refused(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["stacks", str(run), "--format", name, "--role", "client"]) == 2
    assert "roles with samples: load, server" in capsys.readouterr().err


def test_a_run_without_the_probe_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "plain", Host())
    assert main(["stacks", str(run)]) == 2
    assert "probe profile was not recorded" in capsys.readouterr().err


def test_hostile_symbols_cannot_end_a_frame_or_colour_a_terminal(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", server={CUT: 1})
    path = run / "server" / "stacks.json"
    document = json.loads(path.read_text())
    document["frames"] = [[0, "a;b\n\x1b[31m 7"]]
    write_json(path, document)
    write_manifest(run)
    assert written(run, "folded").decode() == f"a:b \N{REPLACEMENT CHARACTER}[31m 7 {SECONDS}\n"
