"""The plain-language part: is safety free, affordable or hopeless here, and what to change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saver._types import Floats
from saver.collect.stopping import Precise
from saver.design.closed import going_on
from saver.design.exact import ExactDesign
from saver.estimate.interval import DECLARE, LEVEL
from saver.problem.bellman import value
from saver.problem.guardrail import Rail, negated
from saver.problem.world import Scenario
from saver.theory.delivery import AT_ONCE, Delivery
from saver.theory.nodewise import Undefined
from saver.theory.prediction import Way
from saver.theory.promises import CLOSE, unkept
from saver.theory.spending import MANY

FREE = 1.05  # what safety may cost at the budget, the certificate included, where its price is 1
HOPELESS = 10.0  # a price at the budget from which the question counts as unanswerable
NOTABLE = 0.05  # share of the error that is worth naming
ROUGH = 1e-3  # a gap from which a price is called rough
WORTH_SAYING = 0.01  # per cent of the error for a per cent of what may be given up
LARGE = 0.1  # share of a budget that the certificate should not take


@dataclass(frozen=True)
class Verdict:
    """`word` is "free", "affordable" or "hopeless"; `because` says why, `remedies` what to change.

    `feedback` says what lost and late feedback costs; it is empty where everything comes back at once.
    `interval` says what will be reported at this budget by the best safe way, `until` when that is as precise
    as is wanted.
    """

    word: str
    because: str
    remedies: tuple[str, ...]
    feedback: str = ""
    interval: str = ""
    until: str = ""


def judge(
    scenario: Scenario,
    episodes: int,
    stderr: float | None,
    ways: dict[str, Way],
    pair: tuple[ExactDesign, ExactDesign],
    cost: Floats,
    feedback: Delivery = AT_ONCE,
) -> Verdict:
    """The verdict at this budget; `cost` is c^2 variance, `stderr` the standard error that was asked for.

    Safety is held against the same losses without it: there only the data are missing.
    """
    name, best = _best(ways)
    free = ways["unconstrained"]
    assert isinstance(free.limit, float)
    without_safety = free.limit / feedback.told
    if isinstance(best.at_budget, Undefined):
        text = f"there is no estimate at this budget: {best.at_budget.because}"
        return Verdict(
            "hopeless", text, (*_budget(episodes, stderr, best), *_cheaper(scenario, free, pair, cost))
        )
    if stderr is not None and best.at_budget > episodes * stderr**2 * (1.0 + CLOSE):
        reached = (best.at_budget / episodes) ** 0.5
        text = (
            f"a standard error of {stderr:.3g} is out of reach of {episodes} episodes: {reached:.3g} ({name})"
        )
        without = (without_safety / episodes) ** 0.5
        if without > stderr:
            text += f", and {without:.3g} without safety"
            return Verdict("hopeless", text, tuple(_budget(episodes, stderr, best)))
        remedies = (*_budget(episodes, stderr, best), *_cheaper(scenario, free, pair, cost))
        return Verdict("hopeless", text, remedies)
    factor = max(1.0, best.at_budget / without_safety) if free.limit > 0 else 1.0
    text = (
        f"safety multiplies the error by {factor:.3g} at this budget, by {pair[1].price:.4g} in the long run"
    )
    if max(pair[0].gap, pair[1].gap) > ROUGH:
        low, high = max(1.0, pair[1].price / (1.0 + pair[1].gap)), pair[1].price * (1.0 + pair[0].gap)
        text += f" (by something from {low:.4g} to {high:.4g}: the exact design was stopped early)"
    remedies = (*_cheaper(scenario, free, pair, cost), *_budget(episodes, stderr, best, feedback))
    if factor > HOPELESS and stderr is None:
        return Verdict("hopeless", text, remedies)
    if pair[1].price == 1.0 and factor <= FREE:
        return Verdict("free", text, ())
    return Verdict("affordable", text, remedies)


def toll(ways: dict[str, Way], at_once: dict[str, Way], feedback: Delivery) -> str:
    """What lost and late feedback costs the best safe way."""
    if feedback.complete:
        return ""
    name, found = _best(ways)
    before, after = at_once[name].at_budget, found.at_budget
    if isinstance(after, Undefined) or isinstance(before, Undefined):
        return f"feedback, {feedback}: what that costs is not known, because there is no estimate"
    factor = after / before if before > 0.0 else 1.0
    alone = f", {1.0 / feedback.told:.3g} of it by lost data alone" if feedback.lost else ""
    return (
        f"feedback, {feedback}: that multiplies the error by {factor:.3g} ({name}){alone}, and takes "
        f"{found.certificate:,} baseline episodes instead of {at_once[name].certificate:,}"
    )


def reported(ways: dict[str, Way]) -> str:
    """What interval the best safe way will report."""
    name, way = _best(ways)
    unseen = "because nothing is promised about rewards and a pair that the target needs stays unseen"
    if not way.bounded:
        return f"the interval will be unbounded ({name}), {unseen}"
    always = f"{way.anytime_half_width:.3g}" if math.isfinite(way.anytime_half_width) else "without bounds"
    text = (
        f"the interval at level .95 will be about {way.half_width:.3g} to either side at one time, "
        f"{always} at all times ({name})"
    )
    return (
        text if way.bounded == 1.0 else f"{text}; in {1.0 - way.bounded:.0%} of campaigns unbounded, {unseen}"
    )


def stops(ways: dict[str, Way], episodes: int, until: Precise, promised: bool = True) -> str:
    """When the best safe way will be as precise as is wanted; a warning if that is not within the budget."""
    if not promised:
        return (
            f"warning: a campaign will refuse {until}, because nothing is declared about rewards: {DECLARE}"
        )
    name, way = _best(ways)
    # the boundary is about sqrt(log(2 / miss)), relative to that of LEVEL
    half = way.anytime_half_width * math.sqrt(math.log(2 / (1 - until.level)) / math.log(2 / (1 - LEVEL)))
    if not math.isfinite(half):
        return f"warning: {until} is out of reach: the interval will be unbounded ({name})"
    needed = math.ceil(episodes * (half / until.half_width) ** 2)
    if needed > episodes:
        return (
            f"warning: {until} is out of reach: {episodes:,} episodes give about {half:.3g} ({name}), and "
            f"about {needed:,} would be needed"
        )
    return f"{until} will be reached after about {needed:,} of {episodes:,} episodes ({name})"


def _best(ways: dict[str, Way]) -> tuple[str, Way]:
    """The safe way with the smallest error at the budget, the exact one if none has any."""
    known = {name: way for name, way in ways.items() if way.safe and not isinstance(way.at_budget, Undefined)}
    name = min(known, key=lambda name: known[name].at_budget, default="exact")  # type: ignore[return-value,arg-type]
    return name, ways[name]


def costs_of(scenario: Scenario, safe: ExactDesign) -> dict[str, float]:
    """By how many per cent one per cent more of what may be given up lowers the limit."""
    if safe.price == 1.0 or safe.limit == 0.0:
        return {rail.name: 0.0 for rail in scenario.rails}
    return {rail.name: safe.multipliers[rail.name] * rail.credit / safe.limit for rail in scenario.rails}


def _allowances(scenario: Scenario, safe: ExactDesign) -> list[str]:
    """Which of several guardrails to loosen."""
    costs, found = costs_of(scenario, safe), []
    for rail in sorted(scenario.rails, key=lambda rail: -costs[rail.name]):
        if costs[rail.name] >= WORTH_SAYING:
            found.append(
                f"{rail.name}: a tenth more of what may be given up ({rail.credit / 10:.3g} an episode) "
                f"lowers the error by about {10 * costs[rail.name]:.2g} % in the long run"
            )
    return found


def _cheaper(scenario: Scenario, free: Way, pair: tuple[ExactDesign, ExactDesign], cost: Floats) -> list[str]:
    """What would lower the price: what may be given up, the baseline, the target."""
    mdp, earned, safe, found = scenario.problem.mdp, free.constraint_value, pair[1], []
    rail = scenario.rails[0]
    if safe.price == 1.0 or (len(scenario.rails) == 1 and earned >= rail.required):
        return []
    if len(scenario.rails) > 1 or rail.value <= 0.0:
        found += _allowances(scenario, safe)
    else:
        nothing = "safety costs nothing in the long run"
        enough = math.ceil(1000 * (1.0 - earned / rail.value)) / 1000
        if rail.alpha < enough <= 1.0:
            found.append(f"alpha: from {enough:g} on (now {rail.alpha:g}) {nothing}")
        if rail.alpha < 1.0 and earned > 0:
            most = earned / (1.0 - rail.alpha)
            found.append(f"the baseline: with one that earns at most {most:.3g} {nothing}")
    N = safe.occupancy.sum(axis=0)
    parts = np.divide(cost, N, out=np.zeros_like(N), where=N > 0)
    if parts.max() > NOTABLE * parts.sum():
        s, a = (int(i) for i in np.unravel_index(np.argmax(parts), parts.shape))
        where = "" if mdp.states == 1 else f" in {mdp.state_label(s)}"
        found.append(
            f"the target: {100 * parts[s, a] / parts.sum():.0f} % of the error comes from "
            f"{mdp.action_label(a)}{where}; one that takes it less often is known sooner"
        )
    return found


def _budget(episodes: int, stderr: float | None, best: Way, feedback: Delivery = AT_ONCE) -> list[str]:
    """What a larger one would do."""
    if stderr is not None:
        if isinstance(best.episodes, Undefined):
            return [f"the standard error asked for: {best.episodes.because}"]
        if best.episodes > episodes:
            return [f"the budget: {best.episodes:,.0f} episodes reach a standard error of {stderr:.3g}"]
        return []
    if best.certificate > LARGE * episodes and 10 * episodes <= MANY:
        share = 100 * best.certificate / episodes
        takes = f"the certificate takes {share:.0f} % of {episodes} episodes"
        what, more = ("the feedback", "where less is lost") if feedback.hidden else ("the budget", "of more")
        return [f"{what}: {takes}, and less {more}"]
    if isinstance(best.at_budget, Undefined):
        return ["the budget: more episodes"]
    return []


def unattainable(cause: Undefined) -> Verdict:
    """The verdict where no behaviour is safe."""
    return Verdict(
        "hopeless", cause.because, ("the constraint means, baseline_value or alpha: one is wrong",)
    )


def _about_value(rail: Rail, true: float) -> list[str]:
    """Where a baseline value is not what the baseline earns; what it costs not to know it."""
    if rail.learned:
        return [f"the baseline value of {rail.name} is learned; what is predicted here takes it as known"]
    slack = CLOSE * max(abs(true), abs(rail.low), abs(rail.high))
    if rail.low - slack <= true <= rail.high + slack:
        return []
    end = rail.low if true < rail.low else rail.high
    return [
        f"baseline_value is {rail.sign * end:.6g}, but in this world the baseline earns "
        f"{rail.sign * true:.6g}: "
        + (
            "every baseline episode is credited too much, and the promise is void"
            if true < end
            else "the promise is about the smaller number and void for what the baseline earns"
        )
    ]


def remarks(scenario: Scenario) -> tuple[str, ...]:
    """Where the problem's promises do not fit its world, and what cannot be met."""
    problem, world = scenario.problem, scenario.world
    mdp, found = problem.mdp, []
    for rail, law, mean in zip(problem.rails, scenario.laws, scenario.means, strict=True):
        found += _about_value(rail, value(world.mdp, problem.baseline, mean))
        told = negated(rail.promise) if rail.sign < 0.0 else rail.promise
        found += [f"{text}: the promise is void" for text in unkept(rail.name, law, told, mdp)]
    if problem.reward is not None:
        notes = unkept("reward", world.reward, problem.reward, mdp)
        found += [f"{text}: intervals that rest on it are void" for text in notes]
    if abs(world.mdp.transitions - mdp.transitions).max() > 0 or np.any(world.mdp.start != mdp.start):
        found.append("the world's transitions or start differ from the problem's model: the promise is void")
    if len(lost := np.setdiff1d(going_on(mdp), np.flatnonzero(mdp.reachable))):
        names = ", ".join(mdp.state_label(int(s)) for s in lost[:3]) + (", ..." if len(lost) > 3 else "")
        found.append(
            f"M(s) and H*(2)(s) are not defined in {len(lost)} of {mdp.states} states, because no behaviour "
            f"gets there within the horizon: {names}"
        )
    return tuple(found)
