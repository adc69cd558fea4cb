"""Property tests: commands on random YAML, CSV and JSON end with an answer or one line (CONTRIBUTING.md).

`LOADPRINT_FUZZ_SECONDS=3600` runs each test for that long with other draws.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from loadprint.__main__ import main
from loadprint.printable import UNSAFE

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("LOADPRINT_FUZZ_SECONDS", "0"))
EXAMPLES = 25
SLOWEST = 60.0  # seconds of one command: it takes less than one, and must not hang

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

pytestmark = pytest.mark.slow
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
    """Run a check on draws: the same few in every run, or others for LOADPRINT_FUZZ_SECONDS."""
    end = time.monotonic() + SECONDS
    number = 0 if not SECONDS else int.from_bytes(os.urandom(6))
    while True:
        draw = given(strategy)(check)
        quiet = settings(
            max_examples=500 if SECONDS else EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
        )
        seed(number)(quiet(draw))()
        number += 1
        if time.monotonic() >= end:
            return


def ends_well(words: Sequence[object]) -> None:
    """Status 0 or 1 with printable text, or 2 with one printable line."""
    out, errors = io.StringIO(), io.StringIO()
    begin = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main([str(word) for word in words])
    assert time.monotonic() - begin < SLOWEST
    text = out.getvalue() + errors.getvalue()
    assert UNSAFE.search(text.replace("\n", "")) is None
    text.encode()
    assert status in (0, 1, 2)
    if status == 2:
        assert errors.getvalue().count("\n") == 1, errors.getvalue()
        assert out.getvalue() == ""


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
    "specification": (ROOT / "docs/examples/qualify-short.yml", ["qualify", "x", "y", "--spec"]),
    "study": (ROOT / "ansible/campaigns/studies/dynimize.yml", ["study"]),
}
PATHS = st.lists(st.integers(0, 20), min_size=1, max_size=6)


@pytest.mark.parametrize("kind", YAML_FILES)
def test_yaml(kind: str) -> None:
    source, command = YAML_FILES[kind]
    document = yaml.safe_load(source.read_text(encoding="utf-8"))
    changed = st.builds(lambda path, value: yaml.safe_dump(replaced(document, path, value)), PATHS, VALUES)

    def check(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.yml"
            path.write_text(text, encoding="utf-8", errors="replace")
            ends_well([*command, path])

    fuzzed(changed | LINES, check)


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


@pytest.mark.parametrize("command", [["import", "table"], ["usl"], ["ab", "show"]], ids=" ".join)
def test_csv(command: list[str]) -> None:
    def check(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.csv"
            path.write_text(text, encoding="utf-8", errors="replace")
            for form in ("text", "csv"):
                ends_well([*command, path, "--format", form])

    fuzzed(TABLES | GROWING, check)


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


@pytest.mark.parametrize(("kind", "document"), [("sar", SADF), ("prometheus", PROMETHEUS)])
def test_imports(kind: str, document: Any) -> None:
    changed = st.builds(lambda path, value: json.dumps(replaced(document, path, value)), PATHS, VALUES)

    def check(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, run = Path(folder) / "a.json", Path(folder) / "run"
            path.write_text(text, encoding="utf-8", errors="replace")
            ends_well(["import", kind, path, "--out", run])
            if run.exists():
                ends_well(["inspect", run])

    deep = st.sampled_from(
        ("[" * 5000, '{"a":' * 5000, "[" + "9" * 5000 + "]", "[1e999]", "NaN", '"\\ud800"')
    )
    fuzzed(changed | deep, check)
