"""How often the bounds of returns fail: at most as stated, whatever drifts, is shared, late or withheld."""

import numpy as np
import pytest
from kept import Kept, observed
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

from saver import Bounded, Guardrail, Problem, SubGaussian, Unknown
from saver.kernels.bounds.boundaries import best_rho
from saver.kernels.bounds.noise import Bernstein
from saver.play import stage_of
from saver.safety.modelfree import ModelFree

LEVEL, STREAMS, N = 0.05, 3000, 200
ALLOWED = LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / STREAMS)  # more have a probability below 1e-4
GRIDS = [Bernstein.of(level, size) for level in (1e-4, 0.05, 0.5) for size in (1, 10, 2500)]


# -- one trial -----------------------------------------------------------------------------------------------


def laws(rng, count):
    """Discrete laws on [0, 1]: values, probabilities, and a guess that has nothing to do with them."""
    for _ in range(count):
        size = int(rng.integers(2, 5))
        values = rng.random(size)
        if rng.random() < 0.5:
            values[:2] = 0.0, 1.0
        weights = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0])))
        yield values, weights, float(rng.choice([0.0, 1.0, rng.random(), weights @ values]))


def growth(values, weights, guess, rule, side=1.0, least=1.0, lean=1.0):
    """E exp(lambda (X - V) - cost (X - g)^2) for every lambda; of V - X on the other side.

    The cost is (1 - g) lambda^2 / 2 + g psi, times `least` and `lean`.
    """
    mean, g = weights @ values, guess if side > 0 else 1 - guess
    costs = least * (1 - g) * rule.rates**2 / 2 + lean * g * rule.costs
    return (
        np.exp(np.outer(rule.rates, side * (values - mean)) - np.outer(costs, (values - guess) ** 2))
        @ weights
    )


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_no_law_and_no_guess_lets_it_grow(side):
    rng = np.random.default_rng(0)
    for law in laws(rng, 3000):
        for rule in GRIDS:
            assert growth(*law, rule, side).max() <= 1 + 1e-12


def test_with_a_smaller_cost_it_would_grow():
    """Neither lambda^2 / 2, where the guess is small, nor psi, where it is 1, can be had for less."""
    rng, grown, normal = np.random.default_rng(0), 0, 0
    for law in laws(rng, 3000):
        for rule in GRIDS:
            grown += growth(*law, rule, lean=0.9).max() > 1 + 1e-9
            normal += growth(*law, rule, least=0.9).max() > 1 + 1e-9
    assert grown > 10
    assert normal > 10


def test_what_a_hidden_trial_takes_off_at_most():
    grid = np.linspace(0.0, 1.0, 21)
    X, V, g = np.meshgrid(grid, grid, grid)
    for rule in GRIDS:
        for rate, cost in zip(rule.rates, rule.costs, strict=True):
            least = (rate * (X - V) - ((1 - g) * rate**2 / 2 + g * cost) * (X - g) ** 2).min()
            assert -rate - cost - 1e-12 <= least
            assert least == pytest.approx(-rate - cost)  # X = 0, V = 1, guess 1


# -- many trials, all streams at once ------------------------------------------------------------------------


def drifting(kind, rng, told):
    """Values and returns of the next trial of every stream, taken to [0, 1]."""
    n = len(told[0])
    if kind == "coin":  # all steps share one coin; it worsens after luck
        V = np.where(told[0] > told[1], 0.8, 0.97)
        return V, (rng.random(n) < V).astype(float)
    if kind == "rare":  # a disaster, or all is well
        V = np.full(n, 0.995)
        return V, (rng.random(n) < V).astype(float)
    if kind == "paths":  # long or short episodes of independent coins
        p, length = 0.5 + 0.4 * np.sin(len(told[2]) / 20), np.where(rng.random(n) < 0.3, 1, 4)
        return np.full(n, p * (0.3 * 1 + 0.7 * 4) / 4), rng.binomial(length, p) / 4
    V = rng.beta(2, 1, n)  # values that nobody guesses
    return V, (rng.random(n) < V).astype(float)


@pytest.mark.parametrize("late", [0, 9])
@pytest.mark.parametrize("kind", ["coin", "rare", "paths", "any"])
def test_coins_that_drift_and_are_shared(kind, late):
    """The guess knows what was told `late` trials ago; both sides, each at its level."""
    rng, rule = np.random.default_rng(1), Bernstein.of(LEVEL, N / 2)
    Q, R, X, V = (np.zeros(STREAMS) for _ in range(4))
    crossed, seen = np.zeros((2, STREAMS), dtype=bool), []
    for k in range(N):
        old = seen[: max(0, k - late)]
        guess = (0.5 + sum(old)) / (1 + len(old))
        v, x = drifting(kind, rng, (X, V, seen))
        seen.append(x)
        X, V, Q, R = X + x, V + v, Q + (x - guess) ** 2, R + guess * (x - guess) ** 2
        for side, (apart, tilt) in enumerate(((X - V, R), (V - X, Q - R))):
            costs = np.outer(Q - tilt, rule.rates**2 / 2) + np.outer(tilt, rule.costs)
            exponents = np.outer(apart, rule.rates) - costs
            crossed[side] |= logsumexp(exponents + rule.weights, axis=1) > 0
    assert crossed.mean(axis=1).max() <= ALLOWED


def normal_returns(rng, shared):
    """Noise and paths of four steps, or one draw that all of them share, path included; and the proxy."""
    paths = rng.choice([-0.5, 0.5], size=(STREAMS, N))
    if shared:
        return paths + 4 * 0.1 * np.abs(rng.normal(size=(STREAMS, N))) * np.sign(paths), (0.4 + 0.5) ** 2
    return paths + 0.1 * rng.normal(size=(4, STREAMS, N)).sum(axis=0), 4 * 0.01 + 0.25


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("loses", [0.0, 0.1, 0.5])
def test_normal_noise_of_which_the_worst_is_withheld(shared, loses):
    """A trial is withheld if it is below the quantile; what is told is at most u(v of all) + H too much."""
    eps, v = normal_returns(np.random.default_rng(2), shared)
    hidden = eps < np.quantile(eps, loses)
    told, m, n = np.cumsum(np.where(hidden, 0.0, eps), axis=1), np.cumsum(hidden, axis=1), np.arange(1, N + 1)
    level, lost = 0.9 * LEVEL, 0.04 * LEVEL
    rho = best_rho(v * N / 2, level)
    u = np.sqrt(2 * (n * v + rho) * np.log(np.sqrt((n * v + rho) / rho) / (2 * level) + 1))
    sets = gammaln(n + 2) - gammaln(m + 1) - gammaln(n - m + 1)
    t = 0.5 * np.log((m * v + v / 8) / (v / 8)) + sets - np.log(2 * lost)
    H = np.where(m > 0, np.sqrt(2 * (m * v + v / 8) * np.logaddexp(0, t)), 0.0)
    assert (told > u + H).any(axis=1).mean() <= ALLOWED
    if loses:
        assert (told > u).any(axis=1).mean() > ALLOWED  # and what is hidden must be charged


# -- the ledger against somebody who knows -------------------------------------------------------------------


class Forgiving(ModelFree):
    """Takes lost trials for nothing."""

    def _hide(self, tally, line):
        return

    def hides(self, tally, away):
        return 0.0, 0.0


MDP, TRIALS, RUNS = Unknown(1, 2, 4), 200, 200
PROMISES = [Bounded(0.0, 1.0), SubGaussian(0.05, next_state=True)]


def broken(kind, promise, rng, lies=False):
    """Whether told designed trials were ever worth less than believed, and what was believed in the end.

    All steps share one coin. Ten are out at a time. Only successes are told; a failure is abandoned,
    and a trial that never started is cancelled just then. That a trial will not start has nothing to do with
    coins: it has none. Who `lies` says so of the newest trial whenever that has failed.
    """
    guard = Guardrail("kept", promise, alpha=0.2, baseline_value=2.0)
    asked = Problem(MDP, MDP.uniform, [[1.0, 0.0]], guardrails=guard, delta=LEVEL)
    stage = stage_of(MDP)
    ledger, play = Kept(asked, TRIALS, stage, kind), stage.play(np.array([[0.0, 1.0]]))
    worth, coins, never, truth = 0.9 + 0.05 * rng.random(TRIALS + 1), {}, [], 0.0
    for number in range(1, TRIALS + 1):
        ledger.ask(number, play)
        if not lies and rng.random() < 0.05:
            never.append(number)
            continue
        coins[number] = float(rng.random() < worth[number])
        if len(coins) < 10:
            continue
        if min(coins.values()) == 0.0:
            failed = max(n for n in coins if coins[n] == 0.0)
            coins.pop(failed)
            (ledger.cancel if lies and failed == number else ledger.abandon)(failed)
            if never:
                ledger.cancel(never.pop())
        else:
            first = min(coins)
            truth += 4 * worth[first]
            ledger.tell(first, play, observed([0] * 4, [1] * 4, [coins.pop(first)] * 4))
        if ledger.earned() > truth + 1e-9:
            return True, ledger.earned()
    return False, ledger.earned()


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_whoever_knows_the_outcomes_gains_nothing(promise):
    """More than 21 of 200 have a probability below 1e-3 at 5 %; and there is something to break."""
    rng = np.random.default_rng(4)
    found = [broken(ModelFree, promise, rng) for _ in range(RUNS)]
    assert sum(broke for broke, _ in found) <= binom.isf(1e-3, RUNS, LEVEL) == 21
    assert np.mean([believed for _, believed in found]) > TRIALS


def test_a_ledger_that_forgets_lost_trials_is_found():
    rng = np.random.default_rng(4)
    assert sum(broken(Forgiving, PROMISES[0], rng)[0] for _ in range(30)) > 16


def test_that_a_trial_never_started_is_believed():
    """A limit: the newest is dropped for nothing, so to cancel it when it has failed breaks the promise."""
    rng = np.random.default_rng(4)
    assert sum(broken(ModelFree, PROMISES[0], rng, lies=True)[0] for _ in range(30)) > 16
