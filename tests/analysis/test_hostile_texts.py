"""Damaged, malicious and random YAML, CSV and JSON: bounded memory, an answer or one printable line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from damage import ask, printable
from fuzzing import spoiled
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from loadprint.commands.campaign.campaign_file import load
from loadprint.configuration import document
from loadprint.configuration.document import DocumentError, compose
from recordings import write_json
from test_hostile import OWNED, bounded, peak

ROOT = Path(__file__).parents[2]
EXAMPLES = 25

WORDS = st.sampled_from(
    (
        *("", "a", "-1", "0", "1", "8", "1e400", ".inf", ".nan", "9" * 30, "0x10", "1:30", "2001-13-45", "~"),
        *(
            "true",
            "8s",
            "99999999999h",
            "256M",
            "9" * 25 + "T",
            "50 %",
            "a\tb",
            "\x1b]0;x",
            "\ud800",
            "\u202e",
        ),
        *("{{ a }}", "{{ 9 ** 99 ** 99 }}", "{threads}", "{side:>999999999}", "../../x", "=1+1", "x" * 5000),
        *("1,2,3", "n/a"),
    )
)
SCALARS = WORDS | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)

LINES = st.lists(
    st.sampled_from(
        (
            *("a: &a [1, 2]", "b: *a", "<<: *a", "- x", "? [a]", ": 1", "c: !x y", "d: !!int x", 'e: "\\e"'),
            *(
                "[[[[",
                "{a: {b: ",
                "%YAML 9.9",
                "---",
                "...",
                "f: |",
                "  text",
                "g: !!binary é",
                "h: !!set {a}",
            ),
            *("\t", "#"),
        )
    ),
    max_size=12,
).map("\n".join)


def fuzzed(strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Run a check on a few draws, the same in every run."""
    quiet = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )
    seed(0)(quiet(given(strategy)(check)))()


def replaced(document: Any, path: Sequence[int], value: Any) -> Any:
    """A copy of a document with one value replaced, found by the remainders of the numbers of a path."""
    if not path or not isinstance(document, dict | list) or not document:
        return value
    keys = list(document) if isinstance(document, dict) else range(len(document))
    key = keys[path[0] % len(keys)]
    inner = replaced(document[key], path[1:], value)
    if isinstance(document, dict):
        return {**document, key: inner}
    return [*document[:key], inner, *document[key + 1 :]]


YAML_FILES = {
    "campaign": (ROOT / "ansible/campaigns/quick.yml", ["campaign"]),
    "campaign with templates": (ROOT / "ansible/campaigns/versions.yml", ["campaign"]),
    "experiment": (ROOT / "docs/examples/ab-thp.yml", ["ab", "plan"]),
    "specification": (ROOT / "docs/examples/qualify-quick.yml", ["qualify", "x", "y", "--spec"]),
    "study": (ROOT / "ansible/campaigns/studies/dynimize.yml", ["study"]),
}
PATHS = st.lists(st.integers(0, 20), min_size=1, max_size=6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", YAML_FILES)
def test_random_yaml(kind: str) -> None:
    source, command = YAML_FILES[kind]
    source_document = yaml.safe_load(source.read_text(encoding="utf-8"))
    changed = st.builds(
        lambda path, value: yaml.safe_dump(replaced(source_document, path, value)), PATHS, VALUES
    )

    def check(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.yml"
            path.write_text(text, encoding="utf-8", errors="replace")
            ask(*command, path)

    fuzzed(changed | LINES, check)


ALIASES = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
)
HOSTILE = {
    "aliases": (ALIASES, "more than 10,000 values"),
    "merged aliases": (
        "a: &a {" + ",".join(f"k{n}: 1" for n in range(900)) + "}\nb: [" + ",".join(["{<<: *a}"] * 900) + "]",
        "more than 10,000 values",
    ),
    "keys of aliases": ("a: &a [x, x]\nb: &b [*a, *a]\n? [*b, *b]\n: 1", ":3: a key is not text"),
    "values": ("a:\n" + "- x\n" * 50_000, "more than 10,000 values"),
    "size": ("a: " + "x" * 300_000, "larger than 256 KiB"),
    "nesting": ("a: " + "[" * 5000 + "]" * 5000, "nested more than 32 levels"),
    "an alias to its parent": ("a: &a [*a]", "nested more than 32 levels"),
    "an unknown tag": ("a: 1\nb: !x y", ":2: unsupported tag !x"),
    "a tag of Python": ("a: !!python/object/apply:os.system [id]", "unsupported tag"),
    "an empty number": ('a: !!float ""', "unsupported tag"),
    "digits": ("a: " + "9" * 5000, "a number of 5000 characters"),
    "hexadecimal digits": ("a: 0x" + "f" * 200_000, "a number of 200002 characters"),
    "not a character": (r'a: "\UFFFFFFFF"', "not YAML"),
    "half a character": (r'a: "\ud800"', "control character"),
    "an escape sequence": (r'a: "\e]0;owned\a"', "control character"),
}
QUICK = ROOT / "ansible/campaigns/quick.yml"
COMMANDS = (["campaign"], ["ab", "plan"], ["study"], ["qualify", "x", "--spec"])


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_yaml_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    text, expected = HOSTILE[case]
    path = tmp_path / "a.yml"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=expected) as raised:
        compose(path)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 3000


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_refuses_nested_aliases(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(ALIASES, encoding="utf-8")
    assert path.stat().st_size < 401
    status, errors = bounded(*command, path)
    assert (status, errors.count("\n")) == (2, 0), errors
    assert "more than 10,000 values, those of aliases included" in errors


def test_an_override_is_limited_too() -> None:
    campaign = document.compose(QUICK)
    for value in ("[" * 500, "!x y", "9" * 500):
        with pytest.raises(DocumentError, match="--set repeats"):
            document.override(campaign, f"repeats={value}")
    document.override(campaign, "repeats=5")
    assert campaign.data["repeats"] == 5


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("9 ** 9 ** 99", "a power above 64"),
        ("9 ** 64 ** 64 ** 64", "of a number above"),
        ("'x' * 1000000000", "needs numbers"),
        ("'%1000000000d' % 1", "needs numbers"),
        ("1.5 | round(1000000000)", "round with more than 15 digits"),
        ("'{:>1000000000}'.format(1)", "not safely callable"),
        ("'x' | center(1000000000)", "No filter named 'center'"),
        ("range(99999) | list", "No filter named 'list'"),
        ("1 }}{% for a in 'x' %}{% endfor %}{{ 1", "a statement"),
        ("1 if false", "a condition without `else`"),
        ("'inf' | float | int", "name 'inf' is not defined"),
        ("x ~ x", "a value of more than 16384 characters"),
    ],
)
def test_an_expression_of_a_campaign_computes_in_limits(
    expression: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.yml"
    variables = f'variables:\n  x: "{"x" * 9000}"\n  y: "{{{{ {expression} }}}}"\n'
    path.write_text(variables + QUICK.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(DocumentError, match=expected):
        load(path)


MANY = "[" + ", ".join(map(str, range(1, 301))) + "]"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (f"sides.oltp.matrix={{threads: {MANY}, a: {MANY}, b: {MANY}, c: {MANY}}}", "columns, more than the"),
        ("phases.measure=.inf", "not a duration"),
        ("phases.measure=1e300", "not a duration"),
        ("server.redo_capacity=999999999999999999999999", "less than or equal"),
        ("sides.oltp.name='{threads:>1000000000}'", "cannot fill in"),
    ],
)
def test_a_plan_is_limited(override: str, expected: str) -> None:
    with pytest.raises(DocumentError, match=expected):
        load(QUICK, [override])


def test_the_runs_of_a_plan_are_limited() -> None:
    many = [f"sides.oltp.matrix={{threads: {MANY}}}", "reference=oltp-t1"]
    load(QUICK, [*many, "repeats=2"])
    with pytest.raises(DocumentError, match="29,799 runs, more than the limit of 20,000"):
        load(QUICK, [*many, "repeats=99"])


CELLS = st.sampled_from(
    (
        *("threads", "n", "tps", "metric", "printed_ratio", "section", "quantity", "without", "with", "qps"),
        *("cpu_percent", "", "1", "2", "4", "8", "-1", "0", "1e300", "1e-300", "nan", "inf", "n/a", "9" * 50),
        *('"1,2"', "1,2", '"', "\x1b[2J", "=1", "#", "1.2.3", "50%", ";", "\t"),
    )
)
TABLES = st.lists(st.lists(CELLS, max_size=5).map(",".join), max_size=12).map("\n".join)
GROWING = st.lists(st.floats(1e-3, 1e6) | st.sampled_from((0.0, 1e18, 1e-18)), min_size=3, max_size=8).map(
    lambda values: "\n".join(["threads,tps", *(f"{2**at},{value!r}" for at, value in enumerate(values))])
)


@pytest.mark.slow
@pytest.mark.parametrize("command", [["import", "table"], ["usl"], ["ab", "show"]], ids=" ".join)
def test_random_csv(command: list[str]) -> None:
    def check(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.csv"
            path.write_text(text, encoding="utf-8", errors="replace")
            for form in ("text", "csv"):
                ask(*command, path, "--format", form)

    fuzzed(TABLES | GROWING, check)


@pytest.mark.parametrize("words", [["import", "prometheus", "/dev/zero"], ["usl", "/dev/zero"]])
def test_a_device_without_end_is_refused(words: list[str], tmp_path: Path) -> None:
    out = ["--out", tmp_path / "run"] if words[0] == "import" else []
    status, errors = bounded(*words, *out)
    assert status == 2
    assert "not text: a NUL" in errors


def test_a_hostile_printed_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for cell in ("1e999999999", "9" * 5000, "1e-400", "9," + "9" * 5000, OWNED, "=1+1"):
        path.write_text(f"metric,old,new\nx,{cell},1\ny,2,3\nz,4,5\nw,4,5\n", encoding="utf-8")
        for form in ("text", "markdown", "csv", "json"):
            ask("import", "table", path, "--format", form)


SADF: Any = {
    "sysstat": {
        "hosts": [
            {
                "nodename": "h",
                "number-of-cpus": 2,
                "statistics": [
                    {
                        "timestamp": {"date": "2026-01-01", "time": f"00:00:0{second}", "interval": 1},
                        "cpu-load": [{"cpu": "all", "usr": 1.0, "sys": 2.0, "idle": 97.0}],
                        "disk": [{"disk-device": "sda", "tps": 1.0, "await": 1.0}],
                    }
                    for second in (1, 2, 3, 4)
                ],
                "restarts": [],
                "comments": [],
            }
        ]
    }
}
PROMETHEUS: Any = {
    "status": "success",
    "data": {
        "resultType": "matrix",
        "result": [
            {
                "metric": {"__name__": name, "cpu": "0", "mode": "user"},
                "values": [[at, str(at)] for at in (1, 2, 3)],
            }
            for name in ("node_cpu_seconds_total", "mysql_global_status_questions")
        ],
    },
}


IMPORTED = {"sar": SADF, "prometheus": PROMETHEUS}


def imported(kind: str, text: str) -> None:
    """An import is a run that `inspect` shows, or one line."""
    with tempfile.TemporaryDirectory() as folder:
        path, run = Path(folder) / "a.json", Path(folder) / "run"
        path.write_text(text, encoding="utf-8", errors="replace")
        if ask("import", kind, path, "--out", run).status == 0:
            ask("inspect", run, "--format", "json")


@pytest.mark.slow
@pytest.mark.parametrize("kind", IMPORTED)
def test_random_imports(kind: str) -> None:
    changed = st.builds(lambda path, value: json.dumps(replaced(IMPORTED[kind], path, value)), PATHS, VALUES)
    deep = st.sampled_from(
        ("[" * 5000, '{"a":' * 5000, "[" + "9" * 5000 + "]", "[1e999]", "NaN", '"\\ud800"')
    )
    fuzzed(changed | deep, lambda text: imported(kind, text))


RESULT, HOST = ("data", "result", 0), ("sysstat", "hosts", 0)
COMMENT = {"date": "2026-01-01", "time": "00:00:01", "com": OWNED}
STAMP = '{"timestamp": {"date": "%s", "time": "00:00:01", "interval": %s}}'


@pytest.mark.parametrize(
    ("kind", "place", "text"),
    [
        ("prometheus", (*RESULT, "metric", "cpu"), r'"\ud800"'),
        ("prometheus", (*RESULT, "values"), '[["1e300", "1"], [2, "1"]]'),
        ("prometheus", (*RESULT, "values"), "[[1e17, 1], [2, 1]]"),
        ("prometheus", (*RESULT, "values"), '[["inf", "1"]]'),
        ("prometheus", (*RESULT, "values"), '[[-5, "1"], [2, "1"]]'),
        ("prometheus", (*RESULT, "values"), f'[[1, "1"], [2, "{"9" * 400}"]]'),
        ("prometheus", (*RESULT, "values"), '{"a": 1}'),
        ("prometheus", (*RESULT, "values"), "[" * 100_000),
        ("sar", (*HOST, "number-of-cpus"), "[1]"),
        ("sar", (*HOST, "nodename"), json.dumps({"x": OWNED})),
        ("sar", (*HOST, "statistics"), f"[{STAMP}, {STAMP}]" % (("9999-12-31", 1) * 2)),
        ("sar", (*HOST, "statistics"), f"[{STAMP}]" % ("2026-01-01", 10**18)),
        ("sar", (*HOST, "statistics", 0, "cpu-load"), '[{"cpu": "all", "usr": "x", "sys": 1e18}]'),
        ("sar", (*HOST, "statistics", 0, "disk", 0, "disk-device"), json.dumps(OWNED)),
        ("sar", (*HOST, "statistics", 0, "disk", 0, "tps"), "[]"),
        ("sar", (*HOST, "comments"), json.dumps([{"comment": COMMENT}])),
    ],
)
def test_a_hostile_import(kind: str, place: tuple[str | int, ...], text: str) -> None:
    imported(kind, spoiled(IMPORTED[kind], place, text))


@pytest.mark.parametrize("command", [["import", "table"], ["usl"]], ids=" ".join)
@pytest.mark.parametrize(
    ("lines", "columns", "expected"),
    [
        (300_000, 2, "has 300,001 lines, more than the limit of 10,000"),
        (10, 20_000, "cells, more than the limit of 100,000"),
    ],
)
def test_a_large_csv_file_is_refused(
    command: list[str], lines: int, columns: int, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    heads = ",".join(["threads", *(f"tps{n}" for n in range(columns))])
    rows = "".join(f"{n % 64 + 1}{',5' * columns}\n" for n in range(lines))
    path.write_text(f"{heads}\n{rows}", encoding="utf-8")
    status, errors = bounded(*command, path)
    assert status == 2
    assert expected in errors


def test_many_misprints_and_many_fits_are_limited(tmp_path: Path) -> None:
    """Each misprint was looked up in the list of all, and each N left out in turn."""
    path = tmp_path / "a.csv"
    path.write_text('metric,a,b\n"n",5,"1,234"\n' + '"m",5,"1,2"\nx,4,5\n' * 4990, encoding="utf-8")
    assert peak("import", "table", path)[0] == 0
    path.write_text("threads,tps\n" + "".join(f"{n},{n}\n" for n in range(1, 2001)), encoding="utf-8")
    status, errors, _ = peak("usl", path)
    assert status == 2
    assert "2,000 different N" in errors


def test_a_key_that_is_repeated_at_the_end_of_many_is_refused(tmp_path: Path) -> None:
    """Each key was looked up in the list of all."""
    path = tmp_path / "a.json"
    keys = [*range(300_000), 299_999]
    path.write_text("{" + ",".join(f'"{key}":0' for key in keys) + "}", encoding="utf-8")
    status, errors, _ = peak("import", "prometheus", path, "--out", tmp_path / "run")
    assert status == 2
    assert "has the key `299999` twice in one object" in errors


# ends the command as soon as it opens a file of the imported run
TERMINATED = """
import os, signal, sys
from loadprint.__main__ import main

number = int(sys.argv.pop(1))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a command in the background ignores it

def ended(event, arguments):
    global number
    if number and event == "open" and "loadprint-import-" in str(arguments[0]):
        given, number = number, 0
        os.kill(os.getpid(), given)

sys.addaudithook(ended)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_command_leaves_no_directory(tmp_path: Path, number: signal.Signals) -> None:
    """A signal while the imported run is written: its directory and DuckDB's are removed."""
    (tmp_path / "a.json").write_text(json.dumps(SADF))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    words = (str(int(number)), "compare", *[str(tmp_path / "a.json")] * 2)
    ended = subprocess.run(
        [sys.executable, "-c", TERMINATED, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert (ended.returncode, ended.stderr) == (128 + number, "")
    assert list(temporary.iterdir()) == []


def test_outputs_of_tools_name_no_file_elsewhere(tmp_path: Path) -> None:
    """A step called ../x would have read ../x.failed."""
    (tmp_path / "x.failed").write_text("a secret")
    steps = tmp_path / "steps"
    steps.mkdir()
    plan: dict[str, Any] = {"host": "h", "date": "d", "nic": "n", "tools": {}, "claimed": {}}
    plan |= {"steps": [{"id": "../x", "measure": "read_iops", "tool": f"fio{OWNED}", "depth": 1, "argv": []}]}
    write_json(steps / "steps.json", plan)
    assert ask("ceilings", "--gather", steps, "-o", tmp_path / "out.json").status == 0
    output = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert "secret" not in output
    printable(output)
