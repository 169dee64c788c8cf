"""How feedback is lost, delayed and reordered: made-up outcomes with known answers, and what always holds."""

import dataclasses
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from saver import (
    Campaign,
    Episode,
    Feedback,
    Gaussian,
    Mdp,
    Player,
    Problem,
    Scenario,
    SubGaussian,
    World,
    scenarios,
    simulate,
)
from saver.collect import Trial
from saver.collect.events import Abandoned, Asked, Cancelled, Told
from saver.errors import InvalidProblem
from saver.simulator import Truth, rounds
from saver.simulator.rounds import Post
from saver.simulator.truth import Account

MEANS = np.array([[0.5, 0.9, 0.1]])  # the first is the baseline's, and .4 is required
GAINS = (0.1, 0.5, -0.3)


def three_arms():
    mdp = Mdp(np.zeros((1, 3, 1)), 1)
    world = World(mdp, Gaussian(MEANS, 1.0), Gaussian(MEANS, 0.01))
    problem = Problem(
        mdp,
        np.full((1, 3), 1 / 3),
        [[1.0, 0.0, 0.0]],
        alpha=0.2,
        baseline_value=0.5,
        constraint=SubGaussian(0.1),
    )
    return Scenario("three", world, problem, 10)


THREE = three_arms()
TRUTH = Truth(THREE)


def trial(number, arm, kind="design"):
    return Trial(number, kind, TRUTH.stage.grid.policy(np.eye(3)[[arm]]), None)


class Script:
    """A player that knows what comes, and a campaign that writes down what it hears."""

    def __init__(self, outcomes):
        self.outcomes, self.problem, self.world = outcomes, THREE.problem, THREE.world
        self.heard, self.started = [], []

    def run(self, trial, start=None):
        self.started.append(trial.number)
        return Episode([0], [trial.act(0, 0)], [0.0], [self.outcomes[trial.number - 1]])

    def tell(self, trial, episode, complete):
        assert complete
        self.heard.append(trial.number)

    def abandon(self, trial, ran):
        self.heard.append(f"lost {trial.number}" if ran is None else f"ran {trial.number}")

    def cancel(self, trial, *, unseen):
        assert unseen  # these are cancelled for what came of others
        self.heard.append(f"cancelled {trial.number}")


def played(feedback, outcomes, arms, seed=0):
    """What the campaign hears of these trials, what was started, and the account."""
    script, account = Script(outcomes), Account(TRUTH)
    post = Post(feedback, script, script, account, np.random.default_rng(seed))
    for number, arm in enumerate(arms, 1):
        post.send(trial(number, arm))
    post.settle()
    return script.heard, script.started, account


OUTCOMES, ARMS = [0.3, 0.9, 0.1, 0.6, 0.2], [0, 1, 2, 1, 2]  # noise -.2, 0, 0, -.3, .1


@pytest.mark.parametrize(
    ("feedback", "heard"),
    [
        (Feedback(), [1, 2, 3, 4, 5]),
        (Feedback(out=2), [1, 2, 3, 4, 5]),
        (Feedback(out=2, back="newest"), [3, 4, 5, 2, 1]),
        (Feedback(out=2, back="best"), [2, 4, 1, 5, 3]),
        (Feedback(out=2, back="held"), [2, 1, 3, 4, 5]),
        (Feedback(out=9, back="best"), [2, 4, 1, 5, 3]),
        (Feedback(straggle=2), [3, 4, 5]),
        (Feedback(lose=1.0), ["lost 1", "lost 2", "lost 3", "lost 4", "lost 5"]),
        (Feedback(lose=1.0, ran=True, straggle=3), ["ran 4", "ran 5"]),
        (Feedback(lose=0.5, which="outcome", out=2), [1, "lost 3", 2, "lost 5", 4]),
        (Feedback(lose=0.5, which="sum", out=2), [1, "lost 4", 2, "lost 3", 5]),
        (Feedback(lose=0.4, which="outcome", out=4, back="held"), ["lost 3", "lost 5", 2, 4, 1]),
        (Feedback(lose=0.4, which="sum", out=4, back="held"), ["lost 4", "lost 1", 2, 5, 3]),
    ],
)
def test_who_comes_back_and_when(feedback, heard):
    assert played(feedback, OUTCOMES, ARMS)[0] == heard


def test_at_random_chance_decides_and_nothing_else():
    coins = np.random.default_rng(3).random(40) < 0.3
    heard = [f"lost {number}" if lost else number for number, lost in enumerate(coins, 1)]
    for outcomes in (np.zeros(40), np.linspace(1, -1, 40)):
        assert played(Feedback(lose=0.3), outcomes, [0] * 40, seed=3)[0] == heard
    orders = {tuple(played(Feedback(out=4, back="random"), np.zeros(9), [0] * 9, s)[0]) for s in range(20)}
    assert len(orders) > 15
    assert all(sorted(order) == list(range(1, 10)) for order in orders)


HALF = Feedback(cancel=0.5, out=9, back="held")  # of ten, five wait for what came of the others


@pytest.mark.parametrize(
    ("noise", "cancelled", "started"),
    [
        ([9, 9, 9, 9, 9, 0.1, 0.1, 0.1, 0.1, 0.1], [5, 4, 3, 2, 1], [6, 7, 8, 9, 10]),  # at sqrt(5)
        (
            [9, 9, 9, 9, 0.1, 0.1, 0.1, -0.5, 0.1, 0.1],
            [4, 3, 2, 1],
            [6, 7, 8, 9, 10, 5],
        ),  # sqrt(2), then sqrt(3)
        ([-0.1] * 10, [], [6, 7, 8, 9, 10, 5, 4, 3, 2, 1]),
    ],
)
def test_what_has_not_started_is_cancelled_when_the_sum_looks_high_without_it(noise, cancelled, started):
    heard, run, account = played(HALF, 0.5 + np.array(noise), [0] * 10)
    told = [n for n in range(1, 11) if n not in cancelled]
    assert heard == [*(f"cancelled {n}" for n in cancelled), *told]
    assert run == started
    assert account.episodes == account.ran == len(told)


def test_an_episode_is_cut_off_where_it_looked_best():
    asked = scenarios.tree(depth=3)
    mean, lengths = asked.world.constraint.mean, set()
    for which in ("sum", "outcome", "random"):
        campaign = Campaign(asked.problem, "saver", 40, seed=1, keep="episodes")
        feedback = Feedback(cut=1.0, which=which)
        full = [done.episode for done in rounds(campaign, Player(asked.world, 2), Truth(asked), feedback)]
        told = [event for event in campaign.events if isinstance(event, Told)]
        assert [event.complete for event in told] == [False] * 40
        for episode, part in zip(full, (event.episode for event in told), strict=True):
            np.testing.assert_array_equal(part.constraints, episode.constraints[: len(part)])
            expected = mean[episode.states, episode.actions] if which == "sum" else 0.0
            ahead = np.cumsum(episode.constraints - expected)
            if which != "random":
                assert ahead[len(part) - 1] == max(ahead[:-1])
            else:
                lengths.add(len(part))
    assert lengths == {1, 2}


# -- the account ---------------------------------------------------------------------------------------------


def test_an_account_with_trials_out_lost_and_cancelled_by_hand():
    account = Account(TRUTH)
    seen = []
    for step in (
        lambda: account.ask(trial(1, 2)),  # may have run: -.3
        lambda: account.ask(trial(2, 1)),  # may not have: nothing
        lambda: account.tell(2),  # has: .5
        lambda: account.ask(trial(3, 0, "baseline")),
        lambda: account.abandon(1, ran=False),  # as when it was out
        lambda: account.ask(trial(4, 2)),
        lambda: account.cancel(4),
        lambda: account.abandon(3, ran=True),  # .1
        lambda: account.ask(trial(5, 1)),
        lambda: account.abandon(5, ran=False),
        lambda: account.ask(trial(6, 1)),
        lambda: account.abandon(6, ran=True),
    ):
        step()
        seen.append(account.budget)
    np.testing.assert_allclose(
        seen, [-0.3, -0.3, 0.2, 0.2, 0.2, -0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.8], atol=1e-12
    )
    assert account.worst == min(seen)
    assert (account.episodes, account.baseline, account.ran) == (5, 1, 3)


def test_in_order_of_asking_what_was_asked_before_one_that_ran_has_run():
    for order, expected in (("any", [0.0, -0.3, -0.3, -0.6, -0.6]), ("asked", [0.0, -0.2, -0.2, -0.2, -0.2])):
        account, seen = Account(TRUTH, order=order), []
        account.ask(trial(1, 0))
        seen.append(account.budget)  # none, or .1
        account.ask(trial(2, 2))
        seen.append(account.budget)  # in order .1 - .3
        account.tell(2)
        seen.append(account.budget)
        account.ask(trial(3, 1))
        account.ask(trial(4, 2))
        seen.append(account.budget)  # in order none of both, or .5, or .5 - .3
        account.ask(trial(5, 1))
        seen.append(account.budget)
        np.testing.assert_allclose(seen, expected, atol=1e-12)


def least(order, states):
    """The least true budget over all sets that can have run, one by one."""
    sure = [n for n, (arm, state) in states.items() if state == "ran"]
    maybe = [n for n, (arm, state) in states.items() if state in ("out", "lost")]
    found = math.inf
    for size in range(len(maybe) + 1):
        for chosen in combinations(maybe, size):
            out = [n for n in maybe if states[n][1] == "out"]
            last = max([*sure, *(n for n in chosen if n in out)], default=0)
            if order == "asked" and any(n < last and n not in chosen for n in out):
                continue
            found = min(found, sum(GAINS[states[n][0]] for n in (*sure, *chosen)))
    return found


@given(
    st.sampled_from(["any", "asked"]),
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["ask", "ask", "tell", "ran", "lost", "cancel"])),
        max_size=14,
    ),
    st.randoms(use_true_random=False),
)
def test_the_account_is_the_least_over_every_set_that_can_have_run(order, story, rng):
    account, states, worst = Account(TRUTH, order=order), {}, math.inf
    for arm, event in story:
        out = [n for n, (_, state) in states.items() if state == "out"]
        if event == "ask":
            states[len(states) + 1] = arm, "out"
            account.ask(trial(len(states), arm))
        elif out:
            number = rng.choice(out)
            if event == "cancel":
                account.cancel(number)
            elif event == "tell":
                account.tell(number)
            else:
                account.abandon(number, ran=event == "ran")
            kept = {"tell": "ran", "cancel": "never"}.get(event, event)
            states[number] = states[number][0], kept
        else:
            continue
        worst = min(worst, least(order, states))
        assert account.budget == pytest.approx(least(order, states), abs=1e-12)
        assert account.worst == pytest.approx(worst, abs=1e-12)
    assert account.episodes == sum(state != "never" for _, state in states.values())


# -- whole campaigns -----------------------------------------------------------------------------------------

SMALL = {"bandit": scenarios.bandit(actions=4, alpha=0.5), "tree": scenarios.tree(depth=2, alpha=0.5)}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("collector", ["saver-opt", "safe-on-policy"])
def test_with_nothing_lost_or_late_all_is_as_without_feedback(name, collector):
    options = {"episodes": 60, "runs": 2, "seed": 5, "engine": "reference"}
    plain = simulate(SMALL[name], collector, **options)
    found = simulate(SMALL[name], collector, **options, feedback=Feedback())
    for column in ("estimates", "stderr", "below", "above", "ledger", "baseline_share", "conditional_mse"):
        np.testing.assert_array_equal(getattr(plain, column), getattr(found, column))
    np.testing.assert_allclose(plain.budget, found.budget, atol=1e-12)
    np.testing.assert_allclose(np.minimum(plain.worst_budget, 0.0), found.worst_budget, atol=1e-12)


RULES = st.builds(
    Feedback,
    lose=st.sampled_from([0.0, 0.1, 0.4]),
    which=st.sampled_from(["random", "outcome", "sum"]),
    out=st.integers(1, 12),
    back=st.sampled_from(["asked", "random", "best", "newest", "held"]),
    ran=st.sampled_from([None, True]),
    straggle=st.integers(0, 3),
    cut=st.sampled_from([0.0, 0.3]),
)


@given(
    RULES.flatmap(
        lambda rules: st.builds(
            lambda share: dataclasses.replace(rules, cancel=share if rules.back == "held" else 0.0),
            st.sampled_from([0.0, 0.7]),
        )
    ),
    st.sampled_from(sorted(SMALL)),
    st.integers(0, 50),
)
def test_every_trial_is_settled_once_but_the_stragglers(rules, name, seed):
    asked, episodes = SMALL[name], 40
    campaign = Campaign(asked.problem, "saver", episodes, seed=seed, keep="episodes")
    player, truth, outs = Player(asked.world, seed), Truth(asked), []
    for done in rounds(campaign, player, truth, rules, seed):
        outs.append(len(campaign.outstanding))
        account = done.account
    numbers = {
        kind: [event.number for event in campaign.events if isinstance(event, kind)]
        for kind in (Asked, Told, Abandoned, Cancelled)
    }
    settled = [*numbers[Told], *numbers[Abandoned], *numbers[Cancelled]]
    stragglers = list(range(1, rules.straggle + 1))
    assert [trial.number for trial in campaign.outstanding] == stragglers
    assert sorted([*settled, *stragglers]) == numbers[Asked]
    assert account.episodes == len(numbers[Asked]) - len(numbers[Cancelled]) == episodes
    assert max(outs) <= rules.out + rules.straggle
    if rules.which != "random":
        assert len(numbers[Abandoned]) == int(rules.lose * (len(settled) - len(numbers[Cancelled])) + 1e-9)
    assert all(event.ran is (rules.ran is True) for event in campaign.events if isinstance(event, Abandoned))


def test_where_trials_were_cancelled_others_are_asked_and_checkpoints_are_kept():
    asked = SMALL["bandit"]
    found = simulate(asked, "saver", episodes=60, runs=3, feedback=HALF, checkpoints=[1, 30])
    assert found.checkpoints.tolist() == [1, 30, 60]
    assert np.all(np.isfinite(found.budget))
    campaign = Campaign(asked.problem, "saver", 60, keep="episodes")
    *_, last = rounds(campaign, Player(asked.world, 1), Truth(asked), HALF)
    cancelled = sum(isinstance(event, Cancelled) for event in campaign.events)
    assert cancelled > 0
    assert last.trial.number == 60 + cancelled


def test_what_is_declared_reaches_the_campaign():
    """A hundred out: what may have run in any order costs more than what started in order."""
    asked, late = scenarios.bandit(), Feedback(out=100)
    share = {
        order: simulate(asked, "saver-opt", episodes=300, runs=3, feedback=late, order=order).baseline_share[
            :, -1
        ]
        for order in ("any", "asked")
    }
    assert np.all(share["asked"] < share["any"])
    lost = Feedback(lose=0.3, ran=True)
    ledger = {
        losses: simulate(
            asked, "saver-opt", episodes=300, runs=3, feedback=lost, losses=losses
        ).conditional_mse
        for losses in ("hostile", "random")
    }
    assert np.all(ledger["random"][:, -1] < ledger["hostile"][:, -1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lose": 1.5}, r"lose is 1.5; it must be in \[0, 1\]"),
        ({"lose": "some"}, "lose is 'some'; it must be a number"),
        ({"cut": -0.1}, r"cut is -0.1; it must be in \[0, 1\]"),
        ({"cancel": 1.0, "back": "held", "out": 2}, r"cancel is 1; it must be in \[0, 1\)"),
        ({"which": "worst"}, "which is 'worst'; it must be one of random, outcome, sum"),
        ({"back": "never"}, "back is 'never'; it must be one of asked, random, best, newest, held"),
        ({"out": -1}, "out is -1; it must be at least 0"),
        ({"straggle": 0.5}, "straggle is 0.5; it must be a whole number"),
        ({"ran": False}, "ran is False; it must be True, or None where nobody knows"),
        ({"lose": 0.1, "which": "sum"}, "out is 0, which 'sum' .* give out at least 1"),
        ({"back": "best"}, "out is 0, .* back 'best'; .* give out at least 1"),
        ({"cancel": 0.1, "out": 3}, "cancel is 0.1 and back is 'asked'; .* give back=\"held\""),
    ],
)
def test_rules_that_cannot_be_are_refused(options, message):
    with pytest.raises(InvalidProblem, match=message):
        Feedback(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feedback": "late"}, "feedback is str; it must be a saver.Feedback"),
        ({"feedback": Feedback(), "engine": "compiled"}, "engine is 'compiled', .* leave engine out"),
        ({"losses": "random", "engine": "compiled"}, "losses 'random' .* leave engine out"),
        ({"losses": "none"}, "losses is 'none'; it must be one of hostile, random"),
        ({"order": "told"}, "order is 'told'; it must be one of any, asked"),
        ({"feedback": HALF, "order": "asked"}, "cancel=0.5.* give order='any'"),
    ],
)
def test_simulations_that_cannot_be_are_refused(options, message):
    with pytest.raises(InvalidProblem, match=message):
        simulate(THREE, "saver", episodes=5, runs=1, **options)
