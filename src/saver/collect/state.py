"""What changes in a campaign, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief
from saver._types import Floats, Ints
from saver.collect.events import BASELINE, EXPLORE, PLAN, SHOWN, Asked, Event, Plan, Trial
from saver.collect.setup import Setup
from saver.kernels.believing import UNNEEDED
from saver.play import Play
from saver.play.policy import Policy
from saver.problem.checks import child_seed
from saver.problem.codec import portable
from saver.problem.moments import Moments, Sums
from saver.problem.statement import Problem

KINDS = ("explore", "design", "earn", "baseline")
DESIGNED = ("design", "earn")  # what the tracker counts


@portable("state")
@dataclass(eq=False)
class State:
    """One campaign between two events."""

    stream: tuple[int, ...]  # the state of the random generator
    sums: Sums  # of the told episodes, for the estimate
    # of the told episodes, for the design, of the first guardrail, in the units of telling
    constraints: Moments
    counts: dict[str, Any]  # visits of told trials by kind, [nodes, A] each
    books: dict[str, Any]  # what each ledger wrote down, and the keeper of rewards
    told: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))  # trials told, by kind
    asked: int = 0  # trials asked
    explored: int = 0  # of these, those that explore
    plan: Plan | None = None  # the design that is followed now
    exploration: Any = None  # the policy to explore by, where it had to be computed, [n, A]
    out: dict[int, Trial] = field(default_factory=dict)  # the trials that are out
    abandoned: set[int] = field(default_factory=set)  # the numbers of trials that were abandoned
    cancelled: set[int] = field(default_factory=set)  # the numbers of trials that never started
    more: int = 0  # trials that may be asked for beyond those planned
    # the answers after some of the told trials, their numbers growing by a twentieth
    looks: list[Any] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)  # constraints of the other guardrails, by name
    played: dict[int, int] = field(default_factory=dict)  # of the policies that a log shows, how often asked
    outstanding: Any = field(default=None, init=False)  # sums over `out`: made by `settle`, never written
    following: Any = field(default=None, init=False)  # what `plan` comes to, likewise

    @property
    def spent(self) -> int:
        """How many of the campaign's episodes were given out."""
        return self.asked - len(self.cancelled)

    def left(self, planned: int) -> int:
        """How many trials may still be asked for, of so many planned."""
        return planned + self.more - self.spent

    def rail_moments(self, problem: Problem) -> list[Moments]:
        """The constraints seen of each guardrail."""
        return [self.constraints, *(self.others[rail.name] for rail in problem.rails[1:])]

    @classmethod
    def begin(cls, setup: Setup, seed: int | np.random.SeedSequence = 0) -> State:
        """Nothing has happened."""
        mdp = setup.problem.mdp
        shape = mdp.states, mdp.actions
        rows = (len(setup.stage.nodes.state), mdp.actions)
        made = cls(
            stream=words(np.random.PCG64(child_seed(seed, 0))),
            sums=Sums.empty(mdp),
            constraints=Moments.empty(shape),
            others={rail.name: Moments.empty(shape) for rail in setup.problem.rails[1:]},
            counts={kind: np.zeros(rows) for kind in KINDS},
            books={name: keeper.open() for name, keeper in setup.keepers.items()},
        )
        return settle(setup, made)


def settle(setup: Setup, state: State) -> State:
    """Make what follows from the rest and is not written: sums over the trials that are out, the plan's."""
    if state.plan is not None:
        state.following = following(setup, state.plan, state.more)
    state.outstanding = Outstanding(setup, None if state.plan is None else state.plan.reach)
    for trial in state.out.values():
        state.outstanding.add(trial.number, trial.kind, setup.stage.play(trial.follows))
    return state


def words(generator: Any) -> tuple[int, ...]:
    """The state of a PCG64 as four numbers."""
    kept = generator.state
    return kept["state"]["state"], kept["state"]["inc"], kept["has_uint32"], kept["uinteger"]


def generator_at(kept: tuple[int, ...]) -> Any:
    """A PCG64 where another was."""
    state, inc, has, rest = kept
    generator = np.random.PCG64(0)
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": inc},
        "has_uint32": has,
        "uinteger": rest,
    }
    return generator


# -- what a plan comes to, and the policies that decisions name -------------------------------------------


class Following(NamedTuple):
    """A plan that is followed."""

    plan: Plan
    policy: Policy
    # from which number of samples on a pair is needed, [S, A]; None where the plan is drawn from
    needed: Ints | None


def following(setup: Setup, plan: Plan, more: int) -> Following:
    """What a plan comes to, where `more` trials may be asked for than were planned."""
    policy = Policy(setup.stage.grid, plan.by_step, plan.rows)
    if setup.collector.track == "sample":
        return Following(plan, policy, None)
    if plan.needed is not None:
        return Following(plan, policy, plan.needed)
    return Following(plan, policy, unplanned(setup, policy, 1 if setup.designer.fixed else plan.since, more))


def unplanned(setup: Setup, policy: Policy, number: int, more: int = 0) -> Ints:
    """`Designer.needed`, without the pairs that a plan made for episode `number` will visit by itself.

    What comes first is played wherever its state is met, in a long episode again and again. The exact design
    gives every pair with weight its visits: only those with less than one to come, until the end of the
    campaign, have to come first.
    """
    designer, stage = setup.designer, setup.stage
    if not designer.exact_on_graph:
        return designer.needed
    to_come = (setup.episodes + more - number + 1) * stage.grid.by_state(stage.evaluate(policy).flow)
    return np.where(to_come >= 1.0, UNNEEDED, designer.needed)


def policy_of(setup: Setup, policy: Any, by_step: bool, plan: Policy | None, exploration: Any) -> Policy:
    """The policy that a decision names, or whose actions it holds; `exploration` is as in the state."""
    if not isinstance(policy, str):
        return setup.stage.grid.choices(by_step, policy)
    if policy == BASELINE:
        return setup.baseline
    if policy == EXPLORE:
        return exploration_of(setup, exploration)
    if policy.startswith(SHOWN):
        return setup.known[int(policy[len(SHOWN) :])]
    assert policy == PLAN
    assert plan is not None
    return plan


def shown_of(event: Asked) -> int | None:
    """Which of the policies that a log shows a trial is; None if it is another."""
    named = isinstance(event.policy, str) and event.policy.startswith(SHOWN)
    return int(event.policy[len(SHOWN) :]) if named else None


def policies_of(setup: Setup, events: Iterable[Event]) -> dict[int, Policy]:
    """The policy of each trial, as it was when it was asked, from the events alone."""
    plan, exploration, found = None, None, {}
    for event in events:
        if isinstance(event, Asked):
            if event.plan is not None:
                plan = Policy(setup.stage.grid, event.plan.by_step, event.plan.rows)
            exploration = exploration if event.exploration is None else event.exploration
            found[event.number] = policy_of(setup, event.policy, event.by_step, plan, exploration)
    return found


def exploration_of(setup: Setup, rows: Any) -> Policy:
    """What is explored by: uniform play, or what was computed once and kept."""
    return setup.exploration() if rows is None else Policy(setup.stage.grid, True, rows)


# -- what the ledgers believe ------------------------------------------------------------------------------


def budgets(setup: Setup, state: State, plugin: bool = False) -> dict[str, float]:
    """What the collector's own ledgers believe, by guardrail; the plug-in ones where it has none."""
    books = {row.rail.name: row.plugin if plugin else row.used or row.plugin for row in setup.rail_books}
    return {name: setup.ledgers[book].budget(state.books[book]) for name, book in books.items()}


def relative(setup: Setup, state: State, found: dict[str, float]) -> dict[str, float]:
    """Budgets in units of what an episode must earn, by guardrail."""
    shares = {}
    for row in setup.rail_books:
        book = row.used or row.plugin
        value = setup.ledgers[book].value(state.books[book])
        shares[row.rail.name] = row.rail.relative(found[row.rail.name], value)
    return shares


def nearest(setup: Setup, state: State, found: dict[str, float]) -> str:
    """The guardrail that is nearest to its line, in units of what it requires."""
    if len(found) == 1:
        return next(iter(found))
    shares = relative(setup, state, found)
    return min(shares, key=shares.__getitem__)


def believed(setup: Setup, state: State) -> float:
    """The budget that the collector's own ledger believes, of the guardrail that is nearest to its line."""
    found = budgets(setup, state)
    return found[nearest(setup, state, found)]


# -- what the trials that are out are expected to do ---------------------------------------------------------

UNIT = 2.0**40  # of one visit


class Footprint(NamedTuple):
    """One trial: the cells node * A + action that it may visit and how often, and its play without them."""

    kind: str
    cells: Any
    visits: Any
    pairs: Any
    play: Play


class Outstanding:
    """Sums over the trials that are out, which an ask reads and never adds up anew.

    Expected visits are integers, in units of 2^-40: adding and taking away are exact, in any order, and
    nothing is left when no trial is out.
    """

    def __init__(self, setup: Setup, reach: Any = None) -> None:
        mdp, self.grid, self.reach = setup.problem.mdp, setup.stage.grid, reach
        self.shape = (len(setup.stage.nodes.state), mdp.actions)
        self.trials: dict[int, Footprint] = {}
        self.visits: dict[str, Any] = {}
        self.expecting = np.zeros((mdp.states, mdp.actions), dtype=np.int64)  # trials that may visit a pair
        self._expecting = self.expecting.ravel()

    def add(self, number: int, kind: str, play: Play) -> None:
        """A trial goes out."""
        if self.grid.mdp.known:
            walked = play.once(_walked)
        else:  # as the plan says where episodes go
            flow = play.flow * (0.0 if self.reach is None else self.reach[:, None])
            walked = _visited(flow, self.grid.by_state(flow))
        self.trials[number] = found = Footprint(kind, *walked, play.light)
        self._count(found, 1)

    def take(self, number: int) -> Play:
        """A trial is out no longer; its play."""
        found = self.trials.pop(number)
        self._count(found, -1)
        return found.play

    def _count(self, trial: Footprint, sign: int) -> None:
        if trial.kind not in self.visits:
            self.visits[trial.kind] = np.zeros(self.shape[0] * self.shape[1], dtype=np.int64)
        count_out(self.visits[trial.kind], trial.cells, trial.visits, self._expecting, trial.pairs, sign)

    def expected(self, kinds: tuple[str, ...]) -> Floats | None:
        """Expected visits of the trials of these kinds, [nodes, A]; None where none is out."""
        if not self.trials:
            return None
        total: Any = sum(self.visits[kind] for kind in kinds if kind in self.visits)
        result: Floats = np.asarray(total) / UNIT
        return result.reshape(self.shape) if result.ndim else result


def _walked(play: Play) -> tuple[Any, Any, Any]:
    return _visited(play.flow, play.weights)


def _visited(flow: Floats, weights: Floats) -> tuple[Any, Any, Any]:
    """The cells of a flow, how often, and the pairs that have weight."""
    flat = flow.ravel()
    cells = np.flatnonzero(flat)
    return cells, np.rint(UNIT * flat[cells]).astype(np.int64), np.flatnonzero(weights)


@brief
def count_out(visits: Any, cells: Any, amounts: Any, expecting: Any, pairs: Any, sign: int) -> None:
    """Add a trial, or take it away."""
    for i in range(len(cells)):
        visits[cells[i]] += sign * amounts[i]
    for p in pairs:
        expecting[p] += sign
