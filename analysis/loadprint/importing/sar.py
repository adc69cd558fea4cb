"""Reads sysstat's recordings: an sa file, through `sadf -j FILE -- -A` (sadf(1)), or saved output of it.

sadf prints rates and shares of each interval. Counters are rebuilt by adding rate × seconds, so the mean over
any window of whole intervals is the mean of sar's figures. sadf rounds to two decimals and whole seconds;
counters are therefore doubles, and the metadata has their resolution.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadprint.errors import InputError, as_input_error
from loadprint.importing import sar_tables
from loadprint.importing.imported import LAYOUTS, Imported, ImportedTable, columns_of, unit_of_metric
from loadprint.reading import bounds, strict_json
from loadprint.reading.bounds import MAX_CPUS

SOURCE = "sadf -j"
PRINT = "LC_ALL=C sadf -j -C FILE -- -A"
DECIMAL_COMMA = re.compile(r":\s*-?\d+,\d+")
SECOND = 1_000_000_000
MIN_RESTART_GAP = 1000  # ns between the last tick before a restart and the first one after it
OWN_COLUMNS = {
    "transfers": {"unit": "1", "kind": "counter", "help": "reads, writes and discards together (tps)"},
    "transfer_ms": {"unit": "ms", "kind": "counter", "help": "their waits together (await × tps)"},
}
MAX_MESSAGE = 200  # characters of sadf's message that are reported
MAX_VALUE = 60  # characters of a value that are reported
LONGEST = 10 * 24 * 3600  # seconds of an interval; sadc's users choose seconds to hours
LAST = 1 << 33  # seconds since 1970: the year 2242


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `import sar`."""
    parser.add_argument("--sadf", metavar="PATH", help="path of sadf (default: from PATH)")


def read(arguments: argparse.Namespace) -> Imported:
    """Read one file. Raises InputError."""
    if len(arguments.paths) != 1:
        raise InputError(
            " ".join(str(path) for path in arguments.paths), "are several files", "import one file at a time"
        )
    return load(arguments.paths[0], arguments.sadf)


def load(path: Path, sadf: str | None = None) -> Imported:
    """Convert an sa file, or saved output of `sadf -j`, to a recording. Raises InputError."""
    printed, complaint = _printed(path, sadf)
    host = _host(path, printed, complaint)
    restarts = sorted(at for at, _ in _stamped(path, host, "restarts", "boot"))
    timeline = _Timeline()
    made: dict[str, sar_tables.Integral] = {}
    left_out: list[str] = []
    odd: Counter[str] = Counter()
    for at, seconds, interval in _intervals(path, host, left_out):
        begin, end = timeline.follow(path, at, seconds, restarts)
        lasted = (timeline.times[end] - timeline.times[begin]) / SECOND
        for name, seen in sar_tables.tables(interval, odd).items():
            made.setdefault(name, sar_tables.Integral(name)).add(begin, end, lasted, seen)
    if not timeline.times:
        why = f"contains no usable interval ({left_out[0]})" if left_out else "contains no interval"
        raise InputError(path, why, "record at least two samples after a restart")
    made = {name: integral for name, integral in made.items() if any(integral.rows.values())}
    keys = ", ".join(f"`{key}` {count}x" for key, count in odd.most_common())
    if not made:
        why = f"{len(timeline.times)} points in time, but no value of the reports that are imported"
        raise InputError(path, f"contains {why}{f' ({keys})' * bool(odd)}", f"print all reports: {PRINT}")
    comments = [
        {"at": _utc(at), "text": str(comment.get("com", ""))}
        for at, comment in _stamped(path, host, "comments", "comment")
    ]
    notes = [f"sadf: {complaint[:MAX_MESSAGE]}"] if complaint else []
    if left_out:
        notes.append(f"{len(left_out)} interval{'s' * (len(left_out) > 1)} left out: {left_out[0]}")
    if odd:
        notes.append(f"values that are no rates, or differ under one name, are not in the means: {keys}")
    notes += [f"comment at {comment['at']}: {comment['text']}" for comment in comments]
    notes += [f"the machine was restarted at {_utc(at)}" for at in restarts]
    if len(timeline.stretches) > 1:
        notes.append(
            f"{len(timeline.stretches)} stretches between restarts and gaps: `compare` uses the longest one; "
            "for another one import the output of `sadf -j -C -s FROM -e TO FILE -- -A`"
        )
    cpus = _cpus(host) or 1
    return Imported(
        kind="sar",
        sources=[str(path)],
        realtime_ns=timeline.times,
        tables=[_table(name, integral, cpus) for name, integral in made.items()],
        facts=_facts(host),
        meta={"sar": {"restarts": [_utc(at) for at in restarts], "comments": comments}},
        measure=timeline.longest(),
        notes=notes,
    )


@dataclass
class _Timeline:
    """The times of all ticks, and the first and last tick of each stretch without a restart or a gap."""

    times: list[int] = field(default_factory=list)
    stretches: list[list[int]] = field(default_factory=list)
    passed: int = 0  # restarts

    def follow(self, path: Path, at: int, seconds: int, restarts: list[int]) -> tuple[int, int]:
        """Add an interval that ends at sadf's stamp `at`; return its ticks. Raises InputError."""
        begin = at - seconds * SECOND
        # No interval spans a restart; the last one before it can have the same second.
        passed = bisect_right(restarts, begin)
        following = self.times[-1] + seconds * SECOND if self.times else at
        if not self.times or passed > self.passed or at > following + SECOND:
            self.times.append(max(begin, self.times[-1] + MIN_RESTART_GAP) if self.times else begin)
            self.stretches.append([len(self.times) - 1] * 2)
            end = at
        else:
            # Stamps are truncated to seconds: with an interval of 1 s some repeat and some are skipped.
            end = following if abs(at - following) <= SECOND else at
        self.passed = passed
        if end <= self.times[-1]:
            fix = "if the clock was set back, leave that part out with sadf -s and -e"
            raise InputError(path, f"its times do not increase at {_utc(at)}", fix)
        self.times.append(end)
        self.stretches[-1][1] = len(self.times) - 1
        return len(self.times) - 2, len(self.times) - 1

    def longest(self) -> tuple[int, int]:
        """First and last tick of the longest stretch."""
        first, last = max(self.stretches, key=lambda ends: self.times[ends[1]] - self.times[ends[0]])
        return first, last


def _printed(path: Path, sadf: str | None) -> tuple[str, str]:
    """Output of sadf for a file, and its messages; the file itself if it is such output."""
    with as_input_error(path, "give an sa file"), path.open("rb") as file:
        printed = file.read(64).lstrip()[:1] == b"{"
    if printed:
        fix = f"give an sa file, or a part of the output with -s FROM -e TO: {PRINT}"
        return bounds.read_text(path, bounds.IMPORTED, fix, errors="replace"), ""
    program = sadf or shutil.which("sadf")
    if program is None:
        fix = f"install the package sysstat, or import the output of `{PRINT}` from another host"
        raise InputError(path, "sadf, which reads this file, is not in PATH", fix)
    command = [program, "-j", "-C", os.fspath(path.absolute()), "--", "-A"]
    status, output, complaint = _run(command)
    if len(output) > bounds.IMPORTED:
        fix = "import a part of it: sadf -s FROM -e TO"
        raise InputError(path, f"sadf's output exceeds {bounds.IMPORTED // bounds.MIB} MiB", fix)
    message = " ".join(complaint.decode(errors="replace").replace(os.fspath(path.absolute()), "").split())
    if status != 0:
        message = message.partition(" Try to convert")[0]
        fix = "give an sa file; convert one of an older sysstat with `sadf -c FILE > NEW`"
        raise InputError(
            path,
            f"is not an sa file ({message[:MAX_MESSAGE].rstrip(':') or f'sadf ended with status {status}'})",
            fix,
        )
    return output.decode("utf-8", errors="replace"), message


def _run(command: list[str]) -> tuple[int, bytes, bytes]:
    """Status of a command, and the start of its stdout and stderr. Raises InputError."""
    environment = {**os.environ, "LC_ALL": "C"}
    with tempfile.TemporaryFile() as errors:
        with as_input_error(command[0], "give the path of sadf with --sadf"):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        with process:
            assert process.stdout is not None
            output = process.stdout.read(bounds.IMPORTED + 1)
            if len(output) > bounds.IMPORTED:
                process.kill()
        errors.seek(0)
        return process.returncode, output, errors.read(bounds.HEAD)


def _host(path: Path, text: str, complaint: str) -> Mapping[str, Any]:
    """The only host of a document of sadf. Raises InputError."""
    try:
        hosts = strict_json.loads(text)["sysstat"]["hosts"]
    except json.JSONDecodeError as error:
        line = text[: error.pos].count("\n")
        if DECIMAL_COMMA.search(text.split("\n")[line]):
            fix = f"print it without a locale: {PRINT}"
            raise InputError(
                f"{path} line {line + 1}", "has a decimal comma, which is not JSON", fix
            ) from error
        # sadf prints what it can read of a truncated file and exits with status 0
        why = f"sadf: {complaint[:MAX_MESSAGE]}" if complaint else f"line {error.lineno}: {error.msg}"
        raise InputError(path, f"is truncated or damaged ({why})", "copy it again from its host") from error
    except (KeyError, TypeError, ValueError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            path, f"is not JSON of sadf ({why})", f"give an sa file, or output of: {PRINT}"
        ) from error
    if not isinstance(hosts, list) or len(hosts) != 1 or not isinstance(hosts[0], dict):
        number = len(hosts) if isinstance(hosts, list) else 0
        raise InputError(path, f"contains {number} hosts", "import the recording of one host at a time")
    return hosts[0]


def _intervals(
    path: Path, host: Mapping[str, Any], left_out: list[str]
) -> list[tuple[int, int, Mapping[str, Any]]]:
    """Each interval: its end in ns, its seconds, and its statistics; `left_out` gets the flaws of others."""
    intervals = []
    for statistics in _of(host, "statistics"):
        stamp = statistics.get("timestamp")
        seconds = stamp.get("interval") if isinstance(stamp, dict) else None
        if seconds == 0:
            continue  # the first record, or two in one second
        if not (isinstance(seconds, int | float) and 1 <= seconds <= LONGEST):
            left_out.append(f"its length is {json.dumps(seconds)[:MAX_VALUE]} s")
            continue
        try:
            at = _realtime(path, statistics, "timestamp")
        except ValueError as error:
            left_out.append(str(error))
        else:
            intervals.append((at, int(seconds), statistics))
    return intervals


def _realtime(path: Path, entry: Mapping[str, Any], key: str) -> int:
    """The time of an entry in ns. Raises ValueError if it has none, InputError if it is not in UTC."""
    stamp = entry.get(key)
    try:
        assert isinstance(stamp, dict)
        moment = datetime.fromisoformat(f"{stamp['date']}T{stamp['time']}").replace(tzinfo=UTC)
    except (AssertionError, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"its time is {json.dumps(stamp)[:MAX_VALUE]}") from error
    # `utc` until 12.7.6, then `tz`
    if stamp.get("tz", "UTC") != "UTC" or stamp.get("utc", 1) != 1:
        zone = stamp.get("tz", "local time")
        raise InputError(path, f"its times are in {zone}, not in UTC", f"print it without -T and -t: {PRINT}")
    if not 0 <= moment.timestamp() < LAST:
        raise ValueError(f"its time is {json.dumps(stamp)[:MAX_VALUE]}")
    return int(moment.timestamp()) * SECOND


def _stamped(
    path: Path, host: Mapping[str, Any], list_key: str, key: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Time and content of the entries of a list that have a time."""
    for item in _of(host, list_key):
        with suppress(ValueError):
            yield _realtime(path, item, key), item[key]


def _utc(at: int) -> str:
    return datetime.fromtimestamp(at / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _facts(host: Mapping[str, Any]) -> dict[str, Any]:
    name, release = host.get("nodename"), host.get("release")
    return {
        "host": name if isinstance(name, str) else None,
        "kernel": {"release": release if isinstance(release, str) else None},
        "user_hz": int(sar_tables.USER_HZ),
        "cpus": {"online": _cpus(host)},
    }


def _cpus(host: Mapping[str, Any]) -> int | None:
    number = host.get("number-of-cpus")
    return number if type(number) is int and 0 < number < MAX_CPUS else None


def _table(name: str, integral: sar_tables.Integral, cpus: int) -> ImportedTable:
    columns = columns_of(name, integral.rows)
    ticks = [tick for _, tick in integral.rows]
    if name in LAYOUTS:
        entity = LAYOUTS[name].entity
        meanings = {column: _meaning(name, column, cpus) for column in columns if column not in entity}
        return ImportedTable(name, ticks, columns, meanings)
    kind = "gauge" if name == "memory" else "counter"
    meanings = {
        metric: {"unit": unit_of_metric(name, metric), "kind": kind, "help": ""}
        | ({} if kind == "gauge" else {"resolution": f"{sar_tables.PRINTED:g}"})
        for metric in dict.fromkeys(columns["metric"])
    }
    return ImportedTable(name, ticks, columns, meanings, SOURCE)


def _meaning(table: str, column: str, cpus: int) -> dict[str, str]:
    meaning = OWN_COLUMNS.get(column)
    if meaning is None:
        meaning = dict(zip(("unit", "kind"), LAYOUTS[table].columns[column], strict=True))
    if meaning["kind"] == "counter":
        meaning = {**meaning, "resolution": f"{sar_tables.resolution(table, column, cpus):g}"}
    return {**meaning, "source": SOURCE}


def _of(host: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    items = host.get(key)
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
