"""Worlds drawn at random, each from its number alone, and every world of the audit by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saver._types import Floats
from saver.problem import Bernoulli, Bounded, Empirical, Gaussian, Law, Mdp, Scenario
from saver.problem.checks import child_seed
from saver.scenarios import find_scenario
from saver_audit.hostile import HOSTILE
from saver_audit.making import (
    FORMS,
    Seen,
    asked,
    blind,
    changed,
    coins_of,
    guarded,
    normal_of,
    spending,
    with_rewards,
)
from saver_audit.uncharted import DELTAS as BOTH, FAMILY, MODEL_FREE, WORLDS as UNKNOWN

SHAPES = ("bandit", "tree", "graph")
LAWS = ("gaussian", "coins", "extremes", "disasters", "heavy")
DELTAS = (0.01, 0.05, 0.2)
STATES, STEPS, ACTIONS = 30, 10, 5  # the most of a random model


def random_world(shape: str, number: int, seed: int = 0) -> Scenario:
    """World `number` of a family: model, laws, policies, alpha from .01 to .9, delta, K from 200 to 2,000.

    Every third baseline is barely better than the worst policy. Laws go round: normal constraints, coins,
    coins near 0 and 1, disasters (0 with a small probability, else 1), heavy tails cut to [0, 1]. Every other
    graph is declared to have noise that may depend on the next state.
    """
    rng = np.random.default_rng(child_seed(seed, SHAPES.index(shape), number))
    mdp = {"bandit": _bandit, "tree": _tree, "graph": _graph}[shape](rng)
    size = (mdp.states, mdp.actions)
    seen = _seen(LAWS[number % len(LAWS)], rng, size, shape == "graph" and number % 2 == 1)
    reward: Law = Gaussian(rng.normal(size=size), rng.exponential(size=size) ** 2)
    if number % 7 == 6:
        reward = Bernoulli(rng.uniform(0.05, 0.95, size=size))
    made = asked(
        mdp,
        seen,
        baseline=_baseline(mdp, np.array(seen.law.mean), poor=number // 3 % 3 == 2),
        alpha=float(np.exp(rng.uniform(np.log(0.01), np.log(0.9)))),
        target=rng.dirichlet(np.ones(mdp.actions), size=mdp.states),
        episodes=int(rng.integers(200, 2001)),
    )
    delta = DELTAS[number % len(DELTAS)]
    return changed(with_rewards(made, reward), problem={"delta": delta}, name=f"{shape} {number}")


def _bandit(rng: np.random.Generator) -> Mdp:
    return Mdp(np.zeros((1, int(rng.integers(2, 2 * ACTIONS)), 1)), horizon=1)


def _tree(rng: np.random.Generator) -> Mdp:
    """Deterministic, with episodes that may end early."""
    edges, level, states = [], [0], 1
    depth, actions = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    for _ in range(depth - 1):
        below = []
        for s in level:
            for a in range(actions):
                if states < STATES and rng.random() < 0.8:
                    edges.append((s, a, states, 1.0))
                    below.append(states)
                    states += 1
        level = below
    return Mdp.from_edges(edges, states, actions, depth, discount=float(rng.choice([1.0, 0.9])))


def _graph(rng: np.random.Generator) -> Mdp:
    """Sparse and stochastic, with a start distribution, moves that end the episode and a terminal state."""
    S, A = int(rng.integers(3, STATES + 1)), int(rng.integers(2, ACTIONS))
    edges = []
    for s in range(S):
        for a in range(A):
            if rng.random() < 0.1:
                continue
            to = rng.choice(S, size=min(S, int(rng.integers(1, 4))), replace=False)
            edges += [
                (s, a, int(t), float(p)) for t, p in zip(to, rng.dirichlet(np.ones(len(to))), strict=True)
            ]
    start = np.zeros(S)
    start[: min(3, S - 1)] = rng.dirichlet(np.ones(min(3, S - 1)))
    discount = float(rng.choice([1.0, 0.95, 0.7]))
    horizon = int(rng.integers(2, STEPS + 1))
    return Mdp.from_edges(edges, S, A, horizon, discount=discount, start=start, terminal=(S - 1,))


def _seen(law: str, rng: np.random.Generator, size: tuple[int, int], next_state: bool) -> Seen:
    if law == "gaussian":
        return normal_of(rng.random(size), float(rng.choice([0.01, 0.1])) ** 2, next_state=next_state)
    if law == "heavy":
        tails = np.minimum(1.0, 0.02 * (1.0 + rng.pareto(1.2, size=(*size, 40))))
        return Seen(Empirical(tails.tolist()), Bounded(0.0, 1.0, next_state=next_state))
    if law == "coins":
        chances = rng.uniform(0.02, 0.98, size=size)
    elif law == "extremes":
        chances = rng.choice([0.001, 0.01, 0.99, 0.999], size=size)
    else:
        chances = 1.0 - rng.choice([0.002, 0.01, 0.05], size=size)
    return coins_of(chances, next_state=next_state)


def _baseline(mdp: Mdp, mean: Floats, poor: bool) -> Floats:
    """Deterministic: the best action of each state, or, if `poor`, one above the worst."""
    order = np.argsort(np.where(mdp.available, mean, np.inf), axis=1)
    chosen = order[:, 1 if poor and mdp.actions > 1 else -1]
    policy: Floats = np.eye(mdp.actions)[chosen]
    return policy


@dataclass(frozen=True)
class Place:
    """A world by name.

    `family` is scenario, hostile, random (then `name` is its shape), unknown, or one of FORMS or MODEL_FREE.
    Where transitions are unknown, even and odd numbers have two deltas.
    """

    family: str
    name: str
    number: int = 0
    seed: int = 0

    def make(self) -> Scenario:
        """The world and what is asked in it."""
        delta = BOTH[self.number % len(BOTH)]
        if self.family == FAMILY:
            return blind(UNKNOWN[self.name](), delta)
        if self.family in MODEL_FREE:
            made, form = spending(random_world(self.name, self.number, self.seed)), self.family.split()[1]
            made = made if form == "random" else guarded(made, form, self.number, self.seed)
            return blind(made, delta)
        if self.family in ("random", *FORMS):
            made = random_world(self.name, self.number, self.seed)
            return made if self.family == "random" else guarded(made, self.family, self.number, self.seed)
        return HOSTILE[self.name]() if self.family == "hostile" else find_scenario(self.name)

    @property
    def group(self) -> str:
        """What it is counted with."""
        if self.family == "scenario":
            return "scenarios"
        mark = ":" if self.family in ("hostile", FAMILY) else ""
        return f"{self.family}{mark} {self.name}"


def describe(scenario: Scenario, episodes: int | None = None) -> tuple[str, int, str, float, float, int]:
    """What a row of the audit says about its world: name, states, law, alpha, delta, episodes."""
    problem, law = scenario.problem, ", ".join(type(law).__name__ for law in scenario.laws)
    K = scenario.episodes if episodes is None else episodes
    return scenario.name, problem.mdp.states, law, scenario.rails[0].alpha, problem.delta, K
