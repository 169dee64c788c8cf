"""What every model has, its transitions known or not: states, actions, steps, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief, inlined, jit
from saver._types import Bools, Floats, Ints
from saver.errors import InvalidData, InvalidProblem
from saver.problem import checks, convert
from saver.problem.checks import read_only
from saver.problem.convert import Labels

LONGEST = 1_000_000  # steps
END = -1  # a final state: the last action ended the episode
NOT_SEEN = -2  # nobody saw where the last action led


class Model(checks.Frozen):
    """The parts of a model that no transition is needed for; `layers` and `flow` are a subclass's own."""

    known = True  # whether the transitions are

    states: Any
    actions: Any
    transitions: Any
    horizon: int
    discount: float
    start: Any
    terminal: Any
    available: Any
    state_names: Sequence[str] | None
    action_names: Sequence[str] | None
    layers: Any  # for each step the states that some behaviour can be in
    flow: Any  # the moves after which an episode goes on, [S * A, S] sparse

    def _settle(self) -> None:
        """Check what every model is made of, its states and actions counted before."""
        shape = self.states, self.actions
        names = convert.names_of("state_names", self.state_names, self.states)
        learned = self.start is None and not self.known
        vars(self).update(
            horizon=checks.whole("horizon", self.horizon, 1, LONGEST),
            discount=checks.between("discount", self.discount, 0.0, 1.0, closed=(False, True)),
            start=None if learned else convert.start_distribution(self.start, self.states, names),
            available=convert.availability(self.available, shape),
            state_names=names,
            action_names=convert.names_of("action_names", self.action_names, self.actions),
        )

    @cached_property
    def uniform(self) -> Floats:
        """The policy that takes every available action alike, [S, A]."""
        return checks.frozen(self.available / self.available.sum(axis=1, keepdims=True))

    @cached_property
    def factors(self) -> Floats:
        """discount^t, [L]."""
        return checks.frozen(self.discount ** np.arange(self.horizon, dtype=np.float64))

    @cached_property
    def reachable(self) -> Bools:
        """[S], the states that some behaviour can be in within the horizon."""
        mask = np.zeros(self.states, dtype=bool)
        for states in self.layers:
            mask[states] = True
        return mask

    @cached_property
    def paths(self) -> Paths:
        """What `fault` needs."""
        ends, rows = np.zeros(self.states, dtype=bool), self.transitions if self.known else self.flow
        ends[list(self.terminal)] = True
        start = np.ones(self.states) if self.start is None else np.asarray(self.start)
        parts = rows.indptr, rows.indices, start, self.available, ends
        return Paths(self.known, self.horizon, *map(read_only, parts))

    def longest(self, complete: bool) -> int:
        """How many steps an episode may have; of one that was cut off, before it has ended by itself."""
        return self.horizon if complete else len(self.layers)

    def check_path(
        self, states: Ints, actions: Ints, final_state: int | None = None, complete: bool = True
    ) -> None:
        """Refuse an episode that is impossible, or that stops before its end and is said to be complete."""
        final = NOT_SEEN if final_state is None else final_state
        why, t = fault(self.paths, states, actions, final, complete, self.longest(complete))
        if why != FINE:
            raise InvalidData(self._refusal(why, t, states, actions, final))

    def _refusal(self, why: int, t: int, states: Ints, actions: Ints, final: int) -> str:
        """What is wrong, in words."""
        if why == STATE:
            return f"states[{t}] is {states[t]}; it must be from 0 to {self.states - 1}"
        if why == ACTION:
            return f"actions[{t}] is {actions[t]}; it must be from 0 to {self.actions - 1}"
        steps, L = len(states), self.horizon
        if why == LENGTH:
            return f"the episode has {steps} steps; it must have 1 to {L}, the horizon"
        here, move = self.state_label(states[t]), self.move_label(t, states[t], actions[t])
        onward = self.state_label(states[t + 1]) if t + 1 < steps else ""
        return {
            START: f"the episode starts in {here}, which has probability 0",
            MISSING: f"{move} is missing from the model",
            TERMINAL: f"{onward} at step {t + 1} is terminal: no action is taken in it; leave it out",
            MOVE: f"{move} cannot lead to {onward} in this model; where moves are to be learned, give "
            "the problem a saver.Unknown",
            UNKNOWN: f"final_state is {final}; it must be from 0 to {self.states - 1}",
            EARLY: f"final_state is {final} after {steps} of {L} steps; tell saver.END if the episode "
            "ended there, or complete=False if it was cut off (a history holds whole episodes: leave it out)",
            AWAY: f"final_state is {final}, but {move} cannot lead there",
            ONWARD: f"final_state says that the episode ended, but {move} always goes on",
            STOPS: f"the episode stops after step {t}, but {move} always goes on and the horizon is "
            f"{L}; tell the whole episode, or complete=False if it was cut off",
            WHOLE: f"the episode ended with {move}: nothing was cut off; tell it without complete=False",
        }[why]

    def check_actions(self) -> None:
        """Refuse a state in which nothing can be done."""
        empty = np.flatnonzero(~self.available.any(axis=1))
        if len(empty):
            raise InvalidProblem(
                f"{self.state_label(empty[0])} has no available action; at least one is needed"
            )

    def pairs(self, states: Ints) -> Ints:
        """The rows s * A + a that belong to `states`."""
        return (states[:, None] * self.actions + np.arange(self.actions)).ravel()

    @cached_property
    def state_labels(self) -> Labels:
        """What states may be called."""
        return Labels("state", self.state_names)

    @cached_property
    def action_labels(self) -> Labels:
        """What actions may be called."""
        return Labels("action", self.action_names)

    @property
    def pair_names(self) -> list[str] | None:
        """What pictures call the pairs, s * A + a: "state, action"; None where nothing has a name."""
        if self.state_names is None and self.action_names is None:
            return None
        said, done = self.state_labels.said, self.action_labels.said
        pairs = ((s, a) for s in range(self.states) for a in range(self.actions))
        return [f"{done(a)}" if self.states == 1 else f"{said(s)}, {done(a)}" for s, a in pairs]

    def state_label(self, state: int) -> str:
        """How messages call a state."""
        return f"state {state}" + (f" ({self.state_names[state]})" if self.state_names else "")

    def action_label(self, action: int) -> str:
        """How messages call an action."""
        return f"action {action}" + (f" ({self.action_names[action]})" if self.action_names else "")

    def pair_label(self, state: int, action: int) -> str:
        """How messages call an action in a state."""
        return f"{self.action_label(action)} in {self.state_label(state)}"

    def move_label(self, step: int, state: int, action: int) -> str:
        """How messages call what was done at a step."""
        return f"{self.pair_label(state, action)} at step {step}"


# -- what an episode may be, compiled; `Model.check_path` says it in words --

FINE, STATE, ACTION, LENGTH, START, MISSING, TERMINAL, MOVE, UNKNOWN, EARLY, AWAY, ONWARD, STOPS, WHOLE = (
    range(14)
)


class Paths(NamedTuple):
    """A model as `fault` reads it; where no move is `known`, any state may follow, and any action may end."""

    known: bool
    horizon: int
    indptr: Any  # transitions, rows are pairs s * A + a
    indices: Any
    start: Any  # [S]
    available: Any  # [S, A]
    terminal: Any  # [S]


@brief
def fault(paths: Any, states: Any, actions: Any, final: int, complete: bool, longest: int) -> Any:
    """What is wrong first with an episode, and at which step; one that is not `complete` was cut off.

    No behaviour takes more than `longest` steps.
    """
    S, A = paths.available.shape
    for t in range(len(states)):
        if not 0 <= states[t] < S:
            return STATE, t
    for t in range(len(states)):
        if not 0 <= actions[t] < A:
            return ACTION, t
    if not 1 <= len(states) <= paths.horizon:
        return LENGTH, 0
    if paths.start[states[0]] == 0.0:
        return START, 0
    for t in range(len(states)):
        why = fault_of_step(paths, states, actions, t)
        if why != FINE:
            return why, t
    t = len(states) - 1
    return fault_of_end(paths, states[t] * A + actions[t], t, final, complete, longest), t


@inlined
def fault_of_step(paths: Any, states: Any, actions: Any, t: int) -> int:
    """What is wrong with an action, or with the move after it."""
    s, a = states[t], actions[t]
    if not paths.available[s, a]:
        return MISSING
    if not paths.known or t + 1 == len(states):
        return FINE
    if paths.terminal[states[t + 1]]:
        return TERMINAL
    return FINE if leads(paths, s * paths.available.shape[1] + a, states[t + 1]) else MOVE


@inlined
def leads(paths: Any, pair: int, to: int) -> bool:
    """Whether an action can lead to a state."""
    for e in range(paths.indptr[pair], paths.indptr[pair + 1]):  # noqa: SIM110  (a generator is slow here)
        if paths.indices[e] == to:
            return True
    return False


@inlined
def fault_of_end(paths: Any, pair: int, t: int, final: int, complete: bool, longest: int) -> int:
    """What is wrong with an end at step t."""
    begin, end, over = paths.indptr[pair], paths.indptr[pair + 1], 0
    for e in range(begin, end):
        over += paths.terminal[paths.indices[e]]
    can_end, inside = begin == end or over > 0, 0 <= final < len(paths.terminal)
    ended = final == END or (inside and paths.terminal[final])
    if final >= 0 and not inside and not paths.known:
        return UNKNOWN
    if not complete:
        always_ends = paths.known and over == end - begin
        return WHOLE if t + 1 >= longest or always_ends or ended else FINE
    if final >= 0 and paths.known and not leads(paths, pair, final):
        return AWAY
    if final == END and not can_end:
        return ONWARD
    if t + 1 < paths.horizon and not (can_end if final < 0 else ended):
        return STOPS if paths.known else EARLY
    return FINE


@jit
def faulty(
    paths: Any, longest: int, complete: Any, offsets: Any, states: Any, actions: Any, finals: Any
) -> Any:
    """Of each of many episodes, one after the other, whether anything is wrong with it."""
    found = np.zeros(len(finals), dtype=np.bool_)
    for i in range(len(finals)):
        at = slice(offsets[i], offsets[i + 1])
        found[i] = fault(paths, states[at], actions[at], finals[i], complete[i], longest)[0] != FINE
    return found
