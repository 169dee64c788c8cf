"""What is asked: the value of one policy or several, and what is guarded meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from saver._jit import plainly
from saver._types import Floats
from saver.errors import InvalidProblem, no_such
from saver.problem import checks
from saver.problem.bellman import DIFFERENCE, ESTIMANDS, VALUE, Question, question
from saver.problem.codec import portable
from saver.problem.guardrail import CONSTRAINT, Guardrail, Rail, check_everywhere, rails_of
from saver.problem.history import History, fits
from saver.problem.promise import Bounded, SubGaussian, Tables, check_promise

F = TypeVar("F", bound=Callable[..., Any])
SMALL = 20  # pairs
TARGET, BASELINE = "target", "baseline"  # names of policies
SHORT = ("alpha", "baseline_value", "constraint")  # one guardrail, in short


@portable("problem")
@dataclass(frozen=True, eq=False)
class Problem(checks.Frozen):
    """Estimate the value of `target` while what is guarded stays near what `baseline` would give.

    What is guarded is said by `guardrails`; or, for one that may lose a share of a known value, in short by
    `alpha`, `baseline_value` and `constraint`: one guardrail called "constraint".

    Attributes:
        mdp: the model: an `Mdp`, or an `Unknown` whose transitions are learned.
        target: the policy to evaluate, [S, A] or [L, S, A]; or several, {name: policy}.
        baseline: the policy known to be acceptable, likewise.
        guardrails: what must not get worse than `baseline` would make it, less an allowance.
        alpha: in short, the share of `baseline_value` that may be given up, in (0, 1].
        baseline_value: in short, the baseline's constraint value: exact and positive, because an error in it
            adds up linearly; or (low, high).
        constraint: in short, what is promised about one constraint observation.
        delta: the probability with which the safety promise may fail, in (0, 1).
        reward: what is promised about one reward; gives bounded and anytime intervals. Its numbers may be
            tables, [S, A].
        reward_scale: multiplies the confidence bonus on sample deviations.
        estimand: "value", or "difference" to the baseline's value.
        history: logged episodes of the baseline, as sums; campaigns begin with them.
    """

    mdp: Any
    target: Any
    baseline: Any
    _: KW_ONLY
    alpha: float | None = None
    baseline_value: Any = None
    constraint: SubGaussian | Bounded | None = None
    guardrails: tuple[Guardrail, ...] = ()
    delta: float = 0.05
    reward: SubGaussian | Bounded | None = None
    reward_scale: float = 1.0
    estimand: str = VALUE
    history: History | None = None

    def __post_init__(self) -> None:
        checks.model(self.mdp, known=False)
        checks.choice("estimand", self.estimand, ESTIMANDS)
        self._check_reward()
        vars(self).update(
            guardrails=_guardrails(self.guardrails),
            target=_targets(self.mdp, self.target),
            baseline=checks.frozen(checks.policy(self.mdp, self.baseline, "baseline", known=False)),
            delta=checks.between("delta", self.delta, 0.0, 1.0, closed=(False, False)),
            reward_scale=checks.positive("reward_scale", self.reward_scale),
        )
        _ = self.rails  # refuses what cannot be guarded
        if self.history is not None:
            fits(self, self.history)

    @cached_property
    def rails(self) -> tuple[Rail, ...]:
        """All that is guarded, as the safety argument reads it."""
        for name in SHORT:
            if self.guardrails and getattr(self, name) is not None:
                raise InvalidProblem(f"{name} and guardrails are given; say it in the guardrail alone")
        return rails_of(self.guardrails or (self._short(),), self.mdp, self.baseline, self.delta)

    def _short(self) -> Guardrail:
        """What `alpha`, `baseline_value` and `constraint` mean."""
        for name in SHORT:
            if getattr(self, name) is None:
                rest = " and ".join(other for other in SHORT if other != name)
                raise InvalidProblem(
                    f"{name} is None; it must be given with {rest}: or say all by "
                    "guardrails=[saver.Guardrail(...)]"
                )
        assert self.constraint is not None
        check_everywhere("constraint", self.constraint)
        short = Guardrail(CONSTRAINT, self.constraint, alpha=self.alpha, baseline_value=self.baseline_value)
        vars(self).update(alpha=short.alpha, baseline_value=short.baseline_value)
        return short

    def rail(self, name: str) -> Rail:
        """A guardrail by its name."""
        found = {rail.name: rail for rail in self.rails}
        if name not in found:
            raise no_such("guardrail", name, found)
        return found[name]

    @property
    def required(self) -> float:
        """What the episodes must earn on average of what is guarded first."""
        return self.rails[0].required

    def means(self, given: Any, name: str = "constraint_mean") -> Floats:
        """Constraint means, [S, A] or {name: [S, A]}, as the argument reads them: [guardrails, S, A]."""
        shape, names = (self.mdp.states, self.mdp.actions), [rail.name for rail in self.rails]
        if not isinstance(given, Mapping):
            if len(names) > 1:
                raise InvalidProblem(
                    f"{name} is one table, and {', '.join(names)} are guarded; give {{name: table}}"
                )
            given = {names[0]: given}
        for other in given:
            if other not in names:
                raise no_such("guardrail", other, names)
        for lost in (other for other in names if other not in given):
            raise InvalidProblem(f"{name} has no table of {lost!r}; give one for each guardrail")
        at = [name] if len(names) == 1 else [f"{name}[{other!r}]" for other in names]
        rails = zip(at, self.rails, strict=True)
        return np.array([rail.sign * checks.shaped(said, given[rail.name], shape) for said, rail in rails])

    @property
    def targets(self) -> dict[str, Floats]:
        """The policies to evaluate, by name; "target" if there is one without."""
        return dict(self.target) if isinstance(self.target, Mapping) else {TARGET: self.target}

    @cached_property
    def first(self) -> Floats:
        """The policy to evaluate, or the first of several."""
        return next(iter(self.targets.values()))

    @property
    def against(self) -> str | None:
        """What the estimand subtracts from each value: the baseline's, or nothing."""
        return BASELINE if self.estimand == DIFFERENCE else None

    @cached_property
    def question(self) -> Question:
        """What is asked, as weights of reward means."""
        return question(self.mdp, self.targets, self.baseline, self.estimand)

    @cached_property
    def rewards(self) -> Tables | None:
        """What is promised about the rewards of each pair."""
        return None if self.reward is None else self.reward.tables(self.mdp)

    def policy(self, of: Any, name: str = "of") -> Floats:
        """A target of that name, the baseline, or any policy as it is."""
        if not isinstance(of, str):
            return checks.policy(self.mdp, of, name, known=False)
        known: dict[str, Floats] = {**self.targets, BASELINE: self.baseline}
        if of not in known:
            raise no_such("target", of, known)
        return known[of]

    def _check_reward(self) -> None:
        if self.reward is None:
            return
        check_promise("reward", self.reward)
        if self.reward.next_state:
            raise InvalidProblem(
                "reward.next_state is True; intervals hold whatever a reward has to do with the next state: "
                "leave it out"
            )
        try:
            self.reward.tables(self.mdp)
        except InvalidProblem as cause:
            raise InvalidProblem(f"reward.{cause}") from None


def _guardrails(given: Any) -> tuple[Guardrail, ...]:
    if isinstance(given, Guardrail):
        return (given,)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidProblem(f"guardrails is {given!r}; it must hold saver.Guardrail(...)s")
    for item in (found := tuple(given)):
        checks.kind("guardrails", item, Guardrail)
    return found


def _targets(mdp: Any, given: Any) -> Any:
    """One policy, or several by name."""
    if not isinstance(given, Mapping):
        return checks.frozen(checks.policy(mdp, given, "target", known=False))
    checks.by_name("target", given, "policy", BASELINE)
    return {
        name: checks.frozen(checks.policy(mdp, one, f"target[{name!r}]", known=False))
        for name, one in given.items()
    }


# -- problems that are small enough to begin without a compiler --


def is_small(problem: Problem) -> bool:
    """Whether plain Python is quick enough for a problem: few pairs, one guardrail, known transitions."""
    mdp = problem.mdp
    return mdp.known and mdp.states * mdp.actions <= SMALL and len(problem.rails) == 1


def light(function: F) -> F:
    """A function of a problem, or of what has one, that begins without a compiler where that is small."""

    @functools.wraps(function)
    def begun(asked: Any, *arguments: Any, **options: Any) -> Any:
        problem = getattr(asked, "problem", asked)
        with plainly(isinstance(problem, Problem) and is_small(problem)):
            return function(asked, *arguments, **options)

    return cast(F, begun)
