"""Finds the newest name of a variable, and what it means on a server (facts.toml)."""

from __future__ import annotations

from functools import cache

from loadprint.judging.effective import Server
from loadprint.judging.facts_host import RULES

VARIABLES = RULES["server"]


@cache
def canonical(name: str) -> str:
    """The newest name of a variable."""
    for old, new in VARIABLES["renamed_prefixes"].items():
        if name.startswith(old):
            return str(new) + name.removeprefix(old)
    return str(VARIABLES["renamed"].get(name, name))


def meaning(server: Server, name: str) -> str:
    """What a variable means on this server; empty if its meaning never changed or does not matter."""
    meanings = VARIABLES["meanings"].get(name, {})
    if "when" in meanings and (server.text(name) or "").lower() not in meanings["when"]:
        return ""
    latest = ""
    for since, text in meanings.get(server.flavour, {}).items():
        if server.version >= tuple(map(int, since.split("."))):
            latest = text
    return latest


def listed(value: str) -> dict[str, str]:
    """Words of a list: `a=on,b` is {a: on, b: set}."""
    words = [word.partition("=") for word in value.split(",") if word]
    return {name: setting or "set" for name, _, setting in words}
