"""Whose feedback is lost, late, cut off or cancelled, and how: the cases that are counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from saver.experiments.auditing.asked import COINS, Promise, asked, grid, one_outcome, with_constraints
from saver.experiments.auditing.guarded import guarded
from saver.experiments.auditing.hostile import HOSTILE
from saver.experiments.auditing.starts import STARTS
from saver.experiments.auditing.uncharted import EDGES, blind
from saver.problem import Bernoulli, Gaussian, Law, Mdp, Scenario, SubGaussian
from saver.scenarios import find_scenario
from saver.scenarios.assembly import bandit_model
from saver.scenarios.tree import tree_model
from saver.simulator import Feedback

EPISODES = 300
LOW, HIGH = 0.05, 0.5  # deltas


def noisy_bandit() -> Scenario:
    """The bandit, with noise as large as what is allowed to be lost."""
    made = find_scenario("bandit", alpha=0.3)
    return with_constraints(made, Gaussian(made.world.constraint.mean, 0.09), SubGaussian(0.3))


def paths(coins: bool) -> Scenario:
    """A gridworld where a third may be lost: there is much to spend."""
    made, mean = grid(0.9, 0.1, horizon=3, alpha=0.35)
    if coins:
        return with_constraints(made, Bernoulli(mean), COINS)
    return with_constraints(made, Gaussian(mean, 0.25), SubGaussian(0.5))


def debts() -> Scenario:
    """A tree where what was not seen of an episode may be worth less than nothing."""
    mdp = tree_model(3)
    law = Gaussian([[0.6, -0.4]] * mdp.states, 0.04)
    return asked(mdp, law, SubGaussian(0.2, -1.0, 1.0), alpha=0.5, episodes=EPISODES)


def shown(mdp: Mdp, law: Law, promise: Promise, target: list[float]) -> Scenario:
    """What is observed is both the reward and the constraint, so that whoever hides the one hides the other.

    There is much to spend, and little of the target is the baseline.
    """
    policy = [target] * mdp.states
    return one_outcome(asked(mdp, law, promise, alpha=0.6, episodes=EPISODES, target=policy))


def shown_arms() -> Scenario:
    """Three arms with normal outcomes."""
    law = Gaussian([[0.5, 0.6, 0.4]], 0.25)
    return shown(bandit_model(3), law, SubGaussian(0.5), [0.1, 0.6, 0.3])


def shown_coins() -> Scenario:
    """Two coins."""
    return shown(bandit_model(2), Bernoulli([[0.5, 0.5]]), COINS, [0.1, 0.9])


def shown_steps() -> Scenario:
    """Ten noisy steps, to and fro between two states: a sum that has wandered far, if it is cut off there."""
    mdp = Mdp(np.full((2, 2, 2), 0.5), horizon=10)
    return shown(mdp, Gaussian([[0.1, 0.1]] * 2, 0.25), SubGaussian(0.5), [0.5, 0.5])


def _blind(name: str) -> Scenario:
    """At the edge, with transitions that are unknown."""
    return blind(EDGES[name](), LOW)


ONE_OUTCOME: dict[str, Callable[[], Scenario]] = {
    "one outcome, arms": shown_arms,
    "one outcome, coins": shown_coins,
    "one outcome, steps": shown_steps,
}
WORLDS: dict[str, Callable[[], Scenario]] = {
    "noisy bandit": noisy_bandit,
    "paths": partial(paths, False),
    "coins on paths": partial(paths, True),
    "debts": debts,
    "noisy bandit, learned": lambda: guarded(noisy_bandit(), "learned", 1),
    "paths, learned": lambda: guarded(paths(False), "learned", 0),
    "coins on paths, learned": lambda: guarded(paths(True), "learned", 1),
    "debts, learned": lambda: guarded(debts(), "learned", 2),
    **ONE_OUTCOME,
    **{name: HOSTILE[name] for name in ("rare disasters", "drawn baseline", "all or nothing", "next state")},
}


def _forgotten(name: str) -> Scenario:
    """The same where transitions are unknown."""
    return blind(STARTS[name](), LOW)


UNKNOWN: dict[str, Callable[[], Scenario]] = {
    f"{name}, unknown": partial(_blind, name)
    for name in ("coins", "normal", "ends early, coins", "coins, learned by alpha", "shared noise")
}
BY_START = STARTS | {f"{name}, unknown": partial(_forgotten, name) for name in STARTS if "many" not in name}


class Manner(NamedTuple):
    """How feedback comes, and what is declared about it."""

    feedback: Feedback
    losses: str = "hostile"
    order: str = "any"


MANNERS = {
    "5 % lost at random": Manner(Feedback(lose=0.05)),
    "30 % lost at random": Manner(Feedback(lose=0.3, out=5, back="random")),
    "5 % lost, lowest outcomes": Manner(Feedback(lose=0.05, which="outcome", out=30, back="best")),
    "30 % lost, lowest outcomes": Manner(Feedback(lose=0.3, which="outcome", out=10, back="best")),
    "5 % lost, lowest sums": Manner(Feedback(lose=0.05, which="sum", out=30, back="best")),
    "30 % lost, lowest sums": Manner(Feedback(lose=0.3, which="sum", out=5)),
    "held back, then 10 % lost": Manner(Feedback(lose=0.1, which="sum", out=20, back="held")),
    "cancelled against the sum": Manner(Feedback(cancel=0.5, out=20, back="held")),
    "30 out, best first": Manner(Feedback(out=30, back="best")),
    "100 out, best first": Manner(Feedback(out=100, back="best")),
    "100 out, in order": Manner(Feedback(out=100), order="asked"),
    "three stragglers": Manner(Feedback(straggle=3, lose=0.05, which="sum", out=10, back="best")),
    "half cut off at their best": Manner(Feedback(cut=0.5, which="outcome")),
    "30 % lost, declared random": Manner(
        Feedback(lose=0.3, ran=True, out=30, back="random"), losses="random"
    ),
}
VETOES = {
    "vetoed one by one": Manner(Feedback(veto=0.9)),
    "a third vetoed": Manner(Feedback(veto=0.3)),
    "vetoed in batches": Manner(Feedback(veto=0.5, out=10, back="held")),
    "vetoed at first": Manner(Feedback(veto=0.9, vetoes=300)),
    "most lost by their starts": Manner(Feedback(lose=0.7, which="start", out=5, ran=True)),
}  # by who looks where trials start before it is decided which of them run


@dataclass(frozen=True)
class Case:
    """Campaigns that are counted together."""

    manner: str
    world: str
    collector: str
    delta: float

    @property
    def group(self) -> str:
        """As the audit calls it."""
        return f"{self.manner}: {self.world}"

    def make(self) -> Scenario:
        """The world, with this delta."""
        made = (WORLDS | UNKNOWN | BY_START)[self.world]()
        problem = dataclasses.replace(made.problem, delta=self.delta)
        return dataclasses.replace(made, problem=problem, episodes=EPISODES)


CASES = (
    tuple(
        Case(manner, world, collector, delta)
        for manner, both, then, collectors, delta in (
            ("5 % lost at random", "drawn baseline", "paths", ("safe-on-policy", "saver-opt"), HIGH),
            ("30 % lost at random", "noisy bandit", "coins on paths", ("saver-opt", "saver"), LOW),
            ("5 % lost, lowest outcomes", "rare disasters", "paths", ("saver", "saver"), HIGH),
            ("30 % lost, lowest outcomes", "noisy bandit", "drawn baseline", ("saver", "saver"), LOW),
            ("5 % lost, lowest sums", "noisy bandit", "coins on paths", ("saver", "saver-opt"), HIGH),
            (
                "30 % lost, lowest sums",
                "rare disasters",
                "noisy bandit",
                ("saver-opt", "safe-on-policy"),
                HIGH,
            ),
            ("held back, then 10 % lost", "noisy bandit", "next state", ("saver-opt", "saver"), HIGH),
            ("cancelled against the sum", "noisy bandit", "paths", ("saver", "saver"), HIGH),
            ("30 out, best first", "coins on paths", "noisy bandit", ("saver", "saver"), HIGH),
            ("100 out, best first", "rare disasters", "all or nothing", ("saver-opt", "safe-on-policy"), LOW),
            ("100 out, in order", "noisy bandit", "drawn baseline", ("saver-opt", "safe-on-policy"), HIGH),
            ("three stragglers", "noisy bandit", "coins on paths", ("saver", "saver-opt"), LOW),
            ("half cut off at their best", "debts", "paths", ("saver-opt", "saver"), HIGH),
            ("30 % lost, declared random", "noisy bandit", "paths", ("saver", "saver"), HIGH),
        )
        for world, collector, delta in (
            (both, collectors[0], LOW),
            (both, collectors[0], HIGH),
            (then, collectors[1], delta),
        )
    )
    + tuple(
        Case(manner, f"one outcome, {world}", collector, HIGH)
        for manner, world, collector in (
            ("5 % lost at random", "coins", "saver-opt"),
            ("30 % lost at random", "steps", "saver"),
            ("5 % lost, lowest outcomes", "arms", "safe-on-policy"),
            ("30 % lost, lowest outcomes", "coins", "saver"),
            ("5 % lost, lowest sums", "arms", "saver-opt"),
            ("30 % lost, lowest sums", "arms", "safe-on-policy"),
            ("held back, then 10 % lost", "arms", "saver"),
            ("cancelled against the sum", "arms", "saver-opt"),
            ("30 out, best first", "arms", "saver"),
            ("100 out, best first", "coins", "safe-on-policy"),
            ("100 out, in order", "steps", "saver"),
            ("three stragglers", "arms", "saver"),
            ("half cut off at their best", "steps", "safe-on-policy"),
            ("30 % lost, declared random", "steps", "saver"),
        )
    )
    + tuple(
        Case(manner, f"{world}, learned", collector, HIGH)
        for manner, world, collector in (
            ("30 % lost, lowest sums", "noisy bandit", "saver"),
            ("5 % lost, lowest sums", "coins on paths", "saver-opt"),
            ("held back, then 10 % lost", "noisy bandit", "saver-opt"),
            ("cancelled against the sum", "noisy bandit", "saver"),
            ("100 out, best first", "noisy bandit", "safe-on-policy"),
            ("100 out, in order", "noisy bandit", "saver"),
            ("half cut off at their best", "debts", "saver"),
            ("30 % lost, declared random", "paths", "saver"),
        )
    )
)
UNKNOWN_CASES = tuple(
    Case(manner, f"{world}, unknown", collector, delta)
    for manner, world, collector in (
        ("5 % lost at random", "coins", "safe-on-policy"),
        ("30 % lost, lowest sums", "coins", "safe-on-policy"),
        ("5 % lost, lowest sums", "normal", "saver-opt"),
        ("5 % lost, lowest outcomes", "coins, learned by alpha", "safe-on-policy"),
        ("held back, then 10 % lost", "ends early, coins", "saver-opt"),
        ("cancelled against the sum", "coins", "safe-on-policy"),
        ("30 out, best first", "normal", "safe-on-policy"),
        ("100 out, in order", "coins", "safe-on-policy"),
        ("three stragglers", "shared noise", "safe-on-policy"),
        ("half cut off at their best", "ends early, coins", "safe-on-policy"),
        ("30 % lost, declared random", "normal", "safe-on-policy"),
    )
    for delta in (LOW, HIGH)
)
VETO_CASES = tuple(
    Case(manner, world, collector, delta)
    for manner, world, collector in (
        ("vetoed one by one", "ten contexts", "safe-on-policy"),
        ("vetoed one by one", "ten contexts, coins", "safe-on-policy"),
        ("vetoed one by one", "ten contexts, learned", "safe-on-policy"),
        ("vetoed one by one", "many contexts", "safe-on-policy"),
        ("vetoed one by one", "many contexts, coins", "safe-on-policy"),
        ("vetoed one by one", "ten contexts, unknown", "safe-on-policy"),
        ("vetoed one by one", "ten contexts, coins, unknown", "safe-on-policy"),
        ("vetoed one by one", "ten contexts, coins, learned, unknown", "safe-on-policy"),
        ("a third vetoed", "ten contexts, steps", "safe-on-policy"),
        ("a third vetoed", "ten contexts, loud", "saver-opt"),
        ("a third vetoed", "ten contexts, loud, unknown", "safe-on-policy"),
        ("a third vetoed", "ten contexts, coins, learned", "safe-on-policy"),
        ("vetoed in batches", "ten contexts", "safe-on-policy"),
        ("vetoed in batches", "ten contexts, unknown", "safe-on-policy"),
        ("vetoed in batches", "ten contexts, learned, unknown", "safe-on-policy"),
        ("vetoed at first", "ten contexts", "safe-on-policy"),
        ("vetoed at first", "ten contexts, loud, unknown", "safe-on-policy"),
        ("most lost by their starts", "ten contexts", "safe-on-policy"),
        ("most lost by their starts", "ten contexts, coins, unknown", "safe-on-policy"),
    )
    for delta in (LOW, HIGH)
)
