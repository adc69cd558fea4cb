"""Placement: how CPUs and addresses are shared out."""

from __future__ import annotations

from typing import Any

import pytest
from plays import plugin

placement = plugin("filter_plugins/placement.py")


def rows(*cpus: tuple[int, int, int]) -> list[dict[str, Any]]:
    return [{"cpu": cpu, "core": core, "socket": socket, "online": True} for cpu, core, socket in cpus]


def sets(result: dict[str, Any]) -> tuple[str, str, bool]:
    return result["server"], result["load"], result["separated"]


def test_sockets_come_first() -> None:
    two = rows(*((cpu, cpu // 2, cpu % 2) for cpu in range(8)))
    assert sets(placement.cpu_sets(two)) == ("0,2,4,6", "1,3,5,7", True)


def with_nodes(*cpus: tuple[int, int, Any]) -> list[dict[str, Any]]:
    return [
        {"cpu": cpu, "core": cpu, "socket": socket, "node": node, "online": True}
        for cpu, socket, node in cpus
    ]


def nodes(result: dict[str, Any]) -> tuple[str, str]:
    return result["server_nodes"], result["load_nodes"]


def test_memory_is_bound_to_the_nodes_of_the_sockets() -> None:
    one_each = with_nodes((0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1))
    assert nodes(placement.cpu_sets(one_each)) == ("0", "1")
    two_each = with_nodes((0, 0, 0), (1, 0, 1), (2, 1, 2), (3, 1, 3))
    assert nodes(placement.cpu_sets(two_each)) == ("0-1", "2-3")
    # lscpu prints numbers as text before util-linux 2.33
    assert nodes(placement.cpu_sets(with_nodes((0, 0, "0"), (1, 1, "1")))) == ("0", "1")


def test_memory_is_not_bound_without_a_split_by_socket_or_with_shared_nodes() -> None:
    for unbound in (
        with_nodes((0, 0, 0), (1, 1, 0)),  # the firmware interleaves the sockets
        with_nodes((0, 0, 0), (1, 0, 1)),  # by physical core
        with_nodes((0, 0, 0)),
        with_nodes((0, 0, None), (1, 1, "-")),  # no NUMA
    ):
        assert nodes(placement.cpu_sets(unbound)) == ("", "")
    assert nodes(placement.cpu_sets(with_nodes((0, 0, 0), (1, 1, 1)), "0", "1")) == ("", "")


def test_thread_siblings_stay_together() -> None:
    # As Linux numbers them: 0-3 are the first threads of four cores, 4-7 the second.
    one = rows(*((cpu, cpu % 4, 0) for cpu in range(8)))
    assert sets(placement.cpu_sets(one)) == ("0-1,4-5", "2-3,6-7", True)


def test_one_core_is_not_separated_and_says_so() -> None:
    result = placement.cpu_sets(rows((0, 0, 0), (1, 0, 0)))
    assert sets(result) == ("0-1", "0-1", False)
    assert "not separated" in result["how"]


def test_unknown_cores() -> None:
    guest = [{"cpu": cpu, "core": "-", "socket": "-", "online": True} for cpu in (0, 2)]
    assert sets(placement.cpu_sets(guest)) == ("0", "2", True)


def test_cpus_that_are_offline_or_that_a_process_may_not_use_are_left_out() -> None:
    six = rows(*((cpu, cpu, 0) for cpu in range(6)))
    six[1]["online"] = False
    assert sets(placement.cpu_sets(placement.usable(six, "0-127"))) == ("0,2-3", "4-5", True)
    assert sets(placement.cpu_sets(placement.usable(six, "1-2,5"))) == ("2", "5", True)


def test_the_campaigns_lists_win_and_an_overlap_is_no_separation() -> None:
    assert sets(placement.cpu_sets([], "0-3", "4")) == ("0-3", "4", True)
    assert sets(placement.cpu_sets([], "0-3", "3-4")) == ("0-3", "3-4", False)


def test_addresses_lie_in_the_benchmark_range_and_avoid_the_hosts() -> None:
    first = placement.free_slash30([], "00000000ff")
    assert first == {"host": "198.18.0.1", "peer": "198.18.0.2"}
    assert placement.free_slash30(["198.18.0.2", "10.0.0.1"], "00000000ff")["host"] == "198.18.0.5"
    last = placement.free_slash30([], f"{(1 << 15) - 1:08x}")
    assert last == {"host": "198.19.255.253", "peer": "198.19.255.254"}


def test_a_full_range_is_said() -> None:
    every = [
        f"198.{18 + third // 256}.{third % 256}.{last}" for third in range(512) for last in range(1, 255, 4)
    ]
    with pytest.raises(ValueError, match="full"):
        placement.free_slash30(every, "0" * 8)


def test_a_host_with_one_role_gives_it_all_usable_cpus() -> None:
    three = rows((0, 0, 0), (1, 1, 0), (2, 2, 0))
    assert sets(placement.host_cpus(three, "server")) == ("0-2", "", True)
    assert sets(placement.host_cpus(three, "load", "0", "1-2")) == ("", "1-2", True)
