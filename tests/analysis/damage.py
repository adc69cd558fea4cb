"""Damages recordings, and checks the response of a command to them."""

from __future__ import annotations

import copy
import io
import json
import math
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadprint.__main__ import main
from recordings import BOOT, REALTIME, SECOND, Host, make_execution

RICH = Host(
    seconds=6,
    result={
        "mode": "open",
        "rate": 50.0,
        "achieved_rate": 50.0,
        "backlog_max": 3,
        "backlog_end": 0,
        "transactions": {
            "pay": {"count": 20000, "latency_ms": {"p50": 1.0, "p95": 2.0, "p99": 3.0, "max": 4.0}}
        },
        "details": {"nopm": 5, "tpm": 7},
        "per_thread": [{"events": 1, "seconds": 2.0}],
        "errors_by_code": {"1213": 2},
        "connections": "thread",
        "servers": ["a"],
    },
    grown={"Questions": 200, "Com_stmt_prepare": 3, "Com_prepare_sql": 0, "Bytes_sent": 5},
)


@dataclass(frozen=True)
class Answer:
    """Response of a command: status 0 with a table, or 2 with one line."""

    status: int
    out: str
    line: str

    @property
    def cells(self) -> dict[tuple[str, str], Any]:
        """Values by group and row of a table printed as JSON."""
        groups = json.loads(self.out)["groups"]
        return {(g["key"], row["key"]): row["cells"] for g in groups for row in g["rows"]}


def ask(*words: object) -> Answer:
    """Run `loadprint` in this process: one clear line and status 2, or an answer in finite numbers."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(word) for word in words])
    answer = Answer(status, out.getvalue(), err.getvalue())
    if status == 2:
        assert answer.out == ""
        assert answer.line.startswith("loadprint: ")
        assert answer.line.count("\n") == 1
    else:
        assert status == 0
        assert answer.line == ""
        if "json" in words:
            finite(json.loads(answer.out))
    return answer


def finite(value: Any) -> None:
    """Assert that a document holds no NaN and no infinity."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            finite(each)
    assert not isinstance(value, float) or math.isfinite(value)


def light_execution(path: Path) -> Path:
    """Two sides of two runs without a recorder's tables and manifests: one answer takes little time."""
    made = make_execution(path, {"a": [RICH, RICH], "b": [RICH, RICH]}, "a")
    lane = {"cpu": 0, "seconds": 1.0, "on_cpu_seconds": 1.0, "min_ns": 1, "slices_ns": [1, 2, 3, 4]}
    canary = {
        "boot_id": BOOT,
        "begin_monotonic_ns": 1,
        "begin_realtime_ns": REALTIME,
        "end_monotonic_ns": SECOND,
        "parts": [{"name": "cpu", "work": 1, "unit": "x", "lanes": [lane]}],
    }
    for run in made.glob("b*"):
        for table in run.glob("server/*.parquet"):
            table.unlink()
        lines = [json.dumps({"label": label, **canary}) + "\n" for label in ("before", "after")]
        (run / "server" / "canary.jsonl").write_text("".join(lines))
        (run / "manifest.json").unlink()
    return made


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of a document, of lists to the first two."""
    yield at
    keys = value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], (*at, key))


def spoiled(document: Any, at: tuple[Any, ...], text: str | None) -> str:
    """The document as JSON with one value replaced by a text, or taken out."""
    if not at:
        return text or ""
    document = copy.deepcopy(document)
    parent = document
    for key in at[:-1]:
        parent = parent[key]
    if text is None:
        del parent[at[-1]]
        return json.dumps(document)
    parent[at[-1]] = "@spoiled@"
    return json.dumps(document).replace('"@spoiled@"', text)
