"""The certificate's numbers, worked out again here with plain mathematics: a changed sign or share fails."""

import math

import numpy as np
import pytest
from kept import DELTA, GIVEN, MDP, OTHER, SCALE, SECOND, K, Kept, observed, problem, two_starts, two_steps
from slowly import by_theta

import saver
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_table, mixture_two_sided, stitched
from saver.kernels.bounds.noise import unseen
from saver.play import Stage
from saver.safety.argument import first_width, paper_lower, paper_width
from saver.safety.paper import Latest, Paper, Plugin


def test_boundaries_against_their_formulas():
    for v, rho, level in ((0.3, 0.1, 0.05), (5.0, 2.0, 0.01), (0.0, 1.0, 0.2)):
        inner = math.sqrt((v + rho) / rho) / (2 * level) + 1
        assert mixture(v, rho, level) == pytest.approx(math.sqrt(2 * (v + rho) * math.log(inner)), rel=1e-13)
        both = (v + rho) / (rho * level**2)
        assert mixture_two_sided(v, rho, level) == pytest.approx(
            math.sqrt((v + rho) * math.log(both)), rel=1e-13
        )
    zeta = sum(k**-1.4 for k in range(1, 200_000)) + 200_000**-0.4 / 0.4  # the tail by its integral
    k1, k2 = (2**0.25 + 2**-0.25) / math.sqrt(2), (math.sqrt(2) + 1) / 2
    for v, start, scale, level in ((3.0, 1.0, 0.2, 0.05), (0.2, 1.0, 0.2, 0.05), (1e4, 0.5, 1.0, 0.01)):
        w = max(v, start)
        ell = 1.4 * math.log(math.log2(2 * w / start)) + math.log(zeta / level)
        expected = math.sqrt(k1**2 * w * ell + (k2 * scale * ell) ** 2) + k2 * scale * ell
        assert stitched(v, start, scale, level) == pytest.approx(expected, rel=1e-6)
    twice = 2 * math.log(1 / 0.05)
    assert best_rho(3.0, 0.05) == pytest.approx(3.0 / (twice + math.log(1 + twice)), rel=1e-13)
    np.testing.assert_allclose(
        mixture_table(0.3, 3, 0.1, 0.05), [0.0, *(mixture(0.3 * j, 0.1, 0.05) for j in (1, 2, 3))], rtol=1e-13
    )


# -- shares of delta -----------------------------------------------------------------------------------------

PROMISES = (saver.SubGaussian, lambda scale, **more: saver.Bounded(0.0, 1.0, **more))


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize(
    ("make", "next_state", "parts"),
    [
        (problem, False, (0.10, 0.15, 0.75, 0.0)),
        (problem, True, (0.10, 0.15, 0.75, 0.0)),
        (two_steps, False, (0.10, 0.15, 0.75, 0.0)),
        (two_starts, False, (0.10, 0.45, 0.225, 0.225)),
        (two_starts, True, (0.10, 0.45, 0.45, 0.0)),
    ],
)
def test_shares_of_delta_and_where_each_is_used(make, next_state, parts, promise):
    asked = make(constraint=promise(SCALE, next_state=next_state), delta=0.2)
    ledger = Kept(asked, K)
    levels = ledger.levels
    if ledger.bets:
        parts = 0.01, 0.02, 0.01, 0.96
    assert tuple(levels) == pytest.approx([0.2 * part for part in parts])
    assert sum(levels) == pytest.approx(0.2)
    pairs = 2 if make is problem else 4
    assert ledger.box.level == pytest.approx(levels.box / pairs)
    sides = 1 if ledger.deterministic or not ledger.rule.bounded else 2  # a normal mixture has both in one
    assert ledger.box.numbers.rule.level == pytest.approx(levels.box / pairs / sides)
    assert ledger.box.numbers.below is ledger.deterministic
    assert ledger.rule.level == levels.noise
    assert ledger.crosses is (parts[3] > 0)
    if ledger.bets:
        assert np.exp(ledger.capital.weights).sum() == pytest.approx(0.96 * 0.2)
    elif ledger.crosses:
        assert ledger.boundary(2.0) == stitched(2.0, ledger.start, ledger.scale, 0.2 * 0.225)


def test_only_pairs_that_can_be_met_share_the_box():
    """State 2 is never entered, action 1 is missing in state 1: three pairs."""
    mdp = saver.Mdp.from_edges(
        [(0, 0, 1, 1.0), (0, 1, 1, 1.0)], 3, 2, 2, available=[[True, True], [True, False], [True, True]]
    )
    asked = saver.Problem(mdp, np.eye(2)[[1, 0, 0]], np.eye(2)[[0, 0, 0]], **GIVEN)
    assert Kept(asked, K).box.level == pytest.approx(0.15 * DELTA / 3)


def test_constants_of_the_boundaries():
    sure, random = Kept(problem(), K), Kept(two_starts(), K)
    assert sure.rule.rho == pytest.approx(best_rho(SCALE**2 * K / 2, 0.75 * DELTA))
    assert random.rule.rho == pytest.approx(best_rho(SCALE**2 * K / 2, 0.225 * DELTA))
    assert random.scale == pytest.approx(1 / 3)  # span 1
    assert random.start == pytest.approx(SCALE**2 + 1 / 4)
    long = Kept(two_steps(constraint=saver.SubGaussian(SCALE, -1.0, 2.0)), K)
    assert long.rule.rho == pytest.approx(best_rho(SCALE**2 * 1.25 * K / 2, 0.75 * DELTA))
    assert long.scale == pytest.approx(3 * 1.5 / 3)  # span (ceiling - floor) (1 + discount)
    assert long.start == pytest.approx(SCALE**2 * 1.25 + (3 * 1.5) ** 2 / 4)
    assert random.boundary(0.0) == 0.0
    coins = Kept(two_steps(constraint=saver.Bounded(-1.0, 2.0)), K)
    unit = math.sqrt(2 * math.log(1 / (0.75 * DELTA)) / (1.5 * K / 2))
    np.testing.assert_allclose(coins.rule.rates, unit * np.geomspace(1.6, 14.0, 6))
    assert (coins.rule.low, coins.rule.high) == (-1.0, 2.0)


# -- told ----------------------------------------------------------------------------------------------------


def test_random_paths_by_hand():
    """The largest of: C - u with what W, T and the box leave open, sum X - u(sum v), lower values since."""
    asked = two_starts()
    ledger, play = Kept(asked, K), Stage(asked.mdp).play(OTHER)
    rho = best_rho(SCALE**2 * K / 2, 0.225 * DELTA)
    share, T = np.array([0.25, 0.75]), np.zeros(2)
    bound = sum_x = sum_v = total = 0.0
    won = set()
    for k in range(1, 41):
        state, c = int(k % 3 != 0), 0.6 + 0.05 * (-1) ** k
        lower, upper = (end[:, 1] for end in ledger.ends())
        m, h = (lower + upper) / 2, (upper - lower) / 2
        low = float(share @ lower)
        assert ledger.lower(play) == pytest.approx(low)
        ledger.ask(k, play)
        assert ledger.lines[k].ticket.v == pytest.approx(SCALE**2 + share @ h**2)
        ledger.tell(k, play, observed([state], [1], [c]))
        total, sum_v = total + c, sum_v + SCALE**2 + share @ h**2
        sum_x += c - (m[state] - share @ m)
        T[state] += 1
        assert (ledger.gained, ledger.sum_x, ledger.sum_v) == pytest.approx((total, sum_x, sum_v))
        assert (ledger.proxy, ledger.length) == pytest.approx((k * SCALE**2, k))
        np.testing.assert_allclose(ledger.expected[:, 1], k * share)
        np.testing.assert_allclose(ledger.realised[:, 1], T)
        ends = [end[:, 1] for end in ledger.ends()]
        D = total - mixture(k * SCALE**2, rho, 0.225 * DELTA)
        ways = {
            "lower": bound + low,
            "paths": by_theta(D, k * share, T, *ends),
            "boundary": sum_x - stitched(sum_v, SCALE**2 + 0.25, 1 / 3, 0.225 * DELTA),
        }
        bound = max(ways.values())
        won.add(max(ways, key=ways.get))
        assert ledger.earned() == pytest.approx(bound)
        assert ledger.budget() == pytest.approx(bound - k * 0.4)
    assert "paths" in won
    assert 0.5 * 40 < bound < 0.6 * 40


def test_where_every_pair_is_met_about_once_the_boundary_is_the_larger():
    """300 starts: the box says next to nothing of most, and T is far from W."""
    S, rng = 300, np.random.default_rng(1)
    mdp = saver.Mdp(np.zeros((S, 2, S)), 1, start=np.full(S, 1 / S))
    asked = saver.Problem(mdp, np.full((S, 2), 0.5), np.eye(2)[[0] * S], **GIVEN)
    ledger, play = Kept(asked, S), Stage(mdp).play(np.eye(2)[[1] * S])
    sum_x = sum_v = 0.0
    for k in range(1, S + 1):
        m, h = (part[:, 1] for part in ledger.middle())
        state, c = int(rng.integers(S)), 0.8 + SCALE * rng.normal()
        sum_x += c - (m[state] - m.mean())
        sum_v += SCALE**2 + np.mean(h**2)
        ledger.ask(k, play)
        ledger.tell(k, play, observed([state], [1], [c]))
    bound = sum_x - stitched(sum_v, SCALE**2 + 0.25, 1 / 3, 0.225 * DELTA)
    assert ledger.earned() == pytest.approx(bound)
    ends = [end.ravel() for end in ledger.ends()]
    other = by_theta(ledger.seen_worth(ledger.first), ledger.expected.ravel(), ledger.realised.ravel(), *ends)
    assert other < bound - 30


def test_noise_that_depends_on_the_next_state_uses_the_paths_alone():
    asked = two_starts(constraint=saver.SubGaussian(SCALE, next_state=True))
    ledger, play = Kept(asked, K), Stage(asked.mdp).play(OTHER)
    rho = best_rho(SCALE**2 * K / 2, 0.45 * DELTA)
    bound = total = 0.0
    T = np.zeros(2)
    for k in range(1, 31):
        state, c = int(k % 4 != 0), 0.7
        low = ledger.lower(play)
        ledger.ask(k, play)
        assert (ledger.lines[k].ticket.v, ledger.lines[k].ticket.strays) == (0.0, 0.0)
        ledger.tell(k, play, observed([state], [1], [c]))
        total, T[state] = total + c, T[state] + 1
        ends = [end[:, 1] for end in ledger.ends()]
        D = total - mixture(k * SCALE**2, rho, 0.45 * DELTA)
        bound = max(bound + low, by_theta(D, k * np.array([0.25, 0.75]), T, *ends))
        assert ledger.earned() == pytest.approx(bound)
    assert (ledger.sum_x, ledger.sum_v) == (0.0, 0.0)
    assert list(ledger.boxes) == [0]  # no midpoints are kept
    ledger.ask(31, play)
    ledger.abandon(31)
    noise = unseen(SCALE**2, SCALE**2 / 8, math.log(0.04 * DELTA / (32 * 31)))
    assert ledger.ledger.hides(ledger.first, ())[0] == pytest.approx(noise)


def test_a_drawn_policy_where_nothing_else_is_random_is_what_was_drawn():
    """No share for paths, no control variate: the trial is worth what its draws make of it."""
    stage = Stage(MDP)
    ledger, both = Kept(problem(), K, stage), stage.grid.policy(np.array([[0.25, 0.75]]))
    total = 0.0
    for k, draw in enumerate((0.3, 0.9, 0.2, 0.25), 1):
        play = stage.promised(both, np.array([draw]), ledger.safe)
        ledger.ask(k, play)
        assert ledger.out[k].baseline is (draw < 0.25)
        ledger.tell(k, play, observed([0], [int(draw >= 0.25)], [0.8]))
        total += 0.8 * (draw >= 0.25)
    assert (ledger.designed_told, ledger.baseline_told) == (3, 1)
    assert ledger.gained == pytest.approx(total)
    assert ledger.proxy == pytest.approx(3 * SCALE**2)
    assert ledger.earned() == pytest.approx(total - mixture(3 * SCALE**2, ledger.rule.rho, 0.75 * DELTA))
    assert (ledger.sum_x, ledger.sum_v, ledger.expected) == (0.0, 0.0, None)


def test_the_gate_asks_with_the_least_that_can_be_drawn():
    """Action 1 was good, action 2 was never seen: a policy that may take either is worth its floor."""
    mdp = saver.Mdp(np.zeros((1, 3, 1)), horizon=1)
    asked = saver.Problem(mdp, [[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]], **GIVEN)
    stage = Stage(mdp)
    ledger, second = Kept(asked, K, stage), stage.play(np.array([[0.0, 1.0, 0.0]]))
    for number in range(1, 7):
        ledger.ask(number, second)
        ledger.tell(number, second, observed([0], [1], [0.9]))
    low = ledger.ends()[0][0, 1]
    assert low > 0.6
    assert ledger.lower(stage.play(np.array([[0.0, 0.999, 0.001]]))) == 0.0
    assert ledger.lower(stage.play(np.array([[0.5, 0.5, 0.0]]))) == 0.0  # the baseline's action was not seen
    ledger.ask(7, None)
    ledger.tell(7, None, observed([0], [0], [0.8]))
    first = ledger.ends()[0][0, 0]
    assert 0.0 < first < low
    assert ledger.lower(stage.play(np.array([[0.01, 0.99, 0.0]]))) == first
    assert ledger.lower(second) == low


# -- the gate ------------------------------------------------------------------------------------------------


def test_the_gate_at_the_very_edge():
    """Played iff budget + lower value - required >= 0, with nothing but rounding forgiven."""
    stage = Stage(MDP)
    play = stage.play(SECOND)
    for told, played in ((3, False), (4, True)):  # each baseline episode pays .1, and .4 is needed
        ledger = Kept(problem(), K, stage)
        for number in range(1, told + 1):
            ledger.ask(number, None)
            ledger.tell(number, None, observed([0], [0], np.array([0.5])))
        assert ledger.passes("prospective", play) is played
        assert ledger.passes("retrospective", play) is True
    short = Kept(problem(alpha=0.2 - 1e-6), K, stage)
    for number in range(1, 5):
        short.ask(number, None)
        short.tell(number, None, observed([0], [0], np.array([0.5])))
    assert short.passes("prospective", play) is False
    below = Kept(problem(), K, stage)
    below.ask(1, play)
    assert below.passes("retrospective", play) is False


def test_the_gate_counts_the_candidates_lower_value():
    """A floor of .2 leaves only .2 of the .4 to be paid for: two baseline episodes."""
    stage = Stage(MDP)
    play = stage.play(SECOND)
    for told, played in ((1, False), (2, True)):
        ledger = Kept(problem(constraint=saver.SubGaussian(SCALE, 0.2, 1.0)), K, stage)
        for number in range(1, told + 1):
            ledger.ask(number, None)
            ledger.tell(number, None, observed([0], [0], np.array([0.5])))
        assert ledger.passes("prospective", play) is played


def test_gates_forgive_rounding_in_the_unit_of_the_problem():
    stage = Stage(MDP)
    play = stage.play(SECOND)
    for unit in (1e-6, 1.0, 1e6):
        asked = problem(baseline_value=0.5 * unit, constraint=saver.SubGaussian(SCALE * unit, 0.0, unit))
        for gate in ("retrospective", "prospective"):
            for off, passes in ((0.0, True), (-0.5e-12, True), (-2e-12, False)):
                ledger = Kept(asked, K, stage)
                ledger.book.lost = off * asked.baseline_value
                if gate == "prospective":
                    ledger.book.lost += asked.required  # as if the candidate were paid for
                assert ledger.passes(gate, play) is passes, (unit, gate, off)


# -- the pace: a wish, not a promise -------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, SCALE])
@pytest.mark.parametrize("make", [problem, two_steps, two_starts])
def test_a_pace_falls_with_what_was_paid_and_with_time(make, scale):
    ledger = Kept(make(constraint=saver.SubGaussian(scale)), K)
    paces = [ledger.pace(0, baseline, 100) for baseline in (0, 5, 50)]
    assert np.all(np.isfinite(paces))
    assert paces == sorted(paces, reverse=True)
    assert ledger.problem.required < ledger.pace(0, 0, 10**8) < ledger.pace(0, 0, 100)
    assert ledger.pace(0, 0, 10**8) == pytest.approx(ledger.problem.required, rel=0.01)


# -- the paper's ---------------------------------------------------------------------------------------------


def test_the_papers_width_and_ledgers_by_hand():
    asked = problem()
    n = float(K)
    first = math.sqrt(math.log(2 * n * (n + 1)))
    assert first_width(asked, K) == pytest.approx(first)
    counts, means = np.array([[4, 0]]), np.array([[0.8, 0.9]])
    np.testing.assert_allclose(paper_width(asked, K, counts), [[first / 2, first]])
    lower = paper_lower(asked.constraint, paper_width(asked, K, counts), counts, means)
    np.testing.assert_allclose(lower, [[0.8 - 0.1 * first / 2, 0.0]])
    longer = two_steps()
    n = 2.0 * K
    assert first_width(longer, K) == pytest.approx(2 * math.sqrt(math.log(4 * n * (n + 1))))
    stage = Stage(MDP)
    ledgers = [Kept(asked, K, stage, kind=kind) for kind in (Paper, Latest, Plugin)]
    play, seen = stage.play(np.array([[0.5, 0.5]])), [0.9, 0.7]
    frozen = 0.0
    for number, c in enumerate(seen, 1):
        for ledger in ledgers:
            ledger.ask(number, play)
        for ledger in ledgers:
            ledger.tell(number, play, observed([0], [0], np.array([c])))
        mean = np.mean(seen[:number])
        frozen += 0.5 * max(0.0, mean - 0.1 * first / math.sqrt(number))
    assert ledgers[0].earned() == pytest.approx(frozen)
    assert ledgers[1].earned() == pytest.approx(2 * 0.5 * (0.8 - 0.1 * first / math.sqrt(2)))
    assert ledgers[2].earned() == pytest.approx(2 * 0.5 * 0.8)
    assert ledgers[2].budget() == pytest.approx(0.8 - 2 * 0.4)
    assert ledgers[2].lower(play) == pytest.approx(0.5 * 0.8)
