"""What one run of the compiled loop keeps between two episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.kernels.forms import ESTIMATED, OUTSIDE, Rules, Scene, record
from saver.play.foresight import Foresight

# The numbers of a run between two episodes, one record: compiled code reads and writes `run.now.done`.
NOW = record(
    "top",  # the largest variance ever believed
    "weighted_mean", "weighted_squares",  # of importance-weighted returns
    "weighed",  # episodes that the estimate counted when rewards were last weighed anew
    whole=(
        "row",  # of what is kept: the number of the run
        "done", "explored", "baseline",  # episodes told
        "past",  # logged episodes are still to be drawn
        "next_plan", "planned",
        "enough",  # samples below which a weighted pair comes first
        "by_node",  # the design depends on the step
        "exact",  # episodes that the ledgers credit with exactly what the baseline is worth
        "designed",  # the others
        "units",  # of these, those in a row with the full proxy
        "point",  # the next checkpoint
        "weighted",  # importance-weighted returns
        "uncounted", "uncounted_explore",  # episodes of the drawn policies that `visited` does not hold yet
        "since",  # episodes since the ledger's sum was added up anew
        "whole",  # a tree is planned as a whole: some variance is, or was, below the floor
        "next_weights",  # the trial from which on rewards are weighed anew: see `weighing`
    ),
)  # fmt: skip

# Columns of `Run.seen`
COUNT, MEAN, SQUARES = range(3)


class Tracker(NamedTuple):
    """Follows a policy by argmax b / T, row by row: first the exploration's rows, then the design's."""

    b: Floats  # [rows, A]
    T: Floats
    score: Floats
    choice: Ints  # [rows]

    @classmethod
    def of(cls, rows: Floats) -> Tracker:
        """Nothing visited yet."""
        choice = np.zeros(len(rows), dtype=np.int64)
        return cls(np.array(rows), np.zeros(rows.shape), np.zeros(rows.shape), choice)


class Reach(NamedTuple):
    """Where one policy goes."""

    layer: Ints  # [L + 2], where each step's nodes begin in `node`; at last how many nodes it can be in
    node: Ints  # these, step by step
    pair: Ints  # [nodes]
    mass: Floats  # [nodes], 0 where it cannot be
    visits: Floats  # discounted, [pairs], where paths are random

    @classmethod
    def room(cls, steps: int, nodes: int, pairs: int) -> Reach:
        """Nowhere yet."""
        layer, node, pair = (np.zeros(n, dtype=np.int64) for n in (steps + 2, nodes, nodes))
        return cls(layer, node, pair, np.zeros(nodes), np.zeros(pairs))


class Scales(NamedTuple):
    """What intervals at all times keep: `RewardTally` and the weights; `checkpoints` names the rows."""

    pairs: Floats  # [5, pairs]; for which weights the next ones and the guess are: `next_weights` of then
    each: Floats  # [5, answers, pairs]
    sums: Floats  # [3, answers]


class Run(NamedTuple):
    """One campaign."""

    now: Any  # a record of NOW
    cells: Ints  # the same memory, for clearing it
    seen: Floats  # [pairs, 3]: count, mean and squares of rewards
    tracker: Tracker
    needed: Ints  # from which number of samples on a pair is needed, [pairs]
    node_visits: Floats  # [nodes, A], of tracked episodes, for designs made outside
    earner: Ints  # what surely earns most, [nodes]
    visited: Floats  # expected, discounted, of designed episodes, [pairs]
    moves: Floats  # how often, and the rewards paid then, [2, edges]
    ends: Floats  # likewise, [2, pairs]
    variance: Floats  # [S, A]
    spread: Floats  # [2, S]
    policy: Floats  # [S, A], of one step
    mark: Bools  # [S], visited since the last plan
    dirty: Ints  # these states, step by step
    dirty_count: Ints
    reach: Reach
    detour: Reach  # of the earner
    scales: Scales
    path: Ints  # [L, 2], states and actions of the episode
    ways: Ints  # [4, L], the pairs on the way of each kind of episode, where that is known beforehand
    draws: Floats  # [L]
    stop: Ints  # [1], not 0 when the loop should return

    def following(self, tracker: Tracker) -> Run:
        """The same campaign with another tracker."""
        return self._replace(tracker=tracker)


class Followed(NamedTuple):
    """A model in which the tracked policy is followed, and how far it got; none where `start` is empty."""

    indptr: Ints
    indices: Ints
    data: Floats
    start: Floats
    gains: Floats
    mass: Floats  # [L + 1, S]
    sums: Floats  # [L + 1, m]

    @classmethod
    def of(cls, model: Foresight, steps: int) -> Followed:
        """What a plan believed, or the truth."""
        return cls(*model.moves, model.start, model.gains, *model.room(steps))


class Free(NamedTuple):
    """What a run without a model keeps beside `Run`."""

    starts: Floats  # where episodes began, [S]
    worth: Floats  # true, of the policies that are drawn from, [kinds, rails]
    drawn: Ints  # [kinds]: what is promised of a trial is decided by its draws, in truth
    truth: Followed
    belief: Followed

    def changed(self, **parts: Any) -> Free:
        """The same but for these."""
        return self._replace(**parts)


# What is kept of each answer, of a run, and of each guardrail, at every checkpoint: see `Runs`.
ANSWER = record(
    "estimates", "stderr", "freedom", "below", "above", "conditional_mse", "anytime_low", "anytime_high",
    "fair", "fair_stderr",
)  # fmt: skip
COMMON = record("budget", "ledger", "baseline_share")
OF_RAIL = record("budgets", "ledgers")


class Out(NamedTuple):
    """What is kept of runs; of one, without the first axis."""

    checkpoints: Ints
    answers: Any  # records of ANSWER, [runs, answers, C]
    common: Any  # of COMMON, [runs, C]
    rails: Any  # of OF_RAIL, [runs, m, C]
    worst: Floats  # the worst true budget, [runs, m]

    @classmethod
    def room(cls, checkpoints: Ints, runs: int, answers: int, rails: int) -> Out:
        """Nothing kept."""
        C = len(checkpoints)
        return cls(
            checkpoints, answers=unknown(ANSWER, runs, answers, C), common=unknown(COMMON, runs, C),
            rails=unknown(OF_RAIL, runs, rails, C), worst=np.full((runs, rails), np.nan),
        )  # fmt: skip

    def of(self, runs: Any) -> Any:
        """Of some runs, or of one."""
        answers, common, rails = self.answers[runs], self.common[runs], self.rails[runs]
        return Out(self.checkpoints, answers, common, rails, self.worst[runs])


def unknown(kind: Any, *shape: int) -> Any:
    """Records of which nothing is known."""
    table: Any = np.empty(shape, dtype=kind).view(np.recarray)
    table.view(np.float64).fill(np.nan)
    return table


def new_run(scene: Scene, rules: Rules, rows: Floats, stop: Ints) -> Run:
    """Room for one campaign; `rows` are those to follow, the exploration's first."""
    S, A = scene.uniform.shape
    L, nodes, ints, pairs = len(scene.factor), len(scene.nodes.state), np.int64, S * A
    outside, estimated = rules.plan == OUTSIDE and rules.tracked, rules.estimate == ESTIMATED
    answers, weighed = len(rules.weighing.numbers.c), pairs if rules.weighing.wanted else 0
    now: Any = np.zeros(1, dtype=NOW).view(np.recarray)
    return Run(
        now=now[0], cells=now.view(ints), seen=np.zeros((pairs, 3)), tracker=Tracker.of(rows),
        needed=np.array(rules.needed), node_visits=np.zeros((nodes if outside else 0, A)),
        earner=np.zeros(nodes if rules.earner else 0, dtype=ints),
        visited=np.zeros(pairs if rules.keeps_visits else 0),
        moves=np.zeros((2, len(scene.to) if estimated else 0)),
        ends=np.zeros((2, pairs if estimated else 0)), variance=np.zeros((S, A)), spread=np.zeros((2, S)),
        policy=np.zeros((S, A)), mark=np.zeros(S, dtype=bool), dirty=np.zeros(nodes, dtype=ints),
        dirty_count=np.zeros(len(scene.nodes.layer) - 1, dtype=ints),
        reach=Reach.room(L, nodes, pairs if rules.paths else 0),
        detour=Reach.room(L, nodes if rules.earner else 0, pairs if rules.paths else 0),
        scales=Scales(np.zeros((5, weighed)), np.zeros((5, answers, weighed)), np.zeros((3, answers))),
        path=np.zeros((L, 2), dtype=ints), ways=np.zeros((4, L), dtype=ints), draws=np.zeros(L), stop=stop,
    )  # fmt: skip


def nothing_believed() -> Foresight:
    """Of a plan that has no model."""
    ints, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
    return Foresight(ints, ints, floats, floats, np.zeros((0, 0)))
