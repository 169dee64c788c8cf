"""The simulated truth (`World`), and a problem asked in it (`Scenario`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from saver.errors import InvalidProblem
from saver.problem import bellman, checks
from saver.problem.codec import TYPES, pack, portable
from saver.problem.laws import Law
from saver.problem.mdp import Mdp
from saver.problem.statement import Problem

SHARED = "shared"  # an outcome: one draw is both the reward and the constraint
Outcome = Callable[[np.random.Generator, int, int, int, int], tuple[float, float]]


@portable("world")
@dataclass(frozen=True, eq=False)
class World:
    """The simulated truth: a model with the laws of its rewards and constraints.

    Attributes:
        mdp: the true model.
        reward: the law of a reward in each pair.
        constraint: the law of a constraint observation in each pair.
        outcome: who draws, where not the two laws, one after the other and each on its own. "shared": one
            draw of the reward's law is both. A function `outcome(rng, step, state, action, next_state)` gives
            (reward, constraint), for observations that depend on each other or on the next state, which is
            `saver.END` where the action ends the episode; the two laws then say what is true on average.
    """

    mdp: Mdp
    reward: Law
    constraint: Law
    _: KW_ONLY
    outcome: Outcome | str | None = None

    def __post_init__(self) -> None:
        checks.kind("mdp", self.mdp, Mdp)
        shape = (self.mdp.states, self.mdp.actions)
        for name, law in (("reward", self.reward), ("constraint", self.constraint)):
            if isinstance(law, type) or not isinstance(law, Law):
                raise InvalidProblem(
                    f"{name} is {law!r}; it must be a law such as saver.Gaussian(mean, variance)"
                )
            if np.shape(law.mean) != shape:
                raise InvalidProblem(
                    f"{name} is for (states, actions) = {np.shape(law.mean)}; the model has {shape}"
                )
        if self.outcome == SHARED:
            if not _same(self.reward, self.constraint):
                raise InvalidProblem("outcome is 'shared', so constraint must be the very law that reward is")
            object.__setattr__(self, "constraint", self.reward)
        if not (self.outcome is None or self.outcome == SHARED or callable(self.outcome)):
            raise InvalidProblem(
                f"outcome is {self.outcome!r}; it must be 'shared', or a function of "
                "(rng, step, state, action, next_state) that gives (reward, constraint)"
            )

    def value(self, policy: ArrayLike) -> float:
        """The expected discounted reward of an episode."""
        return bellman.value(self.mdp, policy, self.reward.mean)

    def constraint_value(self, policy: ArrayLike) -> float:
        """V_c, the expected discounted constraint value of an episode."""
        return bellman.value(self.mdp, policy, self.constraint.mean)


@portable("scenario")
@dataclass(frozen=True, eq=False)
class Scenario:
    """A world, the problem asked in it, and how many episodes are run by default.

    World and problem must agree in size only: a problem that is wrong about its world can be studied too.
    """

    name: str
    world: World
    problem: Problem
    episodes: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidProblem(f"name is {self.name!r}; it must be a string")
        checks.kind("world", self.world, World)
        checks.kind("problem", self.problem, Problem)
        checks.whole("episodes", self.episodes, 1)
        ours, asked = self.world.mdp, self.problem.mdp
        if (ours.states, ours.actions, ours.horizon) != (asked.states, asked.actions, asked.horizon):
            raise InvalidProblem(
                f"world has (states, actions, horizon) = {(ours.states, ours.actions, ours.horizon)} but "
                f"problem has {(asked.states, asked.actions, asked.horizon)}; they must agree"
            )


def _same(one: Law, two: Law) -> bool:
    """Whether two laws are one, or say the same."""
    known = type(one) is type(two) and type(one) in TYPES.values()
    return one is two or (known and pack(one) == pack(two))
