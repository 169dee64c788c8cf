"""What paths and the box leave open: by hand, against a linear program and a weaker formula."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from kept import Kept, observed
from scipy.optimize import linprog
from slowly import by_theta

from saver import Mdp, Problem, SubGaussian
from saver.kernels.bounds.boundaries import ROUNDING, best_theta, path_bound
from saver.play import Stage

PARTS = st.one_of(st.just(0.0), st.floats(1e-3, 20.0))
KINDS = (PARTS, PARTS, st.floats(-2.0, 2.0), st.floats(0.0, 2.0))  # W, T, lower ends, lengths
PAIRS = st.integers(1, 7).flatmap(
    lambda n: st.tuples(*(st.lists(values, min_size=n, max_size=n) for values in KINDS))
)


def test_two_pairs_by_hand():
    """W = (3, 1), T = (1, 3), means in [0, 1] and [.2, .6].

    Corners at theta = 1/3 and 3. At D = 2 the slope between them is 2 - 3 * .6 = .2, so theta = 3 is best:
    6 + 0 - 8 * .6 = 1.2. As a program: mu_2 = .6 is not enough, mu_1 >= 2 - 1.8 = .2, and 3 * .2 + .6 = 1.2.
    """
    W, T, lower, upper = (
        np.array([3.0, 1.0]),
        np.array([1.0, 3.0]),
        np.array([0.0, 0.2]),
        np.array([1.0, 0.6]),
    )
    assert path_bound(2.0, W, T, lower, upper) == pytest.approx(1.2)
    assert best_theta(2.0, W, T, lower, upper) == 3.0
    # D = 1.2: mu_2 alone can do it, at 1/3 a unit: (1.2 - .6) / 3 = .2 more than the lower ends.
    assert path_bound(1.2, W, T, lower, upper) == pytest.approx(0.2 + 0.2)
    assert best_theta(1.2, W, T, lower, upper) == pytest.approx(1 / 3)
    # D below what the lower ends say already: nothing is added.
    for D in (0.6, -5.0):
        assert path_bound(D, W, T, lower, upper) == pytest.approx(0.2)
        assert best_theta(D, W, T, lower, upper) == 0.0


def test_nothing_seen():
    nothing, lower, upper = np.zeros(2), np.array([-1.0, 0.3]), np.ones(2)
    assert path_bound(0.0, nothing, nothing, lower, upper) == 0.0
    assert path_bound(-3.0, nothing, nothing, lower, upper) == 0.0
    assert path_bound(0.0, np.array([1.0, 2.0]), nothing, lower, upper) == pytest.approx(-1.0 + 0.6)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # where nothing is compiled
def test_numbers_too_small_to_divide_by_say_nothing():
    # W / T is beyond all floats: whatever is made of it is no bound.
    for upper in (1.0, -1.0):
        W, T, lower = np.ones(1), np.full(1, 5e-324), np.full(1, -2.0)
        assert path_bound(1.0, W, T, lower, np.full(1, upper)) == -np.inf


def test_paths_as_expected_cost_nothing():
    W = np.array([2.0, 5.0])
    assert path_bound(4.2, W, W, np.zeros(2), np.ones(2)) == pytest.approx(4.2)


def test_rounding_is_not_multiplied():
    """Without noise D and T.mu are the same but for rounding: a theta of 1e19 would make thousands of it."""
    mean = np.array([0.1, 0.7, 0.3])
    W, T = np.array([1.0, 0.1, 0.5]), np.array([3.0, 0.3, 3e-19])
    for off in (1e-16, 1e-14, 0.0, -1e-14):
        assert path_bound(float(T @ mean) + off, W, T, mean, mean) == pytest.approx(W @ mean, rel=1e-12)


@pytest.mark.parametrize(("discount", "steps"), [(0.1, 20), (0.01, 10), (0.5, 30), (1.0, 4)])
def test_no_more_is_believed_than_is_true_where_nothing_varies(discount, steps):
    """A chain that starts at either end: its last state is met at once, or with next to no weight."""
    start = np.zeros(steps)
    start[[0, -1]] = 0.5
    edges = [(s, a, s + 1, 1.0) for s in range(steps - 1) for a in (0, 1)]
    mdp = Mdp.from_edges(edges, steps, 2, steps, discount=discount, start=start)
    asked = Problem(
        mdp, np.full((steps, 2), 0.5), np.eye(2)[[0] * steps], alpha=0.5, baseline_value=0.4,
        constraint=SubGaussian(0.0),
    )  # fmt: skip
    stage = Stage(mdp)
    play = stage.play(np.eye(2)[[1] * steps])
    for seed in range(10):
        ledger, mean = Kept(asked, 10, stage), np.random.default_rng(seed).random(steps)
        for number in range(1, 5):
            ledger.ask(number, play)
            ledger.tell(number, play, observed(np.arange(steps), np.ones(steps, dtype=int), mean))
            assert ledger.earned() == pytest.approx(number * play.weights[:, 1] @ mean, rel=1e-9)


@settings(max_examples=200)
@given(PAIRS, st.floats(0.0, 1.0))
def test_a_linear_program(pairs, share):
    """min W.mu over means in the box with T.mu >= D."""
    W, T, lower, length = map(np.array, pairs)
    upper = lower + length
    D = float(T @ (lower + share * length)) * (1 - 1e-9)
    D = min(D, float(T @ upper))
    program = linprog(W, A_ub=-T[None], b_ub=[-D], bounds=list(zip(lower, upper, strict=True)))
    assert program.status == 0
    found = path_bound(D, W, T, lower, upper)
    # What may be rounding is left: a billionth of the sums, times the largest theta.
    size = abs(D) + float(T @ np.maximum(np.abs(lower), np.abs(upper)))
    left = ROUNDING * size * max((W[T > 0] / T[T > 0]).max(initial=0.0), 1.0)
    assert found == pytest.approx(program.fun, rel=1e-6, abs=1e-6 + left)
    assert found == pytest.approx(by_theta(D, W, T, lower, upper), rel=1e-6, abs=1e-6 + left)


@given(PAIRS, st.floats(-20.0, 60.0))
def test_it_is_at_least_the_formula_for_theta_one(pairs, D):
    """D - sum (T - W) m - sum |T - W| h, and at least the lower ends alone."""
    W, T, lower, length = map(np.array, pairs)
    upper = lower + length
    m, h = (lower + upper) / 2, length / 2
    one = D - (T - W) @ m - np.abs(T - W) @ h
    found, slack = path_bound(D, W, T, lower, upper), 1e-9 * (1 + abs(D) + W.sum() + T.sum())
    feasible = T @ upper >= D
    assert found >= W @ lower - slack
    if feasible:
        assert found >= one - slack


@given(PAIRS, st.floats(0.0, 1.0), st.integers(0, 10_000))
def test_no_means_in_the_box_are_worth_less(pairs, share, seed):
    """The claim itself: whatever the means are, if they make T.mu >= D then W.mu is at least the bound."""
    W, T, lower, length = map(np.array, pairs)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        mu = lower + rng.random(len(W)) * length
        D = float(T @ mu) - rng.choice([0.0, share])
        assert W @ mu >= path_bound(D, W, T, lower, lower + length) - 1e-9 * (1 + W.sum() + T.sum())


def test_equal_corners_and_many_pairs():
    rng = np.random.default_rng(2)
    for _ in range(50):
        n = int(rng.integers(20, 60))
        T = rng.integers(0, 4, n).astype(float)
        W = T * rng.choice([0.5, 1.0, 2.0], n) + (T == 0)
        lower = rng.random(n)
        upper = lower + rng.random(n)
        D = float(T @ lower + rng.random() * (T @ (upper - lower)))
        assert path_bound(D, W, T, lower, upper) == pytest.approx(by_theta(D, W, T, lower, upper))


def test_where_pairs_are_met_about_once_noise_and_paths_together_say_more():
    """400 states to start from, 40 met once: the box says nothing of the others, the sum of X does."""
    mdp = Mdp.from_edges([], 400, 2, 1, start=np.full(400, 1 / 400))
    asked = Problem(
        mdp, np.full((400, 2), 0.5), np.eye(2)[[0] * 400], alpha=0.5, baseline_value=0.9,
        constraint=SubGaussian(0.01),
    )  # fmt: skip
    play, ledger = Stage(mdp).play(np.eye(2)[[1] * 400]), Kept(asked, 1000)
    for number in range(1, 41):
        ledger.ask(number, play)
        ledger.tell(number, play, observed([number - 1], [1], [0.9]))
    ends = ledger.ledger.ends(ledger.book)
    alone = path_bound(
        ledger.ledger.seen_worth(ledger.book.first), ledger.expected.ravel(), ledger.realised.ravel(),
        *(end.ravel() for end in ends),
    )  # fmt: skip
    together = ledger.ledger.together(ledger.book.first, ())
    found = ledger.ledger.worth(ledger.book.first, (), ends)
    assert alone < 5.0
    assert 15.0 < together < 36.0
    assert found == together
    # Two more, of which the first is cancelled: its noise may be what made somebody cancel it.
    for number in (41, 42):
        ledger.ask(number, play)
    ledger.tell(42, play, observed([41], [1], [0.9]))
    kept = ledger.ledger.together(ledger.book.every, ledger.ledger.away(ledger.book))
    ledger.cancel(41)
    never = ledger.ledger.never(0.01**2)
    assert never > 0.0
    told = ledger.book.first
    assert told.strays > 0.0
    assert ledger.ledger.together(told, ()) == pytest.approx(
        told.sum_x - ledger.ledger.boundary(told.sum_v) - told.strays - never
    )
    assert ledger.ledger.together(told, ()) > kept
