"""(setup, state) -> what was found out: values, differences, verdicts, where the uncertainty is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.collect.setup import Setup, book_of
from saver.collect.state import KINDS, State, believed, budgets, relative
from saver.errors import InvalidProblem
from saver.estimate import Estimate
from saver.estimate.asymptotic import heavy, in_the_limit
from saver.estimate.certainty import noise_of, unknown_parts, weighted
from saver.estimate.log import estimate, seen_moves
from saver.kernels.bounds.spread import Declared
from saver.problem import checks
from saver.problem.bellman import DIFFERENCE, difference, weights
from saver.problem.statement import Problem

BETTER, WORSE, UNKNOWN = "better", "worse", "not yet known"


class Wanted(NamedTuple):
    """A value, or a difference; `name`: of the target of which the problem asks just that."""

    policy: Floats
    against: Floats | None
    name: str | None


def wanted(problem: Problem, of: Any, against: Any) -> Wanted:
    """What `estimate(of, against=...)` is about."""
    targets = problem.targets
    if of is None:
        if len(targets) > 1:
            raise InvalidProblem(
                f"of is not given, and the problem has {len(targets)} targets: give of=, one of "
                f"{', '.join(targets)}, or a policy"
            )
        (of,) = targets
        against = problem.against if against is None else against
    policy = problem.policy(of)
    other = None if against is None else problem.policy(against, "against")
    named = isinstance(of, str) and of in targets
    own = other is problem.baseline if problem.estimand == DIFFERENCE else other is None
    return Wanted(policy, other, of if named and own else None)


def estimate_of(
    setup: Setup, state: State, asked: Wanted, level: float, anytime: bool, fair: bool
) -> Estimate:
    """The estimate, with the interval of the kind that is asked for."""
    problem, sums, kind = setup.problem, state.sums, setup.collector.estimate
    checks.flag("anytime", anytime)
    checks.flag("fair", fair)
    if kind == "importance" and asked.name is None:
        raise InvalidProblem(
            "the collector's estimate is 'importance', and episodes are weighted for its target alone: leave "
            "out of= and against=, or use a collector with estimate='certainty'"
        )
    if fair:
        return _fair(setup, state, asked, level, anytime)
    if kind == "certainty" and problem.mdp.known:
        found = weighted(problem.mdp, _weights(problem, asked), sums.rewards, level, problem.reward)
    else:
        found = estimate(problem.mdp, asked.policy, sums, kind, level, problem.reward, asked.against)
    if not anytime:
        return found
    if not setup.anytime and kind == "importance":
        return heavy(found)
    if not setup.anytime:
        return in_the_limit(found, sums.episodes, setup.episodes, level, problem.reward is not None)
    c = _weights(problem, asked)
    name = asked.name or _nearest(setup, c)
    return found.always(*setup.anytime[name].interval(state.books[book_of(name)], level, c))


def _fair(setup: Setup, state: State, asked: Wanted, level: float, anytime: bool) -> Estimate:
    kind = setup.collector.estimate
    if not setup.problem.mdp.known:
        raise InvalidProblem(
            "a fair estimate is kept only where transitions are known, and the model is a saver.Unknown; "
            "leave out fair=True"
        )
    if asked.name is None or asked.name not in setup.anytime or anytime or kind != "certainty":
        raise InvalidProblem(
            "a fair estimate is kept of what the problem asks, where it promises something about rewards, "
            "for one look, by estimate='certainty'; state Problem(reward=...) and ask for a target of it"
        )
    return setup.anytime[asked.name].fair(state.books[book_of(asked.name)], state.sums.rewards, level)


def _weights(problem: Problem, asked: Wanted) -> Floats:
    if asked.name is not None:
        return problem.question.weights[asked.name]
    if asked.against is None:
        return weights(problem.mdp, asked.policy)
    return difference(problem.mdp, asked.policy, asked.against)


def _nearest(setup: Setup, c: Floats) -> str:
    """The target whose weights are most like these: those of pairs are then nearest to what is asked."""
    asked = setup.problem.question.weights
    return min(asked, key=lambda name: float(np.abs(asked[name] - c).sum()))


# -- is it better --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """How a target compares with the baseline.

    Attributes:
        difference: the estimate of what the target is worth more.
        interval: its interval.
        verdict: "better", "worse", or "not yet known".
        more: about how many episodes more would tell, if they are like those so far and the difference is
            what it seems; None where it is known, or nothing can be said.
    """

    difference: Estimate
    interval: tuple[float, float]
    verdict: str
    more: int | None = None

    def __str__(self) -> str:
        low, high = self.interval
        told = (
            f"{self.verdict}: {self.difference.value:.4g} in [{low:.4g}, {high:.4g}], {self.difference.holds}"
        )
        if self.verdict != UNKNOWN:
            return told
        if self.more is None:
            return f"{told}; no number of episodes can be given yet"
        return f"{told}; about {self.more:,} episodes more would tell at this rate"


def comparison(found: Estimate, episodes: int) -> Comparison:
    """The verdict on a difference, after so many told episodes."""
    low, high = found.interval
    if low > 0.0 or high < 0.0:
        return Comparison(found, found.interval, BETTER if low > 0.0 else WORSE)
    reach = found.value - low if found.value > 0.0 else high - found.value
    if found.value == 0.0 or not math.isfinite(reach) or not episodes:
        return Comparison(found, found.interval, UNKNOWN)
    more = episodes * ((reach / found.value) ** 2 - 1.0)
    return Comparison(found, found.interval, UNKNOWN, max(1, math.ceil(more)) if more < 1e15 else None)


# -- may I stop ----------------------------------------------------------------------------------------------


def half_width(setup: Setup, state: State) -> float:
    """Of the widest interval that `until` looks at."""
    assert setup.until is not None
    problem, level = setup.problem, setup.until.level
    ends = [
        estimate_of(setup, state, asked, level, anytime=True, fair=False).interval
        for asked in (wanted(problem, name, problem.against) for name in problem.targets)
    ]
    return max((high - low) / 2 for low, high in ends)


# -- where is the uncertainty --------------------------------------------------------------------------------


class Uncertain(NamedTuple):
    """A pair, by what it adds to the variance of the answer.

    Attributes:
        state, action: the pair, and `name` in words.
        share: of the variance that is left; of pairs never seen and of which nothing is declared, which have
            no bound, all of it, in equal parts.
        samples: of its reward so far.
        planned: visits to come, if the rest of the campaign goes by the present design.
    """

    state: int
    action: int
    name: str
    share: float
    samples: int
    planned: float


def uncertainty(setup: Setup, state: State, asked: Wanted) -> list[Uncertain]:
    """Every pair that has weight, the largest share first."""
    mdp, rewards = setup.problem.mdp, state.sums.rewards
    c, parts = _parts(setup, state, asked)
    if np.isinf(parts).any():
        parts = np.isinf(parts).astype(np.float64)
    shares, planned = parts / max(float(parts.sum()), 1e-300), _planned(setup, state)
    rows = []
    for s, a in np.argwhere(c != 0.0).tolist():
        name = f"{mdp.action_label(a)} in {mdp.state_label(s)}"
        numbers = float(shares[s, a]), int(rewards.counts[s, a]), float(planned[s, a])
        rows.append(Uncertain(s, a, name, *numbers))
    return sorted(rows, key=lambda row: -row.share)


def _parts(setup: Setup, state: State, asked: Wanted) -> tuple[Floats, Floats]:
    """The weights, and what each pair adds to the variance; infinite where nothing bounds it, [S, A] each."""
    problem, rewards, mdp = setup.problem, state.sums.rewards, setup.problem.mdp
    if mdp.known:
        c = _weights(problem, asked)
    else:
        moves = seen_moves(mdp, state.sums)
        learned = unknown_parts(mdp, asked.policy, rewards, moves, problem.reward, asked.against)
        c = learned.found.asked
    used = (c != 0.0) & (rewards.counts > 0)
    parts = np.where((c != 0.0) & ~used, math.inf, 0.0)
    if setup.rewards is not None:  # one sample that varies as declared
        parts = np.where(np.isinf(parts), (c * setup.rewards.scale) ** 2, 0.0)
    if mdp.known:
        noise = noise_of(rewards, Declared.of(mdp, problem.reward, rewards), used)[0]
        parts[used] = c[used] ** 2 * noise / rewards.counts[used]
    else:
        parts[used] = learned.parts[:-1].reshape(c.shape)[used]
    return c, parts


def _planned(setup: Setup, state: State) -> Floats:
    """Visits to come by the present design, [S, A]; the target's where there is none yet."""
    grid, follows = setup.stage.grid, state.following
    if setup.problem.mdp.known:
        policy = grid.policy(setup.problem.question.reference) if follows is None else follows.policy
        flow = setup.stage.play(policy).flow
    elif follows is None or follows.plan.reach is None:
        return np.zeros((grid.mdp.states, grid.mdp.actions))
    else:
        flow = follows.plan.reach[:, None] * follows.policy.by_node()
    return max(0, state.left(setup.episodes)) * grid.by_state(flow)


# -- how it went ---------------------------------------------------------------------------------------------

LOOK = ("episodes", "value", "low", "high", "anytime_low", "anytime_high", "budget", *KINDS)
GROWTH = 20  # a look is kept when the told episodes have grown by one part of this many


def look_columns(problem: Problem) -> tuple[str, ...]:
    """Of `look`: those of LOOK, and where there are several guardrails the budget of each over its line."""
    several = len(problem.rails) > 1
    return LOOK + tuple(f"budget of {rail.name}" for rail in problem.rails if several)


def look(setup: Setup, state: State) -> list[float]:
    """The columns of `look_columns`, of the first target."""
    problem = setup.problem
    asked = wanted(problem, next(iter(problem.targets)), problem.against)
    once = estimate_of(setup, state, asked, 0.95, anytime=False, fair=False)
    ever = estimate_of(setup, state, asked, 0.95, anytime=True, fair=False)
    told = state.told
    numbers = (sum(told.values()), once.value, *once.interval, *ever.interval, believed(setup, state))
    each = relative(setup, state, budgets(setup, state)).values() if len(setup.rail_books) > 1 else ()
    return [float(number) for number in (*numbers, *(told[kind] for kind in KINDS), *each)]


def look_due(state: State) -> bool:
    """Whether a look is to be kept."""
    told = sum(state.told.values())
    last = state.looks[-1][0] if state.looks else 0
    return told >= last + max(1, last // GROWTH)
