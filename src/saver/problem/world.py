"""The simulated truth (`World`) of laws, and a problem asked in it (`Scenario`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.errors import InvalidProblem, no_such
from saver.problem import bellman, checks
from saver.problem.codec import NAMES, pack, portable
from saver.problem.guardrail import CONSTRAINT, Rail
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
            checks.by_name("constraint", self.constraint, "law")
            vars(self)["constraint"] = dict(self.constraint)
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
            vars(self)["constraint"] = self.reward
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
        given = self.constraint
        return dict(given) if isinstance(given, Mapping) else {CONSTRAINT: given}

    def constraint_value(self, policy: ArrayLike, name: str | None = None) -> float:
        """V_c, the expected discounted constraint value of an episode; `name` says of which guardrail."""
        if name is None and len(self.laws) > 1:
            raise InvalidProblem(f"name is None, and there are {', '.join(self.laws)}; say which")
        name = next(iter(self.laws)) if name is None else name
        if name not in self.laws:
            raise no_such("guardrail", name, self.laws)
        return bellman.value(self.mdp, policy, self.laws[name].mean)


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
        true = (bellman.value(self.world.mdp, self.problem.baseline, mean) for mean in self.means)
        return tuple(
            rail if rail.exact else replace(rail, low=value, high=value, learned=False)
            for rail, value in zip(self.problem.rails, true, strict=True)
        )

    @cached_property
    def means(self) -> Floats:
        """The true constraint means, [guardrails, S, A]; costs negated."""
        return self.problem.means(self.constraint_mean)


def _same(one: Law, two: Law) -> bool:
    """Whether two laws are one, or say the same."""
    known = type(one) is type(two) and type(one) in NAMES
    return one is two or (known and pack(one) == pack(two))


# -- laws: the distribution of a reward or a constraint observation in each (state, action) --


@runtime_checkable
class Law(Protocol):
    """What a world needs to know of a distribution."""

    @property
    def mean(self) -> Any:
        """[S, A]."""

    @property
    def variance(self) -> Any:
        """[S, A]."""

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation; every call makes one draw."""


@portable("gaussian")
@dataclass(frozen=True, eq=False)
class Gaussian(checks.Frozen):
    """Normal observations. `variance` may be one number for all pairs."""

    mean: Any
    variance: Any

    def __post_init__(self) -> None:
        mean = checks.table("mean", self.mean)
        raw = checks.array("variance", self.variance)
        if raw.shape not in ((), mean.shape):
            raise InvalidProblem(f"variance has shape {raw.shape}; it must be one number or {mean.shape}")
        variance = np.broadcast_to(checks.within("variance", raw, 0.0), mean.shape)
        vars(self).update(mean=mean, variance=checks.frozen(variance))

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation."""
        return float(self.mean[state, action] + np.sqrt(self.variance[state, action]) * rng.standard_normal())


@portable("bernoulli")
@dataclass(frozen=True, eq=False)
class Bernoulli(checks.Frozen):
    """Observations 0 or 1."""

    mean: Any

    def __post_init__(self) -> None:
        vars(self)["mean"] = checks.within("mean", checks.table("mean", self.mean), 0.0, 1.0)

    @property
    def variance(self) -> Floats:
        """Mean (1 - mean)."""
        return self.mean * (1.0 - self.mean)

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation."""
        return float(rng.random() < self.mean[state, action])


@portable("empirical")
@dataclass(frozen=True, eq=False)
class Empirical(checks.Frozen):
    """Observations drawn with replacement from `samples[state][action]`, real data of each pair."""

    samples: Any

    def __post_init__(self) -> None:
        if not _is_listed(self.samples):
            raise InvalidProblem(
                "samples must be nested sequences: samples[state][action] is a list of numbers"
            )
        for s, row in enumerate(self.samples):
            if not _is_listed(row):
                raise InvalidProblem(f"samples[{s}] must hold a list of numbers for each action")
            actions = len(self.samples[0])
            if len(row) != actions:
                raise InvalidProblem(
                    f"samples[{s}] has {len(row)} actions but samples[0] has {actions}; they must agree"
                )
        vars(self)["samples"] = tuple(
            tuple(_cell(f"samples[{s}][{a}]", cell) for a, cell in enumerate(row))
            for s, row in enumerate(self.samples)
        )

    @cached_property
    def mean(self) -> Floats:
        """The average of each pair's samples."""
        return self._statistic(np.mean)

    @cached_property
    def variance(self) -> Floats:
        """The variance of a draw: divides by n."""
        return self._statistic(np.var)

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation."""
        cell = self.samples[state][action]
        return float(cell[int(rng.random() * len(cell))])

    def _statistic(self, of: Any) -> Floats:
        return checks.frozen(np.array([[of(cell) for cell in row] for row in self.samples]))


def _is_listed(given: Any) -> bool:
    return isinstance(given, Sequence | np.ndarray) and len(given) > 0


def _cell(name: str, given: Any) -> Floats:
    values = checks.array(name, given)
    if values.ndim != 1 or not len(values):
        raise InvalidProblem(f"{name} must be a list of at least one number")
    return checks.frozen(values)
