"""What the compiled loops see: plain arrays and numbers, and the integers that stand for choices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.play.nodes import Nodes

NORMAL, COIN, DATA = range(3)  # laws
EXPLORE, DESIGN, SAFE, EARN, PAST = range(5)  # kinds of episode; those of the past are history
NO_LEDGER, CERTIFIED, PAPER, LATEST, PLUGIN = range(5)
NO_GATE, RETROSPECTIVE, PROSPECTIVE = range(3)
FIXED, TREE, DAG, ONE, OUTSIDE = range(5)  # where plans come from
CERTAINTY, ESTIMATED, IMPORTANCE = range(3)


def record(*names: str, whole: tuple[str, ...] = ()) -> Any:
    """A record of whole numbers, and then of others: compiled code reads `scene.pairs[p].where`."""
    return np.dtype([(name, "i8") for name in whole] + [(name, "f8") for name in names])


# One pair.
PAIR = record(
    "where", "scale",  # of the law of its rewards
    "low", "high",  # outside of these one is refused
    "weight",  # the size of the weights asked for
    "true_mean", "true_variance",
)  # fmt: skip

# One policy that is drawn from: `plays.kinds[SAFE].first`.
KIND = record(
    "noise", "longest",  # sums of discount^2t and of discount^t over the steps that can happen
    "length",  # expected discounted steps
    whole=(
        "first", "by_node",  # its first row; its rows are nodes
        "random",
        "same",  # it goes exactly where the baseline goes
    ),
)  # fmt: skip

# Columns of `Scene.promised`
P_VARIANCE, P_FLOOR, P_CEILING = range(3)


class Scene(NamedTuple):
    """The model and the simulated truth. A pair is s * A + a; `slot[t, s]` numbers (step, state).

    Where transitions are unknown the nodes are those of every (step, state), and what only plans and answers
    of the loop's own need is empty.
    """

    nodes: Nodes  # the moves after which the episode goes on, unrolled
    slot: Ints  # [steps, S], -1 where nothing can be met
    indptr: Ints  # all moves, also those into terminal states
    to: Ints
    chance: Floats
    ends: Bools  # [S], terminal
    start: Ints  # states
    start_chance: Floats
    pairs: Any  # [pairs], records of PAIR
    promised: Floats  # [pairs, 3], scale^2, floor and ceiling of rewards; no rows where nothing is declared
    rewards: Floats  # the data of an empirical law
    factor: Floats  # discount^t, [L]
    length: Floats  # sum of discount^t over the first steps, [L + 1]
    noise: Floats  # sum of discount^2t, likewise
    order: Ints  # states as a design goes through them: on trees by falling step
    asked: Floats  # the weights of the answers, [answers, pairs]
    rate: Floats  # `Question.factor`, [S, A]
    target: Floats  # its reference, [S, A]: on trees the row of the step at which the state is met
    target_by_step: Floats  # [L or 1, S, A]
    uniform: Floats  # [S, A]
    every: Ints  # the states
    safe_nodes: Ints  # where the baseline goes; all, where nobody knows
    one_way: bool  # start and transitions leave nothing to chance


class Weighing(NamedTuple):
    """The rules of the interval at all times: see `Anytime`."""

    wanted: bool  # something is promised about rewards
    fair: bool  # fair estimates are asked for
    numbers: Any  # `Steering`, with `c` and `cap` of each answer
    bands: Any  # `Bands`, with `rho`, `rates` and `costs` of each
    floor: Floats  # of reward means, [pairs]
    ceiling: Floats


class Rules(NamedTuple):
    """The collector's choices and the numbers they need."""

    episodes: int
    explorations: int
    explore_by_clock: bool
    explore_tracked: bool
    explore_by_node: bool
    tracked: bool
    track_all: bool
    head_start: Floats  # what is added to the visits, [rows, A], as the tracker has its rows at first
    design_by_node: bool
    first_row: int  # of the design in the tracker
    plays_baseline: bool
    learn_from_baseline: bool
    plan: int
    replan: float
    ledger: int
    gate: int
    estimate: int
    bounded: bool  # rewards are declared to be
    paths: bool  # certified, and where episodes go is left to chance
    earner: bool  # the fallback
    keeps_visits: bool
    law: int  # of rewards
    shared: bool  # one draw is both the reward and the constraint
    values: Floats  # of what is asked, true, [answers]
    watched: bool  # some reward may be outside of its own bounds
    width: float  # the paper's, after one sample
    extra: float  # added to a sample deviation after one sample
    caution: float
    paced: bool  # the design is told what the ledger can afford
    whole_plans: bool  # a tree whose last states lead on, beyond the horizon
    needed: Ints  # from which number of samples on a pair is needed, [pairs]
    known_variance: Floats  # [S, A], floored; empty where it is learned
    weighing: Weighing


class Plays(NamedTuple):
    """The policies that are drawn from, one for each kind of episode, evaluated once."""

    policy: Floats  # [rows, A]
    sure: Ints  # [rows], the action where nothing is left to chance
    kinds: Any  # [kinds], records of KIND
    behaviour: Floats  # [kinds, nodes, A]
    weights: Floats  # [kinds, S, A]
    visits: Floats  # the same as [kinds, pairs]
