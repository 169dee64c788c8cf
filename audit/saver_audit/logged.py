"""Campaigns that begin with a log of their own, transitions unknown: worlds, who loses what, and counts.

In each world a trait that nobody sees is drawn for every episode; where it goes and what it observes may
depend on it. A world without one is an ordinary one. What a policy is worth is known exactly. The target is
worth `near` times what is required: just below the line who believes a little too much breaks the promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.collect import Campaign, Collector
from saver.collect.apply import apply
from saver.collect.events import Event, Trial
from saver.collect.showing import recall
from saver.experiments.work import named_seed
from saver.problem import Bounded, Guardrail, Problem, SubGaussian, Unknown
from saver.problem.bellman import by_step
from saver.problem.checks import child_seed
from saver.problem.episode import Columns, Episode
from saver.problem.model import END
from saver.simulator import Feedback, Player, Truth, rounds
from saver_audit.making import WIDTH

NOISE, ROUND = 0.5, 1e-9
LEAST = 0.02  # of what the baseline is worth, at least, may be given up
LAWS = ("coin", "thirds", "normal", "shared")  # thirds: 0, .5 or 1; shared: one draw of noise for all steps


@dataclass(frozen=True, eq=False)
class World:
    """A mixture of models; the last column of `moves` ends an episode."""

    chances: Any  # of traits, [U]
    start: Any  # [S]
    moves: Any  # [U, S, A, S + 1]
    seen: dict[str, tuple[str, Any]]  # by guardrail a law and means, [U, S, A]; names with "cost" are costs
    baseline: Any  # [S, A], or [L, S, A] as is the target
    target: Any
    horizon: int
    discount: float = 1.0

    @cached_property
    def mdp(self) -> Any:
        """What is known of it."""
        S, A = self.moves.shape[1:3]
        return Unknown(S, A, self.horizon, discount=self.discount, start=self.start)

    def values(self, policy: Any, name: str) -> tuple[Floats, Floats]:
        """V and Q of a guardrail at the first step, by trait."""
        table, mean = by_step(self.mdp, policy), self.seen[name][1]
        V = np.zeros((len(self.chances), self.moves.shape[3]))
        for t in reversed(range(self.horizon)):
            Q = mean + self.discount * np.einsum("usax,ux->usa", self.moves, V)
            V[:, :-1] = np.sum(table[t] * Q, axis=2)
        return V[:, :-1], Q

    def worths(self, policy: Any) -> Floats:
        """Of each guardrail, as it is told."""
        return np.array([self.chances @ self.values(policy, name)[0] @ self.start for name in self.seen])

    def log(self, rng: np.random.Generator, n: int) -> Columns:
        """So many episodes of the baseline."""
        U, S, _, ends = self.moves.shape
        rows, many, L = by_step(self.mdp, self.baseline), np.arange(n), self.horizon
        traits, s = rng.choice(U, n, p=self.chances), rng.choice(S, n, p=self.start)
        states, actions = np.full((n, L), S), np.zeros((n, L), dtype=np.int64)
        whole = {name: np.zeros((n, L)) for name in self.seen}
        shared = rng.normal(size=n)
        for t in range(L):
            on = many[s < S]
            u, at = traits[on], s[on]
            a = _drawn(rng, rows[t][at])
            states[on, t], actions[on, t] = at, a
            for name, (law, mean) in self.seen.items():
                whole[name][on, t] = _observed(rng, law, mean[u, at, a], shared[on])
            s = s.copy()
            s[on] = _drawn(rng, self.moves[u, at, a])
        there = states < S
        told = {name: table[there] for name, table in whole.items()}
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        finals = np.where(s == ends - 1, END, s)
        zeros = np.zeros(int(offsets[-1]))
        return Columns(offsets, states[there], actions[there], zeros, told, None, finals, np.ones(n, bool))


def _drawn(rng: np.random.Generator, chances: Floats) -> Any:
    """One for each row."""
    passed = np.cumsum(chances, axis=-1) <= rng.random((*chances.shape[:-1], 1))
    return np.minimum(passed.sum(axis=-1), chances.shape[-1] - 1)


def _observed(rng: np.random.Generator, law: str, mean: Any, shared: Any) -> Any:
    if law == "normal":
        return mean + NOISE * rng.normal(size=np.shape(mean))
    if law == "shared":
        return mean + NOISE * shared
    first = rng.random(np.shape(mean)) < mean
    return 1.0 * first if law == "coin" else (1.0 * first + (rng.random(np.shape(mean)) < mean)) / 2.0


class Start(int):
    """A state, and the trait of who starts there: who looks at a start sees both."""

    trait: int


class Runner(Player):
    """Runs trials in a world."""

    def __init__(self, world: World, seed: Any) -> None:
        self.mixed, self.rng = world, np.random.default_rng(seed)

    def begin(self) -> int:
        """A state, with a trait."""
        found = Start(_drawn(self.rng, self.mixed.start))
        found.trait = int(_drawn(self.rng, self.mixed.chances))
        return found

    def run(self, trial: Trial, start: int | None = None) -> Episode:
        """One episode."""
        world, rng = self.mixed, self.rng
        begun: Any = self.begin() if start is None else start
        u, s = begun.trait, int(begun)
        states: list[int] = []
        actions: list[int] = []
        seen: dict[str, list[float]] = {name: [] for name in world.seen}
        shared = rng.normal()
        for t in range(world.horizon):
            a = int(trial.act(t, s))
            states.append(s)
            actions.append(a)
            for name, (law, mean) in world.seen.items():
                seen[name].append(float(_observed(rng, law, mean[u, s, a], shared)))
            s = int(_drawn(rng, world.moves[u, s, a]))
            if s == len(world.start):
                break
        final = END if s == len(world.start) else s
        return Episode(states, actions, np.zeros(len(states)), seen, final_state=final)


class Known(Truth):
    """What policies are worth in a world."""

    def __init__(self, world: World, problem: Problem) -> None:
        self.mixed = world
        self.found: dict[Any, Floats] = {}
        self.begun: dict[Any, Floats] = {}
        self.scenario: Any = SimpleNamespace(problem=problem)
        self.baselines = list(self.signed(problem, world.worths(world.baseline)))
        each = zip(problem.rails, self.baselines, strict=True)
        self.required = [rail.required_at(value) for rail, value in each]

    @staticmethod
    def signed(problem: Problem, worths: Floats) -> Floats:
        """More is better."""
        return np.array([rail.sign for rail in problem.rails]) * worths

    def worths(self, policy: Any, draws: Any = None) -> Floats:
        """Of each guardrail; whatever is drawn, transitions are random."""
        if policy.key not in self.found:
            table = self.mixed.worths(policy.table())
            self.found[policy.key] = self.signed(self.scenario.problem, table)
        return self.found[policy.key]

    def ahead(self, follows: Any, start: Any, action: int) -> float:
        """Of the first guardrail, once a trait, a state and an action are seen."""
        if follows.key not in self.begun:
            self.begun[follows.key] = self.mixed.values(follows.table(), next(iter(self.mixed.seen)))[1]
        return float(
            self.scenario.problem.rails[0].sign * self.begun[follows.key][start.trait, start, action]
        )


class Quiet(Campaign):
    """A campaign that nobody asks for its answer until it ends."""

    def _take(self, event: Event) -> None:
        self._state = apply(self._setup, self._state, event)


# -- cases ---------------------------------------------------------------------------------------------------

MANNERS = {
    "at once": Feedback(),
    "30 % lost, lowest outcomes": Feedback(lose=0.3, which="outcome", out=10, back="best"),
    "cancelled against the sum": Feedback(cancel=0.5, out=10, back="held"),
    "10 out, best first": Feedback(out=10, back="best"),
    "vetoed": Feedback(veto=0.9),
}


class Case(NamedTuple):
    """Campaigns that are counted together; `way` and `value` are of the first guardrail."""

    world: str
    near: float
    way: str
    value: str  # of the baseline: learned, given, or an interval
    manner: str
    delta: float
    logged: int
    episodes: int
    collector: str | Collector = "safe-on-policy"

    @property
    def group(self) -> str:
        """As the table calls it."""
        said = f"{self.world}: {self.near:g} of the line, {self.way}, V0 {self.value}"
        return f"{said}; {self.manner}; {self.logged:,} logged"


def problem_of(world: World, case: Case) -> Problem:
    """What is asked in a world."""
    bases, trues = world.worths(world.baseline), world.worths(world.target)
    rails = [
        guard(name, law, float(base), float(true), case if i == 0 else case._replace(way="allowance"))
        for i, ((name, (law, _)), base, true) in enumerate(zip(world.seen.items(), bases, trues, strict=True))
    ]
    return Problem(world.mdp, world.target, world.baseline, guardrails=tuple(rails), delta=case.delta)


def guard(name: str, law: str, base: float, true: float, case: Case) -> Guardrail:
    """The target has `near` of what is required; where the baseline would not, little may be lost."""
    cost = "cost" in name
    line = case.near * true if cost else true / case.near
    given_up = max((line - base) if cost else (base - line), LEAST * base)
    ways = {
        "alpha": {"alpha": given_up / base},
        "allowance": {"allowance": given_up},
        "at_least": {"at_most": base + given_up} if cost else {"at_least": base - given_up},
    }
    said: dict[str, Any] = dict(ways[case.way])
    if case.value == "given":
        said["baseline_value"] = base
    elif case.value == "interval":
        said["baseline_value"] = (base - WIDTH * given_up, base + WIDTH * given_up)
    promise = SubGaussian(NOISE, next_state=law == "shared") if law in LAWS[2:] else Bounded(0.0, 1.0)
    return Guardrail(name, promise, cost=cost, **said)


class Ended(NamedTuple):
    """Of one campaign, or of each of many."""

    worst: Any  # the worst true budget of any guardrail
    least: Any  # the least of true minus believed, likewise
    share: Any  # of baseline episodes


def campaign(case: Case, world: World, seed: np.random.SeedSequence) -> Ended:
    """One campaign with a log of its own."""
    problem = problem_of(world, case)
    many = world.log(np.random.default_rng(child_seed(seed, 0)), case.logged)
    past = recall(problem, many, designs=case.collector == "saver-opt")
    collecting = Quiet(problem, case.collector, case.episodes, history=past, seed=child_seed(seed, 1))
    runner, truth, least = Runner(world, child_seed(seed, 2)), Known(world, problem), math.inf
    account: Any = None
    for done in rounds(collecting, runner, truth, MANNERS[case.manner], child_seed(seed, 3)):
        account = done.account
        least = min(least, float(np.min(account.budgets - list(collecting.believed_of.values()))))
    return Ended(float(np.min(account.worsts)), least, account.baseline / account.episodes)


def counted(case: Case, world: World, runs: range, seed: int = 0) -> Ended:
    """Campaigns by their numbers."""
    found = [campaign(case, world, named_seed(seed, "logged", case.group, f"{case.delta:g}", str(r)))
             for r in runs]  # fmt: skip
    return Ended(*np.array(found).T)


def observed(problem: Problem, many: Columns) -> Floats:
    """The baseline as a log shows it: frequencies of actions by state, even where there are none."""
    S, A = problem.mdp.states, problem.mdp.actions
    counts = np.zeros((S, A))
    np.add.at(counts, (many.states, many.actions), 1.0)
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, counts / np.maximum(total, 1.0), 1.0 / A)


def too_high(case: Case, world: World, seed: Any, own: bool = False) -> bool:
    """Whether some floor is above what its policy is worth above what is required, with a log of one's own.

    With `own` the baseline's probabilities are those of the log.
    """
    problem = problem_of(world, case)
    truth = Known(world, problem)
    many = world.log(np.random.default_rng(seed), case.logged)
    if own:
        problem = replace(problem, baseline=observed(problem, many))
    found = recall(problem, many, designs=case.collector == "saver-opt").shown
    if found is None:
        return False
    worths = np.array([truth.signed(problem, world.worths(table)) for table in found.policies])
    floors = np.array([found.floors[rail.name] for rail in problem.rails]).T
    return bool(np.any(floors > worths.reshape(floors.shape) - truth.required + ROUND))
