"""Reads snapshots in the Prometheus text format and OpenMetrics, and rejects a file at a malformed line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from loadprint.errors import InputError

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
MAX_LINE = 16_384  # characters: the parser's time grows with the square of a line's labels


def samples(path: Path, text: str) -> Iterator[Sample]:
    """Yield the samples of an exposition, their values as float. Raises InputError with the line.

    The parser gets one line at a time and no `# TYPE`: it would append `_total` to the names of counters.
    """
    from prometheus_client import parser  # noqa: PLC0415  it takes 0.1 s, and only snapshots need it

    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            if len(line) > MAX_LINE:
                raise ValueError
            [family] = parser.text_string_to_metric_families(line)
            [sample] = family.samples
            sample = sample._replace(value=float(sample.value))
        except (ValueError, IndexError, OverflowError) as error:
            what = f"`{line[:60]}` is not a sample of a metric"
            raise InputError(
                f"{path} line {number}", what, "save the response of /metrics unchanged"
            ) from error
        yield sample


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
