"""Prometheus text and OpenMetrics as series, for snapshots in files: one malformed line spoils a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadprint.errors import InputError

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
QUOTED = r'"(?:[^"\\]|\\.)*"'
LABEL = re.compile(rf"\s*({NAME}|{QUOTED})\s*(?:=\s*({QUOTED}))?\s*(?:,|$)")
SAMPLE = re.compile(
    rf"\s*({NAME})?\s*(?:\{{((?:[^\"}}]|{QUOTED})*)\}})?\s*([^\s{{}}]+)(?:\s+(-?[0-9.eE+]+))?\s*(?:# \{{.*)?$"
)
ESCAPES = {r"\\": "\\", r"\n": "\n", r"\"": '"'}
GOES = re.compile(r'\\[\\n"]')
NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.I
)


@dataclass(frozen=True)
class Sample:
    """One value; the time in ns where the line has one."""

    name: str
    labels: Mapping[str, str]
    value: float
    realtime_ns: int | None


def samples(path: Path, text: str) -> Iterator[Sample]:
    """Yield the samples of an exposition. Raises InputError naming the line."""
    lines = text.split("\n")
    # only OpenMetrics has an end, and times in seconds
    per_unit = 1_000_000_000 if any(line == "# EOF" for line in lines[-2:]) else 1_000_000
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = SAMPLE.fullmatch(line)
        if found is None or not NUMBER.fullmatch(found[3]):
            raise _malformed(path, number, line)
        name, labels = found[1], dict[str, str]()
        for key, value in _labels(path, number, found[2] or ""):
            if value is None:
                name = key
            else:
                labels[key] = value
        if not name:
            raise _malformed(path, number, line)
        try:
            at = None if found[4] is None else round(float(found[4]) * per_unit)
        except (ValueError, OverflowError) as error:
            raise _malformed(path, number, line) from error
        yield Sample(name, labels, float(found[3]), at)


def _labels(path: Path, number: int, text: str) -> Iterator[tuple[str, str | None]]:
    place, text = 0, text.rstrip()
    while place < len(text):
        found = LABEL.match(text, place)
        if found is None:
            raise _malformed(path, number, text[place:])
        yield _plain(found[1]), None if found[2] is None else _plain(found[2])
        place = found.end()


def _plain(text: str) -> str:
    if not text.startswith('"'):
        return text
    return GOES.sub(lambda escape: ESCAPES[escape[0]], text[1:-1])


def _malformed(path: Path, number: int, text: str) -> InputError:
    return InputError(
        f"{path} line {number}",
        f"`{text[:60]}` is no sample of a metric",
        "save the answer of /metrics as it is",
    )


def series_text(name: str, labels: Mapping[str, str]) -> str:
    """Return the series in the one spelling that the table `scrape` has (docs/recording-format.md)."""
    bare = re.fullmatch(NAME, name)
    parts = [] if bare else [_quoted(name)]
    for label, value in sorted(labels.items()):
        plain = re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", label)
        parts.append(f"{label if plain else _quoted(label)}={_quoted(value)}")
    head = name if bare else ""
    return f"{head}{{{','.join(parts)}}}" if parts else head


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
