"""Gymnasium's environments as models: by their table of transitions, or without one."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver.data.spaces import BARE, REWARD, Guardrails, Numbering, Step, Watched, columns, opened, steps_of
from saver.errors import InvalidProblem
from saver.problem import Gaussian, Mdp, Unknown, World, checks
from saver.problem.mdp import GymTable

HARMLESS = (  # of Gymnasium's wrappers: they change no observation, action or reward
    "TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics", "RecordVideo",
    "HumanRendering", "RenderCollection",
)  # fmt: skip


def from_gymnasium(env: Any, *, horizon: int | None = None, discount: float = 1.0, start: Any = None) -> Mdp:
    """The model of an environment that has a table of transitions, such as FrozenLake, Taxi, CliffWalking.

    States keep their numbers. What ends an episode leads to one terminal state, which is added: some
    environments enter a state in one move as an end, in another not.

    Args:
        env: an environment, or the id of one; `env.unwrapped.P[state][action]` must be a list of
            (probability, next state, reward, done).
        horizon: the most steps of an episode; that of the environment if it has one.
        discount: in (0, 1].
        start: a distribution over the states, or one; `env.unwrapped.initial_state_distrib` if it has that.
    """
    return _model(env, horizon, discount, start)[1]


def world_from_gymnasium(
    env: Any,
    guardrails: Guardrails = REWARD,
    *,
    horizon: int | None = None,
    discount: float = 1.0,
    start: Any = None,
) -> World:
    """The truth of an environment that has a table: for `diagnose`, `simulate`, and values of policies.

    `world.mdp` is the model of `from_gymnasium`. Rewards and guardrails have the means and variances of the
    table, and are drawn from it, together with the next state. `guardrails` are those of `play`, with an
    empty `info`.
    """
    watched = Watched(guardrails)
    table, mdp = _model(env, horizon, discount, start)
    seen = [
        watched.see(Step(int(s), int(a), float(reward), int(to), bool(done), {}))
        for s, a, to, _, reward, done in table.rows
    ]
    guarded = columns(seen)
    named = isinstance(guarded, dict)
    laws = {name: _law(table, one) for name, one in guarded.items()} if named else _law(table, guarded)
    return World(mdp, _law(table, table.rows[:, 4]), laws, outcome=TableOutcome(table, seen))


def unknown_from_gymnasium(
    env: Any, *, horizon: int | None = None, discount: float = 1.0, start: Any = None
) -> Unknown:
    """The place of a model that an environment has no table of, such as Blackjack: moves are learned.

    States are the elements of the observation space, actions those of the action space; where an element is
    no number from 0, its name is what Python writes: "(13, 10, 0)" in Blackjack.
    """
    with opened(env) as found:
        states = Numbering(found.observation_space, "observation")
        actions = Numbering(found.action_space, "action")
        return Unknown(
            states.count, actions.count, _horizon(found, horizon), discount=discount, start=start,
            state_names=states.names, action_names=actions.names,
        )  # fmt: skip


class TableOutcome:
    """What a step in a table shows, given where it led: one of its rows that lead there, by their chances."""

    def __init__(self, table: GymTable, seen: list[Any]) -> None:
        self.over, self.chances = table.states, table.rows[:, 3]
        self.shown = list(zip(table.rows[:, 4].tolist(), seen, strict=True))
        self.rows: dict[tuple[int, int, int], list[int]] = {}
        for i, (s, a, to, p, _, done) in enumerate(table.rows.tolist()):
            if p > 0:
                self.rows.setdefault((int(s), int(a), self.over if done else int(to)), []).append(i)

    def __call__(
        self, rng: np.random.Generator, step: int, state: int, action: int, following: int
    ) -> tuple[float, Any]:
        rows = self.rows[state, action, following if following >= 0 else self.over]
        if len(rows) == 1:
            return self.shown[rows[0]]
        chances = self.chances[rows]
        return self.shown[int(rng.choice(rows, p=chances / chances.sum()))]


def _model(env: Any, horizon: int | None, discount: float, start: Any) -> tuple[GymTable, Mdp]:
    with opened(env) as found:
        check_wrappers(found)
    bare, name = found.unwrapped, _name(found)  # its table stays when it is closed
    if not hasattr(bare, "P"):
        raise InvalidProblem(
            f"{name} has no table of transitions, env.unwrapped.P; learn them: "
            "saver.data.unknown_from_gymnasium(env, horizon=...) gives a saver.Unknown"
        )
    table = GymTable.of(bare.P)
    if start is None:
        start = getattr(bare, "initial_state_distrib", None)
    if start is None:
        raise InvalidProblem(f"{name} has no initial_state_distrib; give start=")
    where = np.asarray(start, dtype=float) if np.ndim(start) else np.eye(table.states)[start]
    return table, table.model(_horizon(found, horizon), where, discount=discount)


def check_wrappers(env: Any) -> None:
    """Refuse what stands between an environment and its table and may change what its steps give."""
    while env is not env.unwrapped:
        if type(env).__name__ not in HARMLESS or not type(env).__module__.startswith("gymnasium."):
            raise InvalidProblem(
                f"{_name(env)} is wrapped in {type(env).__name__}, and its table says what it does without; "
                "give env.unwrapped (and play in it), or learn what the wrapped one does: "
                "saver.data.unknown_from_gymnasium(env, horizon=...)"
            )
        env = env.env


def _horizon(env: Any, asked: int | None) -> int:
    longest = steps_of(env)
    if asked is None:
        if longest is None:
            raise InvalidProblem(f"{_name(env)} has no max_episode_steps; give horizon=")
        return longest
    asked = checks.whole("horizon", asked, 1)
    if longest is not None and asked > longest:
        raise InvalidProblem(
            f"horizon is {asked}, but {_name(env)} stops after {longest} steps; make it by "
            f"{BARE.format(asked)}, or give a shorter horizon"
        )
    return asked


def _name(env: Any) -> str:
    return env.spec.id if getattr(env, "spec", None) is not None else type(env.unwrapped).__name__


def _law(table: GymTable, column: Any) -> Gaussian:
    """The mean and the variance of each pair; the added state has neither."""
    values = np.array(column, dtype=np.float64)
    mean = table.mean(values)
    s, a = table.rows[:, 0].astype(int), table.rows[:, 1].astype(int)
    return Gaussian(mean, table.mean((values - mean[s, a]) ** 2))
