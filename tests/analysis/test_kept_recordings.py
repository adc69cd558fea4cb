"""Kept recordings still open: of every format version, and of the real sysbench and HammerDB."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from damage import ask

KEPT = sorted((Path(__file__).parents[1] / "recordings").glob("v*"))


@pytest.mark.parametrize("version", KEPT, ids=lambda path: path.name)
def test_kept_recordings_compare(version: Path) -> None:
    table = ask("compare", version / "oltp", version / "insert", "--format", "csv").out
    assert len(table.splitlines()) > 60
    assert "switches_server" in table


def test_names_of_parent_directories_are_not_columns(tmp_path: Path) -> None:
    """DuckDB reads `user=7` as a partition of a data set."""
    tables = []
    for parent in ("plain", "user=7/tick=1"):
        shutil.copytree(KEPT[0] / "oltp", tmp_path / parent / "oltp")
        tables.append(ask("show", tmp_path / parent / "oltp", "--all", "--format", "csv").out)
    assert len(tables[0].splitlines()) > 60
    assert tables[1] == tables[0]


@pytest.fixture(scope="module")
def external(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The execution of the external generators."""
    made = tmp_path_factory.mktemp("external") / "execution"
    return Path(shutil.copytree(KEPT[0] / "external", made))


@pytest.mark.parametrize(
    "words",
    [
        *(["compare", "{}", "--format", name] for name in ("text", "markdown", "csv", "json", "html")),
        ["compare", "{}", "--all"],
        ["report", "{}", "-o", "{}/report.html"],
        ["inspect", "{}/b1-oltp-r1"],
        ["show", "{}/b1-oltp-r1"],
        ["inspect", "{}/b1-tproc_c-r1", "--format", "json"],
        ["export", "{}", "--to", "{}/fleet"],
        ["check", "{}/b1-oltp-r1"],
    ],
    ids=" ".join,
)
def test_every_command_reads_external_generators(external: Path, words: list[str]) -> None:
    answer = ask(*(word.format(external) for word in words))
    # check may find a mistake
    assert answer.status in ((0, 1) if words[0] == "check" else (0,)), answer
    assert answer.out or words[0] in ("report", "export")


def test_what_needs_a_matrix_refuses_external_generators(external: Path) -> None:
    assert [ask(command, external).status for command in ("sweep", "usl")] == [2, 2]
