"""Gymnasium's environments as models: by their table of transitions, or without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from saver._types import Floats
from saver.data.gym import opened
from saver.data.spaces import Numbering
from saver.data.watching import REWARD, Guardrails, Step, check_guardrails, observed
from saver.errors import InvalidProblem
from saver.problem import Gaussian, Mdp, Unknown, World, checks
from saver.problem.gymtable import GymTable

BARE = "gymnasium.make(..., max_episode_steps={})"
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
    with opened(env) as found:
        return _model(found, horizon, discount, start)[1]


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
    check_guardrails(guardrails)
    with opened(env) as found:
        table, mdp = _model(found, horizon, discount, start)
    steps = [
        Step(int(s), int(a), float(reward), int(to), bool(done), {})
        for s, a, to, _, reward, done in table.rows
    ]
    seen = [observed(guardrails, step) for step in steps]
    laws: Any = {}
    for name in guardrails if isinstance(guardrails, Mapping) else [None]:
        values = np.array([item if name is None else item[name] for item in seen], dtype=np.float64)
        laws[name] = _law(table, values)
    constraint = laws if isinstance(guardrails, Mapping) else laws[None]
    reward = _law(table, table.rows[:, 4])
    return World(mdp, reward, constraint, outcome=TableOutcome(table, seen))


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
            states.count,
            actions.count,
            _horizon(found, horizon),
            discount=discount,
            start=start,
            state_names=states.names,
            action_names=actions.names,
        )


class TableOutcome:
    """What a step in a table shows, given where it led: one of its rows that lead there, by their chances."""

    def __init__(self, table: GymTable, seen: list[Any]) -> None:
        self.over, self.seen = table.states, seen
        self.rewards, self.chances = table.rows[:, 4].tolist(), table.rows[:, 3].tolist()
        self.rows: dict[tuple[int, int, int], list[int]] = {}
        for i, (s, a, to, p, _, done) in enumerate(table.rows.tolist()):
            if p > 0:
                self.rows.setdefault((int(s), int(a), self.over if done else int(to)), []).append(i)

    def __call__(
        self, rng: np.random.Generator, step: int, state: int, action: int, following: int
    ) -> tuple[float, Any]:
        rows = self.rows[state, action, following if following >= 0 else self.over]
        if len(rows) > 1:
            chances = np.array([self.chances[row] for row in rows])
            row = int(rng.choice(rows, p=chances / chances.sum()))
        else:
            row = rows[0]
        return self.rewards[row], self.seen[row]


def _model(env: Any, horizon: int | None, discount: float, start: Any) -> tuple[GymTable, Mdp]:
    bare = env.unwrapped
    check_wrappers(env)
    if not hasattr(bare, "P"):
        raise InvalidProblem(
            f"{_name(env)} has no table of transitions, env.unwrapped.P; learn them: "
            "saver.data.unknown_from_gymnasium(env, horizon=...) gives a saver.Unknown"
        )
    table = GymTable.of(bare.P)
    if start is None:
        start = getattr(bare, "initial_state_distrib", None)
    if start is None:
        raise InvalidProblem(f"{_name(env)} has no initial_state_distrib; give start=")
    where = np.asarray(start, dtype=float) if np.ndim(start) else np.eye(table.states)[start]
    return table, table.model(_horizon(env, horizon), where, discount=discount)


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
    if asked is not None:
        asked = checks.whole("horizon", asked, 1)
    if asked is None and longest is None:
        raise InvalidProblem(f"{_name(env)} has no max_episode_steps; give horizon=")
    if asked is not None and longest is not None and asked > longest:
        raise InvalidProblem(
            f"horizon is {asked}, but {_name(env)} stops after {longest} steps; make it by "
            f"{BARE.format(asked)}, or give a shorter horizon"
        )
    return int(longest if asked is None else asked)  # type: ignore[arg-type]


def steps_of(env: Any) -> int | None:
    """After how many steps an environment stops by itself; None where nothing is said."""
    spec = getattr(env, "spec", None)
    longest = None if spec is None else spec.max_episode_steps
    return None if longest is None else int(longest)


def _name(env: Any) -> str:
    return env.spec.id if getattr(env, "spec", None) is not None else type(env.unwrapped).__name__


def _law(table: GymTable, values: Floats) -> Gaussian:
    """The mean and the variance of each pair; the added state has neither."""
    mean = table.mean(values)
    s, a = table.rows[:, 0].astype(int), table.rows[:, 1].astype(int)
    return Gaussian(mean, table.mean((values - mean[s, a]) ** 2))
