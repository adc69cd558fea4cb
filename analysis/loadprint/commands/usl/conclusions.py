"""What may be said of a fit, and what may not: each verdict is a sentence with the figures it rests on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from loadprint import numbers
from loadprint.commands.usl import curves, solve
from loadprint.commands.usl.fitted import Fit, Verdict
from loadprint.commands.usl.models import LABELS, RIVALS, Model, Parameter

STANDS_OUT = 2.0  # standard errors between one N and the fit of the others
BEYOND = 2.0  # × the largest N: a prediction further out is called an extrapolation
CLEARLY = 2.0  # difference of AICc (Burnham & Anderson: less is no evidence)
LEAST_POINTS = 6
BEYOND_KNEE = 3
DECLINE = 0.03  # below the largest throughput, where no repeats tell what noise is
LEAST_R2 = 0.5
OFF = 0.10
ALIKE = 0.05


def judged(fit: Fit) -> Fit:
    """The same fit with what may be said of it."""
    preferred = fit.model(fit.preferred) if fit.preferred else None
    clear = preferred is not None and preferred.key != "usl" and _ahead(fit, preferred) > CLEARLY
    missed = decline(fit)
    said = [*_few(fit), *_choice(fit, preferred, fell=missed is None)]
    if fit.headline.failed:
        said.append(Verdict("usl", f"{LABELS['usl']}: {fit.headline.failed}", warning=True))
        return replace(fit, verdicts=(*said, *_extrapolated(fit)))
    optimum, of_peak = _peak(fit, missed)
    terms, of_terms = _terms(fit, clear=clear and missed is not None)
    said += [of_peak, *of_terms, *_bounds(fit), *_shape(fit), *_points(fit), *_extrapolated(fit)]
    return replace(fit, optimum=optimum, terms=terms, verdicts=tuple(said))


def number(value: float) -> str:
    """A number of a sentence: whole with separators from 1000 on, else three significant digits."""
    if math.isinf(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _levels(fit: Fit) -> dict[float, list[float]]:
    levels: dict[float, list[float]] = {}
    for point in fit.points:
        levels.setdefault(point.n, []).append(point.x)
    return levels


def _few(fit: Fit) -> list[Verdict]:
    levels = len(_levels(fit))
    if fit.headline.failed or levels >= LEAST_POINTS:
        return []
    text = f"{levels} different N are few for three parameters: six are asked, three of them beyond the knee"
    return [Verdict("few", text, warning=True)]


def _ahead(fit: Fit, model: Model) -> float:
    """How much less AICc `model` has than the three-parameter fit; infinite where that has none."""
    mine, other = model.aicc, fit.headline.aicc
    return math.inf if mine is None or other is None else other - mine


def _choice(fit: Fit, preferred: Model | None, *, fell: bool) -> list[Verdict]:
    if preferred is None:
        return [Verdict("choice", "AICc cannot choose between the fits: too few points, or an exact fit")]
    scored = sorted(
        (model.aicc, model.key) for model in fit.models if model.key in RIVALS and model.aicc is not None
    )
    told = ", ".join(f"{LABELS[key]} {score:.1f}" for score, key in scored)
    if len(scored) > 1 and scored[1][0] - scored[0][0] <= CLEARLY:
        return [
            Verdict("choice", f"AICc cannot tell {LABELS[scored[0][1]]} from {LABELS[scored[1][1]]} ({told})")
        ]
    if fit.headline.aicc is None and not fit.headline.failed:
        told += "; too few points to score USL"
    text = f"AICc prefers {LABELS[preferred.key]} ({told})"
    far = preferred.predictions[-1] if preferred.predictions else None
    if preferred.key != "usl" and far and not fit.headline.failed:
        usl = fit.headline.predictions[-1].value
        if abs(usl / far.value - 1) > ALIKE:
            text += f": it predicts {number(far.value)} at N = {far.n:g}, where USL predicts {number(usl)}"
        text += "; it cannot fall, which throughput did" if fell else ""
    return [Verdict("choice", text, warning=preferred.key != "usl")]


def _includes_zero(parameter: Parameter) -> bool:
    return parameter.at_bound or parameter.low is None or parameter.low <= 0


def decline(fit: Fit) -> str | None:
    """Why no decline was measured; None where one was."""
    levels = {n: float(np.mean(x)) for n, x in _levels(fit).items()}
    top, last = max(levels, key=lambda n: levels[n]), max(levels)
    if top == last:
        return f"no decline was measured: throughput is still largest at N = {last:g}"
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
        return None, Verdict("peak", "σ and κ are 0: throughput grows with N, no limit can be seen")
    if math.isinf(peak) and kappa.value < 0:
        return None, Verdict("peak", "κ is negative: the fitted curve rises ever faster, nothing does", True)
    if math.isinf(peak):
        return None, Verdict("peak", "κ = 0: the fitted curve has no peak, it only levels off")
    if peak <= 1:
        return None, Verdict(
            "peak", "the fitted curve falls from N = 1 on: nothing is won by concurrency", True
        )
    against = []
    if largest < peak:
        against.append(f"it lies beyond the largest N measured ({largest:g})")
    if _includes_zero(kappa):
        against.append("κ's interval includes 0")
    if missed:
        against.append(missed)
    if not against:
        text = f"optimum: N_max {peak:.1f} ({math.floor(peak)} connections), X_max {number(usl.x_peak or 0)}"
        return peak, Verdict("peak", text)
    return None, Verdict("peak", f"N_max {peak:.1f} is no optimum: {'; '.join(against)}", warning=True)


def _terms(fit: Fit, *, clear: bool) -> tuple[tuple[str, ...], list[Verdict]]:
    usl = fit.headline
    sigma, kappa = usl.parameter("sigma"), usl.parameter("kappa")
    if usl.r2 is None or usl.r2 < LEAST_R2:
        return (), [
            Verdict("terms", "neither contention nor coherency is named: the curve explains too little")
        ]
    if clear and fit.preferred == "saturating" and not _ties_with_amdahl(fit):
        text = "neither contention nor coherency is named: a curve that has neither fits better"
        return (), [Verdict("terms", text)]
    named, said = [], []
    if _includes_zero(sigma):
        said.append(Verdict("contention", "contention is not named: σ's interval includes 0"))
    else:
        named.append("contention")
        said.append(Verdict("contention", f"contention is named: σ {_interval(sigma)} excludes 0"))
    knee = curves.knee(sigma.value, kappa.value)
    beyond = sum(n > knee for n in _levels(fit))
    if _includes_zero(kappa):
        said.append(Verdict("coherency", "coherency is not named: κ's interval includes 0"))
    elif clear:
        said.append(Verdict("coherency", "coherency is not named: a curve without it fits better"))
    elif beyond < BEYOND_KNEE:
        points = f"{beyond} N lie{'s' if beyond == 1 else ''}"
        text = f"coherency is not named: {points} beyond the knee at {knee:.1f}, {BEYOND_KNEE} are asked"
        said.append(Verdict("coherency", text))
    else:
        named.append("coherency")
        text = f"coherency is named: κ {_interval(kappa)} excludes 0, {beyond} N beyond the knee ({knee:.1f})"
        said.append(Verdict("coherency", text))
    return tuple(named), said


def _ties_with_amdahl(fit: Fit) -> bool:
    """Whether saturation, which has no term, is no better than Amdahl's law, which has contention."""
    amdahl, saturation = fit.model("amdahl").aicc, fit.model("saturating").aicc
    return amdahl is not None and saturation is not None and amdahl - saturation <= CLEARLY


def _interval(parameter: Parameter) -> str:
    return f"{parameter.value:.3g} [{parameter.low:.2g}, {parameter.high:.2g}]"


def _bounds(fit: Fit) -> list[Verdict]:
    why = {
        "sigma": "σ is held at its bound 0: throughput grows faster than N at first",
        "kappa": "κ is held at its bound 0: unbounded it would be negative, a curve that rises ever faster",
    }
    return [
        Verdict("bound", why[parameter.name], warning=True)
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
                f"the curve explains {share} of the spread of throughput: read no law out of it",
                True,
            )
        )
    if fit.lack_of_fit is not None and fit.lack_of_fit.p < 0.05:
        text = (
            "lack of fit: the points miss the curve by more than their repeats differ "
            f"(F {fit.lack_of_fit.f:.3g}, p {fit.lack_of_fit.p:.2g}), so that its intervals are too narrow"
        )
        out.append(Verdict("lack of fit", text, warning=True))
    return out


def _points(fit: Fit) -> list[Verdict]:
    out = []
    off = max(fit.points, key=lambda point: abs(point.residual or 0.0))
    if off.residual is not None and abs(off.residual) > OFF:
        side = "above" if off.residual > 0 else "below"
        text = f"at N = {off.n:g} the fit lies {100 * abs(off.residual):.1f} % {side} what was measured"
        out.append(Verdict("residual", text, warning=True))
    odd = next((point for point in fit.points if point.stands_out), None)
    if odd is not None and odd.deleted_t is not None:
        text = (
            f"N = {odd.n:g} stands out, {abs(odd.deleted_t):.1f} standard errors from the fit of the others"
        )
        if odd.reached_at is not None:
            text += f", which reaches its throughput at N = {numbers.ratio(odd.reached_at)}"
        out.append(Verdict("stands out", text))
    return out


def _extrapolated(fit: Fit) -> list[Verdict]:
    largest = fit.largest
    asked = next((model.predictions for model in fit.models if model.predictions), ())
    far = [each.n for each in asked if each.n > BEYOND * largest]
    if not far:
        return []
    told = ", ".join(f"N = {n:g} ({n / largest:.3g} ×)" for n in far)
    text = f"extrapolation, beyond twice the largest N measured ({largest:g}): {told}"
    if fit.hindcast is not None:
        back = fit.hindcast
        text += (
            f"; fitted to N ≤ {back.up_to:g} alone USL misses what was measured at {back.at:g} by "
            f"{numbers.points(100 * back.error)} %"
        )
    return [Verdict("extrapolation", text, warning=True)]
