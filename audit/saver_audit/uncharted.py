"""Worlds whose transitions nobody knows: at the edge, hostile ones, and who plays in them.

At the edge a designed episode is worth just less than what is required, and as uncertain as it can be: a
state drawn at the start decides all that it observes, or whether it ends at once. The baseline earns enough
to pay for luck. Whoever believes a little too much of what was earned then breaks the promise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from saver._types import Floats
from saver.collect import Collector, Statistics
from saver.collect.collectors import ONCE
from saver.problem import Bernoulli, Bounded, Gaussian, Guardrail, Mdp, Scenario, SubGaussian
from saver.problem.bellman import value
from saver.problem.guardrail import CONSTRAINT
from saver.scenarios.assembly import always, bandit_model
from saver_audit.hostile import HOSTILE
from saver_audit.making import (
    FORMS,
    WAYS,
    Seen,
    asked,
    changed,
    coins_of,
    guarded,
    normal_of,
    railed,
    spending,
)

DELTAS = (0.05, 0.5)
FAMILY = "unknown"
MODEL_FREE = tuple(f"{FAMILY} {form}" for form in ("random", *FORMS))  # random worlds
EDGE = 0.85  # of what is required
EPISODES, STEPS = 400, 4
SLOWLY = 200  # episodes until a design that moves has moved
SAFE, AT_EDGE, WORST, BEST = range(4)  # actions
ALL = np.array([[1.0, s >= 2, s >= 3, s >= 1] for s in range(4)])  # what they earn in four even states
NOISE = 0.5  # where observations are normal


# -- at the edge ---------------------------------------------------------------------------------------------


def edge(mdp: Mdp, seen: Seen, near: float = EDGE, safe: int = SAFE, episodes: int = EPISODES) -> Scenario:
    """The target is worth `near` times what is required; the baseline takes one action."""
    target, baseline = always(mdp, AT_EDGE), always(mdp, safe)
    alpha = 1.0 - value(mdp, target, seen.law.mean) / (near * value(mdp, baseline, seen.law.mean))
    return asked(mdp, seen, alpha=alpha, episodes=episodes, baseline=baseline, target=target)


def drawn(steps: int = STEPS, discount: float = 1.0, start: Any = (0.25,) * 4) -> Mdp:
    """Four states; an episode stays where it starts."""
    moves = np.broadcast_to(np.eye(4)[:, None], (4, 4, 4))
    return Mdp(moves, horizon=steps, discount=discount, start=start)


def coins(safe: int = SAFE, **options: Any) -> Scenario:
    """All steps of an episode earn 1, or none."""
    return edge(drawn(**options), coins_of(ALL), safe=safe)


def normal(safe: int = SAFE, floor: float = 0.0, **options: Any) -> Scenario:
    """The same, from `floor` to 1, with noise."""
    return edge(drawn(**options), normal_of(floor + (1.0 - floor) * ALL, NOISE**2, floor), safe=safe)


def disasters() -> Scenario:
    """Rarely an episode earns nothing."""
    mdp, seen = drawn(start=(0.02, 0.02, 0.03, 0.93)), coins_of(ALL[:, [SAFE, WORST, AT_EDGE, BEST]])
    return edge(mdp, seen, near=0.97, episodes=2000)


def ends_early(seen: Seen) -> Scenario:
    """A step earns 1; what counts is how many there are.

    The first action goes on, or ends the episode at once; who goes on stays to the end.
    """
    goes, moves = np.array([1.0, 0.5, 0.25, 0.75]), np.zeros((3, 4, 3))
    moves[0, :, 1], moves[0, :, 2] = goes, 1.0 - goes
    moves[1, :, 1] = 1.0
    return edge(Mdp(moves, horizon=STEPS, discount=0.9, terminal=(2,)), seen)


def one_way() -> Scenario:
    """One step of noise, and nothing else that is random."""
    return edge(bandit_model(4), normal_of([[1.0, 0.5, 0.25, 0.75]], 1.0))


def several() -> Scenario:
    """Three guardrails at the edge that fail together: coins, as many as a cost, and a learned one."""
    made, promise = coins(), Bounded(0.0, 1.0)
    rail, law = made.problem.rails[0], made.world.constraint
    return railed(
        made,
        {CONSTRAINT: law, "cost": Bernoulli(1.0 - ALL), "other": Gaussian(ALL, NOISE**2)},
        Guardrail(CONSTRAINT, promise, alpha=rail.alpha, baseline_value=rail.value),
        Guardrail("cost", promise, cost=True, at_most=rail.credit, baseline_value=0.0),
        Guardrail("other", SubGaussian(NOISE), alpha=rail.alpha),
    )


class Shared:
    """One draw of noise for all steps of an episode, in constraints."""

    def __init__(self, law: Gaussian, reward: Gaussian) -> None:
        self.law, self.reward, self.noise = law, reward, 0.0

    def __call__(
        self, rng: np.random.Generator, step: int, state: int, action: int, next_state: int
    ) -> tuple[float, float]:
        """A reward and a constraint."""
        if step == 0:
            self.noise = float(rng.normal())
        mean, scale = float(self.law.mean[state, action]), float(np.sqrt(self.law.variance[state, action]))
        return self.reward.sample(rng, state, action), mean + scale * self.noise


def shared_noise() -> Scenario:
    """Steps share their noise, and a coin."""
    made = edge(drawn(), normal_of(ALL, 1.0, next_state=True))
    law: Any = made.world.constraint
    reward: Any = made.world.reward
    return changed(made, world={"outcome": Shared(law, reward)})


def _learned(make: Callable[..., Scenario], number: int) -> Scenario:
    """A baseline as uncertain as others: its value is learned."""
    return guarded(make(BEST), "learned", number)


def _again(name: str) -> Scenario:
    return spending(HOSTILE[name]())


AGAIN = (
    "coins on a graph", "lucky ways", "lucky arms", "rare pits", "rare treasures", "long road",
    "drawn baseline", "all or nothing", "discounted graph", "below zero", "next state, split",
)  # fmt: skip
EDGES: dict[str, Callable[[], Scenario]] = {
    "coins": coins,
    "coins, one step": partial(coins, steps=1),
    "coins, discount .7": partial(coins, discount=0.7),
    "disasters": disasters,
    "normal": normal,
    "normal, discount .7": partial(normal, discount=0.7),
    "normal, below zero": partial(normal, floor=-0.2),
    "one way": one_way,
    "ends early, coins": lambda: ends_early(coins_of(np.ones((3, 4)))),
    "ends early, normal": lambda: ends_early(normal_of(np.ones((3, 4)), NOISE**2)),
    **{f"coins, learned by {way}": partial(_learned, coins, i) for i, way in enumerate(WAYS)},
    **{f"normal, learned by {way}": partial(_learned, normal, i) for i, way in enumerate(WAYS)},
    "several": several,
    "shared noise": shared_noise,
}
WORLDS = EDGES | {name: partial(_again, name) for name in AGAIN}


# -- who plays -----------------------------------------------------------------------------------------------


def least(statistics: Statistics, sign: float = 1.0) -> Floats:
    """The policy that earns least of the first guardrail, [L, S, A]; with sign -1 the one that earns most."""
    model, means = statistics.model, statistics.constraint_mean
    mean = means[statistics.problem.rails[0].name] if isinstance(means, dict) else means
    ahead, table = np.zeros(model.states), []
    for _ in range(model.horizon):
        worth = mean + model.discount * (model.flow @ ahead).reshape(mean.shape)
        chosen = np.where(model.available, sign * worth, np.inf).argmin(axis=1)
        ahead = worth[np.arange(model.states), chosen]
        table.append(np.eye(model.actions)[chosen])
    return np.array(table[::-1])


def moving(statistics: Statistics) -> Floats:
    """From what earns most to what earns least, episode by episode."""
    part = min(1.0, statistics.episode / SLOWLY)
    return (1.0 - part) * least(statistics, -1.0) + part * least(statistics)


KNOWS: dict[str, Any] = {"knows": ("constraint_mean", "model"), "explore": "none", "track": "sample"}
RECKLESS = {
    "reckless": Collector(design=least, replan=ONCE, **KNOWS),
    "moving": Collector(design=moving, replan=1.2, **KNOWS),
}
COLLECT = ("safe-on-policy", "saver-opt", *RECKLESS)
