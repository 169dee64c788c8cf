"""What the compiled loop sees: plain arrays and numbers, and the integers that stand for choices."""

from __future__ import annotations

from typing import NamedTuple

from saver._types import Bools, Floats, Ints
from saver.play.nodes import Nodes
from saver.safety.noise import Rule
from saver.safety.widths import Numbers

NORMAL, COIN, DATA = range(3)  # laws
EXPLORE, DESIGN, SAFE, EARN = range(4)  # kinds of episode
NO_LEDGER, CERTIFIED, PAPER, LATEST, PLUGIN = range(5)
NO_GATE, RETROSPECTIVE, PROSPECTIVE = range(3)
FIXED, TREE, DAG, ONE, OUTSIDE = range(5)  # where plans come from
CERTAINTY, ESTIMATED, IMPORTANCE = range(3)

# Columns of `Scene.pairs`: location and scale of the laws, outside of which a reward is refused, the size
# of the weights asked for, the true means and variance.
R_WHERE, R_SCALE, C_WHERE, C_SCALE, R_LOW, R_HIGH, WEIGHT, WORTH, R_MEAN, R_VARIANCE = range(10)

# Columns of `Scene.promised`
P_VARIANCE, P_FLOOR, P_CEILING = range(3)


class Scene(NamedTuple):
    """The model and the simulated truth. A pair is s * A + a; `slot[t, s]` numbers (step, state)."""

    nodes: Nodes  # the moves after which the episode goes on, unrolled
    slot: Ints  # [steps, S], -1 where nothing can be met
    indptr: Ints  # all moves, also those into terminal states
    to: Ints
    chance: Floats
    ends: Bools  # [S], terminal
    start: Ints  # states
    start_chance: Floats
    pairs: Floats  # [pairs, 10]
    promised: Floats  # [pairs, 3], scale^2, floor and ceiling of rewards; no rows where nothing is declared
    rewards: Floats  # the data of empirical laws
    constraints: Floats
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
    safe_nodes: Ints  # where the baseline goes
    one_way: bool  # start and transitions leave nothing to chance


class Weighing(NamedTuple):
    """The rules of the interval at all times: see `Anytime`."""

    wanted: bool  # something is promised about rewards
    fair: bool  # fair estimates are asked for
    c: Floats  # [answers, pairs]
    usual: Floats  # `Steering`, [pairs]
    scale: Floats
    span: Floats
    cap: Floats  # [answers]
    level: float  # `Bands`
    rho: Floats  # [answers]
    rates: Floats  # [answers, rates]
    costs: Floats
    bounded: bool
    box: Numbers
    log_pairs: float
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
    ahead: Floats  # what is added to the visits, [rows, A], as the tracker has its rows at first
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
    crosses: bool  # then noise and paths are also bounded together
    drawn: bool  # certified, and what a trial is worth is decided by its draws
    earner: bool  # the fallback
    keeps_visits: bool
    laws: tuple[int, int]
    shared: bool  # one draw is both the reward and the constraint
    tolerance: float  # of the gate
    required: float
    surplus: float  # alpha baseline_value: what a baseline episode earns
    declared: float  # baseline_value
    baseline: float  # what it is truly worth
    values: Floats  # of what is asked, true, [answers]
    floor: float
    bounds: tuple[float, float]  # outside of which a constraint observation is refused
    watched: bool  # some reward may be outside of its own
    proxy: float  # scale^2
    scale: float
    width: float  # the paper's, after one sample
    extra: float  # added to a sample deviation after one sample
    caution: float
    rule: Rule  # of the noise
    boundary: tuple[float, float, float]  # start, scale and level of noise and paths together
    last: tuple[float, float, float]  # proxy, length and lower value of the last episode, before the first
    paced: bool  # the design is told what the ledger can afford
    box: Numbers
    unit: float  # the proxy of an episode of full length
    table: Floats  # the boundary after j of these
    depth: Floats  # how far below a mean of j samples its lower end is, where that is all that is asked
    whole_plans: bool  # a tree whose last states lead on, beyond the horizon
    one_step: bool  # `onestep` applies
    needed: Ints  # from which number of samples on a pair is needed, [pairs]
    known_variance: Floats  # [S, A], floored; empty where it is learned
    known_constraint: Floats  # [S, A]; empty where it is learned
    weighing: Weighing


# Columns of `Sheets.flags` and of `Sheets.numbers`
FIRST, BY_NODE, RANDOM, SAME = range(4)
NOISE, LONGEST, FLOOR, TRUE, LENGTH = range(5)


class Sheets(NamedTuple):
    """The policies that are drawn from, one for each kind of episode, evaluated once."""

    policy: Floats  # [rows, A]
    sure: Ints  # [rows], the action where nothing is left to chance
    flags: Ints  # [kinds, 4]: first row; rows are nodes; random; goes exactly where the baseline goes
    numbers: Floats  # [kinds, 5]: noise, longest, V(b; floor), V_c, expected discounted steps
    behaviour: Floats  # [kinds, nodes, A]
    weights: Floats  # [kinds, S, A]
    visits: Floats  # the same as [kinds, pairs]
