"""Worlds of hundreds of states at K = 1000: how near the limit collectors come, and how long an ask takes.

`over the limit` is K times the conditional mean squared error over the exact safe limit (certified to 1e-3;
Taxi to 1e-2), with the standard error over the runs; for the graphs over the 20 models. `ask` and `tell` are
milliseconds of a campaign by `saver-opt` while it replans, first asks left out, with the worst; `product` is
that of two 1000 x 1000 matrices in NumPy, measured in between. `state` is the size of `Campaign.state()` as
JSON and the time it takes. Soft 0.2 and so on are other targets and baselines on the same lake.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from tables import Table

from saver import Campaign, Gaussian, Mdp, Player, Problem, Scenario, SubGaussian, World, scenarios, simulate
from saver.design import exact

K = 1000
COLLECTORS = ("saver-opt", "safe-on-policy", "saver")


def graph(seed: int, states: int = 100, horizon: int = 15) -> Scenario:
    """A random graph: five next states for each pair, a baseline that is greedy for the constraint."""
    rng = np.random.default_rng(seed)
    edges = []
    for s in range(states):
        for a in range(3):
            to, chance = rng.choice(states, 5, False), rng.dirichlet(np.ones(5))
            edges += [(s, a, int(t), float(p)) for t, p in zip(to, chance, strict=True)]
    target = rng.dirichlet(np.ones(3), states)
    variance, constraint, mean = (
        rng.exponential(size=(states, 3)),
        rng.random((states, 3)),
        rng.random((states, 3)),
    )
    mdp = Mdp.from_edges(edges, states, 3, horizon, discount=0.95)
    world = World(mdp, Gaussian(mean, variance), Gaussian(constraint, 0.01))
    baseline = np.eye(3)[np.argmax(constraint, axis=1)]
    problem = Problem(
        mdp, target, baseline, alpha=0.2, baseline_value=world.constraint_value(baseline),
        constraint=SubGaussian(0.1),
    )  # fmt: skip
    return Scenario(f"graph {seed}", world, problem, K)


def over_limit(scenario: Scenario, collector: str, runs: int, limit: float) -> tuple[Any, float, float]:
    began = time.perf_counter()
    found = simulate(scenario, collector, episodes=K, runs=runs, seed=1, checkpoints=[])
    took = (time.perf_counter() - began) / runs
    return K * found.conditional_mse[:, -1] / limit, float(found.baseline_share[:, -1].mean()), took


def limit_of(scenario: Scenario, gap: float = 1e-3) -> float:
    world = scenario.world
    return exact(
        scenario.problem, np.array(world.reward.variance), world.constraint.mean, tolerance=gap, seconds=120.0
    ).limit


def errors() -> list[list[Any]]:
    lakes = {
        "lake 4x4": (scenarios.lake(), 100),
        "lake 8x8": (scenarios.lake(size=8), 24),
        "lake 8x8, soft 0.2": (scenarios.lake(size=8, softness=0.2), 24),
        "lake 8x8, baseline 0.7": (scenarios.lake(size=8, baseline_share=0.7), 24),
        "lake 8x8, alpha 0.02": (scenarios.lake(size=8, alpha=0.02), 24),
        "lake 4x4, soft 0.01, baseline 0.5": (scenarios.lake(softness=0.01, baseline_share=0.5), 60),
        "taxi": (scenarios.taxi(), 2),
    }
    body: list[list[Any]] = []
    for name, (made, runs) in lakes.items():
        limit = limit_of(made, 1e-2 if name == "taxi" else 1e-3)
        for collector in COLLECTORS:
            ratio, share, took = over_limit(made, collector, runs, limit)
            body.append([name, collector, runs, shown(ratio), f"{share:.3f}", f"{took:.2f} s"])
            print(*body[-1], flush=True)
    for collector in COLLECTORS:
        found = [over_limit(graph(seed), collector, 6, limit_of(graph(seed))) for seed in range(20)]
        each = np.array([ratio.mean() for ratio, _, _ in found])
        share, took = (float(np.mean([row[i] for row in found])) for i in (1, 2))
        body.append(["20 graphs of 100 states", collector, 120, shown(each), f"{share:.3f}", f"{took:.2f} s"])
        print(*body[-1], flush=True)
    return body


def shown(ratio: Any) -> str:
    return f"{ratio.mean():.4g} +- {ratio.std(ddof=1) / np.sqrt(len(ratio)):.2g}"


def latency(name: str, made: Scenario, episodes: int, out: int = 0) -> list[Any]:
    campaign, player = Campaign(made.problem, "saver-opt", K, seed=1), Player(made.world, 1)
    asks, tells, products, waiting = [], [], [], []
    matrix = np.random.default_rng(0).random((1000, 1000))
    for k in range(episodes + out):
        began = time.perf_counter()
        trial = campaign.ask()
        asked = time.perf_counter() - began
        waiting.append((trial, player.run(trial)))
        if len(waiting) <= out:
            continue
        asks.append(asked)
        told = waiting.pop(0)
        began = time.perf_counter()
        campaign.tell(*told)
        tells.append(time.perf_counter() - began)
        if k % 20 == 0:
            began = time.perf_counter()
            matrix @ matrix
            products.append(time.perf_counter() - began)
    began = time.perf_counter()
    state = campaign.state()
    took, size = time.perf_counter() - began, len(json.dumps(state))
    ask, tell, product = (1e3 * np.array(each) for each in (asks[1:], tells[1:], products))
    unit = float(np.median(product))
    return [
        name, out, f"{np.median(ask):.2f}", f"{ask.max():.1f}", f"{np.median(tell):.2f}", f"{tell.max():.1f}",
        f"{unit:.1f}", f"{np.median(ask) / unit:.2f}", f"{ask.max() / unit:.1f}",
        f"{size / 1e6:.2f} MB, {1e3 * took:.0f} ms",
    ]  # fmt: skip


def table() -> Table:
    columns = ("world", "collector", "runs", "over the limit", "baseline", "a run")
    return Table("planning", __doc__ or "", columns, errors())


def asks() -> Table:
    latency("warm-up", scenarios.taxi(horizon=30), 20)
    body = [
        latency("gridworld", scenarios.gridworld(), 400),
        latency("gridworld", scenarios.gridworld(), 400, 256),
        latency("lake 8x8", scenarios.lake(size=8), 400),
        latency("graph of 1,000 states, 20 steps", graph(0, 1000, 20), 200),
        latency("taxi", scenarios.taxi(), 150),
    ]
    columns = (
        "world", "out", "ask", "worst", "tell", "worst tell", "product", "ask / product", "worst / product",
        "state",
    )  # fmt: skip
    return Table("asks", __doc__ or "", columns, body)
