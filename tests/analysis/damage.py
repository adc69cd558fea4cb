"""Checks the response of a command to a recording."""

from __future__ import annotations

import io
import json
import math
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from loadprint.__main__ import main
from recordings import Host

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
