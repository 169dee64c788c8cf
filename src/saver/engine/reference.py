"""The plain-Python engine: a loop of ask and tell over a world. It is the specification of any faster one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saver.collect import Campaign, Collector, Knowledge, Trial
from saver.estimate.certainty import covered_share
from saver.problem import bellman, checks
from saver.problem.checks import Floats, Ints
from saver.problem.seeds import child_seed
from saver.problem.statement import Scenario, World
from saver.safety import Stage

RECORDED = ("estimates", "stderr", "freedom", "budget", "ledger", "baseline_share", "conditional_mse")


class Player:
    """Runs trials in a world. Draws in this order: start, then for each step reward, constraint, next state.

    A draw is made only where there is something to decide.
    """

    def __init__(self, world: World, seed: int | np.random.SeedSequence | np.random.Generator = 0) -> None:
        checks.kind("world", world, World)
        self.world, self.rng = world, np.random.default_rng(seed)
        self.ends = set(world.mdp.terminal)

    def run(self, trial: Trial) -> tuple[list[int], list[int], list[float], list[float]]:
        """One episode: states, actions, rewards, constraints."""
        mdp, world = self.world.mdp, self.world
        states: list[int] = []
        actions: list[int] = []
        rewards: list[float] = []
        constraints: list[float] = []
        s: int | None = self._choose(np.flatnonzero(mdp.start), mdp.start[mdp.start > 0])
        for t in range(mdp.horizon):
            if s is None:
                break
            a = trial.act(t, s)
            states.append(s)
            actions.append(a)
            rewards.append(world.reward.sample(self.rng, s, a))
            constraints.append(world.constraint.sample(self.rng, s, a))
            s = self._next(s, a) if t + 1 < mdp.horizon else None
        return states, actions, rewards, constraints

    def _next(self, s: int, a: int) -> int | None:
        moves = self.world.mdp.transitions
        pair = s * self.world.mdp.actions + a
        row = slice(moves.indptr[pair], moves.indptr[pair + 1])
        if row.start == row.stop:
            return None
        following = self._choose(moves.indices[row], moves.data[row])
        return None if following in self.ends else following

    def _choose(self, options: Any, chances: Any) -> int:
        if len(options) == 1:
            return int(options[0])
        reached = int(np.searchsorted(np.cumsum(chances), self.rng.random(), side="right"))
        return int(options[min(reached, len(options) - 1)])


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
    """What the simulator knows and the campaign does not: the true budget and the conditional error."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, world = scenario, scenario.world
        self.c = bellman.weights(world.mdp, scenario.problem.target)
        self.value = float(np.sum(self.c * world.reward.mean))
        self.baseline = world.constraint_value(scenario.problem.baseline)
        self.stage = Stage(world.mdp)

    def worth(self, policy: Floats) -> float:
        """V_c of a policy, exact."""
        return float(np.sum(self.stage.play(policy).weights * self.scenario.world.constraint.mean))

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


def run_reference(
    scenario: Scenario,
    collector: Collector,
    episodes: int,
    checkpoints: Ints,
    seed: int | np.random.SeedSequence,
    runs: int,
    truth: Truth,
    tick: Callable[[int], None],
) -> tuple[dict[str, Floats], Floats]:
    """All runs, one after the other; `tick` is told after each."""
    kept = {name: np.full((runs, len(checkpoints)), np.nan) for name in RECORDED}
    worst = np.full(runs, np.nan)
    for r in range(runs):
        found, worst[r] = run_once(scenario, collector, episodes, checkpoints, child_seed(seed, r), truth)
        for name in RECORDED:
            kept[name][r] = found[name]
        tick(1)
    return kept, worst


def run_once(
    scenario: Scenario,
    collector: Collector,
    episodes: int,
    checkpoints: Ints,
    seed: np.random.SeedSequence,
    truth: Truth,
) -> tuple[dict[str, Floats], float]:
    """One campaign: what is recorded at the checkpoints, and the worst true budget."""
    problem = scenario.problem
    campaign = Campaign(problem, collector, episodes, knowledge=knowledge_of(scenario, collector), seed=seed)
    player = Player(scenario.world, child_seed(seed, 1))
    kept = {name: np.full(len(checkpoints), np.nan) for name in RECORDED}
    baseline, earned, worst, at = 0, 0.0, math.inf, 0
    exact = collector.estimate == "certainty"
    for k in range(1, episodes + 1):
        trial = campaign.ask()
        campaign.tell(trial, *player.run(trial))
        if trial.kind == "baseline":
            baseline += 1
        else:
            earned += truth.worth(trial.policy)
        budget = baseline * truth.baseline + earned - k * problem.required
        worst = min(worst, budget)
        if k == checkpoints[at]:
            found = campaign.estimate()
            kept["estimates"][at] = found.value
            whole = found.covered == 1.0 or collector.estimate == "importance"
            kept["stderr"][at] = found.stderr if whole else math.inf
            kept["freedom"][at] = found.freedom if whole else math.nan
            kept["budget"][at] = budget
            kept["ledger"][at] = campaign.believed
            kept["baseline_share"][at] = baseline / k
            if exact:
                kept["conditional_mse"][at] = truth.conditional_mse(campaign.counts)
            at += 1
    return kept, worst
