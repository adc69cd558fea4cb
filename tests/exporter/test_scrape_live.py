"""A live node_exporter comes back whole from the recording; TLS and passwords keep out what they should."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from loadprint.importing.exposition import samples, series_text
from programs import COLLECT, printed

from .endpoints import LASTING, fetch, node_exporter

OWN = ("up", "scrape_duration_seconds", "scrape_samples_scraped")


def record(out: Path, *arguments: object) -> tuple[Path, list[int]]:
    """Record at 2 Hz until three ticks or more have an answer; gives the table of what was scraped, and them.

    A machine that stalls misses ticks: it gets more time.
    """
    for attempt, seconds in enumerate((2, 8, 32, 128)):
        made = out / f"{attempt}"
        options = ["--role", "server", "--interval", "500ms", "--duration", f"{seconds}s"]
        options += ["--scrape-timeout", "60s", "--probes", "scrape"]
        printed(COLLECT, "record", "--out", made, *options, *arguments)
        table = made / "server/scrape.parquet"
        asked = f"SELECT DISTINCT tick FROM '{table}' WHERE metric = 'up' ORDER BY 1"
        ticks = [int(tick) for (tick,) in duckdb.execute(asked).fetchall()]
        if len(ticks) >= 3:
            return table, ticks
    raise AssertionError(f"two minutes have {len(ticks)} scrapes")


def series(text: str) -> dict[str, float]:
    """The samples of an answer by their series."""
    return {series_text(sample.name, sample.labels): sample.value for sample in samples(Path("answer"), text)}


def test_a_tick_is_what_node_exporter_exposed(tmp_path: Path) -> None:
    with node_exporter(tmp_path / "log", *LASTING) as url:
        before = fetch(url)
        table, ticks = record(tmp_path / "run", "--scrape", f"node={url}")
        after = fetch(url)
    up = f"SELECT DISTINCT value FROM '{table}' WHERE metric = 'up'"
    assert duckdb.execute(up).fetchall() == [(1.0,)]
    rows = duckdb.execute(f"SELECT metric, text FROM '{table}' WHERE metric LIKE '# %'").fetchall()
    described = {f"{metric} {text}" for metric, text in rows if metric != "# URL"}
    assert described <= {line for text in (before, after) for line in text.splitlines() if line[:1] == "#"}
    kinds = {metric.split()[2]: text for metric, text in rows if metric.startswith("# TYPE ")}
    rows = duckdb.execute(
        f"SELECT metric, value FROM '{table}' WHERE tick = {ticks[1]} AND metric NOT LIKE '# %'"
    ).fetchall()
    tick = {metric: value for metric, value in rows if metric not in OWN}
    first, last = series(before), series(after)
    # what is there before and after is there between, and nothing else is
    assert first.keys() & last.keys() <= tick.keys() <= first.keys() | last.keys()
    assert len(tick) > 300
    for name in ("node_boot_time_seconds", "node_uname_info", "node_memory_MemTotal_bytes"):
        (full,) = (one for one in tick if one.partition("{")[0] == name)
        assert tick[full] == first[full] == last[full]
    counters = [one for one in first.keys() & last.keys() if kinds.get(one.partition("{")[0]) == "counter"]
    assert len(counters) > 100
    outside = [
        (one, first[one], tick[one], last[one])
        for one in counters
        if not first[one] <= tick[one] <= last[one]
    ]
    assert outside == []


def authority(place: Path, name: str) -> Path:
    """A separate certificate authority."""
    bare = place / "bare.cnf"
    bare.write_text("[req]\ndistinguished_name = dn\n[dn]\n")
    files = ["-keyout", place / f"{name}.key", "-out", place / f"{name}.crt"]
    request(bare, f"/CN={name}", "basicConstraints=critical,CA:TRUE", *files)
    return place / f"{name}.crt"


def request(bare: Path, subject: str, extension: str, *more: object) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    named = ["-subj", subject, "-addext", extension]
    printed("openssl", "req", "-config", bare, "-x509", *key, *named, *more)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """A web configuration with a certificate of the authority `ours`, and one user."""
    ca = authority(tmp_path, "ours")
    signed = ["-CA", ca, "-CAkey", ca.with_suffix(".key")]
    files = ["-keyout", tmp_path / "server.key", "-out", tmp_path / "server.crt"]
    request(tmp_path / "bare.cnf", "/CN=localhost", "subjectAltName=IP:127.0.0.1", *signed, *files)
    crypt = ["perl", "-e", "print crypt($ARGV[0], $ARGV[1])", "right", "$2b$04$abcdefghijklmnopqrstuu"]
    hashed = printed(*crypt)
    config = tmp_path / "web.yml"
    config.write_text(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
        f"basic_auth_users:\n  recorder: {hashed}\n"
    )
    return config


def login(place: Path, text: str) -> Path:
    place.touch(mode=0o600)
    place.write_text(text)
    return place


def test_https_is_scraped_with_the_right_authority_and_password(tmp_path: Path, web: Path) -> None:
    right, wrong = (
        login(tmp_path / "right", "basic recorder:right\n"),
        login(tmp_path / "wrong", "basic recorder:no\n"),
    )
    ours, other = tmp_path / "ours.crt", authority(tmp_path, "other")
    with node_exporter(tmp_path / "log", f"--web.config.file={web}") as plain:
        url = plain.replace("http://", "https://")

        def up(run: str, ca: Path, password: Path) -> list[tuple[float, str | None]]:
            scrape = ("--scrape", f"tls={url}", "--scrape-ca", ca, "--scrape-auth", f"tls={password}")
            table, _ = record(tmp_path / run, *scrape)
            result = duckdb.execute(
                f"SELECT DISTINCT value, text FROM '{table}' WHERE metric = 'up'"
            ).fetchall()
            assert "right" not in str(result)
            return [(float(value), text) for value, text in result]

        assert up("good", ours, right) == [(1.0, None)]
        for run, ca, password, says in (
            ("stranger", other, right, "certificate"),
            ("thief", ours, wrong, "401"),
        ):
            ((value, text),) = up(run, ca, password)
            assert value == 0
            assert says in str(text)
