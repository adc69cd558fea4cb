"""What the prose linter reads of a source file (tests/prose/check.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from prose.check import prose


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", 'wrong = f"a {wrong} text"  # a comment\nkey = "wrong"\n', 'f"a         text"  # a comment'),
        (
            "a.rs",
            'fn wrong() { say(\'"\', r#"a "raw" text"#) } // a comment',
            'r#"a "raw" text"#      // a comment',
        ),
        ("a.yml", "- name: a task\n  wrong:\n    key: wrong # a comment\n", "a task\n\n # a comment"),
        (
            "a.md",
            "a text\n```\nwrong\n```\nand `wrong`, [a link](wrong.md)\n",
            "a text\n\n\n\nand        , [a link",
        ),
        ("a.c", '/* a comment */ wrong("wrong"); // prose: quoted\nint wrong; // a line', "\n // a line"),
    ],
)
def test_only_prose_is_read_and_lines_agree(name: str, text: str, expected: str) -> None:
    read = prose(Path(name), text)
    assert "wrong" not in read
    assert read.count("\n") == text.count("\n")
    assert [line.split() for line in expected.splitlines()] == [
        line.split() for line in read.rstrip().splitlines()
    ]
