"""Lists the rows that one run has by itself, by section, for commands that do not compare sides.

Rows of a disk are of the one with the data, those of an interface of the busiest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from loadprint.catalogue.files import OWN, Catalogue, catalogue
from loadprint.catalogue.metric import Metric
from loadprint.metrics import devices
from loadprint.metrics.gather import Measured
from loadprint.tables.costs import CostScope, cost_metrics
from loadprint.tables.groups import SERVER_SWITCHES, cpu_metrics, of_group, own_rows

DISK, NIC = "data", "main"  # in the keys of rows, for any device
COSTS = ("operation", "statement", "commit")


def sections(disk: str, nic: str, *, host_switches: bool = False) -> dict[str, tuple[Metric, ...]]:
    """The rows by the title of their section; keys have DISK and NIC, formulas the names of the devices."""
    titles = catalogue().titles
    works = {per: catalogue().works[per][0] for per in COSTS}
    scope = CostScope(disk, nic, host_switches)
    costs = {work.title: cost_metrics(work, scope) for work in works.values()}
    operation = works["operation"].title
    return {
        titles["throughput"]: (*of_group("throughput"), *of_group("latency")),
        "CPU, server's set": (*cpu_metrics("server"), *of_group("processor")),
        "CPU, load's set": cpu_metrics("load"),
        titles["disk"]: tuple(
            _named(row, disk, DISK) for key in ("disk", "disk_histograms") for row in of_group(key)
        ),
        titles["nic"]: tuple(_named(row, nic, NIC) for row in of_group("nic")),
        **{titles[key]: of_group(key) for key in ("kernel", "ebpf", "limits", "mysql")},
        **costs,
        operation: (*costs[operation], *of_group("protocol")),
    }


@cache
def metrics() -> dict[str, Metric]:
    """Every row by its key."""
    return {metric.key: metric for rows in sections(DISK, NIC).values() for metric in rows}


def of_run(measured: Measured, own: Catalogue | None = None) -> Iterator[tuple[str, Metric]]:
    """Section and row, with the names of the run's own disk and interface; a user's `own` rows are last."""
    disks, nics = devices.disks([[measured]]), devices.interfaces([[measured]])
    disk = disks[0].name if disks else "none"
    nic = next((nic.name for nic in nics if nic.name != "lo"), "none")
    is_counted = measured.quantities.get(SERVER_SWITCHES)
    host_switches = not measured.run.shares_host and not is_counted
    for section, rows in sections(disk, nic, host_switches=host_switches).items():
        for row in rows:
            yield section, row
    wanted = own or catalogue()
    for row in own_rows(wanted):
        yield wanted.titles[OWN], row
    for label in sorted(measured.quantities.scraped):
        yield "Scraped", measured.quantities.scraped[label]


def _named(row: Metric, device: str, key: str) -> Metric:
    return replace(row.of(device), key=row.of(key).key)
