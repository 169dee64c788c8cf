"""What one run of the compiled loop keeps between two episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.engine.kernel.forms import ESTIMATED, OUTSIDE, Rules, Scene

# The numbers of a run between two episodes, one record: compiled code reads and writes `run.now.done`.
NOW = np.dtype(
    [
        ("row", "i8"),  # of what is kept: the number of the run
        ("done", "i8"),  # episodes told
        ("explored", "i8"),
        ("next_plan", "i8"),
        ("planned", "i8"),
        ("enough", "i8"),  # samples below which a weighted pair comes first
        ("by_node", "i8"),  # the design depends on the step
        ("baseline", "i8"),  # baseline episodes
        ("exact", "i8"),  # episodes that the ledger credits with exactly baseline_value
        ("designed", "i8"),  # the others
        ("units", "i8"),  # of these, those in a row with the full proxy
        ("point", "i8"),  # the next checkpoint
        ("weighted", "i8"),  # importance-weighted returns
        ("uncounted", "i8"),  # episodes of the drawn design that `visited` does not hold yet
        ("uncounted_explore", "i8"),
        ("since", "i8"),  # episodes since the ledger's sum was added up anew
        ("whole", "i8"),  # a tree is planned as a whole: some variance is, or was, below the floor
        ("earned", "f8"),  # truly, by designed episodes
        ("worst", "f8"),  # true budget
        ("gained", "f8"),  # the sums of the certificate
        ("proxy", "f8"),
        ("length", "f8"),
        ("sum_x", "f8"),
        ("sum_v", "f8"),
        ("bound", "f8"),
        ("total", "f8"),  # of the ledgers without a certificate
        ("top", "f8"),  # the largest variance ever believed
        ("weighted_mean", "f8"),
        ("weighted_squares", "f8"),
        ("next_weights", "i8"),  # the trial from which on rewards are weighed anew: see `weighing`
        ("weighed", "f8"),  # episodes that the estimate counted when they last were
        ("last_proxy", "f8"),
        ("last_longest", "f8"),
        ("last_low", "f8"),
    ]
)

# Columns of `Run.seen`
COUNT, MEAN, SQUARES, CONSTRAINT = range(4)


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

    size: Ints  # [1], the number of nodes it can be in
    node: Ints  # these, step by step
    layer: Ints  # [L + 1], where each step's begin in `node`
    pair: Ints  # [nodes]
    mass: Floats  # [nodes], 0 where it cannot be
    visits: Floats  # discounted, [pairs], where paths are random

    @classmethod
    def room(cls, steps: int, nodes: int, pairs: int) -> Reach:
        """Nowhere yet."""
        one, many = np.zeros(1, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
        layer = np.zeros(steps + 1, dtype=np.int64)
        return cls(one, many, layer, many.copy(), np.zeros(nodes), np.zeros(pairs))


class Box(NamedTuple):
    """The certificate's box, [pairs] each; the lower ends again as [S, A], the same memory."""

    lower: Floats
    upper: Floats
    middle: Floats
    half: Floats
    lower_table: Floats

    @classmethod
    def room(cls, shape: tuple[int, int]) -> Box:
        """Nothing known."""
        lower, upper, middle, half = (np.zeros(shape) for _ in range(4))
        return cls(lower.ravel(), upper.ravel(), middle.ravel(), half.ravel(), lower)


class Scales(NamedTuple):
    """What intervals at all times keep: `RewardTally` and the weights; [pairs], or [answers, pairs]."""

    T: Floats
    total: Floats
    squares: Floats
    guess: Floats
    made: Ints  # for which weights w, v and the guess are: `next_weights` of then
    W: Floats
    w: Floats
    V: Floats  # for fair estimates; no rows where none are asked for
    Q: Floats
    v: Floats
    gained: Floats  # [answers]
    noise: Floats
    drawn: Floats

    @classmethod
    def room(cls, answers: int, pairs: int, fair: bool) -> Scales:
        """Nothing weighed."""
        T, total, squares, guess = (np.zeros(pairs) for _ in range(4))
        made = np.zeros(pairs, dtype=np.int64)
        W, w = (np.zeros((answers, pairs)) for _ in range(2))
        V, Q, v = (np.zeros((answers if fair else 0, pairs)) for _ in range(3))
        gained, noise, drawn = (np.zeros(answers) for _ in range(3))
        return cls(T, total, squares, guess, made, W, w, V, Q, v, gained, noise, drawn)


class Run(NamedTuple):
    """One campaign."""

    now: Any  # a record of NOW
    cells: Ints  # the same memory, for clearing it
    seen: Floats  # [pairs, 4]: count, mean and squares of rewards, mean of constraints
    tracker: Tracker
    needed: Ints  # from which number of samples on a pair is needed, [pairs]
    node_visits: Floats  # [nodes, A], of tracked episodes, for designs made outside
    box: Box
    expected: Floats  # discounted visits of designed episodes, [pairs]
    realised: Floats
    earner: Ints  # what surely earns most, [nodes]
    likely: Floats  # sample means of the constraint, [S, A]
    visited: Floats  # expected, [pairs]
    terms: Floats  # visited times lower bound, [pairs]
    moves: Floats  # [edges]
    ends: Floats  # [pairs]
    paid: Floats  # rewards of `moves`, [edges]
    ends_paid: Floats  # and of `ends`, [pairs]
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
    draws: Floats  # [L]
    stop: Ints  # [1], not 0 when the loop should return

    def following(self, tracker: Tracker) -> Run:
        """The same campaign with another tracker."""
        return self._replace(tracker=tracker)


class Out(NamedTuple):
    """What is kept of one run, [answers, C] each, and of all answers alike, [C]."""

    checkpoints: Ints
    estimates: Floats
    stderr: Floats
    freedom: Floats
    below: Floats
    above: Floats
    conditional_mse: Floats
    anytime_low: Floats
    anytime_high: Floats
    fair: Floats
    fair_stderr: Floats
    budget: Floats
    ledger: Floats
    baseline_share: Floats


def new_run(scene: Scene, rules: Rules, rows: Floats, stop: Ints) -> Run:
    """Room for one campaign; `rows` are those to follow, the exploration's first."""
    S, A = scene.uniform.shape
    L, nodes, ints, pairs = len(scene.factor), len(scene.nodes.state), np.int64, S * A
    outside, estimated = rules.plan == OUTSIDE and rules.tracked, rules.estimate == ESTIMATED
    now: Any = np.zeros(1, dtype=NOW).view(np.recarray)
    return Run(
        now=now[0],
        cells=now.view(ints),
        seen=np.zeros((pairs, 4)),
        tracker=Tracker.of(rows),
        needed=np.array(rules.needed),
        node_visits=np.zeros((nodes if outside else 0, A)),
        box=Box.room((S, A)),
        expected=np.zeros(pairs if rules.paths else 0),
        realised=np.zeros(pairs if rules.paths else 0),
        earner=np.zeros(nodes if rules.earner else 0, dtype=ints),
        likely=np.zeros((S, A)),
        visited=np.zeros(pairs if rules.keeps_visits else 0),
        terms=np.zeros(pairs if rules.keeps_visits else 0),
        moves=np.zeros(len(scene.to) if estimated else 0),
        ends=np.zeros(pairs if estimated else 0),
        paid=np.zeros(len(scene.to) if estimated else 0),
        ends_paid=np.zeros(pairs if estimated else 0),
        variance=np.zeros((S, A)),
        spread=np.zeros((2, S)),
        policy=np.zeros((S, A)),
        mark=np.zeros(S, dtype=bool),
        dirty=np.zeros(nodes, dtype=ints),
        dirty_count=np.zeros(len(scene.nodes.layer) - 1, dtype=ints),
        reach=Reach.room(L, nodes, pairs if rules.paths else 0),
        detour=Reach.room(L, nodes if rules.earner else 0, pairs if rules.paths else 0),
        scales=Scales.room(len(rules.weighing.c), pairs if rules.weighing.wanted else 0, rules.weighing.fair),
        path=np.zeros((L, 2), dtype=ints),
        draws=np.zeros(L),
        stop=stop,
    )
