"""Reads a published table with the columns `without` and `with`, as an experiment of one block.

CSV with the header `quantity,without,with[,printed_ratio]` and the rows `qps` (queries per second),
`cpu_percent` (100 % is one CPU) and, with only a printed ratio, `combined_improvement_factor`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from loadprint.commands.ab.analysis import analyse
from loadprint.commands.ab.experiment import Gates
from loadprint.commands.ab.result import HEADLINE, AbWindow, Check, Effect, Result
from loadprint.errors import InputError
from loadprint.reading import bounds
from loadprint.reading.names import BASELINE, TREATMENT

HEAD = ["quantity", "without", "with"]
QUANTITIES = {"qps": "queries", "cpu_percent": "cpu", "combined_improvement_factor": HEADLINE}
NEEDED = ("qps", "cpu_percent")


def read(path: Path) -> Result:
    """Read the table and compute its ratios again. Raises InputError with the line of a mistake."""
    values, printed = _rows(path)
    missing = [name for name in NEEDED if name not in values]
    if missing:
        raise InputError(path, f"has no row {missing[0]}", f"add the rows {' and '.join(NEEDED)}")
    (without_q, with_q), (without_c, with_c) = values["qps"], values["cpu_percent"]
    windows = (
        AbWindow(1, 1, TREATMENT, None, 0.0, 0.0, with_q, with_c / 100),
        AbWindow(2, 1, BASELINE, TREATMENT, 0.0, 0.0, without_q, without_c / 100),
    )
    table = Result(
        path.stem,
        "two columns of a table, without their windows",
        "TB",
        warnings=("the load of the two windows is not known: no statement mix, no gates, no guards",),
    )
    result = analyse(windows, Gates(), table)
    with_ratios = replace(
        result, effects=tuple(effect for effect in result.effects if effect.ratio is not None)
    )
    return replace(with_ratios, windows=(), checks=(*_agreement(with_ratios, printed), *with_ratios.checks))


def _rows(path: Path) -> tuple[dict[str, tuple[float, float]], dict[str, str]]:
    lines = bounds.read_cells(path, bounds.read_text(path, bounds.TABLE, "give a CSV file").splitlines())
    if not lines or [word.strip() for word in lines[0][:3]] != HEAD:
        fix = "write quantity,without,with[,printed_ratio] into the first line"
        raise InputError(f"{path}:1", "not the header of such a table", fix)
    values: dict[str, tuple[float, float]] = {}
    printed: dict[str, str] = {}
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cells):
            continue
        name, *rest = (cell.strip() for cell in cells)
        if name not in QUANTITIES:
            raise InputError(f"{path}:{number}", f"unknown quantity {name!r}", f"use {', '.join(QUANTITIES)}")
        rest += [""] * (3 - len(rest))
        if rest[2]:
            printed[name] = rest[2]
        if rest[0] or rest[1]:
            values[name] = (_number(path, number, rest[0]), _number(path, number, rest[1]))
        if rest[2]:
            _number(path, number, rest[2])
    return values, printed


def _number(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise InputError(
            f"{path}:{line}", f"{text!r} is not a positive number", "write it with a decimal point"
        )
    return value


def _agreement(result: Result, printed: dict[str, str]) -> tuple[Check, ...]:
    """Check each printed ratio against the computed one, to half a unit of its last digit."""
    checks = []
    for name, text in printed.items():
        effect: Effect | None = result.effect(QUANTITIES[name])
        if effect is None or effect.ratio is None:
            continue
        places = len(text.partition(".")[2])
        agrees = abs(effect.ratio - float(text)) <= 0.5 * 10.0**-places * (1 + 1e-9)
        ratios = f"printed {text}, computed {effect.ratio:.{places}f}"
        checks.append(Check(f"ratio of {name}", "passed" if agrees else "failed", ratios))
    return tuple(checks)
