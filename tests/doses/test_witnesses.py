"""The ledgers against other measurements of the same runs: perf, /proc, and the server's own timers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scipy import stats

from .bench import Bench
from .conftest import Runs
from .doses import DOSES, nothing
from .perf import groups

WINDOWS = 3
SIGNIFICANT = 0.001
LEAST_SAMPLES = 10  # of both samplers together, for a group in the chi-square test
GIVEN = {"nothing": nothing} | {name: dose.give for name, dose in DOSES.items()}
OUTSIDE = ("network", "CPU quota", "neighbour")  # also while no statement is timed


def test_groups_are_those_of_perf(bench: Bench, tmp_path: Path, lines: list[str]) -> None:
    """Both sample the same CPU clock at the same time, with separate timers of the CPU.

    A timer of a thread (`perf record -p`) also fires at the thread's switch, if it was due before: it finds a
    third more of the scheduler.
    """
    statistic, freedom = 0.0, 0
    for window in range(WINDOWS):
        recording = tmp_path / f"perf{window}"
        words = ["perf", "record", "-q", "-F", "99", "-e", "cpu-clock", "-g", "-C", str(bench.server_cpu)]
        run = bench.run(f"perf-{window}", beside=[*words, "-o", str(recording)])
        theirs = groups(recording, bench.pid)
        assert theirs, "perf has no samples"
        samples = run.quantities.values["profiled.server.samples"].rate
        total = sum(run.cpu.values())
        ours = Counter({key: round(samples * part / total) for key, part in run.cpu.items()})
        part = homogeneity(ours, theirs)
        lines.append(
            f"perf, window {window}: {ours.total()} and {theirs.total()} samples, "
            f"chi-square {part[0]:.1f} of {part[1]} degrees of freedom, p = {stats.chi2.sf(*part):.3f}"
        )
        statistic, freedom = statistic + part[0], freedom + part[1]
    assert freedom >= WINDOWS
    assert stats.chi2.sf(statistic, freedom) > SIGNIFICANT


def homogeneity(ours: Counter[str], theirs: Counter[str]) -> tuple[float, int]:
    """Chi-square of two samples, rare groups together, and its degrees of freedom."""
    counts = {key: (ours[key], theirs[key]) for key in ours | theirs}
    common = [pair for pair in counts.values() if sum(pair) >= LEAST_SAMPLES]
    rare = [pair for pair in counts.values() if sum(pair) < LEAST_SAMPLES]
    table = [*common, *([(sum(a for a, _ in rare), sum(b for _, b in rare))] if rare else [])]
    found = stats.chi2_contingency(table, correction=False)
    return float(found.statistic), int(found.dof)


@pytest.mark.parametrize("name", GIVEN)
def test_time_on_a_cpu_and_in_the_run_queue_are_those_of_proc(name: str, runs: Runs) -> None:
    run = runs.of(GIVEN[name])
    on_cpu, waited = run.time["user"] + run.time["system"], run.time["run_queue"] + run.time["throttled"]
    runs.lines.append(
        f"/proc, {name}: on CPU {on_cpu:.0f} and {run.meters['on CPU']:.0f}, "
        f"run queue {waited:.0f} and {run.meters['waited']:.0f}"
    )
    assert on_cpu == pytest.approx(run.meters["on CPU"], rel=0.05)
    assert waited == pytest.approx(run.meters["waited"], rel=0.05, abs=0.05 * run.time["latency"])


@pytest.mark.parametrize("name", [name for name in DOSES if name not in OUTSIDE])
def test_growth_of_the_time_in_the_server_is_that_of_its_statement_timers(name: str, runs: Runs) -> None:
    base, dosed = runs.of(nothing), runs.of(GIVEN[name])
    # all time of the server's thread
    ours = dosed.time["server"] - base.time["server"]
    theirs = dosed.meters["statements"] - base.meters["statements"]
    runs.lines.append(f"performance_schema, {name}: {ours:.0f} and {theirs:.0f}")
    assert ours == pytest.approx(theirs, rel=0.1)


def test_time_in_the_redo_log_is_that_of_file_waits(runs: Runs) -> None:
    run = runs.of(GIVEN["slow device"])
    runs.lines.append(f"redo log, slow device: {run.time['redo']:.0f} and {run.meters['log file']:.0f}")
    assert run.time["redo"] == pytest.approx(run.meters["log file"], rel=0.1)
