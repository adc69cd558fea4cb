"""One fitted column as plain values: points, fits, and the conclusions from them."""

from __future__ import annotations

from dataclasses import dataclass

from loadprint.commands.usl.models import Model


@dataclass(frozen=True)
class Verdict:
    """One sentence. `key` is its subject; a `warning` is printed first."""

    key: str
    text: str
    warning: bool = False


@dataclass(frozen=True)
class Point:
    """A measured point and the headline fit.

    `residual` is predicted / measured − 1. `deleted_t` is the deviation of the point's N from the fit of the
    others, in standard errors; `reached_at` is the N at which that fit has this throughput.
    """

    n: float
    x: float
    predicted: float | None
    residual: float | None
    deleted_t: float | None = None
    reached_at: float | None = None
    outlier: bool = False


@dataclass(frozen=True)
class LeftOut:
    """Leave-one-out: peaks and predictions of the headline fit without each N in turn."""

    n: tuple[float, ...]
    peaks: tuple[float, ...]
    predictions: tuple[tuple[float, ...], ...]  # per left-out N, in the order of the model's predictions

    def peak_range(self) -> tuple[float, float]:
        """Least and largest N_max; may be infinite."""
        return min(self.peaks), max(self.peaks)

    def range_at(self, place: int) -> tuple[float, float]:
        """Least and largest prediction at one N."""
        values = [each[place] for each in self.predictions]
        return min(values), max(values)


@dataclass(frozen=True)
class LackOfFit:
    """F test of the residuals against the spread of repeats (Draper & Smith, chapter 2)."""

    f: float
    p: float
    spread: float  # standard deviation of repeats at one N, in the data's unit


@dataclass(frozen=True)
class Hindcast:
    """Prediction of the largest N by the fit of the N up to half of it: predicted / measured − 1."""

    up_to: float
    at: float
    error: float


@dataclass(frozen=True)
class Fit:
    """One column: its points, every fit, and the conclusions.

    `preferred` is the key of the model with the least AICc, None where fewer than two have one. `optimum` is
    N_max where the data support it. `terms` are the supported terms: contention (σ), coherency (κ).
    """

    points: tuple[Point, ...]
    models: tuple[Model, ...]
    left_out: LeftOut | None
    lack_of_fit: LackOfFit | None
    hindcast: Hindcast | None
    preferred: str | None
    optimum: float | None
    terms: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def largest(self) -> float:
        """The largest N measured."""
        return max(point.n for point in self.points)

    @property
    def headline(self) -> Model:
        """USL; it may have `failed`."""
        return self.models[0]

    def model(self, key: str) -> Model:
        """A fit by key. Raises StopIteration where there is no such fit."""
        return next(model for model in self.models if model.key == key)
