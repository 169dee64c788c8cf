"""The certificate once more, from scratch: the whole story in, the believed budget out."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import takewhile

import numpy as np
from models import paths
from scipy.optimize import brentq
from scipy.special import logsumexp

from saver import Bounded
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_two_sided, stitched
from saver.kernels.bounds.noise import FASTEST, LIKELY, RATES, SLOWEST

TOLD, CUT, LOST, CANCELLED, VETOED = "told", "cut", "lost", "cancelled", "vetoed"
NEVER = (CANCELLED, VETOED)
THETAS = [0.05 * 160 ** (i / 11) for i in range(12)]


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

    def __init__(self, problem, episodes, losses="hostile", order="any"):
        self.problem, self.mdp, self.episodes = problem, problem.mdp, episodes
        self.rail, self.promise = problem.rails[0], problem.rails[0].promise
        self.hostile, self.in_order = losses == "hostile", order == "asked"
        self.moves = self.mdp.transitions.toarray().reshape(self.mdp.states, self.mdp.actions, -1)
        self.layers = self._spread()
        self.steps, self.reached = len(self.layers), sorted(set().union(*self.layers))
        pairs = [(s, a) for s in self.reached for a in range(self.mdp.actions) if self.mdp.available[s, a]]
        self.pairs = len(pairs)
        one_way = all(
            np.count_nonzero(row) <= 1 for row in self.moves[self.reached].reshape(-1, self.mdp.states)
        )
        self.draws_decide = self.deterministic = one_way and np.count_nonzero(self.mdp.start) == 1
        if self.rail.learned:
            self.deterministic = self.deterministic and len(paths(self.mdp, problem.baseline)) == 1
        self.part = self.returns_part = 1.0  # of noise and hidden noise, of returns: that of designed trials
        self.bets = isinstance(self.promise, Bounded) and not self.deterministic
        self.hidden, self.box, self.noise, self.crossing = [
            problem.delta * part
            for part in (
                ((0.1, 0.15, 0.75, 0.0) if self.hostile else (0.0, 0.15, 0.85, 0.0)) if self.deterministic
                else ((0.01, 0.02, 0.01, 0.96) if self.hostile else (0.0, 0.02, 0.01, 0.97)) if self.bets
                else ((0.1, 0.45, 0.45, 0.0) if self.hostile else (0.0, 0.5, 0.5, 0.0))
                if self.promise.next_state
                else ((0.1, 0.45, 0.225, 0.225) if self.hostile else (0.0, 0.5, 0.25, 0.25))
            )
        ]  # fmt: skip
        self.story, self.sums, self.history, self._asked = [], {}, [], []

    def _spread(self):
        """The states of every step that there can be."""
        here, layers = set(np.flatnonzero(self.mdp.start)), []
        while here and len(layers) < self.mdp.horizon:
            layers.append(here)
            here = {
                int(n)
                for s in here
                for a in np.flatnonzero(self.mdp.available[s])
                for n in np.flatnonzero(self.moves[s, a])
                if n not in self.mdp.terminal
            }
        return layers

    def ask(self, number, table, draws=None, baseline=False):
        self.story.append(("ask", number, table, draws, baseline))

    def tell(self, number, episode, complete=True):
        self.story.append((TOLD if complete else CUT, number, episode))

    def abandon(self, number, ran=None):
        self.story.append((LOST, number, ran))

    def cancel(self, number, unseen):
        self.story.append((CANCELLED if unseen or not self.hostile else VETOED, number))

    # -- one policy ------------------------------------------------------------------------------------------

    def ways(self, table, draws):
        """Every way that the promised policy can go with its probability, or None: it is the baseline."""
        full = np.broadcast_to(table, (self.mdp.horizon, self.mdp.states, self.mdp.actions))
        found, safe = paths(self.mdp, full), paths(self.mdp, self.problem.baseline)
        if self._alike(found, safe):
            return None
        if self.draws_decide and draws is not None:
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

    def ends(self, groups):
        """The box: the intersection of what each group of trials says."""
        lower, upper = self._ends(groups[0])
        for group in groups[1:]:
            low, high = self._ends(group)
            lower = np.maximum(lower, low)
            upper = np.maximum(lower, np.minimum(upper, high))
        return lower, upper

    def _ends(self, group):
        shape = self.mdp.states, self.mdp.actions
        seen, hidden = {}, self.hidden_visits(group)
        for trial in (*(() if self.deterministic else self.history), *group):
            for pair, c in trial.steps():
                seen.setdefault(pair, []).append(c)
        lower, upper = np.full(shape, float(self.promise.floor)), np.full(shape, float(self.promise.ceiling))
        for pair, values in seen.items():
            lower[pair], upper[pair] = self._end(len(values), math.fsum(values), hidden.get(pair, 0))
        return lower, upper

    def hidden_visits(self, group):
        """At most so often was each pair visited without being told."""
        if not self.hostile:
            return {}
        sure, most, awaited, walked = Counter(), Counter(), Counter(), Counter()
        for trial in group:
            seen = Counter(pair for pair, _ in trial.steps())
            if trial.sure and trial.status != TOLD:
                sure.update(trial.ways[0][1])
                sure.subtract(seen)
            if not trial.sure:
                expected = Counter()
                for p, way in trial.ways:
                    for pair in way:
                        expected[pair] += p
                awaited.update(expected)
                walked.update(seen)
                if trial.status != TOLD:
                    most.update({pair: self._most(pair[0]) for pair in expected if expected[pair] > 0})
                    most.subtract(seen)
        found = Counter(sure)
        level = math.log(0.2 * self.hidden / self.pairs / len(THETAS))
        for pair in most:
            r = self._most(pair[0])
            total = min(r * (math.expm1(x) * awaited[pair] / r - level) / x for x in THETAS)
            found[pair] += max(0, min(most[pair], math.floor(total - walked[pair] + 1e-12)))
        return found

    def _most(self, s):
        """How often one episode can be in a state: not twice in a row if nothing leads from it to itself."""
        steps = [t for t, layer in enumerate(self.layers) if s in layer]
        return len(steps) if self.moves[s, :, s].any() else min(len(steps), (steps[-1] - steps[0]) // 2 + 1)

    def _end(self, n, total, hidden):
        low, high, scale = self.promise.floor, self.promise.ceiling, self.promise.scale
        level, N = self.box / self.pairs, n + hidden
        samples = max(10, self.episodes / self.pairs)
        if self.deterministic:
            samples = 64 if isinstance(self.promise, Bounded) else 4
        if isinstance(self.promise, Bounded):
            level, span = level if self.deterministic else level / 2, high - low
            S = (total - low * n) / span
            bottom = low + span * root(S, N, level, samples) / N
            top = high - span * root(n - S, N, level, samples) / N
        elif scale == 0:
            bottom = top = total / n
        else:
            u = mixture if self.deterministic else mixture_two_sided
            w = u(N * scale**2, best_rho(samples * scale**2, level), level)
            if hidden:
                share = 0.2 * self.hidden / self.pairs / (1 if self.deterministic else 2)
                w += self.unseen(hidden * scale**2, scale**2 / 8, share, (N + 1) * math.comb(N, hidden))
            bottom, top = (total - w) / n, (total + w) / n
        if self.deterministic:
            return max(bottom, low), high
        return min(max(bottom, low), high), min(max(top, low), high)

    def unseen(self, v, rho, level, choices):
        """The mixture at level / choices."""
        if v == 0:
            return 0.0
        inside = 0.5 * math.log((v + rho) / rho) + math.log(choices) - math.log(2 * level)
        return math.sqrt(2 * (v + rho) * float(np.logaddexp(0.0, inside)))

    def choices(self, n, whole, cut):
        """One over the weight of a set of trials hidden, all of them or from some step on."""
        ways = math.comb(n, whole) * math.comb(n - whole, cut)
        if self.steps == 1:
            return (n + 1) * ways
        return (n + 2) * (n + 1) // 2 * ways * (self.steps - 1) ** cut

    def never(self, v):
        level = 0.2 * self.part * self.hidden
        return mixture(v, best_rho(8 * self.squares(self.steps), level), level) if v > 0 else 0.0

    def along_the_way(self, group):
        """D: what the means along the way are worth at least."""
        designed = [trial for trial in group if trial.order]
        half, gained = self.episodes / 2, sum(trial.gained for trial in designed)
        G = sum(self.weight(len(trial.steps())) for trial in designed)
        hidden = [trial for trial in designed if trial.status != TOLD] if self.hostile else []
        if isinstance(self.promise, Bounded):
            span, low = self.promise.high - self.promise.low, self.promise.low
            if G == 0:
                return 0.0
            rest = sum(self.weight(trial.longest) - self.weight(len(trial.steps())) for trial in hidden)
            S = (gained - low * G) / span - rest
            return low * G + span * root(S, G, self.noise, half * self.weight(self.steps))
        hides = self._hides(hidden, rest=True)
        v = sum(self.squares(len(trial.steps())) for trial in designed)
        v += sum(self.squares(trial.longest) - self.squares(len(trial.steps())) for trial in hidden)
        tuned = best_rho(self.squares(self.steps) * half, self.noise) if self.promise.scale else 1.0
        return gained - hides - (mixture(v, tuned, self.noise) if v > 0 else 0.0)

    def _hides(self, hidden, rest):
        """Noise of hidden trials, with what was seen of cut ones or without, and of cancelled ones."""
        never = sum(self.fresh(trial) for trial in hidden if trial.status in NEVER)
        ran = [trial for trial in hidden if trial.status not in NEVER]
        cut = [trial for trial in ran if trial.status == CUT] if rest else []
        v = sum(
            self.squares(trial.longest) - self.squares(len(trial.steps()) if rest else 0) for trial in ran
        )
        last = max((trial.order for trial in ran), default=0)
        choices = self.choices(last, len(ran) - len(cut), len(cut)) if ran else 1
        H = (
            self.unseen(v, self.squares(self.steps) / 8, 0.4 * self.part * self.hidden, choices)
            if ran
            else 0.0
        )
        return H + self.never(never) + self.chosen(hidden)

    def fresh(self, trial):
        """The proxy of what nobody can know of a trial that never ran."""
        return self.squares(trial.longest)

    def chosen(self, trials):
        """What may have been chosen by the paths of trials that were looked at and cancelled."""
        return 0.0

    def stitch(self, v):
        span = (self.promise.ceiling - self.promise.floor) * self.weight(self.steps)
        return stitched(v, self.squares(self.steps) + span**2 / 4, span / 3, self.crossing) if v > 0 else 0.0

    # -- the budget ------------------------------------------------------------------------------------------

    def budget(self):
        trials, bound, started = self.replay()
        return self._total(list(trials.values()), bound, started, self.rail.low)

    def replay(self):
        trials, bound, started = {}, 0.0, 0
        self.renews, self.table = 0, None
        for what, number, *rest in self.story:
            self._asked = list(trials.values())
            if what == "ask":
                trials[number] = self._ticket(number, *rest, trials)
                self._asked = list(trials.values())
                continue
            trial = trials[number]
            if what in NEVER and number == max(trials) and (what == CANCELLED or trial.sure):
                del trials[number]
                self._asked = list(trials.values())
                continue
            trial.hear(what, *rest)
            if what in (TOLD, CUT):
                bound += trial.low if trial.order else 0.0
            if what in (TOLD, CUT) or trial.ran:
                started = max(started, number)
            bound = max(bound, self._bound(trials))
            self.look(trials)
        return trials, bound, started

    def look(self, trials):
        """What is learned of V0."""

    def _total(self, trials, bound, started, value):
        required, credit = self.rail.required_at(value), self.rail.credit_at(value)
        total = bound
        for trial in trials:
            adds = trial.low - required if trial.order else credit
            if trial.status in (TOLD, CUT):
                total += -required if trial.order else credit
            elif trial.status == LOST and (trial.ran or not self.in_order):
                total += adds if trial.ran else min(0.0, adds)
        adds = [
            (trial.number, trial.low - required if trial.order else credit)
            for trial in trials
            if trial.status is None or (self.in_order and trial.status == LOST and not trial.ran)
        ]  # fmt: skip
        if not self.in_order:
            return total + sum(min(0.0, gain) for _, gain in adds)
        surely = sum(number < started for number, _ in adds)
        return total + min(sum(gain for _, gain in adds[:k]) for k in range(surely, len(adds) + 1))

    def _groups(self, trials):
        """Those before the first that is out; all, where more are heard of."""
        listed = list(trials.values())
        if not self.hostile:
            return [[trial for trial in listed if trial.status in (TOLD, CUT)]]
        before = list(takewhile(lambda trial: trial.status, listed))
        later = any(trial.status for trial in listed[len(before) :])
        return [before, listed] if later else [before]

    def _ticket(self, number, table, draws, baseline, trials):
        ways = None if baseline else self.ways(table, draws)
        lower, upper = self.ends(self._groups(trials))
        order = max((trial.order for trial in trials.values()), default=0) + 1
        if ways is None:
            trial = Asked(number, 0, paths(self.mdp, self.problem.baseline), 0.0)
            trial.discount = self.mdp.discount
            if self.bets and self.rail.learned:
                trial.W, trial.m = self.w0, self._control(trials)
            return trial
        m, h, W = (lower + upper) / 2, (upper - lower) / 2, self.visits(ways)
        trial = Asked(number, order, ways, float(np.sum(W * lower)))
        trial.W, trial.m, trial.discount = W, m, self.mdp.discount
        if self.bets:
            trial.m = self._control(trials)
        trial.v = self.squares(trial.longest) + self.weight(trial.longest) * float(np.sum(W * h**2))
        trial.strays = max(self.along(way, h) for _, way in ways) + float(np.sum(W * h))
        return trial

    def _control(self, trials):
        """m of a trial asked now: means shrunk to that of all; made anew by and by."""
        n = 1 + sum(bool(t.order) or self.rail.learned for t in trials.values())
        if n < self.renews:
            return self.table
        self.renews, seen = max(n + 1, math.ceil(1.1 * n)), {}
        low, span = self.promise.floor, self.promise.ceiling - self.promise.floor
        for trial in (*self.history, *self._groups(trials)[-1]):
            for pair, c in trial.steps():
                seen.setdefault(pair, []).append((c - low) / span)
        counts, every = {p: len(x) for p, x in seen.items()}, [c for x in seen.values() for c in x]
        usual = (self.rail.low + self.rail.high) / 2 / self.safe_length()
        usual = 0.5 if self.rail.learned else (usual - low) / span
        mu, N, kappa = (min(max(usual, 0), 1) + sum(every)) / (1 + len(every)), len(every), math.inf
        if 1 < len(seen) < N:
            W = max(sum(n * np.var(seen[p]) for p, n in counts.items()), 0.25) / (N - len(seen))
            between = sum(n * (np.mean(seen[p]) - np.mean(every)) ** 2 for p, n in counts.items())
            k = len(seen) - 1
            tau = (between - k * W - W * math.sqrt(2 * k)) / (N - sum(n * n for n in counts.values()) / N)
            kappa = W / tau if tau > 0 else math.inf
        self.table = np.full((self.mdp.states, self.mdp.actions), low + span * mu)
        if kappa < math.inf:
            for p, x in seen.items():
                self.table[p] = low + span * (sum(x) + kappa * mu) / (len(x) + kappa)
        return self.table

    def safe_length(self):
        return float(np.sum(self.visits(paths(self.mdp, self.problem.baseline))))

    def capital(self, level, episodes):
        """Rates and weights of bets."""
        alike = self.weight(self.steps) ** 2 / sum(self.mdp.discount ** (2 * t) for t in range(self.steps))
        step = (FASTEST / SLOWEST) ** 0.2
        more = round(math.log(alike) / 2 / math.log(step))
        x = np.geomspace(SLOWEST, FASTEST * math.sqrt(alike), RATES + more)
        x = x * math.sqrt(2 * math.log(1 / level) / episodes)
        likely = np.array([1.0] * more + list(LIKELY))
        return x / (1 + x), level * likely / likely.sum()

    def gains(self, logs, rule):
        """The E at which the average of exp(L - lambda E) is 1 / level, by bisection."""
        rates, weights = rule
        if not len(rates):
            return 0.0
        return brentq(lambda E: logsumexp(logs - rates * E, b=weights), -1e5, 1e5, xtol=1e-13, rtol=1e-13)

    @property
    def range(self):
        ends = self.promise.of_episode(1.0, self.weight(self.mdp.horizon))
        return ends[1] - ends[0]

    def y(self, trial):
        """What was earned more than expected and than the path explains, in units of the range."""
        rests = [self.mdp.discount**t * (c - trial.m[pair]) for t, (pair, c) in enumerate(trial.steps())]
        return sum(rests) / self.range

    def _bet(self, group, lower):
        """Step 6, bounded."""
        rule = self.capital(self.returns_part * self.crossing, self.episodes / 2)
        total, logs = 0.0, np.zeros(len(rule[0]))
        for trial in (trial for trial in group if trial.order):
            total += float(np.sum(trial.W * lower)) if trial.status == CUT else 0.0
            if trial.status == TOLD:
                total += float(np.sum(trial.W * trial.m))
                logs += np.log(1 + rule[0] * self.y(trial))
            elif self.hostile:
                low, high = self.promise.floor, self.promise.ceiling
                deepest = max(trial.m[p] - low for p in zip(*np.nonzero(trial.W), strict=True))
                total -= float(np.sum(trial.W * (high - trial.m)))
                depth = min(1, deepest * self.weight(trial.longest) / self.range)
                logs += np.log(1 - rule[0] * depth)
        return total + self.range * self.gains(logs, rule)

    def _bound(self, trials):
        """What the told designed trials are worth at least, by what is known now; raises lower values."""
        groups = self._groups(trials)
        lower, upper = self.ends(groups)
        for trial in trials.values():
            if trial.order and trial.status in (None, LOST):
                trial.low = max(trial.low, float(np.sum(trial.W * lower)))
        lost = [t for t in trials.values() if t.order and t.status == LOST and (t.ran or not self.in_order)]
        for trial in lost:  # what is known of one is known of all of its policy
            trial.low = max(other.low for other in lost if np.array_equal(other.W, trial.W))
        told = [trial for trial in trials.values() if trial.order and trial.status in (TOLD, CUT)]
        found = []
        for group in groups:
            later = sum(trial.low for trial in told if trial not in group)
            found.append(self._worth(group, lower, upper) + later)
        return max(found)

    def _worth(self, group, lower, upper):
        D = self.along_the_way(group)
        told = [trial for trial in group if trial.order and trial.status in (TOLD, CUT)]
        if self.deterministic:
            rest = sum(float(np.sum((trial.W - self._been(trial)) * lower)) for trial in told)
            return D + rest
        W, T = np.zeros((2, self.mdp.states, self.mdp.actions))
        for trial in told:
            W, T = W + trial.W, T + self._been(trial)
        best = by_theta(D, W.ravel(), T.ravel(), lower.ravel(), upper.ravel())
        self.sums = {"D": D, "W": W, "T": T}
        return max(best, self._together(group, lower)) if self.crossing else best

    def _been(self, trial):
        return self.visits([(1.0, tuple(pair for pair, _ in trial.steps()))])

    def _together(self, group, lower):
        """Step 6."""
        if self.bets:
            return self._bet(group, lower)
        x = v = rest = 0.0
        hidden = []
        for trial in group:
            if not trial.order:
                continue
            if trial.status == TOLD:
                way = tuple(pair for pair, _ in trial.steps())
                x += trial.gained - (self.along(way, trial.m) - float(np.sum(trial.W * trial.m)))
                v += trial.v
                continue
            rest += float(np.sum(trial.W * lower)) if trial.status == CUT else 0.0
            if self.hostile:
                hidden.append(trial)
                x, v = x - trial.strays, v + trial.v
        self.sums |= {"X": x, "v": v}
        return rest + x - self._hides(hidden, rest=False) - self.stitch(v)


class SlowLearned(Slow):
    """The same where V0 is learned."""

    def __init__(self, problem, episodes, losses="hostile", order="any", history=()):
        super().__init__(problem, episodes, losses, order)
        bounded = isinstance(self.promise, Bounded)
        joint, designed, value = (0.0, 2 / 3, 1 / 3)
        if self.deterministic:
            joint, designed, value = (0.0, 0.8, 0.2) if bounded else (0.5, 0.4, 0.1)
        self.joint_level, self.value_level = joint * self.noise, value * self.noise
        self.noise, self.part, self.returns_part = designed * self.noise, 0.5, 0.8
        self.safe_ways = paths(self.mdp, problem.baseline)
        self.w0 = self.visits(self.safe_ways)
        self.longest = max(len(way) for _, way in self.safe_ways)
        self.few = max(10, episodes / 20)
        self.history = []
        for number, episode in enumerate(history):
            trial = Asked(-number, 0, self.safe_ways, 0.0)
            trial.discount = self.mdp.discount
            trial.hear(TOLD, episode)
            self.history.append(trial)

    def replay(self):
        self.low, self.high, self.before = self.rail.low, self.rail.high, []
        self.look({})
        return super().replay()

    def look(self, trials):
        group = self._groups(trials)[0] if trials else []
        self.before = group
        seen = [*self.history, *(t for t in group if not t.order and t.status == TOLD)]
        if not seen:
            return
        below, above = self.means_seen(group)
        if not self.deterministic:
            lower, upper = (end.ravel() for end in self.ends(self._groups(trials) if trials else [[]]))
            W, T = len(seen) * self.w0.ravel(), sum(self._been(t) for t in seen).ravel()
            below, above = by_theta(below, W, T, lower, upper), -by_theta(-above, W, T, -upper, -lower)
        if self.bets:
            least, most = self._bet_on_value(group)
            below, above = max(below, least), min(above, most)
        self.low = max(self.low, below / len(seen))
        self.high = max(self.low, min(self.high, above / len(seen)))

    def _bet_on_value(self, group):
        """n0 V0 by what returns say, from both sides; the past is compared with its average before."""
        rule, (seen, _, hidden) = self.capital(0.2 * self.crossing / 2, self.few), self.safe(group)
        (rates, _), total, ends = rule, 0.0, []
        lost = len(hidden) * np.log(1 - rates)
        for side in (1, -1):
            total, logs, past = 0.0, np.zeros(len(rates)), []
            for trial in seen:
                if trial.number > 0:
                    total += float(np.sum(trial.W * trial.m))
                    logs = logs + np.log(1 + side * rates * self.y(trial))
                    continue
                bottom = self.promise.of_episode(1.0, self.weight(self.mdp.horizon))[0]
                x = (trial.gained - bottom) / self.range
                guess = (0.5 + sum(past)) / (1 + len(past))
                lean = guess if side > 0 else 1 - guess
                cost = (1 - lean) * rates**2 / 2 + lean * (-np.log(1 - rates) - rates)
                logs, total, past = logs - (x - guess) ** 2 * cost, total + trial.gained, [*past, x]
            ends.append(total + side * self.range * (self.gains(logs + lost, rule) - len(hidden)))
        return ends

    def safe(self, group):
        """Baseline trials seen, what they earned, and those that hide something."""
        baseline = [t for t in group if not t.order]
        seen = [*self.history, *(t for t in baseline if t.status == TOLD)]
        hidden = [t for t in baseline if t.status != TOLD] if self.hostile else []
        return seen, sum(t.gained for t in seen), hidden

    def safe_hides(self, group):
        places = {t.number: k for k, t in enumerate((t for t in self._asked if not t.order), 1)}
        ran = [t for t in self.safe(group)[2] if t.status not in NEVER]
        never = [t for t in self.safe(group)[2] if t.status in NEVER]
        if isinstance(self.promise, Bounded):
            span = self.promise.high - self.promise.low
            return span * self.weight(self.longest) * (len(ran) + len(never)), 0.0
        unit, found = self.squares(self.longest), self.chosen(never)
        if ran and unit > 0:
            n = max(places[t.number] for t in ran)
            choices = (n + 1) * math.comb(n, len(ran))
            found += self.unseen(len(ran) * unit, unit / 8, 0.1 * self.hidden, choices)
        fresh = sum(self.fresh(t) for t in never)
        if fresh > 0:
            level = 0.05 * self.hidden
            found += mixture(fresh, best_rho(8 * unit, level), level)
        return found, (len(ran) + len(never)) * unit

    def means_seen(self, group):
        seen, gained, _ = self.safe(group)
        hides, v = self.safe_hides(group)
        if isinstance(self.promise, Bounded):
            low, high = self.promise.low, self.promise.high
            G = sum(self.weight(len(t.steps())) for t in seen)
            size = self.few * self.weight(self.longest)
            S = (gained - low * G - hides) / (high - low)
            other = (high * G - gained - hides) / (high - low)
            level = self.value_level / 2
            return (
                low * G + (high - low) * root(S, G, level, size),
                high * G - (high - low) * root(other, G, level, size),
            )
        v += sum(self.squares(len(t.steps())) for t in seen)
        u = mixture_two_sided(v, self.rhos()[1], self.value_level) if v > 0 else 0.0
        return gained - hides - u, gained + hides + u

    def rhos(self):
        level = self.joint_level or self.value_level
        sizes = self.squares(self.steps) * self.episodes / 2, self.squares(self.longest) * self.few
        return [best_rho(v, level) if v > 0 else 1.0 for v in sizes]

    def budget(self):
        trials, bound, started = self.replay()
        listed = list(trials.values())
        by_ends = min(self._total(listed, bound, started, value) for value in (self.low, self.high))
        return max(by_ends, self.at_once(listed, started))

    def at_once(self, listed, started):
        group = self.before
        if not self.safe(group)[0] or (self.deterministic and isinstance(self.promise, Bounded)):
            return -math.inf
        sure = [t for t in listed if t.status in (TOLD, CUT) or t.ran]
        maybe = [t for t in listed if t not in sure and t.status not in NEVER]
        if self.in_order:
            surely = sum(t.number < started for t in maybe)
            return min(self.joint(group, [*sure, *maybe[:k]]) for k in range(surely, len(maybe) + 1))
        credit = min(0.0, *(self.rail.credit_at(value) for value in (self.low, self.high)))
        worst = credit * sum(not t.order for t in maybe)
        for trial in (t for t in maybe if t.order):
            adds = [trial.low - self.rail.required_at(value) for value in (self.low, self.high)]
            if max(adds) <= 0:
                sure.append(trial)
            else:
                worst += min(0.0, *adds)
        return self.joint(group, sure) + worst

    def joint(self, group, ran):
        """The budget if these ran: by both sums at once."""
        (r0, r1), n = self.rail.required_by, len(ran)
        kappa = sum(not t.order for t in ran) - r1 * n
        told = [t for t in group if t.order and t.status in (TOLD, CUT)]
        found = sum(t.low for t in ran if t.order and t not in told) - r0 * n
        seen, gained, _ = self.safe(group)
        lower, upper = self.ends(self._groups({t.number: t for t in self._asked}))
        if not self.deterministic:
            W, T = np.zeros((2, self.mdp.states, self.mdp.actions))
            for trial in told:
                W, T = W + trial.W, T + self._been(trial)
            T0, best, ends = sum(self._been(t) for t in seen), -math.inf, self.means_seen(group)
            for phi in (kappa / len(seen), 0.0):
                rest = (W + kappa * self.w0 - phi * T0).ravel()
                worth = by_signed_theta(self.along_the_way(group), rest, T.ravel(), lower, upper)
                best = max(best, worth + phi * ends[phi < 0])
            return found + best
        hidden = [t for t in group if t.order and t.status != TOLD] if self.hostile else []
        v = sum(self.squares(len(t.steps())) for t in told)
        v += sum(self.squares(t.longest) - self.squares(len(t.steps())) for t in hidden)
        found += sum(t.gained + float(np.sum((t.W - self._been(t)) * lower)) for t in told)
        hides, v0 = self.safe_hides(group)
        part, v0 = kappa / len(seen), v0 + sum(self.squares(len(t.steps())) for t in seen)
        found += part * gained - abs(part) * hides - self._hides(hidden, rest=True)
        (rho, rho0), level = self.rhos(), self.joint_level
        beta = -2 * math.log(level) + math.log((v + rho) / rho) + math.log((v0 + rho0) / rho0)
        return found - math.sqrt(beta * (v + rho + part**2 * (v0 + rho0)))


def by_signed_theta(D, W, T, lower, upper):
    """`by_theta` where W may be negative: its corners are those of positive W / T, and 0."""
    corners = [0.0, *(w / t for w, t in zip(W, T, strict=True) if t > 0 and w > 0)]
    lower, upper = lower.ravel(), upper.ravel()
    return max(theta * D + float(np.sum(np.minimum((W - theta * T) * lower, (W - theta * T) * upper)))
               for theta in corners)  # fmt: skip


class SlowReturns(SlowLearned):
    """The same where transitions are unknown: a trial is one step, and what it earns one observation."""

    def __init__(self, problem, episodes, losses="hostile", order="any", history=()):
        self.problem, self.mdp, self.episodes = problem, problem.mdp, episodes
        self.rail, self.promise = problem.rails[0], problem.rails[0].promise
        self.hostile, self.in_order, self.deterministic = losses == "hostile", order == "asked", True
        self.bounded = isinstance(self.promise, Bounded)
        self.steps, self.longest, self.part, self.bets = 1, 1, 1, False
        self.gammas = [self.mdp.discount**t for t in range(self.mdp.horizon)]
        values = [
            end * k for end in (self.promise.floor, self.promise.ceiling) for k in (1, sum(self.gammas))
        ]
        self.bottom, self.top = min(values[:2]), max(values[2:])
        self.hidden = 0.1 * self.rail.level if self.hostile and not self.bounded else 0.0
        self.noise = self.rail.level - self.hidden
        if self.rail.learned:
            joint, designed, value = (0.0, 0.8, 0.2) if self.bounded else (0.5, 0.4, 0.1)
            self.joint_level, self.value_level = joint * self.noise, value * self.noise
            self.noise, self.part = designed * self.noise, 0.5
        self.few, self.believed = max(10, episodes / 20), {}
        self.story, self.sums, self._asked, self.history = [], {}, [], []
        for number, episode in enumerate(history):
            trial = Whole(-number, 0, 0.0, self._guess(self.history))
            trial.hear(TOLD, sum(g * c for g, c in zip(self.gammas, episode.constraints, strict=False)))
            self.history.append(trial)

    def tell(self, number, episode, complete=True):
        if complete:
            earned = sum(g * c for g, c in zip(self.gammas, episode.constraints, strict=False))
            self.story.append((TOLD, number, earned))
        else:
            self.abandon(number, True)

    def squares(self, length):
        """The proxy of what a trial earns, which is one step long."""
        scale, half = self.promise.scale, (self.top - self.bottom) / 2
        if self.promise.next_state:
            return length * (scale * sum(self.gammas) + half) ** 2
        return length * (scale**2 * sum(g * g for g in self.gammas) + half**2)

    def fresh(self, trial):
        """Of one that was looked at, the noise alone."""
        if trial.status == CANCELLED:
            return self.squares(1)
        weights = sum(self.gammas) ** 2 if self.promise.next_state else sum(g * g for g in self.gammas)
        return self.promise.scale**2 * weights

    def chosen(self, trials):
        """The path may have been chosen: it is worth up to the whole range."""
        return (self.top - self.bottom) * sum(trial.status == VETOED for trial in trials)

    def ends(self, groups):
        return 0.0, 0.0

    def _been(self, trial):
        return 0.0

    def replay(self):
        return super().replay() if self.rail.learned else Slow.replay(self)

    def look(self, trials):
        if self.rail.learned:
            super().look(trials)

    def budget(self):
        if self.rail.learned:
            return super().budget()
        trials, bound, started = self.replay()
        values = {self.rail.low, self.rail.high}
        return min(self._total(list(trials.values()), bound, started, value) for value in values)

    def _ticket(self, number, table, draws, baseline, trials):
        full = np.broadcast_to(table, (self.mdp.horizon, self.mdp.states, self.mdp.actions))
        alike = baseline or all(
            np.array_equal(full[t, s], np.broadcast_to(self.problem.baseline, full.shape)[t, s])
            for t, layer in enumerate(self.mdp.layers) for s in layer
        )  # fmt: skip
        told = [trial for trial in trials.values() if trial.status == TOLD and bool(trial.order) != alike]
        order = 0 if alike else max((trial.order for trial in trials.values()), default=0) + 1
        low, past = 0.0 if alike else self.bottom, self.history if alike else []
        return Whole(
            number, order, low, self._guess([*past, *told], None if alike else self.believed.get(number))
        )

    def _guess(self, told, believed=None):
        """The mean of these, taken to [0, 1], with 1/2 as one more; or mostly what is believed, by and by."""
        mean = (0.5 + sum(self._taken(trial) for trial in told)) / (1 + len(told))
        if believed is None:
            return mean
        own = (believed - self.bottom) / (self.top - self.bottom)
        return min(1, max(0, (len(told) * own + 10 * mean) / (len(told) + 10)))

    def _taken(self, trial):
        return (trial.gained - self.bottom) / (self.top - self.bottom)

    def _bound(self, trials):
        told, found = [t for t in trials.values() if t.order and t.status == TOLD], []
        for group in self._groups(trials):
            found.append(self.along_the_way(group) + sum(t.low for t in told if t not in group))
        return max(found)

    def along_the_way(self, group):
        designed = [trial for trial in group if trial.order]
        told = [trial for trial in designed if trial.status == TOLD]
        hidden = [trial for trial in designed if trial.status != TOLD] if self.hostile else []
        gained = sum(trial.gained for trial in told)
        if self.bounded:
            return gained - self._luck(told, len(hidden), self.noise, self.episodes / 2)
        v = self.squares(1) * len(told + hidden)
        u = mixture(v, best_rho(self.squares(1) * self.episodes / 2, self.noise), self.noise) if v else 0.0
        return gained - u - self._hides(hidden, rest=False)

    def _luck(self, told, hidden, level, size, above=True):
        """What the sum of X may be above that of V, or below: the root of the mixture, by bisection."""
        x = np.geomspace(SLOWEST, FASTEST, RATES) * math.sqrt(-2 * math.log(level) / size)
        rates = x / (1 + x)
        psi = -np.log(1 - rates) - rates
        S, Q, cost = -hidden, hidden, psi * hidden
        for t in told:
            lean, square = t.guess if above else 1 - t.guess, (self._taken(t) - t.guess) ** 2
            Q, cost = Q + square, cost + square * ((1 - lean) * rates**2 / 2 + lean * psi)

        def height(u):
            return logsumexp(rates * (u + S) - cost, b=LIKELY / LIKELY.sum()) + math.log(level)

        return (self.top - self.bottom) * brentq(height, 0.0, 1e3 + 50 * (Q - S), xtol=1e-13, rtol=1e-13)

    def means_seen(self, group):
        if not self.bounded:
            return super().means_seen(group)
        seen, gained, hidden = self.safe(group)
        ends = [
            self._luck(seen, len(hidden), self.value_level / 2, self.few, above) for above in (True, False)
        ]
        return gained - ends[0], gained + ends[1]


class Whole:
    """One trial and what it earned; `order` is 0 for what counts as the baseline."""

    longest, W, sure = 1, 0.0, False

    def __init__(self, number, order, low, guess):
        self.number, self.order, self.low, self.guess = number, order, low, guess
        self.status, self.ran, self.gained = None, False, 0.0

    def hear(self, status, what=None):
        self.status, self.gained = status, what if status == TOLD else 0.0
        self.ran = status == LOST and what is True

    def steps(self):
        return [self.gained] if self.status == TOLD else []


class Asked:
    """One trial and what was heard of it; `order` is 0 for what counts as the baseline."""

    def __init__(self, number, order, ways, low):
        self.number, self.order, self.ways, self.low = number, order, ways, low
        self.longest = max(len(way) for _, way in ways)
        self.sure = len({way for _, way in ways}) == 1
        self.status, self.ran, self.episode, self.gained = None, False, None, 0.0

    def hear(self, status, what=None):
        self.status = status
        if status in (TOLD, CUT):
            self.episode = what
            self.gained = sum(self.discount**t * c for t, c in enumerate(what.constraints))
        self.ran = status == LOST and what is True

    def steps(self):
        """Pairs with their observations, of what was told."""
        if self.episode is None:
            return []
        s, a, _, c = self.episode
        return [((int(i), int(j)), float(k)) for i, j, k in zip(s, a, c, strict=True)]
