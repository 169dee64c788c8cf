"""Numbers that equal seeds must go on giving, for every scenario with every collector.

`python tests/golden.py` (make golden) writes them anew and says which rows changed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from worlds import runs_in

from saver import COLLECTORS, SCENARIOS, Campaign, Collector, Knowledge, Player, simulate

FILE = Path(__file__).parent / "data" / "golden.json"
FIELDS = ("estimates", "budget", "ledger", "baseline_share", "conditional_mse")
INTERVAL = ("stderr", "freedom")  # hashed apart: an interval may change where nothing else does
DIGITS = 9
SMALLER = {"taxi": {"horizon": 20}}
EPISODES = {"lake": (100, 30), "taxi": (20, 12)}  # of campaigns simulated, and asked
NEVER = ("saver-paper", "on-policy", "uniform", "baseline")  # collectors whose rows never change but there
OUT = 7  # trials at once


def rows():
    """The names of all rows."""
    cells = [
        (scenario, collector)
        for scenario in SCENARIOS
        for collector in COLLECTORS
        if runs_in(collector, scenario, ("bandit", "movielens", "intractable"))
    ]
    return [f"{kind} {s} {c}" for s, c in cells for kind in ("simulate", "ask")]


def measure(row):
    """One row: a few numbers to read, and a hash of all."""
    kind, scenario, collector = row.split()
    made, episodes = SCENARIOS[scenario](**SMALLER.get(scenario, {})), EPISODES.get(scenario, (300, 80))
    return (
        _simulated(made, collector, episodes[0])
        if kind == "simulate"
        else _asked(made, collector, episodes[1])
    )


def _simulated(scenario, collector, episodes):
    found = simulate(scenario, collector, episodes=episodes, runs=2, seed=7, checkpoints=[20, episodes // 2])
    values = np.concatenate([*(getattr(found, name).ravel() for name in FIELDS), found.worst_budget])
    read = {name: _short(getattr(found, name)[0, -1]) for name in ("estimates", "budget", "baseline_share")}
    interval = np.concatenate([getattr(found, name).ravel() for name in INTERVAL])
    return {**read, "hash": digest(values), "interval": digest(interval)}


def _asked(scenario, collector: str, episodes: int):
    """Seven trials out at once, told in an order drawn at random; every ninth is abandoned."""
    recipe, rng = COLLECTORS[collector], np.random.default_rng(3)
    campaign = Campaign(scenario.problem, recipe, episodes, knowledge=known_to(scenario, recipe), seed=5)
    player, waiting, values = Player(scenario.world, 11), [], []
    for _ in range(episodes):
        trial = campaign.ask()
        waiting.append((trial, player.run(trial)))
        values += [
            ("explore", "design", "baseline", "earn").index(trial.kind),
            *map(float, list(waiting[-1][1])[1]),
        ]
        if len(waiting) == OUT:
            told, episode = waiting.pop(int(rng.integers(OUT)))
            if told.number % 9 == 0:
                campaign.abandon(told)
            else:
                campaign.tell(told, *episode)
        values += [campaign.believed, campaign.budget.plugin]
    found = campaign.estimate()
    values += [found.value, found.covered]
    return {
        "estimate": _short(found.value),
        "believed": _short(campaign.believed),
        "hash": digest(values),
        "interval": digest([found.stderr]),
    }


def known_to(scenario, recipe: Collector) -> Knowledge:
    world = scenario.world
    truth = {
        "mean": world.reward.mean,
        "variance": world.reward.variance,
        "constraint_mean": scenario.constraint_mean,
        "model": world.mdp,
    }
    return Knowledge(**{name: truth[name] for name in recipe.knows})


def _decided(row):
    """A row without its interval."""
    return {name: value for name, value in row.items() if name != "interval"}


def _short(value) -> str:
    return f"{float(value):.{DIGITS}g}"


def digest(values) -> str:
    """A hash of the numbers, each rounded to nine digits; what is as good as 0 is 0."""
    text = " ".join(_short(0.0 if abs(v) < 1e-12 else v) for v in map(float, values))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main():
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    now = {row: measure(row) for row in rows()}
    changed = [row for row in before if now.get(row) != before[row]]
    decided = [row for row in changed if _decided(now.get(row, {})) != _decided(before[row])]
    if wrong := [row for row in decided if row.split()[2] in NEVER]:
        raise SystemExit(f"these never change, but did: {', '.join(wrong)}; nothing was written")
    FILE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    print(
        f"{len(now)} rows, {len(changed)} changed, {len(decided)} not in the interval alone:",
        *decided,
        sep="\n  ",
    )


if __name__ == "__main__":
    main()
