"""What is judged and how strictly: a YAML file, checked key by key as campaign files are."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from loadprint.configuration.document import DocumentError, compose
from loadprint.configuration.field_types import Profile, Seconds, Strict
from loadprint.configuration.mistakes import describe
from loadprint.errors import InputError
from loadprint.reading.instances import By

At = Literal["saturation", "equal-load", "any"]
# the finding of a closed loop; an open one asks for it
THROUGHPUT = ("operations", "statements", "commits", "rows_written")


def share(value: Any) -> float:
    """Read a share such as `3 %` or 0.03; ValueError names the form."""
    text = str(value).strip()
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = math.nan
    if isinstance(value, bool) or not 0 <= found < 1:
        raise ValueError(f'"{value}" is no share from 0 to under 1; write it as 3 % or 0.03')
    return found


Share = Annotated[float, BeforeValidator(share)]


class Row(Strict):
    """One row to judge: how much worse it may be; `better` and `at` only where the row's own do not fit."""

    tolerance: Share
    better: Literal["higher", "lower"] | None = None
    at: At | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"tolerance": value}

    def judged_at(self, key: str) -> At:
        """At which load the row `key` carries a verdict."""
        if key.startswith("latency_"):
            return "equal-load"  # in a closed loop latency is threads ÷ throughput
        return self.at or ("saturation" if key in THROUGHPUT else "any")


class Price(Strict):
    """What both sides cost; with a tolerance, operations per unit of currency are judged too."""

    baseline: Annotated[float, Field(gt=0)]
    candidate: Annotated[float, Field(gt=0)]
    currency: str
    per: Literal["second", "hour", "month"] = "hour"
    tolerance: Share | None = None

    @property
    def seconds(self) -> float:
        """Seconds that a price buys; a month is the twelfth part of 365 days."""
        return {"second": 1.0, "hour": 3600.0, "month": 365 * 86400 / 12}[self.per]


class Sustained(Strict):
    """Shortest window that tells what an instance sustains, and the span whose best level is its burst."""

    at_least: Seconds = 600.0
    burst: Annotated[Seconds, Field(ge=10, le=60)] = 30.0


class Spec(Strict):
    """The whole specification; `baseline` and `candidate` may name executions instead of the command line."""

    rows: Annotated[dict[str, Row], Field(min_length=1)]
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
    """Return the specification that holds when none is given, as it may be written to a file and changed."""
    return (resources.files("loadprint.commands.qualify") / "default.yml").read_text(encoding="utf-8")


def load(path: Path | None) -> Spec:
    """Read a specification, or the built-in one. Raises InputError with file, line and key."""
    if path is None:
        with resources.as_file(resources.files("loadprint.commands.qualify") / "default.yml") as built_in:
            return load(built_in)
    try:
        document = compose(path, "specification", "such as `rows`")
        try:
            return Spec.model_validate(document.data)
        except ValidationError as error:
            raise DocumentError(describe(document, error, Spec)) from None
    except DocumentError as error:
        place, _, what = str(error).partition(": ")
        raise InputError(place, what, "`loadprint qualify --print-spec` shows every key") from None
