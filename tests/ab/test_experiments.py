"""Whole experiments: a change with a big true effect is seen, with its sign; no change is not seen."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

from .bench import Bench, Server

SCHEDULE = {"order": "ABBA", "blocks": 3, "settle": 0.3}
# short windows on a shared machine: this is about the effect, not about the load
GATES = {"load_difference": 1000.0, "mix_distance": 0.5, "fixed_work": 1000.0}
# Seconds. Where the machine stalls a short window lacks readings, and the effect is not measured.
WINDOWS = (2.0, 4.0, 8.0, 16.0, 32.0)
# a read of the digests that a window did not wait for is missing in it
DIGESTS = 6


def conclusive(directory: Path, server: Server, treatment: dict[str, str]) -> dict[str, Any]:
    """An experiment that found something, with windows that are long enough for this machine."""
    directory.mkdir()
    for window in WINDOWS:
        shown = experiment(directory / f"{window}", server, treatment, window)
        if shown["verdict"] != "not measured" and digests(shown) >= DIGESTS:
            return shown
    raise AssertionError(f"{shown['sentence']}; {digests(shown)} windows with digests")


def digests(shown: dict[str, Any]) -> int:
    """How many windows have statement digests."""
    return sum(bool(window["digests"]) for window in shown["windows"])


def experiment(directory: Path, server: Server, treatment: dict[str, str], window: float) -> dict[str, Any]:
    directory.mkdir()
    bench = Bench(directory, server)
    schedule = SCHEDULE | {"window": window}
    bench.document |= {"treatment": treatment, "schedule": schedule, "gates": GATES}
    status, said = bench.run()
    assert status == 0, said
    # they hold commands and what these print
    for name in ("experiment.json", "guards.json", "switches.jsonl"):
        (kept,) = directory.rglob(f"load/{name}")
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600, name
    (guards,) = directory.rglob("load/guards.json")
    assert json.loads(guards.read_text())["reverted"]
    return bench.shown()


def headline(result: dict[str, Any]) -> dict[str, Any]:
    actual: dict[str, Any] = next(e for e in result["effects"] if e["key"] == "queries_per_cpu_second")
    return actual


def test_a_hidden_index_costs_and_nothing_costs_nothing(tmp_path: Path, server: Server) -> None:
    """The index of production's lookups is made invisible, so that they scan; against an A/A experiment."""
    # first, for the queries that wait while there is no index are done when it is back
    nothing = dict.fromkeys(("apply", "revert", "verify_applied", "verify_reverted"), "true")
    same = conclusive(tmp_path / "same", server, nothing)
    where = 'WHERE TABLE_SCHEMA="sbtest" AND INDEX_NAME="k_1"'
    visible = server.sql(f"SELECT IS_VISIBLE FROM information_schema.STATISTICS {where}")
    costly = conclusive(
        tmp_path / "costly",
        server,
        {
            "apply": server.sql("ALTER TABLE sbtest.sbtest1 ALTER INDEX k_1 INVISIBLE"),
            "revert": server.sql("ALTER TABLE sbtest.sbtest1 ALTER INDEX k_1 VISIBLE"),
            "verify_applied": f"test $({visible}) = NO",
            "verify_reverted": f"test $({visible}) = YES",
        },
    )
    effect, none = headline(costly), headline(same)
    assert costly["verdict"] == "worse", json.dumps(costly["effects"], indent=1)
    assert effect["high"] < 1
    assert len(costly["windows"]) == 12
    assert [w["variant"][0] for w in costly["windows"][:4]] == ["b", "t", "t", "b"]
    assert len(costly["flips"]) == 6
    assert all(0 < w["fixed_work_ns"] < 1e9 for w in costly["windows"])
    # one in twenty A/A experiments is called different by chance, but not by a quarter of this effect
    unseen = none["low"] < 1 < none["high"]
    assert unseen or abs(math.log(none["ratio"])) < 0.25 * abs(math.log(effect["ratio"])), same["sentence"]
