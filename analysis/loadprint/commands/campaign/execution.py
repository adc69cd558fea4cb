"""Opens the directory of an execution: a new one, or an unfinished one with the same hash.

`runs/CAMPAIGN/<UTC start>-<hash8>/` contains execution.json and one directory per run. The hash
covers the resolved campaign, the binaries, the hosts and the server: an execution resumes only if
none of them changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadprint.commands.campaign.campaign_model import Campaign, EqualLoad
from loadprint.commands.campaign.campaign_sides import cells
from loadprint.commands.campaign.control_node import identity_of, is_alive
from loadprint.commands.campaign.server_identity import MAIN, Identity, checksum, confirm, key_of
from loadprint.configuration.document import DocumentError
from loadprint.reading.bounds import DOCUMENT
from loadprint.reading.documents import read
from loadprint.reading.run_documents import RunMeta
from loadprint.safe_files import read_file, replace, require_trusted
from loadprint.statistics.orders import one_in, orders

FORMAT_VERSION = 1
PROBED_ONE_IN = 4  # every fourth turn; every second or third would cost more (docs/benchmarks.md)


@dataclass
class Plan:
    """The runs of an execution, in order; `document` is the content of execution.json.

    `directory` is None before the execution is opened; `todo` lists the ids of incomplete runs.
    """

    document: dict[str, Any]
    todo: list[str]
    directory: Path | None = None
    messages: list[str] = field(default_factory=list)


def digest(
    campaign: Campaign,
    binaries: Sequence[Path] = (),
    hosts: Sequence[str] = (),
    servers: Mapping[str, Identity] | None = None,
) -> str:
    """Hash the campaign (with its seed, if it has one), the binaries' content, the hosts, the servers.

    Binaries of one name, for several architectures, have keys with the name of their directory.
    """
    binary_sums = {
        f"{path.parent.name}/{path.name}": checksum(path, "build it: ./setup") for path in sorted(binaries)
    }
    content = {
        "campaign": campaign.model_dump(mode="json"),
        "binaries": binary_sums,
        "hosts": list(hosts),
        "servers": servers,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def order(campaign: Campaign, seed: int) -> list[dict[str, Any]]:
    """List the runs: one block per repeat or start, every side once in each block.

    Each block is in random order, or the first one is and each further one begins at another side of its
    order, so that a side is early in one block and late in another. Sides that alternate have a position in
    each round, and are probed in a quarter of their turns, also of those of each position and predecessor.

    Mode `equal-load` has two stages: all blocks at saturation, which measure the maximum, then the
    blocks of open-loop runs, every side at every fraction. The sides of a block share a `rand_seed`
    for the generator, so that paired runs use the same random numbers.
    """
    return _ordered(campaign, range(1, campaign.blocks + 1), random.Random(seed))


def _ordered(campaign: Campaign, blocks: range, generator: random.Random) -> list[dict[str, Any]]:
    sides = list(campaign.columns)
    runs = _stage(campaign, sides, blocks, generator)
    if campaign.mode == "equal-load":
        driven = [at_fraction(side, fraction) for side in sides for fraction in fractions(campaign)]
        runs += _stage(campaign, driven, blocks, generator)
    return runs


def _stage(
    campaign: Campaign, sides: list[str], blocks: range, generator: random.Random
) -> list[dict[str, Any]]:
    runs = list[dict[str, Any]]()
    for block, ordered in zip(blocks, _orders(campaign, sides, len(blocks), generator), strict=True):
        drawn = generator.randrange(1, 1 << 31)
        runs += [
            {
                "id": f"b{block}-{side}-r{block}",
                "block": block,
                "side": side,
                "repeat": block,
                "rand_seed": drawn,
            }
            for side in ordered
        ]
        if campaign.design == "alternate":
            turns = [side for order in orders(sides, campaign.rounds, generator) for side in order]
            for run in runs[-len(sides) :]:
                run.update(_own_turns(run["side"], turns, len(sides), generator))
    return runs


def _own_turns(side: str, turns: list[str], sides: int, generator: random.Random) -> dict[str, Any]:
    """The position of a side in each round, and whether it is probed in it."""
    own = [place for place, turn in enumerate(turns) if turn == side]
    positions = [place % sides + 1 for place in own]
    after_own = [place > 0 and turns[place - 1] == side for place in own]
    return {
        "positions": positions,
        "probed": one_in(PROBED_ONE_IN, list(zip(positions, after_own, strict=True)), generator),
    }


def _orders(campaign: Campaign, sides: list[str], blocks: int, generator: random.Random) -> list[list[str]]:
    """The order of the sides in each block."""
    if campaign.order == "random":
        return orders(sides, blocks, generator)
    if campaign.order == "listed":
        return [sides] * blocks
    first = generator.sample(sides, len(sides))
    begins = [block * len(sides) // blocks for block in range(blocks)]
    return [first[begin:] + first[:begin] for begin in begins]


def fractions(campaign: Campaign) -> list[float]:
    """Return the fractions of mode `equal-load`."""
    return (campaign.equal_load or EqualLoad()).fractions


def at_fraction(side: str, fraction: float) -> str:
    """Return the name of a side at a fraction of the maximum: `text@70`."""
    return f"{side}@{100 * fraction:g}"


def prepared_name(data: str, server: str) -> str:
    """Return the name of a data set that is prepared on a server."""
    return data if server == MAIN else f"{data}-{server}"


def data_sets(campaign: Campaign) -> list[dict[str, str]]:
    """List the data sets to prepare: each one on every server whose sides use it."""
    pairs = dict.fromkeys((column.data, key_of(column)) for column in campaign.columns.values())
    return [{"name": prepared_name(*pair), "data": pair[0], "server": pair[1]} for pair in pairs]


def describe_columns(campaign: Campaign, operations: Mapping[str, str | None]) -> dict[str, dict[str, Any]]:
    """Describe every column by name: its resolved side, operation, server, and cell of the matrix."""
    sides: dict[str, dict[str, Any]] = {}
    columns = campaign.columns
    for base, unexpanded in campaign.sides.items():
        for name, cell in cells(base, unexpanded).items():
            column = columns[name]
            sides[name] = column.model_dump(mode="json", exclude={"name", "matrix"}) | {
                "label": column.label if column.label and not cell else name,
                "operation": operations.get(column.workload),
                "server": campaign.server.changed(column.server).model_dump(mode="json"),
                "server_key": key_of(column),
                "prepared": prepared_name(column.data, key_of(column)),
                "of": base,
                "cell": cell,
            }
    if campaign.mode == "equal-load":
        for name, side in list(sides.items()):
            for fraction in fractions(campaign):
                label = f"{side['label']}, {100 * fraction:g} % load"
                driven = side | {"label": label, "fraction": fraction, "saturated": name}
                sides[at_fraction(name, fraction)] = driven
    return sides


def plan(
    campaign: Campaign,
    hashed: str,
    operations: Mapping[str, str | None] | None = None,
    servers: Mapping[str, Identity] | None = None,
) -> Plan:
    """Plan an execution without opening it. Without a seed in the campaign, a random one is used.

    `operations` maps a workload to its operation, `servers` identifies the servers of the sides.
    """
    seed = campaign.seed if campaign.seed is not None else secrets.randbelow(1 << 31)
    runs = order(campaign, seed)
    document = {
        "format_version": FORMAT_VERSION,
        "campaign": campaign.model_dump(mode="json"),
        "hash": hashed,
        "servers": dict(servers or {}),
        "prepared": data_sets(campaign),
        "seed": seed,
        "reference": campaign.reference,
        "sides": describe_columns(campaign, operations or {}),
        "runs": runs,
        "load_s": campaign.load_s,
        "rounds": campaign.rounds if campaign.design == "alternate" else 0,
        "warm_promise": campaign.warm.promise,
        "warm": campaign.warm.model_dump(mode="json", exclude={"promise"}),
        "status": "planned",
        "notes": list(campaign.left_out),
    }
    return Plan(document, [run["id"] for run in runs], messages=list(campaign.left_out))


def open_execution(  # noqa: PLR0913  the parameters of `plan`, and the place
    campaign: Campaign,
    hashed: str,
    runs_directory: Path,
    operations: Mapping[str, str | None] | None = None,
    servers: Mapping[str, Identity] | None = None,
    *,
    new: bool = False,
    more: int = 0,
    controller: int | None = None,
) -> Plan:
    """Resume the newest unfinished execution with this hash, or start a new one; `latest` links to it.

    With `more`, add this number of repeats to the newest complete one; raises DocumentError if there is none.
    `controller` is the pid of the playbook that opens it; raises DocumentError if another one still runs it.
    """
    parent = runs_directory / campaign.name
    _require_trusted(parent)
    opened = None if new else _resume(parent, hashed)
    if opened is None and more:
        opened = _extend(parent, campaign, hashed, more)
    if opened is None:
        opened = plan(campaign, hashed, operations, servers)
        opened.directory = parent / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{hashed[:8]}"
        opened.document["started"] = _now()
        try:
            opened.directory.mkdir(parents=True)
        except OSError as error:
            raise DocumentError(f"{opened.directory}: cannot create it: {error.strerror}") from None
    assert opened.directory is not None
    opened.document |= {"status": "running", "opened": _now(), "controller": identity_of(controller)}
    write(opened.directory, opened.document)
    _link(parent / "latest", opened.directory.name)
    return opened


def _require_trusted(parent: Path) -> None:
    """Create the directory of a campaign. Raises DocumentError if other users can change it.

    The commands of an execution that resumes are those of its execution.json. The owner of the
    checkout can change the programs anyway.
    """
    try:
        require_trusted(parent, create=True)
    except OSError as error:
        raise DocumentError(
            f"{error.filename}: {error.strerror}; name another directory (--runs, -e campaign_runs_dir=)"
        ) from None


def spent_s(directory: Path, document: dict[str, Any]) -> float:
    """Seconds since the first start, without the installation before it, and those before it was resumed."""
    opened = datetime.fromisoformat(document.get("opened") or document["started"]).timestamp()
    now = datetime.now(UTC).timestamp()
    paths = [directory / run["id"] / "run.json" for run in document["runs"]]
    begins = [(read(path, RunMeta).started_realtime_ns or 0) / 1e9 for path in paths if path.is_file()]
    return float(document.get("spent_s", 0)) + now - min((at for at in begins if at >= opened), default=now)


def close_execution(directory: Path) -> Plan:
    """Mark the execution complete if all its runs are, else unfinished; the next start resumes it."""
    closed = require(directory)
    document = closed.document
    document |= {"status": "unfinished" if closed.todo else "complete", "ended": _now()}
    document["spent_s"] = spent_s(directory, document)
    try:
        write(directory, document)
    except DocumentError as error:
        # The sides can be compared without it.
        closed.messages.append(str(error))
    return closed


def use_server(directory: Path, obtained: Identity) -> Plan:
    """Store the server of the execution. Raises DocumentError if it has used another server before."""
    plan = require(directory)
    if confirm(plan.document, obtained, directory):
        write(directory, plan.document)
    return plan


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write(directory: Path, document: dict[str, Any]) -> None:
    """Write execution.json atomically, also for a power failure. Raises DocumentError if the disk is full."""
    try:
        replace(directory / "execution.json", json.dumps(document, indent=1) + "\n", durable=True)
    except OSError as error:
        raise DocumentError(f"{directory / 'execution.json'}: {error.strerror}") from None


def _newest(parent: Path, hashed: str, *, complete: bool) -> tuple[Plan, Path] | None:
    """The newest execution with this hash that is complete, or that is not, with its directory."""
    for directory in sorted(parent.glob(f"*-{hashed[:8]}"), reverse=True):
        plan = _read(directory)
        if (
            plan is not None
            and "servers" in plan.document
            and plan.document["hash"] == hashed
            and (plan.document["status"] == "complete") == complete
        ):
            return plan, directory
    return None


def _resume(parent: Path, hashed: str) -> Plan | None:
    newest = _newest(parent, hashed, complete=False)
    if newest is None:
        return None
    resumed, directory = newest
    other = resumed.document.get("controller")
    if other is not None and is_alive(other):
        raise DocumentError(
            f"{directory}: process {other['pid']} runs this execution; wait until it has ended, or start "
            "another execution with -e campaign_new=true"
        )
    count = len(resumed.document["runs"])
    resumed.messages.append(
        f"resumes {directory.name}: {count - len(resumed.todo)} of {count} runs are complete"
    )
    for run in resumed.todo:
        for archive in directory.glob(f".{run}-*.tar"):  # its fetching was interrupted
            archive.unlink()
        if (directory / run).exists():
            shutil.rmtree(directory / run)
            resumed.messages.append(f"{run} is incomplete and runs again; its files are removed")
    resumed.document["notes"] += resumed.messages
    return resumed


def _extend(parent: Path, campaign: Campaign, hashed: str, more: int) -> Plan:
    """Append blocks of runs to the newest complete execution."""
    newest = _newest(parent, hashed, complete=True)
    if newest is None:
        raise DocumentError(
            f"{parent}: no complete execution of this campaign with these programs, hosts and server; "
            "run it without campaign_more first"
        )
    plan, directory = newest
    planned = max(run["block"] for run in plan.document["runs"])
    runs = _ordered(
        campaign, range(planned + 1, planned + more + 1), random.Random(f"{plan.document['seed']} {planned}")
    )
    plan.document["runs"] += runs
    unit = "starts" if campaign.design == "alternate" else "repeats"
    plan.document["campaign"][unit] = planned + more
    plan.document["notes"] += [
        f"extended from {planned} to {planned + more} {unit}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    ]
    plan.todo += [run["id"] for run in runs]
    plan.messages.append(f"adds {more} {unit} to {directory.name}, which has {planned}")
    return plan


def require(directory: Path) -> Plan:
    """Read the plan of an execution. Raises DocumentError."""
    plan = _read(directory)
    if plan is None:
        raise DocumentError(f"{directory}: not an execution (no readable execution.json)")
    return plan


def _read(directory: Path) -> Plan | None:
    try:
        document = json.loads(read_file(directory / "execution.json", DOCUMENT))
        todo = _incomplete(directory, document)
        if document["format_version"] != FORMAT_VERSION:
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return Plan(document, todo, directory)


def _incomplete(directory: Path, document: dict[str, Any]) -> list[str]:
    """The runs that are not complete, of sides that alternate with all others of their start."""
    runs = document["runs"]
    left = [run for run in runs if run_status(directory / run["id"]) != "complete"]
    if document["campaign"]["design"] == "alternate":
        blocks = {run["block"] for run in left}
        left = [run for run in runs if run["block"] in blocks]
    return [run["id"] for run in left]


def starts(document: dict[str, Any], todo: Sequence[str]) -> list[list[str]]:
    """The runs of `todo` that run at the same time: those of a block if sides alternate, else each alone."""
    runs = [run for run in document["runs"] if run["id"] in todo]
    if document["campaign"]["design"] == "sequential":
        return [[run["id"]] for run in runs]
    blocks = dict.fromkeys(run["block"] for run in runs)
    return [[run["id"] for run in runs if run["block"] == block] for block in blocks]


def complete_starts(directory: Path, document: dict[str, Any]) -> list[list[str]]:
    """The starts of which every run is complete, as in `starts`."""
    left = _incomplete(directory, document)
    return starts(document, [run["id"] for run in document["runs"] if run["id"] not in left])


def run_status(run: Path) -> str | None:
    """Return the status in run.json, or None if it is not readable."""
    try:
        status = json.loads(read_file(run / "run.json", DOCUMENT))["status"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return str(status)


def _link(link: Path, target: str) -> None:
    temporary = link.with_name(f".latest-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
