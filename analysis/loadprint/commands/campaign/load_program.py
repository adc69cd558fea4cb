"""Asks loadprint-load for its workloads, and whether it accepts the options of data sets and sides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path

from loadprint.commands.campaign.campaign_model import Campaign, Data
from loadprint.commands.campaign.campaign_sides import CampaignSide, expand
from loadprint.configuration import collector_binary
from loadprint.configuration.document import Document, DocumentError, Loc
from loadprint.configuration.mistakes import hint
from loadprint.errors import InputError

BUILT = collector_binary.BUILT.with_name("loadprint-load")


class LoadProgram:
    """The program at a path."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    @cached_property
    def operations(self) -> dict[str, str]:
        """What one operation is, by workload."""
        try:
            workloads = json.loads(collector_binary.output([self.path, "list", "--format", "json"]))
            return {entry["name"]: entry["operation"] for entry in workloads}
        except (ValueError, LookupError, TypeError):
            raise InputError(
                self.path, "is not loadprint-load of this version", "build it with ./setup"
            ) from None

    def check(self, document: Document, campaign: Campaign) -> None:
        """Refuse unknown workloads, and options with which a run would not begin. Raises DocumentError."""
        entries: dict[Loc, Data | CampaignSide] = {
            ("data", name): data for name, data in campaign.data.items()
        }
        entries |= {("sides", name): side for name, side in campaign.sides.items()}
        for loc, entry in entries.items():
            where = ".".join(map(str, loc))
            if entry.workload not in self.operations:
                place = document.place((*loc, "workload"))
                near = hint(entry.workload, list(self.operations), "known are")
                raise DocumentError(f'{place}: unknown workload "{entry.workload}" in {where}; {near}')
            for words in _command_lines(str(loc[-1]), entry):
                if refused := _refusal(self.path, *words):
                    place = document.place((*loc, *_key(entry, refused)))
                    raise DocumentError(f"{place}: {where}: {refused}")


def _command_lines(name: str, entry: Data | CampaignSide) -> Iterable[tuple[str, ...]]:
    """Return the command lines of a data set, or of a side's columns: one for all numbers of threads."""
    if isinstance(entry, Data):
        return [_words(entry)]
    threads: dict[tuple[str, ...], dict[str, None]] = {}  # each number once, in order
    for column in expand({name: entry}).values():
        threads.setdefault(_words(column), {})[str(column.threads)] = None
    return [(*words, f"--threads={','.join(numbers)}") for words, numbers in threads.items()]


def _words(entry: Data | CampaignSide) -> tuple[str, ...]:
    options = {"generator": entry.generator} | entry.options
    if isinstance(entry, CampaignSide):
        options |= {key: value for key in ("rate", "events") if (value := getattr(entry, key)) is not None}
    return (entry.workload, *(f"--{name}={value}" for name, value in options.items()))


@cache
def _refusal(program: str, *words: str) -> str:
    """Return why a run with these options would not begin, or nothing."""
    try:
        collector_binary.output([program, "options", *words])
    except InputError as error:
        return error.what.removeprefix("loadprint-load: ")
    return ""


def _key(entry: Data | CampaignSide, refused: str) -> tuple[str, ...]:
    """Return the keys to the first option that a refusal names, of which the last may not be given."""
    option = next(iter(re.findall(r"--([\w-]+)", refused)), "")
    holder = next((name for name in ("matrix", "options") if option in getattr(entry, name, {})), None)
    return (holder, option) if holder else (option,)
