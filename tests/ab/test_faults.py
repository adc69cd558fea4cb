"""Every end of an experiment reverts the change once, verifies it, and records it in the run directory."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from programs import ROOT, TIMEOUT_S, wait_for

from .bench import LONG_S, Bench, Server, alive, production, revert


def reverted(bench: Bench, *, start: bool = False) -> tuple[str, str]:
    """Wait for the end of an experiment that a fault ends reverted; give its stderr and its reason."""
    status, stderr = bench.run() if start else bench.end()
    assert (status, bench.called()) == (1, ["apply", "revert"]), stderr
    assert not bench.applied.exists()
    return stderr, bench.meta()["reason"]


def test_a_normal_end_leaves_nothing(bench: Bench) -> None:
    status, stderr = bench.run()
    assert (status, bench.called()) == (0, ["apply", "revert"]), stderr
    assert not bench.applied.exists()
    assert bench.meta()["status"] == "complete"
    assert bench.phases()[-1] == "baseline"
    # on a machine that stalls, a window may contain too few readings
    assert bench.shown()["verdict"] in ("undecided", "not measured")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reverts(bench: Bench, number: signal.Signals) -> None:
    bench.start_treated()
    bench.process.send_signal(number)
    stderr, reason = reverted(bench)
    assert f"interrupted by {number.name}; reverting" in stderr
    assert reason.startswith(f"interrupted by {number.name}; reverted and verified")


def test_a_treated_server_is_measured_first_and_treated_at_the_end(bench: Bench) -> None:
    bench.document["initial"] = "treatment"
    bench.applied.touch()
    status, stderr = bench.run()
    assert (status, bench.called()) == (0, ["revert", "apply"]), stderr
    assert bench.applied.exists()
    # the phases have the names of the commands that ran
    assert [phase for phase in bench.phases() if phase not in {"measure", "settle"}] == [
        "treatment",
        "revert",
        "baseline",
        "apply",
    ]
    assert "complete; applied again and verified" in stderr
    assert [flip.split()[2] for flip in bench.shown()["flips"]] == ["revert", "apply"]


def test_a_treated_server_whose_experiment_is_killed_is_treated_again(bench: Bench) -> None:
    bench.document["initial"] = "treatment"
    bench.document["schedule"]["window"] = LONG_S
    bench.document["schedule"]["order"] = "ABBA"
    bench.applied.touch()
    bench.start()
    wait_for("the baseline window", lambda: "baseline" in bench.phases())
    assert not bench.applied.exists()
    os.kill(bench.conductor(), signal.SIGKILL)
    status, stderr = bench.end()
    assert (status, bench.called()) == (1, ["revert", "apply"]), stderr
    assert bench.applied.exists()


def test_a_server_in_the_other_variant_is_refused(bench: Bench) -> None:
    bench.document["initial"] = "treatment"
    status, stderr = bench.run()
    assert status == 2, stderr
    assert "treatment.verify_applied: failed before the first switch" in stderr
    assert "the server is not in the initial variant, treatment" in stderr
    assert bench.called() == []


def test_a_lost_terminal_reverts_although_the_output_is_not_read(bench: Bench) -> None:
    reader, writer = os.pipe()
    bench.start_treated(stdout=writer, stderr=writer)
    os.close(writer)
    os.close(reader)
    bench.process.send_signal(signal.SIGHUP)
    assert bench.process.wait(TIMEOUT_S) == 1
    assert bench.called() == ["apply", "revert"]
    assert bench.meta()["reason"].startswith("interrupted by SIGHUP; reverted and verified")


def test_a_killed_caller_is_noticed_at_once_and_the_recording_is_whole(bench: Bench) -> None:
    bench.start_treated()
    conductor, recorder = bench.conductor(), bench.recorder()
    bench.process.kill()
    bench.process.communicate()
    wait_for("the end of both", lambda: not alive(conductor) and not alive(recorder))
    assert not bench.applied.exists()
    assert bench.called() == ["apply", "revert"]
    assert bench.meta()["status"] == "failed"
    assert bench.meta()["reason"] == "the caller is gone; reverted and verified"
    assert bench.shown()["flips"][-1].endswith("(the caller is gone)")


def test_a_stopped_caller_loses_its_lease_and_reports_it(bench: Bench) -> None:
    bench.document["lease"] = 10
    bench.start_treated()
    bench.process.send_signal(signal.SIGSTOP)
    wait_for("the revert", lambda: not bench.applied.exists())
    bench.process.send_signal(signal.SIGCONT)
    stderr, _ = reverted(bench)
    assert "the caller is gone: it did not renew its lease of 10 s" in stderr
    assert bench.meta()["status"] == "failed"


def test_the_deadline_reverts(tmp_path: Path, server: Server) -> None:
    for deadline in (5, 20, 80):
        bench = Bench(tmp_path / f"{deadline}", server)
        bench.directory.mkdir()
        bench.document["deadline"] = deadline
        bench.document["schedule"]["window"] = LONG_S
        status, stderr = bench.run()
        if bench.called():  # on a slow machine a short deadline passes before the first switch
            break
    assert (status, bench.called()) == (1, ["apply", "revert"]), stderr
    assert "the deadline has passed" in bench.meta()["reason"]


def test_a_killed_conductor_leaves_a_reverted_server(bench: Bench) -> None:
    bench.start_treated()
    recorder = bench.recorder()
    os.kill(bench.conductor(), signal.SIGKILL)
    stderr, reason = reverted(bench)
    assert "its process was killed by signal 9" in stderr
    wait_for("the end of the recorder", lambda: not alive(recorder))
    assert reason == "its process was killed; reverted and verified, by hand"


def test_a_command_of_a_killed_conductor_does_not_apply_after_the_revert(bench: Bench) -> None:
    gate = bench.directory / "gate"
    os.mkfifo(gate)
    # it would continue after a write into the pipe
    bench.document["treatment"]["apply"] = (
        f"echo apply >> {bench.calls}; read line < {gate}; touch {bench.applied}"
    )
    bench.start()
    wait_for("the command", lambda: bench.called() == ["apply"])
    os.kill(bench.conductor(), signal.SIGKILL)
    status, stderr = bench.end()
    assert status == 1, stderr
    with pytest.raises(OSError, match="No such device"):  # no process reads the pipe
        os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
    assert not bench.applied.exists()


def test_a_revert_that_fails_once_is_tried_again(bench: Bench) -> None:
    once = bench.directory / "once"
    bench.document["treatment"]["revert"] = (
        f"echo revert >> {bench.calls}; test -e {once} || {{ touch {once}; exit 7; }}; rm -f {bench.applied}"
    )
    status, stderr = bench.run()
    assert (status, bench.called()) == (0, ["apply", "revert", "revert"]), stderr
    assert not bench.applied.exists()


def test_a_revert_that_always_fails_is_the_last_line(bench: Bench) -> None:
    revert = f"echo revert >> {bench.calls}; false"
    bench.document["treatment"]["revert"] = revert
    status, stderr = bench.run()
    assert status == 2
    last = stderr.strip().splitlines()[-1]
    assert "NOT REVERTED" in last
    assert last.endswith(f"Run by hand, now: {revert}")
    assert bench.applied.exists()
    assert bench.meta()["status"] == "failed"
    assert "revert" in bench.meta()["reason"]


def test_a_treatment_that_cannot_be_verified_is_reverted(bench: Bench) -> None:
    bench.document["treatment"]["verify_applied"] = "echo it is not there; false"
    assert "verify_applied: exit 1: it is not there" in reverted(bench, start=True)[1]


def test_a_command_that_hangs_is_ended_and_reverted(bench: Bench) -> None:
    bench.document["treatment"] |= {
        "apply": f"echo apply >> {bench.calls}; exec sleep 1000",
        "timeout": "10s",  # enough for the other commands on a machine that stalls
    }
    assert "apply: timed out after 10 s" in reverted(bench, start=True)[1]


def test_a_server_that_is_already_treated_is_not_switched(bench: Bench) -> None:
    bench.applied.touch()
    status, stderr = bench.run()
    assert (status, bench.called()) == (2, []), stderr
    assert "treatment.verify_reverted" in stderr
    assert bench.applied.exists()
    assert bench.meta()["status"] == "failed"


def test_a_server_that_does_not_answer_is_not_switched(bench: Bench) -> None:
    bench.document["server"] |= {"socket": "/nowhere/mysql.sock"}
    status, stderr = bench.run()
    assert (status, bench.called()) == (2, []), stderr
    assert "/nowhere/mysql.sock" in stderr.splitlines()[-1]
    assert bench.meta()["status"] == "failed"


@pytest.mark.parametrize(
    ("guards", "says"),
    [
        ({"threads_running": 0.5}, "guard threads_running"),
        ({"queries_per_second_min": 1e9}, "guard queries_per_second"),
        ({"replication_lag": {"command": "echo 31", "max": 30}}, "guard replication_lag: 31, above 30"),
        (
            {"commands": {"mine": {"command": "echo what", "max": 1}}},
            "guard mine: its command printed no number",
        ),
    ],
)
def test_a_guard_that_trips_reverts(bench: Bench, guards: dict[str, object], says: str) -> None:
    bench.document["guards"] = {**guards, "readings": 1}
    bench.document["schedule"]["window"] = LONG_S
    assert says in reverted(bench, start=True)[1]


def test_a_recorder_that_dies_ends_it_reverted(bench: Bench) -> None:
    bench.start_treated()
    os.kill(bench.recorder(), signal.SIGKILL)
    assert "the recorder ended (killed by signal 9" in reverted(bench)[1]
    assert bench.shown()["verdict"] == "not measured"


def test_two_experiments_on_one_server_are_refused(bench: Bench, tmp_path: Path, server: Server) -> None:
    bench.start_treated()
    (tmp_path / "second").mkdir()
    second = Bench(tmp_path / "second", server)
    status, stderr = second.run()
    assert (status, second.called()) == (2, []), stderr
    assert "another experiment" in stderr
    bench.process.terminate()
    assert bench.end()[0] == 1


def test_after_everything_was_killed_it_is_reverted_by_hand(bench: Bench) -> None:
    bench.start_treated()
    bench.kill_all()
    assert bench.applied.exists()
    for _ in range(2):
        status, stderr = revert(bench.out)
        assert (status, bench.called()) == (0, ["apply", "revert"]), stderr
    assert not bench.applied.exists()
    assert bench.shown()["reason"] == "its process was killed; reverted and verified, by hand"


def test_a_running_experiment_is_not_reverted_by_hand(bench: Bench) -> None:
    bench.start_treated()
    status, stderr = revert(bench.out)
    assert (status, bench.called()) == (2, ["apply"]), stderr
    assert "its experiment is running" in stderr
    bench.process.terminate()
    assert bench.end()[0] == 1


def test_a_server_that_dies_is_reverted_and_reported(tmp_path: Path) -> None:
    """Uses a separate server, which the test kills."""
    script = f"env > {tmp_path}/environment.new; cd {tmp_path}; mv environment.new environment; exec cat"
    words = ["tests/with-server", "sh", "-c", script]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as around:
        try:
            wait_for("the server", (tmp_path / "environment").exists)
            lines = (tmp_path / "environment").read_text(encoding="utf-8").splitlines()
            server = Server(dict(line.partition("=")[::2] for line in lines))
            bench = Bench(tmp_path, server)
            with production(server, 100):
                bench.start_treated()
                os.kill(server.pid, signal.SIGKILL)
                _, reason = reverted(bench)
        finally:
            assert around.stdin is not None
            around.stdin.close()
    assert "has ended" in reason
    assert "reverted and verified" in reason
