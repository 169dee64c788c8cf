"""An interval for the target's value at all times at once, from rewards about which something is promised.

The value is V = sum c mu. At asking, every pair of a trial gets a weight w, of a sample of its rewards; so
sum w (R - mu) is a martingale, whatever is chosen next, and stays within u. With W = sum of the weights of
each pair and the box [lower, upper] of the means, for any theta >= 0

    V >= theta (sum w R - u) + sum_p min over mu_p in the box of (c_p - theta W_p) mu_p,

(docs/anytime.md). Where weights are such that W is about c times the number of episodes, theta is about one
over that number, and little is left for the box. `steer` makes them so.

- Sub-Gaussian noise: u is the two-sided normal mixture of v = sum w^2 scale^2.
- Rewards in [low, high]: u is an empirical Bernstein bound (`bernstein`), with psi(x) = -log(1 - x) - x and a
  guess of each reward that is made before it is seen: exp(lambda sum w (R - mu) - psi(lambda B) / B^2
  sum w^2 (R - guess)^2) is below a supermartingale for lambda < 1 / B, where |w| (high - low) <= B always.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief, inlined, jit, loop
from saver._types import Floats
from saver.kernels.bounds.boundaries import best_rho, best_theta, mixture_two_sided
from saver.kernels.bounds.noise import Numbers, Rule, ends_hiding
from saver.problem.promise import Bounded, SubGaussian, Tables

PRIOR = 40.0  # episodes that the first visits are weighed against
PATIENCE, AT_ONCE = 0.2, 5.0  # a debt is paid in this part of the episodes so far, and so many
STEP = 1.3  # by so much at most
RENEW = 10  # weights are made anew when the episodes have grown by one part of this many
PART, SOON = 0.13, 1.25  # of the visits to come in which all is weighed, for a fair estimate
CAP, CAP_GROWS = 2.0, 0.05  # of weights of bounded rewards, in those of the target's own episodes
RATES, FASTEST = 8, 0.8  # of the empirical Bernstein bound; the last of them in units of 1 / B
CLOSE, ROUNDS = 1e-12, 100


class Steering(NamedTuple):
    """What `steer` needs, [pairs] each but the last."""

    c: Floats
    usual: Floats  # visits in an episode, half by the target and half by uniform play
    scale: Floats
    span: Floats  # of one reward; used where they are bounded
    cap: float  # B: the largest |w| span; infinite where they are not


class Levels(NamedTuple):
    """How 1 - level is split: noise, the box, hidden noise, hidden pairs."""

    noise: float
    box: float
    hidden_noise: float
    hidden_pairs: float


class Bands(NamedTuple):
    """What the interval at one level needs."""

    noise: float  # the level of u
    rho: float
    rates: Floats  # lambda
    costs: Floats  # psi(lambda B) / B^2
    bounded: bool
    box: Numbers  # of one pair, in units of its scale, or of [low, high]
    log_pairs: float  # of what is hidden of a pair


def levels(level: float, losses: str) -> Levels:
    """Fixed before the first episode."""
    miss = 1.0 - level
    hidden = 0.1 if losses == "hostile" else 0.0
    rest = 1.0 - hidden
    return Levels(0.8 * rest * miss, 0.2 * rest * miss, 0.5 * hidden * miss, 0.5 * hidden * miss)


def steering(c: Floats, usual: Floats, tables: Tables, bounded: bool, samples: float) -> Steering:
    """The numbers of the weights, for about so many samples in all."""
    span = (tables.ceiling - tables.floor).ravel()
    flat = np.abs(c).ravel()
    cap = math.inf
    if bounded:
        cap = max(CAP, CAP_GROWS * math.sqrt(samples)) * float(np.sum(flat * span) / np.sum(usual))
    return Steering(c.ravel().copy(), usual.ravel().copy(), tables.scale.ravel().copy(), span, cap)


def bands(numbers: Steering, split: Levels, episodes: float, pairs: int, bounded: bool) -> Bands:
    """The numbers of one level; tightest about half of the episodes."""
    v = 0.5 * episodes * variance_of(numbers)
    samples = max(10.0, episodes * float(numbers.usual.sum()) / pairs)
    each = split.box / pairs
    promise = Bounded(0.0, 1.0) if bounded else SubGaussian(1.0)
    ends = (0.0, 1.0) if bounded else (-math.inf, math.inf)
    rule = Rule.of(promise, each / 2 if bounded else each, samples, samples)
    rates, costs = np.zeros(0), np.zeros(0)
    if bounded and v > 0.0:
        B = numbers.cap
        slowest = min(math.sqrt(math.log(1.0 / split.noise) / v), FASTEST / B / 2)
        rates = np.geomspace(slowest, FASTEST / B, RATES)
        costs = (-np.log1p(-rates * B) - rates * B) / B**2
    hidden = math.log(split.hidden_pairs / pairs / 4) if split.hidden_pairs else 0.0
    return Bands(
        split.noise, best_rho(v, split.noise) if v > 0.0 else 1.0, rates, costs, bounded,
        Numbers(0.25 if bounded else 1.0, *ends, False, rule), hidden,
    )  # fmt: skip


def variance_of(numbers: Steering) -> float:
    """sum w^2 scale^2 of a usual episode."""
    used = numbers.c != 0.0
    return float(np.sum((numbers.c * numbers.scale)[used] ** 2 / numbers.usual[used]))


@loop
def steer(n: float, T: Any, W: Any, numbers: Any, out: Any) -> None:
    """The weights of the next trials' samples, after n episodes with T samples that weigh W, [pairs] each."""
    for p in range(len(out)):
        out[p] = steered(n, T[p], W[p], numbers, p)


@inlined
def steered(n: float, T: float, W: float, numbers: Any, p: int) -> Any:
    """`steer` of one pair.

    c over the visits in an episode so far, and a little more where W is behind n c, a little less where it is
    ahead.
    """
    c, w, soon = numbers.c[p], 0.0, 1.0 / (PATIENCE * n + AT_ONCE)
    if c != 0.0:
        w = c * (n + PRIOR) / (T + PRIOR * numbers.usual[p])
        w *= min(max(1.0 + soon * (n - W / c), 1.0 / STEP), STEP)
        if abs(w) * numbers.span[p] > numbers.cap:
            w = math.copysign(numbers.cap / numbers.span[p], c)
    return w


@loop
def spend(n: float, K: float, T: Any, V: Any, numbers: Any, out: Any) -> None:
    """The weights of the next trials' samples for a fair estimate: `steer`, but V is to be K c in the end."""
    for p in range(len(out)):
        out[p] = spent(n, K, T[p], V[p], numbers, p)


@inlined
def spent(n: float, K: float, T: float, V: float, numbers: Any, p: int) -> Any:
    """`spend` of one pair.

    What is left of K c, over a part of the visits that are expected until then: who looks bad is visited
    less, and must have been weighed by then. But not over fewer than may come before weights are made anew.
    """
    total, soon = max(K, n), SOON * (1.0 + n / RENEW)
    visits = max((T + PRIOR * numbers.usual[p]) / (n + PRIOR), numbers.usual[p])
    return (total * numbers.c[p] - V) / max(1.0, max(PART * (total - n), soon) * visits)


@jit
def renewed(number: int) -> int:
    """The trial from which on weights are made anew, if they are made for this one."""
    return number + max(1, number // RENEW)


@jit
def bernstein(Q: float, bands: Any) -> float:
    """u: the root in s of mean over lambda of exp(lambda s - cost Q) = 2 / level, by Newton from above."""
    top = math.log(2.0 * len(bands.rates) / bands.noise)
    s = np.inf
    for i in range(len(bands.rates)):
        s = min(s, (top + bands.costs[i] * Q) / bands.rates[i])
    for _ in range(ROUNDS):
        most, total, slope = -np.inf, 0.0, 0.0
        for i in range(len(bands.rates)):
            most = max(most, bands.rates[i] * s - bands.costs[i] * Q)
        for i in range(len(bands.rates)):
            part = math.exp(bands.rates[i] * s - bands.costs[i] * Q - most)
            total += part
            slope += part * bands.rates[i]
        step = (most + math.log(total) - top) * total / slope
        if step <= CLOSE * s:
            break
        s -= step
    return s


@jit
def noise_bound(v: float, bands: Any) -> float:
    """u of v, or of Q where rewards are bounded; 0 before the first sample that has noise."""
    if len(bands.rates) > 0:
        return bernstein(v, bands)
    return float(mixture_two_sided(v, bands.rho, bands.noise)) if v > 0.0 and not bands.bounded else 0.0


@loop
def reward_ends(
    T: Any, total: Any, hidden: Any, numbers: Any, floor: Any, ceiling: Any, bands: Any,
    lower: Any, upper: Any,
) -> None:  # fmt: skip
    """The box of the reward means, [pairs] each, from T samples with a total and at most `hidden` more."""
    for p in range(len(lower)):
        lower[p], upper[p] = floor[p], ceiling[p]
        unit = numbers.span[p] if bands.bounded else numbers.scale[p]
        if T[p] > 0.0:
            mean, zero = total[p] / T[p], floor[p] if bands.bounded else 0.0
            low, high = mean, mean
            if unit > 0.0:
                ends = ends_hiding(T[p], (mean - zero) / unit, hidden[p], bands.box, bands.log_pairs)
                low, high = zero + unit * ends[0], zero + unit * ends[1]
            lower[p] = min(max(low, floor[p]), ceiling[p])
            upper[p] = min(max(high, floor[p]), ceiling[p])


@jit
def side(gained: float, u: float, c: Any, W: Any, lower: Any, upper: Any, sign: float) -> Any:
    """The lower end of V, or minus the upper one (sign = -1); with what noise and what the box takes off."""
    n = len(c)
    need, told, bottom, top = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for p in range(n):
        way = 1.0 if W[p] > 0.0 or (W[p] == 0.0 and c[p] >= 0.0) else -1.0
        turned = sign * way
        need[p], told[p] = way * c[p], abs(W[p])
        bottom[p], top[p] = (lower[p], upper[p]) if turned > 0.0 else (-upper[p], -lower[p])
    D = sign * gained - u
    theta = best_theta(D, need, told, bottom, top)
    end, slack = theta * D, 0.0
    for p in range(n):
        rest = need[p] - theta * told[p]
        end += rest * (bottom[p] if rest >= 0.0 else top[p])
        slack += abs(rest) * (top[p] - bottom[p]) / 2
    return end, theta * u, slack


@brief
def weigh(pairs: Any, rewards: Any, w: Any, v: Any, T: Any, total: Any, W: Any, V: Any, Q: Any) -> None:
    """The samples of an episode enter the sums of their pairs."""
    for t in range(len(pairs)):
        p = pairs[t]
        T[p] += 1.0
        total[p] += rewards[t]
        W[p] += w[t]
        V[p] += v[t]
        Q[p] += v[t] * v[t]
