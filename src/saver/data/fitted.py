"""What a log says, and the problem that is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from saver._types import Floats
from saver.collect.showing import recall
from saver.data.advice import advice
from saver.data.cells import read_policy
from saver.data.episodes import Episodes
from saver.data.offpolicy import OffPolicy, believed, off_policy
from saver.data.scales import Scale
from saver.errors import InvalidProblem, no_such
from saver.estimate import Estimate
from saver.problem import Bounded, Guardrail, Mdp, Problem, SubGaussian, checks
from saver.problem.moments import Sums


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a log of the baseline says.

    Attributes:
        model: an `Unknown`, whose transitions a campaign learns on; or an `Mdp` of frequencies.
        baseline: what was logged, [S, A].
        values: what an episode of the baseline earned of each guardrail, with its interval.
        scales: how noisy one observation is, of "reward" and of each guardrail.
        history: the episodes until the horizon, as `Campaign(history=...)` takes them.
        reward: what an episode of the baseline earned.
        sums: counts of moves, ends and starts, and moments of rewards.
        given: whether the baseline was given, not observed.
        notes: what had to be assumed.
        level: of the intervals.
    """

    model: Any
    baseline: Floats
    values: dict[str, Estimate]
    scales: dict[str, Scale]
    history: Episodes
    reward: Estimate
    sums: Sums
    given: bool = False
    notes: tuple[str, ...] = ()
    level: float = 0.95

    def __repr__(self) -> str:
        """A line: what there is, and how many of it."""
        kind, S, log = type(self.model).__name__, self.model.states, self.history
        return f"Fitted({kind} of {S:,} states, {len(log):,} episodes, {len(self.notes)} notes)"

    @property
    def believed(self) -> Mdp:
        """The transitions that were seen, as frequencies."""
        return believed(self.model, self.sums)

    @property
    def proposed_reward(self) -> SubGaussian | Bounded | None:
        """What could be promised about one reward, to be confirmed by who knows: see `Scale.proposed`."""
        return self.scales["reward"].proposed

    def policy(self, source: Any) -> Floats:
        """A policy from an array, or from a table of (state, action, probability) in labels."""
        return checks.policy(self.model, read_policy(source, self.model), known=False)

    def off_policy(self, target: Any, *, level: float = 0.95, reward: Any = None) -> OffPolicy:
        """What a policy would earn, from the log alone: see `saver.data.off_policy`."""
        logged = self.baseline if self.given or self.baseline.ndim > 2 else None  # else it is counted there
        policy = self.policy(target)
        return off_policy(self.model, self.history, policy, behaviour=logged, level=level, reward=reward)

    def problem(self, target: Any, guardrails: Any, **options: Any) -> Problem:
        """The problem of evaluating a target, with the log as its history.

        Args:
            target: an array, a table of (state, action, probability) in labels, or several, {name: either}.
            guardrails: `saver.Guardrail`s; or {name: options}, such as {"complaint": {"alpha": 0.05, "cost":
                True}}, whose promise is `Bounded(0, 1)` by default, if all that was seen is there. The
                baseline's value is learned from the log, unless it is given.
            options: of `saver.Problem`.
        """
        guarded = self._guardrails(guardrails)
        policies = read_policy(target, self.model, several=True)
        stated = Problem(self.model, policies, self.baseline, guardrails=guarded, **options)
        said = self.history.propensities if self.given else None  # frequencies are not what was recorded
        kept = {guard.name: self.history.constraints[guard.name] for guard in guarded}
        logged = replace(self.history, propensities=said, constraints=kept)
        return replace(stated, history=recall(stated, logged))

    def against(self, problem: Problem) -> tuple[str, ...]:
        """What of a problem's promises the log contradicts, in sentences."""
        promised = [(guard.name, guard.promise) for guard in problem.guardrails]
        if problem.reward is not None and not problem.reward.by_pair:
            promised.append(("reward", problem.reward))
        found = [f"{name} {said}" for name, one in promised for said in self.scales[name].against(one)]
        for rail in problem.rails:  # where even the baseline earns less than is required
            name, most = rail.name, ("at least", "at most")[rail.sign < 0]
            value, (low, high) = self.values[name].value, self.values[name].interval
            required = rail.required_at(rail.sign * value)
            if max(rail.sign * low, rail.sign * high) < required:
                found.append(
                    f"{name} must be {most} {rail.sign * required:.4g} in an episode, and the baseline's is "
                    f"{value:.4g} (from {low:.4g} to {high:.4g}): nothing can be tried within that"
                )
        return tuple(found)

    def advice(self, problem: Problem) -> tuple[str, ...]:
        """What the log cannot tell of a problem, and the models with the price of each, in lines."""
        return advice(self, problem)

    def report(self) -> str:
        """What was found, in lines."""
        model, log = self.model, self.history
        lines = [
            f"{len(log):,} episodes, {log.rows:,} steps, {model.states:,} states, {model.actions:,} actions",
            f"the baseline earns {self._shown(self.reward)} in an episode",
            *(f"of {name} {self._shown(found)}" for name, found in self.values.items()),
        ]
        for name, scale in self.scales.items():
            lines.append(
                f"one {name} has deviation {scale.deviation:.3g} (largest {scale.largest:.3g}), from "
                f"{scale.low:g} to {scale.high:g}; neighbouring steps correlate by {scale.shared:.2g}"
            )
        lines.append(self._promise())
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]) + "\n"

    def _promise(self) -> str:
        """The promise about rewards that could be made, as it can be pasted."""
        found = self.proposed_reward
        if found is None:
            return "the log shows nothing of how rewards vary: say between what they can lie"
        said = f"saver.SubGaussian({found.scale!r}, {found.floor!r}, {found.ceiling!r})"
        if isinstance(found, Bounded):
            said = f"saver.Bounded({found.low!r}, {found.high!r})"
        return f"a promise about rewards that the log allows, if you can confirm it: reward={said}"

    def _shown(self, found: Estimate) -> str:
        low, high = found.interval
        return f"{found.value:.4g}, {100 * self.level:.3g} % interval {low:.4g} to {high:.4g}"

    def _guardrails(self, given: Any) -> tuple[Guardrail, ...]:
        if isinstance(given, Guardrail):
            given = (given,)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidProblem(f"guardrails is {given!r}; give saver.Guardrail(...)s, or {{name: options}}")
        named = given.items() if isinstance(given, Mapping) else ((None, guard) for guard in given)
        found = tuple(self._guardrail(name, said) for name, said in named)
        if not found:
            raise InvalidProblem("guardrails is empty; say at least one thing that must not get worse")
        return found

    def _guardrail(self, name: str | None, said: Any) -> Guardrail:
        """One that was said as it is, without a name; or by its options, under its name."""
        if name is None:
            checks.kind("guardrails", said, Guardrail)
        name = getattr(said, "name", name)
        if name not in self.values:
            raise no_such("guardrail in the log", name, list(self.values))
        if isinstance(said, Guardrail):
            return said
        if not isinstance(said, Mapping):
            raise InvalidProblem(f"guardrails[{name!r}] is {said!r}; give its options, such as alpha=0.05")
        known = [field.name for field in fields(Guardrail) if field.name != "name"]
        for option in said:
            if option not in known:
                raise no_such(f"option of the guardrail {name!r}:", option, known)
        promise = said.get("promise") or self.scales[name].promise(name)
        return Guardrail(name, **{**said, "promise": promise})
