#!/usr/bin/env python3
"""Checks the prose of files with vale: documentation, messages, help texts and comments.

    tests/prose/check.py [PATH]...     files or directories; without one, PATHS below

Vale reads a copy of each file in which everything but prose is blank, so that line numbers agree. Prose is
Markdown without code, string literals and comments of programs, comments, names and messages of YAML, and
shell scripts and Jinja templates whole; never code in backquotes. A line that quotes another program's text
is exempt if it contains `prose: quoted`. The rules are in styles/Loadprint.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs", "ansible"]
PATHS += ["analysis", "collector", "probes", "workloads", "tests"]
# generated, or the texts of other programs
SKIP = re.compile(r"docs/metrics\.md|tests/(?:fixtures|golden|recordings)/|.*/vendor/")

C_LIKE = r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'"""
JAVASCRIPT = r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`"""
PROGRAMS = dict.fromkeys([".rs", ".c", ".h", ".go"], C_LIKE) | {".js": JAVASCRIPT, ".css": r"/\*.*?\*/"}
KINDS = {*PROGRAMS, ".md", ".py", ".yml", ".sh", ".j2"}
FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)
YAML_KEY = re.compile(
    r"^(\s*(?:- )?)(?:name|msg|fail_msg|success_msg|prompt|title|(?:short_)?description):(.*)"
)
CODE = re.compile(r"(`+)[^`\n]+\n?[^`\n]*\1|\{[{%].*?[%}]\}|\]\([^)\s]*\)|https?://\S+", re.DOTALL)


def output(*command: str) -> str:
    """Return what a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def blank(text: str) -> str:
    """Return spaces and the line breaks of the text."""
    return re.sub(r"[^\n]", " ", text)


def keep(text: str, spans: Iterator[tuple[int, int]]) -> str:
    """Return the text with everything outside of the spans blank."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [blank(text[end:start]), text[start:stop]]
        end = stop
    return "".join([*parts, blank(text[end:])])


def python(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of string literals and comments."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds and " " in token.string:
            (row, column), (last, stop) = token.start, token.end
            yield starts[row - 1] + column, starts[last - 1] + stop


def yaml(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of comments and of the values of keys that people read."""
    position, depth = 0, None
    for line in text.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip())
        if depth is not None and line.strip() and indent <= depth:
            depth = None
        comment = re.search(r"(?:^|\s)#", line)
        if match := YAML_KEY.match(line):
            depth = len(match[1])
            yield position + match.start(2), position + len(line)
        elif depth is not None:
            yield position, position + len(line)
        elif comment:
            yield position + comment.start(), position + len(line)
        position += len(line)


def prose(path: Path, text: str) -> str:
    """Return the text of a file with everything but prose blank."""
    text = re.sub(".*prose: quoted.*", lambda match: blank(match[0]), text)
    match path.suffix:
        case ".md":
            text = FENCED.sub(lambda match: blank(match[0]), text)
        case ".py":
            text = keep(text, python(text))
            text = re.sub(r"(?<!\{)\{[^{}\n]+\}", lambda match: blank(match[0]), text)
        case ".yml":
            text = keep(text, yaml(text))
        case kind if kind in PROGRAMS:
            matches = re.finditer(PROGRAMS[kind], text, re.DOTALL)
            text = keep(text, (match.span() for match in matches if " " in match[0]))
    return CODE.sub(lambda match: blank(match[0]), text)


def main(arguments: list[str]) -> int:
    """Check the files; print FILE:LINE:COLUMN: RULE: MESSAGE for each failure."""
    root = Path(output("git", "rev-parse", "--show-toplevel").strip())
    vale = shutil.which("vale", path=f"{root}/target/tools:{os.environ['PATH']}")
    if vale is None:
        sys.exit(
            "check.py: vale is not in target/tools or on the PATH; run ./setup --with-lint-tools (needs go)"
        )
    paths = arguments or [str(root / path) for path in PATHS]
    names = output("git", "ls-files", "-co", "--exclude-standard", "--full-name", "--", *paths).splitlines()
    with tempfile.TemporaryDirectory() as scratch:
        for name in set(names):
            path = root / name
            if (
                not SKIP.match(name)
                and path.is_file()
                and (path.suffix in KINDS or path.read_bytes().startswith(b"#!"))
            ):
                copy = Path(scratch, name + ".txt")
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(prose(path, path.read_text(encoding="utf-8")), encoding="utf-8")
        command = [vale, "--config", str(HERE / "vale.ini"), "--output", "line", "--no-exit", "."]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    failures = sorted(line.replace(".txt:", ":", 1) for line in done.stdout.splitlines())
    sys.stdout.writelines(f"{line}\n" for line in [*failures, *done.stderr.splitlines()])
    return 1 if failures or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
