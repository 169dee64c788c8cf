"""What is asked (`Problem`), the simulated truth (`World`), and both with a name (`Scenario`)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver.errors import InvalidProblem
from saver.problem import bellman, checks
from saver.problem.laws import Law
from saver.problem.mdp import Mdp


@dataclass(frozen=True)
class SubGaussian:
    """A promise: constraint noise is `scale`-sub-Gaussian and every constraint mean in [floor, ceiling].

    The noise of each observation is so given everything observed before it: independent from step to step and
    from episode to episode. Noise that an episode's steps share (one user, one patient) needs a scale that is
    larger by the square root of the number of steps.
    """

    scale: float
    floor: float = 0.0
    ceiling: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.number("scale", self.scale))
        if self.scale < 0:
            raise InvalidProblem(f"scale is {self.scale:g}; it must be at least 0")
        _check_range(self, "floor", "ceiling")


@dataclass(frozen=True)
class Bounded:
    """A promise: every constraint observation lies in [low, high], its noise independent from step to step.

    Steps that share their noise need `SubGaussian` with a larger scale instead: see there.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_range(self, "low", "high")

    @property
    def scale(self) -> float:
        """Hoeffding: a variable in [low, high] is (high - low) / 2 sub-Gaussian."""
        return (self.high - self.low) / 2

    @property
    def floor(self) -> float:
        """The smallest possible mean."""
        return self.low

    @property
    def ceiling(self) -> float:
        """The largest possible mean."""
        return self.high


@dataclass(frozen=True, eq=False)
class Problem(checks.Frozen):
    """Estimate the value of `target` while the constraint value stays near that of `baseline`.

    Attributes:
        mdp: the known model.
        target: the policy to evaluate, [S, A] or [L, S, A].
        baseline: the policy known to be acceptable, likewise.
        alpha: the share of `baseline_value` that may be given up, in (0, 1].
        baseline_value: V_c of the baseline, exact and positive: an error in it adds up linearly.
        constraint: what is promised about one constraint observation, `SubGaussian` or `Bounded`.
        delta: the probability with which the safety promise may fail, in (0, 1).
        reward_scale: multiplies the confidence bonus on sample deviations.
    """

    mdp: Mdp
    target: Any
    baseline: Any
    _: KW_ONLY
    alpha: float
    baseline_value: float
    constraint: SubGaussian | Bounded
    delta: float = 0.05
    reward_scale: float = 1.0

    def __post_init__(self) -> None:
        checks.kind("mdp", self.mdp, Mdp)
        if not isinstance(self.constraint, SubGaussian | Bounded):
            raise InvalidProblem(
                f"constraint is {self.constraint!r}; it must be a saver.SubGaussian or a saver.Bounded"
            )
        checked = {
            "target": checks.frozen(checks.policy(self.mdp, self.target, "target")),
            "baseline": checks.frozen(checks.policy(self.mdp, self.baseline, "baseline")),
            "alpha": checks.between("alpha", self.alpha, 0.0, 1.0, closed=(False, True)),
            "baseline_value": _positive("baseline_value", self.baseline_value),
            "delta": checks.between("delta", self.delta, 0.0, 1.0, closed=(False, False)),
            "reward_scale": _positive("reward_scale", self.reward_scale),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_baseline_value()

    @property
    def required(self) -> float:
        """(1 - alpha) V_c(baseline): what the episodes must earn on average."""
        return (1.0 - self.alpha) * self.baseline_value

    def _check_baseline_value(self) -> None:
        steps = float(bellman.weights(self.mdp, self.baseline).sum())
        low, high = self.constraint.floor * steps, self.constraint.ceiling * steps
        slack = 1e-8 * max(abs(low), abs(high), self.baseline_value)
        if not low - slack <= self.baseline_value <= high + slack:
            raise InvalidProblem(
                f"baseline_value is {self.baseline_value:g}, but constraint means in "
                f"[{self.constraint.floor:g}, {self.constraint.ceiling:g}] allow the baseline only "
                f"[{low:g}, {high:g}]; correct the value or the range of the constraint"
            )


@dataclass(frozen=True, eq=False)
class World:
    """The simulated truth: a model with the laws of its rewards and constraints."""

    mdp: Mdp
    reward: Law
    constraint: Law

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

    def value(self, policy: ArrayLike) -> float:
        """The expected discounted reward of an episode."""
        return bellman.value(self.mdp, policy, self.reward.mean)

    def constraint_value(self, policy: ArrayLike) -> float:
        """V_c, the expected discounted constraint value of an episode."""
        return bellman.value(self.mdp, policy, self.constraint.mean)


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


def _positive(name: str, value: Any) -> float:
    result = checks.number(name, value)
    if result <= 0:
        raise InvalidProblem(f"{name} is {checks.show(result)}; it must be positive")
    return result


def _check_range(promise: Any, low: str, high: str) -> None:
    for name in (low, high):
        object.__setattr__(promise, name, checks.number(name, getattr(promise, name)))
    if getattr(promise, low) >= getattr(promise, high):
        raise InvalidProblem(
            f"{low} is {getattr(promise, low):g} and {high} is {getattr(promise, high):g}; "
            f"{low} must be below {high}"
        )
