"""Campaign files: accepted files, and errors that name the file, the line, the key and the fix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from loadprint.commands.campaign.campaign_file import load
from loadprint.configuration.document import DocumentError
from loadprint.configuration.field_types import seconds, size

QUICK = Path(__file__).parents[2] / "ansible" / "campaigns" / "quick.yml"


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = QUICK.read_text(encoding="utf-8")
    assert text.count(old) >= 1, old
    path = tmp_path / "mine.yml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def line_of(path: Path, text: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def test_quick_is_valid_and_resolved_to_seconds_and_bytes() -> None:
    campaign = load(QUICK)
    assert campaign.reference == "oltp"
    assert campaign.repeats == 3
    assert campaign.server.redo_capacity == 128 << 20
    assert campaign.phases.measure == 20.0
    assert campaign.sides["insert"].options == {"scenario": "ctx5"}
    assert campaign.warm.redo_capacities_written == 0.1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("repeats: 3", "repeets: 3", 'unknown key "repeets"; did you mean "repeats"?'),
        (
            "threads: 4",
            "thread: 4",
            'unknown key "thread" in sides.oltp; did you mean "threads"?',
        ),
        (
            "profile: durable",
            "profile: durabel",
            "server.profile: Input should be 'durable', 'blog' or 'stock'",
        ),
        (
            "measure: 20s",
            "measure: 20 parsecs",
            '"20 parsecs" is not a duration; write it as 8s, 2m or 1h',
        ),
        (
            "redo_capacity: 128M",
            "redo_capacity: lots",
            '"lots" is not a size; write it as 256M or 4G',
        ),
        (
            "reference: oltp",
            "reference: olpt",
            'no side "olpt"; the sides are oltp, insert',
        ),
        (
            "data: insert",
            "data: inserts",
            'sides.insert.data: no data set "inserts"',
        ),
        (
            "repeats: 3",
            "repeats: 3\nrecorder: {exporters: [node_exporter, nod_exporter]}",
            "recorder.exporters.1: Input should be 'node_exporter' or 'mysqld_exporter'",
        ),
        (
            "repeats: 3",
            "repeats: 3\nrecorder: {exporters: [node_exporter, node_exporter]}",
            "recorder: node_exporter is listed twice",
        ),
        (
            "repeats: 3",
            "repeats: 3\nrecorder: {mysql_probe: false, exporters: [mysqld_exporter]}",
            "needs the account that `mysql_probe: false` omits",
        ),
        ("repeats: 3", "repeats: [3", "not YAML"),
        ("repeats: 3", "repeats: 3\nrepeats: 4", 'duplicate key "repeats"'),
    ],
)
def test_a_mistake_names_line_key_and_fix(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(DocumentError) as error:
        load(path)
    message = str(error.value)
    assert says in message
    assert "\n" not in message
    place, number, _ = message.split(":", 2)
    assert place == str(path)
    at = line_of(path, new.splitlines()[-1])
    # A bracket that is never closed is noticed on a later line.
    assert int(number) > at if says == "not YAML" else int(number) == at


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r'key "reference" is missing'):
        load(changed(tmp_path, "reference: oltp", ""))


def test_a_missing_file_names_its_neighbours() -> None:
    with pytest.raises(DocumentError, match=r"no such campaign file; available: .*quick"):
        load(QUICK.with_name("quik.yml"))


def test_overrides_reach_nested_keys_and_are_named_when_wrong() -> None:
    campaign = load(QUICK, ["repeats=5", "phases.measure=3s", "sides.oltp.options.table-size=10"])
    assert campaign.repeats == 5
    assert campaign.phases.measure == 3.0
    assert campaign.sides["oltp"].options["table-size"] == 10
    with pytest.raises(DocumentError, match=r'^--set phases.mesure: unknown key "mesure" in phases'):
        load(QUICK, ["phases.mesure=3s"])
    with pytest.raises(DocumentError, match=r"repeats is a single value"):
        load(QUICK, ["repeats.x=3"])
    with pytest.raises(DocumentError, match=r"write it as key.key=value"):
        load(QUICK, ["repeats"])


def test_the_canary_is_on_and_sysstat_off_unless_said() -> None:
    assert (load(QUICK).canary, load(QUICK).sysstat) == (True, False)
    campaign = load(QUICK, ["canary=false", "sysstat=true"])
    assert (campaign.canary, campaign.sysstat) == (False, True)
    with pytest.raises(DocumentError, match=r"^--set sysstat: "):
        load(QUICK, ["sysstat=perhaps"])


def test_exporters_are_off_unless_named() -> None:
    assert load(QUICK).recorder.exporters == []
    both = ["node_exporter", "mysqld_exporter"]
    assert load(QUICK, [f"recorder.exporters={both}"]).recorder.exporters == both


def test_hammerdb_runs_for_whole_minutes() -> None:
    both = QUICK.with_name("hammerdb-vs-sysbench.yml")
    assert load(both, scales=["both"]).phases.measure == 60
    with pytest.raises(DocumentError, match=r"HammerDB \(side hammerdb\) supports whole minutes only"):
        load(both, ["phases.measure=45s"], scales=["both"])


def test_an_existing_server_cannot_be_restored() -> None:
    with pytest.raises(DocumentError, match=r"state.data: an existing server cannot be restored"):
        load(QUICK, ["server.source=existing"])
    assert load(QUICK, ["server.source=existing", "state.data=carried"]).state.data == "carried"


@pytest.mark.parametrize(
    ("text", "value"),
    [("8s", 8.0), ("2m", 120.0), ("1.5h", 5400.0), ("250ms", 0.25), (3, 3.0)],
)
def test_durations(text: object, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(("text", "value"), [("256M", 256 << 20), ("4GiB", 4 << 30), ("512", 512), (7, 7)])
def test_sizes(text: object, value: int) -> None:
    assert size(text) == value


def test_the_command_prints_the_plan_and_exits_2_on_a_mistake(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loadprint", "campaign"]
    good = subprocess.run(
        [*command, QUICK, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    plan = json.loads(good.stdout)
    assert len(plan["runs"]) == 6
    assert plan["directory"] is None
    text = subprocess.run([*command, QUICK, "--set", "seed=7"], capture_output=True, text=True, check=True)
    assert "seed 7" in text.stdout
    bad = subprocess.run(
        [*command, changed(tmp_path, "repeats:", "repeat:")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert len(bad.stderr.splitlines()) == 1


def test_an_unknown_workload_is_named_with_its_line(tmp_path: Path) -> None:
    known = ["oltp_read_write", "arm_insert"]
    assert load(QUICK, workloads=known).sides["oltp"].workload == "oltp_read_write"
    path = changed(tmp_path, "workload: arm_insert", "workload: arm_inset")
    with pytest.raises(
        DocumentError, match=r'unknown workload "arm_inset" in data.insert; did you mean'
    ) as error:
        load(path, workloads=known)
    assert str(error.value).startswith(f"{path}:{line_of(path, 'arm_inset')}: ")
