"""Reads the parts of a ledger's rows from other probes: requests to the disks, row locks, TCP round trips.

They are of the whole host, the whole server or all connections, and not of the connection threads alone: a
part can exceed its row.
"""

from __future__ import annotations

from collections.abc import Iterable

from loadprint.catalogue.formula import figure
from loadprint.metrics.sources import Source
from loadprint.metrics.sources_ebpf import ROUND_TRIPS
from loadprint.reading.server_disks import namespace, server_disks

TRIP = figure("mean", f"{ROUND_TRIPS}.buckets")
# operations and stages of ebpf_block
REQUESTS = {
    "disk_read_queue": ("read.queue",),
    "disk_read_device": ("read.device",),
    "disk_write_queue": ("write.queue", "write_fua.queue"),
    "disk_write_device": ("write.device", "write_fua.device"),
    "disk_flush": ("flush.queue", "flush.device"),
}


def parts(source: Source) -> None:
    """Mean requests in progress as `ledger.<word>` by REQUESTS, also `row_lock` and `round_trip`."""
    _disks(source)
    _row_locks(source)
    _round_trips(source)


def _disks(source: Source) -> None:
    """The requests to all disks that have files of the server; a multipath disk's are those of its paths."""
    out = source.out
    wanted = server_disks(source.run.fingerprint(source.window.role))
    recorded = {device for device, *_ in out.entities["ebpf_block"]}
    devices = [name for name in sorted(recorded) if (namespace(name) or name) in wanted]
    if not devices:
        unknown = "the fingerprint does not list the disks of the server's files"
        reason = "ebpf_block has no rows of the disks of the server's files" if wanted else unknown
        out.mark_missing("ledger.disk_", reason if recorded else source.window.why_missing("ebpf_block"))
        return
    for word, requests in REQUESTS.items():
        names = (f"ebpf_block.{disk}.{each}.sum_ns" for disk in devices for each in requests)
        out.put(f"ledger.{word}", _sum(source, names))


def _sum(source: Source, names: Iterable[str]) -> float:
    return sum(quantity.rate for name in names if (quantity := source.out.get(name)))


def _row_locks(source: Source) -> None:
    """Row lock waits in progress in the whole server, by its own clock."""
    waits = source.out.get("mysql.row_lock_ms")
    if waits is None:
        source.out.mark_missing("ledger.row_lock", source.out.why("mysql.row_lock_ms"))
    else:
        source.out.put("ledger.row_lock", waits.rate)


def _round_trips(source: Source) -> None:
    """Client statements × the mean round-trip time: each waits for one round trip."""
    out = source.out
    trip, statements = out.get(TRIP), out.get("load.queries") or out.get("server.questions")
    if trip is None or statements is None:
        out.mark_missing("ledger.round_trip", out.why("load.queries" if trip else TRIP))
    else:
        out.put("ledger.round_trip", trip.rate * statements.rate)
