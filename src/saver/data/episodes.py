"""Logged episodes with their labels: what `read_log` gives, what is fitted, and how it is written out."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from saver._files import written
from saver.collect.events import Asked, Told
from saver.data.cells import told
from saver.data.sources import needed
from saver.errors import InvalidData, InvalidProblem, no_such
from saver.problem.episode import Columns
from saver.problem.model import END, NOT_SEEN

if TYPE_CHECKING:
    from saver.data.fitted import Fitted

UNSEEN = "(not seen)"  # a next state that nobody saw, in tables that are written here
END_LABEL = "(end)"  # the state that ends lead to
LISTED = 50  # labels that a message shows
RESERVED = ("episode", "step", "state", "action", "reward", "propensity", "next_state", "complete", "kind")
NAME = re.compile(r"(?:[\w-]+/)*[\w-]+-v\d+", re.ASCII)  # of a Minari dataset
MOST = 2**28  # entries of `context`


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
            vars(self)[name] = labels
        if self.ids is None:
            vars(self)["ids"] = np.arange(len(self))

    def __repr__(self) -> str:
        """A line: how many of what."""
        return (
            f"Episodes({len(self):,} episodes, {self.rows:,} steps, {len(self.state_labels):,} states, "
            f"{len(self.action_labels):,} actions, guardrails: {', '.join(self.constraints) or 'none'})"
        )

    def called(self, number: int) -> str:
        """How messages call an episode: as the log does."""
        name = self.ids[number]
        return f"episode {name.item() if isinstance(name, np.generic) else name!r}"

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
        finals = self.final_states
        finals = np.where(finals >= 0, to_state[np.maximum(finals, 0)], finals)
        return replace(
            self, states=to_state[self.states], actions=to_action[self.actions], final_states=finals,
            state_labels=tuple(states), action_labels=tuple(actions),
        )  # fmt: skip

    def fit(self, horizon: int, discount: float = 1.0, **options: Any) -> Fitted:
        """What the log says of its world and of the policy that was logged: see `saver.data.fit`."""
        from saver.data.fitting import fit

        return fit(self, horizon, discount, **options)

    def to_arrow(self) -> Any:
        """An Arrow table, one row for each step, that `read_log` reads.

        Columns: episode, step, state, action, reward, one for each guardrail; propensity where recorded;
        next_state where any episode tells its last one (missing where it ended), complete where one was cut
        off, kind where known.
        """
        arrow = needed("pyarrow", "to_arrow")
        for name in self.constraints:
            if name in RESERVED:
                raise InvalidData(f"a guardrail has the name {name!r}, as a column of the table; rename it")
        columns: dict[str, Any] = {
            "episode": arrow.array(np.repeat(self.ids, self.lengths)),
            "step": self.steps,
            "state": _labels(self.states, self.state_labels),
            "action": _labels(self.actions, self.action_labels),
            "reward": self.rewards,
        }
        for name, column in self.constraints.items():
            columns[name] = arrow.array(column, from_pandas=True)  # NaN: not measured
        if self.propensities is not None:
            columns["propensity"] = self.propensities
        if (self.final_states != NOT_SEEN).any():
            columns["next_state"] = self._next_states()
        if not self.complete.all():
            columns["complete"] = np.repeat(self.complete, self.lengths)
        if self.kinds is not None:
            columns["kind"] = arrow.array(np.repeat(self.kinds, self.lengths)).dictionary_encode()
        return arrow.table(columns).replace_schema_metadata(told(self.state_labels, self.action_labels))

    def _next_states(self) -> Any:
        """The state after each row; missing where the episode ended."""
        labels = (*self.state_labels, UNSEEN)
        if UNSEEN in self.state_labels or END_LABEL in self.state_labels:
            raise InvalidData(f"a state has the label {UNSEEN!r} or {END_LABEL!r}, which mean something else")
        onward = np.append(self.states[1:], END)
        onward[self.last] = np.where(self.final_states == NOT_SEEN, len(labels) - 1, self.final_states)
        return _labels(np.maximum(onward, 0), labels, onward == END)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The same as a Parquet file, whole or not at all."""
        if not isinstance(path, str | os.PathLike):
            raise InvalidData(f"the path is {path!r}; give the path of a file")
        parquet = needed("pyarrow.parquet", "to_parquet")
        rows = self.to_arrow()
        with written(Path(path)) as partial:
            parquet.write_table(rows, partial)

    def to_minari(self, name: str, *, horizon: int | None = None, **options: Any) -> Any:
        """A Minari dataset of this name, which is kept where Minari keeps them.

        Observations are states, with one more, S, after an end, and another where not seen. An episode is
        terminated if it ended, or stops before the horizon (that of the longest by default) and was not cut
        off; else it is truncated. Guardrails and propensities are infos, with NaN after the last step. Labels
        stand in the description, as JSON. `options` are those of `minari.create_dataset_from_buffers`.
        """
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InvalidData(
                f"the name is {name!r}; Minari's are like 'shop/log-v0': words, and a version at the end"
            )
        minari = needed("minari", "to_minari", "minari")
        buffer = needed("minari.data_collector", "to_minari", "minari").EpisodeBuffer
        discrete = needed("gymnasium.spaces", "to_minari", "minari").Discrete
        S, A = len(self.state_labels), len(self.action_labels)
        said = {"states": self.state_labels, "actions": self.action_labels, "after an end": S}
        longest = horizon or int(self.lengths.max())
        buffers = [buffer(**self._buffer(number, longest)) for number in range(len(self))]
        settings = {"description": json.dumps(said | {"not seen": S + 1}), "data_format": "hdf5"} | options
        spaces = {"observation_space": discrete(S + 2), "action_space": discrete(A)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that nobody says who wrote it, from what code
                return minari.create_dataset_from_buffers(name, buffers, **settings | spaces)
        except (ValueError, OSError) as cause:
            raise InvalidData(f"Minari does not write {name!r}: {cause}") from None

    def _buffer(self, number: int, horizon: int) -> dict[str, Any]:
        """One episode as Minari has it."""
        at, S = slice(*self.offsets[number : number + 2].tolist()), len(self.state_labels)
        length, final = at.stop - at.start, int(self.final_states[number])
        ended = final == END or (final < 0 and length < horizon and bool(self.complete[number]))
        after = S if ended else S + 1 if final < 0 else final
        last = np.arange(length) == length - 1
        likely = {} if self.propensities is None else {"propensity": self.propensities}
        return {
            "id": number,
            "observations": np.append(self.states[at], after),
            "actions": self.actions[at].copy(),
            "rewards": self.rewards[at].copy(),
            "terminations": last & ended,
            "truncations": last & (not ended),
            "infos": {name: np.append(one[at], np.nan) for name, one in (self.constraints | likely).items()},
        }

    def to_obp(self) -> dict[str, Any]:
        """What the Open Bandit Pipeline calls bandit feedback: of one step, with propensities.

        n rounds: contexts are states and action contexts actions, one-hot. n_rounds, n_actions; context
        [n, S]; action_context [A, A]; action [n]; position None, for there is one; reward [n];
        expected_reward None, for nobody knows it; pscore [n].
        """
        if self.propensities is None:
            raise InvalidData(
                "the episodes have no propensities, and pscore is needed; read them with the log"
            )
        if not self.drawn:
            raise InvalidData(
                "the actions were tracked, not drawn: each had probability 1 when it was taken, and pscore "
                "says nothing; collect with Collector(track='sample')"
            )
        if len(long := np.flatnonzero(self.lengths > 1)):
            steps = self.lengths[long[0]]
            raise InvalidData(f"{self.called(long[0])} has {steps} steps; bandit feedback has one")
        n, S, A = len(self), len(self.state_labels), len(self.action_labels)
        if n * S > MOST:
            raise InvalidData(f"{n:,} rounds with {S:,} one-hot contexts do not fit; select fewer episodes")
        context = np.zeros((n, S))
        context[np.arange(n), self.states] = 1.0
        return {
            "n_rounds": n, "n_actions": A, "context": context, "action_context": np.eye(A),
            "action": np.array(self.actions), "position": None, "reward": np.array(self.rewards),
            "expected_reward": None, "pscore": np.array(self.propensities),
        }  # fmt: skip


def _codes(kind: str, mine: Sequence[str], theirs: Sequence[str], used: Any) -> Any:
    """The code among theirs of each of mine; -1 for one that is never used."""
    known = {label: code for code, label in enumerate(theirs)}
    found = np.array([known.get(label, -1) for label in mine], dtype=np.int64)
    lost = np.flatnonzero(found < 0)
    if len(lost) and len(met := lost[np.isin(lost, used)]):
        raise InvalidData(
            f"the log has {len(met)} {kind}s that the problem does not have, the first {mine[met[0]]!r}; "
            f"known: {', '.join(list(theirs)[:LISTED])}"
        )
    return found


def _labels(codes: Any, labels: Sequence[str], missing: Any = None) -> Any:
    """An Arrow array of labels."""
    import pyarrow as arrow

    indices = arrow.array(codes.astype(np.int32), mask=missing)
    return arrow.DictionaryArray.from_arrays(indices, arrow.array(labels, arrow.string()))


def check_campaign(campaign: Any) -> None:
    """Refuse what is none: neither a `Campaign`, nor one in a store, which answers alike."""
    if not all(hasattr(type(campaign), name) for name in ("ask", "tell", "events")):
        raise InvalidProblem(f"campaign is {type(campaign).__name__}; it must be a saver.Campaign")


def from_campaign(campaign: Any) -> Episodes:
    """The told episodes of a `Campaign(..., keep="episodes")`, in the order of telling.

    `propensities` are the probabilities of what was done under the policy of the trial, `kinds` those of the
    trials, `ids` their numbers. Under tracking a trial's actions follow from what was seen before: their
    probability is 1, and `drawn` is False.
    """
    check_campaign(campaign)
    events, policies, problem = campaign.events, campaign.policies, campaign.problem
    asked = {event.number: event.kind for event in events if isinstance(event, Asked)}
    found = [event for event in events if isinstance(event, Told)]
    if not found:
        raise InvalidData("nothing has been told to this campaign yet; there is nothing to write")
    episodes = []
    for event in found:
        one = event.episode
        likely = policies[event.number].chances(one.states, one.actions)
        guarded = {rail.name: rail.column(one) for rail in problem.rails}
        episodes.append(replace(one, constraints=guarded, propensities=likely))
    numbers, mdp = [event.number for event in found], problem.mdp
    return Episodes.of(
        episodes, [event.complete for event in found], ids=np.array(numbers),
        state_labels=mdp.state_names or tuple(map(str, range(mdp.states))),
        action_labels=mdp.action_names or tuple(map(str, range(mdp.actions))),
        kinds=np.array([asked[number] for number in numbers], dtype=object),
        drawn=campaign.collector.track == "sample",
    )  # fmt: skip
