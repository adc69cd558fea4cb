"""A user's own rows, rows of scraped series, and units of the recording that are not the recorder's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from damage import ask
from loadprint.printable import UNSAFE
from reads import quantities
from recordings import Host, Rows, Tables, change_metadata, change_rows, make_run, metrics, of_mysql

MINE = r"""
[names]
"own.bytes" = "nic.veth0.rx_bytes + nic.veth0.tx_bytes"
"load.events" = "load.events + 1000"

[[row]]
key = "major_faults"
label = "major faults"
from = "vmstat"
formula = "pgmajfault"
show = "/s"
chart = ["memory", "Major faults"]

[[row]]
key = "free_mean"
label = "free memory (mean)"
formula = "mean(memory.MemFree)"
show = "MiB"

[[row]]
key = "{each}_per_statement"
each = { own = "own.bytes", absent = "nic.veth0.absent_bytes | 0" }
label = "{each}, per statement"
formula = "({name}) / load.queries"
show = "B"

[[row]]
key = "{each}"
each = { no_divisor = "nic.veth0.rx_bytes / (load.queries / load.queries - 1)", gauge = "memory.MemFree" }
label = "{each}"
formula = "{name}"
show = "kB/s"
chart = ["memory", "{each}"]

[[row]]
key = "server_cpu_per_statement"
label = "one\u001b[31m\nline"
formula = "vmstat.pgmajfault × 2 − 1"
show = "/s"

[[row]]
key = "{each}"
each = { positive = "max(vmstat.pgmajfault - 5, 0)", negative = "-vmstat.pgmajfault" }
label = "{each}"
formula = "{name}"
show = "/s"
chart = ["memory", "{each}"]

[[scraped]]
metrics = "app_*"
"""
TYPE = {"value": None, "endpoint": "app"}


def scrape(ticks: range) -> Rows:
    """Two series of one endpoint: 3 calls a second by its type, and a depth of 7 or 9."""
    rows: Rows = [{"tick": ticks[0], "metric": "# TYPE app_calls", "text": "counter", **TYPE}]
    for tick in ticks:
        values = {'app_calls{path="/"}': 3.0 * tick, "app_depth": 7.0 + 2 * (tick % 2), "other": 1.0}
        rows += [
            {"tick": tick, "metric": name, "text": None, "value": value, "endpoint": "app"}
            for name, value in values.items()
        ]
    return sorted(rows, key=lambda row: (row["metric"], row["tick"]))


def more(ticks: range) -> Tables:
    memory = metrics(ticks, {"MemFree": lambda tick: 2048 + 1024 * (tick % 2)})
    described = {"shape": "metrics", "metrics": {"MemFree": {"unit": "kB", "kind": "gauge"}}}
    return {
        "vmstat": metrics(ticks, {"pgmajfault": 4}),
        "memory": (memory[0], described),
        "scrape": (scrape(ticks), {"shape": "metrics"}),
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    return make_run(tmp_path / "run", Host(seconds=20, more=more))


def test_own_rows_are_in_the_table_the_page_and_the_table_of_one_run(run: Path) -> None:
    mine = run.parent / "mine.toml"
    cells = ask("compare", run, run, "--rows", mine, "--format", "json").cells
    values = {key: cell[0]["value"] for (group, key), cell in cells.items() if group in ("own", "scraped")}
    nic = quantities(run).values
    bytes_ = nic["nic.veth0.rx_bytes"].rate + nic["nic.veth0.tx_bytes"].rate
    assert [values.pop(key) for key in ("no_divisor", "gauge")] == [None, None]
    assert values == pytest.approx(
        {
            "major_faults": 4.0,
            "free_mean": 2560 * 1024.0,
            "own_per_statement": bytes_ / nic["load.queries"].rate,
            "absent_per_statement": 0.0,
            "positive": 0.0,
            "server_cpu_per_statement": 7.0,
            "negative": -4.0,
            'scrape_app_calls{path="/"} of app': 3.0,
            "scrape_app_depth of app": 8.0,
        },
        rel=0.03,
    )
    assert "major faults /s" in ask("show", run, "--rows", mine).out
    plain, own = (ask("compare", run, run, *more) for more in ([], ["--rows", mine]))
    # a row with the key of one of the first screen does not replace it
    assert len({re.sub(r"\d+ more", "", output.out) for output in (plain, own)}) == 1
    assert UNSAFE.search(ask("compare", run, run, "--all", "--rows", mine).out.replace("\n", "")) is None
    assert "one line" not in own.out
    page = run.parent / "page.html"
    assert ask("report", run, "--rows", mine, "-o", page).status == 0
    assert "Major faults" in page.read_text(encoding="utf-8")
    without = ask("compare", run, run, "--all", "--format", "json").cells
    assert not {group for group, _ in without} & {"own", "scraped"}


def test_an_alternative_is_for_what_is_not_recorded_and_not_for_what_fell(tmp_path: Path) -> None:
    """Rows_read of MariaDB is not used for an Innodb_rows_read that fell by half."""
    fell = of_mysql({"Innodb_rows_read": lambda t: 900_000 * t if t < 9 else 450_000 * t, "Rows_read": 7})
    found = quantities(make_run(tmp_path / "run", Host(seconds=20, more=fell)))
    assert found.get("mysql.rows_read") is None
    assert "it fell from 7,200,000 to 4,050,000" in found.why("mysql.rows_read")


def test_what_is_subtracted_does_not_limit_the_resolution(tmp_path: Path) -> None:
    """Of 300 questions a second, the recorder's one or two of the whole window are."""
    probe = of_mysql({"loadprint.queries": lambda tick: int(tick > 9)})
    run = make_run(tmp_path / "run", Host(seconds=20, more=probe, grown={"Questions": 300 * 21 + 1}))
    cells = ask("compare", run, run, "--all", "--format", "json").cells
    assert cells["mysql", "questions"][0]["value"] == pytest.approx(300, rel=0.01)
    assert cells["mysql", "questions"][0]["notes"] == []


ROW = '[[row]]\nkey = "a"\nlabel = "a"\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[row", "not TOML: "),
        (
            f'{ROW}formula = "disk.vda.writes"',
            "row `a`: `disk.vda.writes` is in 1/s, but it has no `show`; correct",
        ),
        (f'{ROW}formula = "memory.Dirty"\nshow = "kB"', "`memory.Dirty` is in B/s, but `show` is kB"),
        (f'{ROW}formula = "mean(memory.Dirty)"\nshow = "ms"', "is in B, but `show` is ms"),
        (f'{ROW}formula = "energy.package.energy_uj"\nshow = "/s"', "is in J/s, but `show` is /s"),
        (f'{ROW}formula = "vmstat.nr_dirty / load.events"\nshow = "/s"', "is in B, but `show` is /s"),
        (f'{ROW}formula = "1 / disk.vda.read_ms / mean(memory.Dirty)"', "is in 1/B, but it has no `show`"),
        (f'{ROW}formula = "disk.vda.reads + disk.vda.read_ms"', "has terms in 1/s and no unit"),
        (f'{ROW}formula = "max(latency.p99, mean(memory.Dirty))"\nshow = "s"', "has terms in s and B"),
        (f'{ROW}formula = "cpu.server.user / cpu.server.cores"\nshow = "%"', "a percentage needs `100 *`"),
        ("x = 1", 'unknown key "x"; valid keys: names, notes, row, scraped'),
        (ROW, 'row `a`: key "row.0.formula" is missing'),
        (f'{ROW}formula = "1 +"', "`1 +` is not a formula"),
        (
            f'{ROW}formula = "__import__(load.events)"',
            "`__import__(load.events)` is not allowed in a formula",
        ),
        (f'{ROW}formula = "load.events ** 9 ** 9"', "`load.events ** 9 ** 9` is not allowed in a formula"),
        (
            f'{ROW}formula = "load.events"\nshow = "MB"',
            "row `a`: row.0.show: no such unit; use one of /s, ",
        ),
        (f'{ROW}formula = "{"(" * 500}1{")" * 500}"', "is not a formula"),
        (
            ROW.replace('"a"', '"statements"') + 'formula = "load.events"',
            "another row has the key statements",
        ),
        ('[names]\na = "b +"', "`b +` is not a formula"),
        (f'{ROW}formula = "mean(3)"', "`mean(3)` is not a figure over columns of one table"),
        (f'{ROW}formula = "mean(memory.Dirty + vmstat.x)"', "is not a figure over columns of one table"),
        (f'{ROW}formula = "max(mean(memory.Dirty))"', "is not a figure over columns of one table"),
        (f'{ROW}formula = "p99(memory.Dirty)"', "is not a quantile of a histogram"),
        (f'{ROW}formula = "5"', "`5` has no name"),
        (f'{ROW}formula = "{"9" * 400} * load.events"', "is not a formula"),
        (f'{ROW}formula = "load.events{" + a.b" * 400}"', "has too many operations"),
        (f'{ROW}formula = "load.events{" + 1" * 1000}"', "has more than 4,000 characters"),
        (
            f'{ROW}formula = "load.events"\nchart = ["x", "y"]',
            "row.0.chart.0: no such section; use one of ",
        ),
        (f'{ROW}formula = "load.events"\nrounding = 0.5', 'unknown key "rounding" in row.0'),
        (
            f'{ROW}formula = "load.events"\nfew = true',
            'unknown key "few" in row.0; valid keys: better, chart, each, ',
        ),
        ('[[row]]\nlabel = "a"', 'key "row.0.key" is missing (and 1 more)'),
        ('[[group]]\nkey = "a"\nrow = []', 'unknown key "group"'),
        (f"a = {'[' * 4000}", "not TOML: "),
        (f"a = {'9' * 5000}", "not TOML: "),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(run: Path, text: str, reason: str) -> None:
    mine = run.parent / "mine.toml"
    mine.write_text(text, encoding="utf-8")
    answer = ask("compare", run, run, "--rows", mine)
    assert answer.status == 2
    assert answer.line.startswith(f"loadprint: {mine}: ")
    assert reason in answer.line


def test_a_column_in_another_unit_of_its_kind_is_converted(tmp_path: Path) -> None:
    """Of the same waits in milliseconds and, by the table's footer, in microseconds."""
    run = make_run(tmp_path / "run")
    plain = quantities(run).values["disk.vda.write_ms"].rate
    (run / "manifest.json").unlink()
    path = run / "server/disk.parquet"
    change_rows(path, lambda row: row | {"write_ms": row["write_ms"] * 1000})
    change_metadata(path, lambda of: of["columns"].update(write_ms={"unit": "us", "kind": "counter"}))
    assert quantities(run).values["disk.vda.write_ms"].rate == pytest.approx(plain)
