"""The table of the doses that prove each row of both ledgers, in docs/time-ledger.md: all in it is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

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
TABLE = re.compile(r"\| \*\*Where time goes\*\*(.*?)\n\| \*\*Where CPU time goes\*\*(.*?)\n\n", re.DOTALL)
TEST = re.compile(r"`([^`]+)::(\w+)(?:\[(.+)\])?`")
LIBRARY = "a library or program, by its name"


class Dose(NamedTuple):
    """A line of the table that has a dose; `path`, `name` and `case` of its test."""

    row: str
    path: str
    name: str
    case: str | None


def documented() -> dict[str, tuple[list[str], list[Dose]]]:
    """The labels and the doses of the table, by ledger."""
    found = {}
    text = (ROOT / "docs/time-ledger.md").read_text(encoding="utf-8")
    for ledger, part in zip(("time", "cpu"), known(TABLE.search(text)).groups(), strict=True):
        lines = [line.strip("| ").split(" | ") for line in part.splitlines()[1:]]
        given = [(line[0], known(TEST.fullmatch(line[-1]))) for line in lines if line[1] != "*none*"]
        found[ledger] = (
            [line[0] for line in lines],
            [Dose(row, test[1], test[2], test[3]) for row, test in given],
        )
    return found


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


@pytest.mark.parametrize("ledger", ["time", "cpu"])
def test_the_table_has_the_rows_in_their_order(ledger: str) -> None:
    assert list(dict.fromkeys(documented()[ledger][0])) == list(rows()[ledger].values())


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


def functions(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        return set(re.findall(r"#\[test\]\nfn (\w+)\(", text))
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def test_the_tests_are_there() -> None:
    tests = {(dose.path, dose.name) for _, doses in documented().values() for dose in doses}
    assert len(tests) > 5
    assert not [name for path, name in tests if name not in functions(ROOT / path)]


def test_every_dose_is_in_the_table() -> None:
    """Those of tests/doses, of rows and of groups; the table gives no other case."""
    table = documented()
    given = {ledger: {dose.case for dose in doses if dose.case} for ledger, (_, doses) in table.items()}
    assert given == {"time": set(DOSES), "cpu": {name for name, dose in DOSES.items() if dose.groups}}
    labels = rows()["cpu"]
    for case in given["cpu"]:
        in_table = {dose.row for dose in table["cpu"][1] if dose.case == case}
        assert in_table == {labels[group] for group in DOSES[case].groups}
