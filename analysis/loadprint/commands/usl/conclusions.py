"""Conclusions from a fit: one sentence each, with the figures that support it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean

from loadprint import numbers
from loadprint.commands.usl.curves import knee
from loadprint.commands.usl.fit import OFF, Fit, FitVerdict, LackOfFit
from loadprint.commands.usl.models import Parameter, half_interval

EXTRAPOLATION = 2.0  # × the largest N
EVIDENCE = 2.0  # difference of AICc (Burnham & Anderson: a smaller one is not evidence)
LEAST_POINTS = 6
BEYOND_KNEE = 3
DECLINE = 0.03  # below the largest throughput, where there are no repeats to estimate the noise
LEAST_R2 = 0.5
SAME_PREDICTION = 0.05
BOUNDS = {
    "sigma": "σ is held at its bound 0: throughput grows faster than N at first",
    "kappa": "κ is held at its bound 0: unbounded it would be negative, a curve that rises without limit",
}


def judged(fit: Fit) -> Fit:
    """The same fit with its conclusions."""
    missed = _no_decline(fit)
    choice = _choice(fit, fell=not missed)
    if fit.headline.failed:
        failed = FitVerdict("usl", f"{fit.headline.label}: {fit.headline.failed}", warning=True)
        return replace(fit, verdicts=(choice, failed, *_extrapolated(fit)))
    optimum, peak = _peak(fit, missed)
    supported, terms = _terms(fit, fell=not missed)
    verdicts = (*_few(fit), choice, peak, *terms, *_shape(fit), *_points(fit), *_extrapolated(fit))
    return replace(fit, optimum=optimum, terms=supported, verdicts=verdicts)


def number(value: float) -> str:
    """A number within a sentence: whole with separators from 1000 on, else three significant digits."""
    if math.isinf(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else numbers.brief(value, 3)


def f_test(lack: LackOfFit) -> str:
    """Return the test of a fit against the spread of repeats: F 3.41, p 0.03."""
    return f"F {numbers.brief(lack.f, 3)}, p {numbers.brief(lack.p, 2)}"


def _few(fit: Fit) -> Iterator[FitVerdict]:
    count = len(fit.levels)
    if count < LEAST_POINTS:
        text = f"{count} different N are few for three parameters: use six, three of them beyond the knee"
        yield FitVerdict("few", text, warning=True)


def _choice(fit: Fit, *, fell: bool) -> FitVerdict:
    if fit.preferred is None:
        return FitVerdict("choice", "AICc cannot compare the fits: too few points, or an exact fit")
    scored = sorted((model.aicc, model.label) for model in fit.models if model.aicc is not None)
    scores = ", ".join(f"{label} {score:.1f}" for score, label in scored)
    (least, first), (next_, second), *_ = scored
    if next_ - least <= EVIDENCE:
        return FitVerdict("choice", f"AICc does not separate {first} and {second} ({scores})")
    usl, preferred = fit.headline, fit.model(fit.preferred)
    if usl.aicc is None and not usl.failed:
        scores += "; too few points for the AICc of USL"
    text = f"AICc prefers {preferred.label} ({scores})"
    if preferred is not usl and not usl.failed:
        far, by_usl = preferred.predictions[-1], usl.predictions[-1].value
        if abs(by_usl / far.value - 1) > SAME_PREDICTION:
            text += f": it predicts {number(far.value)} at N = {far.n:g}, where USL predicts {number(by_usl)}"
        text += "; it cannot decline, but throughput did" if fell else ""
    return FitVerdict("choice", text, warning=preferred is not usl)


def _no_decline(fit: Fit) -> str:
    """Why no decline was measured; empty where one was."""
    levels = {n: fmean(point.x for point in points) for n, points in fit.levels.items()}
    top, last = max(levels, key=lambda n: levels[n]), fit.largest
    if top == last:
        return f"no decline was measured: throughput is largest at the largest N, {last:g}"
    fall, noise = levels[top] - levels[last], DECLINE * levels[top]
    if fit.lack_of_fit is not None:
        of_means = 1 / len(fit.levels[top]) + 1 / len(fit.levels[last])
        noise = half_interval(len(fit.points) - len(levels)) * fit.lack_of_fit.spread * math.sqrt(of_means)
    if fall > noise:
        return ""
    share = f"{100 * fall / levels[top]:.1f} %"
    return f"no decline was measured: {share} from N = {top:g} to {last:g} is within the noise"


def _peak(fit: Fit, missed: str) -> tuple[float | None, FitVerdict]:
    """The optimum, None where the data do not support it, and the sentence on the peak."""
    usl, kappa = fit.headline, fit.headline.parameter("kappa")
    peak, warning = float(usl.peak or math.nan), True
    if math.isfinite(peak) and peak > 1:
        against = [f"it is beyond the largest N measured ({fit.largest:g})"] if fit.largest < peak else []
        against += ["κ's interval includes 0"] if _includes_zero(kappa) else []
        against += [missed] if missed else []
        if not against:
            text = (
                f"optimum: N_max {peak:.1f} ({math.floor(peak)} connections), X_max {number(usl.x_peak or 0)}"
            )
            return peak, FitVerdict("peak", text)
        text = f"N_max {peak:.1f} is not an optimum: {'; '.join(against)}"
    elif peak <= 1:
        text = "the fitted curve declines from N = 1 on: concurrency gains nothing"
    elif usl.parameter("sigma").value == 0:
        text, warning = "σ and κ are 0: throughput grows with N, and no limit is visible", False
    elif kappa.value < 0:
        text = "κ is negative: the fitted curve rises ever faster, which is impossible"
    else:
        text, warning = "κ = 0: the fitted curve levels off and has no peak", False
    return None, FitVerdict("peak", text, warning)


def _includes_zero(parameter: Parameter) -> bool:
    return parameter.at_bound or parameter.low is None or parameter.low <= 0


def _terms(fit: Fit, *, fell: bool) -> tuple[tuple[str, ...], list[FitVerdict]]:
    """The supported terms, and the sentences on both."""
    usl, aicc = fit.headline, {model.key: model.aicc or math.inf for model in fit.models}
    # where throughput never fell: by how much the AICc of a curve with fewer terms is lower
    better = fit.preferred is not None and not fell and aicc["usl"] - aicc[fit.preferred] > EVIDENCE
    sigma, kappa = usl.parameter("sigma"), usl.parameter("kappa")
    neither = "neither contention nor coherency is supported: "
    if not _explains(fit):
        return (), [FitVerdict("terms", f"{neither}the curve explains too little")]
    if better and fit.preferred == "saturating" and aicc["amdahl"] - aicc["saturating"] > EVIDENCE:
        return (), [FitVerdict("terms", f"{neither}a curve without them fits better")]
    at_knee = knee(sigma.value, kappa.value)
    beyond = sum(n > at_knee for n in fit.levels)
    against = {"contention": "σ's interval includes 0" if _includes_zero(sigma) else "", "coherency": ""}
    if _includes_zero(kappa):
        against["coherency"] = "κ's interval includes 0"
    elif better:
        against["coherency"] = "a curve without it fits better"
    elif beyond < BEYOND_KNEE:
        against["coherency"] = f"{beyond} N beyond the knee at {at_knee:.1f}, {BEYOND_KNEE} are needed"
    evidence = {
        "contention": f"σ {_interval(sigma)} excludes 0",
        "coherency": f"κ {_interval(kappa)} excludes 0, {beyond} N beyond the knee ({at_knee:.1f})",
    }
    return tuple(term for term, reason in against.items() if not reason), [
        FitVerdict(
            term, f"{term} is {f'not supported: {reason}' if reason else f'supported: {evidence[term]}'}"
        )
        for term, reason in against.items()
    ]


def _explains(fit: Fit) -> bool:
    return fit.headline.r2 is not None and fit.headline.r2 >= LEAST_R2


def _interval(parameter: Parameter) -> str:
    bounds = (parameter.low, parameter.high)
    interval = ", ".join(numbers.brief(bound, 2) for bound in bounds if bound is not None)
    return f"{numbers.brief(parameter.value, 3)} [{interval}]"


def _shape(fit: Fit) -> Iterator[FitVerdict]:
    for parameter in fit.headline.parameters:
        if parameter.at_bound:
            yield FitVerdict("bound", BOUNDS[parameter.name], warning=True)
    if not _explains(fit):
        share = f"{100 * max(0.0, fit.headline.r2 or 0.0):.0f} %"
        text = f"the curve explains {share} of the spread of throughput: it supports no law"
        yield FitVerdict("noise", text, warning=True)
    if fit.lack_of_fit is not None and fit.lack_of_fit.p < 0.05:
        text = (
            "lack of fit: the points deviate from the curve by more than their repeats differ "
            f"({f_test(fit.lack_of_fit)}); the intervals are too narrow"
        )
        yield FitVerdict("lack of fit", text, warning=True)


def _points(fit: Fit) -> Iterator[FitVerdict]:
    off = max(fit.points, key=lambda point: abs(point.residual or 0.0))
    if off.residual is not None and abs(off.residual) > OFF:
        side = "above" if off.residual > 0 else "below"
        text = f"at N = {off.n:g} the fit is {100 * abs(off.residual):.1f} % {side} the measured value"
        yield FitVerdict("residual", text, warning=True)
    odd = next((point for point in fit.points if point.outlier), None)
    if odd is not None:
        errors = f"{abs(odd.deleted_t or 0.0):.1f} standard errors"
        text = f"N = {odd.n:g} is an outlier, {errors} from the fit of the others"
        if odd.reached_at is not None:
            text += f", which reaches its throughput at N = {numbers.ratio(odd.reached_at)}"
        yield FitVerdict("outlier", text)


def _extrapolated(fit: Fit) -> Iterator[FitVerdict]:
    predictions = next((model.predictions for model in fit.models if model.predictions), ())
    far = [prediction.n for prediction in predictions if prediction.n > EXTRAPOLATION * fit.largest]
    if not far:
        return
    points = ", ".join(f"N = {n:g} ({numbers.brief(n / fit.largest, 3)} ×)" for n in far)
    text = f"extrapolation, beyond twice the largest N measured ({fit.largest:g}): {points}"
    if fit.hindcast is not None:
        back = fit.hindcast
        missed = f"{numbers.points(100 * back.error)} %"
        text += (
            f"; USL fitted to N ≤ {back.up_to:g} alone misses the measured value at {back.at:g} by {missed}"
        )
    yield FitVerdict("extrapolation", text, warning=True)
