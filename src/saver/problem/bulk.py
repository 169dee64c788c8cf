"""Checks of many episodes at once: the few that look wrong are then looked at one by one, which says why."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.problem.columns import NOT_SEEN, Columns
from saver.problem.model import END
from saver.problem.telling import CLOSE


def suspects(mdp: Any, many: Columns) -> Ints:
    """Episodes among which is one that cannot have happened in this model, if there is any."""
    beyond = (many.states < 0) | (many.states >= mdp.states)
    beyond |= (many.actions < 0) | (many.actions >= mdp.actions)
    if beyond.any():
        return episodes_of(many, beyond)
    wrong = (many.lengths < 1) | (many.lengths > mdp.horizon) | (many.final_states >= mdp.states)
    if mdp.start is not None:
        wrong |= mdp.start[many.states[many.offsets[:-1]]] == 0
    found = [episodes_of(many, ~mdp.available[many.states, many.actions]), np.flatnonzero(wrong)]
    if mdp.known:
        found += [episodes_of(many, _impossible(mdp, many)), _each_end(mdp, many)]
    else:
        short, told = many.lengths < mdp.horizon, many.final_states != NOT_SEEN
        stopped = many.complete & short & told & (many.final_states != END)
        found.append(np.flatnonzero(stopped | (~many.complete & (~short | (many.final_states == END)))))
    return np.unique(np.concatenate(found))


def unpromised(problem: Any, many: Columns) -> Ints:
    """Episodes with a number that the promises rule out."""
    rows = np.zeros(many.rows, dtype=bool)
    for rail in problem.rails:
        low, high = sorted(rail.sign * end for end in rail.promise.bounds)
        column = many.constraints[rail.name]
        rows |= (column < low) | (column > high)
    if problem.rewards is not None:
        at = many.states, many.actions
        rows |= (many.rewards < problem.rewards.low[at]) | (many.rewards > problem.rewards.high[at])
    return episodes_of(many, rows)


def untypical(many: Columns, likely: Floats) -> Ints:
    """Episodes with an action of probability 0, or of another one than was recorded."""
    rows = likely == 0.0
    if many.propensities is not None:
        rows |= np.abs(many.propensities - likely) > CLOSE
    return episodes_of(many, rows)


def episodes_of(many: Columns, rows: Bools) -> Ints:
    """The episodes that these rows are of."""
    at = np.flatnonzero(rows)
    found: Ints = np.unique(np.searchsorted(many.offsets, at, side="right") - 1)
    return found


def _impossible(mdp: Any, many: Columns) -> Bools:
    """Rows whose move the model does not have."""
    moves = (many.states[:-1] * mdp.actions + many.actions[:-1]) * mdp.states + many.states[1:]
    known = mdp.moves
    found = np.zeros(many.rows, dtype=bool)
    if len(known):
        found[:-1] = known[np.minimum(np.searchsorted(known, moves), len(known) - 1)] != moves
    else:
        found[:-1] = True
    found[many.last] = False
    return found


def _each_end(mdp: Any, many: Columns) -> Ints:
    """One episode of each kind of end that there is."""
    last = many.states[many.last] * mdp.actions + many.actions[many.last]
    kinds = np.stack([last, many.final_states, many.lengths, many.complete], axis=1)
    found: Ints = np.unique(kinds, axis=0, return_index=True)[1]
    return found
