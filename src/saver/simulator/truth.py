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
from saver.problem.bellman import onward, question, value as bellman_value, values
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
        self._ahead: dict[Any, Any] = {}  # what policies are worth from each state of step 1 on, [S]

    @property
    def baseline(self) -> float:
        """What the baseline is worth of the first guardrail."""
        return self.baselines[0]

    def worths(self, policy: Policy | Floats, draws: Any = None) -> Floats:
        """V_c of a policy by each guardrail, exact; of what its draws make of it, where these decide all."""
        grid = self.stage.grid
        follows = grid.adopted(policy) if isinstance(policy, Policy) else grid.policy(policy)
        play = self.stage.promised(follows, draws, self.safe)
        return np.array([play.value(mean) for mean in self.means])

    def worth(self, policy: Policy | Floats) -> float:
        """V_c of a policy, of the first guardrail."""
        return float(self.worths(policy)[0])

    def ahead(self, follows: Policy, start: int, action: int) -> float:
        """What an episode of a policy is worth that begins like that, of the first guardrail."""
        mdp = self.scenario.world.mdp
        if follows.key not in self._ahead:
            table = self.stage.grid.adopted(follows).table()
            self._ahead[follows.key] = values(mdp, table, self.means[0])[1]
        onwards = float(onward(mdp, self._ahead[follows.key])[start, action])
        return float(self.means[0][start, action]) + mdp.discount * onwards

    def promised(self, trial: Trial) -> float:
        """V_c of what the promise counts a trial as, likewise."""
        return float(self.worths(trial.follows, trial.draws)[0])

    def nearest(self, budgets: Sequence[float] | Floats) -> float:
        """The budget of the guardrail that is nearest to its line, in units of what it requires."""
        if len(budgets) == 1:
            return float(budgets[0])
        each = zip(self.scenario.problem.rails, budgets, self.baselines, strict=True)
        return float(budgets[int(np.argmin([rail.relative(budget, value) for rail, budget, value in each]))])

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
    """The true budget of each guardrail, [m]: the least over the sets of trials that can have run.

    Trials that were told, or lost and known to have run, have. Each of those that are out, or lost, may or
    may not have: it counts with min(0, V - required). Where trials start in the order of asking, those that
    are out have run up to some one, and all that were asked before one that ran. `episodes` and `baseline`
    count trials that were not cancelled.
    """

    def __init__(self, truth: Truth, certified: bool = False, order: str = "any") -> None:
        self.certified = certified  # then what draws decide is counted as it was drawn
        self.truth, self.required, self.order = truth, np.array(truth.required), order
        self.safe = np.array(truth.baselines)
        self.episodes = self.baseline = 0
        self.ran = self.baseline_ran = self.started = 0
        self.earned, self.lost = np.zeros((2, len(self.required)))
        self.worsts: Floats = np.full(len(self.required), math.inf)
        self.out: dict[int, tuple[bool, Floats]] = {}  # whether it is the baseline, and what it is worth

    def add(self, trial: Trial) -> float:
        """The budget with one more that has run."""
        self._out(trial)
        self._ran(trial.number)
        return self._look()

    def ask(self, trial: Trial) -> float:
        """One more is out; what it is worth of the first guardrail."""
        worth = self._out(trial)
        self._look()
        return float(worth[0])

    def tell(self, number: int) -> None:
        """A trial has run."""
        self._ran(number)
        self._look()

    def abandon(self, number: int, ran: bool) -> None:
        """A trial may have run, or has."""
        if ran:
            self._ran(number)
        else:
            self.lost += np.minimum(0.0, self.out.pop(number)[1] - self.required)
        self._look()

    def cancel(self, number: int) -> None:
        """A trial has not run, and never will."""
        self.episodes -= 1
        self.baseline -= self.out.pop(number)[0]
        self._look()

    @property
    def budgets(self) -> Floats:
        """sum of V_c(b_k) - k required; counts times values, because additions drift."""
        settled = self.baseline_ran * self.safe + self.earned - self.ran * self.required
        return settled + self.lost + self._least()

    @property
    def budget(self) -> float:
        """Of the guardrail that is nearest to its line."""
        return self.truth.nearest(self.budgets)

    @property
    def worst(self) -> float:
        """The smallest so far, of the guardrail that was nearest to its line, or farthest beyond it."""
        return self.truth.nearest(self.worsts)

    def _least(self) -> Any:
        """The least that those that are out can add."""
        if self.order == "any":
            return sum(np.minimum(0.0, worth - self.required) for _, worth in self.out.values())
        total, least = np.zeros(len(self.required)), np.full(len(self.required), math.inf)
        for number, (_, worth) in self.out.items():
            if number > self.started:
                least = np.minimum(least, total)
            total = total + (worth - self.required)
        return np.minimum(least, total)

    def _out(self, trial: Trial) -> Floats:
        if safe := trial.kind == "baseline":
            worth = self.safe
        else:
            worth = self.truth.worths(trial.follows, trial.draws if self.certified else None)
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
        found = self.budgets
        self.worsts = np.minimum(self.worsts, found)
        return self.truth.nearest(found)
