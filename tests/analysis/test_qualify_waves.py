"""Instances of a qualification: each runs once, in an order that the seed decides, and shares no host."""

from __future__ import annotations

import pytest
from plays import plugin

instances = plugin("filter_plugins/instances.py")

OWN = [(name, name) for name in ("old1", "old2", "old3", "new1", "new2", "new3")]
# two load hosts for four instances
SHARED = [("old1", "load1"), ("old2", "load2"), ("new1", "load1"), ("new2", "load2")]


@pytest.mark.parametrize("parallel", [1, 2, 6])
def test_every_instance_runs_once_and_no_wave_is_larger(parallel: int) -> None:
    planned = instances.waves(OWN, 7, parallel)
    assert sorted(name for wave in planned for name in wave) == sorted(name for name, _ in OWN)
    assert [len(wave) for wave in planned] == [parallel] * (len(OWN) // parallel)


def test_the_seed_decides_the_order_and_the_inventory_does_not() -> None:
    orders = {str(instances.waves(OWN, seed, 1)) for seed in range(20)}
    assert len(orders) > 10
    assert instances.waves(OWN, 3, 1) == instances.waves(OWN[::-1], 3, 1)


@pytest.mark.parametrize("seed", range(10))
def test_a_load_host_has_one_campaign_at_a_time(seed: int) -> None:
    planned = instances.waves(SHARED, seed, 4)
    load = dict(SHARED)
    assert [sorted(load[name] for name in wave) for wave in planned] == [["load1", "load2"]] * 2
    # an instance may also be the load of another one
    assert len(instances.waves([("a", "b"), ("b", "b")], seed, 4)) == 2
