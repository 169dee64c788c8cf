"""Small worlds, and every collector that can run in each."""

from __future__ import annotations

from saver import COLLECTORS, scenarios

WORLDS = {
    "bandit": scenarios.bandit(actions=4, noisy_variance=1.0),
    "tree": scenarios.tree(depth=2, noisy_variance=1.0),
    "gridworld": scenarios.gridworld(size=2, horizon=3, noisy_variance=1.0),
    "shop": scenarios.shop(learned=True),
}
ONE_KNOWN = ("bandit", "tree", "gridworld")  # worlds with one guardrail and a known baseline value
CELLS = [
    (name, world)
    for name, collector in COLLECTORS.items()
    for world in WORLDS
    if collector.design != "sepec" or world == "bandit"
]
