"""Whether sides may be compared: settings by what they amount to, hosts by group, what was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from conftest import Golden
from loadprint.commands.operands import resolve
from loadprint.judging.comparability import Comparability, judge, settings
from loadprint.judging.effective import Server, effective
from loadprint.metrics.gather import gather
from loadprint.reading.documents import Scalar
from loadprint.reading.queries import Store
from loadprint.reading.run_documents import ServerRecord
from recordings import Host, change_json, make_execution, make_run, write_manifest

DURABLE = {
    "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "ON",
    "sync_binlog": "1",
    "innodb_doublewrite": "ON",
    "innodb_flush_method": "O_DIRECT",
}


# version, and the variables that differ from DURABLE
SERVERS: tuple[tuple[str, dict[str, str]], ...] = (
    ("8.4.0", {}),
    ("8.4.0", {"innodb_flush_log_at_trx_commit": "2"}),
    ("8.4.0", {"innodb_flush_log_at_trx_commit": "0"}),
    ("8.4.0", {"sync_binlog": "0"}),
    ("5.7.44", {"sync_binlog": "100"}),
    ("8.0.36", {"log_bin": "OFF"}),
    ("10.6.4-MariaDB", {"innodb_flush_method": "nosync"}),
    # since 11.0 the method only sets switches, and no value of it leaves out the sync
    ("11.4.2-MariaDB", {"innodb_flush_method": "nosync"}),
    ("10.11.6-MariaDB", {"innodb_flush_log_at_trx_commit": "3"}),
    # redo capacity under its three names
    ("8.0.36", {"innodb_redo_log_capacity": "1073741824", "innodb_log_file_size": "50331648"}),
    ("8.0.28", {"innodb_log_file_size": "50331648", "innodb_log_files_in_group": "2"}),
    ("11.4.2-MariaDB", {"innodb_log_file_size": "100663296"}),
    # a query cache needs a type and a size
    ("10.11.6-MariaDB", {"query_cache_size": "1048576", "query_cache_type": "OFF"}),
    ("10.11.6-MariaDB", {"query_cache_size": "1048576", "query_cache_type": "ON"}),
)


def test_effective_settings(golden: Golden) -> None:
    lines = []
    for version, variables in SERVERS:
        server = Server.of(ServerRecord(version=version, variables={**DURABLE, **variables}))
        lines += [
            f"# {version} {variables}",
            *(f"  {setting.name}: {setting.value}" for setting in effective(server)),
        ]
    golden("effective_settings.txt", "\n".join(lines) + "\n")


def test_a_redo_log_that_was_switched_off_is_none() -> None:
    off: dict[str, Scalar] = {"Innodb_redo_log_enabled": "OFF"}
    record = ServerRecord(version="8.0.36", variables={**DURABLE}, status_begin=off)
    assert effective(Server.of(record))[0].value == "no redo log, binlog synced"


Judge = TypeVar("Judge")


def read(judge: Callable[[Any, Any], Judge], *words: Path | str) -> Judge:
    """What a function says about the sides of some operands, and what was measured of their runs."""
    sides, _ = resolve([str(word) for word in words])
    return judge(sides, [[gather(run, Store(), brief=True) for run in side.runs] for side in sides])


def compared(*words: Path | str) -> Comparability:
    return read(judge, *words)


def kinds(*words: Path | str) -> dict[str, str]:
    """What a difference in each fact means, by its name."""
    return {setting.name: setting.kind for setting in read(settings, *words)}


def server_of(run: Path, version: str | None = None, **variables: str) -> Path:
    path = run / "load" / "server.json"
    known = json.loads(path.read_text())["variables"]
    return change_json(path, variables=known | variables, **({"version": version} if version else {}))


def fingerprint_of(run: Path, **facts: Any) -> Path:
    return change_json(run / "server/fingerprint.json", **facts)


def pair(tmp_path: Path, **variables: str) -> tuple[Path, Path]:
    host = Host(variables=variables)
    return make_run(tmp_path / "a", host), make_run(tmp_path / "b", host)


@dataclass(frozen=True)
class Changed:
    """What a run has in addition to the other one."""

    variables: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    version: str | None = None


def instance(number: str, kind: str) -> Changed:
    virtualisation = {"instance_id": f"i-{number}", "instance_type": kind}
    return Changed(facts={"machine_id": number, "product_uuid": number, "virtualisation": virtualisation})


DISK = {"role": "data", "filesystem": "ext4", "options": "rw,noatime", "disks": ["vda"]}
HERE = {
    "config_hz": 250,
    "cmdline": "root=/dev/vda1 mitigations=off quiet",
    "storage": [DISK],
    "block_devices": [{"name": "vda", "scheduler": "none", "write_cache": "write back"}],
    "sysctl": {"vm.swappiness": "1"},
    "memory": {"total_kB": 16_000_000},
}
THERE = {
    "config_hz": 1000,
    "cmdline": "root=/dev/nvme0n1p1 quiet",
    "storage": [DISK | {"disks": ["nvme0n1"]}],
    "block_devices": [{"name": "nvme0n1", "scheduler": "none", "write_cache": "write through"}],
    "sysctl": {"vm.swappiness": "60"},
    "memory": {"total_kB": 15_999_000},
}
POOLS = {"innodb_buffer_pool_instances": "8"}
CASES: dict[str, tuple[Changed, Changed]] = {
    "two instances of one configuration": (
        Changed({"server_uuid": "one", "hostname": "db1", "innodb_tmpdir": ""}),
        Changed({"server_uuid": "other", "hostname": "db2", "innodb_tmpdir": "/elsewhere"}),
    ),
    "another word for the same": (
        Changed(),
        Changed({"innodb_doublewrite": "DETECT_AND_RECOVER", "innodb_use_fdatasync": "ON"}),
    ),
    "another durability": (Changed(), Changed({"innodb_doublewrite": "DETECT_ONLY"})),
    "another meaning in another version": (
        Changed(POOLS, version="8.0.19"),
        Changed(POOLS, version="8.0.36"),
    ),
    "another meaning in another flavour": (
        Changed(POOLS, version="8.0.19"),
        Changed(POOLS, version="10.11.6-MariaDB"),
    ),
    "lists, by the words that both have": (
        Changed({"optimizer_switch": "mrr=on,batched_key_access=off", "slave_net_timeout": "60"}),
        Changed(
            {"optimizer_switch": "mrr=off,batched_key_access=off,hash_join=on", "slave_net_timeout": "60"}
        ),
    ),
    "another machine of the same type": (instance("1", "m5.large"), instance("2", "m5.large")),
    "another type of machine": (instance("1", "m5.large"), instance("2", "m6i.large")),
    "another host": (Changed(facts=HERE), Changed(facts=THERE)),
    "an older recorder": (
        Changed(),
        Changed(
            facts={"limits": {"cpu_quota_us": None}, "boost": True, "clocksources": "tsc", "governor": None}
        ),
    ),
}


def test_differences(tmp_path: Path, golden: Golden) -> None:
    lines = []
    for number, (name, sides) in enumerate(CASES.items()):
        runs = pair(tmp_path / str(number), **DURABLE)
        for run, changed in zip(runs, sides, strict=True):
            server_of(run, changed.version, **changed.variables)
            fingerprint_of(run, **changed.facts)
        result = compared(*runs)
        lines.append(f"# {name}: {result.answer}, {result.reason}")
        lines += [f"  {difference.group}: {difference.summary()}" for difference in result.material]
        lines += [f"  harmless: {difference.summary()}" for difference in result.harmless]
    golden("comparability.txt", "\n".join(lines) + "\n")


def test_without_a_record_of_the_server_nobody_can_tell(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    (b / "load" / "server.json").unlink()
    write_manifest(b)
    result = compared(a, b)
    assert (result.answer, result.reason) == ("unknown", "b has no record of its server")


def test_a_fact_of_every_host_that_was_not_recorded_is_unknown(tmp_path: Path) -> None:
    runs = pair(tmp_path, **DURABLE)
    known: dict[str, Any] = {"kernel": {"release": "6.1.0"}, "memory": {"total_kB": 16_000_000}}
    for run in runs:
        fingerprint_of(run, cpus={"model": None, "cores": 2}, **known)
    result = compared(*runs)
    assert (result.answer, result.unknown) == ("yes", ("a, b did not record cpus.model",))
    # also one that the other side has
    fingerprint_of(runs[0], cpus={"model": "implementer 0x41, part 0xd0c", "cores": 2, "microcode": "0x1"})
    assert compared(*runs).unknown == ("b did not record cpus.microcode, cpus.model",)
    fingerprint_of(runs[1], cpus={"model": "implementer 0x41, part 0xd40", "cores": 2, "microcode": "0x1"})
    result = compared(*runs)
    assert ([difference.name for difference in result.material], result.unknown) == (["cpus.model"], ())
    fingerprint_of(runs[1], cpus={"model": "implementer 0x41, part 0xd40"})
    assert kinds(*runs)["cpus.cores"] == "unknown"


def without(run: Path, *names: str) -> Path:
    """A run whose record of the server lacks some variables."""
    path = run / "load" / "server.json"
    known = json.loads(path.read_text())["variables"]
    return change_json(path, variables={name: value for name, value in known.items() if name not in names})


POOL = {"innodb_buffer_pool_size": str(1 << 29), "innodb_io_capacity": "200"}


def test_a_material_fact_that_one_side_lacks_is_unknown(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE, **POOL)
    assert compared(a, b).answer == "yes"
    without(b, "innodb_buffer_pool_size", "port")
    result = compared(a, b)
    assert (result.answer, result.reason) == ("unknown", "b did not record buffer pool")
    assert result.unknown[0] == result.reason
    # a server of the same release has the same variables, one of another release has others
    without(b, "innodb_io_capacity")
    assert compared(a, b).reason == "b did not record buffer pool, innodb_io_capacity"
    server_of(b, "8.0.36")
    result = compared(a, b)
    assert (result.answer, result.unknown[0]) == ("with reserve", "b did not record buffer pool")


def test_a_fact_that_one_repeat_lacks_is_unknown(tmp_path: Path) -> None:
    hosts = [Host(variables={**DURABLE, **POOL})] * 2
    execution = make_execution(tmp_path / "x", {"a": hosts, "b": hosts}, "a")
    without(execution / "b2-a-r2", "innodb_buffer_pool_size")
    result = compared(execution)
    assert (result.answer, result.reason) == ("unknown", "a (1 of 2 runs) did not record buffer pool")


def test_settings_of_other_kernels_generators_and_workloads_are_not_unknown(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    fingerprint_of(a, kernel={"release": "6.1.0"}, sysctl={"vm.swappiness": "1", "vm.new": "1"})
    fingerprint_of(b, kernel={"release": "6.1.0"}, sysctl={"vm.swappiness": "1"})
    change_json(a / "load/result.json", generator="sysbench", compression="zlib", options={"tables": 4})
    change_json(b / "load/result.json", generator="sysbench")
    assert compared(a, b).reason == "b did not record compression, sysctl.vm.new, tables (oltp_read_write)"
    fingerprint_of(b, kernel={"release": "6.9.0"})
    change_json(b / "load/result.json", generator="hammerdb")
    result = compared(a, b)
    assert (result.answer, result.unknown) == (
        "with reserve",
        ("a, b did not record cpus.cores, memory.total",),
    )


def test_a_debug_build_against_a_release_build_decides(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE, version="9.7.4")
    change_json(b / "load/server.json", variables=DURABLE | {"version": "9.7.4-debug"})
    assert compared(a, b).reason == "server version: build release | 9.7.4-debug"


def planned(tmp_path: Path, **server: Any) -> Path:
    """Two sides whose plans differ in `server`, and whose servers print what these plans ask."""
    base: dict[str, Any] = {"profile": "durable", "options": {}, "buffer_pool_size": 1 << 29}
    plans = {"a": {"server": base, "data": "d"}, "b": {"server": base | server, "data": "d"}}
    both = {**DURABLE, "innodb_buffer_pool_size": str(1 << 29)}
    hosts = {name: [Host(variables=both)] for name in plans}
    data = {"data": {"d": {"size": 3 << 29}}}
    return make_execution(tmp_path / "x", hosts, "a", plans=plans, campaign=data)


def test_what_the_campaign_asks_for_is_varied_and_not_held_against_it(tmp_path: Path) -> None:
    execution = planned(tmp_path, profile="blog", options={"innodb-io-capacity": 200})
    server_of(execution / "b1-b-r1", innodb_flush_log_at_trx_commit="0", innodb_io_capacity="200")
    server_of(execution / "b1-a-r1", innodb_io_capacity="1000")
    result = compared(execution)
    assert (result.answer, result.reason) == (
        "yes",
        "no material difference in the configuration apart from what the campaign varies",
    )
    assert [difference.name for difference in result.asked] == ["commit", "innodb_io_capacity"]
    server_of(execution / "b1-b-r1", innodb_page_size="4096")
    server_of(execution / "b1-a-r1", innodb_page_size="16384")
    assert [difference.name for difference in compared(execution).material] == ["innodb_page_size"]


def test_what_differs_between_two_executions_is_asked_for_by_none(tmp_path: Path) -> None:
    old, new = (planned(tmp_path / name, options={"sync_binlog": 0}) for name in ("old", "new"))
    change_json(new / "execution.json", started="2026-12-01T00:00:00+00:00")
    server_of(new / "b1-b-r1", sync_binlog="0")
    assert compared(f"{new}:a", f"{new}:b").material == ()
    assert [difference.name for difference in compared(f"{old}:a", f"{new}:b").material] == ["commit"]


def test_data_are_related_to_the_buffer_pool(tmp_path: Path) -> None:
    execution = planned(tmp_path)
    server_of(execution / "b1-b-r1", innodb_buffer_pool_size=str(1 << 31))
    result = {difference.name: difference for difference in compared(execution).material}
    assert result["data : buffer pool (oltp_read_write)"].values == ("3", "0.75")
    assert result["buffer pool"].values == ("512 MiB", "2 GiB")


def test_every_fact_is_listed_with_what_a_difference_in_it_means(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    server_of(b, sync_binlog="0", port="3307")
    server_of(a, port="3306")
    found = kinds(a, b)
    assert (found["commit"], found["port"], found["data files"]) == ("material", "harmless", "same")
