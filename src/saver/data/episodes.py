"""Logged episodes with their labels: what `read_log` gives, and what is fitted and written out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from saver.errors import InvalidData, no_such
from saver.problem.columns import Columns

if TYPE_CHECKING:
    from saver.data.fitted import Fitted

UNSEEN = "(not seen)"  # a next state that nobody saw, in tables that are written here
LISTED = 50  # labels that a message shows


@dataclass(frozen=True, eq=False)
class Episodes(Columns):
    """Episodes column by column, as numbers, with the labels that they had.

    Attributes:
        state_labels, action_labels: what the numbers stand for, in order; numbers as text.
        ids: how the log calls each episode.
        kinds: of each episode, such as which policy was run; or None.
        drawn: False if actions were chosen by what was seen before, as a tracker does: their propensities say
            nothing then.
    """

    state_labels: tuple[str, ...] = ()
    action_labels: tuple[str, ...] = ()
    ids: Any = None
    kinds: Any = None
    drawn: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, codes in (("state_labels", self.states), ("action_labels", self.actions)):
            labels = tuple(getattr(self, name)) or tuple(map(str, range(int(codes.max(initial=0)) + 1)))
            object.__setattr__(self, name, labels)
        if self.ids is None:
            object.__setattr__(self, "ids", np.arange(len(self)))

    def __repr__(self) -> str:
        """A line: how many of what."""
        return (
            f"Episodes({len(self):,} episodes, {self.rows:,} steps, {len(self.state_labels):,} states, "
            f"{len(self.action_labels):,} actions, guardrails: {', '.join(self.constraints) or 'none'})"
        )

    def called(self, number: int) -> str:
        """How messages call an episode: as the log does."""
        name = self.ids[number]
        return repr(name.item() if isinstance(name, np.generic) else name)

    def select(self, chosen: Any) -> Self:
        """Those episodes that are chosen, [episodes] booleans; `kind` names those of one kind."""
        if isinstance(chosen, str):
            known = sorted(set(self.kinds)) if self.kinds is not None else []
            if chosen not in known:
                raise no_such("kind of episodes", chosen, known)
            chosen = self.kinds == chosen
        mask = np.asarray(chosen)
        if mask.shape != (len(self),) or mask.dtype != np.bool_:
            raise InvalidData(
                f"chosen is {mask.dtype} of shape {mask.shape}; it must be {len(self)} booleans, one "
                "for each episode, or the name of a kind"
            )
        kinds = None if self.kinds is None else self.kinds[mask]
        return replace(super().select(mask), ids=self.ids[mask], kinds=kinds)

    def labelled(self, states: Sequence[str], actions: Sequence[str]) -> Self:
        """The same with the numbers that these labels have; a label that is not among them is refused."""
        to_state = _codes("state", self.state_labels, states, self.states)
        to_action = _codes("action", self.action_labels, actions, self.actions)
        finals = np.where(
            self.final_states >= 0, to_state[np.maximum(self.final_states, 0)], self.final_states
        )
        return replace(
            self, states=to_state[self.states], actions=to_action[self.actions], final_states=finals,
            state_labels=tuple(states), action_labels=tuple(actions),
        )  # fmt: skip

    def fit(self, horizon: int, discount: float = 1.0, **options: Any) -> Fitted:
        """What the log says of its world and of the policy that was logged: see `saver.data.fit`."""
        from saver.data.fitting import fit

        return fit(self, horizon, discount, **options)

    def to_arrow(self) -> Any:
        """An Arrow table, one row for each step, that `read_log` reads."""
        from saver.data.frames import table

        return table(self)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The same as a Parquet file, whole or not at all."""
        from saver.data.frames import write_parquet

        write_parquet(self, path)

    def to_minari(self, name: str, **options: Any) -> Any:
        """A Minari dataset of this name, which is kept where Minari keeps them."""
        from saver.data.minari import to_minari

        return to_minari(self, name, **options)

    def to_obp(self) -> dict[str, Any]:
        """What the Open Bandit Pipeline calls bandit feedback: of one step, with propensities."""
        from saver.data.obp import to_obp

        return to_obp(self)


def _codes(kind: str, mine: Sequence[str], theirs: Sequence[str], used: Any) -> Any:
    """The code among theirs of each of mine; -1 for one that is never used."""
    known = {label: code for code, label in enumerate(theirs)}
    found = np.array([known.get(label, -1) for label in mine], dtype=np.int64)
    lost = np.flatnonzero(found < 0)
    if len(lost) and len(met := lost[np.isin(lost, used)]):
        first = mine[met[0]]
        raise InvalidData(
            f"the log has {len(met)} {kind}s that the problem does not have, the first {first!r}; "
            f"known: {', '.join(list(theirs)[:LISTED])}"
        )
    return found
