"""The error where transitions are learned (`saver.Unknown`): simulated, foreseen and believed.

Random models, K episodes of a fixed behaviour that is not the target; a reward's mean depends on the next
state, and it has normal noise besides. `told`: whether the state after the last step is. `formula` is the
limit of K times the mean squared error,

    sum c^2 variance / N + sum Var[u(s')] / N^- + 2 sum c Cov(r, u(s')) / N (+ Var[V_0]),

from the true model and by other code than the estimate's; Var[V_0] where the start is learned. `simulated` is
K times the mean squared error of `certainty_estimated` over it, `errors` its distance from 1 in standard
errors, sqrt(2 / runs); a row is WRONG beyond 4, and the mean of all beyond 5 %. `believed` is the mean of the
estimated variance over the simulated one, `covered` how often the 95 % interval at one time holds the truth.
`no covariance` and `N for N^-` are what the formula would be without the third term, and if every visit told
its next state, over what it is.

Counts of moves are drawn step by step, multinomial given the counts of states, and sums of rewards given
these: the law of K episodes, without the episodes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from tables import Table

from saver._types import Floats
from saver.estimate.asymptotic import stretched
from saver.estimate.certainty import certainty_estimated
from saver.estimate.interval import LEVEL, Estimate
from saver.estimate.recursion import Moves
from saver.problem.mdp import Unknown
from saver.problem.moments import Moments
from saver_audit.judge import tail

MODELS, EPISODES, RUNS = 20, 20_000, 1000
FAR, MEAN = 4.0, 0.05  # standard errors of one row; of the mean ratio
STREAMS, LOOKS, FIRST, LAST = 300, 120, 500, 10_000
LOOKED_AT = (0, 1, 2, 3)
COLUMNS = ("model", "S x A x L", "discount", "start", "told", "formula", "simulated", "errors",
           "believed", "covered", "no covariance", "N for N^-", "verdict")  # fmt: skip
LOOK = f"""
Streams of {LAST:,} episodes of the first models, looked at {LOOKS} times from episode {FIRST} on, evenly in
the logarithm. `ever missed` is the share in which some look has the truth outside the interval at all times,
`Estimate.stretched(asymptotic.stretched(...))`; `by chance` the probability of as many or more if that is
.05; `at one time` the share that the interval for one look ever misses. `width` is how many times as wide it
is at the end.
"""


@dataclass(frozen=True)
class Truth:
    """What nobody knows; in P and mean the last column is the end of the episode."""

    P: Floats  # [S, A, S + 1]
    mean: Floats  # of rewards, by where they led, [S, A, S + 1]
    scale: Floats  # of their noise, [S, A]
    start: Floats
    horizon: int
    discount: float
    target: Floats
    behaviour: Floats
    learned: bool  # the start

    @property
    def mdp(self) -> Unknown:
        states, actions = self.scale.shape
        start = None if self.learned else self.start
        return Unknown(states, actions, self.horizon, discount=self.discount, start=start)

    @property
    def independent(self) -> Truth:
        """The same with rewards whose mean does not depend on the next state."""
        mean = np.sum(self.P * self.mean, axis=2, keepdims=True)
        return replace(self, mean=np.broadcast_to(mean, self.P.shape))


def random_truth(seed: int) -> Truth:
    rng = np.random.default_rng([17, seed])
    S, A, L = int(rng.integers(3, 7)), int(rng.integers(2, 4)), int(rng.integers(2, 6))
    ends = np.where(rng.random((S, A, 1)) < 0.3, rng.uniform(0.1, 0.6, (S, A, 1)), 0.0)
    moves = (1.0 - ends) * rng.dirichlet(np.ones(S), (S, A))
    behaviour = 0.7 * rng.dirichlet(np.ones(A), S) + 0.3 / A
    return Truth(
        np.concatenate([moves, ends], axis=2),
        rng.normal(size=(S, A, 1)) + rng.normal(size=(S, A, S + 1)),
        rng.uniform(0.2, 1.2, (S, A)),
        rng.dirichlet(np.ones(S)),
        L,
        float(rng.choice([1.0, 0.9])),
        rng.dirichlet(np.ones(A), S),
        behaviour,
        bool(seed % 2),
    )


class Terms(NamedTuple):
    """The value, and what adds to K times the mean squared error in the limit."""

    value: float
    rewards: float
    moves: float
    together: float
    start: float

    @property
    def total(self) -> float:
        return self.rewards + self.moves + self.together + self.start


def formula(truth: Truth, told: bool, signs: tuple[float, float] = (1.0, 0.0)) -> Terms:
    """Of sign_1 V(target) + sign_2 V(behaviour), from the true model."""
    P, m, last = truth.P, truth.mean, truth.horizon - 1
    c, u, V0 = np.zeros(truth.scale.shape), np.zeros(P.shape), np.zeros(len(truth.start))
    for sign, pi in zip(signs, (truth.target, truth.behaviour), strict=True):
        V, x = ahead(truth, pi), met(truth, pi)
        V0 += sign * V[0, :-1]
        for t in range(truth.horizon):
            c += sign * truth.discount**t * x[t]
            u += sign * truth.discount ** (t + 1) * x[t, :, :, None] * V[t + 1]
    visits = met(truth, truth.behaviour)
    N = visits.sum(axis=0)
    known = N if told else visits[:last].sum(axis=0)
    r_mean, u_mean = np.sum(P * m, axis=2), np.sum(P * u, axis=2)
    variance = truth.scale**2 + np.sum(P * (m - r_mean[:, :, None]) ** 2, axis=2)
    both = np.sum(P * (m - r_mean[:, :, None]) * (u - u_mean[:, :, None]), axis=2)
    by_move = np.sum(P * (u - u_mean[:, :, None]) ** 2, axis=2)
    value = float(truth.start @ V0)
    by_start = float(truth.start @ (V0 - value) ** 2) if truth.learned else 0.0
    needed = by_move > 0
    return Terms(
        value,
        float(np.sum(c**2 * variance / N)),
        float(np.sum(by_move[needed] / known[needed])),
        float(2.0 * np.sum(c * both / N)),
        by_start,
    )


def ahead(truth: Truth, pi: Floats) -> Floats:
    """V_t, 0 at the end, [L + 1, S + 1]."""
    V = np.zeros((truth.horizon + 1, len(truth.start) + 1))
    for t in reversed(range(truth.horizon)):
        V[t, :-1] = np.einsum("sa,saz,saz->s", pi, truth.P, truth.mean + truth.discount * V[t + 1])
    return V


def met(truth: Truth, pi: Floats) -> Floats:
    """P(s_t = s, a_t = a), [L, S, A]."""
    x, at = np.zeros((truth.horizon, *pi.shape)), truth.start
    for t in range(truth.horizon):
        x[t] = at[:, None] * pi
        at = np.einsum("sa,saz->z", x[t], truth.P[:, :, :-1])
    return x


class Tally(NamedTuple):
    """What many runs saw, [runs, ...]; steps before the last, and the last: [runs, 2, S, A, S + 1]."""

    starts: Any
    counts: Any
    sums: Any  # of rewards
    squares: Any  # of rewards


def tally(truth: Truth, episodes: int, runs: int, rng: np.random.Generator) -> Tally:
    S, A = truth.scale.shape
    at = starts = rng.multinomial(episodes, truth.start, size=runs)
    counts = np.zeros((runs, 2, S, A, S + 1), dtype=np.int64)
    law = (truth.behaviour[:, :, None] * truth.P).reshape(S, -1)
    for t in range(truth.horizon):
        moves = rng.multinomial(at, law).reshape(runs, S, A, S + 1)
        counts[:, int(t == truth.horizon - 1)] += moves
        at = moves[..., :-1].sum(axis=(1, 2))
    scale = truth.scale[:, :, None]
    sums = counts * truth.mean + np.sqrt(counts) * scale * rng.normal(size=counts.shape)
    apart = scale**2 * 2.0 * rng.standard_gamma(np.maximum(counts - 1, 0) / 2.0)
    return Tally(starts, counts, sums, apart + sums**2 / np.maximum(counts, 1))


def seen(found: Tally, told: bool) -> tuple[Moments, Moves]:
    """What one run, [...] without runs, tells an estimate."""
    counts, sums = found.counts.sum(axis=(0, -1)), found.sums.sum(axis=(0, -1))
    mean = sums / np.maximum(counts, 1)
    squares = np.maximum(found.squares.sum(axis=(0, -1)) - counts * mean**2, 0.0)
    kept = slice(None) if told else slice(1)
    moves, paid = (part[kept].sum(axis=0).reshape(counts.size, -1) for part in (found.counts, found.sums))
    table = sparse.csr_array(moves[:, :-1].astype(float))
    rows = np.repeat(np.arange(counts.size), np.diff(table.indptr))
    onward = paid[rows, table.indices]
    ends = moves[:, -1].astype(float)
    return Moments(counts, mean, squares), Moves(table, ends, onward, paid[:, -1], found.starts.astype(float))


def estimated(truth: Truth, found: Tally, told: bool, against: bool = False) -> list[Estimate]:
    """The estimates of all runs."""
    mdp, other = truth.mdp, truth.behaviour if against else None
    return [
        certainty_estimated(mdp, truth.target, *seen(Tally(*one), told), against=other)
        for one in zip(*found, strict=True)
    ]


class Compared(NamedTuple):
    """Over the formula, over the simulated error, and a share."""

    simulated: float
    believed: float
    covered: float


def compared(truth: Truth, found: Tally, told: bool, signs: tuple[float, float] = (1.0, 0.0)) -> Compared:
    """Simulated against the formula; of the difference to the behaviour with signs (1, -1)."""
    terms, answers = formula(truth, told, signs), estimated(truth, found, told, against=signs[1] != 0.0)
    value, stderr = (np.array([getattr(one, name) for one in answers]) for name in ("value", "stderr"))
    ends = np.array([one.interval for one in answers])
    error, episodes = float(np.mean((value - terms.value) ** 2)), int(found.starts[0].sum())
    held = (ends[:, 0] <= terms.value) & (terms.value <= ends[:, 1])
    return Compared(episodes * error / terms.total, float(np.mean(stderr**2)) / error, float(held.mean()))


def rows(models: int = MODELS, episodes: int = EPISODES, runs: int = RUNS) -> list[list[Any]]:
    found = []
    for seed in range(models):
        truth = random_truth(seed)
        drawn = tally(truth, episodes, runs, np.random.default_rng([18, seed]))
        for told in (True, False):
            terms, one = formula(truth, told), compared(truth, drawn, told)
            errors = (one.simulated - 1.0) / np.sqrt(2.0 / runs)
            mistaken = formula(truth, True).total / terms.total
            found.append([
                seed, "x".join(map(str, (*truth.scale.shape, truth.horizon))), truth.discount,
                "learned" if truth.learned else "given", "yes" if told else "no", f"{terms.total:.3f}",
                one.simulated, f"{errors:+.1f}", one.believed, f"{one.covered:.3f}",
                1.0 - terms.together / terms.total, mistaken, "WRONG" if abs(errors) > FAR else "kept",
            ])  # fmt: skip
            print(*found[-1], file=sys.stderr, flush=True)
    return found


def summary(found: list[list[Any]]) -> list[Any]:
    """The means over all rows."""
    named = ("simulated", "believed", "covered", "no covariance", "N for N^-")
    mean = {name: float(np.mean([float(row[COLUMNS.index(name)]) for row in found])) for name in named}
    cells: dict[str, Any] = {name: f"{value:.3f}" for name, value in mean.items()}
    cells |= {"model": "mean", "verdict": "WRONG" if abs(mean["simulated"] - 1.0) > MEAN else "kept"}
    return [cells.get(name, "") for name in COLUMNS]


class Looked(NamedTuple):
    """The streams that were ever wrong at all times and at one time, and how much wider the former is."""

    missed: int
    once: int
    factor: float
    looks: int


def looked_at(truth: Truth, told: bool, streams: int, looks: int, last: int, seed: int) -> Looked:
    """Streams of episodes, with answers at every look."""
    value, rng = formula(truth, told).value, np.random.default_rng([19, seed])
    points = np.unique(np.geomspace(FIRST, last, looks).astype(int))
    so_far, missed, once = None, np.zeros(streams, bool), np.zeros(streams, bool)
    for more, k in zip(np.diff(points, prepend=0).tolist(), points.tolist(), strict=True):
        new = tally(truth, more, streams, rng)
        so_far = new if so_far is None else Tally(*(a + b for a, b in zip(so_far, new, strict=True)))
        factor = float(stretched(k, last, LEVEL))
        answers = estimated(truth, so_far, told)
        missed |= [wrong(one.stretched(factor), value) for one in answers]
        once |= [wrong(one, value) for one in answers]
    return Looked(int(missed.sum()), int(once.sum()), factor, len(points))


def wrong(answer: Estimate, value: float) -> bool:
    return not answer.interval[0] <= value <= answer.interval[1]


def looks() -> Table:
    found = []
    for seed in LOOKED_AT:
        told = bool(seed // 2 % 2)
        one = looked_at(random_truth(seed), told, STREAMS, LOOKS, LAST, seed)
        found.append([
            seed, "yes" if told else "no", STREAMS, one.looks, f"{one.missed / STREAMS:.3f}",
            f"{tail(STREAMS, one.missed, 1.0 - LEVEL):.2g}", f"{one.once / STREAMS:.3f}", one.factor,
        ])  # fmt: skip
        print(*found[-1], file=sys.stderr, flush=True)
    head = ("model", "told", "streams", "looks", "ever missed", "by chance", "at one time", "width")
    return Table("At all times", LOOK, head, found)


def table() -> Table:
    found = rows()
    return Table("unknown-formula", __doc__ or "", COLUMNS, [*found, summary(found)], (looks(),))
