"""What the simulator knows and the campaign does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Collector, Knowledge, Trial
from saver.play import Stage
from saver.play.policy import Policy
from saver.problem.bellman import question, value as bellman_value
from saver.problem.world import Scenario


def knowledge_of(scenario: Scenario, collector: Collector) -> Knowledge:
    """The truths that the collector says it knows."""
    world = scenario.world
    truth: dict[str, Any] = {
        "mean": world.reward.mean,
        "variance": world.reward.variance,
        "constraint_mean": scenario.constraint_mean,
        "model": world.mdp,
    }
    return Knowledge(**{name: truth[name] for name in collector.knows})


class Truth:
    """The target's value, what policies are worth, the error of an estimate given its visits."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, world = scenario, scenario.world
        problem, model = scenario.problem, world.mdp
        if model is problem.mdp:
            asked = problem.question
        else:
            asked = question(model, problem.targets, problem.baseline, problem.estimand)
        self.weights = asked.weights
        self.values = {name: float(np.sum(c * world.reward.mean)) for name, c in self.weights.items()}
        self.means, self.required = scenario.means, [rail.required for rail in scenario.rails]
        self.baselines = [bellman_value(model, problem.baseline, mean) for mean in self.means]
        self.stage = Stage(world.mdp)
        self.safe = self.stage.play(scenario.problem.baseline)

    @property
    def baseline(self) -> float:
        """What the baseline is worth of the first guardrail."""
        return self.baselines[0]

    def worth(self, policy: Policy | Floats, at: int = 0) -> float:
        """V_c of a policy, exact; of the guardrail at that place."""
        if isinstance(policy, Policy):
            policy = self.stage.grid.adopted(policy)
        return self.stage.play(policy).value(self.means[at])

    def promised(self, trial: Trial, at: int = 0) -> float:
        """V_c of what the promise counts a trial as."""
        follows = self.stage.grid.adopted(trial.follows)
        play = self.stage.promised(follows, trial.draws, self.safe)
        return play.value(self.means[at])

    def nearest(self, budgets: Sequence[float]) -> float:
        """The budget of the guardrail that is nearest to its line, in units of what it requires."""
        if len(budgets) == 1:
            return budgets[0]
        rails = self.scenario.problem.rails
        shares = [
            rail.relative(budget, value)
            for rail, budget, value in zip(rails, budgets, self.baselines, strict=True)
        ]
        return budgets[int(np.argmin(shares))]

    @property
    def value(self) -> float:
        """Of the first target."""
        return next(iter(self.values.values()))

    def conditional_mse(self, counts: Ints, name: str) -> float:
        """The error given the visits, if noise has nothing to do with them.

        The average of the seen stands for what was not seen:

        sum over seen e^2 variance / T + (sum over seen e mean - V)^2,
        e = c + |c| (sum of c over the unseen) / (sum of |c| over the seen).
        """
        reward, seen, c = self.scenario.world.reward, counts > 0, self.weights[name]
        size = float(np.abs(c[seen]).sum())
        if size == 0.0:
            return math.nan
        e = np.where(seen, c + np.abs(c) * float(c[~seen].sum()) / size, 0.0)
        noise = np.sum(e[seen] ** 2 * reward.variance[seen] / counts[seen])
        bias = float(np.sum(e * reward.mean)) - self.values[name]
        return float(noise + bias**2)


class Account:
    """The true budget of one guardrail: the least over the sets of trials that can have run.

    Trials that were told, or lost and known to have run, have. Each of those that are out, or lost, may or
    may not have: it counts with min(0, V - required). Where trials start in the order of asking, those that
    are out have run up to some one, and all that were asked before one that ran. `episodes` and `baseline`
    count trials that were not cancelled.
    """

    def __init__(self, truth: Truth, certified: bool = False, order: str = "any", at: int = 0) -> None:
        self.certified = certified  # then what draws decide is counted as it was drawn
        self.truth, self.required, self.order, self.at = truth, truth.required[at], order, at
        self.episodes = self.baseline = 0
        self.ran = self.baseline_ran = self.started = 0
        self.earned, self.lost, self.worst = 0.0, 0.0, math.inf
        self.out: dict[int, tuple[bool, float]] = {}  # whether it is the baseline, and what it is worth

    def add(self, trial: Trial) -> float:
        """The budget with one more that has run."""
        self._out(trial)
        self._ran(trial.number)
        return self._look()

    def ask(self, trial: Trial) -> float:
        """One more is out; what it is worth."""
        worth = self._out(trial)
        self._look()
        return worth

    def tell(self, number: int) -> None:
        """A trial has run."""
        self._ran(number)
        self._look()

    def abandon(self, number: int, ran: bool) -> None:
        """A trial may have run, or has."""
        if ran:
            self._ran(number)
        else:
            self.lost += min(0.0, self.out.pop(number)[1] - self.required)
        self._look()

    def cancel(self, number: int) -> None:
        """A trial has not run, and never will."""
        self.episodes -= 1
        self.baseline -= self.out.pop(number)[0]
        self._look()

    @property
    def budget(self) -> float:
        """sum of V_c(b_k) - k required; counts times values, because additions drift."""
        settled = self.baseline_ran * self.truth.baselines[self.at] + self.earned - self.ran * self.required
        return settled + self.lost + self._least()

    def _least(self) -> float:
        """The least that those that are out can add."""
        if self.order == "any":
            return sum(min(0.0, worth - self.required) for _, worth in self.out.values())
        total, least = 0.0, math.inf
        for number, (_, worth) in self.out.items():
            if number > self.started:
                least = min(least, total)
            total += worth - self.required
        return min(least, total)

    def _out(self, trial: Trial) -> float:
        if safe := trial.kind == "baseline":
            worth = self.truth.baselines[self.at]
        elif self.certified:
            worth = self.truth.promised(trial, self.at)
        else:
            worth = self.truth.worth(trial.follows, self.at)
        self.out[trial.number] = safe, worth
        self.episodes += 1
        self.baseline += safe
        return worth

    def _ran(self, number: int) -> None:
        safe, worth = self.out.pop(number)
        self.started = max(self.started, number)
        self.ran += 1
        self.baseline_ran += safe
        self.earned += 0.0 if safe else worth

    def _look(self) -> float:
        found = self.budget
        self.worst = min(self.worst, found)
        return found


class Accounts:
    """The accounts of all guardrails; what they count alike is that of the first."""

    def __init__(self, truth: Truth, certified: bool = False, order: str = "any") -> None:
        self.truth = truth
        self.each = [Account(truth, certified, order, at) for at in range(len(truth.required))]

    def add(self, trial: Trial) -> None:
        """One more that has run."""
        for account in self.each:
            account.add(trial)

    def ask(self, trial: Trial) -> float:
        """One more is out; what it is worth of the first guardrail."""
        worths = [account.ask(trial) for account in self.each]
        return worths[0]

    def tell(self, number: int) -> None:
        """A trial has run."""
        for account in self.each:
            account.tell(number)

    def abandon(self, number: int, ran: bool) -> None:
        """A trial may have run, or has."""
        for account in self.each:
            account.abandon(number, ran)

    def cancel(self, number: int) -> None:
        """A trial has not run, and never will."""
        for account in self.each:
            account.cancel(number)

    @property
    def episodes(self) -> int:
        """Trials that were not cancelled."""
        return self.each[0].episodes

    @property
    def baseline(self) -> int:
        """Of these, the baseline's."""
        return self.each[0].baseline

    @property
    def budgets(self) -> list[float]:
        """Of each guardrail."""
        return [account.budget for account in self.each]

    @property
    def worsts(self) -> list[float]:
        """The smallest so far of each guardrail."""
        return [account.worst for account in self.each]

    @property
    def budget(self) -> float:
        """Of the guardrail that is nearest to its line."""
        return self.truth.nearest(self.budgets)

    @property
    def worst(self) -> float:
        """Of the guardrail that was nearest to its line, or farthest beyond it."""
        return self.truth.nearest(self.worsts)
