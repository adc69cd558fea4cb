"""YAML that stands for more than it has bytes is refused in one line by every command that reads YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from loadprint.commands.campaign.campaign_file import load
from loadprint.configuration import document
from loadprint.configuration.document import DocumentError, compose
from test_hostile import bounded

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
QUICK = Path(__file__).parents[2] / "ansible/campaigns/quick.yml"
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
