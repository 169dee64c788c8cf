"""The model that a log shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from saver._types import Floats, Ints
from saver.errors import InvalidData, InvalidProblem
from saver.estimate.log import seen_moves
from saver.problem.mdp import Mdp
from saver.problem.sums import Sums
from saver.problem.unknown import Unknown

END_LABEL = "(end)"  # the state that ends lead to


def believed(model: Any, sums: Sums) -> Mdp:
    """The model of frequencies: an `Mdp` as it is, and what was seen of an `Unknown`."""
    if model.known:
        found: Mdp = model
        return found
    moves = seen_moves(model, sums)
    return model.believed(moves.counts, moves.ends, moves.starts)  # type: ignore[no-any-return]


def as_mdp(unknown: Unknown, sums: Sums) -> tuple[Mdp, tuple[str, ...]]:
    """Frequencies taken for probabilities, and what is to be said of that.

    Pairs that were never seen are missing, not ends. Ends lead to one terminal state more.
    """
    moves, S, A = seen_moves(unknown, sums), unknown.states, unknown.actions
    ends, outcomes = moves.ends, moves.outcomes
    size = S + bool(ends.any())
    rates = moves.counts.data / np.maximum(outcomes, 1)[moves.rows]
    over = np.flatnonzero(ends)
    rows = np.concatenate([moves.rows, over])
    to = np.concatenate([moves.counts.indices, np.full(len(over), S)])
    data = np.concatenate([rates, ends[over] / outcomes[over]])
    matrix = sparse.coo_array((data, (rows, to)), shape=(size * A, size)).tocsr()
    seen = sums.rewards.counts > 0
    available = np.ones((size, A), dtype=bool)
    visited = seen.any(axis=1)
    available[:S][visited] = seen[visited]
    mdp = Mdp(
        matrix, unknown.horizon, discount=unknown.discount, start=_padded(moves.starts / sums.episodes, size),
        terminal=[S] if size > S else [], available=available,
        state_names=(*_names(unknown.state_names, S), *[END_LABEL] * (size - S)),
        action_names=_names(unknown.action_names, A),
    )  # fmt: skip
    _check_unseen(mdp, outcomes, available[:S].ravel())
    once = int(np.sum(moves.counts.data == 1) + np.sum(ends == 1))
    total = len(moves.counts.data) + len(over)
    note = (
        f"{once:,} of {total:,} moves were seen once: the model takes frequencies for probabilities, and no "
    )
    return mdp, (note + "interval counts that; model='unknown' does",)


def _check_unseen(mdp: Mdp, outcomes: Floats, available: Any) -> None:
    """Refuse pairs that can be met before the last step and whose moves nobody saw: they are no ends."""
    early = np.zeros(mdp.states, dtype=bool)
    for states in mdp.layers[: mdp.horizon - 1]:
        early[states] = True
    lost: Ints = np.flatnonzero(available & (outcomes == 0) & np.repeat(early, mdp.actions)[: len(outcomes)])
    if len(lost):
        state, action = divmod(int(lost[0]), mdp.actions)
        raise InvalidData(
            f"nobody saw where {mdp.action_label(action)} in {mdp.state_label(state)} leads, nor of "
            f"{len(lost) - 1} other pairs: they were met in last steps only; give next_state=..., or "
            "model='unknown'"
        )


def check_model(model: str, new: Sequence[str]) -> None:
    """The kind of a model."""
    if model not in ("unknown", "mdp"):
        raise InvalidProblem(f"model is {model!r}; it must be 'unknown' or 'mdp'")
    if model == "mdp" and new:
        raise InvalidProblem(
            f"{new[0]!r} is new, and nobody saw where it leads; with model='mdp' all is in the log: use "
            "model='unknown'"
        )


def _names(names: Any, count: int) -> tuple[str, ...]:
    return tuple(names) if names else tuple(map(str, range(count)))


def _padded(start: Floats, size: int) -> Floats:
    found: Floats = np.concatenate([start, np.zeros(size - len(start))])
    return found
