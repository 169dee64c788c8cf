"""The certificate once more, from scratch: the whole story in, the believed budget out."""

from __future__ import annotations

import math
from functools import cache
from itertools import takewhile

import numpy as np
from models import paths
from scipy.optimize import brentq
from scipy.special import logsumexp

from saver import Bounded
from saver.safety.boundaries import best_rho, mixture, mixture_two_sided, stitched
from saver.safety.noise import FASTEST, RATES, SLOWEST

LOST = "lost"


@cache
def root(S, G, level, length):
    """The M at which the mean over lambda of exp(lambda S - G log(1 + M / G (e^lambda - 1))) is 1 / level."""
    rates = math.sqrt(2 * math.log(1 / level) / length) * np.geomspace(SLOWEST, FASTEST, RATES)

    def height(M):
        exponents = rates * min(S, G) - G * np.log1p(M / G * np.expm1(rates))
        return logsumexp(exponents) - math.log(RATES) + math.log(level)

    if S <= 0 or height(0.0) <= 0:
        return 0.0
    return brentq(height, 0.0, min(S, G), xtol=1e-13, rtol=1e-13)


def by_theta(D, W, T, lower, upper):
    """max over theta of theta D + sum min (W - theta T) mu: it is concave, with corners at W / T."""
    corners = [0.0, *(w / t for w, t in zip(W, T, strict=True) if t > 0)]
    rest = [W - theta * T for theta in corners]
    return max(
        theta * D + float(np.sum(np.minimum(r * lower, r * upper)))
        for theta, r in zip(corners, rest, strict=True)
    )


class Slow:
    """Is told what a certified ledger is told."""

    def __init__(self, problem, episodes):
        self.problem, self.mdp, self.promise, self.episodes = (
            problem, problem.mdp, problem.constraint, episodes,
        )  # fmt: skip
        self.moves = self.mdp.transitions.toarray().reshape(self.mdp.states, self.mdp.actions, -1)
        self.steps, self.reached = self._spread()
        pairs = [(s, a) for s in self.reached for a in range(self.mdp.actions) if self.mdp.available[s, a]]
        self.pairs = len(pairs)
        one_way = all(
            np.count_nonzero(row) <= 1 for row in self.moves[self.reached].reshape(-1, self.mdp.states)
        )
        self.deterministic = one_way and np.count_nonzero(self.mdp.start) == 1
        self.hidden, self.box, self.noise, self.crossing = [
            problem.delta * part
            for part in (
                (0.1, 0.15, 0.75, 0.0) if self.deterministic
                else (0.1, 0.45, 0.45, 0.0) if self.promise.next_state
                else (0.1, 0.45, 0.225, 0.225)
            )
        ]  # fmt: skip
        self.story, self.sums = [], {}

    def _spread(self):
        """How many steps there can be, and the states of any."""
        here, seen, steps = set(np.flatnonzero(self.mdp.start)), set(), 0
        while here and steps < self.mdp.horizon:
            seen, steps = seen | here, steps + 1
            here = {
                int(n)
                for s in here
                for a in np.flatnonzero(self.mdp.available[s])
                for n in np.flatnonzero(self.moves[s, a])
                if n not in self.mdp.terminal
            }
        return steps, sorted(seen)

    def ask(self, number, table, draws=None, baseline=False):
        self.story.append(("ask", number, table, draws, baseline))

    def tell(self, number, episode):
        self.story.append(("tell", number, episode))

    def abandon(self, number):
        self.story.append(("abandon", number))

    # -- one policy ------------------------------------------------------------------------------------------

    def ways(self, table, draws):
        """Every way that the promised policy can go with its probability, or None: it is the baseline."""
        full = np.broadcast_to(table, (self.mdp.horizon, self.mdp.states, self.mdp.actions))
        found, safe = paths(self.mdp, full), paths(self.mdp, self.problem.baseline)
        if self._alike(found, safe):
            return None
        if self.deterministic and draws is not None:
            found = [(1.0, self._drawn(full, draws))]
        return None if self._alike(found, safe) else found

    def _drawn(self, full, draws):
        s, way = int(np.flatnonzero(self.mdp.start)[0]), []
        for t in range(self.mdp.horizon):
            row, below, a = full[t, s], 0.0, None
            for i in range(self.mdp.actions):
                below += row[i]
                if a is None and below > draws[t] and row[i] > 0:
                    a = i
            a = int(np.flatnonzero(row)[-1]) if a is None else a
            way.append((s, a))
            onward = np.flatnonzero(self.moves[s, a])
            if not len(onward) or onward[0] in self.mdp.terminal:
                break
            s = int(onward[0])
        return tuple(way)

    def _alike(self, one, two):
        flows = []
        for ways in (one, two):
            flow = {}
            for p, way in ways:
                for t, pair in enumerate(way):
                    flow[t, *pair] = flow.get((t, *pair), 0.0) + p
            flows.append(flow)
        return flows[0].keys() == flows[1].keys() and all(
            abs(flows[0][k] - flows[1][k]) < 1e-12 for k in flows[0]
        )

    def along(self, way, values):
        """sum discount^t values."""
        return sum(self.mdp.discount**t * values[pair] for t, pair in enumerate(way))

    def visits(self, ways):
        found = np.zeros((self.mdp.states, self.mdp.actions))
        for p, way in ways:
            for t, pair in enumerate(way):
                found[pair] += p * self.mdp.discount**t
        return found

    def weight(self, length):
        """sum discount^t."""
        return sum(self.mdp.discount**t for t in range(length))

    def squares(self, length):
        """scale^2 sum discount^2t."""
        return self.promise.scale**2 * sum(self.mdp.discount ** (2 * t) for t in range(length))

    # -- the parts of the argument ---------------------------------------------------------------------------

    def ends(self, heard):
        """The box: from the trials before the first that is out or lost."""
        seen, number = {}, 1
        while number in heard and heard[number] is not LOST:
            for s, a, _, c in zip(*heard[number], strict=True):
                seen.setdefault((int(s), int(a)), []).append(float(c))
            number += 1
        lower = np.full((self.mdp.states, self.mdp.actions), float(self.promise.floor))
        upper = np.full(lower.shape, float(self.promise.ceiling))
        for pair, values in seen.items():
            lower[pair], upper[pair] = self._end(len(values), math.fsum(values))
        return lower, upper

    def _end(self, n, total):
        low, high, scale = self.promise.floor, self.promise.ceiling, self.promise.scale
        level = self.box / self.pairs
        samples = max(10, self.episodes / self.pairs)
        if self.deterministic:
            samples = 64 if isinstance(self.promise, Bounded) else 4
        if isinstance(self.promise, Bounded):
            level, span = level if self.deterministic else level / 2, high - low
            S = (total - low * n) / span
            bottom = low + span * root(S, n, level, samples) / n
            top = high - span * root(n - S, n, level, samples) / n
        elif scale == 0:
            bottom = top = total / n
        else:
            u = mixture if self.deterministic else mixture_two_sided
            w = u(n * scale**2, best_rho(samples * scale**2, level), level) / n
            bottom, top = total / n - w, total / n + w
        if self.deterministic:
            return max(bottom, low), high
        return min(max(bottom, low), high), min(max(top, low), high)

    def along_the_way(self, told, lost):
        """D: what the means along the way are worth at least."""
        half, gained = self.episodes / 2, sum(gained for gained, _ in told)
        G = sum(self.weight(length) for _, length in told)
        if isinstance(self.promise, Bounded):
            span, low = self.promise.high - self.promise.low, self.promise.low
            if G == 0:
                return 0.0
            S = (gained - low * G) / span - sum(self.weight(length) for _, length in lost)
            return low * G + span * root(S, G, self.noise, half * self.weight(self.steps))
        v = sum(self.squares(length) for _, length in [*told, *lost])
        hidden = sum(self.unseen(place, length) for place, length in lost)
        tuned = best_rho(self.squares(self.steps) * half, self.noise) if self.promise.scale else 1.0
        return gained - hidden - (mixture(v, tuned, self.noise) if v > 0 else 0.0)

    def unseen(self, order, length):
        """h of an abandoned trial."""
        return math.sqrt(2 * self.squares(length) * math.log(order * (order + 1) / self.hidden))

    def stitch(self, v):
        span = (self.promise.ceiling - self.promise.floor) * self.weight(self.steps)
        return stitched(v, self.squares(self.steps) + span**2 / 4, span / 3, self.crossing) if v > 0 else 0.0

    # -- the budget ------------------------------------------------------------------------------------------

    def budget(self):
        heard, trials, order, found = {}, {}, [], [(0, 0.0)]
        for what, number, *rest in self.story:
            if what == "ask":
                table, draws, baseline = rest
                ways = None if baseline else self.ways(table, draws)
                trials[number] = None if ways is None else self._ticket(ways, heard)
                order += [number] if ways is not None else []
                continue
            heard[number] = rest[0] if rest else LOST
            found += self._bounds(heard, trials, order)
        told = [n for n in heard if heard[n] is not LOST]
        designed = [n for n in order if n in told]
        earned = max(
            value + sum(trials[n]["low"] for n in order[place:] if n in told) for place, value in found
        )
        required, credit = self.problem.required, self.problem.alpha * self.problem.baseline_value
        costs = sum(min(0.0, trials[n]["low"] - required) for n in order if n not in told)
        return (len(told) - len(designed)) * credit + earned - len(designed) * required + costs

    def _ticket(self, ways, heard):
        lower, upper = self.ends(heard)
        m, h, W = (lower + upper) / 2, (upper - lower) / 2, self.visits(ways)
        longest = max(len(way) for _, way in ways)
        return {
            "low": float(np.sum(W * lower)),
            "longest": longest,
            "W": W,
            "m": m,
            "v": self.squares(longest) + self.weight(longest) * float(np.sum(W * h**2)),
            "strays": max(self.along(way, h) for _, way in ways) + float(np.sum(W * h)),
        }

    def _bounds(self, heard, trials, order):
        """How many trials in order of asking, and what the told ones of these are worth at least."""
        found, told, lost, x, v = [], [], [], 0.0, 0.0
        W, T = np.zeros((2, self.mdp.states, self.mdp.actions))
        before = list(takewhile(lambda number: number in heard, order))
        for place, number in enumerate(before, 1):
            trial, episode = trials[number], heard[number]
            v += trial["v"]
            if episode is LOST:
                lost.append((place, trial["longest"]))
                x -= self.unseen(place, trial["longest"]) + trial["strays"]
            else:
                way = tuple(zip(episode.states.tolist(), episode.actions.tolist(), strict=True))
                gained = sum(self.mdp.discount**t * c for t, c in enumerate(episode.constraints))
                told.append((gained, len(way)))
                W, T = W + trial["W"], T + self.visits([(1.0, way)])
                x += gained - (self.along(way, trial["m"]) - float(np.sum(trial["W"] * trial["m"])))
            if self.deterministic:
                found.append((place, self.along_the_way(told, lost)))
            elif self.crossing:
                found.append((place, x - self.stitch(v)))
        D = self.along_the_way(told, lost)
        if not self.deterministic:
            ends = [end.ravel() for end in self.ends(heard)]
            found.append((len(before), by_theta(D, W.ravel(), T.ravel(), *ends)))
        self.sums = {"D": D, "X": x, "v": v, "W": W, "T": T}
        return found
