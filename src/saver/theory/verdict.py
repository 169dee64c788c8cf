"""The plain-language part: is safety free, affordable or hopeless here, and what to change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saver.design.exact import ExactDesign
from saver.problem.checks import Floats
from saver.problem.statement import Problem, Scenario
from saver.theory.parts import Undefined
from saver.theory.prediction import Way

FREE = 1.05  # what safety may cost at the budget, the certificate included, where its price is 1
HOPELESS = 10.0  # a price at the budget from which the question counts as unanswerable
NOTABLE = 0.05  # share of the error that is worth naming
ROUGH = 1e-3  # a gap from which a price is called rough
LARGE = 0.1  # share of a budget that the certificate should not take
CLOSE = 1e-6  # relative, for promises about the world


@dataclass(frozen=True)
class Verdict:
    """`word` is "free", "affordable" or "hopeless"; `because` says why, `remedies` what to change."""

    word: str
    because: str
    remedies: tuple[str, ...]


def judge(
    problem: Problem,
    episodes: int,
    stderr: float | None,
    ways: dict[str, Way],
    safe: ExactDesign,
    cost: Floats,
) -> Verdict:
    """The verdict at this budget; `cost` is c^2 variance, `stderr` the standard error that was asked for."""
    best, free = ways["exact"], ways["unconstrained"].limit
    remedies = (*_cheaper_safety(problem, ways, safe, cost), *_larger_budget(episodes, stderr, best))
    for number in (best.at_budget, free):
        if isinstance(number, Undefined):
            return Verdict("hopeless", f"at this budget there is no estimate: {number.because}", remedies)
    assert isinstance(best.at_budget, float)
    assert isinstance(free, float)
    if stderr is not None and best.at_budget > episodes * stderr**2 * (1.0 + CLOSE):
        reached = (best.at_budget / episodes) ** 0.5
        text = f"the best safe standard error after {episodes} episodes is {reached:.3g}, above {stderr:.3g}"
        return Verdict("hopeless", text, remedies)
    factor = best.at_budget / free if free > 0 else 1.0
    text = f"safety multiplies the error by {factor:.3g} at this budget, by {safe.price:.4g} in the long run"
    if safe.gap > ROUGH:
        text += f" (up to {1 + safe.gap:.3g} times less: the exact design was stopped early)"
    if factor > HOPELESS:
        return Verdict("hopeless", text, remedies)
    if safe.price == 1.0 and factor <= FREE:
        return Verdict("free", text, ())
    return Verdict("affordable", text, remedies)


def _cheaper_safety(problem: Problem, ways: dict[str, Way], safe: ExactDesign, cost: Floats) -> list[str]:
    """What would lower the price: alpha, the baseline, the target."""
    mdp, earned, found = problem.mdp, ways["unconstrained"].constraint_value, []
    if earned >= problem.required:
        return []
    nothing = "safety costs nothing in the long run"
    enough = 1.0 - earned / problem.baseline_value
    if enough <= 1.0:
        found.append(f"alpha: from {enough:.3g} on (now {problem.alpha:g}) {nothing}")
    if problem.alpha < 1.0 and earned > 0:
        most = earned / (1.0 - problem.alpha)
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


def _larger_budget(episodes: int, stderr: float | None, best: Way) -> list[str]:
    found = []
    if best.certificate > LARGE * episodes:
        found.append(
            f"the budget: the certificate takes {100 * best.certificate / episodes:.0f} % of {episodes} "
            "episodes, and a smaller share of more"
        )
    if stderr is not None and not isinstance(best.episodes, Undefined) and best.episodes > episodes:
        found.append(f"the budget: {best.episodes:.0f} episodes reach a standard error of {stderr:.3g}")
    return found


def unattainable(cause: Undefined) -> Verdict:
    """The verdict where no behaviour is safe."""
    return Verdict(
        "hopeless", cause.because, ("the constraint means, baseline_value or alpha: one is wrong",)
    )


def remarks(scenario: Scenario) -> tuple[str, ...]:
    """Where the problem's promises do not fit its world, and what cannot be met."""
    problem, world = scenario.problem, scenario.world
    mdp, promise, found = problem.mdp, problem.constraint, []
    true = world.constraint_value(problem.baseline)
    if abs(true - problem.baseline_value) > CLOSE * max(abs(true), problem.baseline_value):
        found.append(
            f"baseline_value is {problem.baseline_value:.6g}, but in this world the baseline earns "
            f"{true:.6g}: an error that adds up with every baseline episode"
            + (", and the promise is void" if true < problem.baseline_value else "")
        )
    ends = np.isin(np.arange(mdp.states), mdp.terminal)
    met = mdp.available & (mdp.reachable & ~ends)[:, None]
    means, deviations = world.constraint.mean[met], np.sqrt(world.constraint.variance[met])
    slack = CLOSE * max(1.0, abs(promise.floor), abs(promise.ceiling))
    if means.min() < promise.floor - slack or means.max() > promise.ceiling + slack:
        found.append(
            f"constraint means from {means.min():.4g} to {means.max():.4g} leave the promised range "
            f"[{promise.floor:g}, {promise.ceiling:g}]: the promise is void"
        )
    if deviations.max() > promise.scale * (1 + CLOSE):
        found.append(
            f"a constraint observation has standard deviation {deviations.max():.4g}, more than the promised "
            f"noise scale {promise.scale:g}: the promise is void"
        )
    if abs(world.mdp.transitions - mdp.transitions).max() > 0 or np.any(world.mdp.start != mdp.start):
        found.append("the world's transitions or start differ from the problem's model: the promise is void")
    if len(lost := np.flatnonzero(~mdp.reachable & ~ends)):
        names = ", ".join(mdp.state_label(int(s)) for s in lost[:3]) + (", ..." if len(lost) > 3 else "")
        found.append(
            f"M(s) and H*(2)(s) are not defined in {len(lost)} of {mdp.states} states, because no behaviour "
            f"gets there within the horizon: {names}"
        )
    return tuple(found)
