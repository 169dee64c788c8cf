"""A campaign against an outside world: trials in parallel, one lost, a restart in the middle.

A help desk: a ticket is answered by the old or the new assistant and, if it stays open, answered again. The
reward is a rating; the constraint is 1 for an answer without a complaint.
"""

import json

import numpy as np

import saver

OPEN = 0.4  # of the tickets stay open after the first answer
mdp = saver.Mdp.from_edges(
    [(0, action, state, chance) for action in (0, 1) for state, chance in ((1, OPEN), (2, 1 - OPEN))],
    states=3,
    actions=2,
    horizon=2,
    terminal=[2],
    state_names=["first answer", "second answer", "closed"],
    action_names=["old", "new"],
)
problem = saver.Problem(
    mdp,
    target=[[0.2, 0.8]] * 3,
    baseline=[[1.0, 0.0]] * 3,
    alpha=0.2,
    baseline_value=0.95 + OPEN * 0.9,  # known from years of the old assistant
    constraint=saver.Bounded(0, 1),
)


def answer(trial, rng):
    """What really happens: none of these numbers is known to the campaign."""
    steps = []
    for step in (0, 1):
        new = trial.act(step, state=step)
        calm = rng.random() < ((0.95, 0.8), (0.9, 0.7))[step][new]
        steps.append((step, new, rng.normal(3.5 + 0.5 * new, 1.0 + new), float(calm)))
        if rng.random() >= OPEN:
            break
    return zip(*steps, strict=True)  # states, actions, rewards, constraints


rng = np.random.default_rng(0)
campaign = saver.Campaign(problem, "saver-opt", episodes=1000, seed=1)
for turn in range(100):
    batch = [campaign.ask() for _ in range(10)]  # ten tickets are out at once
    if turn == 20:
        campaign.abandon(batch.pop())  # one is never heard of again
    if turn == 50:
        text = json.dumps(campaign.state())  # saved while trials are out ...
        campaign = saver.Campaign.restore(problem, "saver-opt", json.loads(text))  # ... and read again
    for trial in reversed(batch):  # they come back in another order
        campaign.tell(trial, *answer(trial, rng))
print(f"told {campaign.budget.episodes}, of these the baseline's {campaign.budget.baseline_episodes}")
print(f"certified budget {campaign.budget.certified:.2f}")
low, high = campaign.estimate().interval
print(f"value {campaign.estimate().value:.3f}, 95 % interval {low:.3f} to {high:.3f}")
