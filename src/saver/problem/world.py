"""The simulated truth (`World`), and a problem asked in it (`Scenario`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.errors import InvalidProblem, no_such
from saver.problem import bellman, checks
from saver.problem.codec import TYPES, pack, portable
from saver.problem.guardrail import CONSTRAINT, Rail
from saver.problem.laws import Law
from saver.problem.mdp import Mdp
from saver.problem.statement import Problem

SHARED = "shared"  # an outcome: one draw is both the reward and the constraint
Outcome = Callable[[np.random.Generator, int, int, int, int], tuple[float, Any]]


@portable("world")
@dataclass(frozen=True, eq=False)
class World:
    """The simulated truth: a model with the laws of its rewards and constraints.

    Attributes:
        mdp: the true model.
        reward: the law of a reward in each pair.
        constraint: the law of a constraint observation in each pair; or one for each guardrail, {name: law}.
        outcome: who draws, where not the two laws, one after the other and each on its own. "shared": one
            draw of the reward's law is both. A function `outcome(rng, step, state, action, next_state)` gives
            (reward, constraint), for observations that depend on each other or on the next state, which is
            `saver.END` where the action ends the episode; the laws then say what is true on average. Of
            several guardrails the constraint is {name: number}.
    """

    mdp: Mdp
    reward: Law
    constraint: Any
    _: KW_ONLY
    outcome: Outcome | str | None = None

    def __post_init__(self) -> None:
        checks.kind("mdp", self.mdp, Mdp)
        shape = (self.mdp.states, self.mdp.actions)
        if isinstance(self.constraint, Mapping):
            object.__setattr__(self, "constraint", _named(self.constraint))
        for name, law in {"reward": self.reward, **self.laws}.items():
            if isinstance(law, type) or not isinstance(law, Law):
                raise InvalidProblem(
                    f"{name} is {law!r}; it must be a law such as saver.Gaussian(mean, variance)"
                )
            if np.shape(law.mean) != shape:
                raise InvalidProblem(
                    f"{name} is for (states, actions) = {np.shape(law.mean)}; the model has {shape}"
                )
        if self.outcome == SHARED:
            if isinstance(self.constraint, Mapping):
                raise InvalidProblem("outcome is 'shared', which is for one constraint; give one law")
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

    @property
    def laws(self) -> dict[str, Law]:
        """The laws of what is guarded, by name; "constraint" if there is one without."""
        return (
            dict(self.constraint) if isinstance(self.constraint, Mapping) else {CONSTRAINT: self.constraint}
        )

    def constraint_value(self, policy: ArrayLike, name: str | None = None) -> float:
        """V_c, the expected discounted constraint value of an episode; `name` says of which guardrail."""
        if name is None and len(self.laws) > 1:
            raise InvalidProblem(f"name is None, and there are {', '.join(self.laws)}; say which")
        if name is not None and name not in self.laws:
            raise no_such("guardrail", name, self.laws)
        law = next(iter(self.laws.values())) if name is None else self.laws[name]
        return bellman.value(self.mdp, policy, law.mean)


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
        laws, guarded = self.world.laws, [rail.name for rail in self.problem.rails]
        if len(laws) != len(guarded) or (len(laws) > 1 and set(laws) != set(guarded)):
            raise InvalidProblem(
                f"world has laws of {', '.join(laws)} but problem guards {', '.join(guarded)}; they must "
                "agree"
            )

    @property
    def laws(self) -> tuple[Law, ...]:
        """The laws of what is guarded, in the order of `problem.rails`."""
        laws = self.world.laws
        if len(laws) == 1:
            return tuple(laws.values())
        return tuple(laws[rail.name] for rail in self.problem.rails)

    @property
    def constraint_mean(self) -> dict[str, Any]:
        """The true constraint means as they are told, {name: [S, A]}."""
        return {rail.name: law.mean for rail, law in zip(self.problem.rails, self.laws, strict=True)}

    @cached_property
    def rails(self) -> tuple[Rail, ...]:
        """The guardrails as they are: a baseline value that the problem does not know is the true one."""
        found = []
        for rail, mean in zip(self.problem.rails, self.means, strict=True):
            true = bellman.value(self.world.mdp, self.problem.baseline, mean)
            found.append(rail if rail.exact else replace(rail, low=true, high=true, learned=False))
        return tuple(found)

    @cached_property
    def means(self) -> Floats:
        """The true constraint means, [guardrails, S, A]; costs negated."""
        signs = [rail.sign for rail in self.problem.rails]
        return np.array([sign * law.mean for sign, law in zip(signs, self.laws, strict=True)])


def _named(given: Mapping[Any, Any]) -> dict[str, Law]:
    if not given:
        raise InvalidProblem("constraint has no law; give one, or {name: law}")
    for name in given:
        if not isinstance(name, str) or not name:
            raise InvalidProblem(f"constraint has the name {name!r}; a name must be a text")
    return dict(given)


def _same(one: Law, two: Law) -> bool:
    """Whether two laws are one, or say the same."""
    known = type(one) is type(two) and type(one) in TYPES.values()
    return one is two or (known and pack(one) == pack(two))
