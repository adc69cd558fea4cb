"""Collects the facts of a run that decide its comparability: host, server, data, load generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from loadprint.judging.effective import Server, effective
from loadprint.judging.facts_host import RULES, any_of, host_facts
from loadprint.judging.findings import Fact
from loadprint.metrics.gather import Measured
from loadprint.numbers import brief
from loadprint.reading.documents import JsonObject
from loadprint.reading.run_documents import LoadResult, PlannedSide

VARIABLES = RULES["server"]
harmless = any_of(VARIABLES["harmless"])
LOAD, VERSION, DATA = "plan.load", "plan.version", "plan.data"


def facts_of(run: Measured, plan: PlannedSide) -> list[Fact]:
    """All facts of a run; `plan` is its side's entry in the campaign, empty outside of campaigns."""
    facts = list(host_facts(run.run, run.server_cpus))
    if run.run.server:
        facts += _server(Server.of(run.run.server))
    if run.run.result:
        facts += _load(run.run.result)
        facts += _data(run, plan)
    return facts


def asked_for(plans: Sequence[PlannedSide]) -> set[str]:
    """Settings that the campaign varies between sides."""
    if not all(plans):
        return set()
    wanted: set[str] = set()
    servers = [plan.server for plan in plans]
    options = [
        {canonical(name.replace("-", "_")): str(value) for name, value in server.options.items()}
        for server in servers
    ]
    for name in {name for option in options for name in option}:
        if len({option.get(name) for option in options}) > 1:
            wanted |= {name} | ({"log_bin"} if name == "skip_log_bin" else set())
    for key, variables in VARIABLES["concerns"].items():
        if _differ(servers, key):
            wanted |= set(variables)
    if any(_differ(servers, key) for key in ("source", "version", "tarball")):
        wanted.add(VERSION)
    if any(
        _differ(plans, key) for key in ("workload", "threads", "generator", "options", "rate", "fraction")
    ):
        wanted |= {LOAD, DATA}
    if _differ(plans, "data"):
        wanted.add(DATA)
    return wanted


def _differ(parts: Sequence[JsonObject], key: str) -> bool:
    return len({str(getattr(part, key, None)) for part in parts}) > 1


def connections(result: LoadResult) -> str:
    """How the load generator served its connections: a thread each, unless it reports another way."""
    kind = result.connections
    return kind if kind == "thread" else f"{kind} on {result.workers} workers"


@cache
def canonical(name: str) -> str:
    """The newest name of a variable."""
    for old, new in VARIABLES["renamed_prefixes"].items():
        if name.startswith(old):
            return str(new) + name.removeprefix(old)
    return str(VARIABLES["renamed"].get(name, name))


def meaning(server: Server, name: str) -> str:
    """What a variable means on this server; empty if its meaning never changed or does not matter."""
    meanings = VARIABLES["meanings"].get(name, {})
    if "when" in meanings and (server.text(name) or "").lower() not in meanings["when"]:
        return ""
    latest = ""
    for since, text in meanings.get(server.flavour, {}).items():
        if server.version >= tuple(map(int, since.split("."))):
            latest = text
    return latest


def _server(server: Server) -> Iterator[Fact]:
    yield Fact("server version", "version", server.release(), inputs=(VERSION,))
    build = str(server.variables.get("version") or "")
    if build:
        slow = any(word in build.lower() for word in ("debug", "asan", "valgrind"))
        yield Fact("server version", "build", build if slow else "release", decides=True)
    used: set[str] = set()
    for fact in effective(server):
        raw = {name: server.text(name) for name in fact.inputs if server.text(name) is not None}
        used |= set(fact.inputs)
        yield replace(fact, inputs=tuple(raw), raw=raw)
    for name, value in server.variables.items():
        compared, text = canonical(name), meaning(server, name)
        raw = {compared: str(value)}
        if name in used:
            if text:  # effective settings may agree while meanings differ
                yield Fact(
                    "server settings", compared, "as listed", meaning=text, inputs=(VERSION,), optional=True
                )
        elif name in VARIABLES["lists"]:
            for word, _, setting in (part.partition("=") for part in str(value).split(",") if part):
                name_of_word = f"{compared}.{word}"
                yield Fact("server settings", name_of_word, setting or "set", inputs=(compared,), raw=raw)
        elif name != "version":
            material = not harmless(compared)
            yield Fact("server settings", compared, str(value), material, False, text, (compared,), raw)


def _load(result: LoadResult) -> Iterator[Fact]:
    facts = {
        "generator": result.generator,
        "generator version": result.generator_version,
        "connections": connections(result),
        "protocol": result.protocol,
        "loop": result.mode,
        "threads": result.threads,
        "TLS": result.tls.mode,
        "compression": result.compression,
    }
    for name, value in facts.items():
        if value is not None:
            yield Fact("load generator", name, str(value), inputs=(LOAD,))


def _data(run: Measured, plan: PlannedSide) -> Iterator[Fact]:
    """Data of the workload; each workload has different data, so that its name is part of the facts."""
    result = run.run.result
    workload, options = run.run.workload, result.options
    facts: dict[str, Any] = {
        name: options[name] for name in RULES["data"]["options"] if options.get(name) not in (None, "")
    }
    tables, size = options.get("tables"), options.get("table-size")
    if isinstance(tables, int) and isinstance(size, int):
        facts["rows in all"] = tables * size
    warehouses, threads = options.get("warehouses"), result.threads
    if isinstance(warehouses, int) and threads:
        facts["warehouses per user"] = f"{warehouses / threads:g}"
    for name, value in facts.items():
        yield Fact("data", f"{name} ({workload})", str(value), inputs=(DATA,))
    pool = Server.of(run.run.server).number("innodb_buffer_pool_size")
    if pool and plan.data_bytes is not None:  # only campaigns state the size of their data
        inputs, name = (DATA, "innodb_buffer_pool_size"), f"data : buffer pool ({workload})"
        yield Fact("data", name, brief(plan.data_bytes / pool, 2), inputs=inputs, optional=True)
