"""Logged episodes as sums: what they hold, that they say the same as the episodes, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from saver import (
    END,
    Bounded,
    Campaign,
    Episode,
    Guardrail,
    History,
    Player,
    Problem,
    Unknown,
    load,
    save,
    scenarios,
)  # fmt: skip
from saver.errors import InvalidData

MDP = Unknown(2, 2, 2, discount=0.5)
BASELINE = np.array([[1.0, 0.0], [0.5, 0.5]])
CALLS = Guardrail("calls", Bounded(0.0, 2.0), allowance=1.0, cost=True)
PROBLEM = Problem(MDP, np.full((2, 2), 0.5), BASELINE, guardrails=[CALLS])
LOGS = [
    Episode([0, 1], [0, 1], [1.0, 3.0], {"calls": [1.0, 2.0]}, final_state=0),
    Episode([1], [0], [2.0], {"calls": [0.5]}),
]


def test_sums_by_hand():
    """A cost is negated: the episodes earn -(1 + 2/2) = -2 and -.5, of -3 to 0 that one can."""
    found = History.of(PROBLEM, LOGS)
    sums, calls = found.sums, found.rails["calls"]
    assert found.episodes == 2
    assert sums.starts.tolist() == [1.0, 1.0]
    assert dict(sums.moves) == {(0, 1): 1, (3, 0): 1}
    assert sums.ends.tolist() == [0.0, 0.0, 1.0, 0.0]
    assert dict(sums.paid) == {(0, 1): 1.0, (3, 0): 3.0, (2, END): 2.0}
    assert (calls.count, calls.gained) == (2, -2.5)
    assert (calls.noise, calls.length) == (1.0 + 0.25 + 1.0, 2.5)
    assert calls.realised.tolist() == [[1.0, 0.0], [1.0, 0.5]]
    assert calls.seen.mean.tolist() == [[-1.0, 0.0], [-0.5, -2.0]]
    first, second = 1 / 3, 5 / 6  # in [0, 1]
    assert calls.squares == pytest.approx((first - 0.5) ** 2 + (second - (0.5 + first) / 2) ** 2)


@pytest.mark.parametrize(
    "asked",
    [
        scenarios.contexts(),
        scenarios.unknown_gridworld(),
        scenarios.shop(learned=True),
        scenarios.gridworld(),
    ],
    ids=lambda asked: asked.name,
)
def test_sums_say_what_episodes_say_in_campaigns_and_files(asked, tmp_path):
    problem = asked.problem
    player, old = Player(asked.world, 3), Campaign(problem, "baseline", 30)
    logs = [player.run(old.ask()) for _ in range(30)]
    carried = replace(problem, history=History.of(problem, logs))
    save(carried, tmp_path / "problem.json")
    campaigns = [
        Campaign(problem, "saver-opt", 40, history=logs, seed=1),
        Campaign(problem, "saver-opt", 40, history=carried.history, seed=1),
        Campaign(carried, "saver-opt", 40, seed=1),
        Campaign(load(tmp_path / "problem.json"), "saver-opt", 40, seed=1),
    ]
    for campaign in campaigns:
        player = Player(asked.world, 4)
        for _ in range(40):
            trial = campaign.ask()
            campaign.tell(trial, player.run(trial))
    first = campaigns[0]
    for other in campaigns[1:]:
        assert other.estimate() == first.estimate()
        assert other.budget == first.budget
    assert first.counts.sum() > 40  # the logs are in the estimate


def test_two_halves_are_the_whole():
    both, first, second = (History.of(PROBLEM, logs).sums for logs in (LOGS, LOGS[:1], LOGS[1:]))
    first.merge(second)
    assert first.moves == both.moves
    assert first.paid == both.paid
    assert first.ends.tolist() == both.ends.tolist()
    assert first.rewards.mean.tolist() == both.rewards.mean.tolist()


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (([0], [0], [1.0]), r"history\[1\] is a tuple; it must be a saver.Episode"),
        (
            Episode([0], [1], [1.0], {"calls": [1.0]}),
            r"history\[1\]: action 1 in state 0 at step 0 has probability 0",
        ),
        (
            Episode([0], [0], [1.0], {"calls": [3.0]}),
            r"history\[1\]: constraints\['calls'\]\[0\] is 3, outside",
        ),
        (Episode([0], [0], [1.0], {"calls": None}), r"history\[1\]: constraints\['calls'\] is None"),
        (Episode([0], [0], [1.0]), r"history\[1\]: the episode has no constraints"),
    ],
)
def test_refuses_what_the_baseline_cannot_have_done(episode, message):
    with pytest.raises(InvalidData, match=message):
        History.of(PROBLEM, [LOGS[0], episode])


def test_refuses_the_history_of_another_problem():
    other = Problem(
        Unknown(3, 2, 2),
        np.full((3, 2), 0.5),
        np.full((3, 2), 0.5),
        guardrails=[replace(CALLS, name="waits")],
    )
    with pytest.raises(
        InvalidData, match=r"history has \(states, actions\) = \(2, 2\) and guards calls; the problem"
    ):
        Campaign(other, "on-policy", 10, history=History.of(PROBLEM, LOGS))
    carried = replace(PROBLEM, history=History.of(PROBLEM, LOGS))
    cheaper = replace(CALLS, promise=Bounded(0.0, 3.0))
    for change in (
        {"baseline": BASELINE[::-1]},
        {"mdp": Unknown(2, 2, 3, discount=0.5)},
        {"mdp": replace(PROBLEM.mdp, start=1)},  # other episodes than those that were logged
        {"mdp": replace(PROBLEM.mdp, state_names=("home", "list"))},
        {"guardrails": [cheaper]},
    ):
        with pytest.raises(InvalidData, match=r"another model \(its start, steps, discount or names\), base"):
            replace(carried, **change)
    with pytest.raises(InvalidData, match="history is 7; it must hold episodes"):
        History.of(PROBLEM, 7)
