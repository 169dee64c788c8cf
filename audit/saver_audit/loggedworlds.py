"""Worlds of campaigns that begin with a log, and the cases that are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saver._types import Floats
from saver_audit.logged import MANNERS, Case, World

DELTAS = (0.05, 0.5)
ALONE = (0.5, 0.99)  # at which floors alone are looked at


def one_start(states: int) -> Floats:
    """State 0."""
    return np.eye(states)[0]


def plain(moves: Any, seen: dict[str, tuple[str, Any]], baseline: Any, target: Any, **more: Any) -> World:
    """Without traits: moves [S, A, S + 1], means [S, A]."""
    told = {name: (law, np.asarray(mean)[None]) for name, (law, mean) in seen.items()}
    start = more.pop("start", one_start(len(moves)))
    policies = np.asarray(baseline), np.asarray(target)
    return World(np.ones(1), start, np.asarray(moves)[None], told, *policies, **more)


def to(states: int, where: Any) -> Floats:
    """Moves that are certain, from the state that each pair leads to; `states` is the end."""
    return np.eye(states + 1)[np.asarray(where)]


def arms() -> World:
    """One step; what the target takes was logged in a tenth."""
    means = ("coin", [[0.9, 0.6, 0.75]])
    return plain(to(1, [[1, 1, 1]]), {"constraint": means}, [[0.6, 0.1, 0.3]], [[0, 1, 0]], horizon=1)


def disasters(name: str = "cost", rarely: float = 0.03, taken: float = 0.2) -> World:
    """Rarely the other action leads where all is lost until the end."""
    moves = np.zeros((3, 2, 4))
    moves[:2, 0, 1], moves[:2, 0, 2] = 0.998, 0.002
    moves[:2, 1, 1], moves[:2, 1, 2] = 1.0 - rarely, rarely
    moves[2, :, 2] = 1.0
    bad = np.array([[0.02, 0.02], [0.02, 0.02], [1.0, 1.0]])
    seen = {name: ("coin", bad if name == "cost" else 1.0 - bad)}
    return plain(moves, seen, [[1.0 - taken, taken]] * 3, [[0.1, 0.9]] * 3, horizon=5)


def hardly(taken: float) -> World:
    """The third action is logged hardly ever, or never; it often leads to disaster. The target likes it."""
    moves, mean = np.zeros((3, 3, 4)), np.array([[0.9, 0.8, 0.9]] * 3)
    moves[:2, :2, 1] = 1.0
    moves[:2, 2, 1], moves[:2, 2, 2] = 0.5, 0.5
    moves[2, :, 2], mean[2] = 1.0, 0.0
    baseline, target = [[0.7 - taken, 0.3, taken]] * 3, [[0.5, 0.2, 0.3]] * 3
    return plain(moves, {"constraint": ("coin", mean)}, baseline, target, horizon=3)


def shared(steps: int = 8, bad: float = 0.2) -> World:
    """The first action decides whether a fifth of the episodes see nothing but failures later on."""
    moves = to(3, [[1, 2], [1, 1], [2, 2]])
    means = np.ones((2, 3, 2))
    means[1, 1] = 0.0
    baseline, target = [[0.5, 0.5]] + [[1.0, 0.0]] * 2, [[1.0, 0.0]] * 3
    return World(
        np.array([1.0 - bad, bad]), one_start(3), np.stack([moves] * 2), {"constraint": ("coin", means)},
        np.array(baseline), np.array(target), steps,
    )  # fmt: skip


def hidden(often: float = 0.7, seldom: float = 0.06, unlike: float = 0.3) -> World:
    """A trait decides both where the first action leads and what is seen later.

    By frequencies of pairs state 1 looks good to who arrives there by another way.
    """
    moves = np.stack([to(3, [[1, 1], [1, 1], [2, 2]]), to(3, [[1, 2], [1, 1], [2, 2]])])
    means = np.ones((2, 3, 2))
    means[1, 1:] = 0.0
    baseline, target = np.zeros((2, 3, 3, 2))
    baseline[..., 0] = target[..., 0] = 1.0
    baseline[0, 0], baseline[1, 1], target[1, 1] = (1.0 - often, often), (1.0 - seldom, seldom), (0.0, 1.0)
    means[:, 1, 1] *= 0.8
    return World(
        np.array([1.0 - unlike, unlike]), one_start(3), moves, {"constraint": ("coin", means)},
        baseline, target, 3,
    )  # fmt: skip


def stays(law: str = "coin") -> World:
    """What is drawn at the start decides all that is seen."""
    means = np.array([[1.0, s >= 2, s >= 3] for s in range(4)])
    moves = to(4, [[s] * 3 for s in range(4)])
    policies = [[0.8, 0.15, 0.05]] * 4, [[0.1, 0.8, 0.1]] * 4
    return plain(moves, {"constraint": (law, means)}, *policies, horizon=3, start=np.full(4, 0.25))


def graph(number: int, law: str, states: int, actions: int, horizon: int, discount: float = 1.0) -> World:
    """A random one, whose episodes may end early."""
    rng = np.random.default_rng((39, number))
    moves, mean = _random(rng, states, actions), rng.uniform(0.1, 0.95, (states, actions))
    policies = _policies(rng, mean)
    seen = {"constraint": (law, mean)}
    return plain(moves, seen, *policies, horizon=horizon, discount=discount)


def several(number: int = 0) -> World:
    """Three guardrails: coins, a cost, and noise."""
    rng = np.random.default_rng((40, number))
    moves, mean = _random(rng, 4, 2), rng.uniform(0.2, 0.95, (4, 2))
    cost, other = np.clip(1.1 - mean, 0.05, 1.0), rng.uniform(0.2, 0.9, (4, 2))
    seen = {"constraint": ("coin", mean), "cost": ("thirds", cost), "other": ("normal", other)}
    return plain(moves, seen, *_policies(rng, mean), horizon=4)


def together() -> World:
    """Two guardrails that fail together: a trait decides both."""
    one, means = shared(5, 0.3), shared(5, 0.3).seen["constraint"][1]
    seen = {"constraint": ("coin", means), "cost": ("coin", 1.0 - 0.9 * means)}
    return World(one.chances, one.start, one.moves, seen, one.baseline, one.target, one.horizon)


def _random(rng: np.random.Generator, states: int, actions: int) -> Floats:
    moves = np.zeros((states, actions, states + 1))
    for s in range(states):
        for a in range(actions):
            reached = rng.choice(states, 2, replace=False)
            moves[s, a, reached] = rng.dirichlet((1.0, 1.0)) * 0.92
            moves[s, a, states] = 0.08
    return moves


def _policies(rng: np.random.Generator, mean: Floats) -> tuple[Floats, Floats]:
    """The baseline mostly takes what is best, the target what comes."""
    best = np.eye(mean.shape[1])[mean.argmax(axis=1)]
    base = 0.6 * best + 0.4 * rng.dirichlet(np.ones(mean.shape[1]), len(mean))
    target: Floats = 0.3 * base + 0.7 * rng.dirichlet(np.ones(mean.shape[1]), len(mean))
    return base, target


WORLDS: dict[str, Callable[[], World]] = {
    "arms": arms,
    "disasters": disasters,
    "disasters, seldom logged": lambda: disasters("constraint", 0.05, 0.05),
    "never logged": lambda: hardly(0.0),
    "seldom logged": lambda: hardly(0.01),
    "shared by steps": shared,
    "moved by what is hidden": hidden,
    "drawn at the start": stays,
    "shared noise": lambda: stays("shared"),
    "coins": lambda: graph(1, "coin", 6, 2, 4),
    "thirds, discount .9": lambda: graph(2, "thirds", 5, 3, 5, 0.9),
    "normal": lambda: graph(3, "normal", 4, 2, 4),
    "three guardrails": several,
    "two that fail together": together,
}
WAYS, VALUES = ("alpha", "allowance", "at_least"), ("learned", "given", "interval")
NEARS = (0.98, 0.9, 1.0, 0.98, 1.02)
SIZES = ((600, 30), (300, 20), (400, 20), (300, 20), (1000, 40))  # logged, and episodes


def cases() -> list[Case]:
    """Each world asked in several ways, and each manner, at both deltas; ways go round."""
    found = []
    for w, world in enumerate(WORLDS):
        for k, manner in enumerate(MANNERS):
            if k == len(MANNERS) - 1 and w % 2:
                continue  # long ones: every second world
            way, value, near = WAYS[(w + k) % 3], VALUES[(w + k // 2) % 3], NEARS[(w + k) % len(NEARS)]
            near = NEARS[0] if k == 0 else near
            sizes = SIZES[k]
            found += [Case(world, near, way, value, manner, delta, *sizes) for delta in DELTAS]
    return found


def planned() -> list[Case]:
    """With designs: these take longer."""
    names = ("disasters", "moved by what is hidden", "coins", "three guardrails")
    return [
        Case(name, 0.98, WAYS[i % 3], VALUES[i % 3], "at once", 0.5, 400, 30, "saver-opt")
        for i, name in enumerate(names)
    ]


def alone() -> list[Case]:
    """Of which the floors alone are looked at."""
    return [
        Case(world, 0.98, WAYS[w % 3], VALUES[w % 3], "at once", delta, 400, 1)
        for w, world in enumerate(WORLDS)
        for delta in ALONE
    ]
