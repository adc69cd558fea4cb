"""Two groups of instances: each runs its campaign in the planned order, and the groups are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ports import free_port
from programs import ended, playbook, read, started, wait_for

from . import campaigns
from .machine import look, settled

GROUPS = {"baseline": ("old1", "old2"), "candidate": ("new1", "new2")}
NAMES = [name for names in GROUPS.values() for name in names]
# All four are this machine, with the machine's id.
SPEC = "about: instances\ninstances_by: execution\nrows: {operations: 3 %}\nconcurrencies: 1\n"


def command(place: Path, **variables: Any) -> list[str]:
    """Give the command of a qualification of four connections to this machine, two at a time."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    ports = {name: {"server_port": free_port()} for name in NAMES}
    groups = {group: {"hosts": {name: ports[name] for name in names}} for group, names in GROUPS.items()}
    # JSON is YAML
    (place / "types.yml").write_text(json.dumps({"all": {"vars": local | variables, "children": groups}}))
    (place / "spec.yml").write_text(SPEC)
    settings = {
        "campaign_file": str(campaigns.written(place, "instances")),
        "qualify_runs_dir": str(place / "runs"),
        "qualify_spec": str(place / "spec.yml"),
        "qualify_parallel": 2,
        "qualify_seed": 5,
    }
    return playbook("qualify", "-i", place / "types.yml", **settings)


def measured(place: Path, name: str) -> tuple[int, int]:
    """When the only run of an instance began and ended."""
    run = read(next(place.glob(f"runs/{name}/instances/2*/b1-oltp-r1/run.json")))
    assert (run["status"], run["roles"]["server"]["host"]) == ("complete", name)
    return run["started_realtime_ns"], run["ended_realtime_ns"]


def test_four_instances_run_two_at_a_time_and_are_judged(tmp_path: Path) -> None:
    before = look()
    output = ended(command(tmp_path), (2,))
    assert settled(before) == []
    order = output.partition("one after the other: ")[2].partition("; progress")[0]
    waves = [wave.split(" with ") for wave in " ".join(order.split()).split(", ")]
    assert sorted(map(len, waves)) == [2, 2], output
    assert sorted(name for wave in waves for name in wave) == sorted(NAMES)
    first, second = ([measured(tmp_path, name) for name in wave] for wave in waves)
    assert max(end for _, end in first) < min(begin for begin, _ in second)
    report = read(tmp_path / "runs/qualify.json")
    assert report["status"] == 2, "one repeat of each gives no spread"
    text = json.dumps(report)
    assert all(f"runs/{name}/" in text for name in NAMES), text
    assert (tmp_path / "runs/qualify.xml").read_text().startswith("<?xml")
    assert "not qualified: undecided" in output.splitlines()[-1], output


def test_instances_that_fail_are_named_with_their_reason(tmp_path: Path) -> None:
    output = ended(command(tmp_path, server_packages=["no-such-server"]), (2,))
    for name in NAMES:
        assert f"the distribution of {name} has none of no-such-server" in output.splitlines()[-1], output
    assert not (tmp_path / "runs/qualify.json").exists()


def test_campaigns_end_with_the_playbook(tmp_path: Path) -> None:
    before = look()
    qualification = started(command(tmp_path), tmp_path / "output")
    # by then its supervisor owns its directory
    wait_for(
        "the data",
        lambda: list(tmp_path.glob("runs/*/instances/2*/data/instance")) or qualification.poll() is not None,
    )
    assert qualification.poll() is None
    qualification.kill()
    qualification.wait()
    assert settled(before) == []
    assert not list(tmp_path.glob("runs/*/instances/2*/b1-oltp-r1/manifest.json"))
