"""Lists the rows that one run has by itself, by section, for commands that do not compare sides.

Rows of a disk are of the one with the data, those of an interface of the busiest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loadprint.metrics import (
    costs,
    derived,
    derived_cpu,
    derived_devices,
    derived_ebpf,
    derived_hardware,
    derived_mysql,
    devices,
    generated,
)
from loadprint.metrics.derived import Metric
from loadprint.metrics.gather import Measured

DISK, NIC = "data", "main"  # in the keys of rows, for any device
_OPTIONAL = frozenset(row.source for row in (*costs.SYSTEM, *costs.SERVER))
_SCOPE = costs.CostScope(DISK, NIC, host_switches=False, available=_OPTIONAL)
SECTIONS: dict[str, tuple[Metric, ...]] = {
    "Throughput and latency": (
        *derived.THROUGHPUT,
        *generated.NEW_ORDER_ROWS,
        *generated.OPEN_LOOP,
        *derived.STEADINESS,
        *derived.LATENCY,
    ),
    "CPU, server's set": (*derived_cpu.cpu_metrics("server"), *derived_hardware.PROCESSOR),
    "CPU, load's set": derived_cpu.cpu_metrics("load"),
    "Disk of the data": tuple(metric.of(DISK) for metric in (*derived_devices.DISK, *derived_ebpf.DISK)),
    "Network": tuple(metric.of(NIC) for metric in derived_devices.NETWORK),
    "Kernel": derived.KERNEL,
    "Kernel, by eBPF": derived_ebpf.EBPF,
    "Limits of cloud and cgroup": derived_hardware.LIMITS,
    "Inside MySQL": derived_mysql.MYSQL,
    "Cost per operation": (*costs.cost_metrics(costs.OPERATION, _SCOPE), *generated.PROTOCOL_ROWS),
    "Cost per client statement": costs.cost_metrics(costs.STATEMENTS[0], _SCOPE),
    "Cost per commit": costs.cost_metrics(costs.COMMITS[0], _SCOPE),
}
METRICS: dict[str, Metric] = {metric.key: metric for rows in SECTIONS.values() for metric in rows}


def of_run(measured: Measured) -> Iterator[tuple[str, Metric]]:
    """Section and row, with the names of the run's own disk and interface in its inputs."""
    disks, nics = devices.disks([[measured]]), devices.interfaces([[measured]])
    own = {
        f"disk.{DISK}.": f"disk.{disks[0].name if disks else 'none'}.",
        f"block.{DISK}.": f"block.{disks[0].name if disks else 'none'}.",
        f"block_size.{DISK}.": f"block_size.{disks[0].name if disks else 'none'}.",
        f"nic.{NIC}.": f"nic.{next((nic.name for nic in nics if nic.name != 'lo'), 'none')}.",
    }
    q = measured.quantities
    whole_host = not measured.shared_host and not q.get(derived.SERVER_SWITCHES[0])
    for section, metrics in SECTIONS.items():
        for metric in metrics:
            needs = metric.needs
            if whole_host and metric.key.startswith("switches_per_"):
                needs = ("host.ctxt", needs[-1])
            for general, name in own.items():
                needs = tuple(need.replace(general, name) for need in needs)
            yield section, replace(metric, needs=needs)
