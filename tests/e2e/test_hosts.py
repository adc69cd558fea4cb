"""Server and loads on several hosts over SSH: the delay in the table, and what is left."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from programs import ROOT, wait_for

from . import campaigns
from .hosts import Bench, bench
from .mirror import packages

DELAY_S = 0.005  # each way
LOSS = 0.02
PROGRAMS = ("loadprint-collect", "loadprint-load", "loadprint-supervise")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("pair"), forwarded=True) as made:
        yield made


@pytest.fixture(scope="module")
def measured(pair: Bench) -> tuple[Bench, str]:
    """One campaign of three equal sides: without delay, with delay, with loss."""
    campaign = pair.written(sides=("near", "far", "lossy"))
    process = pair.start(pair.campaign(campaign, f"loadprint_bin_dir={built(pair.place)}"))
    for done, delay, loss in (("near", 1000 * DELAY_S, 0.0), ("far", 0.0, LOSS)):
        wait_for(f"{done} complete", partial(reached, pair, process, f"b1-{done}-r1"))
        pair.set("delay", delay)
        pair.set("loss", loss)
    process.wait()
    pair.set("loss", 0)
    output = pair.output()
    assert process.returncode == 0, output
    return pair, output


def built(place: Path) -> Path:
    """Give a build like this checkout's, next to portable programs that differ from it: they are stripped."""
    release, portable = place / "target/release", place / "target/hosts" / os.uname().machine
    portable.mkdir(parents=True)
    release.symlink_to(ROOT / "target/release")
    for name in PROGRAMS:
        subprocess.run(["strip", "--strip-debug", "-o", portable / name, release / name], check=True)
    return release


def reached(made: Bench, process: subprocess.Popen[str], run: str) -> bool:
    return run in campaigns.complete(made.runs) or process.poll() is not None


@pytest.fixture(scope="module")
def rows(measured: tuple[Bench, str]) -> dict[str, list[float]]:
    """The values of all rows: of near, far and lossy."""
    return campaigns.table_rows(measured[0].runs)


def test_the_delay_of_the_network_is_in_the_round_trips(rows: dict[str, list[float]]) -> None:
    near, far, _ = rows["rtt_p50"]
    # The buckets of the histogram are 7 % wide. A busy machine forwards later, never earlier.
    assert 1.86 * DELAY_S < far < 10 * DELAY_S, rows["rtt_p50"]
    assert far - near > DELAY_S, rows["rtt_p50"]


def test_statements_fall_as_round_trips_predict(rows: dict[str, list[float]]) -> None:
    """Each statement is one round trip: threads / (service time + round trip, as measured)."""
    (near, far, _), threads = rows["statements"], 4
    near_rtt, far_rtt, _ = rows["rtt_p50"]
    predicted = threads / (threads / near + far_rtt - near_rtt)
    assert 0.6 * predicted < far < 1.6 * predicted, (near, far, predicted)


def test_lost_segments_are_sent_again(rows: dict[str, list[float]]) -> None:
    near, _, lossy = rows["tcp_retransmits"]
    assert lossy > near + 1, rows["tcp_retransmits"]


def test_every_run_used_all_cpus_of_its_hosts_and_verified_it(measured: tuple[Bench, str]) -> None:
    made, _ = measured
    for side in ("near", "far", "lossy"):
        run = campaigns.document(made.runs, f"b1-{side}-r1")
        assert run["placement"]["verified"], run
        assert run["placement"]["how"] == "by host"
        assert set(run["roles"]) == {"server", "load"}
        assert all(role["cpus"] for role in run["roles"].values())
    assert "no CPU set was given" not in campaigns.reasons(made.runs)


def test_targets_get_the_portable_programs_of_their_architecture(measured: tuple[Bench, str]) -> None:
    made, _ = measured
    release, portable = (made.place / "target" / name for name in ("release", f"hosts/{os.uname().machine}"))
    for host in made.hosts:
        found = {name: digest(host.data / "bin" / name) for name in PROGRAMS}
        assert found == {name: digest(portable / name) for name in PROGRAMS}
        assert not set(found.values()) & {digest(release / name) for name in PROGRAMS}
        # clients in Go and Java are built for the control node only
        assert {path.name for path in (host.data / "bin").iterdir()} == set(PROGRAMS)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_nothing_is_left_but_what_is_announced(measured: tuple[Bench, str]) -> None:
    made, _ = measured
    assert not any(made.left().values())
    for host in made.hosts:
        left = host.shell("ls /dev/shm; ls -d /run/loadprint 2>/dev/null; ls /var/lib/loadprint")
        assert left.split() == ["bin", "executions"]
        assert host.shell("ls /var/lib/loadprint/executions") == ""


def test_no_secret_is_in_any_file(pair: Bench) -> None:
    """Search all files of the control node and of both hosts during a campaign and after it."""
    campaign = pair.written(sides=("near", "far"))
    process = pair.start(pair.campaign(campaign, "campaign_new=true"))
    wait_for("a measure phase", lambda: campaigns.measuring(pair.loads[0].data) or process.poll() is not None)
    account = campaigns.newest(pair.runs) / "account"
    secrets = {path.name: path.read_text().split()[0] for path in account.iterdir()}
    assert set(secrets) == {"password", "recorder"}
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in lines for secret in secrets.values() if secret.encode() in line]
    modes = {path: path.stat().st_mode & 0o777 for path in containing(pair, secrets)}
    # the generator's and the recorder's copies, and those of the control node
    assert {path.name for path in modes} <= {"password", "recorder", "init.sql"}, modes
    assert set(modes.values()) == {0o600}, modes
    listening = pair.server.shell("ss --no-header --listening --tcp --numeric | awk '{print $4}'").split()
    assert f"{pair.server.address}:33306" in listening
    assert not [
        address for address in listening if address.endswith(":33306") and pair.server.address not in address
    ]
    process.wait()
    assert process.returncode == 0, pair.output()
    assert not containing(pair, secrets)
    folders = {path.parent for path in campaigns.newest(pair.runs).glob("b*/run.json")}
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o750}


def containing(made: Bench, secrets: dict[str, str]) -> list[Path]:
    """List the files of the bench (control node and hosts) with a secret in them."""
    texts = [secret.encode() for secret in secrets.values()]
    found = []
    for path in made.place.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes() if path.exists() else b""
            found += [path] if any(text in content for text in texts) else []
    return found


def test_a_run_fails_whose_host_sends_more_than_its_files(pair: Bench) -> None:
    """A user who controls a host controls the archive that the control node unpacks."""
    process = pair.start(pair.campaign(pair.written(), "campaign_new=true"))
    wait_for("a measure phase", lambda: campaigns.measuring(pair.loads[0].data) or process.poll() is not None)
    pair.loads[0].shell("cd /var/lib/loadprint/executions/*/b1-*/load && mkfifo journal.old")
    process.wait()
    run = next(campaigns.newest(pair.runs).glob("b1-*"))
    document = campaigns.document(pair.runs, run.name)
    assert document["status"] == "failed", pair.output()
    assert "contains `load/journal.old`, which is not a regular file" in (reason := document["reason"])
    assert "the server died" not in reason
    assert not (run / "load").exists()
    assert not pair.has_left()


def test_a_host_without_lists_of_packages_installs_the_distributions_server(pair: Bench) -> None:
    with packages(pair.server):
        output = pair.run(pair.campaign(pair.written(), "mysql_source=package"))
    assert "server: mariadb 10.11" in output, output
