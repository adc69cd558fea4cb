"""The canary: shifts between before and after, their limits, and the report of a disturbed repeat."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
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
    result = canary.shifts([open_run(run) for run in made])
    return {(shift.run, shift.part): shift for shift in result}


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


def test_compare_says_it_at_the_head_and_at_the_side(tmp_path: Path) -> None:
    same = {"cpu": 1000.0, "syscall": 500.0, "fsync": 100.0}
    made = runs(tmp_path, (same, same), (same, {**same, "cpu": 1500.0}))
    text = " ".join(ask("compare", *made, "--all").out.split())
    assert "disturbed 1 of 2 runs: r1 cpu 1.50 × slower after the run (limit 1.03 ×)" in text
    assert "¹ disturbed, and kept: the canary of r1 cpu 1.50 × slower after the run (limit 1.03 ×)" in text
    steady = "syscall 1.00 × slower (limit 1.03 ×); fsync 1.00 × slower (no limit"
    assert f"cpu 1.50 × slower (limit 1.03 ×); {steady}" in text
    assert "r1¹" in text
    sides = json.loads(ask("compare", *made, "--format", "json").out)["sides"]
    assert [shift["disturbed"] for shift in sides[1]["canary"]] == [True, False, False]
    assert len(sides[1]["repeats"]) == 1, "a disturbed repeat is kept"


SAME = dict.fromkeys(canary.PARTS, 1000.0)


@pytest.mark.parametrize(
    ("pairs", "without", "trust", "reason"),
    [
        # the fifth pair at rest is the one before the last run
        ([(SAME, SAME)] * 6, 0, "disturbed no", "disturbed no: by the fixed work before and after 6 runs"),
        (
            [(SAME, SAME | {"fsync": 10_000.0})],
            3,
            "disturbed not checked (3 of 4 runs)",
            "inconclusive: 3 of 4 runs had no canary; memory, fsync had no limit (too few canaries at rest) "
            "in 1 run",
        ),
        (
            [({"cpu": 1.0, "syscall": 1.0}, {"cpu": 1.0}), (SAME, SAME)],
            0,
            "disturbed not checked (memory, syscall, fsync)",
            "inconclusive: memory, fsync had no limit (too few canaries at rest) in 1 run; memory, syscall, "
            "fsync did not run before and after 1 run",
        ),
        (
            [(SAME, SAME | {"cpu": 1500.0})],
            1,
            "disturbed 1 of 2",
            "1 of 2 runs: r0 cpu 1.50 × slower after the run (limit 1.03 ×); 1 of 2 runs had no canary",
        ),
    ],
)
def test_undisturbed_is_only_what_was_checked_in_every_run_and_part(
    tmp_path: Path,
    pairs: list[tuple[dict[str, float], dict[str, float]]],
    without: int,
    trust: str,
    reason: str,
) -> None:
    made = [
        *runs(tmp_path / "with", *pairs),
        *(make_run(tmp_path / "without" / f"n{number}") for number in range(without)),
    ]
    text = " ".join(ask("compare", *made, "--verbose").out.split())
    assert trust in text
    assert reason in text


def test_a_shift_and_its_limit_never_print_alike(tmp_path: Path) -> None:
    """Beyond its limit by a thousandth: two decimals would print 1.03 as more than 1.03."""
    made = runs(tmp_path, ({"syscall": 1000.0, "cpu": 1000.0}, {"syscall": 1031.0, "cpu": 1000.0 / 1.2}))
    result = canary.shifts([open_run(run) for run in made])
    assert canary.beyond(result) == [
        f"{made[0].name} cpu 1.20 × faster after the run (limit 1.03 ×), "
        "syscall 1.031 × slower after the run (limit 1.030 ×)"
    ]
    assert "syscall 1.031 × slower (limit 1.030 ×)" in canary.largest({made[0]: result})


def test_runs_of_two_executions_that_share_their_id_are_told_apart(tmp_path: Path) -> None:
    """All executions have a b1-….-r1: a disturbance of one does not affect the other."""
    same = {"cpu": 1000.0, "syscall": 500.0}
    [quiet] = runs(tmp_path / "old", (same, same))
    [shaken] = runs(tmp_path / "new", (same, {**same, "cpu": 1500.0}))
    text = " ".join(ask("compare", quiet, shaken, "--all").out.split())
    assert "disturbed 1 of 2 runs: r0#2 r0 cpu 1.50 × slower after the run (limit 1.03 ×)" in text
    assert "largest changes from before to after a run, 2 runs" in text
    first, second = json.loads(ask("compare", quiet, shaken, "--format", "json").out)["sides"]
    assert [shift["disturbed"] for shift in first["canary"]] == [False, False]
    assert (first["notes"], len(second["notes"])) == ([], 1)
    text = " ".join(ask("compare", shaken, shaken, quiet, "--verbose").out.split())
    assert (
        "disturbed 1 of 2 runs: r0#1 r0 cpu 1.50 × slower after the run (limit 1.03 ×); memory, fsync did"
        in text
    )
    assert "largest changes from before to after a run, 2 runs" in text


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
        for each in busy:
            each.kill()
            each.wait()
    assert shifts([made])["r0", "cpu"].disturbed
