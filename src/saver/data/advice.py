"""What a log cannot tell of a problem, and which model to take it for, with the price of each."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saver._jit import plainly
from saver._types import Floats
from saver.collect.decide import new_plan
from saver.collect.showing import begun
from saver.estimate.log import seen_moves
from saver.kernels.bounds.moves import Moves, lowest, radius
from saver.problem import Problem, weights
from saver.problem.bellman import by_step
from saver.safety import Ledger
from saver.safety.argument import Box

SELDOM = 30  # samples: a mean of fewer is hardly known
NAMED = 3  # pairs by name
EPISODES = 1000  # of the campaign that prices are for
NORMAL = 1.96  # 95 %
LARGE = 10**7  # outcomes to weigh


class Gap(NamedTuple):
    """Pairs of which a log says little."""

    pairs: list[tuple[str, int]]  # names and samples
    share: float  # of the steps of the targets

    def said(self, what: str, of: int) -> str:
        """In a sentence."""
        named = ", ".join(f"{name} ({count:,})" for name, count in self.pairs[:NAMED])
        more = len(self.pairs) - NAMED
        named += f" and {more:,} others" if more > 0 else ""
        return f"{what}: {len(self.pairs):,} of {of:,} pairs, {self.share:.2g} of the target's steps: {named}"


def advice(fitted: Any, problem: Problem) -> tuple[str, ...]:
    """Lines: pairs seen seldom, actions never tried, what that leaves open; models with their prices."""
    counts, model = fitted.sums.rewards.counts, fitted.believed
    S = len(counts)
    each = [weights(model, policy)[:S] for policy in problem.targets.values()]
    c = np.max(np.abs(each), axis=0)
    return (*_gaps(problem, counts, c), *_models(fitted, problem, c), *_pairwise(fitted, problem))


def _gaps(problem: Problem, counts: Any, c: Floats) -> list[str]:
    """What is nowhere in the log, or seldom."""
    mdp, lines = problem.mdp, []
    met = counts.sum(axis=1, keepdims=True) > 0
    seldom, never = (counts > 0) & (counts < SELDOM), (counts == 0) & met & mdp.available[: len(counts)]
    total, of = float(c.sum()) or 1.0, int(np.sum(mdp.available[: len(counts)] & met))
    for what, chosen in (("seen seldom", seldom), ("never tried", never)):
        at = [tuple(row) for row in np.argwhere(chosen)]
        if at:
            at.sort(key=lambda row: -c[row])
            found = Gap(
                [(mdp.pair_label(*row), int(counts[row])) for row in at], float(c[chosen].sum()) / total
            )
            lines.append(found.said(what, of))
    lost = float(c[never].sum())
    if lost > 0.0:
        table, by = problem.rewards, "nobody knows how much"
        if table is not None:
            span = (table.ceiling - table.floor)[: len(c)]
            by = f"{float(np.sum((c * span)[never])) / 2:.3g} to either side"
        lines.append(f"  what was never tried leaves the target's value open by {by}; a campaign can tell")
    return lines


def _models(fitted: Any, problem: Problem, c: Floats) -> list[str]:
    """The three, the recommended one first."""
    if problem.mdp.known:
        return [
            "model: mdp takes what was seen for the truth, and no interval or promise counts that; "
            "model='unknown' does"
        ]
    lines, history, (setup, state) = [], problem.history, begun(problem, "saver-opt", EPISODES)
    if history is None or history.shown is None:
        lines.append("model: unknown. The log does not show what policies are worth: it is too short, or not")
        lines.append("  all of it measured")
    else:
        plan = new_plan(setup, state)
        share = 1.0 if plan.shares is None else float(plan.shares[-1])
        part = {0.0: "none", 1.0: "all"}.get(round(share, 3), f"about {share:.0%}")
        lines.append(
            f"model: unknown, with what the log shows of {len(history.shown.names)} policies: {part} of "
            f"{EPISODES:,} episodes would be the baseline's"
        )
    first = max(_first_trial(used, state.books[book]) for book, used in setup.behind_gate.items())
    after = "never" if math.isinf(first) else f"after about {first:,.0f} baseline episodes"
    lines.append(f"  by returns alone another policy could run {after}")
    one, moments = fitted.off_policy(problem.first).certainty, fitted.sums.rewards
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(c > 0.0, c**2 * moments.variance / np.maximum(moments.counts, 1), 0.0)
    known, half = NORMAL * math.sqrt(float(np.sum(parts))), (one.interval[1] - one.interval[0]) / 2
    lines.append(
        f"  model='mdp' would take frequencies for the truth: +- {known:.3g} from the log alone, where "
        f"+- {half:.3g} is honest, and a promise that does not count what moves may be"
    )
    return lines


def _first_trial(ledger: Ledger, book: Any) -> float:
    """Baseline episodes until a trial at the least that an episode can be worth can be afforded."""
    credit, least = ledger.credit(book), ledger.floor_value(ledger.stage.play(ledger.problem.baseline))
    return math.ceil((ledger.required(book) - least) / credit) if credit > 0.0 else math.inf


def _pairwise(fitted: Any, problem: Problem) -> list[str]:
    """What pairs one by one leave open of the target: no promise rests on it."""
    if problem.mdp.known or problem.history is None:
        return []
    moves, mdp, lines = seen_moves(problem.mdp, problem.history.sums), problem.mdp, []
    counts = sparse.hstack([moves.counts, sparse.csr_array(moves.ends[:, None])], format="csr")
    totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    shares = counts.data / np.repeat(totals, np.diff(counts.indptr))
    kept = Moves(counts.indptr.astype(np.int64), counts.indices.astype(np.int64), shares, totals)
    policy = np.array(by_step(mdp, problem.first))
    for rail in problem.rails:
        box = Box(problem, len(moves.starts), rail.level / 2.0, below=True, rail=rail)
        seen = problem.history.rails[rail.name].seen
        lower = np.where(seen.counts > 0, box.ends(seen.counts, seen.mean)[0], rail.promise.floor)
        level = math.log(rail.level / 2.0 / (box.pairs + 1))
        radii = np.array([radius(n, mdp.states + 1.0, level) for n in totals])
        values = np.zeros((mdp.horizon + 1, mdp.states))
        starts = moves.starts if mdp.start is None else np.array(mdp.start)
        far = 0.0 if mdp.start is not None else radius(float(starts.sum()), float(mdp.states), level)
        with plainly(values.size * mdp.actions * mdp.states <= LARGE):  # else it is worth compiling
            worth = rail.sign * lowest(policy, lower, kept, radii, mdp.discount, starts, far, values)
        does = "costs at most" if rail.sign < 0 else "earns at least"
        lines.append(
            f"  if moves depend on state and action alone, the target {does} {worth:.4g} of {rail.name}"
        )
    return lines
