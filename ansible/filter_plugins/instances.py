"""Filters that plan the campaigns of several instances, and repeat this playbook's -e options for each."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ansible.context import CLIARGS  # type: ignore[import-untyped]


def waves(instances: Sequence[Sequence[str]], seed: int, parallel: int) -> list[list[str]]:
    """Divide instances into waves, which run one after the other: in random order, at most `parallel` in one.

    `instances` are pairs of an instance and its load host; no host is in two campaigns of one wave. Returns
    the names of the instances in each wave; equal seeds give equal orders.
    """
    order = sorted((name, load) for name, load in instances)
    random.Random(seed).shuffle(order)
    planned: list[tuple[list[str], set[str]]] = []
    for name, load in order:
        for names, hosts in planned:
            if len(names) < parallel and not hosts & {name, load}:
                break
        else:
            names, hosts = [], set()
            planned.append((names, hosts))
        names.append(name)
        hosts |= {name, load}
    return [names for names, _ in planned]


def with_extra_vars(command: Sequence[str]) -> list[str]:
    """Append the options -e of this ansible-playbook to the command of another one."""
    options = [str(word) for word in CLIARGS.get("extra_vars", ())]
    return [*command, *(part for option in options for part in ("-e", option))]


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, object]:
        """Return the filters by name."""
        return {"waves": waves, "with_extra_vars": with_extra_vars}
