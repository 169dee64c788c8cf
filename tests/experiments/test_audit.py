"""The audit counts rightly, judges rightly, and would see a broken promise."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import saver
from saver.cli.main import _run
from saver.theory.believed import remarks
from saver_audit import CELLS, cells, count, judge, judged, losses, summary
from saver_audit.worlds import DELTAS, LAWS, SHAPES, random_world

pytestmark = pytest.mark.slow

SIZES = dict.fromkeys(("bandit", "movielens", "tree", "gridworld", "intractable"), 3)
TINY = count.Size(
    {"bandit": 2, "tree": 1, "graph": 1},
    {"bandit": 5, "tree": 3, "graph": 3},
    {"bandit": 3, "tree": 2, "graph": 2},
    SIZES,
    {"one way": 3, "random": 2, "outcome": 1},
    1,
)


def row(group, collector, delta, runs, violations, **other):
    given = {"bounded": 0, "covered": 0, "watched": 0, "ever": 0, "estimate": "certainty"}
    given |= {"bias": math.nan, "bias_se": math.nan, "baseline_share": 0.5}
    cells = {"group": group, "collector": collector, "delta": delta, "runs": runs, "violations": violations}
    return {**cells, **given, **other}


def test_the_exact_binomial_by_hand():
    # P(Bin(3, .5) >= 2) = 4/8; P(Bin(10, .05) >= 1) = 1 - .95^10
    assert judge.tail(3, 2, 0.5) == pytest.approx(0.5)
    assert judge.tail(10, 1, 0.05) == pytest.approx(1 - 0.95**10)
    assert judge.tail(10, 0, 0.05) == 1.0
    # no violation in n: (1 - p)^n = .05 at the upper bound
    assert judge.upper_bound(60, 0) == pytest.approx(1 - 0.05 ** (1 / 60))
    assert judge.upper_bound(5, 5) == 1.0


def test_a_group_is_broken_only_beyond_chance():
    rows = [
        row("a", "saver", 0.05, 100, 5),
        row("a", "saver", 0.05, 100, 6),
        row("b", "saver", 0.05, 200, 40),
    ]
    fine, bad = judged(rows)
    assert (fine.worlds, fine.runs, fine.violations, fine.broken) == (2, 200, 11, False)
    assert bad.violates
    assert bad.broken
    assert bad.chance == pytest.approx(judge.tail(200, 40, 0.05))
    assert "1 groups break their promise beyond chance" in summary([fine, bad])
    assert "No group breaks" in summary([fine])


def test_coverage_and_bias_are_put_together():
    rows = [
        row("a", "saver", 0.05, 10, 0, bounded=8, covered=7, bias=0.3, bias_se=0.1),
        row("a", "saver", 0.05, 30, 0, bounded=30, covered=29, bias=-0.4, bias_se=0.1, baseline_share=0.1),
    ]
    (found,) = judged(rows)
    assert found.covered == pytest.approx(36 / 38)
    assert found.bias == pytest.approx(math.sqrt((9 + 16) / 2))
    assert found.baseline == pytest.approx((0.5 * 10 + 0.1 * 30) / 40)


def test_intervals_are_judged_beside_the_promise_by_hand():
    """All judgements share .001: here 2, so each has .0005, until a third makes it .00033."""
    # none of 3 holds: .06^3 = .000216; 3 of 4 were ever wrong: 4 * .05^3 * .95 + .05^4 = .000481
    once = row("once", "saver", 0.05, 3, 0, bounded=3, covered=0)
    ever = row("ever", "saver", 0.05, 4, 0, watched=4, ever=3)
    (found,) = judged([once])
    assert (found.misses, found.ever_misses, found.violates, found.broken) == (True, False, False, True)
    (found,) = judged([ever])
    assert (found.misses, found.ever_misses, found.violates, found.broken) == (False, True, False, True)
    assert (found.ever, found.watched) == (3, 4)
    other = row("other", "saver", 0.05, 4, 0)
    assert [group.broken for group in judged([ever, other])] == [False, False]
    assert [group.broken for group in judged([once, other])] == [True, False]
    two = row("other", "saver", 0.05, 4, 0, bounded=9, covered=9, watched=9)
    assert [group.broken for group in judged([once, two])] == [False, False]


def test_importance_weights_are_judged_at_all_times_only():
    weighted = {"estimate": "importance", "bounded": 100, "covered": 50}
    (fine,) = judged([row("a", "sepec", 0.05, 100, 0, watched=100, ever=10, **weighted)])
    assert (fine.covered, fine.misses, fine.ever_misses, fine.broken) == (0.5, False, False, False)
    (bad,) = judged([row("a", "sepec", 0.05, 100, 0, watched=100, ever=20, **weighted)])
    assert (bad.misses, bad.ever_misses, bad.broken) == (False, True, True)


def test_the_words_say_what_chance_does_not_explain():
    (group,) = judged([row("a", "saver", 0.05, 100, 40, bounded=100, covered=90, watched=100, ever=20)])
    shown = dict(zip(CELLS, cells(group), strict=True))
    assert shown["verdict"] == "BROKEN, MISSES at all times"
    assert (shown["covered"], shown["ever wrong"]) == ("0.900 of 100", "20 of 100")
    (group,) = judged([row("a", "saver", 0.05, 100, 0, bounded=100, covered=80)])
    shown = dict(zip(CELLS, cells(group), strict=True))
    assert (shown["verdict"], shown["ever wrong"]) == ("MISSES at one time", "-")
    assert "No group breaks its promise beyond chance. 1 groups miss with their intervals" in summary([group])
    (group,) = judged([row("a", "saver", 0.05, 100, 0, watched=100, ever=4)])
    assert cells(group)[-1] == "kept"
    assert "Of 100 intervals at all times 4 were ever wrong, 4.0%." in summary([group])
    assert "No group misses" in summary([group])


@pytest.mark.parametrize("shape", SHAPES)
def test_random_worlds_are_made_from_their_number_and_keep_their_promises(shape):
    seen, declared, poor = set(), set(), set()
    for number in range(30):
        made, again = random_world(shape, number), random_world(shape, number)
        assert made.problem.alpha == again.problem.alpha
        np.testing.assert_array_equal(made.world.constraint.mean, again.world.constraint.mean)
        assert made.problem.mdp.states <= 30
        assert 0.01 <= made.problem.alpha <= 0.9
        assert 200 <= made.episodes <= 2000
        notes = [note for note in remarks(made) if "promise is" in note or "void" in note]
        assert notes == []
        assert isinstance(made.problem.reward, saver.Bounded if number % 7 == 6 else saver.SubGaussian)
        promise, means = made.problem.constraint, np.array(made.world.constraint.mean)
        seen.add((LAWS[number % len(LAWS)], made.problem.delta))
        declared.add((type(promise).__name__, promise.next_state))
        if LAWS[number % len(LAWS)] == "extremes":
            assert set(means.ravel()) <= {0.001, 0.01, 0.99, 0.999}
            assert promise.bounds == (0.0, 1.0)
        best = means[0, made.problem.baseline[0].argmax()] == means[0].max()
        poor.add((bool(best), made.problem.delta))
    assert seen == {(law, delta) for law in LAWS for delta in DELTAS}
    kinds = {"SubGaussian", "Bounded"}
    assert declared == {(kind, next_state) for kind in kinds for next_state in {False, shape == "graph"}}
    assert poor == {(best, delta) for best in (False, True) for delta in DELTAS}


def test_the_command_counts_every_collector_and_ends_with_0(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(count.AUDITS, "quick", TINY)
    assert _run(["audit", "--out", str(tmp_path / "a"), "--jobs", "1", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)
    counted = {group["collector"] for group in groups}
    assert counted == {*count.VARIANTS, *(n for n, recipe in saver.COLLECTORS.items() if recipe.promises)}
    assert all(recipe.promises for recipe in count.VARIANTS.values())
    assert {group["group"].split(":")[0] for group in groups} == {
        "scenarios", "random bandit", "random tree", "random graph", "hostile", *losses.MANNERS,
    }  # fmt: skip
    assert _run(["audit", "--out", str(tmp_path / "b"), "--jobs", "2"]) == 0
    assert (tmp_path / "a" / "audit.csv").read_bytes() == (tmp_path / "b" / "audit.csv").read_bytes()
    assert "No group breaks its promise" in (tmp_path / "b" / "audit.md").read_text(encoding="utf-8")


def test_a_collector_that_breaks_its_promise_is_seen(tmp_path, monkeypatch, capsys):
    """`revar` spends without looking; audited as if it promised, the command ends with 1."""
    monkeypatch.setitem(count.AUDITS, "quick", replace(TINY, worlds={"bandit": 2, "tree": 0, "graph": 0}))
    monkeypatch.setattr(count, "CASES", count.CASES[:1])
    monkeypatch.setattr(count, "PROMISING", ("revar",))
    assert _run(["audit", "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "BROKEN" in shown
    assert "break their promise beyond chance" in shown


# 2,000 campaigns a cell: the coverage has a standard error of .005, and .02 is four.
@pytest.mark.parametrize("name", ["bandit", "movielens", "intractable", "tree"])
@pytest.mark.parametrize("collector", ["saver", "safe-oracle"])
def test_intervals_cover(name, collector):
    found = saver.simulate(
        saver.SCENARIOS[name](), collector, episodes=1000, runs=2000, checkpoints=[], seed=2
    )
    assert np.all(np.isfinite(found.stderr))
    assert found.coverage()[-1] == pytest.approx(0.95, abs=0.02)
    assert found.coverage(0.5)[-1] == pytest.approx(0.5, abs=0.05)


def test_intervals_of_runs_are_those_of_the_campaign():
    made = saver.SCENARIOS["tree"](depth=2)
    found = saver.simulate(made, "saver", episodes=80, runs=1, seed=4, engine="reference")
    campaign = saver.Campaign(made.problem, "saver", 80, seed=saver.problem.checks.child_seed(4, 0))
    player = saver.Player(made.world, saver.problem.checks.child_seed(4, 0, 1))
    for _ in range(80):
        trial = campaign.ask()
        campaign.tell(trial, *player.run(trial))
    low, high = found.interval(0.9)
    assert campaign.estimate(level=0.9).interval == pytest.approx((low[0, -1], high[0, -1]))
    assert found.freedom[0, -1] == pytest.approx(campaign.estimate().freedom)
    with pytest.raises(saver.errors.InvalidProblem, match="level"):
        found.interval(1.0)
