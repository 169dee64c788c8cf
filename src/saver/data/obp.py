"""Bandit feedback as the Open Bandit Pipeline documents it: a plain dict, without its packages."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver.data.episodes import Episodes
from saver.errors import InvalidData

MOST = 2**28  # entries of `context`


def to_obp(many: Episodes) -> dict[str, Any]:
    """n rounds of one step each: contexts are states and action contexts actions, one-hot.

    n_rounds, n_actions; context [n, S]; action_context [A, A]; action [n]; position None, for there is one;
    reward [n]; expected_reward None, for nobody knows it; pscore [n].
    """
    if many.propensities is None:
        raise InvalidData("the episodes have no propensities, and pscore is needed; read them with the log")
    if not many.drawn:
        raise InvalidData(
            "the actions were tracked, not drawn: each had probability 1 when it was taken, and pscore says "
            "nothing; collect with Collector(track='sample')"
        )
    if len(long := np.flatnonzero(many.lengths > 1)):
        raise InvalidData(
            f"episode {many.called(int(long[0]))} has {many.lengths[long[0]]} steps; bandit feedback has one"
        )
    n, states, actions = len(many), len(many.state_labels), len(many.action_labels)
    if n * states > MOST:
        raise InvalidData(f"{n:,} rounds with {states:,} one-hot contexts do not fit; select fewer episodes")
    context = np.zeros((n, states))
    context[np.arange(n), many.states] = 1.0
    return {
        "n_rounds": n,
        "n_actions": actions,
        "context": context,
        "action_context": np.eye(actions),
        "action": np.array(many.actions),
        "position": None,
        "reward": np.array(many.rewards),
        "expected_reward": None,
        "pscore": np.array(many.propensities),
    }
