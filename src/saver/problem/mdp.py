"""The model: transitions, known (`Mdp`) or to be learned (`Unknown`), a horizon, a discount, a start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver._types import Floats, Ints
from saver.errors import InvalidData, InvalidProblem
from saver.problem import checks, convert
from saver.problem.checks import read_only
from saver.problem.codec import portable
from saver.problem.model import Model
from saver.problem.moving import rated, reached

Edge = tuple[int | str, int | str, int | str, float]
Moves = Mapping[int, Mapping[int, list[tuple[float, int, float, bool]]]]  # of Gymnasium


@portable("mdp")
@dataclass(frozen=True, eq=False)
class Mdp(Model):
    """A finite-horizon Markov decision process without its rewards.

    A row of `transitions` sums to 1, or to 0: then the episode ends after that action. Entering a terminal
    state ends the episode too, and no action is taken in it. An episode lasts at most `horizon` steps.

    Attributes:
        transitions: [S * A, S] sparse; the constructor also takes a dense [S, A, S].
        horizon: L, the largest number of steps of an episode.
        discount: in (0, 1].
        start: [S] distribution; the constructor also takes one state, by its number or name.
        terminal: the states that end an episode; the constructor also takes their names.
        available: [S, A] booleans; False marks an action that is missing in that state.
        state_names: one for each state, all different, or None; they may be said in the place of numbers.
        action_names: one for each action, likewise.
    """

    transitions: Any
    horizon: int
    _: KW_ONLY
    discount: float = 1.0
    start: Any = 0
    terminal: Any = ()
    available: Any = None
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        vars(self)["transitions"] = convert.transition_rows(self.transitions)
        self._settle()
        vars(self)["terminal"] = convert.terminal_states(self.terminal, self.states, self.state_names)
        self._check_rows()
        self.check_actions()
        for state in self.terminal:
            if self.start[state] > 0:
                raise InvalidProblem(
                    f"{self.state_label(state)} is terminal but episodes start in it with probability "
                    f"{self.start[state]:g}; an episode needs at least one action"
                )

    @classmethod
    def from_edges(
        cls, edges: Iterable[Edge] | ArrayLike, states: int, actions: int, horizon: int, **options: Any
    ) -> Mdp:
        """A model from (state, action, next_state, probability) rows; equal edges add up.

        Memory is proportional to the number of edges. `options` are those of the constructor; with
        `state_names` and `action_names` edges may say labels.
        """
        states, actions = convert.counts_of(states, actions)
        names = options.get("state_names"), options.get("action_names")
        rows = convert.edge_table(edges, states, actions, *names)
        pair = rows[:, 0].astype(np.int64) * actions + rows[:, 1].astype(np.int64)
        shape = (states * actions, states)
        matrix = sparse.coo_array((rows[:, 3], (pair, rows[:, 2].astype(np.int64))), shape=shape)
        return cls(matrix.tocsr(), horizon, **options)

    @cached_property
    def states(self) -> int:
        """S."""
        return int(self.transitions.shape[1])

    @cached_property
    def actions(self) -> int:
        """A."""
        return int(self.transitions.shape[0]) // self.states

    @cached_property
    def flow(self) -> Any:
        """`transitions` with only the moves after which the episode goes on, [S * A, S] sparse."""
        if not self.terminal:
            return self.transitions
        keep = np.ones(self.states)
        keep[list(self.terminal)] = 0.0
        flow = sparse.diags_array(np.repeat(keep, self.actions)) @ self.transitions
        flow = (flow @ sparse.diags_array(keep)).tocsr()
        flow.eliminate_zeros()
        return convert.read_only(flow)

    @cached_property
    def ending(self) -> Floats:
        """With which probability an episode ends after each pair from which it may also go on, [S * A].

        What a row of moves that were seen lacks to 1; the constructor takes no such row.
        """
        sums, lengths = np.asarray(self.transitions.sum(axis=1)).ravel(), np.diff(self.transitions.indptr)
        lack = 1.0 - sums
        return checks.frozen(np.where((lack > checks.tolerance(lengths)) & (lengths > 0), lack, 0.0))

    @cached_property
    def layers(self) -> tuple[Ints, ...]:
        """For each step the states that some behaviour can be in; shorter than L if all episodes are."""
        flow, start = self.flow, np.flatnonzero(self.start > 0)
        states, *ends = reached(flow.indptr, flow.indices, read_only(self.available), start, self.horizon)
        begins, ends = (each.tolist() for each in ends)
        distinct = {i: states[i:j] for i, j in dict(zip(begins, ends, strict=True)).items()}
        return tuple(distinct[i] for i in begins)

    def successors(self, state: int, action: int) -> Ints:
        """The states that an action can lead to, terminal ones too; none where the episode ends after it."""
        pair = state * self.actions + action
        begin, end = self.transitions.indptr[pair : pair + 2]
        return self.transitions.indices[begin:end]

    def _check_rows(self) -> None:
        sums, lengths = np.asarray(self.transitions.sum(axis=1)).ravel(), np.diff(self.transitions.indptr)
        bad = np.flatnonzero((np.abs(sums - 1.0) > checks.tolerance(lengths)) & (sums != 0.0))
        if len(bad):
            raise InvalidProblem(
                f"transitions of {self.pair_label(*divmod(int(bad[0]), self.actions))} sum to "
                f"{sums[bad[0]]:.10g}; they must sum to 1, or to 0 where the episode ends after that action"
            )
        moving = np.flatnonzero((sums > 0) & ~self.available.ravel())
        if len(moving):
            raise InvalidProblem(
                f"{self.pair_label(*divmod(int(moving[0]), self.actions))} is marked as missing but has "
                "transitions; remove them or make it available"
            )


@portable("unknown")
@dataclass(frozen=True, eq=False)
class Unknown(Model):
    """The place of an `Mdp` whose transitions are learned, and its start too where none is given.

    Any state may follow any action, and an episode may end after any: a move that was never seen is data.

    Attributes:
        states: S.
        actions: A.
        start: [S] distribution, or one state, by its number or name; None: learned.
        horizon, discount, available, state_names, action_names: as of `Mdp`.
    """

    states: Any
    actions: Any
    horizon: int
    _: KW_ONLY
    discount: float = 1.0
    start: Any = None
    available: Any = None
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None

    known = False
    terminal = ()

    def __post_init__(self) -> None:
        states, actions = convert.counts_of(self.states, self.actions)
        vars(self).update(states=states, actions=actions)
        self._settle()
        self.check_actions()

    @cached_property
    def layers(self) -> tuple[Ints, ...]:
        """For each step the states that an episode may be in: all, but for a start that is given."""
        every = np.arange(self.states)
        first = every if self.start is None else np.flatnonzero(self.start)
        return (first, *[every] * (self.horizon - 1))

    @property
    def flow(self) -> Any:
        """No move is known: [S * A, S], empty."""
        return sparse.csr_array((self.states * self.actions, self.states))

    def believed(self, moves: Any, ends: Floats, starts: Floats) -> Mdp:
        """The model of what was seen: counts of moves [S * A, S], of ends [S * A], of starts [S].

        What a row of its frequencies lacks to 1 ends the episode. Nothing is checked, by scipy neither: it is
        made for every plan and every answer.
        """
        rates = rated(read_only(moves.indptr), read_only(moves.data), read_only(ends))
        rows = copy(moves)
        rows.data, rows.indices, rows.indptr = rates, moves.indices.copy(), moves.indptr.copy()
        start, total = self.start, float(np.sum(starts))
        if start is None:
            start = checks.frozen(starts / total if total else np.full(self.states, 1.0 / self.states))
        made = object.__new__(Mdp)
        vars(made).update(
            transitions=convert.read_only(rows), horizon=self.horizon, discount=self.discount, start=start,
            terminal=(), available=self.available, state_names=self.state_names,
            action_names=self.action_names, uniform=self.uniform,
        )  # fmt: skip
        return made


# -- the transition tables of Gymnasium's toy environments, without needing Gymnasium --


@dataclass(frozen=True, eq=False)
class GymTable:
    """`env.unwrapped.P[state][action]`, lists of (probability, next state, reward, done), as arrays.

    Moves that are done lead to one state that is added, as in `saver.data.from_gymnasium`.
    """

    states: int  # states, actions: how many; the added state is number `states`
    actions: int
    rows: Floats  # (state, action, next state, probability, reward, done), [n, 6]

    @classmethod
    def of(cls, P: Moves) -> GymTable:
        """From `env.unwrapped.P`."""
        try:
            states, actions = len(P), len(P[0])
            rows: Any = np.array(
                [
                    (s, a, to, p, reward, done)
                    for s in range(states)
                    for a in range(actions)
                    for p, to, reward, done in P[s][a]
                ],
                dtype=np.float64,
            )
        except (KeyError, TypeError, ValueError) as cause:
            raise InvalidData(
                f"the table is no P[state][action] = [(probability, next state, reward, done)]: {cause!r}"
            ) from None
        return cls(states, actions, rows)

    def model(self, horizon: int, start: Any, *, lasts: bool = False, **options: Any) -> Mdp:
        """The model: what is done leads to the added state, which ends the episode or `lasts`."""
        s, a, to, p, _, done = self.rows.T
        over = self.states
        edges = np.column_stack([s, a, np.where(done > 0, over, to), p])
        if lasts:
            stay = [(over, action, over, 1.0) for action in range(self.actions)]
            edges = np.concatenate([edges, np.array(stay)])
        where = np.append(np.asarray(start, dtype=float), 0.0)
        ends = () if lasts else (over,)
        return Mdp.from_edges(edges, over + 1, self.actions, horizon, start=where, terminal=ends, **options)

    def mean(self, values: Floats) -> Floats:
        """The mean over its rows of a number for each row, [states + 1, A]; 0 in the added state."""
        s, a, _, p, _, _ = self.rows.T
        table = np.zeros((self.states + 1, self.actions))
        np.add.at(table, (s.astype(int), a.astype(int)), p * values)
        return table

    def optimal(self, discount: float, tolerance: float = 1e-12) -> Floats:
        """Q of the best policy for the discounted reward, without a horizon, [states + 1, A]."""
        _, _, to, _, reward, done = self.rows.T
        goes = np.where(done > 0, self.states, to).astype(int)
        Q = np.zeros((self.states + 1, self.actions))
        while True:
            better = self.mean(reward + discount * np.max(Q, axis=1)[goes])
            if np.max(np.abs(better - Q)) <= tolerance:
                return better
            Q = better


def greedy(Q: Floats, share: float) -> Floats:
    """The best action with probability `share`, ties to the lowest, and the rest evenly over all actions."""
    states, actions = Q.shape
    policy = np.full(Q.shape, (1.0 - share) / actions)
    policy[np.arange(states), np.argmax(Q, axis=1)] += share
    return policy
