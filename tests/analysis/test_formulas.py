"""Every printed formula, computed from recorded columns, gives the printed value, in the shown unit."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pint
import pytest
from damage import ask
from declarations import declared
from loadprint.__main__ import main
from loadprint.catalogue.dimensions import flaw
from loadprint.catalogue.files import catalogue
from loadprint.catalogue.formula import Constant, Figure, Formula, Name, Node, Operation
from loadprint.catalogue.metric import Metric
from raw_columns import DECLARED, Amount, Columns
from recordings import make_run

KEPT = Path(__file__).parents[1] / "recordings" / "v1"
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
# tested with the series that it counts (test_spikes.py)
NOT_COMPUTED = {"checkpoint_spikes"}
# tests of the ledgers and of sentences compute them from their states and samples
LEDGERS = ("time_", "cputime_", "connections_storage")
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "median": np.median,
    "sum": np.sum,
    "sd": lambda values: np.std(values, ddof=1),
    "p99": lambda values: np.quantile(values, 0.99),
}


class Printed:
    """A printed formula that computes itself from the columns of a run; None is what was not recorded."""

    def __init__(self, text: str, columns: Columns, above: Sequence[float | None] = ()) -> None:
        plain = text.replace("×", "*").replace("−", "-").replace(".*.", ".ANY.")
        # a quoted part of a name becomes an identifier
        pieces = plain.split('"')
        self.quoted = {f"quoted{place}": piece for place, piece in enumerate(pieces) if place % 2}
        names = dict(zip(self.quoted.values(), self.quoted, strict=True))
        plain = "".join(names[piece] if place % 2 else piece for place, piece in enumerate(pieces))
        self.tree, self.columns, self.above = ast.parse(plain, mode="eval").body, columns, above

    def value(self) -> float | None:
        """Its value in the base unit of its row."""
        found = self._value(self.tree)
        return None if found is None else float(np.squeeze(found))

    def _value(self, tree: ast.expr, *, of_readings: bool = False) -> Any:  # noqa: PLR0911
        match tree:
            case ast.Constant(value=value):
                return value
            case ast.BinOp(left=left, op=op, right=right):
                first, second = (self._value(side, of_readings=of_readings) for side in (left, right))
                if isinstance(op, ast.BitOr):
                    return second if first is None else first
                if first is None or second is None or (isinstance(op, ast.Div) and not np.any(second)):
                    return None
                apply = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}
                return apply[type(op)](first, second)
            case ast.Call(func=ast.Name(id="max"), args=[first, second]):
                values = [self._value(each) for each in (first, second)]
                return None if None in [None if each is None else 0 for each in values] else max(values)
            case ast.Call(func=ast.Name(id=word), args=[of]):
                return self._call(word, of)
        return self._name(tree, of_readings=of_readings)

    def _call(self, word: str, of: ast.expr) -> Any:
        if ast.unparse(of) == "rows above":
            return sum(value or 0.0 for value in self.above)
        if word == "rates":
            read = self.columns.rates(self._text(of))
            return None if read is None else read.values
        if word in SHARES and self._text(of).endswith(".buckets"):
            counts = self.columns.increase(self._text(of))
            return (
                None
                if counts is None
                else _quantile(counts, SHARES[word]) * self.columns.unit(self._text(of))
            )
        values = self._value(of, of_readings=True)
        return None if values is None else FUNCTIONS[word](values)

    def _text(self, tree: ast.expr) -> str:
        text = ast.unparse(tree).replace(".ANY.", ".*.")
        for name, quoted in self.quoted.items():
            text = text.replace(name, quoted)
        return text

    def _name(self, tree: ast.expr, *, of_readings: bool) -> Any:
        if isinstance(tree, ast.Call):
            return self._call(ast.unparse(tree.func), tree.args[0])
        name = self._text(tree)
        if of_readings and name.partition(".")[0] not in COUNTED_IN_FIGURES:
            read = self.columns.readings(name)
            return None if read is None else read.values * self.columns.unit(name)
        return self.columns.rate(name)


COUNTED_IN_FIGURES = ("cgroup", "nvme", "ethtool", "ebpf_syscalls")


def _quantile(histogram: Amount, share: float) -> float:
    """Middle of the bucket with this share of the values; its lower bound if it has no upper one."""
    assert histogram.bounds is not None
    rank = max(1, int(np.ceil(share * histogram.values.sum())))
    bucket = int(np.searchsorted(np.cumsum(histogram.values), rank))
    low, high = histogram.bounds[bucket : bucket + 2]
    return float(low if np.isinf(high) else (low + max(low, high - 1)) / 2)


def checked(*runs: Path) -> tuple[set[str], set[str]]:
    """Keys of the rows whose values their formula gives, and of those without; fails for another value."""
    answer = ask("compare", *runs, "--all", "--format", "json")
    assert answer.status == 0, answer.line
    agree, absent = set(), set()
    for place, run in enumerate(dict.fromkeys(runs)):
        columns = Columns(run)
        for group in json.loads(answer.out)["groups"]:
            above: list[float | None] = []
            for row in group["rows"]:
                key, value = row["key"], row["cells"][place]["value"]
                if key in NOT_COMPUTED or key.startswith(LEDGERS):
                    continue
                text = row["formula"]
                by_formula = 100 - sum(each or 0.0 for each in above) if "rows above" in text else None
                if by_formula is None:
                    by_formula = Printed(text, columns, above).value()
                above.append(value)
                if value is None:
                    absent.add(key)
                    continue
                assert by_formula == pytest.approx(value, rel=1e-9, abs=1e-12), f"{key}: {text}"
                agree.add(key)
    return agree, absent


def test_every_formula_gives_the_values_of_real_recordings() -> None:
    """Between different operations there are also costs per statement, commit, CPU-second and row."""
    agree, _ = checked(KEPT / "oltp", KEPT / "insert")
    assert {"disk_vda_write_kb", "disk_vda_aqu", "disk_write_kb_per_commit"} <= agree
    assert len(agree) > 200


def test_every_formula_gives_the_value_of_a_run_with_every_table(
    complete: Path, golden: Callable[[str, str], None]
) -> None:
    """Of every row that a recorder can fill: the kept recordings have no eBPF, no MySQL and no energy."""
    agree, absent = checked(complete, complete)
    assert absent == {"pressure_memory"}  # which the kept recordings have
    golden("rows.txt", "\n".join(sorted(agree)) + "\n")


def test_another_formula_is_noticed(tmp_path: Path) -> None:
    columns = Columns(make_run(tmp_path / "run"))
    assert Printed("disk.vda.write_sectors", columns).value() == 512 * 1600
    assert Printed("disk.vda.write_sectors / disk.vda.writes", columns).value() == 512 * 1600 / 40
    assert Printed("disk.vda.read_sectors", columns).value() != 512 * 1600


def test_the_page_prints_formulas_with_their_unit(tmp_path: Path) -> None:
    assert main(["report", str(KEPT / "oltp"), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert 'data-tip="disk.vda.write_sectors, in B/s' in page
    assert 'data-tip="disk.vda.writes' in page


# units of what has no column of a table: quantities that code computes, and the generator's
PLAIN = (
    "cgroup.",
    "nvme.",
    "connections.",
    "mysql.flush_burst",
    "mysql.checkpoint_spikes",
    "load.cv",
    "load.worst",
    "load.backlog",
    "load.time_wait",
    "variables.innodb_log_files",
)
SECONDS, BYTES = ("latency.", "type.", "load.latency"), ("variables.",)
RATES = (
    "load.",
    "details.",
    "status.",
    "host.",
    "interrupts.",
    "softirqs.",
    "perf.",
    "allowance.",
    "ebpf_syscalls.",
)
# of columns, and of rows, where the name is another or none of Pint's
RECORDED = {"1": "", "kB": "kibibyte", "B": "byte", "sector": "byte", "us": "microsecond", "tick": "second"}
RECORDED |= {"page": "byte", "uJ": "microjoule", "kHz": "kilohertz", "ps": "picosecond"}
SHOWN = {
    "1": "",
    "%": "",
    "cores": "",
    "W": "watt",
    "B": "byte",
    "B/s": "byte / second",
    "1/min": "1 / minute",
}
REGISTRY: pint.UnitRegistry[float] = pint.UnitRegistry()


METRICS = frozenset(probe.name for probe in declared() if probe.shape == "metrics")


def unit_of_name(name: str, *, is_reading: bool) -> pint.Unit:
    """The unit of a quantity, by the unit of its column; a counter is per second."""
    table, _, rest = name.partition(".")
    if name.startswith(PLAIN) or name.endswith(".cores"):
        return REGISTRY.Unit("")
    if name.startswith((*SECONDS, *BYTES)):
        return REGISTRY.Unit("second" if name.startswith(SECONDS) else "byte")
    if name.startswith(RATES):
        return REGISTRY.Unit("1 / second")
    column = rest if table in METRICS else rest.rpartition(".")[2]
    recorded = DECLARED.get((table, column)) or ("ms" if column.endswith("_ms") else "1")
    if table in ("frequency", "storage"):
        recorded = {"frequency": "kHz", "storage": "sector"}[table]
    recorded = "1" if (table, recorded) == ("mysql", "page") else recorded  # InnoDB's, counted
    unit = REGISTRY.Unit(RECORDED.get(recorded, recorded))
    return unit if is_reading or table == "frequency" else unit / REGISTRY.second


def unit_of_tree(tree: Node, *, is_reading: bool = False) -> pint.Unit:
    """The unit of an expression; fails if terms or alternatives have different ones."""
    match tree:
        case Constant():
            return REGISTRY.Unit("")
        case Name(name):
            return unit_of_name(name, is_reading=is_reading)
        case Figure(_, inside):
            return unit_of_tree(inside, is_reading=True)
        case Operation(sign, left, right):
            first, second = (unit_of_tree(side, is_reading=is_reading) for side in (left, right))
            if sign in "×/":
                unit: pint.Unit = first * second if sign == "×" else first / second
                return unit
            known = [each for each, side in ((first, left), (second, right)) if side != Constant(0.0)]
            alike = {str(each.dimensionality) for each in known}
            assert len(alike) == 1, f"{first} {sign} {second} in {Formula(tree).text}"
            return known[0]
    raise AssertionError(tree)


ROWS = [row for rows in catalogue().groups.values() for row in rows]
OPERATION = catalogue().works["operation"][0].formula
ROWS += [
    replace(cost.metric, formula=cost.metric.formula.per(OPERATION))
    for cost in catalogue().costs
    if not cost.row.only_per
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_the_unit_of_a_row_is_that_of_its_formula(row: Metric) -> None:
    found = unit_of_tree(row.formula.tree)
    expected = REGISTRY.Unit(SHOWN.get(row.unit, row.unit))
    assert found.dimensionality == expected.dimensionality, f"{row.text} is in {found}"
    assert (row.shown == "%") == row.formula.text.startswith("100 ×")
    assert flaw(row) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mean(memory.HugePages_Free)", ""),
        ("status.Com_commit", "/s"),
        ("status.Bytes_sent", "kB/s"),
        ("mysql.Innodb_row_lock_time / mysql.Innodb_row_lock_waits", "ms"),
        ("variables.innodb_buffer_pool_size", "MiB"),
        ("variables.max_connections", ""),
        ("energy.package.energy_uj", "W"),
        ("frequency.server.mean_khz", "MHz"),
        ("storage.data.write_sectors", "kB/s"),
        ("process.server.cpu", "cores"),
        ("100 * process.server.cpu / cpu.server.cores", "%"),
        ("disk.vda.absent | 0", "/s"),
        ("max(vmstat.pgmajfault - 5, 0)", "/s"),
        ('"nic.eth0.100.rx_bytes" / load.queries', "B"),
        ('p99("ebpf_sched.server.run queue.buckets")', "µs"),
        ("p50(ebpf_block_size.vda.read.buckets)", "kB"),
        ("scrape.anything", "W"),
    ],
)
def test_a_unit_that_fits_or_is_not_known_is_accepted(text: str, shown: str) -> None:
    assert flaw(Metric("a", "a", shown, Formula.parse(text))) == ""


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("disk.vda.read_ms / disk.vda.writes", "byte"),
        ("disk.vda.read_sectors", "byte"),
        ("disk.vda.reads", "byte"),
    ],
)
def test_a_wrong_unit_is_noticed(text: str, unit: str) -> None:
    assert unit_of_tree(Formula.parse(text).tree).dimensionality != REGISTRY.Unit(unit).dimensionality
    with pytest.raises(AssertionError, match=r"in disk\.vda\.reads"):
        unit_of_tree(Formula.parse("disk.vda.reads + disk.vda.read_ms").tree)
