"""The study with the real sysbench and the real HammerDB (tests/recordings/v1/external), by every command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from loadprint.__main__ import main

KEPT = Path(__file__).parents[1] / "recordings" / "v1" / "external"
SPEC = '{rows: {operations: "3 %"}, sustained: {at_least: 30s, burst: 10s}, accept_profiles: [blog]}\n'


@pytest.fixture(scope="module")
def execution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The execution, with a specification for `qualify`."""
    made = tmp_path_factory.mktemp("external") / "execution"
    shutil.copytree(KEPT, made)
    (made / "spec.yml").write_text(SPEC, encoding="utf-8")
    return made


@pytest.mark.parametrize(
    "words",
    [
        *(["compare", "{}", "--format", name] for name in ("text", "markdown", "csv", "json", "html")),
        ["compare", "{}", "--all"],
        ["report", "{}", "-o", "{}/report.html"],
        ["inspect", "{}/b1-oltp-r1"],
        ["inspect", "{}/b1-tproc_c-r1", "--format", "json"],
        ["qualify", "--baseline", "{}", "--candidate", "{}", "--spec", "{}/spec.yml"],
        ["export", "{}", "--to", "{}/fleet"],
        ["check", "{}/b1-oltp-r1"],
    ],
    ids=" ".join,
)
def test_every_command_reads_them(
    execution: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([word.format(execution) for word in words])
    said = capsys.readouterr()
    # a verdict is a status: one repeat gives qualify none, and check may find a mistake
    assert status in (0, 1, 2) if words[0] in ("qualify", "check") else status == 0, said.err
    assert said.out or words[0] in ("report", "export"), said.err


def test_what_needs_a_matrix_refuses_them_in_one_line(
    execution: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["sweep", str(execution)], ["usl", str(execution)]):
        assert main(words) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_rows_of_ten_seconds_are_no_seconds(execution: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(execution), "--all"]) == 0
    assert "the generator reports every 10 s, not every second" in " ".join(capsys.readouterr().out.split())
