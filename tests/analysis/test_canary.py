"""The canary: shifts between before and after, their limits, and the report of a disturbed repeat."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Golden
from damage import ask
from loadprint.judging import canary
from loadprint.reading.recording import open_run
from programs import COLLECT
from recordings import make_run, write_manifest

SECOND = 1_000_000_000


def line(label: str, at: float, **times: float) -> str:
    """One canary at second `at`; `times` are ns a slice, cpu on two CPUs."""
    parts = [
        {
            "name": name,
            "lanes": [
                # three quarters of the slices are unlucky, which the lower quartile does not see
                {"cpu": cpu, "slices_ns": [taken] * (6 if name == "fsync" else 3) + [9 * taken] * 5}
                for cpu in range(2 if name == "cpu" else 1)
            ],
        }
        for name, taken in times.items()
    ]
    begin = int(at * SECOND)
    record = {
        "label": label,
        "boot_id": "b",
        "begin_realtime_ns": begin,
        "begin_monotonic_ns": begin,
        "end_monotonic_ns": begin + SECOND,
        "parts": parts,
    }
    return json.dumps(record) + "\n"


def runs(path: Path, *pairs: tuple[dict[str, float], dict[str, float]]) -> list[Path]:
    """A run a minute, each with its canaries (before, after)."""
    made = []
    for number, (before, after) in enumerate(pairs):
        run = make_run(path / f"r{number}")
        text = line("before", 60 * number, **before) + line("after", 60 * number + 40, **after)
        (run / "server" / "canary.jsonl").write_text(text)
        write_manifest(run)
        made.append(run)
    return made


def shifts(made: list[Path]) -> dict[tuple[str, str], Any]:
    by_run = canary.by_run([open_run(run) for run in made])
    return {(shift.run, shift.part): shift for of_run in by_run.values() for shift in of_run}


def test_a_shift_over_three_percent_is_disturbed_in_either_direction(tmp_path: Path) -> None:
    result = shifts(
        runs(
            tmp_path,
            ({"cpu": 1000, "syscall": 1000}, {"cpu": 1029, "syscall": 1031}),
            ({"cpu": 1000, "syscall": 1000}, {"cpu": 969, "syscall": 1000}),
        )
    )
    assert result["r0", "cpu"].change == pytest.approx(0.029)
    assert {key: shift.disturbed for key, shift in result.items()} == {
        ("r0", "cpu"): False,
        ("r0", "syscall"): True,
        ("r1", "cpu"): True,
        ("r1", "syscall"): False,
    }


def test_a_part_that_does_not_repeat_itself_is_held_to_what_it_can(tmp_path: Path) -> None:
    """Between runs the disk shifts by a tenth each time: three times that is its limit."""
    still = {"cpu": 1000.0, "fsync": 100.0}
    disk = {"cpu": 1000.0, "fsync": 110.0}
    quiet = [(still, still), (disk, disk), (still, still), (disk, disk), (still, still)]
    made = runs(tmp_path, *quiet, (disk, {"cpu": 1000, "fsync": 200}))
    result = shifts(made)
    assert result["r0", "fsync"].limit == pytest.approx(1.1**3 - 1)
    assert not result["r2", "fsync"].disturbed
    assert result["r5", "fsync"].disturbed
    assert result["r0", "cpu"].limit == canary.LIMIT
    few = shifts(made[1:])
    assert few["r5", "fsync"].limit is None
    assert not few["r5", "fsync"].disturbed


SAME = dict.fromkeys(canary.PARTS, 1000.0)
CALM = {"cpu": 1000.0, "syscall": 500.0}
BUSY = CALM | {"cpu": 1500.0}
# canaries before and after each run, and how many runs had none
CASES: dict[str, tuple[list[tuple[dict[str, float], dict[str, float]]], int]] = {
    "one of two runs is disturbed, and kept": ([(SAME, SAME), (SAME, SAME | {"cpu": 1500.0})], 0),
    # the fifth pair at rest is the one before the last run
    "checked in every run and part": ([(SAME, SAME)] * 6, 0),
    "most runs had none": ([(SAME, SAME | {"fsync": 10_000.0})], 3),
    "a part that ended or has no limit": ([({"cpu": 1.0, "syscall": 1.0}, {"cpu": 1.0}), (SAME, SAME)], 0),
    "disturbed, and one run had none": ([(SAME, SAME | {"cpu": 1500.0})], 1),
}


def test_compare_says_what_was_checked_and_what_is_disturbed(tmp_path: Path, golden: Golden) -> None:
    """The golden file has the verdict of each case, the largest shifts, and what is noted of each side."""
    lines = []
    for number, (name, (pairs, without)) in enumerate(CASES.items()):
        made = runs(tmp_path / str(number), *pairs)
        made += [make_run(tmp_path / str(number) / f"n{number_without}") for number_without in range(without)]
        lines += [f"# {name}", *(f"  {line}" for line in lines_of(*made))]
    golden("canary.txt", "\n".join(lines) + "\n")


def lines_of(*made: Path) -> list[str]:
    """What the table tells of the canaries of these runs."""
    table = ask("compare", *made, "--all", "--format", "json").document
    (verdict,) = (verdict for verdict in table["verdicts"] if verdict["key"] == "disturbed")
    lines = [f"{verdict['answer']} ({verdict['short']}): {verdict['text']}"]
    lines += [f"{label}: {text}" for label, text in table["facts"] if label == "canary"]
    for side in table["sides"]:
        disturbed = [shift["part"] for shift in side["canary"] if shift["disturbed"]]
        notes = [table["footnotes"][note - 1] for note in side["notes"]]
        lines.append("; ".join([f"{side['name']}: {len(side['repeats'])} repeat", *disturbed, *notes]))
    return lines


def test_a_shift_and_its_limit_never_print_alike(tmp_path: Path) -> None:
    """Beyond its limit by a thousandth: two decimals would print 1.03 as more than 1.03."""
    made = runs(tmp_path, ({"syscall": 1000.0, "cpu": 1000.0}, {"syscall": 1031.0, "cpu": 1000.0 / 1.2}))
    result = list(shifts(made).values())
    assert canary.beyond(result) == [
        f"{made[0].name} cpu 1.20 × faster after the run (limit 1.03 ×), "
        "syscall 1.031 × slower after the run (limit 1.030 ×)"
    ]
    assert "syscall 1.031 × slower (limit 1.030 ×)" in canary.largest({made[0]: result})


def test_runs_of_two_executions_that_share_their_id_are_told_apart(tmp_path: Path, golden: Golden) -> None:
    """All executions have a b1-….-r1: a disturbance of one does not affect the other."""
    [quiet] = runs(tmp_path / "old", (CALM, CALM))
    [shaken] = runs(tmp_path / "new", (CALM, BUSY))
    lines = [
        "# of two executions",
        *lines_of(quiet, shaken),
        "# one of them twice",
        *lines_of(shaken, shaken, quiet),
    ]
    golden("canary_ids.txt", "\n".join(lines) + "\n")
    assert "r0#2¹" in ask("compare", quiet, shaken, "--all").out


def test_what_is_left_of_an_earlier_attempt_or_cut_off_does_no_harm(tmp_path: Path) -> None:
    [made] = runs(tmp_path, ({"cpu": 1000}, {"cpu": 1010}))
    path = made / "server" / "canary.jsonl"
    path.write_text(line("before", 1, cpu=7) + path.read_text() + '{"label": "aft')
    assert shifts([made])["r0", "cpu"].change == pytest.approx(0.01)
    path.write_text(line("after", 1, cpu=7) + line("before", 9, cpu=7))
    assert shifts([made]) == {}


@pytest.mark.live
def test_a_neighbour_on_the_cpu_is_found(tmp_path: Path) -> None:
    """The real canary, and a real busy loop during the second one."""
    cpu = str(min(os.sched_getaffinity(0)))
    [made] = runs(tmp_path, ({"cpu": 1}, {"cpu": 1}))
    out = made / "server" / "canary.jsonl"
    out.unlink()
    work = [str(COLLECT), "canary", "--cpus", cpu, "--out", str(out), "--label"]
    subprocess.run([*work, "before"], check=True, capture_output=True)
    busy = [
        subprocess.Popen(["taskset", "--cpu-list", cpu, "sh", "-c", "while :; do :; done"]) for _ in range(4)
    ]
    try:
        subprocess.run([*work, "after"], check=True, capture_output=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert shifts([made])["r0", "cpu"].disturbed


@pytest.mark.parametrize(("of_own", "disturbed"), [(1029, False), (1040, True), (965, True)])
def test_sides_that_alternate_have_the_fixed_work_of_the_same_rounds(
    tmp_path: Path, of_own: int, disturbed: bool
) -> None:
    run = make_run(tmp_path / "r0")
    own = open_run(run).meta.side
    lines = []
    for number in range(8):
        for position, side in enumerate([own, "other"][:: 1 if number % 2 else -1]):
            # the machine changes from round to round, for all sides
            work = (of_own if side == own else 1000) * (1 + number)
            times = dict.fromkeys(("begin_ns", "measured_from_ns", "end_ns"), 10 * number + position)
            lines.append(
                {"round": number, "position": position, "side": side, "fixed_work_ns": work, **times}
            )
    (run / "slices.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (shift,) = shifts([run]).values()
    assert (shift.part, shift.disturbed) == ("cpu", disturbed)
    assert shift.change == pytest.approx(of_own / 1000 - 1)
    assert canary.unchecked([[shift]]) == ("", "")
    texts = canary.beyond([shift])
    assert ("in its turns than in those of others" in " ".join(texts)) == disturbed
