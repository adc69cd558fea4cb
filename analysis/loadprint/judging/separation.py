"""Checks whether server and load stayed on their CPUs and memory nodes, and whether CPUs shared a core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadprint.judging.facts_host import thread_siblings
from loadprint.judging.findings import Judgement
from loadprint.metrics.gather import Measured
from loadprint.reading.cpusets import cpu_list, given_cpus, host_cpus, named, parse_cpus
from loadprint.reading.run_documents import PlacementChecks

FOREIGN = 0.01  # of the memory of a process that is bound to other nodes


def pinned(runs: Sequence[Measured]) -> Judgement:
    """Whether a side was `not separated` or `not measured` in any repeat, else `yes`; CPUs and evidence."""
    answers = [_of_run(run) for run in runs]
    for answer in ("not separated", "not measured"):
        same = [one for one in answers if one.answer == answer]
        if same:
            of = f" (in {len(same)} of {len(answers)} runs)" if len(same) < len(answers) else ""
            return Judgement(answer, same[0].text + of)
    return answers[0]


def _of_run(run: Measured) -> Judgement:
    placement = run.run.meta.placement
    if not run.run.shares_host:
        return _on_hosts(placement, run)
    if run.server_cpus is None or run.load_cpus is None:
        return Judgement("not separated", "no CPU sets: server and load shared the whole host")
    where = f"server {named(run.server_cpus)}, load {named(run.load_cpus)}"
    if reason := _shared(run):
        return Judgement("not separated", f"{where}: {reason}")
    if placement.separated is False:
        return Judgement("not separated", f"{where}: {placement.reason or placement.how or 'recorded so'}")
    where += f", connected by {placement.connection}" if placement.connection else ""
    return _verified(placement, where, run)


def _on_hosts(placement: PlacementChecks, run: Measured) -> Judgement:
    """Separate hosts: without CPU sets every thread could use all CPUs, and there was nothing to check."""
    where = "server and load ran on separate hosts"
    roles = ("server", "load")
    placed = [given_cpus(run.run, role) not in (None, host_cpus(run.run, role)) for role in roles]
    if not any(placed) and placement.verified is not False:
        return Judgement("yes", f"{where}, each on all of its CPUs")
    return _verified(placement, where, run)


def _verified(placement: PlacementChecks, where: str, run: Measured) -> Judgement:
    """Evidence of the supervisor during the run: CPUs that threads were allowed to use, and used."""
    outside = sum(seen.outside_allowed + seen.outside_ran for seen in (placement.server, placement.load))
    if outside or placement.verified is False:
        reason = placement.reason or (f"threads were seen on other CPUs {outside} times" if outside else "")
        return Judgement("not separated", f"{where}{f': {reason}' if reason else ''}")
    memory, foreign = _memory(placement)
    where += f"; {memory}" if memory else ""
    if foreign:
        return Judgement("not separated", f"{where}: {foreign}")
    if placement.verified is None:
        if not run.run.shares_host:
            return Judgement("yes", where)
        return Judgement("not measured", f"{where}, but no program checked whether threads stayed there")
    if run.run.shares_host and placement.load and not placement.server:
        # an existing server is not a process of the supervisor
        return Judgement("not measured", f"{where}; checked during the run: only the load's threads")
    return Judgement("yes", f"{where}; checked during the run: no thread ran elsewhere")


def _memory(placement: PlacementChecks) -> tuple[str, str]:
    """On which nodes the memory of each role was, and the roles whose bound memory was elsewhere."""
    texts, foreign = [], []
    for role, seen in (("server", placement.server), ("load", placement.load)):
        memory = seen.memory
        nodes = {node: kb for node, kb in memory.nodes.items() if kb}
        shares = {node: kb / sum(nodes.values()) for node, kb in nodes.items()}
        if shares:
            texts.append(f"{role} {_on_nodes(shares)}")
        bound = parse_cpus(memory.bound, f"placement.{role}.memory.bound")
        elsewhere = {node: share for node, share in shares.items() if bound and node not in map(str, bound)}
        if sum(elsewhere.values()) > FOREIGN:
            foreign.append(f"the {role} has {_on_nodes(elsewhere)}, and is bound to {memory.bound}")
    return f"memory: {', '.join(texts)}" if texts else "", "; ".join(foreign)


def _on_nodes(shares: Mapping[str, float]) -> str:
    return " and ".join(f"{100 * share:.1f} % on node {node}" for node, share in shares.items())


def _shared(run: Measured) -> str:
    """Why the two sets can have shared a core; empty if they have no common CPU and no siblings."""
    server, load = set(run.server_cpus or ()), set(run.load_cpus or ())
    if common := server & load:
        return f"CPU {cpu_list(tuple(sorted(common)))} is in both"
    siblings = thread_siblings(run.run.fingerprint("server").cpus.list, server, load)
    return (
        f"load CPU {cpu_list(siblings)} is a hardware thread of one of the server's cores" if siblings else ""
    )
