"""Experiment files: the shipped ones, mistakes with their lines, schedules, and guards on readings."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from damage import ask
from loadprint.commands.ab.ab_plan_text import document
from loadprint.commands.ab.experiment import Experiment, Guards, load
from loadprint.commands.ab.guards import Guarding, parse
from loadprint.commands.ab.recorder import has_ended, server_process
from loadprint.commands.ab.schedule import WindowPlan, plan
from loadprint.errors import InputError
from loadprint.reading.names import BASELINE, TREATMENT
from programs import wait_for
from recordings import change_json

ROOT = Path(__file__).parents[2]
BARE = os.environ | {"PYTHONPATH": str(ROOT / "analysis")}
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("ab-*.yml"))
DIRTY = next(path for path in EXAMPLES if path.stem == "ab-dirty-pages")


Reading = dict[str, Any]


def made(**schedule: object) -> Experiment:
    commands = dict.fromkeys(("apply", "revert", "verify_applied", "verify_reverted"), True)
    return Experiment.model_validate({"name": "x", "treatment": commands, "schedule": schedule})


def order(planned: WindowPlan) -> str:
    return "".join(slot.variant[0].upper() for slot in planned.slots)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_shipped_experiments_can_be_planned(path: Path) -> None:
    assert "smallest  p" in ask("ab", "plan", path).out
    whole = json.loads(ask("ab", "plan", path, "--format", "json").out)
    assert whole["plan"]["flips"] <= (whole["experiment"]["schedule"]["max_flips"] or 10**9)
    for name in ("apply", "revert", "verify_applied", "verify_reverted"):
        checked = subprocess.run(
            ["/bin/sh", "-n", "-c", whole["experiment"]["treatment"][name]], capture_output=True, check=False
        )
        assert checked.returncode == 0, (name, checked.stderr)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("threads_running", "thread_running", 'unknown key "thread_running" in guards; did you mean'),
        ("  revert: mysql", "  revertt: mysql", 'unknown key "revertt" in treatment; did you mean "revert"?'),
        ("window: 60s", "window: 60 parsecs", '"60 parsecs" is not a duration'),
        ("order: ABBA", "order: BABA", "schedule.order: Input should be 'ABBA', 'TB' or 'random'"),
        ("window: 60s", "window: 2s", "schedule.window: shorter than three intervals"),
        ("max: 10", "max: ten", "guards.replication_lag.max"),
        ("    max: 10", "    every: 10s", "a guard needs `max` or `min`"),
    ],
)
def test_a_mistake_names_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "mine.yml"
    text = DIRTY.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    error = ask("ab", "plan", path).line
    assert says in error
    assert f"{path}:" in error


def test_abba_cancels_drift_and_flips_twice_a_block() -> None:
    planned = plan(made(order="ABBA", blocks=3, window=30, settle=5))
    assert order(planned) == "BTTB" * 3
    assert planned.flips == 6
    assert planned.smallest_p == 0.25
    assert [slot.begin_s for slot in planned.slots[:5]] == [5, 40, 70, 105, 135]
    assert all(after.begin_s >= before.end_s for before, after in pairwise(planned.slots))


def test_tb_counts_every_flip_and_is_refused_beyond_the_limit() -> None:
    assert plan(made(order="TB", blocks=3)).flips == 6
    assert order(plan(made(order="TB", blocks=2))) == "TBTB"
    with pytest.raises(InputError, match="flip 8 times, 6 are allowed"):
        plan(made(order="TB", blocks=4, max_flips=6))


def test_random_pairs_are_half_each_way_and_the_seed_decides() -> None:
    planned = plan(made(order="random", blocks=12, seed=3))
    pairs = [order(planned)[k : k + 2] for k in range(0, 24, 2)]
    assert sorted(pairs) == ["BT"] * 6 + ["TB"] * 6
    assert planned == plan(made(order="random", blocks=12, seed=3))
    assert len({order(plan(made(order="random", blocks=12, seed=seed))) for seed in range(20)}) > 10
    last = planned.slots[-1].variant
    flips = sum(bool(slot.flip) for slot in planned.slots)
    assert planned.flips == flips + (last == TREATMENT)
    assert {slot.variant for slot in planned.slots} == {TREATMENT, BASELINE}


def test_few_blocks_are_warned_of() -> None:
    said = " ".join(plan(made(blocks=3)).warnings)
    assert "below 4" in said
    assert "6 reach 0.031" in said
    assert not any("sign-flip" in text for text in plan(made(blocks=6)).warnings)


def reading(second: float, rate: float, running: float, aborted: float = 0.0) -> Reading:
    """The recorder's newest sample `second` s after it started, on two CPUs half busy."""
    values = {
        "Questions": rate * second + 3 * second,
        "loadprint.queries": 3 * second,
        "Threads_running": running,
        "Aborted_clients": aborted * second,
    }
    states = dict.fromkeys(("nice", "system", "irq", "softirq", "iowait", "steal"), 0)
    cpu = {"cpu": "all", "user": 100 * second, "idle": 100 * second, **states}
    rows = [{"metric": name, "value": value} for name, value in values.items()]
    probes = {"cpu": {"ok": True, "rows": [cpu]}, "mysql": {"ok": True, "rows": rows}}
    return {"monotonic_ns": 1e9 * second, "probes": probes}


def guarded(**guards: Any) -> Guarding:
    return Guarding(Guards.model_validate(guards).model_dump(mode="json"))


def judged(guarding: Guarding, readings: Sequence[Reading | None]) -> list[str | None]:
    return [guarding.reading(parse(text), 100.0 + at) for at, text in enumerate(readings)]


def test_a_guard_trips_after_so_many_readings_in_a_row() -> None:
    spikes = [reading(t, 500, 90 if t in (3, 5, 6) else 5) for t in range(1, 8)]
    reasons = judged(guarded(threads_running=50, readings=2), spikes)
    assert [bool(reason) for reason in reasons] == [False] * 5 + [True] + [False]
    assert reasons[5] == "guard threads_running: 90, above 50, 2 readings in a row"


def test_a_guard_with_two_limits_names_the_one_that_tripped(tmp_path: Path) -> None:
    values = tmp_path / "values"
    values.write_text("8\n9\n1\n", encoding="ascii")
    command = f"head -1 {values}; sed -i 1d {values}"
    guarding = guarded(readings=1, commands={"hits": {"command": command, "max": 10, "min": 2, "every": 1}})
    reasons = [guarding.run_commands(now) for now in (100.0, 102.0, 104.0)]
    assert reasons == [None, None, "guard hits: 1, below 2, 1 reading"]
    (check,) = (check for check in guarding.checks() if check.name == "guard hits")
    assert (check.state, check.text) == ("failed", "worst 1; limit at most 10 and at least 2")


def test_rates_are_those_between_ticks_without_the_recorders_own() -> None:
    reasons = judged(guarded(queries_per_second_min=501, readings=1), [reading(t, 500, 5) for t in (1, 2)])
    assert reasons == [None, "guard queries_per_second: 500/s, below 501, 1 reading"]
    reasons = judged(guarded(error_rate=2, readings=1), [reading(t, 500, 5, aborted=3) for t in (1, 2)])
    assert reasons[1] == "guard error_rate: 3/s, above 2, 1 reading"
    reasons = judged(guarded(host_cpu=0.4, readings=1), [reading(t, 500, 5) for t in (1, 2)])
    assert reasons[1] == "guard host_cpu: 0.5, above 0.4, 1 reading"


def test_a_server_that_falls_silent_trips_though_the_recorder_answers() -> None:
    frozen = [reading(2, 500, 5)] * 14
    reasons = judged(guarded(silence=10), frozen)
    assert [bool(reason) for reason in reasons] == [False] * 11 + [True] * 3
    reasons = judged(guarded(silence=3), [reading(1, 500, 5)] + [None] * 5)
    assert reasons[-1] == "guard silence: no answer of the server for 5 s"
    assert load(DIRTY).guards.silence == 10


def test_the_time_of_a_suspended_process_is_no_silence_of_the_server() -> None:
    guarding, running = guarded(silence=10), parse(reading(2, 500, 5))
    assert [guarding.reading(running, at) for at in (100, 101, 160)] == [None] * 3


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"experiment": 7}', "[" * 100_000])
def test_another_document_is_not_carried_out(text: str, tmp_path: Path) -> None:
    done = conducted(text, tmp_path / "run")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "standard input: not a planned experiment" in done.stderr
    assert not (tmp_path / "run").exists()


def test_it_is_carried_out_without_packages(tmp_path: Path) -> None:
    """Up to the start of the recorder, after everything is imported; `ab revert` then needs none either."""
    experiment = made()
    experiment.server.process = str(os.getpid())
    given = json.dumps(document(experiment, plan(experiment)) | {"collector": "/absent"})
    done = conducted(given, tmp_path / "run")
    assert done.returncode == 2, done.stderr
    assert "/absent" in done.stderr
    assert "Traceback" not in done.stderr
    again = bare("loadprint", "ab", "revert", str(tmp_path / "run"))
    assert again.returncode == 0, again.stderr


def planned(server: str, collector: Path, **given: Any) -> str:
    """The document of an experiment on a process, as a line."""
    experiment = made(order="TB", blocks=1, window=60, settle=0)
    experiment.server.process = server
    experiment.guards.silence = 600
    for name, command in given.items():
        setattr(experiment.treatment, name, command)
    return json.dumps(document(experiment, plan(experiment)) | {"collector": str(collector)}) + "\n"


@pytest.mark.parametrize("kind", ["endless", "pipe", "long", "text", "huge", "directory"])
def test_a_pid_file_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    """The server's user chooses what it is."""
    file = tmp_path / "mysqld.pid"
    texts = {"long": f"{os.getpid()}{' ' * 100}", "text": "mysqld", "huge": "9" * 60}
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "endless":
        file.symlink_to("/dev/zero")
    elif kind == "directory":
        file.mkdir()
    else:
        file.write_text(texts[kind], encoding="ascii")
    done = conducted(planned(f"@{file}", Path("/absent")), tmp_path / "run", timeout=20)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"server.process @{file}: " in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_pid_file_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").write_text(f" {os.getpid()}\n", encoding="ascii")
    (tmp_path / "link").symlink_to("there")
    (pid, process) = server_process(f"@{tmp_path / 'link'}")
    assert (pid, has_ended(process)) == (os.getpid(), False)
    os.close(process)


def test_the_end_of_a_process_is_noticed_though_nothing_waited_for_it() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE) as child:
        _, process = server_process(str(child.pid))
        assert not has_ended(process)
        child.kill()
        assert select.select([process], [], [], 20)[0]
        assert has_ended(process)
        with pytest.raises(InputError, match="no such process"):  # a zombie
            server_process(str(child.pid))
    os.close(process)


SAMPLE = {"monotonic_ns": 1, "probes": {"mysql": {"ok": True, "rows": []}, "cpu": {"rows": []}}}
RECORDER = f"""#!/bin/sh
[ "$1" = record ] || exit 0
trap '' USR1
trap 'exit 0' TERM
echo '{json.dumps(SAMPLE)}' > load/live.json
while :; do sleep 0.1; done
"""


@pytest.fixture
def collector(tmp_path: Path) -> Path:
    """A recorder that always has the same sample."""
    path = tmp_path / "collector"
    path.write_text(RECORDER, encoding="ascii")
    path.chmod(0o755)
    return path


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts over files of /proc")
def test_a_server_that_blocks_the_readers_of_its_files_is_reverted(tmp_path: Path, collector: Path) -> None:
    """A pipe in place of what a process can do with FUSE, or in execve(2)."""
    applied, pipe = tmp_path / "applied", tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["/bin/sleep", "600"]) as server:
        commands = {"apply": f"touch {applied}", "revert": f"rm {applied}"}
        text = planned(str(server.pid), collector, **commands)
        words = [sys.executable, "-S", "-P", "-m", "loadprint.commands.ab.conduct", str(tmp_path / "run")]
        conductor = subprocess.Popen(
            ["/usr/bin/unshare", "--mount", *words], env=BARE, stdin=subprocess.PIPE, text=True
        )
        try:
            assert conductor.stdin is not None
            conductor.stdin.write(text)
            conductor.stdin.flush()
            wait_for("the treatment", applied.exists)
            for name in ("stat", "cmdline", "environ", "comm", "status"):
                mount = ["mount", "--bind", str(pipe), f"/proc/{server.pid}/{name}"]
                subprocess.run(["nsenter", f"--mount=/proc/{conductor.pid}/ns/mnt", *mount], check=True)
            time.sleep(1.0)  # several times the pause between two checks
            conductor.stdin.close()
            assert conductor.wait(20) == 1
            assert not applied.exists()
        finally:
            conductor.kill()
            server.kill()


def test_a_revert_runs_no_program_that_the_run_directory_names(tmp_path: Path, collector: Path) -> None:
    """Such as one that another host wrote into run.json."""
    run, marker = tmp_path / "run", tmp_path / "marker"
    conducted(planned(str(os.getpid()), Path("/absent")), run)
    assert "collector" not in json.loads((run / "run.json").read_text(encoding="utf-8"))
    collector.write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="ascii")
    for status in ("failed", "running"):
        change_json(run / "run.json", collector=str(collector), status=status)
        done = bare("loadprint", "ab", "revert", str(run))
        assert done.returncode == 0, done.stderr
        assert not marker.exists()
    done = bare("loadprint", "ab", "revert", str(run), "--collector", str(collector))
    assert done.returncode == 0, done.stderr
    assert marker.exists()


@pytest.mark.parametrize("name", ["run.json", "load/switches.jsonl", "load/experiment.json"])
def test_a_revert_does_not_wait_for_a_pipe(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    conducted(planned(str(os.getpid()), Path("/absent")), run)
    (run / name).unlink()
    os.mkfifo(run / name)
    done = bare("loadprint", "ab", "revert", str(run), timeout=20)
    assert "Traceback" not in done.stderr
    if name == "run.json":  # which a revert does not need
        assert done.returncode == 0, done.stderr
    else:
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "is not a regular file" in done.stderr


def conducted(text: str, run: Path, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    return bare("loadprint.commands.ab.conduct", str(run), given=text + "\n", timeout=timeout)


def bare(
    module: str, *words: str, given: str = "", timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module without site-packages."""
    return subprocess.run(
        [sys.executable, "-S", "-P", "-m", module, *words],
        env=BARE,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
