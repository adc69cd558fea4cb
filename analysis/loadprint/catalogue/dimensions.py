"""Checks that the unit in which a row is shown is that of its formula, by the units of recorded names.

A name whose unit is not known, such as a variable of the server, fits every unit, and so does a number that
is added or compared.
"""

from __future__ import annotations

from loadprint.catalogue.formula import Constant, Figure, Formula, Name, Node, Operation
from loadprint.catalogue.metric import Metric
from loadprint.reading.declared import DECLARED, unit_of

Dimension = tuple[int, int, int]  # exponents of s, B and J
NUMBER, TIME, SIZE, ENERGY, RATE = (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0)
DIMENSIONS: dict[str, Dimension] = {
    **dict.fromkeys(("1", "%", "cores"), NUMBER),
    **dict.fromkeys(("s", "ms", "us", "ns", "ps", "tick"), TIME),
    **dict.fromkeys(("B", "kB", "sector", "page"), SIZE),
    **dict.fromkeys(("1/s", "1/min", "Hz", "kHz"), RATE),
    "B/s": (-1, 1, 0),
    "uJ": ENERGY,
    "J": ENERGY,
    "W": (-1, 0, 1),
}
# starts of the names of quantities that code computes, from the generator or of several tables (docs/rows.md)
QUANTITIES: dict[str, Dimension] = {
    **dict.fromkeys(
        ("cgroup.", "nvme.", "connections.", "waiting.", "load.cv", "load.worst", "load.backlog"), NUMBER
    ),
    **dict.fromkeys(("load.time_wait", "mysql.flush_burst", "mysql.checkpoint_spikes"), NUMBER),
    **dict.fromkeys(("latency.", "load.latency", "type."), TIME),
    **dict.fromkeys(("load.", "details.nopm", "details.tpm", "host.", "interrupts.", "softirqs."), RATE),
    **dict.fromkeys(("perf.", "allowance.", "ebpf_syscalls."), RATE),
}
COMPUTED = {
    ("process", "cpu"): "tick",
    **{("frequency", f"{which}_khz"): "kHz" for which in ("mean", "least", "most")},
}
SOURCES = {"storage": "disk", "status": "mysql"}
PERCENT = Constant(100.0)


def flaw(row: Metric) -> str:
    """What is wrong with the unit of a row; empty if nothing is."""
    try:
        unit = dimension(row.formula.tree)
    except ValueError as error:
        return str(error)
    if unit not in (None, DIMENSIONS[row.unit]):
        shown = f"`show` is {row.shown}" if row.shown else "it has no `show`"
        return f"`{row.formula.text}` is in {_text(unit)}, but {shown}"
    if row.percent and not _has_percent(row.formula.tree):
        return f"`{row.formula.text}` is a share, and a percentage needs `100 *`"
    return ""


def dimension(tree: Node, *, is_reading: bool = False) -> Dimension | None:
    """The dimension of an expression, None if it is not known. Raises ValueError for terms that differ."""
    match tree:
        case Name(name):
            return _of_name(name, is_reading=is_reading)
        case Figure(_, of):
            return dimension(of, is_reading=True)
        case Operation(sign, left, right):
            first, second = (dimension(side, is_reading=is_reading) for side in (left, right))
            if sign in "×/":
                return _product(first, second, 1 if sign == "×" else -1)
            terms = [
                node for node, side in ((first, left), (second, right)) if not isinstance(side, Constant)
            ]
            if None not in terms and len(set(terms)) > 1:
                raise ValueError(f"`{Formula(tree).text}` has terms in {' and '.join(map(_text, terms))}")
            return next((term for term in terms if term is not None), None if terms else NUMBER)
    return NUMBER


def _product(first: Dimension | None, second: Dimension | None, sign: int) -> Dimension | None:
    if first is None or second is None:
        return None
    time, size, energy = (one + sign * other for one, other in zip(first, second, strict=True))
    return time, size, energy


def _of_name(name: str, *, is_reading: bool) -> Dimension | None:
    """Of a recorded name, by the unit of its column: a counter is per second."""
    table, _, rest = name.partition(".")
    source = SOURCES.get(table, table)
    is_metric = source in DECLARED and DECLARED[source].shape == "metrics"
    column = rest if is_metric else rest.rpartition(".")[2]
    if name.endswith(".cores"):
        return NUMBER
    if start := max((start for start in QUANTITIES if name.startswith(start)), key=len, default=""):
        return QUANTITIES[start]
    unit = COMPUTED.get((table, column)) or unit_of(source, column)
    if unit is None:
        return None
    # InnoDB's pages are counted
    stored = NUMBER if unit == "page" and table in ("mysql", "status") else DIMENSIONS[unit]
    return stored if is_reading or table == "frequency" else _product(stored, RATE, 1)


def _has_percent(tree: Node) -> bool:
    match tree:
        case Operation(_, left, right):
            return _has_percent(left) or _has_percent(right)
    return tree == PERCENT


def _text(dimension: Dimension | None) -> str:
    """A dimension in base units, such as B/s."""
    powers = dict(zip("sBJ", dimension or NUMBER, strict=True))
    above, below = (
        "·".join(
            base if sign * power == 1 else f"{base}^{sign * power}"
            for base, power in powers.items()
            if sign * power > 0
        )
        for sign in (1, -1)
    )
    return f"{above or 1}/{below}" if below else above or "no unit"
