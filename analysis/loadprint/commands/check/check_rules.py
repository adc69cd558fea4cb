"""Reads the rules of `loadprint check` and connects them with their conditions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from loadprint.commands.check import rules_host, rules_server, rules_storage
from loadprint.commands.check.subject import Subject

SEVERITIES = ("ruins", "distorts", "note")
CONDITIONS = {**vars(rules_host), **vars(rules_storage), **vars(rules_server)}


class Rule(NamedTuple):
    """`condition` returns the evidence of the mistake, or None; it raises Unknown if a fact is missing."""

    id: str
    severity: str
    condition: Callable[[Subject], str | None]
    why: str
    fix: str


def _rules() -> Iterator[Rule]:
    listed = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
    for name, texts in listed.items():
        fix = texts.pop("fix")
        [(severity, why)] = texts.items()
        yield Rule(name, severity, CONDITIONS[name], why, fix)


RULES = tuple(_rules())
