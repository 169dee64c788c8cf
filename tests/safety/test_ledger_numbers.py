"""The certificate's numbers, worked out again here with plain mathematics: a changed sign or share fails."""

import math

import numpy as np
import pytest
from kept import Kept, observed

import saver
from saver.safety import Stage
from saver.safety.boundaries import best_rho, mixture, mixture_table, mixture_two_sided, steepest, stitched
from saver.safety.latest import Latest, Plugin
from saver.safety.paper import Paper
from saver.safety.widths import Box, first_width, paper_lower, paper_width

DELTA, SCALE, K = 0.05, 0.1, 20
MDP = saver.Mdp(np.zeros((1, 2, 1)), horizon=1)
FIRST, SECOND = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])


def problem(**options):
    given = {"alpha": 0.2, "baseline_value": 0.5, "constraint": saver.SubGaussian(SCALE), "delta": DELTA}
    return saver.Problem(MDP, [[0.5, 0.5]], FIRST, **{**given, **options})


def two_steps(discount=0.5, **options):
    """Two states in a row, two actions that lead to the same place."""
    mdp = saver.Mdp.from_edges([(0, 0, 1, 1.0), (0, 1, 1, 1.0)], 2, 2, 2, discount=discount)
    given = {"alpha": 0.2, "baseline_value": 0.75, "constraint": saver.SubGaussian(SCALE), "delta": DELTA}
    return saver.Problem(mdp, np.full((2, 2), 0.5), np.array([[1.0, 0], [1, 0]]), **{**given, **options})


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


def test_the_steepest_time_to_come():
    numbers = (0.1, 0.05, 0.7, 0.2)
    for boxed in (False, True):
        u = (lambda v: stitched(v, 0.7, 0.2, 0.05)) if boxed else (lambda v: mixture(v, 0.1, 0.05))
        at = (1, 2, 4, 8, 16, 20)
        expected = max((u(0.5 + 0.03 * t) + math.sqrt(0.03 * t) + 0.4) / (7 + t) for t in at)
        assert steepest(0.5, 0.03, 7, 0.4, 20, boxed, numbers) == pytest.approx(expected, rel=1e-13)


def test_shares_of_delta_and_constants():
    sure = Kept(problem(), K, Stage(MDP), True)
    assert sure.lost_level == pytest.approx(0.1 * DELTA)
    assert sure.level == pytest.approx(0.9 * DELTA)
    assert (sure.box, sure.scale) == (None, 0.0)
    assert sure.rho == pytest.approx(best_rho(SCALE**2 * K / 2, 0.9 * DELTA))
    assert sure.start == pytest.approx(SCALE**2)
    drawn = Kept(problem(), K, Stage(MDP), False)
    assert drawn.level == pytest.approx(0.45 * DELTA)
    assert drawn.box.level == pytest.approx(0.45 * DELTA / 2)  # two pairs
    assert drawn.scale == pytest.approx(1 / 3)  # span 1
    assert drawn.start == pytest.approx(SCALE**2 + 1 / 4)
    assert drawn.box.rho == pytest.approx(best_rho(SCALE**2 * max(10, K / 2), 0.45 * DELTA / 2))
    long = Kept(two_steps(constraint=saver.SubGaussian(SCALE, -1.0, 2.0)), K, Stage(two_steps().mdp), False)
    assert long.scale == pytest.approx(3 * 1.5 / 3)  # span (ceiling - floor) (1 + discount)
    assert long.start == pytest.approx(SCALE**2 * 1.25 + (3 * 1.5) ** 2 / 4)
    assert long.boundary(0.0) == 0.0
    assert long.boundary(2.0) == pytest.approx(stitched(2.0, long.start, long.scale, long.level))
    assert sure.boundary(2.0) == pytest.approx(mixture(2.0, sure.rho, sure.level))
    assert sure.numbers == (sure.rho, sure.level, sure.start, sure.scale)


def test_the_box_by_hand():
    box = Box(problem(), K, 0.0225)
    for T, mean in ((0, 0.3), (1, 0.55), (9, 0.97), (9, 0.02)):
        m, h = box.around(np.array([[T, 0]]), np.array([[mean, 0.0]]))
        w = mixture_two_sided(SCALE**2 * T, box.rho, 0.0225 / 2) / T if T else math.inf
        low, high = (0.0, 1.0) if not T else (max(0.0, mean - w), min(1.0, mean + w))
        assert m[0, 0] == pytest.approx((low + high) / 2)
        assert h[0, 0] == pytest.approx((high - low) / 2)
        assert (m[0, 1], h[0, 1]) == (0.5, 0.5)
    sure = Box(problem(constraint=saver.SubGaussian(0.0)), K, 0.0225)
    assert sure.around(np.array([[3, 0]]), np.array([[0.4, 0.0]]))[1][0, 0] == 0.0


def test_a_drawn_candidate_by_hand():
    """v = scale^2 + E[h^2], X = C - (m(a) - V(b; m)), the bound grows by lower values while u is larger."""
    stage = Stage(MDP)
    ledger, both = Kept(problem(), K, stage, False), stage.play(np.array([[0.25, 0.75]]))
    bound = total = spread = 0.0
    counts, means = np.zeros((1, 2), dtype=int), np.zeros((1, 2))
    for k, (action, c) in enumerate([(0, 0.55), (1, 0.35), (1, 0.45), (0, 0.48)], 1):
        m, h = ledger.box.around(counts, means)
        low = 0.25 * (m[0, 0] - h[0, 0]) + 0.75 * (m[0, 1] - h[0, 1])
        assert ledger.lower(both) == pytest.approx(max(0.0, low))
        ledger.ask(k, both)
        ledger.tell(k, both, observed([0], [action], np.array([c])))
        spread += SCALE**2 + 0.25 * h[0, 0] ** 2 + 0.75 * h[0, 1] ** 2
        total += c - (m[0, action] - (0.25 * m[0, 0] + 0.75 * m[0, 1]))
        bound = max(total - stitched(spread, ledger.start, ledger.scale, ledger.level), bound + low)
        assert ledger.sum_v == pytest.approx(spread)
        assert ledger.sum_x == pytest.approx(total)
        assert ledger.earned() == pytest.approx(bound)
        assert ledger.budget() == pytest.approx(bound - k * 0.4)
        counts[0, action] += 1
        means[0, action] += (c - means[0, action]) / counts[0, action]


def test_trials_out_and_abandoned_by_hand():
    stage = Stage(MDP)
    ledger, play = Kept(problem(), K, stage, True), stage.play(SECOND)
    for number in (1, 2, 3):
        ledger.ask(number, play)
    assert ledger.budget() == pytest.approx(-3 * 0.4)  # each may cost floor - required
    ledger.tell(3, play, observed([0], [1], np.array([0.9])))
    assert ledger.earned() == 0.0  # behind a gap: its floor
    assert ledger.budget() == pytest.approx(-3 * 0.4)
    ledger.tell(1, play, observed([0], [1], np.array([0.8])))
    first = max(0.8 - mixture(SCALE**2, ledger.rho, ledger.level), 0.0)
    assert ledger.earned() == pytest.approx(first)
    ledger.abandon(2, play)
    hidden = math.sqrt(2 * SCALE**2 * math.log(2 * 3 / (0.1 * DELTA)))
    third = 0.8 - hidden + 0.9 - mixture(3 * SCALE**2, ledger.rho, ledger.level)
    second = max(0.8 - hidden - mixture(2 * SCALE**2, ledger.rho, ledger.level), first)
    assert ledger.earned() == pytest.approx(max(third, second))
    assert ledger.budget() == pytest.approx(ledger.earned() - 2 * 0.4 - 0.4)  # two told, one lost for ever
    ledger.ask(4, None)
    ledger.abandon(4, None)
    assert ledger.budget() == pytest.approx(ledger.earned() - 3 * 0.4)  # a baseline trial costs nothing
    ledger.ask(5, None)
    ledger.tell(5, None, observed([0], [0], np.array([0.5])))
    assert ledger.budget() == pytest.approx(ledger.earned() - 3 * 0.4 + 0.2 * 0.5)


def test_a_trial_abandoned_where_actions_are_drawn():
    stage = Stage(MDP)
    ledger, both = Kept(problem(), K, stage, False), stage.play(np.array([[0.5, 0.5]]))
    ledger.ask(1, both)
    v = SCALE**2 + 0.25
    ledger.abandon(1, both)
    l = math.log(1 * 2 / (0.1 * DELTA))  # noqa: E741
    assert ledger.sum_x == pytest.approx(-(math.sqrt(2 * v * l) + l / 3))
    assert ledger.sum_v == pytest.approx(v)
    assert ledger.sealed == 1
    ledger.ask(2, both)
    ledger.tell(2, both, observed([0], [0], np.array([0.4])))
    assert ledger.seen.counts.sum() == 0  # the box learns nothing after a trial that was abandoned


def test_the_gate_at_the_very_edge():
    """Played iff budget + lower value - required >= 0, with nothing but rounding forgiven."""
    stage = Stage(MDP)
    play = stage.play(SECOND)
    for told, played in ((3, False), (4, True)):  # each baseline episode pays .1, and .4 is needed
        ledger = Kept(problem(), K, stage, True)
        for number in range(1, told + 1):
            ledger.ask(number, None)
            ledger.tell(number, None, observed([0], [0], np.array([0.5])))
        assert ledger.passes("prospective", play) is played
        assert ledger.passes("retrospective", play) is True
    short = Kept(problem(alpha=0.2 - 1e-6), K, stage, True)
    for number in range(1, 5):
        short.ask(number, None)
        short.tell(number, None, observed([0], [0], np.array([0.5])))
    assert short.passes("prospective", play) is False
    below = Kept(problem(), K, stage, True)
    below.ask(1, play)
    assert below.passes("retrospective", play) is False


def test_the_pace_by_hand():
    stage = Stage(MDP)
    ledger, play = Kept(problem(), K, stage, True), stage.play(SECOND)
    ledger.ask(1, play)
    ledger.tell(1, play, observed([0], [1], np.array([0.6])))
    debt = 0.4 - 0.0 - 2 * 0.1  # required - last lower value - two baseline episodes
    at = [
        (mixture(SCALE**2 * (1 + t), ledger.rho, ledger.level) + math.sqrt(SCALE**2 * t) + debt) / (1 + t)
        for t in (1, 2, 4, 8, 10)
    ]
    assert ledger.pace(1, 2, 10) == pytest.approx(0.4 + max(at))


def test_discounting_enters_value_noise_and_second_moment():
    asked = two_steps()
    stage = Stage(asked.mdp)
    play = stage.play(np.array([[0.5, 0.5], [0.5, 0.5]]))
    assert play.noise == pytest.approx(1 + 0.25)
    np.testing.assert_allclose(play.weights, [[0.5, 0.5], [0.25, 0.25]])
    h = np.array([[0.1, 0.3], [0.2, 0.4]])
    returns = [h[0, a] + 0.5 * h[1, b] for a in (0, 1) for b in (0, 1)]
    assert stage.second_moment(play, h) == pytest.approx(np.mean(np.square(returns)))
    ledger = Kept(asked, K, stage, False)
    ledger.ask(1, play)
    ledger.tell(1, play, observed([0, 1], [0, 1], np.array([0.6, 0.8])))
    assert ledger.sum_x == pytest.approx(0.6 + 0.5 * 0.8)  # midpoints are all alike at first
    assert ledger.sum_v == pytest.approx(SCALE**2 * 1.25 + (0.5 * 1.5) ** 2)
    assert ledger.floor_value(play) == 0.0
    raised = Kept(two_steps(constraint=saver.SubGaussian(SCALE, 0.2, 1.0)), K, stage, False)
    assert raised.floor_value(play) == pytest.approx(0.2 * 1.5)


def test_the_papers_width_and_ledgers_by_hand():
    asked = problem()
    n = float(K)
    first = math.sqrt(math.log(2 * n * (n + 1)))
    assert first_width(asked, K) == pytest.approx(first)
    counts, means = np.array([[4, 0]]), np.array([[0.8, 0.9]])
    np.testing.assert_allclose(paper_width(asked, K, counts), [[first / 2, first]])
    lower = paper_lower(asked, paper_width(asked, K, counts), counts, means)
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


def test_the_box_expects_at_least_ten_samples():
    assert Box(problem(), 4, 0.0225).rho == pytest.approx(best_rho(SCALE**2 * 10, 0.0225 / 2))
    assert Box(problem(), 400, 0.0225).rho == pytest.approx(best_rho(SCALE**2 * 200, 0.0225 / 2))


def test_a_trial_that_is_out_earns_nothing_even_if_it_must():
    """A floor above what is required: out, it counts 0 and not its gain, because it may not run."""
    stage = Stage(MDP)
    sure = problem(baseline_value=0.95, constraint=saver.SubGaussian(SCALE, 0.9, 1.0))
    ledger, play = Kept(sure, K, stage, True), stage.play(SECOND)
    ledger.ask(1, play)
    assert ledger.budget() == 0.0
    ledger.tell(1, play, observed([0], [1], np.array([0.95])))
    assert ledger.earned() == pytest.approx(0.9)  # the floor, while the boundary is larger than what was seen
    assert ledger.budget() == pytest.approx(0.9 - 0.76)


def test_gates_forgive_rounding_in_the_unit_of_the_problem():
    stage = Stage(MDP)
    play = stage.play(SECOND)
    for unit in (1e-6, 1.0, 1e6):
        asked = problem(baseline_value=0.5 * unit, constraint=saver.SubGaussian(SCALE * unit, 0.0, unit))
        for gate in ("retrospective", "prospective"):
            for off, passes in ((0.0, True), (-0.5e-12, True), (-2e-12, False)):
                ledger = Kept(asked, K, stage, True)
                ledger.book.lost = off * asked.baseline_value
                if gate == "prospective":
                    ledger.book.lost += asked.required  # as if the candidate were paid for
                assert ledger.passes(gate, play) is passes, (unit, gate, off)


def test_the_steepest_time_may_be_late():
    numbers, at, worst = (0.1, 0.05, 0.7, 0.2), (1, 2, 4, 8, 16, 32, 64, 100), set()
    for debt in (-4.0, -3.0, -2.5, -2.0, -1.5, -1.0):
        rates = [(mixture(0.5 + 0.03 * t, 0.1, 0.05) + math.sqrt(0.03 * t) + debt) / (7 + t) for t in at]
        assert steepest(0.5, 0.03, 7, debt, 100, False, numbers) == pytest.approx(max(rates), rel=1e-13)
        worst.add(at[int(np.argmax(rates))])
    assert worst & {2, 4, 8, 16, 32, 64}  # neither now nor at the end


def test_the_pace_before_the_first_episode():
    asked = two_steps(constraint=saver.SubGaussian(SCALE, 0.2, 1.0), baseline_value=0.9)
    ledger = Kept(asked, K, Stage(asked.mdp), False)
    required, floor = 0.8 * 0.9, 0.2 * 1.5
    assert (ledger.last_v, ledger.last_low) == (ledger.start, pytest.approx(floor))
    rates = [
        (stitched(ledger.start * t, ledger.start, ledger.scale, ledger.level) + math.sqrt(ledger.start * t)
         + required - floor) / t
        for t in (1, 2, 4, 8, 10)
    ]  # fmt: skip
    assert ledger.pace(0, 0, 10) == pytest.approx(required + max(rates))


def test_the_box_keeps_what_was_told_before_a_trial_was_abandoned():
    stage = Stage(MDP)
    ledger, both = Kept(problem(), K, stage, False), stage.play(np.array([[0.5, 0.5]]))
    for number in (1, 2, 3, 4):
        ledger.ask(number, both)
    ledger.tell(2, both, observed([0], [1], np.array([0.4])))
    ledger.tell(4, both, observed([0], [1], np.array([0.9])))
    ledger.abandon(3, both)
    assert ledger.seen.counts.sum() == 0
    ledger.tell(1, both, observed([0], [0], np.array([0.6])))
    assert ledger.seen.counts.tolist() == [[1, 1]]  # trials 1 and 2, and not 4
    assert ledger.seen.mean.tolist() == [[0.6, 0.4]]


def test_the_gate_counts_the_candidates_lower_value():
    """A floor of .2 leaves only .2 of the .4 to be paid for: two baseline episodes."""
    stage = Stage(MDP)
    play = stage.play(SECOND)
    for told, played in ((1, False), (2, True)):
        ledger = Kept(problem(constraint=saver.SubGaussian(SCALE, 0.2, 1.0)), K, stage, True)
        for number in range(1, told + 1):
            ledger.ask(number, None)
            ledger.tell(number, None, observed([0], [0], np.array([0.5])))
        assert ledger.passes("prospective", play) is played


def test_steps_that_cannot_happen_bring_no_noise():
    """Action 1 ends the episode at once."""
    mdp = saver.Mdp.from_edges([(0, 0, 1, 1.0)], 2, 2, 2, discount=0.5)
    stage = Stage(mdp)
    assert stage.play(np.array([[0.0, 1.0], [0.5, 0.5]])).noise == 1.0
    assert stage.play(np.array([[0.5, 0.5], [0.5, 0.5]])).noise == 1.25


def test_a_sealed_box_stays_sealed_in_plain_data():
    stage = Stage(MDP)
    both = stage.play(np.array([[0.5, 0.5]]))
    for abandoned in (False, True):
        ledger = Kept(problem(), K, stage, False)
        for number in (1, 2, 3):
            ledger.ask(number, both)
        ledger.tell(1, both, observed([0], [0], np.array([0.5])))
        if abandoned:
            ledger.abandon(2, both)
        again = ledger.again()
        assert again.sealed == ledger.sealed == (2 if abandoned else 0)
        for each in (ledger, again):
            each.tell(3, both, observed([0], [1], np.array([0.4])))
        assert again.budget() == ledger.budget()
        assert again.plain() == ledger.plain()


def test_two_ways_out_of_a_pair_are_chance():
    for chances, sure in (([1.0], True), ([0.5, 0.5], False), ([0.2, 0.3, 0.5], False)):
        edges = [(0, 0, 1 + i, p) for i, p in enumerate(chances)]
        assert Stage(saver.Mdp.from_edges(edges, 4, 1, 2)).deterministic is sure
    assert Stage(saver.Mdp(np.zeros((2, 1, 2)), 1, start=[0.5, 0.5])).deterministic is False


def test_constraints_without_noise_have_a_pace():
    ledger = Kept(problem(constraint=saver.SubGaussian(0.0)), K, Stage(MDP), True)
    assert ledger.rho > 0
    assert math.isfinite(ledger.pace(0, 0, 10))
