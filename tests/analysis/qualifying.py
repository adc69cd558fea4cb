"""Executions made for the tests of `qualify`, and what is asked of a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadprint.commands.qualify.measure import Reader
from loadprint.commands.qualify.qualification import qualify
from loadprint.commands.qualify.qualify_report import Qualification
from loadprint.commands.qualify.spec import Spec
from recordings import Host, make_execution, write_json, write_manifest

SECONDS = 40
RUNS = (0, 1, -1)  # what the repeats of a host differ by, in tenths of a percent


def asked(**changed: Any) -> Spec:
    """One row at one concurrency, in windows of 30 s."""
    plain: dict[str, Any] = {
        "rows": {"operations": "3 %"},
        "concurrencies": 1,
        "sustained": {"at_least": "30s", "burst": "10s"},
    }
    return Spec.model_validate(plain | changed)


def execution(
    path: Path,
    sides: Mapping[str, Host],
    spread: tuple[int, ...] = RUNS,
    profile: str = "durable",
    fraction: float | None = None,
) -> Path:
    """Repeats of hosts with 1000 events a second or so; a side called NAME-tN has N threads."""
    made, plans = {}, {}
    for name, host in sides.items():
        threads = int(name.partition("-t")[2].partition("@")[0] or 4)
        held = {"threads": threads, **({"rate": host.result.get("rate", 700)} if "@" in name else {})}
        made[name] = [
            replace(host, seconds=SECONDS, events=host.events + by, result={**host.result, **held})
            for by in spread
        ]
        plans[name] = {
            "of": name.partition("-t")[0],
            "threads": threads,
            "workload": host.workload,
            "cell": {"threads": threads},
            "server": {"profile": profile},
            **({"fraction": fraction or 0.7} if "@" in name else {}),
        }
    return make_execution(path, made, next(iter(sides)), plans)


def at(events: int, host: str = "db1", **changed: Any) -> Host:
    """Return a host with a constant rate of events per second."""
    variables = {"innodb_flush_log_at_trx_commit": "1", "innodb_io_capacity": "100"}
    return Host(events=events, host=host, variables=variables, **changed)


def waiting(events: int, host: str, ms: float, rate: float) -> Host:
    return at(events, host, latency_ms=ms, result={"rate": rate, "achieved_rate": rate})


@dataclass(frozen=True)
class Base:
    """A baseline and the reader of its runs, which reads each once."""

    path: Path
    reader: Reader

    def against(self, path: Path, host: Host, given: Spec, **how: Any) -> Qualification:
        """Judge three repeats of a candidate."""
        made = execution(path / "new", {"oltp": host}, **how)
        return self.judge([str(made)], given)

    def judge(self, candidate: list[str], given: Spec) -> Qualification:
        return qualify([str(self.path)], candidate, given, self.reader)


def changed(path: Path, file: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite a JSON file of every run below a path."""
    for actual in path.rglob(file):
        value = json.loads(actual.read_text())
        change(value)
        write_json(actual, value)
        write_manifest(actual.parents[1])
