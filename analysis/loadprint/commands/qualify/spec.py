"""Reads and validates a specification: rows, tolerances, confidence, price."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from loadprint.configuration.field_types import Profile, Seconds, Strict
from loadprint.configuration.model_file import read_model
from loadprint.reading.instances import By

At = Literal["saturation", "equal-load", "any"]
# results of a closed loop, inputs of an open loop
THROUGHPUT = ("operations", "statements", "commits", "rows_written")


def share(value: Any) -> float:
    """Parse a share such as `3 %` or 0.03. Raises ValueError."""
    text = str(value).strip()
    try:
        parsed = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        parsed = math.nan
    if isinstance(value, bool) or not 0 <= parsed < 1:
        raise ValueError(f'"{value}" is not a share from 0 to under 1; write it as 3 % or 0.03')
    return parsed


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

    rows: Annotated[dict[str, RowSpec], Field(min_length=1)]
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    concurrencies: Annotated[int, Field(ge=1)] = 2
    equal_load: Annotated[float, Field(gt=0, le=100)] = 70.0
    sustained: Sustained = Field(default_factory=Sustained)
    about: Literal["auto", "type", "instances"] = "auto"
    instances_by: By = "host"
    accept_profiles: tuple[Profile, ...] = ("durable",)
    accept: tuple[str, ...] = ()
    accept_disturbed: bool = False
    price: Price | None = None
    baseline: tuple[str, ...] = ()
    candidate: tuple[str, ...] = ()


def default_text() -> str:
    """Return the text of the built-in specification."""
    return (resources.files("loadprint.commands.qualify") / "default.yml").read_text(encoding="utf-8")


def load(path: Path | None) -> Spec:
    """Read a specification, or the built-in one. Raises InputError with file, line and key."""
    if path is None:
        with resources.as_file(resources.files("loadprint.commands.qualify") / "default.yml") as built_in:
            return load(built_in)
    fix = "`loadprint qualify --print-spec` shows every key"
    return read_model(path, Spec, "specification", "such as `rows`", fix)
