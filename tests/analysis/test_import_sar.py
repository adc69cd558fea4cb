"""Imports of sysstat's recordings, compared with sadc's counters and with sar's output."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from column_units import other_units
from damage import ask, refused
from loadprint.importing import sar, sar_tables
from loadprint.importing.writer import write_run
from loadprint.reading.columns import CPU_FIELDS
from loadprint.tables.rows import COARSE
from programs import COLLECT, ROOT, printed, running
from reads import quantities

SADC = "/usr/lib/sysstat/sadc"
# recorded with sysstat 12.6.1: three records, a comment, a restart, five records
RESTART = ROOT / "tests" / "fixtures" / "sysstat" / "restart.json"
ROUNDING = 0.005  # half of the last digit that sadf prints
ATTEMPTS = 30
# sadc's names of the kernel's counters, and the recorder's
NAMES = {
    "%usr": "user",
    "%nice": "nice",
    "%sys": "system",
    "%irq": "irq",
    "%soft": "softirq",
    "%steal": "steal",
}


def run(*words: object) -> str:
    return printed(*words, env={"LC_ALL": "C"})


@pytest.fixture(scope="module")
def sa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six real seconds of this machine; other ones if a stall made their lengths differ from one second."""
    folder = tmp_path_factory.mktemp("sa")
    for attempt in range(ATTEMPTS):
        path = folder / f"today{attempt}.sa"
        run(SADC, "-S", "XALL", "1", "7", path)
        if punctual(path):
            return path
    raise AssertionError(f"in {ATTEMPTS} attempts sadc never recorded six seconds of one second each")


def punctual(path: Path) -> bool:
    """Whether sadf counts six intervals of a second, and together they are six."""
    [host] = json.loads(run("sadf", "-j", str(path), "--", "-w"))["sysstat"]["hosts"]
    counted = [statistic["timestamp"]["interval"] for statistic in host["statistics"]]
    return counted == [1] * 6 and abs(sum(seconds for seconds, _ in raw(path, "-w")) - 6) < 0.9


def series(run_dir: Path, table: str, column: str, where: str) -> list[float]:
    query = f"SELECT {column} FROM '{run_dir}/server/{table}.parquet' WHERE {where} ORDER BY tick"
    return [float(row[0]) for row in duckdb.execute(query).fetchall()]


def raw(path: Path, *asked: str) -> list[tuple[float, dict[str, tuple[float, float]]]]:
    """Read (seconds, {sadf's name: (counter before, after)}) of each interval, from sadc's counters."""
    result: list[tuple[float, dict[str, tuple[float, float]]]] = []
    before, uptime = 0.0, 0.0
    for line in run("sadf", "-r", "-O", "debug", str(path), "--", *asked).splitlines():
        words = [word.strip() for word in line.rstrip(";").split(";")]
        if words[0] == "# uptime_cs":
            before, uptime = uptime, int(words[1]) / 100
        elif not line.startswith("#"):
            counters = {
                name: (float(words[place + 1]), float(words[place + 2]))
                for place, name in enumerate(words[:-2])
                if not name.isdigit() and words[place + 1].isdigit() and words[place + 2].isdigit()
            }
            result.append((uptime - before, counters))
    return result


@pytest.mark.live
def test_counters_come_back_within_the_printed_digits(sa: Path, tmp_path: Path) -> None:
    """Rate × whole seconds gives back each increase, but for two decimals and sadc's own punctuality."""
    made = write_run(tmp_path / "run", sar.load(sa))
    for name, column in (("cswch/s", "ctxt"), ("proc/s", "processes")):
        rebuilt = series(made, "cpu", column, "cpu = 'all'")
        intervals = raw(sa, "-w")
        assert len(rebuilt) == len(intervals) + 1 >= 6
        for place, (seconds, counters) in enumerate(intervals):
            first, last = counters[name]
            step = rebuilt[place + 1] - rebuilt[place]
            assert step * seconds == pytest.approx(last - first, abs=ROUNDING * seconds + 1e-6)


@pytest.mark.live
def test_means_are_those_of_sar(sa: Path, tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", sar.load(sa))
    header, average = [
        line.split()
        for line in run("sar", "-u", "ALL", "-f", str(sa)).splitlines()
        if "%usr" in line or "Average" in line
    ]
    averages = dict(zip(header[header.index("%usr") :], map(float, average[2:]), strict=True))
    cpus = len(set(duckdb.execute(f"SELECT DISTINCT cpu FROM '{made}/server/cpu.parquet'").fetchall())) - 1
    # sar's average is Δ of a state over Δ of all: an interval weighs what the states of its CPUs, one by one,
    # grew by; sadf prints the line of all CPUs before those
    lines = [
        sum(last - first for first, last in counters.values())
        for _, counters in raw(sa, "-u", "ALL", "-P", "ALL")
    ]
    grown = [sum(lines[place + 1 : place + cpus + 1]) for place in range(0, len(lines), cpus + 1)]
    rebuilt = {
        state: [later - earlier for earlier, later in pairwise(series(made, "cpu", state, "cpu = 'all'"))]
        for state in CPU_FIELDS
    }
    lasted = [round(sum(steps) / cpus / 100) for steps in zip(*rebuilt.values(), strict=True)]
    for state, names in {
        "user": ("%usr", "%guest"),
        "system": ("%sys",),
        "idle": ("%idle",),
        "steal": ("%steal",),
    }.items():
        shares = [step / cpus / seconds for step, seconds in zip(rebuilt[state], lasted, strict=True)]
        mean = sum(share * weight for share, weight in zip(shares, grown, strict=True)) / sum(grown)
        # two decimals of every interval, and of the printed average
        assert mean == pytest.approx(
            sum(averages[name] for name in names), abs=2 * ROUNDING * len(names) + 1e-6
        )


@pytest.mark.live
def test_a_recording_and_its_witness_lie_side_by_side(tmp_path: Path) -> None:
    """Both read the same counters: ordered by their sums none decreases, in any order of the reads."""
    witness = tmp_path / "sysstat.sa"
    with running([SADC, "-S", "XALL", "1", witness]):
        printed(COLLECT, "record", "--duration", "6s", "--out", tmp_path / "run")
    shown = [counters for _, counters in raw(witness, "-u", "ALL")]
    table, columns = f"'{tmp_path}/run/server/cpu.parquet'", ", ".join(NAMES.values())
    query = f"SELECT {columns}, idle, iowait FROM {table} WHERE cpu = 'all' ORDER BY tick"
    read = [tuple(map(int, row)) for row in duckdb.execute(query).fetchall()]
    seen = [tuple(int(counters[name][1]) for name in NAMES) for counters in shown]
    assert len(seen) >= 2
    chain = sorted([*seen, *(row[: len(NAMES)] for row in read)], key=sum)
    # a CPU's counter may tick between the reading of one and of the next
    slack = 1 + (os.cpu_count() or 1)
    for one, other in pairwise(chain):
        assert all(earlier <= later + slack for earlier, later in zip(one, other, strict=True)), (one, other)

    answer = ask("compare", tmp_path / "run", witness, "--all", "--format", "json")
    rows = answer.rows
    # of all states: the rows are of elapsed time, to which the kernel's states do not add up exactly
    states = [rows[f"cpu_server_{name}"]["cells"] for name in CPU_FIELDS]
    ours, theirs = (
        100 * cell["value"] / sum(of_state[side]["value"] or 0.0 for of_state in states)
        for side, cell in enumerate(rows["cpu_server_utilisation"]["cells"])
    )
    # a mean is between its parts
    lowest, highest = ends(read, busy=slice(0, 5))
    assert lowest - 0.1 <= ours <= highest + 0.1
    grown = [tuple(int(counters[name][1]) for name in (*NAMES, "%idle", "%iowait")) for counters in shown]
    began = tuple(int(shown[0][name][0]) for name in (*NAMES, "%idle", "%iowait"))
    lowest, highest = ends([began, *grown], busy=slice(0, 5))
    assert lowest - 0.1 <= theirs <= highest + 0.1
    for key in ("switches_host", "interrupts_host", "pressure_cpu"):
        assert all(cell["value"] is not None for cell in rows[key]["cells"]), key
    verdict = answer.document["verdicts"][0]
    assert (verdict["key"], verdict["answer"]) == ("comparable", "unknown"), (
        "neither has a record of its server"
    )
    assert "differs" not in dict(answer.document["facts"])


def ends(counters: list[tuple[int, ...]], busy: slice) -> tuple[float, float]:
    """Least and most busy share (%) of the intervals between counters of all states."""
    steps = [[b - a for a, b in zip(one, other, strict=True)] for one, other in pairwise(counters)]
    shares = [100 * sum(step[busy]) / sum(step) for step in steps if sum(step)]
    return min(shares), max(shares)


def test_a_restart_parts_the_file(tmp_path: Path) -> None:
    shown = ask("import", "sar", RESTART, "--out", tmp_path / "run").line
    assert "index dropped" in shown
    assert "restarted at 2026-11-21 15:19:25 UTC" in shown
    assert "`compare` uses the longest one" in shown
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    assert meta["sar"]["comments"] == [{"at": "2026-11-21 15:19:25 UTC", "text": "index dropped"}]
    begin, end = [json.loads(line)["realtime_ns"] for line in (tmp_path / "run/load/phases.jsonl").open()]
    assert round((end - begin) / 1e9) == 4
    # nothing is added across the restart, and the parts before and after it add up
    switches = [one["process-and-context-switch"]["cswch"] for one in statistics()]
    ticks = series(tmp_path / "run", "cpu", "ctxt", "cpu = 'all'")
    assert ticks == pytest.approx(
        [0, switches[0], sum(switches[:2]), *(sum(switches[:count]) for count in range(2, 7))], abs=0.01
    )


def statistics() -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads(RESTART.read_text())["sysstat"]["hosts"][0]["statistics"]
    return result


def test_columns_say_their_source_and_resolution(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", sar.load(RESTART))
    assert other_units(made) == []
    row = duckdb.execute(
        f"SELECT value FROM parquet_kv_metadata('{made}/server/disk.parquet') WHERE decode(key) = 'loadprint'"
    ).fetchone()
    assert row is not None
    columns = json.loads(row[0])["columns"]
    assert columns["read_sectors"] == {
        "unit": "sector",
        "kind": "counter",
        "resolution": "0.02",
        "source": "sadf -j",
    }


def test_a_share_of_few_printed_steps_is_marked(tmp_path: Path) -> None:
    few = json.loads(RESTART.read_text())
    for one in few["sysstat"]["hosts"][0]["statistics"]:
        for cpu in one["cpu-load"]:
            cpu["iowait"] = 0.02
    (tmp_path / "few.json").write_text(json.dumps(few))
    answer = ask("compare", RESTART, tmp_path / "few.json", "--format", "json")
    notes = answer.rows["cpu_server_iowait"]["cells"][1]["notes"]
    assert [answer.document["footnotes"][note - 1] for note in notes] == [COARSE]
    assert answer.rows["cpu_server_user"]["cells"][1]["notes"] == []


def test_the_short_form_of_sar_and_old_forms_of_interrupts() -> None:
    brief = {
        "cpu-load": [
            {
                "cpu": "all",
                "user": 30.0,
                "nice": 0.0,
                "system": 10.0,
                "iowait": 5.0,
                "steal": 0.0,
                "idle": 55.0,
            }
        ]
    }
    rates = sar_tables.tables(brief)["cpu"]["all",]
    assert (rates["user"], rates["system"], rates["idle"]) == (30, 10, 55)
    assert "irq" not in rates
    old = sar_tables.tables({"interrupts": [{"intr": "sum", "value": 120.5}, {"intr": "24", "value": 3.0}]})
    assert old["interrupts"]["all", "all"] == {"count": 120.5}
    assert old["interrupts"]["24", "all"] == {"count": 3.0}
    assert old["cpu"]["all",] == {"intr": 120.5}
    offline = {
        "cpu-load": [
            {"cpu": "all", "usr": 50.0, "idle": 50.0},
            {"cpu": "0", "usr": 50.0, "idle": 50.0},
            {"cpu": "1", "usr": 0.0, "idle": 0.0},
        ]
    }
    assert sorted(sar_tables.tables(offline)["cpu"]) == [("0",), ("all",)]


def sadf_of(folder: Path, *intervals: dict[str, Any], **stamps: Any) -> Path:
    """Output of sadf with an interval of a second for each of these; `stamps` are added to all times.

    An interval may have keys of its own time, `timestamp`.
    """
    every = [
        interval
        | {
            "timestamp": {"date": "2026-01-01", "time": f"00:00:{at:02}", "interval": 1}
            | stamps
            | interval.get("timestamp", {})
        }
        for at, interval in enumerate(intervals, 1)
    ]
    path = folder / "sadf.json"
    path.write_text(json.dumps({"sysstat": {"hosts": [{"number-of-cpus": 1, "statistics": every}]}}))
    return path


def imported(path: Path) -> tuple[Path, str]:
    """The run, and the notes that are printed."""
    run_dir = path.with_name("run")
    answer = ask("import", "sar", path, "--out", run_dir)
    assert answer.status == 0, answer.line
    return run_dir, answer.line


CPU = {"cpu": "all", "usr": 50.0, "sys": 10.0, "iowait": 0.0, "steal": 0.0, "idle": 40.0}


def test_names_of_older_and_newer_versions(tmp_path: Path) -> None:
    """Keys of sysstat 10.1.5 to 11.1.3 (RHEL 7, Debian 9), and the key that 12.7.6 has renamed."""
    disk = {
        "disk-device": "vda",
        "tps": 40.0,
        "rd_sec": 200.0,
        "wr_sec": 400.0,
        "avgqu-sz": 0.1,
        "await": 0.2,
    }
    interval = {"cpu-load-all": [CPU], "disk": [disk], "network": {"net-etcp": {"retrseg": 7.0}}}
    run_dir, _ = imported(sadf_of(tmp_path, interval, interval))
    assert series(run_dir, "cpu", '"user"', "cpu = 'all'") == [0, 50, 100]
    assert series(run_dir, "disk", "read_sectors", "device = 'vda'") == [0, 200, 400]
    assert series(run_dir, "disk", "write_sectors", "device = 'vda'") == [0, 400, 800]
    assert series(run_dir, "disk", "weighted_ms", "device = 'vda'") == [0, 100, 200]
    assert series(run_dir, "tcp", "value", "metric = 'Tcp.RetransSegs'") == [0, 7, 14]
    reasons = " ".join(ask("compare", run_dir, RESTART, "--all", "--format", "json").document["footnotes"])
    assert "this file has no value of irq" in reasons
    assert "the kernel does not print" not in reasons


@pytest.mark.parametrize("length", [184467440737095516, -1, "1", None, [1]])
def test_an_impossible_interval_is_left_out(length: Any, tmp_path: Path) -> None:
    odd, plain = {"cpu-load": [CPU], "timestamp": {"interval": length}}, {"cpu-load": [CPU]}
    run_dir, notes = imported(sadf_of(tmp_path, odd, *[plain] * 3))
    assert f"1 interval left out: its length is {json.dumps(length)} s" in notes
    assert series(run_dir, "cpu", '"user"', "cpu = 'all'") == [0, 50, 100, 150]


@pytest.mark.parametrize("value", [-1.0, 1e18, "x", None, True, 1844674407370955.0])
def test_an_odd_value_is_left_out(value: Any, tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "cpu-load": [{**CPU, "usr": value}],
        "process-and-context-switch": {"proc": value, "cswch": 5.0},
    }
    odd["network"] = {"net-tcp": {"iseg": value}}
    plain: dict[str, Any] = {"cpu-load": [CPU], "process-and-context-switch": {"proc": 1.0, "cswch": 5.0}}
    plain["network"] = {"net-tcp": {"iseg": 8.0}}
    run_dir, notes = imported(sadf_of(tmp_path, plain, odd, plain))
    if value is not None:
        assert "are not in the means: `usr` 1x, `proc` 1x, `iseg` 1x" in notes
    assert series(run_dir, "cpu", "ctxt", "cpu = 'all'") == [0, 5, 10, 15]
    assert series(run_dir, "cpu", "system", "cpu = 'all'") == [0, 10, 20, 30]
    # no reading, and the mean of the others
    assert series(run_dir, "cpu", '"user"', "cpu = 'all' AND \"user\" IS NOT NULL") == [0, 50, 150]
    assert series(run_dir, "tcp", "value", "metric = 'Tcp.InSegs' AND value IS NOT NULL") == [0, 8, 24]


@pytest.mark.parametrize("places", [{0}, {0, 1}, {2}, {3}, {0, 3}])
def test_the_mean_is_that_of_the_other_intervals(places: set[int], tmp_path: Path) -> None:
    seconds = [{"cpu-load": [{**CPU, "usr": 104.53 if place in places else 50.0}]} for place in range(4)]
    run_dir, _ = imported(sadf_of(tmp_path, *seconds))
    assert quantities(run_dir).values["cpu.host.user"].rate == pytest.approx(0.5)


ZERO = {name: 0.0 if isinstance(value, float) else value for name, value in CPU.items()}


@pytest.mark.parametrize(
    ("interval", "odd"),
    [
        ({}, ""),
        ({"power-management": {"temperature": [{"number": 1, "degC": 40.0}]}, "filesystems": []}, ""),
        ({"cpu-load": [], "disk": [], "network": {"net-dev": []}, "memory": {}, "interrupts": []}, ""),
        ({"disk": [{"disk-device": "vda", "rkB": None}], "memory": {"memfree": None}, "cpu-load": None}, ""),
        ({"cpu-load": [{"cpu": "all"}]}, ""),
        ({"cpu-load": [ZERO, {**ZERO, "cpu": "0"}]}, " (`cpu all` 3x)"),
        ({"process-and-context-switch": {"proc": -1.0}}, " (`proc` 3x)"),
    ],
)
def test_a_file_without_an_imported_report_is_refused(
    interval: dict[str, Any], odd: str, tmp_path: Path
) -> None:
    path = sadf_of(tmp_path, *[interval] * 3)
    answer = refused("import", "sar", path, "--out", tmp_path / "run")
    why = (
        f"contains 4 points in time, but no value of the reports that are imported{odd}; print all reports: "
    )
    assert f"{path}: {why}LC_ALL=C sadf -j -C FILE -- -A" in answer
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("states", [ZERO, {**CPU, "idle": 80.0}])
def test_impossible_states_of_all_cpus_are_no_reading(states: dict[str, Any], tmp_path: Path) -> None:
    plain = {"cpu-load": [CPU], "process-and-context-switch": {"cswch": 5.0}}
    run_dir, notes = imported(sadf_of(tmp_path, plain, plain | {"cpu-load": [states]}, plain))
    assert series(run_dir, "cpu", '"user"', "cpu = 'all' AND \"user\" IS NOT NULL") == [0, 50, 150]
    assert series(run_dir, "cpu", "ctxt", "cpu = 'all'") == [0, 5, 10, 15]
    assert "`cpu all` 1x" in notes


@pytest.mark.parametrize("name", ["vda", "vdb"])
def test_two_devices_of_one_name_are_no_reading(name: str, tmp_path: Path) -> None:
    disk = {"disk-device": "vda", "tps": 4.0, "rkB": 5.0}
    line: dict[str, Any] = {"intr": "7", "value": 3.0}
    plain = {"disk": [disk], "interrupts": [line], "io": {"bread": 1.0}}
    twice = {
        "disk": [disk, disk, {**disk, "disk-device": name, "rkB": 99.0}],
        "interrupts": [line, {**line, "intr": "7" if name == "vda" else "8", "value": 44.0}],
    }
    run_dir, notes = imported(sadf_of(tmp_path, plain, plain | twice, plain))
    known = [0, 10, 30] if name == "vda" else [0, 10, 20, 30]
    assert series(run_dir, "disk", "read_sectors", "device = 'vda' AND read_sectors IS NOT NULL") == known
    differing = "differ under one name, are not in the means: `intr 7` 1x, `disk-device vda` 1x"
    assert (differing in notes) == (name == "vda")
    assert (notes == "") == (name != "vda")


def test_a_gap_parts_the_file(tmp_path: Path) -> None:
    times = [{"time": f"00:0{minute}:00", "interval": None if minute == 1 else 60} for minute in range(6)]
    run_dir, notes = imported(sadf_of(tmp_path, *({"cpu-load": [CPU], "timestamp": at} for at in times)))
    assert "2 stretches between restarts and gaps" in notes
    assert ask("inspect", run_dir, "--format", "json").status == 0
    assert series(run_dir, "cpu", '"user"', "cpu = 'all'") == [0, 3000, 3000, 6000, 9000, 12000, 15000]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"sysstat": {\n', "is truncated or damaged (line 2: "),
        (
            '{"sysstat": {"hosts": [{"cpu-load": [{"cpu": "all",\n "usr": 50,25}',
            "line 2: has a decimal comma",
        ),
        ('{"sysstat": {"hosts": [{}, {}]}}', "contains 2 hosts"),
        ('{"sysstat": {"hosts": [{"statistics": [{"timestamp": {"interval": -5}}]}]}}', "its length is -5 s"),
        ('{"sysstat": {"hosts": [{}]}}', "contains no interval"),
        ('{"sysstat": {"hosts": [{"statistics": []}], "hosts": []}}', "has the key `hosts` twice"),
        ('{"sysstat": []}', "is not JSON of sadf"),
        (RESTART.read_text()[:5000], "is truncated or damaged"),
        (
            RESTART.read_text().replace('"15:19:28"', '"15:10:00"'),
            "its times do not increase at 2026-11-21 15:10:00 UTC",
        ),
    ],
    ids=range(9),
)
def test_a_refusal_has_its_cause(text: str, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "sadf.json"
    path.write_text(text)
    for words in (("import", "sar", path, "--out", tmp_path / "run"), ("compare", path, RESTART)):
        answer = refused(*words)
        assert wanted in answer
        assert "again: LC_ALL" not in answer


@pytest.mark.parametrize("stamps", [{"tz": "CET"}, {"utc": 0}])
def test_times_of_another_zone_are_refused(stamps: dict[str, Any], tmp_path: Path) -> None:
    path = sadf_of(tmp_path, {"cpu-load": [CPU]}, **stamps)
    answer = refused("import", "sar", path, "--out", tmp_path / "run")
    assert f"its times are in {stamps.get('tz', 'local time')}, not in UTC" in answer
    assert "without -T and -t" in answer


@pytest.mark.live
def test_a_file_whose_recorder_was_killed_lacks_its_last_record(sa: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.sa"
    torn.write_bytes(sa.read_bytes()[:-1000])
    answer = ask("import", "sar", torn, "--out", tmp_path / "run")
    assert "sadf: End of system activity file unexpected" in answer.line
    assert "6 points over 5.0 s" in answer.out


@pytest.mark.live
def test_files_that_cannot_be_read_are_one_line(sa: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    old = tmp_path / "old.sa"
    data = bytearray(sa.read_bytes())
    data[2:4] = b"\x71\x21"  # the format's number in the file's head (struct file_magic of sysstat's sa.h)
    old.write_bytes(data)
    shown = refused("import", "sar", old, *out)
    assert "cannot read the format of this file (0x2171)" in shown
    assert "sadf -c FILE > NEW" in shown
    torn = tmp_path / "torn.sa"
    torn.write_bytes(sa.read_bytes()[:3000])
    assert "End of system activity file unexpected" in refused("import", "sar", torn, *out)
    assert "no/sadf: No such file" in refused("import", "sar", sa, "--sadf", "no/sadf", *out)
    assert not (tmp_path / "run").exists()
