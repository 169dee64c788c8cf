"""Transitions unknown: asks, tells and losses in any order, and the bound recomputed from the whole story."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from kept import Kept, observed
from slowly import SlowReturns

from saver import Bounded, Guardrail, Problem, SubGaussian, Unknown
from saver.play import stage_of
from saver.safety.modelfree import LearnedModelFree, ModelFree

EPISODES = 24
PROMISES = [
    SubGaussian(0.2),
    SubGaussian(0.0),
    SubGaussian(0.3, -1.0, 0.5),
    SubGaussian(0.1, 0.2, 0.9, next_state=True),
    Bounded(0.0, 1.0),
    Bounded(-1.5, -0.5),
    Bounded(-0.5, 1.5),
]


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def rows(rng, *shape):
    """Often one action for sure."""
    some = rng.random(shape) * (rng.random(shape) < 0.6)
    some[..., 0] += some.sum(axis=-1) == 0
    return some / some.sum(axis=-1, keepdims=True)


def random_problem(rng, promise, learned, delta=None):
    mdp = Unknown(3, 2, 3, discount=float(rng.choice([0.3, 1.0])), start=rng.choice([None, 1]))
    longest = sum(mdp.discount**t for t in range(3))
    least, most = promise.of_episode(1.0, longest)
    way, given = str(rng.choice(["allowance", "at_least"])), None
    if not learned:
        given = float(least + (most - least) * rng.uniform(0.4, 0.9))
        given = (given, given + 0.1 * (most - least)) if rng.random() < 0.5 else given
    value = rng.uniform(0.05, 0.9) * (most - least)
    value = least + 0.3 * value if way == "at_least" else value
    guard = Guardrail("kept", promise, **{way: value}, baseline_value=given)
    baseline, delta = rows(rng, 3, 2), delta or float(rng.choice([0.02, 0.2]))
    return Problem(mdp, mdp.uniform, baseline, guardrails=guard, delta=delta)


def earned(rng, mdp, promise, table, mean):
    """An episode: nobody knows its moves, so anything goes."""
    states = rng.integers(0, mdp.states, int(rng.integers(1, mdp.horizon + 1)))
    if mdp.start is not None:
        states[0] = int(np.flatnonzero(mdp.start)[0])
    full = np.broadcast_to(table, (mdp.horizon, mdp.states, mdp.actions))
    actions = [int(rng.choice(mdp.actions, p=full[t, s])) for t, s in enumerate(states)]
    seen = mean[states, actions]
    if isinstance(promise, Bounded):
        share = (seen - promise.low) / (promise.high - promise.low)
        seen = np.where(rng.random() < share, promise.high, promise.low)  # all steps share one draw
    else:
        seen = seen + promise.scale * rng.normal(size=len(states))
    return observed(states, actions, seen)


def story(seed, promise, learned):
    """After each event the ledger and its double."""
    rng = np.random.default_rng(seed)
    asked = random_problem(rng, promise, learned)
    mdp, stage = asked.mdp, stage_of(asked.mdp)
    mean = rng.uniform(promise.floor, promise.ceiling, (mdp.states, mdp.actions))
    losses, order = str(rng.choice(["hostile", "hostile", "random"])), str(rng.choice(["any", "asked"]))
    past = [earned(rng, mdp, promise, asked.baseline, mean) for _ in range(int(rng.integers(0, 4)) * learned)]
    kept = Kept(
        asked, EPISODES, stage, LearnedModelFree if learned else ModelFree, losses=losses, order=order
    )
    if past:
        kept.learn(past)
    slow = SlowReturns(asked, EPISODES, losses, order, past)
    out, number = {}, 0
    patience, loss = rng.choice([0.2, 0.6]), rng.choice([0.0, 0.15, 0.5])
    for _ in range(2 * EPISODES):
        if number < EPISODES and (not out or rng.random() < 0.5):
            number += 1
            kind = rng.choice(["baseline", "alike", "designed", "by step"])
            shape = (mdp.horizon,) * (kind == "by step") + (mdp.states, mdp.actions)
            out[number] = asked.baseline if kind in ("baseline", "alike") else rows(rng, *shape)
            if rng.random() < 0.5:  # anything may be believed
                slow.believed[number] = float(rng.normal(1.0, 2.0))
            play = None if kind == "baseline" else stage.play(out[number])
            kept.ask(number, play, slow.believed.get(number))
            slow.ask(number, out[number], baseline=kind == "baseline")
        elif out and rng.random() > patience:
            some = int(rng.choice(list(out)))
            table = out.pop(some)
            happens = (
                "told"
                if rng.random() >= loss
                else str(rng.choice(["lost", "ran", "cancelled", "vetoed", "cut"]))
            )
            if happens in ("cancelled", "vetoed") and order == "asked" and some < number:
                happens = "lost"
            episode = earned(rng, mdp, promise, table, mean)
            for each, play in ((kept, (stage.play(table).light,)), (slow, ())):
                if happens in ("told", "cut"):
                    each.tell(some, *play, episode, happens == "told")
                elif happens in ("cancelled", "vetoed"):
                    each.cancel(some, happens == "cancelled")
                else:
                    each.abandon(some, ran=happens == "ran")
        yield kept, slow


def agree(kept, slow, learned):
    """The parts of the budget, also where another one is the larger."""
    trials = slow.replay()[0]
    groups, ledger = slow._groups(trials), kept.ledger
    assert ledger.seen_worth(kept.first) == near(slow.along_the_way(groups[0]))
    if len(groups) > 1:
        assert ledger.seen_worth(kept.every, kept.away(kept.book)) == near(slow.along_the_way(groups[1]))
    if learned and slow.safe(groups[0])[0]:
        assert ledger.values(kept.book) == (near(slow.low), near(slow.high))
        assert ledger.means_seen(kept.first.safe) == tuple(near(end) for end in slow.means_seen(groups[0]))
        if not slow.bounded:
            ran = [t for t in trials.values() if t.status == "told" or t.ran]
            assert ledger.joint(kept.book, 0.0, 0, 0) == near(slow.joint(groups[0], ran))


@settings(max_examples=25)
@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("learned", [False, True])
@given(seed=st.integers(0, 10_000))
def test_any_order_of_asking_telling_and_losing(promise, learned, seed):
    for moment, (kept, slow) in enumerate(story(seed, promise, learned), 1):
        if moment % 12 == 0:
            assert kept.budget() == near(slow.budget())
            assert kept.earned() == near(slow.replay()[1])
            agree(kept, slow, learned)
    assert kept.again().budget() == kept.budget()


@settings(max_examples=15)
@pytest.mark.parametrize("promise", PROMISES, ids=str)
@given(seed=st.integers(0, 10_000))
def test_only_asking_costs(promise, seed):
    """The gate looks when a trial is asked: nothing that comes of it later may lower the budget."""
    before, events = 0.0, 0
    for kept, slow in story(seed, promise, False):
        if len(slow.story) > events and slow.story[-1][0] != "ask":
            assert kept.budget() >= before - 1e-9
        before, events = kept.budget(), len(slow.story)
