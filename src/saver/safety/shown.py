"""What a log of the baseline shows of a policy that it did not follow: at least so much is an episode worth.

Step 16 of docs/proof/logs.md. The first part of the log chose the policy b and tables V and Q that stand for
its value; `least` is less than any episode can earn from there on. Let w_t = prod_{k<=t} b(a_k|s_k) /
b_0(a_k|s_k), w_{-1} = 1, and tau the first step where w could pass `most`, or the sum has fallen by `fall`.
Of an episode of the second part

    U = V_0(s_0) + sum_{t<tau} g^t w_t (X_t + g V_{t+1}(s_{t+1}) - Q_t(s_t, a_t))
        + g^tau w_{tau-1} (least_tau - V_tau)(s_tau),

E U <= V(b), with equality where nothing is stopped, whatever V and Q are (doubly robust: Jiang and Li 2016).
U >= bottom by construction. So for every m below the mean of D = U - r0 - r1 Y, Y what the episode earned,

    the average over lambda of prod (1 + lambda (D - m) / (m - bottom)) >= 1 / level

with probability at most `level` if m is not below it (betting: Waudby-Smith and Ramdas, 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.problem.guardrail import Rail
from saver.problem.promise import Bounded

FAR = 6.0  # scales beyond the range of the means at which sub-Gaussian observations are cut
MOST = (1.5, 2.0, 3.0, 5.0, 8.0, 13.0)  # weights at which an episode is stopped
FALLS = (2.0, 4.0, 8.0, 16.0)  # and sums, in standard deviations of what episodes earn
SPREAD = (0.5, 0.7, 1.0, 1.4)  # rates, times the one that is best if all is as in the first part
FASTEST = 0.97
HALVINGS = 50
FARTHEST = 1e12  # a ratio where the baseline never goes


@dataclass(frozen=True, eq=False)
class Walked:
    """Episodes side by side: S stands for an episode that is over."""

    states: Ints  # [n, L + 1]
    actions: Ints  # [n, L]; 0 where it is over
    x: Floats  # [n, L], more is better, cut where there are no bounds; 0 where it is over
    discount: float
    wholes: dict[Worth, Floats] = field(default_factory=dict, init=False, repr=False)  # see `Worth.whole`

    @classmethod
    def of(cls, mdp: Any, many: Any, rail: Rail) -> Walked:
        """What a log says of a guardrail."""
        n, L, S = len(many), mdp.horizon, mdp.states
        rows, steps = np.repeat(np.arange(n), many.lengths), many.steps
        states, actions, x = np.full((n, L + 1), S), np.zeros((n, L), dtype=np.int64), np.zeros((n, L))
        states[rows, steps], actions[rows, steps] = many.states, many.actions
        last = many.following(mdp)[many.last]
        states[np.arange(n), many.lengths] = np.where(last >= 0, last, S)
        x[rows, steps] = np.clip(rail.sign * many.constraints[rail.name], *ends(rail))
        return cls(states, actions, x, mdp.discount)

    def __len__(self) -> int:
        return len(self.states)

    def part(self, rows: Any) -> Walked:
        """Some of them."""
        return Walked(self.states[rows], self.actions[rows], self.x[rows], self.discount)

    @property
    def earned(self) -> Floats:
        """sum discount^t x_t."""
        return self.x @ self.discount ** np.arange(self.x.shape[1])


def ends(rail: Rail) -> tuple[float, float]:
    """Between which observations are taken: as promised, or, of noise without bounds, cut far out."""
    promise = rail.promise
    more = 0.0 if isinstance(promise, Bounded) else FAR * promise.scale
    return float(promise.floor - more), float(promise.ceiling + more)


def cut_off(rail: Rail, length: float) -> float:
    """The most that this cut changes what an episode is worth: scale e^(-FAR^2/2) / FAR in a step."""
    if isinstance(rail.promise, Bounded):
        return 0.0
    return float(rail.promise.scale * math.exp(-(FAR**2) / 2.0) / FAR * length)


@dataclass(frozen=True, eq=False)
class Worth:
    """What the first part says of a policy and a guardrail; the last column is the end."""

    ratio: Floats  # b / b_0, [L, S + 1, A]; infinite where b goes and b_0 never does
    V: Floats  # [L + 1, S + 1]
    Q: Floats  # [L, S + 1, A]
    least: Floats  # [L + 1, S + 1]

    @classmethod
    def of(
        cls, policy: Floats, baseline: Floats, onward: Any, mean: Floats, least: Floats, g: float
    ) -> Worth:
        """`onward` gives P V for a table V, [S, A]; policies are [L, S, A]."""
        L, S, A = policy.shape
        V, Q = np.zeros((L + 1, S + 1)), np.zeros((L, S + 1, A))
        for t in reversed(range(L)):
            Q[t, :S] = mean + g * onward(V[t + 1, :S])
            V[t, :S] = np.sum(policy[t] * Q[t, :S], axis=1)
        ratio = np.zeros((L, S + 1, A))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio[:, :S] = np.where(policy > 0.0, np.minimum(policy / baseline, FARTHEST), 0.0)
        low = np.zeros((L + 1, S + 1))
        low[:, :S] = least
        return cls(ratio, V, Q, np.minimum(low, V))

    def bottom(self, most: float, fall: float, low: float, g: float) -> float:
        """U is never below this."""
        S, factors = self.V.shape[1] - 1, g ** np.arange(len(self.Q))
        steps = self.Q[:, :S].max(axis=(1, 2)) - low - g * self.V[1:].min(axis=1)
        stops = (self.V - self.least)[:-1].max(axis=1)
        w = np.minimum(most, np.cumprod(np.maximum(self.ratio.max(axis=(1, 2)), 1.0)))
        before = np.concatenate([[1.0], w[:-1]])
        found = self.V[0, :S].min() - fall
        return float(
            found - np.max(w * factors * steps, initial=0.0) - np.max(before * factors * stops, initial=0.0)
        )

    def whole(self, log: Walked) -> Floats:
        """U where nothing is stopped, worked out once: that of the baseline is beside every policy's."""
        if self not in log.wholes:
            log.wholes[self] = self.summed(log, math.inf, math.inf)
        return log.wholes[self]

    def summed(self, log: Walked, most: float, fall: float) -> Floats:
        """U of each episode."""
        S, g = self.V.shape[1] - 1, log.discount
        top = self.ratio.max(axis=2)
        found, w = self.V[0][log.states[:, 0]], np.ones(len(log))
        fell, goes = np.zeros(len(log)), np.ones(len(log), dtype=bool)
        for t in range(log.x.shape[1]):
            s, a, to, factor = log.states[:, t], log.actions[:, t], log.states[:, t + 1], g**t
            goes = goes & (s < S)
            stops: Bools = goes & ((w * top[t, s] > most) | (fell < -fall))
            found[stops] += factor * w[stops] * (self.least[t] - self.V[t])[s[stops]]
            goes = goes & ~stops
            w[goes] *= self.ratio[t, s[goes], a[goes]]
            e = (
                factor
                * w[goes]
                * (log.x[goes, t] + g * self.V[t + 1, to[goes]] - self.Q[t, s[goes], a[goes]])
            )
            found[goes] += e
            fell[goes] += e
        return found


class Bet(NamedTuple):
    """How an episode is looked at, chosen by the first part."""

    most: float
    fall: float
    beside: Any  # what is known of Y: a `Worth` of the baseline, or None: as it was
    bottom: float  # of D
    rates: Floats


NO_BET = Bet(1.0, 0.0, None, 0.0, np.zeros(0))


def looks(one: Worth, base: Worth, log: Walked, rail: Rail, level: float, n: int) -> tuple[float, Bet]:
    """The way of looking that promises most for n further episodes, and what it promises."""
    (low, high), length = ends(rail), float(np.sum(log.discount ** np.arange(log.x.shape[1])))
    r0, r1 = rail.required_by if rail.learned else (0.0, 0.0)
    l, promised, bet = math.log(1.0 / level), -math.inf, NO_BET  # noqa: E741
    sd = float(np.std(log.earned)) or 1.0
    beside: list[tuple[Any, Floats, float]] = [(None, log.earned, high * (length if high > 0.0 else 1.0))]
    if r1 != 0.0:
        top = base.V[0].max() + float(np.sum(_rises(base, high, log.discount)))
        beside.append((base, base.whole(log), top))
    for most, fall, U in ((c, k * sd, one.summed(log, c, k * sd)) for c in MOST for k in FALLS):
        least = one.bottom(most, fall, low, log.discount) - r0
        for other, Y, most_of_Y in beside:
            D, bottom = U - r0 - r1 * Y, least - r1 * most_of_Y
            mean, spread = float(D.mean()), max(float(D.std()), 1e-9)
            off = math.sqrt(2.0 * spread**2 * l / n) + (mean - bottom) * l / (3.0 * n)
            if mean - off > promised:
                best = (mean - bottom) * math.sqrt(2.0 * l / n) / spread
                rates = np.minimum(best * np.array(SPREAD), FASTEST)
                promised, bet = mean - off, Bet(most, fall, other, bottom, rates)
    return promised, bet


def _rises(base: Worth, high: float, g: float) -> Floats:
    """By at most this much the sum of the baseline's U rises in each step."""
    S = base.V.shape[1] - 1
    up = high + g * base.V[1:].max(axis=1) - base.Q[:, :S].min(axis=(1, 2))
    return np.maximum(up, 0.0) * g ** np.arange(len(up))


def surely(one: Worth, bet: Bet, log: Walked, rail: Rail, level: float) -> float:
    """At least this much is an episode of the policy worth above what is required, but for `level`.

    Where V0 is known that is required at its worse end.
    """
    r0, r1 = rail.required_by if rail.learned else (0.0, 0.0)
    Y = log.earned if bet.beside is None else bet.beside.whole(log)
    D = one.summed(log, bet.most, bet.fall) - r0 - r1 * Y
    steps = float(np.sum(log.discount ** np.arange(log.x.shape[1])))
    found = below(D, bet.bottom, level, bet.rates) - cut_off(rail, (bet.most + abs(r1)) * steps)
    if rail.learned:
        return found
    return found - rail.most_required


def below(D: Floats, bottom: float, level: float, rates: Floats) -> float:
    """The largest m that is refused, from below: the mean of D is above it, but for `level`."""
    low, high, wanted = bottom, float(D.mean()), math.log(len(rates) / level)
    if high <= bottom:
        return bottom
    for _ in range(HALVINGS):
        m = (low + high) / 2.0
        y = (D - m) / (m - bottom)
        logs = np.array([float(np.sum(np.log1p(rate * np.maximum(y, -1.0)))) for rate in rates])
        top = float(logs.max())
        refused = top + math.log(float(np.sum(np.exp(logs - top)))) >= wanted
        low, high = (m, high) if refused else (low, m)
    return low


def nothing_less(mdp: Any, rail: Rail) -> Floats:
    """What any policy is worth at least from each step on, [L + 1, 1]: who goes on takes one step more."""
    floor, found = float(rail.promise.floor), np.zeros((mdp.horizon + 1, 1))
    for t in reversed(range(mdp.horizon)):
        found[t] = floor + (mdp.discount * found[t + 1] if floor < 0.0 else 0.0)
    return found
