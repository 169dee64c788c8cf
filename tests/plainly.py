"""Small campaigns and diagnoses, with a compiler and without: `python tests/plainly.py compiled`, or `plain`.

They print what was decided, to the bit, and which functions ran compiled.
"""

import gc
import json
import sys

import numpy as np
from golden import known_to
from models import random_maze, random_policy
from worlds import CELLS, ONE_KNOWN, WORLDS

import saver
from saver._jit import Compiled, hurry

EPISODES, OUT = 24, 3
Bernoulli, Bounded, Gaussian = saver.Bernoulli, saver.Bounded, saver.Gaussian


def told(scenario, collector, *, history=None, **declared):
    """All that a campaign decided and believed, and what it answers."""
    recipe = saver.COLLECTORS[collector]
    known = known_to(scenario, recipe)
    campaign = saver.Campaign(
        scenario.problem, recipe, EPISODES, seed=1, knowledge=known, history=history, **declared
    )
    player, found = saver.Player(scenario.world, seed=2), []
    for i in range(0, EPISODES, OUT):
        trials = [campaign.ask() for _ in range(OUT)]
        for j, trial in enumerate(trials):
            episode = player.run(trial)
            found.append([trial.kind, *(int(a) for a in episode.actions)])
            if (i + j) % 7 == 5:
                campaign.abandon(trial)
            else:
                campaign.tell(trial, episode)
        found.append([float(campaign.believed).hex(), repr(campaign.budget)])
    again = saver.Campaign.restore(scenario.problem, recipe, campaign.state())
    return [*found, campaign.state(), repr(again.estimate()), repr(campaign.estimate(anytime=True))]


def maze(seed, promise):
    """A world with coins for a guardrail, a discount, and a policy in every state."""
    rng, mdp = np.random.default_rng(seed), random_maze(seed)
    baseline, target = (random_policy(rng, mdp.states, mdp.actions) * mdp.available for _ in range(2))
    baseline, target = (p / p.sum(axis=1, keepdims=True) for p in (baseline, target))
    chance = 0.5 + 0.5 * rng.random((mdp.states, mdp.actions))
    world = saver.World(mdp, Gaussian(chance, np.full_like(chance, 0.2)), Bernoulli(chance))
    problem = saver.Problem(
        mdp, target, baseline, baseline_value=world.constraint_value(baseline), alpha=0.2, constraint=promise,
        reward=saver.SubGaussian(0.5),
    )  # fmt: skip
    return saver.Scenario("maze", world, problem, EPISODES)


def cells():
    """Names, and what makes each."""
    for collector, world in CELLS:
        if world in ONE_KNOWN:
            yield f"{collector} {world}", lambda c=collector, w=world: told(WORLDS[w], c)
    yield "losses at random", lambda: told(WORLDS["bandit"], "saver-opt", losses="random")
    for seed, promise in enumerate((saver.SubGaussian(0.5), Bounded(0.0, 1.0))):
        for collector in ("saver-opt", "saver"):
            yield f"{collector} maze {promise}", lambda c=collector, s=seed, p=promise: told(maze(s, p), c)
    for world in ONE_KNOWN:
        yield f"diagnose {world}", lambda w=world: saver.diagnose(WORLDS[w]).report(80)


if __name__ == "__main__":
    if sys.argv[1] == "compiled":
        hurry()
    made = {name: make() for name, make in cells()}
    ran = {one.py_func.__name__ for one in gc.get_objects() if isinstance(one, Compiled) and one.overloads}
    print(json.dumps({"compiled": sorted(ran), "made": made}))
