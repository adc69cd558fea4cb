"""The table of the doses that prove each row of both ledgers, in docs/time-ledger.md."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from doses.doses import DOSES
from loadprint.catalogue.files import catalogue
from loadprint.metrics import cpu_groups
from loadprint.metrics.cpu_time_rows import ALL, ALL_TRUNCATED, NOT_SAMPLED, CpuTime
from loadprint.metrics.ledger_rows import ledger_metrics, name_of
from loadprint.tables.cpu_time import OTHERS
from profiles import OLTP, make_profiled_run
from reads import known, table_of

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/time-ledger.md"
MARKED = re.compile(r"(?<=<!-- doses: written by the test -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)
DATA: dict[str, list[dict[str, Any]]] = tomllib.loads(
    (ROOT / "tests/ledgers/doses.toml").read_text(encoding="utf-8")
)
TITLES = {"time": "Where time goes", "cpu": "Where CPU time goes"}
COLUMNS = ("row", "dose", "by", "µs", "growth", "largest other row", "measured", "live test")
LIBRARY = "a library or program, by its name"


def rows() -> dict[str, dict[str, str]]:
    """Labels of the rows of both ledgers by the name of the row."""
    work = catalogue().works["statement"][0]
    of = CpuTime("server", work)
    return {
        "time": {name_of(row.key): row.label for row in ledger_metrics(work)},
        "cpu": {
            **cpu_groups.patterns().labels,
            cpu_groups.MODULE: LIBRARY,
            **cpu_groups.UNDECIDED,
            ALL_TRUNCATED: of.truncated("all").label,
            NOT_SAMPLED: of.not_sampled("all").label,
            ALL: of.total("all", "").label,
        },
    }


def line(cells: Mapping[str, str]) -> str:
    return f"| {' | '.join(cells.get(column, '') for column in COLUMNS)} |"


def cells_of(dose: Mapping[str, Any]) -> dict[str, str]:
    measured = dose.get("measured", "no figures")
    if "row_then" in dose:
        measured += f", before today's rows: *{dose['row_then']}*"
    together = f", {len(dose['rows'])} rows together" if len(dose["rows"]) > 1 and "growth" in dose else ""
    case = f"[{dose['case']}]" if "case" in dose else ""
    return {
        "dose": dose["dose"],
        "by": dose.get("instrument", ""),
        "µs": f"{dose.get('us', '')}",
        "growth": f"{dose.get('growth', '')}{together}",
        "largest other row": dose.get("largest", ""),
        "measured": measured,
        "live test": f"`{dose['test']}{case}`",
    }


def lines() -> Iterator[str]:
    yield line({column: column for column in COLUMNS})
    yield "|---" * len(COLUMNS) + "|"
    for ledger, labels in rows().items():
        yield line({"row": f"**{TITLES[ledger]}**"})
        for name, label in labels.items():
            given = [dose for dose in DATA[ledger] if name in dose["rows"]]
            for dose in given or [{}]:
                yield line({"row": label} | (cells_of(dose) if dose else {"dose": "*none*"}))


def test_the_document_has_the_table() -> None:
    """LOADPRINT_BLESS=1 writes it."""
    table, text = "\n".join(lines()) + "\n", DOCUMENT.read_text(encoding="utf-8")
    if os.environ.get("LOADPRINT_BLESS"):
        text = MARKED.sub(lambda _: table, text)
        DOCUMENT.write_text(text, encoding="utf-8")
    written = known(MARKED.search(text))
    assert written[0].splitlines() == table.splitlines(), "rewrite with LOADPRINT_BLESS=1"


def test_every_row_of_a_comparison_is_in_the_table(complete: Path, tmp_path: Path) -> None:
    """Of the time ledger all of them, of the CPU ledger those that have samples."""
    profiled = make_profiled_run(tmp_path / "run", server=OLTP)
    for ledger, key, run in (
        ("time", "time_statement", complete),
        ("cpu", "cputime_server_statement", profiled),
    ):
        (group,) = (group for group in table_of(run, run).groups if group.key == key)
        built = {row.label for row in group.rows if f"_{OTHERS}_per_" not in row.key}
        labels = set(rows()[ledger].values())
        assert built == labels if ledger == "time" else len(built) > 5
        assert built <= labels


@pytest.mark.parametrize("ledger", DATA)
def test_doses_are_of_rows_that_are_there(ledger: str) -> None:
    given = {row for dose in DATA[ledger] for row in dose["rows"]}
    assert given <= set(rows()[ledger])


def functions(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        return set(re.findall(r"#\[test\]\nfn (\w+)\(", text))
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("test", sorted({dose["test"] for doses in DATA.values() for dose in doses}))
def test_the_tests_are_there(test: str) -> None:
    path, _, name = test.partition("::")
    assert name in functions(ROOT / path)


def test_every_dose_is_in_the_table() -> None:
    """Those of tests/doses, of rows and of groups; the data give no other case."""
    given = {ledger: {dose["case"] for dose in doses if "case" in dose} for ledger, doses in DATA.items()}
    assert given == {"time": set(DOSES), "cpu": {name for name, dose in DOSES.items() if dose.groups}}
    for dose in DATA["cpu"]:
        assert set(dose["rows"]) == set(DOSES[dose["case"]].groups)
