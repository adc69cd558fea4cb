"""Runs every command on damaged recordings in one process with a memory limit.

`python fuzzing.py FIRST STEP COUNT SECONDS` runs the cases FIRST, FIRST + STEP, …: COUNT of all workers
together, or as many as start within SECONDS if these are not 0. It prints a line for each failure: a
traceback, more than one line of error, control characters, or over 1.25 GB of memory.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from damage import RICH, finite
from every_table import every_table
from loadprint.__main__ import main
from loadprint.printable import UNSAFE
from mutations import BY_SUFFIX, Mutation
from recordings import Host, make_execution, make_run, write_manifest

KEPT = Path(__file__).parents[1] / "recordings" / "v1"
MOST_KIB = 1_250_000_000 // 1024  # 3 million rows of the widest table take 1.16 GB as arrays
# of the address space: above it an allocation fails. It is not the measured memory, because it includes
# reserved and unused memory (arenas, stacks, arrays that grow).
LIMIT = 6_000_000_000
FORMATS = ("text", "markdown", "csv", "json")
NUMBERS = re.compile(r"[-+]?[0-9.e+-]+( [-+]?[0-9.e+-]+)*")
Words = list[str]


def make_bases(place: Path) -> dict[str, Path]:
    """Recordings to spoil: a kept run, a kept experiment, repeats, a matrix, a run with all tables."""
    bases = {name: Path(shutil.copytree(KEPT / name, place / name)) for name in ("oltp", "hidden-index")}
    steady = Host(seconds=12, result=RICH.result, grown=RICH.grown)
    bases["pair"] = make_execution(place / "pair", {"a": [steady] * 3, "b": [steady] * 3}, "a")
    bases["every"] = make_run(place / "every", Host(seconds=4, more=every_table))
    sides = {f"t{n}": [Host(seconds=4, events=100 * n)] for n in (1, 2, 4, 8, 16, 32)}
    plans = {
        f"t{n}": {"threads": n, "workload": "x", "cell": {"kind": "x", "threads": n}}
        for n in (1, 2, 4, 8, 16, 32)
    }
    bases["matrix"] = make_execution(place / "matrix", sides, "t1", plans, {"name": "x"})
    return bases


def commands(base: str, spoiled: Path, good: Path, out: Path) -> list[list[Words]]:
    """What reads a base, with every format."""
    bad, rest = str(spoiled), str(good)
    if base in ("oltp", "every"):
        insert = str(KEPT / "insert")
        return [
            *([["compare", bad, insert, "--all", "--format", form]] for form in (*FORMATS, "html")),
            [["report", insert, bad, "-o", str(out / "page.html")]],
            [["report", bad, "-o", str(out / "page.html")]],
            [["inspect", bad]],
            [["inspect", bad, "--format", "json"]],
            [["check", bad]],
            [["check", bad, "--format", "json"]],
            [["export", bad, "--to", str(out / "fleet")], ["fleet", str(out / "fleet"), "--everything"]],
        ]
    if base == "hidden-index":
        return [
            *([["ab", "show", bad, "--format", form]] for form in FORMATS),
            [["inspect", bad]],
            [["report", bad, "-o", str(out / "page.html")]],
        ]
    if base == "matrix":
        return [
            *([["sweep", bad, "--format", form]] for form in FORMATS),
            *([["usl", bad, "--format", form]] for form in FORMATS),
            [["report", bad, "-o", str(out / "page.html")]],
        ]
    judged = [["qualify", rest, bad, "--format", form, "--junit", str(out / "junit.xml")] for form in FORMATS]
    return [
        *([["compare", bad, "--all", "--format", form]] for form in (*FORMATS, "html")),
        [["compare", f"{bad}:a", f"{rest}:b", "--noise", bad]],
        [["report", bad, "-o", str(out / "page.html")]],
        *([each] for each in judged),
        [["check", bad]],
        [["export", bad, "--to", str(out / "fleet")], ["fleet", str(out / "fleet"), "--format", "csv"]],
    ]


def targets(base: Path) -> list[Path]:
    """Files to spoil; of an execution its plan and those of one repeat of the last side."""
    runs = sorted(actual.parent for actual in base.rglob("run.json"))
    inside = [base / "execution.json"] if len(runs) > 1 else []
    files = [*inside, *sorted(file for file in runs[-1].rglob("*") if file.is_file())]
    return [file for file in files if file.suffix in BY_SUFFIX]


def cases(numbers: Iterable[int], bases: dict[str, Path]) -> Iterator[tuple[int, str, Path, Mutation]]:
    """The case of each number, the same in every run: a base, a file and a kind of mutation."""
    everything = {name: targets(path) for name, path in bases.items()}
    names = ("oltp", "pair", "hidden-index", "every", "oltp", "pair", "matrix", "every")
    for number in numbers:
        chance = random.Random(number)
        base = names[number % len(names)]
        files = everything[base]
        # documents and the generator's files are few and read by all, tables many
        weighed = [file for file in files for _ in range(1 if file.suffix == ".parquet" else 3)]
        file = chance.choice(weighed)
        yield number, base, file, chance.choice(BY_SUFFIX[file.suffix])


def wrong(words: Words, out: Path) -> str:
    """What a command did that it must not; empty where it answered, or refused in one line."""
    said, complained = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(complained):
            status = main(words)
    except Exception:  # any exception would be a traceback
        return " | ".join(traceback.format_exc().splitlines()[-5:])
    text, errors = said.getvalue(), complained.getvalue()
    written = [file.read_text(encoding="utf-8") for file in out.glob("*.*") if file.is_file()]
    if any(UNSAFE.search(each.replace("\n", "")) for each in (text, errors, *written)):
        return "control characters"
    if status == 2:
        good = not text and re.fullmatch(r"loadprint: .+; .+\n", errors) and "out of memory" not in errors
        return "" if good else f"2 with {text}{errors}"
    if status not in (0, 1) or "Warning" in errors or errors.count("\n") > 1 + errors.count("left out"):
        return f"{status} with {errors}"
    return _misread(words, text)


def _misread(words: Words, text: str) -> str:
    """What a reader of the answer would stumble over."""
    if "json" in words:
        finite(json.loads(text))
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row] if "csv" in words else []
    computed = [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    return next((f"formula {cell}" for cell in computed if not NUMBERS.fullmatch(cell)), "")


def asked(words: Sequence[list[Words]], out: Path) -> str:
    """Run some commands; what went wrong."""
    out.mkdir(exist_ok=True)
    for each in (each for chain in words for each in chain):
        if actual := wrong(each, out):
            return f"{' '.join(each[:2])} {each[-1]}: {actual}"
        used = peak_kib()
        if used > MOST_KIB:
            return f"{' '.join(each[:2])}: {used} KiB"
    return ""


def peak_kib() -> int:
    """The most memory that this process had, in KiB (VmHWM, proc_pid_status(5)).

    ru_maxrss of getrusage(2) starts at what the parent had when it started the process.
    """
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition("VmHWM:")[2].split()[0])


def spoil(spoiled: Path, mutation: Mutation, chance: random.Random) -> str:
    """Spoil a file, most often with a manifest that agrees; a device has no checksum."""
    mutation(spoiled, chance)
    holder = spoiled.parent if (spoiled.parent / "run.json").is_file() else spoiled.parent.parent
    agrees = spoiled.name not in ("manifest.json", "execution.json") and chance.random() < 0.8
    if agrees and not spoiled.is_symlink():
        write_manifest(holder)
    return ""


def apart(name: str, work: Callable[[], str]) -> bool:
    """Whether a task succeeds in a separate process, so its memory is measured alone."""
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except BaseException:
            said = traceback.format_exc()
        if said:
            print(f"{name}: {said}", flush=True)
        os._exit(bool(said))
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(f"{name}: signal {os.WTERMSIG(status)}", flush=True)
    return status == 0


def one(bases: dict[str, Path], number: int, base: str, file: Path, mutation: Mutation) -> bool:
    """Spoil one file of a copy and run two commands on it."""
    chance = random.Random(number)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copy = Path(shutil.copytree(bases[base], place / base))
        name = f"{number} {mutation.__name__} {base}/{file.relative_to(bases[base])}"
        spoiled = copy / file.relative_to(bases[base])
        chosen = chance.sample(commands(base, copy, bases[base], place / "out"), 2)
        return apart(name, lambda: spoil(spoiled, mutation, chance)) and apart(
            name, lambda: asked(chosen, place / "out")
        )


def all_of(first: int, step: int, count: int, seconds: int) -> int:
    """Run a share of the cases, each in a separate process to measure its memory."""
    end = time.monotonic() + seconds
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    warnings.simplefilter("always", RuntimeWarning)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        bases = make_bases(Path(folder))
        warm = [["compare", str(bases["pair"])], ["report", str(bases["pair"]), "-o", f"{folder}/warm.html"]]
        if said := asked([warm], Path(folder) / "none"):  # imports everything once, for all
            raise AssertionError(said)
        numbers = itertools.count(first, step) if seconds else range(first, count, step)
        for case in cases(numbers, bases):
            if seconds and time.monotonic() > end:
                break
            failed += not one(bases, *case)
    return failed


if __name__ == "__main__":
    given: Sequence[int] = [int(word) for word in sys.argv[1:]]
    sys.exit(1 if all_of(*given) else 0)
