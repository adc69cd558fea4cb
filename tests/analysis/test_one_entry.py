"""A row of a table that no other file of the analysis names is one entry of the catalogue.

The entry is added to a copy of the package, as a developer adds one. The recorded table has the footer that
the recorder writes.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import loadprint
import pytest
from loadprint.commands.report.table_section import anchor
from recordings import Host, Tables, counters, make_run

ROOT = Path(__file__).parents[2]
ENTRY = """
[[group.row]]
key = "{key}"
label = "written to compressed swap"
formula = "{formula}"
show = "kB/s"
better = "lower"
screens = {{ first = "kernel" }}
chart = ["memory", "Written to compressed swap"]
"""
COMMANDS = """
import json, sys
from loadprint.__main__ import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0, words
"""


def compressed_swap(ticks: range) -> Tables:
    """A table of a probe that this version does not have: 2,048 and 4,096 B a second of two devices."""
    rows = [
        row
        for device, rate in (("zram0", 2048), ("zram1", 4096))
        for row in counters(ticks, {"written_bytes": rate}, device=device)
    ]
    column = {"unit": "B", "kind": "counter", "better": "lower", "help": "written", "source": "mm_stat"}
    described: dict[str, Any] = {"shape": "table", "entity": ["device"], "columns": {"written_bytes": column}}
    return {"zram": (rows, described)}


@pytest.mark.parametrize(
    ("formula", "rate"), [("zram.zram1.written_bytes", 4096.0), ("zram.written_bytes", 6144.0)]
)
def test_a_row_of_a_new_table_is_one_entry(tmp_path: Path, formula: str, rate: float) -> None:
    """It is on the first screen, in the table, on the page with its chart, and in the fleet."""
    package = tmp_path / "loadprint"
    shutil.copytree(Path(loadprint.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    catalogue = package / "catalogue" / "kernel.toml"
    catalogue.write_text(catalogue.read_text("utf-8") + ENTRY.format(key="swap_written", formula=formula))
    run = make_run(tmp_path / "run", Host(seconds=20, more=compressed_swap))
    first, everything, page, fleet = (
        tmp_path / name for name in ("first.txt", "all.csv", "page.html", "fleet.csv")
    )
    commands = [
        ["compare", run, run, "-o", first],
        ["compare", run, run, "--all", "--format", "csv", "-o", everything],
        ["report", run, run, "-o", page],
        ["export", run, "--to", tmp_path / "fleet"],
        [
            "fleet",
            tmp_path / "fleet",
            "--metrics",
            "swap_written",
            "--everything",
            "--format",
            "csv",
            "-o",
            fleet,
        ],
    ]
    words = json.dumps([list(map(str, command)) for command in commands])
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, words],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "written to compressed swap" in first.read_text("utf-8")
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(everything.read_text("utf-8")))}
    assert float(rows["swap_written"]["value"]) == pytest.approx(rate)
    html = page.read_text("utf-8")
    assert f'id="{anchor("swap_written")}" class="first"' in html
    assert "Written to compressed swap" in html
    levels = [row for row in csv.DictReader(io.StringIO(fleet.read_text("utf-8"))) if row["pivot"] == "level"]
    assert [float(row["value"]) for row in levels] == [pytest.approx(rate / 1024)]


PROBE = r"""//! Reads `/proc/sys/fs/file-nr`: open files.
use crate::prelude::*;

/// The line of the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new("open_files", "open files of the host", &SCHEMA, open);

static SCHEMA: Schema = Schema::table(&[], COLUMNS);
static COLUMNS: &[Column] = columns! {
    gauge(One) "open_files", "open files", "/proc/sys/fs/file-nr";
};

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Files::default().with(host.source("sys/fs/file-nr", "it is on every Linux")?, parse)))
}

fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    let odd = each_line(file, |cursor| {
        if let Some(word) = cursor.word() {
            rows.row(&[]);
            rows.uint_or_null(cursor.number("open files", word));
        }
    });
    rows.odd_mut().add(&odd);
    not_empty(rows, before, "a number")
}
"""
OPEN_FILES = """
[[group.row]]
key = "open_files"
label = "open files"
formula = "mean(open_files.open_files)"
"""


@pytest.mark.slow
def test_a_probe_is_a_file_and_a_line(tmp_path: Path) -> None:
    """In a copy of the sources; a minute where its target directory is there, else six."""
    copy = tmp_path / "copy"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    (copy / "probes/src/procfs/open_files.rs").write_text(PROBE)
    for name, line, after in (
        ("probes/src/procfs/mod.rs", "pub mod open_files;\n", "pub mod net_dev;\n"),
        ("probes/src/registry.rs", "    crate::procfs::open_files::ENTRY,\n", "    net_dev::ENTRY,\n"),
    ):
        text = (copy / name).read_text()
        assert after in text, name
        (copy / name).write_text(text.replace(after, after + line))
    catalogue = copy / "analysis/loadprint/catalogue/kernel.toml"
    catalogue.write_text(catalogue.read_text() + OPEN_FILES)
    target = ROOT / "target/new-probe"
    build = f"cargo build --release --locked --quiet --target-dir {target} -p loadprint-collect"
    subprocess.run(build.split(), cwd=copy, check=True)
    record = f"record --duration 4s --out {tmp_path}/run --probes cpu,open_files"
    subprocess.run([target / "release/loadprint-collect", *record.split()], check=True, capture_output=True)
    shown = subprocess.run(
        [sys.executable, "-m", "loadprint", "show", tmp_path / "run", "--all"],
        env=os.environ | {"PYTHONPATH": str(copy / "analysis")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "open files" in shown.stdout
