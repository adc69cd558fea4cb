"""Runs the tests: `./test` is the gate, which depends on the code alone; `./test full` is all the rest.

Logs and durations are in target/results. On success the gate writes the commit that it tested into
target/results/gate, unless files are not committed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from parts import C_FILES, FULL, GATE, PYTEST, RUFF, RUST, RUST_LIVE, RUST_SERVER, SERVER, Step

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "target/results"
TIMED_OUT = -1000  # instead of an exit status
NO_SERVER = 3  # exit status of tests/server-files
TAIL = 6000  # characters of the log of a failed step that are printed


class Results:
    """The tests that have passed and failed so far; logs and durations are in `folder`."""

    def __init__(self, name: str, *, keep: bool = False) -> None:
        self.folder = RESULTS / name
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.passed = 0
        self.failures: list[str] = []
        self.environment = dict(os.environ)

    def run(self, part: str, step: Step) -> bool:
        """Run a step with its output in a log, and count its tests. Gives whether none failed."""
        name = f"{part}: {step.name}"
        log = self.folder / (re.sub(r"\W+", "-", name) + ".log")
        report = log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        command = f"{step.command} --timeout={step.limit // 2} --junitxml={report}"
        command = command if PYTEST in step.command else step.command
        print(f"── {name} ", end="", flush=True)
        begin = time.monotonic()
        status = self.limited(command, step.limit, log)
        took = time.monotonic() - begin
        passed, failed, files = of_pytest(report) if report.exists() else of_cargo(log)
        if status == TIMED_OUT:
            failed.append(f"no end within {step.limit} s")
        elif status and not failed:
            failed.append(f"exit status {status}")
        self.passed += passed or not failed
        self.failures += [f"{name}: {test} ({log.relative_to(ROOT)})" for test in failed]
        durations = [f"{part}\t{step.name}\t{file}\t{seconds:.1f}\n" for file, seconds in files.items()]
        log.with_suffix(".tsv").write_text(f"{part}\t{step.name}\t\t{took:.1f}\n" + "".join(durations))
        print(f"{took:.0f} s, {f'{len(failed)} FAILED' if failed else 'ok'}", flush=True)
        if failed:
            print(log.read_text(errors="replace")[-TAIL:])
        return not failed

    def limited(self, command: str, limit: int, log: Path) -> int:
        """Run a command in a session of its own, and end all of it at the limit. Gives its exit status."""
        with (
            log.open("w") as output,
            subprocess.Popen(
                ["bash", "-c", command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                return TIMED_OUT
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGTERM)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(60)
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> int:
        """Print the failures and the counts. Gives the exit status."""
        durations = self.folder / "durations.tsv"
        steps = [path.read_text() for path in sorted(self.folder.glob("*.tsv")) if path != durations]
        durations.write_text("part\tstep\tfile\tseconds\n" + "".join(steps))
        print(*(f"FAILED {failure}" for failure in self.failures), sep="\n")
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 1 if self.failures else 0


def of_pytest(report: Path) -> tuple[int, list[str], dict[str, float]]:
    """How many tests passed, the names of the failed ones, seconds by file; from a JUnit report."""
    passed, failed = 0, []
    files: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds, file = {child.tag for child in case}, case.get("file", "").removeprefix("../")
        files[file] = files.get(file, 0.0) + float(case.get("time", 0))
        if kinds & {"failure", "error"}:
            failed.append(f"{file}::{case.get('name')}")
        passed += not kinds & {"failure", "error", "skipped"}
    return passed, failed, files


def of_cargo(log: Path) -> tuple[int, list[str], dict[str, float]]:
    """As `of_pytest`, from the output of `cargo test`; nothing from that of other commands."""
    text = log.read_text(errors="replace")
    targets = re.findall(r"^     Running .*/(\w+)-\w+\)$", text, re.MULTILINE)
    ended = re.findall(r"^test result: \w+\. (\d+) passed.* finished in (\S+)s$", text, re.MULTILINE)
    # Not strict: a target that crashed has no result.
    files = {target: float(seconds) for target, (_, seconds) in zip(targets, ended, strict=False)}
    failed = re.findall(r"^test (\S+).* \.\.\. FAILED$", text, re.MULTILINE)
    return sum(int(passed) for passed, _ in ended), failed, files


def git(*words: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def committed(what: str) -> str:
    """The id of HEAD's commit or tree; empty while files are not committed."""
    return "" if git("status", "--porcelain") else git("rev-parse", what)


def set_up(results: Results, option: str) -> bool:
    """Run ./setup, without which no test can start, and print what it does."""
    begin = time.monotonic()
    done = subprocess.run(["./setup", option], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        results.failures.append("./setup (its last line has the cause)")
        return False
    print(f"── setup {time.monotonic() - begin:.0f} s", flush=True)
    return True


def obtain_server(results: Results) -> bool:
    """Obtain the files of the MySQL server, and print where they are from if the mirror failed.

    Gives False if no mirror answers and there is no copy; any other fault is a failure.
    """
    begin, log = time.monotonic(), results.folder / "server-files.log"
    status = results.limited("tests/server-files", 3600, log)
    said = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("the mirror")]
    print(f"── server's files {time.monotonic() - begin:.0f} s", *said, sep="; ", flush=True)
    if status not in (0, NO_SERVER):
        results.failures.append(f"tests/server-files: exit status {status} ({log.relative_to(ROOT)})")
    return status != NO_SERVER


def gate(chosen: list[str]) -> int:
    """Run parts of the gate; all of them for no names."""
    passed = RESULTS / "gate"
    passed.unlink(missing_ok=True)
    results, commit = Results("gate-logs"), committed("HEAD")
    if not set_up(results, "--with-test-tools"):
        return results.close()
    parts = [part for part in GATE if part in chosen or not chosen]
    if {"server", "e2e"} & set(parts) and not obtain_server(results):
        print("── server: not run; e2e: with the distribution's server (mysql_source=package)")
        results.environment["LOADPRINT_TEST_SERVER_SOURCE"] = "package"
        parts = [part for part in parts if part != "server"]
    # A hidden download fails always, and not by chance.
    results.environment |= {"CARGO_NET_OFFLINE": "true", "PIP_NO_INDEX": "1", "GOPROXY": "off"}
    for part in parts:
        for step in GATE[part]:
            results.run(part, step)
    status = results.close()
    if not status and not chosen and commit and committed("HEAD") == commit:
        passed.write_text(f"{commit}\n")
    return status


def full(chosen: list[str]) -> int:
    """Run the named parts, or those that have not passed for this tree."""
    record = RESULTS / "full.json"
    known: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    results, tree = Results("full-logs", keep=True), committed("HEAD^{tree}")
    if not set_up(results, "--with-full-tools"):
        return results.close()
    obtain_server(results)
    for part in chosen or FULL:
        if not chosen and tree and known.get(part) == tree:
            print(f"── {part} passed for this tree")
        elif all([results.run(part, step) for step in FULL[part]]) and tree:  # noqa: C419 no step is left out
            known[part] = tree
            record.write_text(json.dumps(known, indent=2) + "\n")
    return results.close()


def named(names: list[str]) -> int:
    """Run test files of Python and Rust tests by their names."""
    results, found = Results("named-logs"), {name: (_python(name), _rust(name)) for name in names}
    if unknown := [name for name, files in found.items() if not any(files)]:
        print(
            f"./test: no part, test file or Rust test has the name {', '.join(unknown)} (./test --help)",
            file=sys.stderr,
        )
        return 2
    if not set_up(results, "--with-test-tools"):
        return results.close()
    for name, (files, rust) in found.items():
        if files:
            server = f"{SERVER} " if {"ab", "doses"} & set(files[0].parts) else ""
            results.run(name, Step("pytest", 7200, f"{server}{PYTEST} {files[0]}"))
        commands = {
            RUST_SERVER if "with_server" in path else RUST_LIVE if "/live/" in path else RUST for path in rust
        }
        for command in sorted(commands):
            words = name.removesuffix(".rs")
            results.run(name, Step("cargo", 7200, f"{command} {words} -- --include-ignored"))
    return results.close()


def _python(name: str) -> list[Path]:
    """The test files of Python of this name."""
    return [path for path in Path("tests").rglob("test_*.py") if name in (str(path), path.name, path.stem)]


def _rust(name: str) -> list[str]:
    """The files of Rust of this name, or with a test of this name; also those that are not committed."""
    files = map(Path, git("ls-files", "--cached", "--others", "--exclude-standard", "*.rs").split())
    test = re.compile(rf"#\[test\]\s+(#\[.*\]\s+)*fn {re.escape(name)}\(")
    return [str(path) for path in files if name in (path.name, path.stem) or test.search(path.read_text())]


def fix() -> int:
    """Run the formatters. Gives 1 if they left an error that only a person can fix."""
    statuses = [
        subprocess.run(["bash", "-c", command], check=False).returncode
        for command in (
            "cargo fmt --all",
            f".venv/bin/ruff check --fix --quiet {RUFF}",
            f".venv/bin/ruff format --quiet {RUFF}",
            f".venv/bin/clang-format -i {C_FILES}",
        )
    ]
    return max(statuses)


def help_text() -> str:
    """The usage, with the names of all parts."""
    indent = " " * 30
    full_parts = textwrap.fill(" ".join(FULL), 100, initial_indent=indent, subsequent_indent=indent)
    return f"""usage: ./test [PART…]         the gate: {" ".join(GATE)}
       ./test full [PART…]    all other tests; without PART those that have not passed for this tree:
{full_parts}
       ./test NAME…           a test file or a Rust test, such as test_stacks.py or arm.rs
       ./test fix             formatters
"""


def main(words: list[str]) -> int:
    """Run what the words ask for. Gives the exit status."""
    os.chdir(ROOT)
    # A shell starts its background jobs with SIGINT ignored, and some tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if {"-h", "--help"} & set(words):
        print(help_text(), end="")
        return 0
    if words == ["fix"]:
        return fix()
    if words[:1] == ["full"]:
        if set(words[1:]) <= set(FULL):
            return full(words[1:])
        print(help_text(), end="", file=sys.stderr)
        return 2
    return gate(words) if set(words) <= set(GATE) else named(words)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
