"""What the simulator knows and the campaign does not."""

from __future__ import annotations

import math

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Collector, Knowledge, Trial
from saver.estimate.certainty import covered_share
from saver.problem import bellman
from saver.problem.world import Scenario
from saver.safety import Stage
from saver.safety.policies import Policy


def knowledge_of(scenario: Scenario, collector: Collector) -> Knowledge:
    """The truths that the collector says it knows."""
    world = scenario.world
    truth = {
        "mean": world.reward.mean,
        "variance": world.reward.variance,
        "constraint_mean": world.constraint.mean,
    }
    return Knowledge(**{name: truth[name] for name in collector.knows})


class Truth:
    """The target's value, what policies are worth, the error of an estimate given its visits."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, world = scenario, scenario.world
        self.c = bellman.weights(world.mdp, scenario.problem.target)
        self.value = float(np.sum(self.c * world.reward.mean))
        self.baseline = world.constraint_value(scenario.problem.baseline)
        self.stage = Stage(world.mdp)
        self.safe = self.stage.play(scenario.problem.baseline)

    def worth(self, policy: Policy | Floats) -> float:
        """V_c of a policy, exact."""
        return self.stage.play(policy).value(self.scenario.world.constraint.mean)

    def promised(self, trial: Trial) -> float:
        """V_c of what the promise counts a trial as."""
        play = self.stage.promised(trial.follows, trial.draws, self.safe)
        return play.value(self.scenario.world.constraint.mean)

    def conditional_mse(self, counts: Ints) -> float:
        """The error given the visits, with unseen weight filled by the average of the seen.

        sum over seen (c / covered)^2 variance / T + (sum over seen c mean / covered - V)^2.
        """
        reward, seen = self.scenario.world.reward, counts > 0
        covered = covered_share(self.c, seen)
        if covered == 0.0:
            return math.nan
        c = np.where(seen, self.c, 0.0) / covered
        noise = np.sum(c[seen] ** 2 * reward.variance[seen] / counts[seen])
        bias = float(np.sum(c * reward.mean)) - self.value
        return float(noise + bias**2)


class Account:
    """The true budget of the trials that were asked, each counted as run."""

    def __init__(self, truth: Truth, certified: bool = False) -> None:
        self.certified = certified  # then what draws decide is counted as it was drawn
        self.truth, self.required = truth, truth.scenario.problem.required
        self.episodes = self.baseline = 0
        self.earned, self.worst = 0.0, math.inf

    def add(self, trial: Trial) -> float:
        """The budget with one more; counts times values, because repeated addition of values drifts."""
        self.episodes += 1
        if trial.kind == "baseline":
            self.baseline += 1
        else:
            worth = self.truth.promised(trial) if self.certified else self.truth.worth(trial.follows)
            self.earned += worth
        self.worst = min(self.worst, self.budget)
        return self.budget

    @property
    def budget(self) -> float:
        """sum of V_c(b_k) - (1 - alpha) k baseline_value."""
        return self.baseline * self.truth.baseline + self.earned - self.episodes * self.required
