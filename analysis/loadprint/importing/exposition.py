"""Parses snapshots in the Prometheus text format and OpenMetrics, and rejects a file at a malformed line.

Not prometheus_client: its text parser reads an OpenMetrics exemplar or excess fields as a timestamp, its
OpenMetrics parser rejects the text format, neither reports lines, and both take twice as long.
"""

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
    rf"\s*({NAME})?\s*(?:\{{((?:[^\"}}]|{QUOTED})*)\}})?\s*([^\s{{}}]+)(?:\s+(\S+))?\s*(?:# \{{.*)?$"
)
ESCAPES = {r"\\": "\\", r"\n": "\n", r"\"": '"'}
ESCAPED = re.compile(r'\\[\\n"]')
NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.I
)


@dataclass(frozen=True)
class Sample:
    """One value of a series; the line's timestamp is checked and dropped."""

    name: str
    labels: Mapping[str, str]
    value: float


def samples(path: Path, text: str) -> Iterator[Sample]:
    """Yield the samples of an exposition. Raises InputError with the line."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        if match is None or not all(NUMBER.fullmatch(each) for each in match.group(3, 4) if each):
            raise _malformed(path, number, line)
        name, labels = match[1], dict[str, str]()
        for key, value in _labels(path, number, match[2] or ""):
            if value is None:
                name = key
            else:
                labels[key] = value
        if not name:
            raise _malformed(path, number, line)
        yield Sample(name, labels, float(match[3]))


def _labels(path: Path, number: int, text: str) -> Iterator[tuple[str, str | None]]:
    place, text = 0, text.rstrip()
    while place < len(text):
        match = LABEL.match(text, place)
        if match is None:
            raise _malformed(path, number, text[place:])
        yield _plain(match[1]), None if match[2] is None else _plain(match[2])
        place = match.end()


def _plain(text: str) -> str:
    if not text.startswith('"'):
        return text
    return ESCAPED.sub(lambda escape: ESCAPES[escape[0]], text[1:-1])


def _malformed(path: Path, number: int, text: str) -> InputError:
    return InputError(
        f"{path} line {number}",
        f"`{text[:60]}` is not a sample of a metric",
        "save the response of /metrics unchanged",
    )


def series_text(name: str, labels: Mapping[str, str]) -> str:
    """Return the canonical text of a series in the table `scrape` (docs/recording-format.md)."""
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
