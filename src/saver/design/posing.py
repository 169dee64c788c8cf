"""From a planner's arguments to one program, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Bools, Floats
from saver.design.balance import balanced, refuse
from saver.design.walk import Walk
from saver.errors import Infeasible, InvalidProblem
from saver.kernels.solve.mixing import learnable, reaches
from saver.kernels.solve.search import Posed, deterred
from saver.problem import checks
from saver.problem.bellman import by_step
from saver.problem.checks import read_only
from saver.problem.mdp import Mdp

ROOM = 1e-3  # above what is required, of its size, that an anchor must have to be used as it is
ENOUGH = 0.5  # of the best room: where the search for an anchor ends
FLAT = 1e-9  # the span of a constraint that does not depend on the behaviour, of its size


def constraints(mdp: Mdp, mean: ArrayLike | None, required: Any, name: str) -> tuple[Floats, Floats]:
    """Means [m, S, A] and what they require [m]; a mean [S, A] is one guardrail, None one that is met."""
    shape = (mdp.states, mdp.actions)
    if mean is None:
        return np.zeros((1, *shape)), np.array([-1.0])
    means = checks.array(name, mean)
    if means.shape == shape:
        means = means[None]
    if means.ndim != 3 or means.shape[1:] != shape or len(means) == 0:
        raise InvalidProblem(
            f"{name} has shape {means.shape}; it must be {shape} or (m, {shape[0]}, {shape[1]})"
        )
    if np.ndim(required) == 0 and len(means) == 1:
        return np.array(means), np.array([checks.number("required", required)])
    return np.array(means), np.array(checks.numbers("required", required, len(means)))


def pose(
    walk: Walk, mdp: Mdp, w: Floats, means: Floats, required: Floats, anchor: Any,
    names: Sequence[str] | None, onward: ArrayLike | None = None,
) -> Posed:  # fmt: skip
    """The program, with a behaviour that is safe: the safest one, or one that is balanced or given."""
    w = weighed("w", mdp, w, mdp.reachable, "set it to 0")[None]
    if onward is not None:
        w = with_moves(walk, mdp, w, onward)
    if names is not None and len(names) != len(required):
        raise InvalidProblem(
            f"{len(names)} names are given for {len(required)} guardrails; give one for each"
        )
    known = None if anchor is None else checks.policy(mdp, anchor, "anchor")
    flow, N, values = safe(walk, mdp, means, required, known, names, len(w) > 1)
    cut = [deterred(w, mean, N[0]) for mean in means]
    steer = np.array([mean for mean, _ in cut]) if any(was for _, was in cut) else means
    return Posed(w, means, steer, np.minimum(required, values), flow, N, values)


def weighed(name: str, mdp: Mdp, weights: ArrayLike, states: Bools, remedy: str, when: str = "") -> Floats:
    """Weights [S, A], not negative, and 0 where no behaviour learns: outside `states`."""
    shape = (mdp.states, mdp.actions)
    plain = isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.shape == shape
    if plain and learnable(read_only(weights), read_only(mdp.available), states, checks.LARGEST):
        return np.array(weights)
    w = checks.within(name, checks.shaped(name, weights, shape), 0.0)
    if len(bad := np.argwhere((w > 0) & ~(mdp.available & states[:, None]))):
        s, a = bad[0]
        raise InvalidProblem(
            f"{name}[{s}, {a}] is {checks.show(w[s, a])}, but no behaviour can take "
            f"{mdp.action_label(a)} in {mdp.state_label(s)}{when}; {remedy}"
        )
    return np.array(w)  # a writable copy: numba compiles anew for each kind


def with_moves(walk: Walk, mdp: Mdp, w: Floats, onward: ArrayLike) -> Floats:
    """w, [1, S, A], and the weights of moves; their sum where episodes end before the horizon, all told."""
    if len(mdp.layers) < mdp.horizon:
        return w + weighed("onward", mdp, onward, mdp.reachable, "set it to 0")
    states = np.zeros(mdp.states, dtype=bool)
    states[walk.nodes.state[: walk.nodes.layer[-2]]] = True
    remedy = "set it to 0, or add it to w if the state after the last action is told"
    moves = weighed("onward", mdp, onward, states, remedy, f" before the last of {mdp.horizon} steps")
    return np.stack([w[0], moves]) if moves.any() else w


def safe(
    walk: Walk, mdp: Mdp, means: Floats, required: Floats, anchor: Floats | None,
    names: Sequence[str] | None, apart: bool,
) -> tuple[Floats, Floats, Floats]:  # fmt: skip
    """The flow, the visits and the constraint values of a behaviour that meets what is required."""
    if len(means) == 1:
        b, top = walk.safest(means[0])
        if not reaches(top, required[0]):
            raise Infeasible(
                f"no behaviour reaches the required constraint value {required[0]:g}: the best attainable is "
                f"{top:g}; raise alpha, or correct constraint_mean or baseline_value"
            )
        flow, N, _ = walk.follow(b, means, apart)
        return flow, N, np.array([top])
    known = []
    if anchor is not None:
        b = by_step(mdp, anchor)[walk.nodes.step, walk.nodes.state]
        flow, N, values = walk.follow(b, means, apart)
        size = np.abs(required) + np.sum(N[0] * np.abs(means), axis=(1, 2))
        if np.all(values - required > ROOM * size):
            return flow, N, values
        known = [b]
    scales = spans(walk, means, required)
    found = balanced(walk, means, required, scales, ENOUGH, known)
    refuse(found, required, scales, names)
    b = walk.by_row(walk.steps, found.flow, walk.even(walk.steps))
    return walk.follow(b, means, apart)


def spans(walk: Walk, means: Floats, required: Floats) -> Floats:
    """From the least to the largest value of each guardrail; a little above 0 where there is no choice."""
    found, none = [], np.zeros(means[0].size)
    for mean, least in zip(means, required, strict=True):
        high, low = walk.best(none, mean, 1.0), -walk.best(none, -mean, 1.0)
        found.append(max(high - low, FLAT * (abs(high) + abs(low) + abs(least)), np.finfo(float).tiny))
    return np.array(found)
