"""The programs for other hosts (`./setup --targets`): what they need, and that they run on old hosts."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import pytest
from programs import ROOT, printed

from .packages import Suite

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PROGRAMS = ("loadprint-collect", "loadprint-load", "loadprint-supervise")
# All from glibc; `ld-linux` is its loader.
LIBRARIES = re.compile(r"(libc|libm|libpthread|libdl|librt|libutil|ld-linux-[\w-]+)\.so\.\d")
NEWEST_GLIBC = (2, 28)
MAX_BYTES = 40_000_000

each_machine = pytest.mark.parametrize("machine", MACHINES)
each_program = pytest.mark.parametrize("program", PROGRAMS)


def path_of(machine: str, program: str) -> Path:
    return ROOT / "target" / "hosts" / machine / program


def on_glibc_2_31(machine: str, program: str) -> list[str | Path]:
    """Return the command that runs a program with the loader and the C library of Debian 11."""
    root = Suite("bullseye", MACHINES[machine]).unpacked("libc6")
    if machine == platform.machine():
        libraries = root / "lib" / f"{machine}-linux-gnu"
        (loader,) = libraries.glob("ld-linux-*")
        return [loader, "--library-path", libraries, path_of(machine, program)]
    return [f"qemu-{machine}-static", "-L", root, path_of(machine, program)]


@each_machine
@each_program
def test_it_needs_only_glibc_2_28(machine: str, program: str) -> None:
    path = path_of(machine, program)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", printed("readelf", "--dynamic", path))
    assert "libc.so.6" in needed
    assert [library for library in needed if not LIBRARIES.fullmatch(library)] == []
    symbols = printed("readelf", "--wide", "--dyn-syms", path)
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"@GLIBC_([\d.]+)", symbols)}
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, {', '.join(needed)}, GLIBC {max(versions)}")
    assert max(versions) <= NEWEST_GLIBC
    assert path.stat().st_size < MAX_BYTES


@each_machine
@each_program
def test_it_runs_with_the_libraries_of_debian_11(machine: str, program: str) -> None:
    native = ROOT / "target" / "release" / program
    assert printed(*on_glibc_2_31(machine, program), "--version") == printed(native, "--version")


@each_machine
def test_the_generator_has_the_same_workloads(machine: str) -> None:
    command = ("list", "--format", "json")
    native = ROOT / "target" / "release" / "loadprint-load"
    assert printed(*on_glibc_2_31(machine, "loadprint-load"), *command) == printed(native, *command)


@each_machine
def test_the_recorder_records(machine: str, tmp_path: Path) -> None:
    """In an emulator of the processor, /proc is that of this host."""
    options = ("--out", tmp_path / "run", "--duration", "1s", "--probes", "cpu,disk,nic,memory,process")
    printed(*on_glibc_2_31(machine, "loadprint-collect"), "record", *options)
    assert (tmp_path / "run" / "server" / "disk.parquet").stat().st_size > 0
    fingerprint = json.loads((tmp_path / "run" / "server" / "fingerprint.json").read_text())
    assert fingerprint["kernel"]["release"] == platform.release()
