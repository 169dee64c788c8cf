"""The plain-language part: is safety free, affordable or hopeless here, and what to change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saver.collect import Precise
from saver.design.exact import ExactDesign
from saver.estimate.interval import DECLARE, LEVEL
from saver.problem.guardrail import Rail
from saver.theory.believed import CLOSE, Delivery
from saver.theory.hardness import Undefined
from saver.theory.prediction import Forecast, Way
from saver.theory.spending import MANY

FREE = 1.05  # what safety may cost at the budget, the certificate included, where its price is 1
HOPELESS = 10.0  # a price at the budget from which the question counts as unanswerable
NOTABLE = 0.05  # share of the error that is worth naming
ROUGH = 1e-3  # a gap from which a price is called rough
WORTH_SAYING = 0.01  # per cent of the error for a per cent of what may be given up
LARGE = 0.1  # share of a budget that the certificate should not take


@dataclass(frozen=True)
class Verdict:
    """What is said in words."""

    word: str  # free, affordable or hopeless
    because: str
    remedies: tuple[str, ...]  # what to change
    feedback: str = ""  # what lost and late feedback costs; empty where everything comes back at once
    interval: str = ""  # what will be reported at this budget by the best safe way
    until: str = ""  # when that is as precise as is wanted


def judge(
    forecast: Forecast, ways: dict[str, Way], at_once: dict[str, Way], free: ExactDesign,
    safe: ExactDesign | Undefined, stderr: float | None, until: Precise | None,
) -> Verdict:  # fmt: skip
    """The verdict at this budget, by the safe way with the smallest error; the exact one if none has any.

    Safety is held against the same losses without it: there only the data are missing.
    """
    if isinstance(safe, Undefined):
        wrong = "the constraint means, baseline_value or alpha: one is wrong"
        return Verdict("hopeless", safe.because, (wrong,))
    known = {n: way.at_budget for n, way in ways.items() if way.safe and isinstance(way.at_budget, float)}
    name = min(known, key=lambda name: known[name], default="exact")
    best, K, feedback = ways[name], forecast.episodes, forecast.feedback
    toll, interval = _toll(name, best, at_once[name], feedback), _reported(name, best)
    said = toll, interval, "" if until is None else _stops(name, best, forecast, until)
    limit = ways["unconstrained"].limit
    cheaper = _cheaper(forecast, ways["unconstrained"].constraint_value, safe)
    budget = _budget(K, stderr, best)
    assert isinstance(limit, float)
    without_safety = limit / feedback.told
    if isinstance(best.at_budget, Undefined):
        text = f"there is no estimate at this budget: {best.at_budget.because}"
        return Verdict("hopeless", text, budget + cheaper, *said)
    if stderr is not None and best.at_budget > K * stderr**2 * (1.0 + CLOSE):
        reached, without = (best.at_budget / K) ** 0.5, (without_safety / K) ** 0.5
        text = f"a standard error of {stderr:.3g} is out of reach of {K} episodes: {reached:.3g} ({name})"
        if without > stderr:
            return Verdict("hopeless", f"{text}, and {without:.3g} without safety", budget, *said)
        return Verdict("hopeless", text, budget + cheaper, *said)
    factor = max(1.0, best.at_budget / without_safety) if limit > 0 else 1.0
    text = f"safety multiplies the error by {factor:.3g} at this budget, by {safe.price:.4g} in the long run"
    if max(free.gap, safe.gap) > ROUGH:
        low, high = max(1.0, safe.price / (1.0 + safe.gap)), safe.price * (1.0 + free.gap)
        text += f" (by something from {low:.4g} to {high:.4g}: the exact design was stopped early)"
    if safe.price == 1.0 and factor <= FREE:
        return Verdict("free", text, (), *said)
    word = "hopeless" if factor > HOPELESS and stderr is None else "affordable"
    return Verdict(word, text, cheaper + _budget(K, stderr, best, feedback.hidden > 0.0), *said)


def _toll(name: str, found: Way, at_once: Way, feedback: Delivery) -> str:
    """What lost and late feedback costs."""
    if feedback.complete:
        return ""
    before, after = at_once.at_budget, found.at_budget
    if isinstance(after, Undefined) or isinstance(before, Undefined):
        return f"feedback, {feedback}: what that costs is not known, because there is no estimate"
    factor = after / before if before > 0.0 else 1.0
    alone = f", {1.0 / feedback.told:.3g} of it by lost data alone" if feedback.lost else ""
    return (
        f"feedback, {feedback}: that multiplies the error by {factor:.3g} ({name}){alone}, and takes "
        f"{found.certificate:,} baseline episodes instead of {at_once.certificate:,}"
    )


def _reported(name: str, way: Way) -> str:
    """What interval will be reported."""
    unseen = "because nothing is promised about rewards and a pair that the target needs stays unseen"
    if not way.bounded:
        return f"the interval will be unbounded ({name}), {unseen}"
    always = f"{way.anytime_half_width:.3g}" if math.isfinite(way.anytime_half_width) else "without bounds"
    some = "" if way.bounded == 1.0 else f"; in {1.0 - way.bounded:.0%} of campaigns unbounded, {unseen}"
    return (
        f"the interval at level .95 will be about {way.half_width:.3g} to either side at one time, "
        f"{always} at all times ({name}){some}"
    )


def _stops(name: str, way: Way, forecast: Forecast, until: Precise) -> str:
    """When it will be as precise as is wanted; a warning if that is not within the budget."""
    if not forecast.promised:
        return (
            f"warning: a campaign will refuse {until}, because nothing is declared about rewards: {DECLARE}"
        )
    # the boundary is about sqrt(log(2 / miss)), relative to that of LEVEL
    half = way.anytime_half_width * math.sqrt(math.log(2 / (1 - until.level)) / math.log(2 / (1 - LEVEL)))
    if not math.isfinite(half):
        return f"warning: {until} is out of reach: the interval will be unbounded ({name})"
    K = forecast.episodes
    needed = math.ceil(K * (half / until.half_width) ** 2)
    if needed > K:
        return (
            f"warning: {until} is out of reach: {K:,} episodes give about {half:.3g} ({name}), and "
            f"about {needed:,} would be needed"
        )
    return f"{until} will be reached after about {needed:,} of {K:,} episodes ({name})"


def costs_of(rails: tuple[Rail, ...], safe: ExactDesign) -> dict[str, float]:
    """By how many per cent one per cent more of what may be given up lowers the limit."""
    if safe.price == 1.0 or safe.limit == 0.0:
        return {rail.name: 0.0 for rail in rails}
    return {rail.name: safe.multipliers[rail.name] * rail.credit / safe.limit for rail in rails}


def _cheaper(forecast: Forecast, earned: float, safe: ExactDesign) -> tuple[str, ...]:
    """What would lower the price: what may be given up, the baseline, the target."""
    rails, mdp, found = forecast.rails, forecast.problem.mdp, []
    rail, costs = rails[0], costs_of(rails, safe)
    if safe.price == 1.0 or (len(rails) == 1 and earned >= rail.required):
        return ()
    if len(rails) > 1 or rail.value <= 0.0:
        found += [
            f"{rail.name}: a tenth more of what may be given up ({rail.credit / 10:.3g} an episode) "
            f"lowers the error by about {10 * costs[rail.name]:.2g} % in the long run"
            for rail in sorted(rails, key=lambda rail: -costs[rail.name])
            if costs[rail.name] >= WORTH_SAYING
        ]
    else:
        nothing = "safety costs nothing in the long run"
        enough = math.ceil(1000 * (1.0 - earned / rail.value)) / 1000
        if rail.alpha < enough <= 1.0:
            found.append(f"alpha: from {enough:g} on (now {rail.alpha:g}) {nothing}")
        if rail.alpha < 1.0 and earned > 0:
            most = earned / (1.0 - rail.alpha)
            found.append(f"the baseline: with one that earns at most {most:.3g} {nothing}")
    N = safe.occupancy.sum(axis=0)
    parts = np.divide(forecast.cost, N, out=np.zeros_like(N), where=N > 0)
    if parts.max() > NOTABLE * parts.sum():
        s, a = divmod(int(np.argmax(parts)), mdp.actions)
        where = "" if mdp.states == 1 else f" in {mdp.state_label(s)}"
        found.append(
            f"the target: {100 * parts[s, a] / parts.sum():.0f} % of the error comes from "
            f"{mdp.action_label(a)}{where}; one that takes it less often is known sooner"
        )
    return tuple(found)


def _budget(episodes: int, stderr: float | None, best: Way, hidden: bool = False) -> tuple[str, ...]:
    """What a larger one would do."""
    if stderr is not None:
        if isinstance(best.episodes, Undefined):
            return (f"the standard error asked for: {best.episodes.because}",)
        reaches = f"the budget: {best.episodes:,.0f} episodes reach a standard error of {stderr:.3g}"
        return (reaches,) if best.episodes > episodes else ()
    if best.certificate > LARGE * episodes and 10 * episodes <= MANY:
        share = 100 * best.certificate / episodes
        what, more = ("the feedback", "where less is lost") if hidden else ("the budget", "of more")
        return (f"{what}: the certificate takes {share:.0f} % of {episodes} episodes, and less {more}",)
    return ("the budget: more episodes",) if isinstance(best.at_budget, Undefined) else ()
