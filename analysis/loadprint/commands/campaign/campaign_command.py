"""Defines the command `campaign`, which ansible/characterize.yml calls."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadprint import options

if TYPE_CHECKING:
    from loadprint.commands.campaign.execution import Plan

_EXAMPLES = """examples:
  loadprint campaign ansible/campaigns/quick.yml
  loadprint campaign mine.yml --set repeats=5 --set sides.oltp.threads=8 --format json
  loadprint campaign ansible/campaigns/insert-scaling.yml --scale published
"""
_DESCRIPTION = """Check a campaign file and print its plan: sides, order of the runs, duration.
The command runs no workload; ansible/characterize.yml runs the plan."""
_SERVER = "settings that select the server (tarball, packages, rootfs_suite, ...); part of the hash"
_PROGRAM = "loadprint-load, which checks workloads and options (default: this checkout's, if it is built)"
_MAX_LISTED = 30  # runs of a plan


def add(subparsers: Any) -> None:
    """Register `campaign`."""
    parser = options.command(
        subparsers, "campaign", "check a campaign file and print its plan", _EXAMPLES, _DESCRIPTION
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="campaign file (YAML)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="overrides",
        metavar="KEY.KEY=VALUE",
        help="override a key of the file; VALUE is YAML; may be repeated",
    )
    parser.add_argument(
        "--scale",
        action="append",
        default=[],
        dest="scales",
        metavar="NAME[,NAME]",
        help="apply a named set of overrides from the file",
    )
    parser.add_argument("--load-program", type=Path, metavar="PATH", help=_PROGRAM)
    options.add_format(parser, ("text", "json"))
    parser.add_argument(
        "--needs", action="store_true", help="print the programs that sides need on the load's host, as JSON"
    )
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="PROGRAM",
        help="leave out the sides that need this program; may be repeated",
    )
    internal = parser.add_argument_group("options that ansible/characterize.yml uses")
    internal.add_argument(
        "--runs", type=Path, metavar="DIR", help="open an execution below DIR, or resume an unfinished one"
    )
    internal.add_argument(
        "--binary",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="program whose content is part of the hash; may be repeated",
    )
    internal.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="host of a role; part of the hash; may be repeated",
    )
    internal.add_argument("--server", type=_json, default={}, metavar="JSON", help=_SERVER)
    internal.add_argument(
        "--use-server",
        nargs=2,
        metavar=("EXECUTION", "JSON"),
        help="store the server in an execution; fail if the execution has used another server",
    )
    internal.add_argument(
        "--controller", type=int, metavar="PID", help="process that runs the execution until it ends"
    )
    internal.add_argument("--new", action="store_true", help="do not resume an unfinished execution")
    internal.add_argument(
        "--more", type=int, default=0, metavar="N", help="add N repeats to the newest complete execution"
    )
    internal.add_argument(
        "--look",
        type=Path,
        metavar="EXECUTION",
        help="print the answer so far, as JSON, and plan no further start if it is precise",
    )
    internal.add_argument(
        "--close",
        type=Path,
        metavar="EXECUTION",
        help="mark an execution complete if all its runs are, else unfinished",
    )
    internal.add_argument(
        "--drive", nargs=2, metavar=("EXECUTION", "RUN"), help="print the rate of one run, as JSON"
    )
    parser.set_defaults(run=run)


def _json(text: str) -> Any:
    """Read JSON. Raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Returns 0, or 2 for an unusable campaign, with one line on stderr."""
    from loadprint.commands.campaign.equal_load import resolve
    from loadprint.configuration.document import DocumentError

    try:
        if arguments.drive:
            directory, run_id = arguments.drive
            print(json.dumps(resolve(Path(directory).resolve(), run_id)))
            return 0
        if arguments.look:
            from loadprint.commands.campaign.precision import look

            print(json.dumps(asdict(look(arguments.look.resolve()))))
            return 0
        if arguments.needs:
            print(json.dumps(_needs(arguments)))
            return 0
        result = _plan(arguments)
    except DocumentError as error:
        print(f"loadprint campaign: {error}", file=sys.stderr)
        return 2
    if arguments.format == "json":
        print(json.dumps(_as_json(result)))
    else:
        print(_as_text(result))
    return 0


def _length(document: dict[str, Any]) -> list[str]:
    """Return the lines with the number of runs or starts, and how long they take."""
    from loadprint.commands.campaign.campaign_model import FIXED_S
    from loadprint.configuration.field_types import minutes

    campaign, count = document["campaign"], len(document["runs"])
    warmup = campaign["phases"]["warmup"]
    if campaign["design"] == "sequential":
        what = (
            f"  runs      {count} ({campaign['repeats']} per side), {warmup:g} s warm-up and "
            f"{campaign['phases']['measure']:g} s measured each"
        )
    else:
        more = "" if campaign["precision"] is None else " or more"
        what = (
            f"  starts    {campaign['starts']}{more} of all sides, which alternate: "
            f"{warmup:g} s warm-up and {document['rounds']} slices of {campaign['slices']['length']:g} s each"
        )
        count = campaign["starts"] * len(document["sides"])
    load_s = count * document["load_s"]
    with_starts = load_s + count * FIXED_S
    lines = [
        f"{what}: {load_s / 60:.1f} min of load,",
        f"            about {with_starts / 60:.0f} min with starts and copies, without data preparation",
    ]
    if campaign["precision"] is not None:
        lines.append(
            f"            until {' and '.join(campaign['rows'])} are known to "
            f"{100 * campaign['precision']:g} %, within {minutes(campaign['within'])}"
        )
    return lines


def _plan(arguments: argparse.Namespace) -> Plan:
    from loadprint.commands.campaign import execution
    from loadprint.commands.campaign.campaign_file import load
    from loadprint.commands.campaign.load_program import BUILT, LoadProgram
    from loadprint.commands.campaign.server_identity import declared, of_sides
    from loadprint.configuration.document import DocumentError

    if arguments.close is not None:
        return execution.close_execution(arguments.close.resolve())
    if arguments.use_server:
        directory, obtained = arguments.use_server
        return execution.use_server(Path(directory).resolve(), _json(obtained))
    file = _file(arguments)
    path = arguments.load_program or BUILT
    program = LoadProgram(path) if arguments.load_program or path.is_file() else None
    operations = program.operations if program else {}
    campaign = load(file, arguments.overrides, program, _scales(arguments), arguments.missing)
    # a plan without --server and --runs needs no tarball yet
    server = (
        declared(campaign.server.source, arguments.server) if arguments.server or arguments.runs else None
    )
    slices, hosts = campaign.slices, {host.partition("=")[2] for host in arguments.host}
    if campaign.design == "alternate" and len(hosts) > 1 and slices.length < 2 * slices.closing:
        raise DocumentError(
            f"{file}: slices.length: of {slices.length:g}s on two hosts {slices.closing:g}s are not measured "
            f"(slices.closing); use {2 * slices.closing:g}s or more, or {campaign.instead}"
        )
    placement = campaign.placement
    if placement.connection == "socket" and len(hosts) > 1:
        raise DocumentError(f"{file}: placement.connection: a socket does not reach another host; remove it")
    if bool(placement.server_cpus) != bool(placement.load_cpus) and len(hosts) == 1:
        raise DocumentError(
            f"{file}: placement: server_cpus or load_cpus alone on one host; give both, or none"
        )
    servers = of_sides(campaign, arguments.server, server)
    hashed = execution.digest(campaign, arguments.binary, arguments.host, servers)
    if arguments.runs is None:
        return execution.plan(campaign, hashed, operations, servers)
    runs = arguments.runs.resolve()
    return execution.open_execution(
        campaign,
        hashed,
        runs,
        operations,
        servers,
        new=arguments.new,
        more=arguments.more,
        controller=arguments.controller,
    )


def _needs(arguments: argparse.Namespace) -> list[str]:
    from loadprint.commands.campaign.campaign_file import load

    campaign = load(_file(arguments), arguments.overrides, None, _scales(arguments))
    return sorted({program for side in campaign.sides.values() for program in side.needs})


def _file(arguments: argparse.Namespace) -> Path:
    from loadprint.configuration.document import DocumentError

    if arguments.file is None:
        raise DocumentError("no campaign file; give one, for example ansible/campaigns/quick.yml")
    file: Path = arguments.file
    return file


def _scales(arguments: argparse.Namespace) -> list[str]:
    return [name for words in arguments.scales for name in words.split(",") if name]


def _as_json(result: Plan) -> dict[str, Any]:
    from loadprint.commands.campaign.execution import starts

    directory = str(result.directory) if result.directory else None
    return result.document | {
        "todo": result.todo,
        "starts": starts(result.document, result.todo),
        "directory": directory,
        "said": result.messages,
    }


def _order(result: Plan) -> str:
    ids = [run["id"] + ("" if run["id"] in result.todo else "*") for run in result.document["runs"]]
    more = len(ids) - _MAX_LISTED
    return " ".join(ids if more <= 0 else [*ids[:_MAX_LISTED], f"… and {more} more"])


def _as_text(result: Plan) -> str:
    document = result.document
    campaign = document["campaign"]
    server = campaign["server"]
    sources = ", ".join(server["source"] for server in document["servers"].values())
    scale = f" at scale {', '.join(campaign['scale'])}" if campaign["scale"] else ""
    variables = ", ".join(f"{name} {value}" for name, value in campaign["variables"].items())
    lines = [
        f"{campaign['name']}: {campaign['title']}{scale}",
        *([f"  variables {variables}"] if variables else []),
        f"  sides     {', '.join(document['sides'])}; reference {document['reference']}",
        *_length(document),
        f"  server    {sources}, profile {server['profile']}, "
        f"buffer pool {server['buffer_pool_size'] >> 20} MiB, redo {server['redo_capacity'] >> 20} MiB",
        *(
            f"  data      {name}: about {data['size'] >> 20} MiB on disk"
            for name, data in campaign["data"].items()
        ),
        f"  warm-up   {document['warm_promise']}",
        f"  hash      {document['hash'][:8]}, seed {document['seed']}, {document['status']}",
        f"  order     {_order(result)}",
    ]
    if len(result.todo) < len(document["runs"]):
        lines.append("            * complete")
    return "\n".join([*lines, *(f"  {line}" for line in result.messages)])
