"""Whether sides may be compared: settings by what they amount to, hosts by group, what was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from loadprint.commands.operands import resolve
from loadprint.judging.comparability import Comparability, judge, settings
from loadprint.judging.effective import Server, effective
from loadprint.metrics.gather import gather
from loadprint.reading.queries import Store
from recordings import Host, change_json, make_execution, make_run, write_manifest

DURABLE = {
    "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "ON",
    "sync_binlog": "1",
    "innodb_doublewrite": "ON",
    "innodb_flush_method": "O_DIRECT",
}


def amounts(
    version: str, variables: Mapping[str, str], status: Mapping[str, str] | None = None
) -> dict[str, str]:
    told = {"version": version, "variables": variables, "status_begin": status or {}}
    return {each.name: each.value for each in effective(Server.of(told))}


@pytest.mark.parametrize(
    ("version", "variables", "commit"),
    [
        ("8.4.0", {}, "redo synced, binlog synced"),
        ("8.4.0", {"innodb_flush_log_at_trx_commit": "2"}, "redo written, synced every 1 s, binlog synced"),
        (
            "8.4.0",
            {"innodb_flush_log_at_trx_commit": "0"},
            "redo written and synced every 1 s, binlog synced",
        ),
        ("8.4.0", {"sync_binlog": "0"}, "redo synced, binlog left to the kernel"),
        ("5.7.44", {"sync_binlog": "100"}, "redo synced, binlog synced every 100 commits"),
        ("8.0.36", {"log_bin": "OFF"}, "redo synced, no binlog"),
        ("10.6.4-MariaDB", {"innodb_flush_method": "nosync"}, "redo written, never synced, binlog synced"),
        # since 11.0 the method only sets switches, and no value of it leaves out the sync
        ("11.4.2-MariaDB", {"innodb_flush_method": "nosync"}, "redo synced, binlog synced"),
        ("10.11.6-MariaDB", {"innodb_flush_log_at_trx_commit": "3"}, "redo synced, binlog synced"),
    ],
)
def test_what_a_commit_waits_for(version: str, variables: dict[str, str], commit: str) -> None:
    assert amounts(version, DURABLE | variables)["commit"] == commit


def test_a_redo_log_that_was_switched_off_is_none() -> None:
    result = amounts("8.0.36", DURABLE, {"Innodb_redo_log_enabled": "OFF"})
    assert result["commit"] == "no redo log, binlog synced"


@pytest.mark.parametrize(
    ("version", "variables", "expected"),
    [
        ("8.0.36", {"innodb_redo_log_capacity": "1073741824", "innodb_log_file_size": "50331648"}, "1 GiB"),
        ("8.0.28", {"innodb_log_file_size": "50331648", "innodb_log_files_in_group": "2"}, "96 MiB"),
        ("11.4.2-MariaDB", {"innodb_log_file_size": "100663296"}, "96 MiB"),
    ],
)
def test_redo_capacity_under_its_three_names(version: str, variables: dict[str, str], expected: str) -> None:
    assert amounts(version, variables)["redo capacity"] == expected


def test_a_query_cache_needs_a_type_and_a_size() -> None:
    sized = {"query_cache_size": "1048576"}
    assert amounts("10.11.6-MariaDB", sized | {"query_cache_type": "OFF"})["query cache"] == "off"
    assert amounts("10.11.6-MariaDB", sized | {"query_cache_type": "ON"})["query cache"] == "on (1 MiB)"
    assert amounts("9.7.4", {"port": "1"})["query cache"] == "off"


def compared(*words: Path | str) -> Comparability:
    sides, _ = resolve([str(word) for word in words])
    return judge(sides, [[gather(run, Store(), brief=True) for run in side.runs] for side in sides])


def server_of(run: Path, version: str | None = None, **variables: str) -> Path:
    path = run / "load" / "server.json"
    known = json.loads(path.read_text())["variables"]
    return change_json(path, variables=known | variables, **({"version": version} if version else {}))


def fingerprint_of(run: Path, **facts: Any) -> Path:
    return change_json(run / "server/fingerprint.json", **facts)


def pair(tmp_path: Path, **variables: str) -> tuple[Path, Path]:
    host = Host(variables=variables)
    return make_run(tmp_path / "a", host), make_run(tmp_path / "b", host)


def test_two_runs_of_one_configuration_are_comparable(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    server_of(b, server_uuid="other", hostname="db2", innodb_tmpdir="/elsewhere")
    server_of(a, server_uuid="one", hostname="db1", innodb_tmpdir="")
    result = compared(a, b)
    assert (result.answer, result.reason) == ("yes", "no material difference in the configuration")
    assert [each.name for each in result.harmless] == ["hostname", "innodb_tmpdir", "server_uuid"]


def test_durability_that_differs_under_the_same_names_is_told_and_under_others_is_not(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    server_of(b, innodb_doublewrite="DETECT_AND_RECOVER", innodb_use_fdatasync="ON")
    assert compared(a, b).answer == "yes", "another word for the same"
    server_of(b, innodb_doublewrite="DETECT_ONLY")
    result = compared(a, b)
    assert result.answer == "no"
    assert result.reason == "durability: torn pages recovered from the doublewrite buffer | detected only"


def test_a_value_that_means_something_else_in_another_version_is_a_difference(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE, innodb_buffer_pool_instances="8")
    server_of(a, "8.0.19")
    server_of(b, "8.0.36")
    told = {each.name: each for each in compared(a, b).material}
    assert told["version"].values == ("MySQL 8.0.19", "MySQL 8.0.36")
    assert "in the system tablespace" in told["innodb_doublewrite"].values[0]
    assert "in separate files" in told["innodb_doublewrite"].values[1]
    assert "innodb_buffer_pool_instances" not in told
    server_of(b, "10.11.6-MariaDB")
    told = {each.name: each for each in compared(a, b).material}
    assert told["innodb_buffer_pool_instances"].values == ("8 (effective)", "8 (ignored: one)")


def test_lists_are_compared_word_by_word_and_only_words_that_both_know(tmp_path: Path) -> None:
    a, b = pair(tmp_path, optimizer_switch="mrr=on,batched_key_access=off", slave_net_timeout="60")
    server_of(b, optimizer_switch="mrr=off,batched_key_access=off,hash_join=on")
    result = compared(a, b)
    assert [each.summary() for each in result.material] == ["optimizer_switch.mrr on | off"]
    assert result.harmless[0].summary() == "variables that not all sides have 0 | 1"


def test_another_machine_of_the_same_type_is_harmless_and_another_type_is_not(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    for run, number in ((a, "1"), (b, "2")):
        instance = {"instance_id": f"i-{number}", "instance_type": "m5.large"}
        fingerprint_of(run, machine_id=number, product_uuid=number, virtualisation=instance)
    result = compared(a, b)
    assert result.answer == "yes"
    names = ["machine_id", "product_uuid", "virtualisation.instance_id"]
    assert sorted(each.name for each in result.harmless) == names
    fingerprint_of(b, virtualisation={"instance_id": "i-2", "instance_type": "m6i.large"})
    assert [each.name for each in compared(a, b).material] == ["virtualisation.instance_type"]


def test_hosts_are_told_apart_by_group(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    disk = {"role": "data", "filesystem": "ext4", "options": "rw,noatime", "disks": ["vda"]}
    here = {
        "config_hz": 250,
        "cmdline": "root=/dev/vda1 mitigations=off quiet",
        "storage": [disk],
        "block_devices": [{"name": "vda", "scheduler": "none", "write_cache": "write back"}],
        "sysctl": {"vm.swappiness": "1"},
        "memory": {"total_kB": 16_000_000},
    }
    fingerprint_of(a, **here)
    there = {
        "config_hz": 1000,
        "cmdline": "root=/dev/nvme0n1p1 quiet",
        "storage": [disk | {"disks": ["nvme0n1"]}],
        "block_devices": [{"name": "nvme0n1", "scheduler": "none", "write_cache": "write through"}],
        "sysctl": {"vm.swappiness": "60"},
        "memory": {"total_kB": 15_999_000},
    }
    fingerprint_of(b, **there)
    result = compared(a, b)
    told = {(each.group, each.name): each.values for each in result.material}
    assert told == {
        ("hardware", "data disk.write_cache"): ("write back", "write through"),
        ("kernel", "config_hz"): ("250", "1000"),
        ("sysctl and boot", "boot: mitigations"): ("off", "absent"),
        ("sysctl and boot", "sysctl.vm.swappiness"): ("1", "60"),
    }
    assert result.answer == "with reserve"
    assert result.reason == "4 material differences (hardware, kernel, sysctl and boot)"


def test_what_an_older_recorder_did_not_read_is_no_difference(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    fingerprint_of(b, limits={"cpu_quota_us": None}, boost=True, clocksources="tsc", governor=None)
    assert compared(a, b).answer == "yes"


def test_without_a_record_of_the_server_nobody_can_tell(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    (b / "load" / "server.json").unlink()
    write_manifest(b)
    result = compared(a, b)
    assert (result.answer, result.reason) == ("inconclusive", "b has no record of its server")


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
    assert [each.name for each in result.asked] == ["commit", "innodb_io_capacity"]
    server_of(execution / "b1-b-r1", innodb_page_size="4096")
    server_of(execution / "b1-a-r1", innodb_page_size="16384")
    assert [each.name for each in compared(execution).material] == ["innodb_page_size"]


def test_data_are_related_to_the_buffer_pool(tmp_path: Path) -> None:
    execution = planned(tmp_path)
    server_of(execution / "b1-b-r1", innodb_buffer_pool_size=str(1 << 31))
    result = {each.name: each for each in compared(execution).material}
    assert result["data : buffer pool (oltp_read_write)"].values == ("3", "0.75")
    assert result["buffer pool"].values == ("512 MiB", "2 GiB")


def test_every_fact_is_listed_with_what_a_difference_in_it_means(tmp_path: Path) -> None:
    a, b = pair(tmp_path, **DURABLE)
    server_of(b, sync_binlog="0", port="3307")
    server_of(a, port="3306")
    sides, _ = resolve([str(a), str(b)])
    listed = settings(sides, [[gather(run, Store(), brief=True) for run in side.runs] for side in sides])
    kinds = {each.name: each.kind for each in listed}
    assert (kinds["commit"], kinds["port"], kinds["data files"]) == ("material", "harmless", "same")
