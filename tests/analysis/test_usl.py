"""The command `usl`: files, executions, formats, what it refuses, and the figures by concurrency."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from conftest import Golden
from damage import refused
from loadprint.commands.usl import points
from loadprint.commands.usl.curves import usl
from loadprint.commands.usl.usl_summary import summarise
from loadprint.commands.usl.usl_text import RENDERERS
from loadprint.errors import InputError
from loadprint.rendering.printout import WIDTH
from recordings import SECOND, Host, Tables, counters, histogram, histograms, make_matrix

PUBLISHED = Path(__file__).parents[2] / "docs" / "published"
STUDY = PUBLISHED / "go_vs_sysbench_qps.csv"
THREADS = (1, 2, 4, 8, 16, 32)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sweep.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_study_is_told_as_it_was_published(golden: Golden) -> None:
    summary = summarise(points.read(STUDY, at={5: 4}), predict=(128, 256, 512, 1000))
    golden("usl.txt", RENDERERS["text"](summary).replace(str(STUDY), STUDY.name))
    golden("usl.md", RENDERERS["markdown"](summary).replace(str(STUDY), STUDY.name))
    assert max(map(len, RENDERERS["text"](summary).splitlines())) <= WIDTH


def test_formats_hold_the_same_numbers() -> None:
    summary = summarise(points.read(STUDY, at={5: 4}))
    result = json.loads(RENDERERS["json"](summary))
    first = result["columns"][0]["fit"]["models"][0]
    rows = {
        (row["column"], row["fit"], row["quantity"], row["n"]): row
        for row in csv.DictReader(io.StringIO(RENDERERS["csv"](summary)))
    }
    sigma = rows["go_mysql_qps", "usl", "sigma", ""]
    assert float(sigma["value"]) == first["parameters"][1]["value"] == pytest.approx(0.05062, abs=5e-6)
    assert float(sigma["low"]) == first["parameters"][1]["low"]
    assert float(rows["go_mysql_qps", "usl", "prediction", "1000.0"]["value"]) == pytest.approx(63664, abs=1)
    assert rows["go_mysql_qps", "amdahl", "N_max", ""]["value"] == ""  # infinite
    assert result["columns"][0]["fit"]["models"][1]["peak"] is None
    assert result["columns"][0]["fit"]["optimum"] is None


def test_a_row_that_was_measured_elsewhere_is_asked_about() -> None:
    summary = summarise(points.read(STUDY))
    assert summary.warnings == (
        "N = 5 is an outlier of every column: the other points reach its throughput at 3.65 and 4.06. "
        "If it was measured at 4, correct it with --at 5=4",
    )
    corrected = summarise(points.read(STUDY, at={5: 4}))
    assert corrected.warnings == ()
    assert ("N", "5 corrected to 4") in corrected.facts


def test_columns_are_chosen_and_the_concurrency_is_found(tmp_path: Path) -> None:
    text = "# by hand\nsessions;host;tps;latency_ms;repeat\n" + "".join(
        f"{n};db;{n * 10 / (1 + 0.1 * n):.2f};{5 + n};{k}\n" for n in (1, 2, 4, 8, 16, 32) for k in (1, 2)
    )
    path = written(tmp_path, text)
    with pytest.raises(
        InputError, match=r"has no column of concurrency \(sessions, host, tps, latency_ms, repeat\)"
    ):
        points.read(path)
    result = points.read(path, concurrency="Sessions")
    assert [column.name for column in result.columns] == ["tps"]  # `host` holds no numbers
    assert result.columns[0].n[:4] == (1, 1, 2, 2)
    assert result.facts == (("left out", "latency_ms, repeat: not named as a throughput (--column fits it)"),)
    asked = points.read(path, concurrency="sessions", columns=("latency_ms",))
    assert [column.name for column in asked.columns] == ["latency_ms"]
    assert [c.name for c in points.read(STUDY, columns=("sysbench_qps",)).columns] == ["sysbench_qps"]
    with pytest.raises(InputError, match="name one of go_mysql_qps, sysbench_qps"):
        points.read(STUDY, columns=("sysbench",))
    with pytest.raises(InputError, match="has no N = 6; name one of its N"):
        points.read(STUDY, at={6: 4})


def test_what_was_not_measured_is_left_out_and_said(tmp_path: Path) -> None:
    rows = "".join(f'{n},"{1000 * n:,}",{"n/a" if n == 4 else 7 * n}\n' for n in (1, 2, 4, 8, 16, 32))
    result = points.read(written(tmp_path, f"threads,a,b\n{rows}")).columns
    assert (result[0].n, result[0].x[3]) == ((1, 2, 4, 8, 16, 32), 8000)
    assert result[1].n == (1, 2, 8, 16, 32)
    assert result[1].notes == ("1 line without a value left out",)


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ("threads;tps\n1;998,5\n2;1950,25\n4;3700\n", (998.5, 1950.25, 3700)),
        ("threads;tps\n1;998\n2;1,950\n", (998, 1.95)),
        ("threads;tps\n1;998\n2;1.950,25\n", (998, 1950.25)),
        ("threads;tps\n1;998.5\n2;1950.25\n", (998.5, 1950.25)),
        ("threads\ttps\n1\t998,5\n2\t1,950\n", (998.5, 1.95)),
        ("threads\ttps\n1\t998.5\n2\t1,950.25\n", (998.5, 1950.25)),
        ('threads,tps\n1,998.5\n2,"1,950.25"\n', (998.5, 1950.25)),
        ("threads;tps;share\n1;998,5;99.5\n2;1950,25;99.5\n", (998.5, 1950.25)),
        # one number of the file decides the others, also in another column
        ("threads;tps\n1;1.100\n2;2.15\n", (1.1, 2.15)),
        ("threads;tps\n1;1.100\n2;1.250.000\n", (1100, 1_250_000)),
        ("threads;tps\n1;1.100\n2;2150,5\n", (1100, 2150.5)),
        ("threads\ttps\n1\t1.100\n2\t0.998\n", (1.1, 0.998)),
        ("threads\ttps\n1\t1.100\n2\t1234.567\n", (1.1, 1234.567)),
        ("threads;tps;share\n1;1.100;0.91\n2;2.150;0.95\n", (1.1, 2.15)),
        ("threads;tps;share\n1;1.100;0,91\n2;2.150;0,95\n", (1100, 2150)),
        ("threads;tps;share\n1;1,100;0.91\n2;2,150;0.95\n", (1100, 2150)),
        ("threads,tps\n1,1.100\n2,2.150\n", (1.1, 2.15)),
        ("threads;tps\n1;1.100e3\n2;2150\n", (1100, 2150)),
    ],
)
def test_the_delimiter_decides_what_a_comma_means(text: str, x: tuple[float, ...], tmp_path: Path) -> None:
    [column] = points.read(written(tmp_path, text), columns=("tps",)).columns
    assert column.x == x


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("threads;tps\n1;998,5\n2;1950.25\n", ":3: `1950.25` can be two numbers"),
        ("threads\ttps\n1\t1,998\n2\t1,950\n", ":2: `1,998` can be two numbers"),
        ("threads;tps\n1;1.100\n2;2.150\n", ":2: `1.100` can be two numbers, 1.1 or 1100; write all"),
        ("threads\ttps\n1\t998\n2\t2.150\n", ":3: `2.150` can be two numbers, 2.15 or 2150"),
        ("threads;tps\n1.000;998\n2.000;999\n", ":2: `1.000` can be two numbers, 1 or 1000"),
        ("threads;tps;share\n1;1.100;0.91\n2;2.150;0,95\n", ":2: `1.100` can be two numbers"),
        ('threads,tps\n1,"998,5"\n2,1950\n', ":2: tps '998,5' is not a number"),
        ("", "has no lines below its header"),
        ("threads,qps\n", "has no lines below its header"),
        ("threads,qps\n1,2\n2\n", ":3: has 1 cells where the first line has 2"),
        ("threads,qps,qps\n1,2,3\n2,4,6\n", "two columns are named `qps`; give each column its own name"),
        ("threads,qps\n1,2\n2,fast\n", ":3: qps 'fast' is not a number"),
        ("threads,qps\n1,2\n2,0\n", ":3: qps 0 is not a throughput above 0"),
        ("threads,qps\n1,2\n2,-4\n", ":3: qps -4 is not a throughput above 0"),
        ("threads,qps\n0,2\n2,4\n", ":2: 0 is not a concurrency"),
        ("threads,host\n1,a\n2,b\n", "has no column of throughput next to `threads`"),
        ("threads,qps\n1,2\n2,4\n", "2 different N are not a curve; measure at six or more"),
        ("threads,qps\n1,2\n2,1e400\n", "qps '1e400' is not a number"),
        ('threads,qps\n1,"2\n', "is not a CSV file"),
        ("\x00\x01\x02\n1,2\n", "not text: a NUL at byte 0"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(text: str, wanted: str, tmp_path: Path) -> None:
    assert wanted in refused("usl", written(tmp_path, text))


def test_options_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    refused("usl", tmp_path / "nothing.csv")
    refused("usl", tmp_path)
    for words in (
        ["--predict", "many"],
        ["--at", "5"],
        ["--concurrency", "users"],
        ["--plot", tmp_path / "plot.pdf"],
        ["--plot", tmp_path / "no" / "plot.svg"],
        ["-o", tmp_path / "no" / "summary.txt"],
    ):
        refused("usl", STUDY, *words)


def test_one_column_that_carries_nothing_does_not_hide_the_others(tmp_path: Path) -> None:
    rows = "".join(f"{n},{900 * n / (1 + 0.05 * n):.0f},{7 if n < 3 else ''}\n" for n in (1, 2, 4, 8, 16, 32))
    summary = summarise(points.read(written(tmp_path, f"threads,a,b\n{rows}")))
    assert summary.columns[0].fit is not None
    assert summary.columns[1].fit is None
    assert "2 different N are not a curve" in summary.columns[1].refused
    assert "! no fit: throughput by concurrency 2 different N" in RENDERERS["text"](summary)
    for form in RENDERERS.values():
        assert form(summary)


def scheduler(threads: int, locked: float) -> Callable[[range], Tables]:
    """A server whose run queue grows with the connections, of which `locked` wait for a lock."""

    def tables(ticks: range) -> Tables:
        late = [100, 0] if threads == 1 else [0, 100]
        waits = (("run queue", 0.1 * threads, late), ("lock", 3 + locked, [0, 10]))
        rows = (
            histogram(ticks, buckets, seconds * SECOND, role="server", state=state)
            for state, seconds, buckets in waits
        )
        states = [
            row
            for state, seconds, _ in waits
            for row in counters(
                ticks,
                {"time_ns": round(seconds * SECOND), "count": 1, "user_ns": 0, "system_ns": 0},
                start=0,
                role="server",
                threads="connection",
                state=state,
            )
        ]
        bounds = [1_000, 10_000 * threads, 20_000 * threads]
        return {"ebpf_sched": histograms(rows, bounds), "ebpf_states": (states, {"shape": "table"})}

    return tables


RATES = {"text": 1000.0, "cached": 1500.0}


def swept(
    path: Path,
    *,
    protocols: tuple[str, ...] = ("text",),
    repeats: int = 1,
    locks: bool,
    recorded: bool = True,
    little: float = 0.0,
) -> Path:
    """Lookups over THREADS by the law with σ = 0.05 and κ = 0.0008; repeats differ by 8 a second."""
    rates, hosts = {}, {}
    for protocol, threads in product(protocols, THREADS):
        x = float(usl(np.array([float(threads)]), (RATES[protocol], 0.05, 0.0008))[0])
        rates[protocol, threads] = [round(x) + 8 * k - 4 * (repeats - 1) for k in range(repeats)]
        hosts[f"{protocol}-t{threads}"] = Host(
            operation="lookup (one SELECT by primary key)",
            workload="lookup",
            switches=round(x * (2 + threads / 8)),
            more=scheduler(threads, 0.4 * (threads - 1) if locks else little * threads) if recorded else None,
        )
    return make_matrix(path, rates, "protocol", "lookup-scaling", of="lookup", changed=hosts)


def test_an_execution_is_fitted_by_column_with_all_its_repeats(tmp_path: Path, golden: Golden) -> None:
    path = swept(tmp_path / "x", protocols=("text", "cached"), repeats=2, locks=True)
    summary = summarise(points.read(path))
    for column, rate in zip(summary.columns, (1000, 1500), strict=True):
        assert column.fit is not None
        assert column.fit.headline.values == pytest.approx((rate, 0.05, 0.0008), rel=0.02)
    text = RENDERERS["text"](summary)
    assert max(map(len, text.splitlines())) <= WIDTH
    golden("usl_execution.txt", text)


def test_a_term_that_the_kernel_does_not_bear_out_is_told(tmp_path: Path) -> None:
    text = RENDERERS["text"](summarise(points.read(swept(tmp_path / "x", locks=False))))
    assert "Contention is not confirmed by lock waits, which do not grow with N." in text
    few = " ".join(
        RENDERERS["text"](summarise(points.read(swept(tmp_path / "y", locks=False, little=0.09)))).split()
    )
    assert "Contention is not confirmed by lock waits, which grow by less than 10 % of the added" in few


def test_what_was_not_recorded_is_not_available(tmp_path: Path) -> None:
    text = RENDERERS["text"](summarise(points.read(swept(tmp_path / "x", locks=True, recorded=False))))
    assert "on a lock n/a: probe ebpf_states was not recorded" in " ".join(text.split())
    assert "Contention cannot be compared with lock waits" in text


def test_an_execution_without_a_sweep_over_threads_is_refused(execution: Path) -> None:
    with pytest.raises(InputError, match="no matrix of sides"):
        points.read(execution)
