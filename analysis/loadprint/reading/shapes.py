"""Declares the shapes of a recording's JSON files: the keys that readers use (docs/recording-format.md)."""

from __future__ import annotations

from loadprint.reading.documents import Each, Kind, ListOf, Shape

TEXT, NUMBER, NATURAL, SCALAR = Kind.TEXT, Kind.NUMBER, Kind.NATURAL, Kind.SCALAR
OBJECT: Shape = {}

MEMORY: Shape = {"nodes": Each(NATURAL), "bound": TEXT}  # nodes: kB by memory node

RUN: Shape = {
    "format_version": NUMBER,
    "id": TEXT,
    "side": TEXT,
    "workload": TEXT,
    "operation": TEXT,
    "status": TEXT,
    "reason": TEXT,
    "generator": TEXT,
    "block": NUMBER,
    "repeat": NUMBER,
    "seed": NUMBER,
    "roles": Each({"host": TEXT}),
    "placement": {
        "connection": TEXT,
        "how": TEXT,
        "reason": TEXT,
        "server": {"memory": MEMORY},
        "load": {"memory": MEMORY},
    },
    "drive": {"rate": NATURAL, "fraction": NATURAL, "maximum": NATURAL, "slowest": TEXT, "saturated": OBJECT},
    "parameters": OBJECT,
    "versions": OBJECT,
    "server": {"options": Each(SCALAR)},
    "imported": {"kind": TEXT, "sources": ListOf(TEXT)},
}
LATENCY = Each(NATURAL)
RESULT: Shape = {
    "workload": TEXT,
    "generator": TEXT,
    "operation": TEXT,
    "status": TEXT,
    "reason": TEXT,
    "mode": TEXT,
    "protocol": TEXT,
    "connections": TEXT,
    "options": OBJECT,
    **dict.fromkeys(
        (
            *("events", "queries", "reads", "writes", "others", "commits", "rollbacks", "rows", "errors"),
            *("reconnects", "seconds", "threads", "rate", "achieved_rate", "backlog_max", "backlog_end"),
            *("drain_seconds", "wait_ms_mean", "service_ms_mean", "workers"),
        ),
        NATURAL,
    ),
    "latency_ms": LATENCY,
    "transactions": Each({"count": NATURAL, "latency_ms": LATENCY, "wait_ms_mean": NATURAL}),
    "errors_by_code": Each(NATURAL),
    "reconnects_by_cause": Each(NATURAL),
    "protocol_calls": Each(NATURAL),
    "per_thread": ListOf({"events": NATURAL, "seconds": NATURAL}),
    "servers": ListOf(TEXT),
    "flags": ListOf(TEXT),
    "tls": {"mode": TEXT, "cipher": TEXT},
    "details": OBJECT,
}
SERVER: Shape = {
    "version": TEXT,
    "version_comment": TEXT,
    "variables": Each(SCALAR),
    "status_warmup": Each(SCALAR),
    "status_begin": Each(SCALAR),
    "status_end": Each(SCALAR),
    "reader_bytes": Each(NATURAL),
}
FINGERPRINT: Shape = {
    "host": TEXT,
    "boot_id": TEXT,
    "cmdline": TEXT,
    "user_hz": NATURAL,
    "config_hz": NATURAL,
    "page_size": NATURAL,
    "cpu_accounting": OBJECT,
    "virtualisation": OBJECT,
    "clocksource": TEXT,
    "cpus": {
        "model": TEXT,
        "microcode": TEXT,
        "sockets": NATURAL,
        "cores": NATURAL,
        "threads_per_core": NATURAL,
        "online": NATURAL,
        "numa": ListOf(OBJECT),
        "list": ListOf({"cpu": NATURAL, "package": SCALAR, "core": SCALAR, "siblings": SCALAR}),
    },
    "mitigations": Each(SCALAR),
    "memory": Each(NATURAL),
    "sysctl": Each(SCALAR),
    "thp": Each(SCALAR),
    "block_devices": ListOf({"name": TEXT, "slaves": ListOf(TEXT), "size_bytes": NATURAL}),
    "storage": ListOf({"role": TEXT, "path": TEXT, "device": TEXT, "disks": ListOf(TEXT)}),
    "nics": ListOf({"name": TEXT}),
    "interrupts": ListOf({"device": TEXT, "irqs": ListOf({"name": TEXT, "cpus": TEXT})}),
    "cpusets": OBJECT,
}
MANIFEST: Shape = {"files": Each({"bytes": NATURAL, "crc32c": TEXT})}
EXECUTION: Shape = {
    "campaign": {
        "name": TEXT,
        "title": TEXT,
        "mode": TEXT,
        "reference": TEXT,
        "repeats": NATURAL,
        "warm": {"promise": TEXT, "redo_capacities_written": NATURAL},
        "sides": Each(OBJECT),
        "equal_load": {"fractions": ListOf(NATURAL)},
    },
    "hash": TEXT,
    "seed": NUMBER,
    "reference": TEXT,
    "status": TEXT,
    "warm_promise": TEXT,
    "sides": Each(
        {
            "label": TEXT,
            "workload": TEXT,
            "operation": TEXT,
            "of": TEXT,
            "threads": NATURAL,
            "fraction": NATURAL,
            "saturated": TEXT,
            "cell": Each(SCALAR),
            "options": Each(SCALAR),
            "server": {"options": Each(SCALAR)},
        }
    ),
    "runs": ListOf({"id": TEXT, "side": TEXT, "block": NATURAL, "repeat": NATURAL}),
    "notes": ListOf(TEXT),
}
TABLE: Shape = {
    "format_version": NUMBER,
    "probe": TEXT,
    "role": TEXT,
    "shape": TEXT,
    "entity": ListOf(TEXT),
    "boot_id": TEXT,
    "interval_ns": NATURAL,
    "ticks": NATURAL,
    "missed": NATURAL,
    "torn_bytes": NATURAL,
    "ended": TEXT,
    "probes": ListOf({"name": TEXT, "status": TEXT, "reason": TEXT}),
    "columns": Each({"unit": TEXT, "resolution": SCALAR, "bounds": ListOf(NATURAL), "bits": NATURAL}),
    "metrics": Each({"unit": TEXT, "resolution": SCALAR, "bits": NATURAL}),
}
EXPERIMENT: Shape = {
    "name": TEXT,
    "title": TEXT,
    "treatment": {"apply": TEXT, "revert": TEXT},
    "schedule": {"order": TEXT, "blocks": NATURAL, "window": NATURAL, "settle": NATURAL},
    "gates": {"mix_distance": NATURAL, "load_difference": NATURAL, "min_cpu": NATURAL, "fixed_work": NATURAL},
}
# call_tree.py checks frames and nodes
STACKS: Shape = {
    "event": TEXT,
    "frequency_hz": NATURAL,
    "lost": NATURAL,
    "modules": ListOf({"path": TEXT, "build_id": TEXT}),
    "frames": ListOf(ListOf(SCALAR)),
}
GUARDS: Shape = {"checks": ListOf({"name": TEXT, "state": TEXT, "text": TEXT})}
BY_NAME: dict[str, Shape] = {
    "run.json": RUN,
    "result.json": RESULT,
    "server.json": SERVER,
    "fingerprint.json": FINGERPRINT,
    "manifest.json": MANIFEST,
    "execution.json": EXECUTION,
    "experiment.json": EXPERIMENT,
    "guards.json": GUARDS,
    "stacks.json": STACKS,
}
