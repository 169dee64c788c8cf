"""What is asked: the value of one policy or several, kept safe by another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from saver._types import Floats
from saver.errors import InvalidProblem, no_such
from saver.problem import bellman, checks
from saver.problem.codec import portable
from saver.problem.mdp import Mdp
from saver.problem.promise import Bounded, SubGaussian
from saver.problem.question import DIFFERENCE, ESTIMANDS, VALUE, Question, question

TARGET, BASELINE = "target", "baseline"  # names of policies


@portable("problem")
@dataclass(frozen=True, eq=False)
class Problem(checks.Frozen):
    """Estimate the value of `target` while the constraint value stays near that of `baseline`.

    Attributes:
        mdp: the known model.
        target: the policy to evaluate, [S, A] or [L, S, A]; or several, {name: policy}.
        baseline: the policy known to be acceptable, likewise.
        alpha: the share of `baseline_value` that may be given up, in (0, 1].
        baseline_value: V_c of the baseline, exact and positive: an error in it adds up linearly.
        constraint: what is promised about one constraint observation, `SubGaussian` or `Bounded`.
        delta: the probability with which the safety promise may fail, in (0, 1).
        reward: what is promised about one reward; gives bounded and anytime intervals. Its numbers may be
            tables, [S, A].
        reward_scale: multiplies the confidence bonus on sample deviations.
        estimand: "value", or "difference" to the baseline's value.
    """

    mdp: Mdp
    target: Any
    baseline: Any
    _: KW_ONLY
    alpha: float
    baseline_value: float
    constraint: SubGaussian | Bounded
    delta: float = 0.05
    reward: SubGaussian | Bounded | None = None
    reward_scale: float = 1.0
    estimand: str = VALUE

    def __post_init__(self) -> None:
        checks.kind("mdp", self.mdp, Mdp)
        checks.choice("estimand", self.estimand, ESTIMANDS)
        self._check_promises()
        checked = {
            "target": _targets(self.mdp, self.target),
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

    @property
    def targets(self) -> dict[str, Floats]:
        """The policies to evaluate, by name; "target" if there is one without."""
        return dict(self.target) if isinstance(self.target, Mapping) else {TARGET: self.target}

    @property
    def first(self) -> Floats:
        """The policy to evaluate, or the first of several."""
        policy: Floats = next(iter(self.targets.values()))
        return policy

    @property
    def against(self) -> str | None:
        """What the estimand subtracts from each value: the baseline's, or nothing."""
        return BASELINE if self.estimand == DIFFERENCE else None

    @cached_property
    def question(self) -> Question:
        """What is asked, as weights of reward means."""
        return question(self.mdp, self.targets, self.baseline, self.estimand)

    def policy(self, of: Any, name: str = "of") -> Floats:
        """A target of that name, the baseline, or any policy as it is."""
        if isinstance(of, str):
            if of == BASELINE and of not in self.targets:
                safe: Floats = self.baseline
                return safe
            if of not in self.targets:
                raise no_such("target", of, [*self.targets, BASELINE])
            return self.targets[of]
        return checks.policy(self.mdp, of, name)

    def _check_promises(self) -> None:
        for name, promise in (("constraint", self.constraint), ("reward", self.reward)):
            if not isinstance(promise, SubGaussian | Bounded) and (name, promise) != ("reward", None):
                raise InvalidProblem(
                    f"{name} is {promise!r}; it must be a saver.SubGaussian or a saver.Bounded"
                )
        for part, shape in self.constraint.by_pair.items():
            raise InvalidProblem(
                f"constraint.{part} has shape {shape}; promises for each pair are for rewards: give one "
                "number that holds for all pairs"
            )
        if self.reward is None:
            return
        if self.reward.next_state:
            raise InvalidProblem(
                "reward.next_state is True; intervals hold whatever a reward has to do with the next state: "
                "leave it out"
            )
        try:
            self.reward.tables(self.mdp)
        except InvalidProblem as cause:
            raise InvalidProblem(f"reward.{cause}") from None

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


def _targets(mdp: Mdp, given: Any) -> Any:
    """One policy, or several by name."""
    if not isinstance(given, Mapping):
        return checks.frozen(checks.policy(mdp, given, "target"))
    if not given:
        raise InvalidProblem("target has no policy; give one, or {name: policy}")
    for name in given:
        if not isinstance(name, str) or not name or name == BASELINE:
            raise InvalidProblem(
                f"target has the name {name!r}; a name must be a text, and not {BASELINE!r}, which is taken"
            )
    return {name: checks.frozen(checks.policy(mdp, one, f"target[{name!r}]")) for name, one in given.items()}


def _positive(name: str, value: Any) -> float:
    result = checks.number(name, value)
    if result <= 0:
        raise InvalidProblem(f"{name} is {checks.show(result)}; it must be positive")
    return result
