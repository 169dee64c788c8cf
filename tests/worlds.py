"""Small worlds, and every collector that can run in each."""

from __future__ import annotations

from saver import COLLECTORS, scenarios
from saver.collect.frequencies import DESIGNS

WORLDS = {
    "bandit": scenarios.bandit(actions=4, noisy_variance=1.0),
    "tree": scenarios.tree(depth=2, noisy_variance=1.0),
    "gridworld": scenarios.gridworld(size=2, horizon=3, noisy_variance=1.0),
    "shop": scenarios.shop(learned=True),
    "contexts": scenarios.contexts(contexts=3),
    "unknown-gridworld": scenarios.unknown_gridworld(size=2, horizon=3),
}
UNKNOWN = ("contexts", "unknown-gridworld")
ONE_KNOWN = ("bandit", "tree", "gridworld")  # worlds with one guardrail and a known baseline value


def runs_in(name: str, world: str, bandits: tuple[str, ...] = ("bandit",)) -> bool:
    """Whether a collector can run in a world."""
    collector = COLLECTORS[name]
    if world in UNKNOWN:
        return collector.design in DESIGNS and collector.estimate != "importance"
    return collector.design != "sepec" or world in bandits


CELLS = [(name, world) for name in COLLECTORS for world in WORLDS if runs_in(name, world)]
