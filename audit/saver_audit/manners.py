"""Whose feedback is lost, late, cut off or cancelled, and how: the cases that are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from saver.problem import Mdp, Scenario
from saver.scenarios import find_scenario
from saver.scenarios.assembly import bandit_model
from saver.scenarios.tree import tree_model
from saver.simulator import Feedback
from saver_audit.hostile import HOSTILE, contexts
from saver_audit.making import (
    Seen,
    asked,
    blind,
    changed,
    coins_of,
    grid,
    guarded,
    normal_of,
    one_outcome,
    with_constraints,
)
from saver_audit.uncharted import EDGES

EPISODES = 300
LOW, HIGH = 0.05, 0.5  # deltas
QUIET, LOUD = 0.1, 0.5 / math.sqrt(2.0)  # scales
Worlds = dict[str, Callable[[], Scenario]]


def noisy_bandit() -> Scenario:
    """The bandit, with noise as large as what is allowed to be lost."""
    made = find_scenario("bandit", alpha=0.3)
    return with_constraints(made, normal_of(made.world.constraint.mean, 0.09))


def paths(coins: bool) -> Scenario:
    """A gridworld where a third may be lost: there is much to spend."""
    made, mean = grid(0.9, 0.1, horizon=3, alpha=0.35)
    return with_constraints(made, coins_of(mean) if coins else normal_of(mean, 0.25))


def debts() -> Scenario:
    """A tree where what was not seen of an episode may be worth less than nothing."""
    mdp = tree_model(3)
    return asked(mdp, normal_of([[0.6, -0.4]] * mdp.states, 0.04, -1.0), alpha=0.5, episodes=EPISODES)


def _shown(mdp: Mdp, seen: Seen, target: list[float]) -> Scenario:
    """What is observed is both the reward and the constraint, so that whoever hides the one hides the other.

    There is much to spend, and little of the target is the baseline.
    """
    return one_outcome(asked(mdp, seen, alpha=0.6, episodes=EPISODES, target=[target] * mdp.states))


def _shown_steps() -> Scenario:
    """Ten noisy steps, to and fro between two states: a sum that has wandered far, if it is cut off there."""
    return _shown(Mdp(np.full((2, 2, 2), 0.5), horizon=10), normal_of([[0.1, 0.1]] * 2, 0.25), [0.5, 0.5])


def _learned(make: Callable[[], Scenario], number: int) -> Scenario:
    return guarded(make(), "learned", number)


def _blind(make: Callable[[], Scenario]) -> Scenario:
    return blind(make(), LOW)


ONE_OUTCOME: Worlds = {
    "one outcome, arms": lambda: _shown(bandit_model(3), normal_of([[0.5, 0.6, 0.4]], 0.25), [0.1, 0.6, 0.3]),
    "one outcome, coins": lambda: _shown(bandit_model(2), coins_of([[0.5, 0.5]]), [0.1, 0.9]),
    "one outcome, steps": _shown_steps,
}
KNOWN: Worlds = {
    "noisy bandit": noisy_bandit,
    "paths": partial(paths, False),
    "coins on paths": partial(paths, True),
    "debts": debts,
}
WORLDS: Worlds = {
    **KNOWN,
    **{
        f"{name}, learned": partial(_learned, make, i)
        for (name, make), i in zip(KNOWN.items(), (1, 0, 1, 2), strict=True)
    },
    **ONE_OUTCOME,
    **{name: HOSTILE[name] for name in ("rare disasters", "drawn baseline", "all or nothing", "next state")},
}
UNKNOWN: Worlds = {
    f"{name}, unknown": partial(_blind, EDGES[name])
    for name in ("coins", "normal", "ends early, coins", "coins, learned by alpha", "shared noise")
}
STARTS: Worlds = {
    "ten contexts": partial(contexts, 10, QUIET),
    "ten contexts, loud": partial(contexts, 10, LOUD),
    "ten contexts, coins": partial(contexts, 10),
    "ten contexts, steps": partial(contexts, 10, QUIET, 3),
    "many contexts": partial(contexts, 300, QUIET),
    "many contexts, coins": partial(contexts, 300),
    "ten contexts, learned": partial(_learned, partial(contexts, 10, QUIET), 1),
    "ten contexts, coins, learned": partial(_learned, partial(contexts, 10), 1),
}
BY_START = STARTS | {
    f"{name}, unknown": partial(_blind, make) for name, make in STARTS.items() if "many" not in name
}


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
        return changed(made, problem={"delta": self.delta}, episodes=EPISODES)


def _cases(rows: Iterable[tuple[str, str, str]], deltas: tuple[float, ...] = (LOW, HIGH)) -> tuple[Case, ...]:
    """Each manner, world and collector with each of these deltas."""
    return tuple(Case(*row, delta) for row in rows for delta in deltas)


TWICE = {  # each manner in one world at both deltas, and in another world at one
    "5 % lost at random": ("drawn baseline", "safe-on-policy", "paths", "saver-opt", HIGH),
    "30 % lost at random": ("noisy bandit", "saver-opt", "coins on paths", "saver", LOW),
    "5 % lost, lowest outcomes": ("rare disasters", "saver", "paths", "saver", HIGH),
    "30 % lost, lowest outcomes": ("noisy bandit", "saver", "drawn baseline", "saver", LOW),
    "5 % lost, lowest sums": ("noisy bandit", "saver", "coins on paths", "saver-opt", HIGH),
    "30 % lost, lowest sums": ("rare disasters", "saver-opt", "noisy bandit", "safe-on-policy", HIGH),
    "held back, then 10 % lost": ("noisy bandit", "saver-opt", "next state", "saver", HIGH),
    "cancelled against the sum": ("noisy bandit", "saver", "paths", "saver", HIGH),
    "30 out, best first": ("coins on paths", "saver", "noisy bandit", "saver", HIGH),
    "100 out, best first": ("rare disasters", "saver-opt", "all or nothing", "safe-on-policy", LOW),
    "100 out, in order": ("noisy bandit", "saver-opt", "drawn baseline", "safe-on-policy", HIGH),
    "three stragglers": ("noisy bandit", "saver", "coins on paths", "saver-opt", LOW),
    "half cut off at their best": ("debts", "saver-opt", "paths", "saver", HIGH),
    "30 % lost, declared random": ("noisy bandit", "saver", "paths", "saver", HIGH),
}
ONCE = (
    ("5 % lost at random", "one outcome, coins", "saver-opt"),
    ("30 % lost at random", "one outcome, steps", "saver"),
    ("5 % lost, lowest outcomes", "one outcome, arms", "safe-on-policy"),
    ("30 % lost, lowest outcomes", "one outcome, coins", "saver"),
    ("5 % lost, lowest sums", "one outcome, arms", "saver-opt"),
    ("30 % lost, lowest sums", "one outcome, arms", "safe-on-policy"),
    ("held back, then 10 % lost", "one outcome, arms", "saver"),
    ("cancelled against the sum", "one outcome, arms", "saver-opt"),
    ("30 out, best first", "one outcome, arms", "saver"),
    ("100 out, best first", "one outcome, coins", "safe-on-policy"),
    ("100 out, in order", "one outcome, steps", "saver"),
    ("three stragglers", "one outcome, arms", "saver"),
    ("half cut off at their best", "one outcome, steps", "safe-on-policy"),
    ("30 % lost, declared random", "one outcome, steps", "saver"),
    ("30 % lost, lowest sums", "noisy bandit, learned", "saver"),
    ("5 % lost, lowest sums", "coins on paths, learned", "saver-opt"),
    ("held back, then 10 % lost", "noisy bandit, learned", "saver-opt"),
    ("cancelled against the sum", "noisy bandit, learned", "saver"),
    ("100 out, best first", "noisy bandit, learned", "safe-on-policy"),
    ("100 out, in order", "noisy bandit, learned", "saver"),
    ("half cut off at their best", "debts, learned", "saver"),
    ("30 % lost, declared random", "paths, learned", "saver"),
)
CASES = (
    *(
        Case(manner, *where)
        for manner, (both, first, then, second, delta) in TWICE.items()
        for where in ((both, first, LOW), (both, first, HIGH), (then, second, delta))
    ),
    *_cases(ONCE, (HIGH,)),
)
UNKNOWN_CASES = _cases(
    (
        ("5 % lost at random", "coins, unknown", "safe-on-policy"),
        ("30 % lost, lowest sums", "coins, unknown", "safe-on-policy"),
        ("5 % lost, lowest sums", "normal, unknown", "saver-opt"),
        ("5 % lost, lowest outcomes", "coins, learned by alpha, unknown", "safe-on-policy"),
        ("held back, then 10 % lost", "ends early, coins, unknown", "saver-opt"),
        ("cancelled against the sum", "coins, unknown", "safe-on-policy"),
        ("30 out, best first", "normal, unknown", "safe-on-policy"),
        ("100 out, in order", "coins, unknown", "safe-on-policy"),
        ("three stragglers", "shared noise, unknown", "safe-on-policy"),
        ("half cut off at their best", "ends early, coins, unknown", "safe-on-policy"),
        ("30 % lost, declared random", "normal, unknown", "safe-on-policy"),
    ),
)
VETO_CASES = _cases(
    (
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
    ),
)
