"""Four servers in one execution, and one that runs already: metrics, findings, comparability by version."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from loadprint.commands.check.check_report import RULES
from ports import free_port
from programs import LOADPRINT, printed, read, wait_while
from programs import running as started

from . import campaigns, tarballs
from .campaigns import rows
from .machine import look, settled

NO_HISTOGRAM = "has no table performance_schema.events_statements_histogram_global"
LSN_8_0_30 = {
    "Innodb_redo_log_current_lsn",
    "Innodb_redo_log_checkpoint_lsn",
    "Innodb_redo_log_capacity_resized",
}
LSN_MARIADB = {"Innodb_lsn_current", "Innodb_lsn_last_checkpoint", "Innodb_checkpoint_age"}
LSN_TEXT = {"innodb_status.log_sequence_number", "innodb_status.last_checkpoint_at"}
ROWS, CACHE = {"Innodb_rows_read"}, {"Qcache_hits"}
EVERY = {"Questions", "Innodb_buffer_pool_pages_dirty", "innodb_metrics.buffer_flush_adaptive_total_pages"}
EVERY |= {"innodb_metrics.log_lsn_checkpoint_age", "innodb_metrics.trx_rseg_history_len"}


@dataclass(frozen=True)
class Expected:
    """What a server's version has (docs/mysql-probe.md), and the advice to enlarge its redo log."""

    version: str
    metrics: set[str]
    histogram: bool
    redo_fix: str


RESTART = "innodb_log_file_size=2147483648 in the configuration, and a restart"
EXPECTED = {
    "mysql97": Expected(
        r"mysql 9\.\d+\.\d+", LSN_8_0_30 | ROWS, True, "SET GLOBAL innodb_redo_log_capacity = 4294967296"
    ),
    "mysql80": Expected(r"mysql 8\.0\.12", LSN_TEXT | ROWS, True, RESTART),
    "mysql57": Expected(r"mysql 5\.7\.22", LSN_TEXT | ROWS | CACHE, False, RESTART),
    "mariadb": Expected(
        r"mariadb 10\.11\.\d+", LSN_MARIADB | CACHE, False, "SET GLOBAL innodb_log_file_size = 4294967296"
    ),
}
# Names of variables in a text, by their first word.
VARIABLE = re.compile(r"\b(?:innodb|sync|max|query_cache|general|long_query|performance)_\w+")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("servers")
    sources = {"mysql_80": tarballs.MYSQL_80, "mysql_57": tarballs.MYSQL_57}
    changes = [f"variables.{name}={tarballs.tarball(release)}" for name, release in sources.items()]
    before = look()  # after Maven, whose JVM leaves files
    campaigns.run("servers", runs, json.dumps({"campaign_set": changes}))
    assert settled(before) == []
    return next(runs.glob("servers/2*"))


def metrics_of(run: Path) -> set[str]:
    return {name for (name,) in rows(f"SELECT DISTINCT metric FROM '{run}/server/mysql.parquet'")}


def findings(run: Path) -> Mapping[str, str]:
    """Return {rule: fix} of `loadprint check`; the server has every variable that a finding names."""
    done = subprocess.run([LOADPRINT, "check", run, "--format", "json"], stdout=subprocess.PIPE, check=False)
    reported = json.loads(done.stdout)["findings"]
    has = read(run / "load/server.json")["variables"]
    for finding in reported:
        assert set(VARIABLE.findall(finding["fix"] + finding["evidence"])) <= set(has), finding
    return {finding["id"]: finding["fix"] for finding in reported}


def test_servers_that_take_turns_have_a_login_each(tmp_path: Path) -> None:
    """In each order of their starts: only MySQL has a public key, and the last one was taken for all."""
    campaigns.run("flavours", tmp_path / "runs", "starts=2")
    planned = read(campaigns.newest(tmp_path / "runs") / "execution.json")["runs"]
    assert {run["side"] for run in planned[1::2]} == {"mysql", "mariadb"}
    assert campaigns.complete(tmp_path / "runs") == {run["id"] for run in planned}


@pytest.mark.parametrize("side", EXPECTED)
def test_each_version_is_recorded_and_checked(finished: Path, side: str) -> None:
    run, expected = finished / f"b1-{side}-r1", EXPECTED[side]
    report = read(run / "run.json")
    assert (report["status"], report["placement"]["verified"]) == ("complete", True)
    assert re.fullmatch(expected.version, report["versions"]["server"])
    metrics = metrics_of(run)
    assert EVERY | expected.metrics <= metrics
    assert not (LSN_8_0_30 | LSN_MARIADB | LSN_TEXT | ROWS | CACHE) - expected.metrics & metrics
    assert not [name for name in metrics if name.startswith("loadprint.refused.")]
    ticks = f"SELECT DISTINCT probe, status FROM '{run}/server/ticks.parquet'"
    statuses = set(rows(ticks))
    assert {("mysql", "ok"), ("mysql_digests", "ok")} <= statuses
    assert (("mysql_statements", "ok") in statuses) == expected.histogram
    assert (("mysql_statements", "unavailable") in statuses) != expected.histogram
    fixes = findings(run)
    assert fixes["redo_small"] == expected.redo_fix
    assert ("io_capacity" in fixes) == (side != "mysql97"), "10000 is the default since 8.4"


def test_the_table_states_what_the_versions_have_in_common(finished: Path) -> None:
    output = printed(LOADPRINT, "compare", finished, "--all")
    assert NO_HISTOGRAM in " ".join(output.split())
    verdicts = json.loads(printed(LOADPRINT, "compare", finished, "--format", "json"))["verdicts"]
    verdict = next(verdict for verdict in verdicts if verdict["key"] == "comparable")
    assert verdict["answer"] == "with reserve", verdict
    assert "MySQL 5.7.22 | MariaDB 10.11" in output
    # redo, by four names, is a figure on every side
    redo = [line for line in output.splitlines() if line.startswith("  redo written  ")]
    assert redo
    assert not [row for row in redo if "n/a" in row]


PASSWORDS = {"bench": "secret-of-bench", "watcher": "secret-of-watcher"}
DIGESTS = "performance_schema.events_statements_summary_by_digest"
ACCOUNTS = (
    "CREATE DATABASE shop",
    f"CREATE USER 'bench'@'%' IDENTIFIED BY '{PASSWORDS['bench']}'",
    "GRANT ALL ON shop.* TO 'bench'@'%'",
    f"CREATE USER 'watcher'@'localhost' IDENTIFIED BY '{PASSWORDS['watcher']}'",
    "GRANT PROCESS ON *.* TO 'watcher'@'localhost'",
    f"GRANT SELECT ON {DIGESTS} TO 'watcher'@'localhost'",
)


def advice() -> list[str]:
    """The statements of all fixes that need no value of the host: a server stops at one that it refuses."""
    fixes = [rule.fix for rule in RULES if "SET GLOBAL" in rule.fix]
    statements = [statement.strip() for fix in fixes for statement in fix.split(";")]
    return [statement for statement in statements if re.fullmatch(r"SET GLOBAL \w+ = (\d+|OFF)", statement)]


@dataclass(frozen=True)
class OwnServer:
    """A running server: its process, its socket, its log."""

    pid: int
    socket: Path
    log: Path


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Path, OwnServer]]:
    """A MySQL 5.7 that this test started, with accounts for the load and the recorder."""
    with TemporaryDirectory(dir="/var/tmp") as name:
        place = Path(name)
        unpacked = place / "unpacked"
        unpacked.mkdir()
        quiet = ["--no-same-owner", "--warning=no-unknown-keyword"]
        archive = tarballs.tarball(tarballs.MYSQL_57)
        subprocess.run(["tar", "xf", archive, "-C", unpacked, *quiet], check=True)
        for account, password in PASSWORDS.items():
            (place / account).write_text(f"{password}\n")
            (place / account).chmod(0o600)
        home = place / "home"
        home.mkdir()
        common: list[str | Path] = [unpacked / "bin/mysqld", "--no-defaults", "--user=root"]
        common += [f"--basedir={unpacked}", f"--datadir={home}/data"]
        printed(*common, "--initialize-insecure")
        (home / "init.sql").write_text("".join(f"{statement};\n" for statement in (*ACCOUNTS, *advice())))
        log, socket = home / "error.log", home / "mysql.sock"
        options = {
            "bind-address": "127.0.0.1",
            "port": free_port(),
            "socket": socket,
            "pid-file": home / "pid",
            "secure-file-priv": home,
            "init-file": home / "init.sql",
            "innodb-buffer-pool-size": "64M",
            "loose-mysqlx": "OFF",
            "loose-auto-generate-certs": "OFF",
        }
        with started([*common, *(f"--{name}={value}" for name, value in options.items())], log) as server:
            wait_while(server, "the server", lambda: "ready for connections" in log.read_text(), log)
            yield place, OwnServer(server.pid, socket, log)


def existing(place: Path, server: OwnServer, **changes: Any) -> list[str]:
    address = {"socket": f"{server.socket}", "user": "bench", "database": "shop", "pid": server.pid}
    files = {"password_file": f"{place}/bench", "probe_password_file": f"{place}/watcher"}
    known = address | files | {"probe_user": "watcher"} | changes
    return ["mysql_source=existing", json.dumps({"server_existing": known})]


def test_an_existing_server_is_measured_and_left_as_it_was(running: tuple[Path, OwnServer]) -> None:
    place, server = running
    before = look()
    campaigns.run("existing", place, *existing(place, server))
    assert settled(before) == []
    execution = next(place.glob("existing/2*"))
    for run in execution.glob("b*"):
        assert read(run / "run.json")["placement"]["connection"] == "socket"
        tables = {path.stem for path in (run / "server").glob("*.parquet")}
        assert {"mysql", "process", "threads"} <= tables
        assert EVERY - metrics_of(run) == {
            "innodb_metrics.buffer_flush_adaptive_total_pages",
            "innodb_metrics.log_lsn_checkpoint_age",
        }, "off by default, and an existing server is not configured"
        findings(run)
        variables = read(run / "load/server.json")["variables"]
        assert (variables["innodb_io_capacity"], variables["innodb_io_capacity_max"]) == ("10000", "20000")
    # it is not pinned: it may run on the CPU of the load
    assert "is in both" in " ".join(campaigns.reasons(place).split())
    # the tables stay, and further repeats use them
    campaigns.run("existing", place, *existing(place, server), "campaign_more=1")
    assert list(campaigns.statuses(place).values()) == ["complete"] * 4
    kept = [path for path in place.glob("existing/**/*") if path.is_file()]
    assert not [path for path in kept if b"secret-of" in path.read_bytes()]
    assert "[ERROR]" not in server.log.read_text()


def test_a_process_that_does_not_exist_is_one_line(running: tuple[Path, OwnServer]) -> None:
    place, server = running
    output = campaigns.run(
        "existing", place / "wrong", *existing(place, server, pid=4_194_305), statuses=(2,)
    )
    last = output.splitlines()[-1]
    assert "has no process 4194305: correct pid in server_existing" in last, output
