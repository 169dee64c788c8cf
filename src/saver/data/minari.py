"""Episodes as a Minari dataset."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import numpy as np

from saver.data.episodes import Episodes
from saver.data.needed import needed
from saver.errors import InvalidData
from saver.problem.model import END

NAME = re.compile(r"(?:[\w-]+/)*[\w-]+-v\d+", re.ASCII)


def to_minari(many: Episodes, name: str, *, horizon: int | None = None, **options: Any) -> Any:
    """A dataset in which observations are states, with one more, S, after an end, and another where not seen.

    An episode is terminated if it ended, or stops before the horizon (that of the longest by default) and was
    not cut off; else it is truncated. Guardrails and propensities are infos, with NaN after the last step.
    Labels stand in the description, as JSON. `options` are those of `minari.create_dataset_from_buffers`.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidData(
            f"the name is {name!r}; Minari's are like 'shop/log-v0': words, and a version at the end"
        )
    minari = needed("minari", "to_minari", "minari")
    collector = needed("minari.data_collector", "to_minari", "minari")
    spaces = needed("gymnasium.spaces", "to_minari", "minari")
    S, longest = len(many.state_labels), horizon or int(many.lengths.max())
    said = {"states": many.state_labels, "actions": many.action_labels, "after an end": S, "not seen": S + 1}
    infos = dict(many.constraints)
    if many.propensities is not None:
        infos["propensity"] = many.propensities
    buffers = [_buffer(collector, many, number, infos, longest) for number in range(len(many))]
    settings = {"description": json.dumps(said), "data_format": "hdf5"} | options
    settings["observation_space"] = spaces.Discrete(S + 2)
    settings["action_space"] = spaces.Discrete(len(many.action_labels))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that nobody says who wrote it, and from what code
            return minari.create_dataset_from_buffers(name, buffers, **settings)
    except (ValueError, OSError) as cause:
        raise InvalidData(f"Minari does not write {name!r}: {cause}") from None


def _buffer(collector: Any, many: Episodes, number: int, infos: dict[str, Any], horizon: int) -> Any:
    at = slice(int(many.offsets[number]), int(many.offsets[number + 1]))
    length, final, S = at.stop - at.start, int(many.final_states[number]), len(many.state_labels)
    ended = final == END or (final < 0 and length < horizon and bool(many.complete[number]))
    after = S if ended else S + 1 if final < 0 else final
    flags = np.zeros(length, dtype=bool)
    last = flags.copy()
    last[-1] = True
    return collector.EpisodeBuffer(
        id=number,
        observations=np.append(many.states[at], after),
        actions=many.actions[at].copy(),
        rewards=many.rewards[at].copy(),
        terminations=last if ended else flags,
        truncations=flags if ended else last,
        infos={name: np.append(column[at], np.nan) for name, column in infos.items()},
    )
