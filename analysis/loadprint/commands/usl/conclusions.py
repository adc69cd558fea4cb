"""Conclusions from a fit: one sentence each, with the figures that support it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from loadprint import numbers
from loadprint.commands.usl import curves, solve
from loadprint.commands.usl.fitted import Fit, LackOfFit, Verdict
from loadprint.commands.usl.models import LABELS, Model, Parameter

OUTLIER = 2.0  # standard errors between one N and the fit of the others
EXTRAPOLATION = 2.0  # × the largest N
EVIDENCE = 2.0  # difference of AICc (Burnham & Anderson: a smaller one is not evidence)
LEAST_POINTS = 6
BEYOND_KNEE = 3
DECLINE = 0.03  # below the largest throughput, where there are no repeats to estimate the noise
LEAST_R2 = 0.5
OFF = 0.10
SAME_PREDICTION = 0.05


def judged(fit: Fit) -> Fit:
    """The same fit with its conclusions."""
    preferred = fit.model(fit.preferred) if fit.preferred else None
    clear = preferred is not None and preferred.key != "usl" and _ahead(fit, preferred) > EVIDENCE
    missed = decline(fit)
    verdicts = [*_few(fit), *_choice(fit, preferred, fell=missed is None)]
    if fit.headline.failed:
        verdicts.append(Verdict("usl", f"{LABELS['usl']}: {fit.headline.failed}", warning=True))
        return replace(fit, verdicts=(*verdicts, *_extrapolated(fit)))
    optimum, of_peak = _peak(fit, missed)
    terms, of_terms = _terms(fit, clear=clear and missed is not None)
    verdicts += [of_peak, *of_terms, *_bounds(fit), *_shape(fit), *_points(fit), *_extrapolated(fit)]
    return replace(fit, optimum=optimum, terms=terms, verdicts=tuple(verdicts))


def number(value: float) -> str:
    """A number within a sentence: whole with separators from 1000 on, else three significant digits."""
    if math.isinf(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else numbers.brief(value, 3)


def f_test(lack: LackOfFit) -> str:
    """Return the test of a fit against the spread of repeats: F 3.41, p 0.03."""
    return f"F {numbers.brief(lack.f, 3)}, p {numbers.brief(lack.p, 2)}"


def _levels(fit: Fit) -> dict[float, list[float]]:
    levels: dict[float, list[float]] = {}
    for point in fit.points:
        levels.setdefault(point.n, []).append(point.x)
    return levels


def _few(fit: Fit) -> list[Verdict]:
    levels = len(_levels(fit))
    if fit.headline.failed or levels >= LEAST_POINTS:
        return []
    text = f"{levels} different N are few for three parameters: use six, three of them beyond the knee"
    return [Verdict("few", text, warning=True)]


def _ahead(fit: Fit, model: Model) -> float:
    """AICc of USL minus that of `model`; infinite where one of them has none."""
    mine, other = model.aicc, fit.headline.aicc
    return math.inf if mine is None or other is None else other - mine


def _choice(fit: Fit, preferred: Model | None, *, fell: bool) -> list[Verdict]:
    if preferred is None:
        return [Verdict("choice", "AICc cannot compare the fits: too few points, or an exact fit")]
    scored = sorted((model.aicc, model.key) for model in fit.models if model.aicc is not None)
    scores = ", ".join(f"{LABELS[key]} {score:.1f}" for score, key in scored)
    if len(scored) > 1 and scored[1][0] - scored[0][0] <= EVIDENCE:
        return [
            Verdict(
                "choice",
                f"AICc does not separate {LABELS[scored[0][1]]} and {LABELS[scored[1][1]]} ({scores})",
            )
        ]
    if fit.headline.aicc is None and not fit.headline.failed:
        scores += "; too few points for the AICc of USL"
    text = f"AICc prefers {LABELS[preferred.key]} ({scores})"
    far = preferred.predictions[-1] if preferred.predictions else None
    if preferred.key != "usl" and far and not fit.headline.failed:
        usl = fit.headline.predictions[-1].value
        if abs(usl / far.value - 1) > SAME_PREDICTION:
            text += f": it predicts {number(far.value)} at N = {far.n:g}, where USL predicts {number(usl)}"
        text += "; it cannot decline, but throughput did" if fell else ""
    return [Verdict("choice", text, warning=preferred.key != "usl")]


def _includes_zero(parameter: Parameter) -> bool:
    return parameter.at_bound or parameter.low is None or parameter.low <= 0


def decline(fit: Fit) -> str | None:
    """Why no decline was measured; None where one was."""
    levels = {n: float(np.mean(x)) for n, x in _levels(fit).items()}
    top, last = max(levels, key=lambda n: levels[n]), max(levels)
    if top == last:
        return f"no decline was measured: throughput is largest at the largest N, {last:g}"
    fall = levels[top] - levels[last]
    repeats = _levels(fit)
    if fit.lack_of_fit is not None:
        freedom = len(fit.points) - len(levels)
        each = 1 / len(repeats[top]) + 1 / len(repeats[last])
        noise = solve.t_quantile(freedom) * fit.lack_of_fit.spread * math.sqrt(each)
    else:
        noise = DECLINE * levels[top]
    if fall <= noise:
        share = fall / levels[top]
        return (
            f"no decline was measured: {100 * share:.1f} % from N = {top:g} to {last:g} is within the noise"
        )
    return None


def _peak(fit: Fit, missed: str | None) -> tuple[float | None, Verdict]:
    usl, largest = fit.headline, fit.largest
    peak, kappa = float(usl.peak or math.nan), usl.parameter("kappa")
    if math.isinf(peak) and usl.parameter("sigma").value == 0:
        return None, Verdict("peak", "σ and κ are 0: throughput grows with N, and no limit is visible")
    if math.isinf(peak) and kappa.value < 0:
        return None, Verdict(
            "peak", "κ is negative: the fitted curve rises ever faster, which is impossible", True
        )
    if math.isinf(peak):
        return None, Verdict("peak", "κ = 0: the fitted curve levels off and has no peak")
    if peak <= 1:
        return None, Verdict(
            "peak", "the fitted curve declines from N = 1 on: concurrency gains nothing", True
        )
    against = []
    if largest < peak:
        against.append(f"it is beyond the largest N measured ({largest:g})")
    if _includes_zero(kappa):
        against.append("κ's interval includes 0")
    if missed:
        against.append(missed)
    if not against:
        text = f"optimum: N_max {peak:.1f} ({math.floor(peak)} connections), X_max {number(usl.x_peak or 0)}"
        return peak, Verdict("peak", text)
    return None, Verdict("peak", f"N_max {peak:.1f} is not an optimum: {'; '.join(against)}", warning=True)


def _terms(fit: Fit, *, clear: bool) -> tuple[tuple[str, ...], list[Verdict]]:
    usl = fit.headline
    sigma, kappa = usl.parameter("sigma"), usl.parameter("kappa")
    if usl.r2 is None or usl.r2 < LEAST_R2:
        return (), [
            Verdict("terms", "neither contention nor coherency is supported: the curve explains too little")
        ]
    if clear and fit.preferred == "saturating" and not _ties_with_amdahl(fit):
        text = "neither contention nor coherency is supported: a curve without them fits better"
        return (), [Verdict("terms", text)]
    supported, verdicts = [], []
    if _includes_zero(sigma):
        verdicts.append(Verdict("contention", "contention is not supported: σ's interval includes 0"))
    else:
        supported.append("contention")
        verdicts.append(Verdict("contention", f"contention is supported: σ {_interval(sigma)} excludes 0"))
    knee = curves.knee(sigma.value, kappa.value)
    beyond = sum(n > knee for n in _levels(fit))
    if _includes_zero(kappa):
        verdicts.append(Verdict("coherency", "coherency is not supported: κ's interval includes 0"))
    elif clear:
        verdicts.append(Verdict("coherency", "coherency is not supported: a curve without it fits better"))
    elif beyond < BEYOND_KNEE:
        text = (
            f"coherency is not supported: {beyond} N beyond the knee at {knee:.1f}, {BEYOND_KNEE} are needed"
        )
        verdicts.append(Verdict("coherency", text))
    else:
        supported.append("coherency")
        interval = _interval(kappa)
        text = f"coherency is supported: κ {interval} excludes 0, {beyond} N beyond the knee ({knee:.1f})"
        verdicts.append(Verdict("coherency", text))
    return tuple(supported), verdicts


def _ties_with_amdahl(fit: Fit) -> bool:
    """Whether AICc does not separate saturation, without terms, from Amdahl's law, with contention."""
    amdahl, saturation = fit.model("amdahl").aicc, fit.model("saturating").aicc
    return amdahl is not None and saturation is not None and amdahl - saturation <= EVIDENCE


def _interval(parameter: Parameter) -> str:
    bounds = (parameter.low, parameter.high)
    interval = ", ".join(numbers.brief(bound, 2) for bound in bounds if bound is not None)
    return f"{numbers.brief(parameter.value, 3)} [{interval}]"


def _bounds(fit: Fit) -> list[Verdict]:
    reasons = {
        "sigma": "σ is held at its bound 0: throughput grows faster than N at first",
        "kappa": "κ is held at its bound 0: unbounded it would be negative, a curve that rises without limit",
    }
    return [
        Verdict("bound", reasons[parameter.name], warning=True)
        for parameter in fit.headline.parameters
        if parameter.at_bound
    ]


def _shape(fit: Fit) -> list[Verdict]:
    usl, out = fit.headline, []
    if usl.r2 is None or usl.r2 < LEAST_R2:
        share = f"{100 * max(0.0, usl.r2 or 0.0):.0f} %"
        out.append(
            Verdict(
                "noise",
                f"the curve explains {share} of the spread of throughput: it supports no law",
                True,
            )
        )
    if fit.lack_of_fit is not None and fit.lack_of_fit.p < 0.05:
        text = (
            "lack of fit: the points deviate from the curve by more than their repeats differ "
            f"({f_test(fit.lack_of_fit)}); the intervals are too narrow"
        )
        out.append(Verdict("lack of fit", text, warning=True))
    return out


def _points(fit: Fit) -> list[Verdict]:
    out = []
    off = max(fit.points, key=lambda point: abs(point.residual or 0.0))
    if off.residual is not None and abs(off.residual) > OFF:
        side = "above" if off.residual > 0 else "below"
        text = f"at N = {off.n:g} the fit is {100 * abs(off.residual):.1f} % {side} the measured value"
        out.append(Verdict("residual", text, warning=True))
    odd = next((point for point in fit.points if point.outlier), None)
    if odd is not None and odd.deleted_t is not None:
        errors = f"{abs(odd.deleted_t):.1f} standard errors"
        text = f"N = {odd.n:g} is an outlier, {errors} from the fit of the others"
        if odd.reached_at is not None:
            text += f", which reaches its throughput at N = {numbers.ratio(odd.reached_at)}"
        out.append(Verdict("outlier", text))
    return out


def _extrapolated(fit: Fit) -> list[Verdict]:
    largest = fit.largest
    predictions = next((model.predictions for model in fit.models if model.predictions), ())
    far = [each.n for each in predictions if each.n > EXTRAPOLATION * largest]
    if not far:
        return []
    listed = ", ".join(f"N = {n:g} ({numbers.brief(n / largest, 3)} ×)" for n in far)
    text = f"extrapolation, beyond twice the largest N measured ({largest:g}): {listed}"
    if fit.hindcast is not None:
        back = fit.hindcast
        text += (
            f"; USL fitted to N ≤ {back.up_to:g} alone misses the measured value at {back.at:g} by "
            f"{numbers.points(100 * back.error)} %"
        )
    return [Verdict("extrapolation", text, warning=True)]
