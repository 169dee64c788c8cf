"""Loops that other tools would run, each returning how many rounds or steps it made.

`plain_bandit` is the collector `saver` on the bandit in plain NumPy, as one would write it for a paper.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable

import numpy as np

from saver import Scenario
from saver.kernels.bounds.boundaries import best_rho
from saver.problem.bellman import weights

ROUNDS = 2000


def plain_bandit(scenario: Scenario, episodes: int) -> int:
    problem, world = scenario.problem, scenario.world
    rng = np.random.default_rng(0)
    mean, cmean = world.reward.mean[0], world.constraint.mean[0]
    sd, csd = np.sqrt(world.reward.variance[0]), np.sqrt(world.constraint.variance[0])
    c = weights(problem.mdp, problem.target)[0]
    A, base = len(c), int(np.argmax(problem.baseline[0]))
    n, level = float(episodes), 0.9 * problem.delta
    width = math.sqrt(math.log(A * n * (n + 1)))
    proxy = problem.rails[0].promise.scale ** 2
    rho = best_rho(proxy * episodes / 2, level)
    count, average, squares = np.zeros(A), np.zeros(A), np.zeros(A)
    explored_each, designed_each = np.zeros(A), np.zeros(A)
    explored, designed, exact, total, bound = 0, 0, 0, 0.0, 0.0
    explorations, next_plan, b = math.isqrt(episodes), 1, np.ones(A) / A
    for k in range(1, episodes + 1):
        exploring = explored < explorations
        if exploring:
            a = int(np.argmin(explored_each))
        else:
            if k >= next_plan:
                spread = np.sqrt(squares / np.maximum(count - 1, 1)) + width / np.sqrt(np.maximum(count, 1))
                b = c * spread / np.sum(c * spread)
                next_plan = max(k + 1, math.ceil(1.05 * k))
            with np.errstate(divide="ignore"):
                score = np.where((c > 0) & (count < (1 if 2 * k <= n else 2)), np.inf, b / designed_each)
            a = int(np.argmax(score))
        safe = exact * problem.rails[0].credit + bound - (designed + 1) * problem.required
        play = a == base or safe >= -1e-12
        a = a if play else base
        r = mean[a] + sd[a] * rng.standard_normal()
        cost = cmean[a] + csd[a] * rng.standard_normal()
        count[a] += 1
        before = r - average[a]
        average[a] += before / count[a]
        squares[a] += before * (r - average[a])
        if play:
            explored += exploring
            (explored_each if exploring else designed_each)[a] += 1
        if a == base:
            exact += 1
        else:
            designed += 1
            total += cost
            v = proxy * designed + rho
            bound = max(total - math.sqrt(2 * v * math.log(math.sqrt(v / rho) / (2 * level) + 1)), bound)
    return episodes


def mabwiser_bandit(scenario: Scenario) -> int:
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(scenario.world.mdp.actions))
    mean, sd = scenario.world.reward.mean[0], np.sqrt(scenario.world.reward.variance[0])
    rng = np.random.default_rng(0)
    mab = MAB(arms, LearningPolicy.UCB1(alpha=1.0))
    mab.fit(arms, [float(mean[a]) for a in arms])
    for _ in range(ROUNDS):
        a = mab.predict()
        mab.partial_fit([a], [mean[a] + sd[a] * rng.standard_normal()])
    return ROUNDS


def gymnasium_grid() -> int:
    import gymnasium

    world = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True).unwrapped
    world.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        _, _, over, cut, _ = world.step(int(rng.integers(4)))
        if over or cut:
            world.reset()
    return ROUNDS


def installed(scenario: Scenario) -> dict[str, Callable[[], int]]:
    """The peers' loops by name, those that are installed."""
    loops: dict[str, tuple[str, Callable[[], int]]] = {
        "MABWiser, UCB1": ("mabwiser", lambda: mabwiser_bandit(scenario)),
        "Gymnasium FrozenLake": ("gymnasium", gymnasium_grid),
    }
    return {name: call for name, (module, call) in loops.items() if importlib.util.find_spec(module)}
