"""Plain sentences by fixed rules, at most a few; each names the rows that it was made from.

A rule speaks only where a ratio is far from 1 (a factor of FAR) and its interval, if any, agrees.
iowait never carries a sentence.
"""

from __future__ import annotations

from loadprint import numbers
from loadprint.table import Row, Table, Versus

FAR = 1.5
MOSTLY_USER, MOSTLY_KERNEL = 70.0, 50.0
COSTS = (
    ("server_cpu_per_{}", "{} × the server CPU"),
    ("switches_per_{}", "{} × the context switches"),
    ("disk_write_kb_per_{}", "{} × the bytes written to disk"),
    ("net_tx_per_{}", "{} × the bytes sent"),
    ("net_rx_per_{}", "{} × the bytes received"),
)


def sentences(table: Table) -> tuple[str, ...]:
    """Sentences for every side but the reference, then one on where each side's CPU time goes."""
    said = []
    for position, side in enumerate(table.sides):
        if side.name != table.reference:
            for per, unit in (
                ("operation", side.operation),
                ("commit", "commit"),
                ("statement", "client statement"),
            ):
                sentence = _costs(table, position, per, unit)
                if sentence:
                    said.append(sentence)
                    break
    said += [text for position in range(len(table.sides)) if (text := _where(table, position))]
    return tuple(said)


def _costs(table: Table, position: int, per: str, unit: str) -> str:
    parts, cited = [], []
    for key, phrase in COSTS:
        row = table.row(key.format(per))
        versus = row.versus[position] if row else None
        if row and versus and _far(versus) and versus.centre is not None:
            parts.append(phrase.format(_times(versus.centre)))
            cited.append(row.label)
    if not parts:
        return ""
    name = table.sides[position].name
    return f"Per {unit}, {name} takes {_listed(parts)} of {table.reference} [per {unit}: {', '.join(cited)}]."


def _where(table: Table, position: int) -> str:
    share, busy = table.row("cpu_server_kernel_share"), table.row("cpu_server_utilisation")
    kernel, used = _value(share, position), _value(busy, position)
    if kernel is None or used is None:
        return ""
    name = table.sides[position].name
    if 100 - kernel >= MOSTLY_USER:
        what = f"spends {100 - kernel:.0f} % of its busy server CPU in user mode: it exercises the engine"
    elif kernel >= MOSTLY_KERNEL:
        what = f"spends {kernel:.0f} % of its busy server CPU in the kernel: it exercises the kernel"
    else:
        return ""
    return f"{name} {what}, at {used:.0f} % utilisation [kernel mode, of busy; utilisation]."


def _far(versus: Versus) -> bool:
    if versus.kind != "ratio" or versus.centre is None or versus.mark == "~":
        return False
    low, high = versus.low or versus.centre, versus.high or versus.centre
    return low >= FAR or high <= 1 / FAR


def _value(row: Row | None, position: int) -> float | None:
    return row.cells[position].value if row else None


def _times(ratio: float) -> str:
    return numbers.ratio(ratio) if ratio < 1 else f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
