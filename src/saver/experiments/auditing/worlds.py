"""Worlds drawn at random, each from its number alone, and every world of the audit by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saver._types import Floats
from saver.experiments.auditing.guarded import FORMS, guarded
from saver.experiments.auditing.hostile import HOSTILE
from saver.experiments.auditing.uncharted import BLIND, FAMILY, blind, spending
from saver.experiments.auditing.uncharted import DELTAS as BOTH
from saver.experiments.auditing.uncharted import WORLDS as UNKNOWN
from saver.problem import (
    Bernoulli,
    Bounded,
    Empirical,
    Gaussian,
    Law,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    World,
)
from saver.problem.seeds import child_seed
from saver.scenarios import find_scenario
from saver.scenarios.assembly import promised

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
    constraint = _constraint(LAWS[number % len(LAWS)], rng, size)
    reward: Law = Gaussian(rng.normal(size=size), rng.exponential(size=size) ** 2)
    if number % 7 == 6:
        reward = Bernoulli(rng.uniform(0.05, 0.95, size=size))
    world = World(mdp, reward, constraint)
    baseline = _baseline(rng, mdp, np.array(constraint.mean), poor=number // 3 % 3 == 2)
    next_state = shape == "graph" and number % 2 == 1
    promise: SubGaussian | Bounded = Bounded(0.0, 1.0, next_state=next_state)
    if isinstance(constraint, Gaussian):
        promise = SubGaussian(float(np.sqrt(constraint.variance.max())), next_state=next_state)
    alpha = float(np.exp(rng.uniform(np.log(0.01), np.log(0.9))))
    problem = Problem(
        mdp,
        rng.dirichlet(np.ones(mdp.actions), size=mdp.states),
        baseline,
        alpha=alpha,
        delta=DELTAS[number % len(DELTAS)],
        baseline_value=world.constraint_value(baseline),
        constraint=promise,
        reward=promised(reward),
    )
    return Scenario(f"{shape} {number}", world, problem, int(rng.integers(200, 2001)))


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


def _constraint(law: str, rng: np.random.Generator, size: tuple[int, int]) -> Law:
    if law == "gaussian":
        return Gaussian(rng.random(size), float(rng.choice([0.01, 0.1])) ** 2)
    if law == "coins":
        return Bernoulli(rng.uniform(0.02, 0.98, size=size))
    if law == "extremes":
        return Bernoulli(rng.choice([0.001, 0.01, 0.99, 0.999], size=size))
    if law == "disasters":
        return Bernoulli(1.0 - rng.choice([0.002, 0.01, 0.05], size=size))
    tails = np.minimum(1.0, 0.02 * (1.0 + rng.pareto(1.2, size=(*size, 40))))
    return Empirical(tails.tolist())


def _baseline(rng: np.random.Generator, mdp: Mdp, mean: Floats, poor: bool) -> Floats:
    """Deterministic: the best action of each state, or, if `poor`, one above the worst."""
    order = np.argsort(np.where(mdp.available, mean, np.inf), axis=1)
    chosen = order[:, 1 if poor and mdp.actions > 1 else -1]
    policy: Floats = np.eye(mdp.actions)[chosen]
    return policy


@dataclass(frozen=True)
class Place:
    """A world by name.

    `family` is scenario, hostile, random (then `name` is its shape), one of FORMS, unknown, or one of BLIND.
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
        if self.family in BLIND:
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
