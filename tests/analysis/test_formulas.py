"""Every printed formula, computed from the recorded columns, gives the printed value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import ask
from loadprint.__main__ import main
from loadprint.metrics.formulas import divisor
from raw_columns import Amount, Columns
from recordings import make_run

KEPT = Path(__file__).parents[1] / "recordings" / "v1"
TOKENS = re.compile(
    r"\s*((?:[A-Za-z_]\w*|\"[^\"]*\")(?:\.(?:[\w*]+|\"[^\"]*\"))*(?:\.(?=\())?|10[⁶⁹¹²]+|\d+|[-−+×/|()Δ])"
)
POWERS = {"10⁶": 1e6, "10⁹": 1e9, "10¹²": 1e12}
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
# tested with the series that it counts (test_spikes.py)
NOT_COMPUTED = {"checkpoint_spikes"}
LEDGERS = ("time_", "cputime_")  # tests of the ledgers compute them from their states and samples


class Formula:
    """A formula that computes itself from the columns of a run, by recursive descent.

    None is what was not recorded. Numbers with `seconds` are increases: only increases over the same seconds
    may be added or divided, so that an expression without its `/ s` fails.
    """

    def __init__(self, text: str, columns: Columns, above: Sequence[float | None] = ()) -> None:
        found = [match[1] for match in TOKENS.finditer(text)]
        assert "".join(found).replace(" ", "") == text.replace(" ", ""), f"cannot be parsed: {text}"
        self.tokens, self.columns, self.above = [*found, ""], columns, above

    def value(self) -> float | None:
        """Its value; None if something is not recorded."""
        result = self._alternatives(increase=False)
        assert self.tokens == [""], f"cannot be parsed from {self.tokens}"
        assert result is None or not result.power, "an increase is not divided by its seconds"
        return None if result is None else float(np.squeeze(result.values))

    def _next(self, *expected: str) -> str:
        if expected and self.tokens[0] not in expected:
            return ""
        return self.tokens.pop(0)

    def _alternatives(self, *, increase: bool) -> Amount | None:
        result = self._sum(increase=increase)
        while self._next("|"):
            other = self._sum(increase=increase)
            result = other if result is None else result
        return result

    def _sum(self, *, increase: bool) -> Amount | None:
        result = self._product(increase=increase)
        while sign := self._next("+", "−"):
            other = self._product(increase=increase)
            if result is None or other is None:
                result = None
                continue
            alike = (result.seconds, result.power) == (other.seconds, other.power)
            assert alike or not other.power, "increases over other seconds are added"
            values = result.values + other.values if sign == "+" else result.values - other.values
            result = replace(result, values=values)
        return result

    def _product(self, *, increase: bool) -> Amount | None:
        result = self._operand(increase=increase)
        while sign := self._next("×", "/"):
            if sign == "/" and (time := self._next("s", "load.seconds")):
                result = self._per_second(result, time)
            else:
                result = self._apply(sign, result, self._operand(increase=increase))
        return result

    def _per_second(self, left: Amount | None, time: str) -> Amount | None:
        if left is None:
            return None
        if time == "s":
            assert left.power == 1 or not left.values.any(), "only an increase is divided by s"
            return Amount(left.values / (left.seconds or 1.0))
        seconds = self.columns.result["seconds"]
        assert left.seconds in (None, seconds), "an increase is divided by other seconds"
        return Amount(left.values / seconds)

    @staticmethod
    def _apply(sign: str, left: Amount | None, right: Amount | None) -> Amount | None:
        if left is None or right is None or (sign == "/" and not right.values.any()):
            return None
        seconds = {each.seconds for each in (left, right) if each.power}
        assert len(seconds) <= 1, "increases over other seconds are multiplied"
        power = left.power + right.power if sign == "×" else left.power - right.power
        values = left.values * right.values if sign == "×" else left.values / right.values
        return Amount(values, seconds.pop() if power else None, power=power)

    def _operand(self, *, increase: bool) -> Amount | None:
        if self._next("Δ"):
            return self._operand(increase=True)
        if self._next("("):
            result = self._alternatives(increase=increase)
            assert self._next(")")
            return result
        token = self._next()
        if self.tokens[0] == "(" and not token.endswith("."):
            return self._call(token)
        if token in POWERS or token.isdigit():
            return Amount(np.array([POWERS.get(token) or float(token)]))
        if token.endswith("."):
            return self._of_entity(token, increase=increase)
        return self._column(token, increase=increase)

    def _of_entity(self, head: str, *, increase: bool) -> Amount | None:
        """`disk.vda.(reads + writes)`: names with the same start."""
        assert self._next("(")
        names = [head + self._next()]
        while self._next("+"):
            names.append(head + self._next())
        assert self._next(")")
        parts = [self._column(name, increase=increase) for name in names]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        assert len({part.seconds for part in known}) == 1
        return replace(known[0], values=np.sum([part.values for part in known], axis=0))

    def _column(self, name: str, *, increase: bool) -> Amount | None:
        if increase:
            return self.columns.increase(name)
        if name.partition(".")[0] in ("load", "variables", "HZ", "page_size") or name.endswith(".CPUs"):
            number = self.columns.number(name)
            return None if number is None else Amount(np.array([number]))
        return self.columns.readings(name)

    def _call(self, name: str) -> Amount | None:
        assert self._next("(")
        if name == "sum" and self.tokens[:3] == ["rows", "above", ")"]:
            del self.tokens[:3]
            return Amount(np.array([sum(value or 0.0 for value in self.above)]))
        if name == "rates":
            column = self._next()
            assert self._next(")")
            return self.columns.rates(column)
        of = self._alternatives(increase=False)
        assert self._next(")")
        if of is None:
            return None
        if of.bounds is not None:
            return Amount(np.array([_quantile(of, SHARES[name])]))
        functions: dict[str, Any] = {
            "max": np.max,
            "min": np.min,
            "mean": np.mean,
            "median": np.median,
            "sum": np.sum,
            "sd": lambda values: np.std(values, ddof=1),
            "p99": lambda values: np.quantile(values, 0.99),
        }
        return Amount(np.array([functions[name](of.values)]), of.seconds, power=of.power)


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
                by_formula = Formula(row["formula"], columns, above).value()
                above.append(value)
                if value is None:
                    absent.add(key)
                    continue
                assert by_formula == pytest.approx(value, rel=1e-9, abs=1e-12), f"{key}: {row['formula']}"
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


def test_the_page_names_the_unit_of_a_formula_where_the_column_has_another(tmp_path: Path) -> None:
    assert main(["report", str(KEPT / "oltp"), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert 'data-tip="512 × Δdisk.vda.write_sectors / s, in B/s' in page
    assert 'data-tip="Δdisk.vda.writes / s' in page


def test_an_expression_without_its_unit_or_time_is_noticed(tmp_path: Path) -> None:
    """The formulas of an older version: without 512 bytes a sector, 1000 ms a second, and seconds."""
    columns = Columns(make_run(tmp_path / "run"))
    assert Formula("512 × Δdisk.vda.write_sectors / s", columns).value() == 512 * 1600
    assert Formula("Δdisk.vda.write_sectors / s", columns).value() == 1600
    for wrong in (
        "Δdisk.vda.write_sectors",
        "Δdisk.vda.write_sectors / Δnic.veth0.tx_bytes / s",
        "Δdisk.vda.write_sectors / load.events",
        "written sectors / s",
    ):
        with pytest.raises((AssertionError, IndexError)):
            Formula(wrong, columns).value()


def test_the_last_divisor_is_named() -> None:
    assert divisor("Δdisk.vda.read_ms / 1000 / Δdisk.vda.reads") == "Δdisk.vda.reads"
    assert divisor("512 × Δa.b / s / (load.events / load.seconds)") == "load.events / load.seconds"
