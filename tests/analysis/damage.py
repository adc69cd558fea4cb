"""Checks the response of a command to a recording."""

from __future__ import annotations

import csv
import io
import json
import math
import multiprocessing
import re
import resource
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from loadprint.__main__ import main
from loadprint.printable import UNSAFE
from recordings import Host

SLOWEST = 60  # CPU seconds of one command, which takes less than one
HANGS = 900  # seconds after which it hangs, on a busy machine
MOST_KIB = 1_250_000_000 // 1024  # 3 million rows of the widest table take 1.16 GB as arrays
# of the address space: above it an allocation fails. It is not the measured memory, because it includes
# reserved and unused memory (arenas, stacks, arrays that grow).
LIMIT = 6_000_000_000
Result = TypeVar("Result")
VERDICTS = ("check", "qualify", "study")  # status 1 is a negative one
NOTED = ("report", "import", "export")  # print notes on stderr
NUMBERS = re.compile(r"[-+]?[0-9.e+-]+( [-+]?[0-9.e+-]+)*")
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
    """Response of a command: status 0 or 1 with a table, or 2 with one line."""

    status: int
    out: str
    line: str

    @property
    def document(self) -> dict[str, Any]:
        """What a command printed as JSON."""
        return dict(json.loads(self.out))

    @property
    def cells(self) -> dict[tuple[str, str], Any]:
        """Values by group and row of a table printed as JSON."""
        return {(g["key"], row["key"]): row["cells"] for g in self.document["groups"] for row in g["rows"]}

    @property
    def rows(self) -> dict[str, Any]:
        """Rows of a table printed as JSON, by key."""
        return {row["key"]: row for group in self.document["groups"] for row in group["rows"]}


def ask(*words: object) -> Answer:
    """Run `loadprint` in this process: one clear line and status 2, or an answer in finite numbers.

    The text is printable, and a spreadsheet computes nothing of it.
    """
    out, err = io.StringIO(), io.StringIO()
    begin = time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(word) for word in words])
    assert time.process_time() - begin < SLOWEST
    answer = Answer(status, out.getvalue(), err.getvalue())
    printable(answer.out + answer.line)
    if status == 2:
        assert answer.out == "", answer
        assert re.fullmatch("loadprint( campaign)?: .+\n", answer.line), answer
        return answer
    assert status in ((0, 1) if words[0] in VERDICTS else (0,)), answer
    assert answer.line == "" or words[0] in NOTED, answer
    assert "Warning" not in answer.line, answer
    if "json" in words:
        finite(json.loads(answer.out))
    if "csv" in words:
        cells = [cell for row in csv.reader(io.StringIO(answer.out)) for cell in row]
        computed = [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
        assert not [cell for cell in computed if not NUMBERS.fullmatch(cell)], answer
    return answer


def refused(*words: object) -> str:
    """Run a command that must be refused; gives its line, which names a fix."""
    answer = ask(*words)
    assert answer.status == 2, answer
    assert "; " in answer.line, "names a fix"
    return answer.line


def printable(text: str) -> None:
    """Assert that a text holds no control characters, and can be encoded."""
    assert UNSAFE.search(text.replace("\n", "")) is None
    text.encode()


def finite(value: Any) -> None:
    """Assert that a document holds no NaN and no infinity."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            finite(inner)
    assert not isinstance(value, float) or math.isfinite(value)


def bounded(*words: object) -> Answer:
    """As `ask`, in bounded memory."""
    return apart(ask, *words)


def apart(work: Callable[..., Result], *arguments: object) -> Result:
    """What a function returns in a separate process, whose memory and time are bounded."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        result, most = pool.submit(_measured, work, *arguments).result()
    assert most < MOST_KIB, f"{most} KiB"
    return result


def _measured(work: Callable[..., Result], *arguments: object) -> tuple[Result, int]:
    """Also the most memory that this process had, in KiB (VmHWM, proc_pid_status(5))."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    signal.alarm(HANGS)
    result = work(*arguments)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return result, int(status.partition("VmHWM:")[2].split()[0])
