"""(setup, state) -> Asked: the next trial. Explores first, then follows the design, behind the gate.

Nothing is changed here: what was decided takes effect when `apply` is given the event.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief
from saver._types import Bools, Floats, Ints
from saver.collect.events import BASELINE, EXPLORE, PLAN, SHOWN, Asked, Plan, Trial
from saver.collect.knowledge import Statistics
from saver.collect.setup import Setup
from saver.collect.shares import shares_of
from saver.collect.state import (
    DESIGNED,
    KINDS,
    Following,
    State,
    budgets,
    exploration_of,
    following,
    generator_at,
    nearest,
    policy_of,
    words,
)
from saver.estimate.log import seen_moves
from saver.kernels.believing import next_plan
from saver.play.nodes import richest
from saver.play.policy import Policy
from saver.problem.checks import read_only
from saver.safety import GATES


class Candidate(NamedTuple):
    """What would be played if it can be afforded: a kind, and a policy by name or by its actions."""

    kind: str
    policy: Any
    by_step: bool = False


def decide(setup: Setup, state: State) -> Asked:
    """The next trial."""
    made, exploration, plan = None, None, state.following
    if exploring(setup, state):
        if setup.collector.explore == "coverage" and state.exploration is None:
            exploration = setup.exploration().rows
        explored = state.exploration if exploration is None else exploration
        candidate = explore(setup, state, exploration_of(setup, explored))
    else:
        explored = None
        if state.plan is None or (not setup.designer.fixed and state.asked + 1 >= state.plan.until):
            made = new_plan(setup, state)
            plan = following(setup, made, state.more)
        candidate = design(setup, state, plan)
    follows = policy_of(setup, *candidate[1:], None if plan is None else plan.policy, explored)
    newest = made or state.plan
    if candidate.kind == "design" and newest is not None and newest.sooner:
        candidate, follows = shown_first(setup, state, newest)
    elif not affordable(setup, state, follows):
        candidate, follows = fall_back(setup, state, newest)
    draws: Any = None
    stream: tuple[int, ...] = ()
    if not follows.sure:
        generator = np.random.Generator(generator_at(state.stream))
        draws, stream = generator.random(setup.problem.mdp.horizon), words(generator.bit_generator)
    trial = Trial(state.asked + 1, candidate.kind, follows, draws)
    play, baseline = setup.promised(trial), trial.kind == "baseline"
    believed = foreseen(setup, newest, trial)
    tickets = {
        name: keeper.freeze(state.books[name], play, baseline, believed.get(name))
        for name, keeper in setup.keepers.items()
    }
    more = {"draws": draws, "plan": made, "exploration": exploration, "stream": stream}
    return Asked(trial.number, *candidate, tickets=tickets, **more)


def foreseen(setup: Setup, plan: Plan | None, trial: Trial) -> dict[str, float]:
    """What a trial that follows a plan is believed to earn, by each ledger that asks."""
    if plan is None or plan.foresight is None or trial.kind != "design" or not trial.follows.sure:
        return {}
    worths = plan.foresight.worths(trial.follows)
    return {row.used: float(worth) for row, worth in zip(setup.rail_books, worths, strict=True) if row.used}


def exploring(setup: Setup, state: State) -> bool:
    """Whether the next trial explores."""
    done = state.asked if setup.collector.explore_by_clock else state.explored
    return done < setup.explorations


def explore(setup: Setup, state: State, policy: Policy) -> Candidate:
    """In turn where nothing is random, so that the certificate is as tight as it can be; else drawn."""
    if not setup.explores_in_turn:
        return Candidate("explore", EXPLORE)
    counts = visits(setup, state, policy.by_step, ("explore",))
    return Candidate("explore", *_follow(setup, policy, counts, None))


def design(setup: Setup, state: State, plan: Following | None) -> Candidate:
    """The plan, drawn from or tracked."""
    assert plan is not None
    collector = setup.collector
    if plan.needed is None:
        return Candidate("baseline" if collector.design == "baseline" else "design", PLAN)
    kinds = DESIGNED if collector.track == "designed" else KINDS
    counts = visits(setup, state, plan.policy.by_step, kinds)
    first = come_first(setup, state, plan.needed)
    return Candidate("design", *_follow(setup, plan.policy, counts, first))


def _follow(setup: Setup, policy: Policy, counts: Floats, first: Bools | None) -> tuple[Any, bool]:
    grid = setup.stage.grid
    if first is None:
        rows = np.zeros(policy.rows.shape, dtype=bool)
    else:
        rows = first[grid.state] if policy.by_step else first
    chosen = follow_design(read_only(policy.rows), counts + setup.offsets[policy.by_step], rows)
    return grid.choices(policy.by_step, chosen).rows, policy.by_step


def new_plan(setup: Setup, state: State) -> Plan:
    """The design for what is believed now."""
    number, before, warm = state.asked + 1, state.following, None
    if before is not None:
        warm = before.plan.warm if setup.problem.mdp.known else before.policy.table()
    facts, variance = statistics(setup, state), setup.variance(state.sums.rewards)
    made = setup.designer.design(facts, variance, required(setup, state), pace(setup, state), warm)
    policy = setup.stage.grid.policy(made.policy)
    until = int(next_plan(number, float(setup.collector.replan)))
    reach = None if made.reach is None else made.reach[setup.stage.grid.step, setup.stage.grid.state]
    shares, sooner = None, False
    if setup.known and setup.collector.design == "exact" and setup.behind_gate:
        shares, sooner = shares_of(setup, state, facts, made)
    return Plan(
        policy.by_step, policy.rows, until, number, made.warm, reach, made.needed, made.foresight, shares,
        sooner,
    )  # fmt: skip


def required(setup: Setup, state: State) -> Floats:
    """What an episode must earn of each guardrail, as believed."""
    books = [row.used or row.plugin for row in setup.rail_books]
    return np.array([setup.ledgers[book].required(state.books[book]) for book in books])


def pace(setup: Setup, state: State) -> Floats:
    """What the design should earn of each guardrail: as required, or as its ledger can afford."""
    if not setup.designer.paced or not setup.behind_gate:
        return required(setup, state)
    out = [trial.kind == "baseline" for trial in state.out.values()]
    baseline = state.told["baseline"] + sum(out)
    designed = sum(state.told.values()) + len(out) - baseline
    left = state.left(setup.episodes)
    paces = [
        used.pace(state.books[book], designed, baseline, left) for book, used in setup.behind_gate.items()
    ]
    return np.array(paces)


def statistics(setup: Setup, state: State) -> Statistics:
    """What a design is told now."""
    problem, sums = setup.problem, state.sums
    moves = None if problem.mdp.known else seen_moves(problem.mdp, sums)
    return Statistics.of(
        problem, setup.knowledge, state.asked + 1, sums.rewards, state.rail_moments(problem), moves
    )


def visits(setup: Setup, state: State, by_step: bool, kinds: tuple[str, ...]) -> Floats:
    """Visits in trials of these kinds, by node or by state; trials that are out count as expected."""
    counts: Floats = functools.reduce(np.add, (state.counts[kind] for kind in kinds))
    expected = state.outstanding.expected(kinds)
    if expected is not None:
        counts = counts + expected
    return counts if by_step else setup.stage.grid.by_state(counts)


def come_first(setup: Setup, state: State, needed: Ints) -> Bools:
    """Pairs that come first: needed, never sampled, and not expected by a trial that is out.

    From the middle of the campaign on also those with one sample, which says nothing of their variance:
    without a second one the estimate has no standard error.
    """
    enough = 1 if 2 * (state.spent + 1) <= setup.episodes else 2
    few = state.sums.rewards.counts < enough
    return (needed <= enough) & few & (state.outstanding.expecting == 0)


def shown_first(setup: Setup, state: State, plan: Plan) -> tuple[Candidate, Policy]:
    """Of the policies that a log shows, and the baseline, the one that lags most behind its share."""
    shares = plan.shares
    played = np.array([state.played.get(i, 0) for i in range(len(shares))])
    played[-1] = state.told["baseline"] + sum(trial.kind == "baseline" for trial in state.out.values())
    lag = np.where(shares > 0.0, shares * (played.sum() + 1) - played, -np.inf)
    for i in np.argsort(-lag, kind="stable").tolist():
        if not np.isfinite(lag[i]) or i == len(setup.known):
            break
        if affordable(setup, state, setup.known[i]):
            return Candidate("design", f"{SHOWN}{i}"), setup.known[i]
    return Candidate("baseline", BASELINE), setup.baseline


def fall_back(setup: Setup, state: State, plan: Plan | None = None) -> tuple[Candidate, Policy]:
    """What is played where the gate refuses: what surely earns most, or the baseline.

    Most of the guardrail whose budget is the least; of none less than the baseline, as believed. Where
    transitions are unknown, what a log shows can be afforded.
    """
    safe = Candidate("baseline", BASELINE), setup.baseline
    if plan is not None and plan.shares is not None:
        return shown_first(setup, state, plan)
    if setup.collector.fallback == "baseline" or not setup.behind_gate or not setup.problem.mdp.known:
        return safe
    stage, books = setup.stage, list(setup.behind_gate)
    means = setup.problem.means(statistics(setup, state).constraint_mean)
    near = nearest(setup, state, budgets(setup, state)) if len(books) > 1 else setup.rail_books[0].rail.name
    at = [row.rail.name for row in setup.rail_books].index(near)
    lowers = [used.ends(state.books[book])[0] for book, used in setup.behind_gate.items()]
    rows = np.zeros(len(stage.nodes.state), dtype=np.int64)
    surely, likely = richest(stage.nodes, lowers[at], means[at], rows)
    follows = stage.grid.choices(True, rows)
    for i, book in enumerate(books):
        if i != at:
            play = stage.play(follows)
            surely, likely = play.value(lowers[i]), play.value(means[i])
        if (surely + likely) / 2 < setup.ledgers[book].value(state.books[book]):
            return safe
    if setup.behind_gate[books[0]].exact(stage.play(follows)) or not affordable(setup, state, follows):
        return safe
    return Candidate("earn", follows.rows, True), follows


def affordable(setup: Setup, state: State, policy: Policy) -> bool:
    """Whether every guardrail's gate lets a policy pass; what is exactly as good as the baseline does."""
    gate, used = GATES.get(setup.collector.gate), setup.behind_gate
    if gate is None or not used:
        return True
    play = setup.stage.play(policy)
    return all(ledger.exact(play) or gate(ledger, state.books[book], play) for book, ledger in used.items())


# -- from a design to the policy of one episode --------------------------------------------------------------


@brief
def follow_design(design: Floats, counts: Floats, first: Bools) -> Ints:
    """In every row argmax_a b(a|s) / T(s,a), [n]; ties go to the lowest index.

    T counts visits, and what `Setup.head_start` adds to them, so that a design is followed from the first
    visit on. Without that, as in the paper, every action that the design may take goes first once: where a
    row is met seldom, that is most of a campaign.

    A pair in `first` goes before all others: one that has weight and was never sampled would leave a bias for
    ever if the design gave it nothing. All three are [n, A].
    """
    choice = np.zeros(len(design), dtype=np.int64)
    for i in range(len(design)):
        best = -1.0
        for a in range(design.shape[1]):
            score = design[i, a] / counts[i, a] if design[i, a] > 0.0 else 0.0
            score = np.inf if first[i, a] else score
            if score > best:
                best, choice[i] = score, a
    return choice
