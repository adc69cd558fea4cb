"""Reads and validates a specification: rows, tolerances, confidence, price."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, model_validator

from loadprint.catalogue.files import catalogue
from loadprint.catalogue.metric import At
from loadprint.configuration.field_types import Profile, Seconds, Strict, share
from loadprint.configuration.model_file import read_model
from loadprint.reading.instances import By

# results of a closed loop, inputs of an open loop
THROUGHPUT = ("operations", "statements", "commits", "rows_written")


Share = Annotated[float, BeforeValidator(share)]


class RowSpec(Strict):
    """One row to judge: its tolerance; `better` and `at` override the defaults of the row."""

    tolerance: Share
    better: Literal["higher", "lower"] | None = None
    at: At | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"tolerance": value}

    def judged_at(self, key: str) -> At:
        """Return the load at which the row `key` has a verdict."""
        if key.startswith("latency_"):
            return "equal-load"  # in a closed loop latency is threads ÷ throughput
        return self.at or ("saturation" if key in THROUGHPUT else "any")


def default_rows() -> dict[str, RowSpec]:
    """The rows of the catalogue that have a tolerance: of the load, of the costs of an operation, others."""
    declared = catalogue()
    rows = {row.key: row for group in ("throughput", "latency") for row in declared.groups[group]}
    rows |= {f"{cost.metric.key}_per_operation": cost.metric for cost in declared.costs}
    rows |= {row.key: row for group in declared.groups.values() for row in group}
    return {
        key.replace("{}", "*"): RowSpec(tolerance=row.tolerance / 100, at=row.tolerated_at)
        for key, row in rows.items()
        if row.tolerance is not None
    }


class Price(Strict):
    """The prices of both sides; with a tolerance, operations per unit of currency are judged too."""

    baseline: Annotated[float, Field(gt=0)]
    candidate: Annotated[float, Field(gt=0)]
    currency: str
    per: Literal["second", "hour", "month"] = "hour"
    tolerance: Share | None = None

    @property
    def seconds(self) -> float:
        """The seconds that the price pays for; a month is a twelfth of 365 days."""
        return {"second": 1.0, "hour": 3600.0, "month": 365 * 86400 / 12}[self.per]


class Sustained(Strict):
    """The shortest window that shows the sustained level, and the span of the burst level."""

    at_least: Seconds = 600.0
    burst: Annotated[Seconds, Field(ge=10, le=60)] = 30.0


class Spec(Strict):
    """The specification; `baseline` and `candidate` may name executions instead of the command line."""

    rows: dict[str, RowSpec] = Field(
        default_factory=default_rows,
        min_length=1,
        description="A tolerance is the share by which the candidate may be worse than the baseline.\n"
        "A row is a key of `loadprint compare --format json`; `*` stands for any device.\n"
        "Waits depend on the load: with `at: equal-load` judged only where both run at one rate.",
    )
    confidence: float = Field(
        default=0.95,
        ge=0.5,
        lt=1,
        description="The confidence of each bound. All rows must pass, so that their number needs no "
        "correction.",
    )
    concurrencies: int = Field(
        default=2,
        ge=1,
        description="Number of thread counts that each workload must run at: instances scale differently.",
    )
    equal_load: float = Field(
        default=70,
        gt=0,
        le=100,
        description="The rate of a campaign of mode equal-load that is judged, in percent of the maximum.",
    )
    sustained: Sustained = Field(
        default_factory=Sustained,
        description="The level after the burst is judged. A window shorter than `at_least` does not show "
        "the sustained level.",
    )
    about: Literal["auto", "type", "instances"] = Field(
        default="auto",
        description="instances: exactly these instances.\n"
        "type: all instances of the type; needs three or more per side.\n"
        "auto: type if a side has more than one instance.",
    )
    instances_by: By = Field(
        default="host",
        description="What identifies an instance: host (machine id or host name), or boot or execution if "
        "hosts share a name.",
    )
    accept_profiles: tuple[Profile, ...] = Field(
        default=("durable",),
        description="Server profiles that qualify. Only durable syncs every commit.",
    )
    accept: tuple[str, ...] = Field(
        default=(),
        description="Names of configuration differences to accept, such as innodb_io_capacity or kernel*.",
    )
    accept_disturbed: bool = Field(
        default=False,
        description="true: also judge repeats that the canary found disturbed, if noisy neighbours are part "
        "of the product.",
    )
    price: Price | None = None
    baseline: tuple[str, ...] = ()
    candidate: tuple[str, ...] = ()


def default_text() -> str:
    """Return the text of the built-in specification, each key with its meaning."""
    spec, parts = Spec(), ["# The built-in specification of `loadprint qualify`.\n"]
    values = spec.model_dump(mode="json", exclude_none=True, exclude={"price", "baseline", "candidate"})
    values["sustained"] = {name: f"{seconds:g}s" for name, seconds in values["sustained"].items()}
    for key, row in spec.rows.items():
        text = f"{100 * row.tolerance:g} %"
        values["rows"][key] = {"tolerance": text, "at": row.at} if row.at else text
    for name, value in values.items():
        meaning = textwrap.indent(str(Spec.model_fields[name].description), "# ")
        style = None if isinstance(value, dict | list) else False
        text = yaml.safe_dump({name: value}, default_flow_style=style, sort_keys=False)
        parts.append(f"{meaning}\n{text}")
    return "\n".join(parts)


def load(path: Path | None) -> Spec:
    """Read a specification, or the built-in one. Raises InputError with file, line and key."""
    if path is None:
        return Spec()
    fix = "docs/qualify.md describes every key"
    return read_model(path, Spec, "specification", "such as `rows`", fix)
