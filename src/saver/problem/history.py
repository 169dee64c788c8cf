"""What an episode must be to be told, and logged episodes of the baseline as sums.

Every promise is checked before anything changes; of many episodes those that look wrong are looked at one by
one, which says why. The sums are all that a campaign, a ledger or a diagnosis learns from a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saver._jit import brief, plainly
from saver._late import renamed
from saver._types import Bools, Floats, Ints
from saver.errors import InvalidData
from saver.problem import checks
from saver.problem.bellman import by_step
from saver.problem.checks import read_only
from saver.problem.codec import fingerprint, portable
from saver.problem.episode import Columns, Episode
from saver.problem.floors import Shown
from saver.problem.guardrail import Rail
from saver.problem.model import faulty
from saver.problem.moments import Moments, Sums

BEFORE = 0.5  # what an episode is guessed to earn before any was seen, taken to [0, 1]; it counts as one
CLOSE = 1e-9  # of two propensities
FEW = 10_000  # rows that are looked at without a compiler


def check_told(problem: Any, episode: Episode, complete: bool = True) -> Episode:
    """The episode, in numbers; one that cannot have happened, or that breaks a promise, is refused."""
    if episode.constraints is None:
        raise InvalidData("the episode has no constraints; give one for each step")
    _check_names(problem, episode.constraints)
    found = episode.check(problem.mdp, complete)
    for rail, t in _unbelieved(problem, found):
        raise InvalidData(_words(problem, found, rail, t))
    return found


def _check_names(problem: Any, constraints: Any) -> None:
    """One sequence where one is guarded, or {name: sequence} with every name."""
    if not isinstance(constraints, dict) and len(problem.rails) == 1:
        return
    names = [rail.name for rail in problem.rails]
    if not isinstance(constraints, dict):
        raise InvalidData(
            f"constraints is one sequence, and {', '.join(names)} are guarded; tell {{name: sequence}}"
        )
    for name in constraints:
        if name not in names:
            raise InvalidData(f"constraints has {name!r}, which is not guarded; known: {', '.join(names)}")
    for name in names:
        if name not in constraints:
            raise InvalidData(
                f"constraints has no {name!r}; tell every guardrail, with None for one that was not measured"
            )


def _unbelieved(problem: Any, seen: Episode | Columns) -> Iterator[tuple[Rail | None, int]]:
    """The first row that a promise rules out, of each guardrail and, without one, of the rewards."""
    at = seen.states, seen.actions
    for rail in problem.rails:
        column = rail.column(seen)
        if column is not None and (row := outside(column, *at, *rail.bounds)) >= 0:
            yield rail, row
    table = problem.rewards
    if table is not None and (row := outside(seen.rewards, *at, table.low, table.high)) >= 0:
        yield None, row


@brief
def outside(values: Any, states: Any, actions: Any, lows: Any, highs: Any) -> int:
    """The first row that is beyond the bounds of its pair, [S, A], or [1, 1] of all; -1 if there is none."""
    alike = lows.size == 1
    for t in range(len(values)):
        s, a = (0, 0) if alike else (states[t], actions[t])
        if values[t] < lows[s, a] or values[t] > highs[s, a]:
            return t
    return -1


def _words(problem: Any, episode: Episode, rail: Rail | None, t: int) -> str:
    """Why what was seen is not believed."""
    at, mdp = (episode.states[t], episode.actions[t]), problem.mdp
    if rail is None:
        name, column, whose = "rewards", episode.rewards, f" of {mdp.pair_label(*at)}"
        low, high = problem.rewards.low[at], problem.rewards.high[at]
    else:
        named = f"[{rail.name!r}]" if isinstance(episode.constraints, dict) else ""
        name, column, whose = f"constraints{named}", rail.column(episode), ""
        (low,), (high,) = (end[0] for end in rail.bounds)
    return (
        f"{name}[{t}] is {checks.show(column[t])}, outside the declared bounds [{low:g}, {high:g}]{whose}; "
        "correct the value or declare wider bounds"
    )


def check_possible(mdp: Any, episode: Episode, likely: Floats, who: str, remedy: str) -> None:
    """Refuse an action that is never taken."""
    if not likely.all():
        t = np.flatnonzero(likely == 0.0)[0]
        move = mdp.move_label(t, episode.states[t], episode.actions[t])
        raise InvalidData(f"{move} has probability 0 under {who}; {remedy}")


def check_propensities(who: str, episode: Episode, likely: Floats) -> None:
    said = episode.propensities
    if said is not None and len(wrong := np.flatnonzero(np.abs(said - likely) > CLOSE)):
        t = wrong[0]
        raise InvalidData(
            f"propensities[{t}] is {checks.show(said[t])}, but {who} takes that action with "
            f"probability {checks.show(likely[t])}; leave them out, or tell trial.row(step, state)[action]"
        )


def suspects(mdp: Any, many: Columns) -> Ints:
    """The episodes that cannot have happened in this model."""
    columns = many.offsets, many.states, many.actions, many.final_states
    whole = [read_only(np.asarray(column, np.int64)) for column in columns]
    with plainly(many.rows <= FEW):
        longest = mdp.longest(bool(many.complete.all()))
        wrong = faulty(mdp.paths, longest, read_only(many.complete), *whole)
    return np.flatnonzero(wrong)


def episodes_of(many: Columns, rows: Bools) -> Ints:
    """The episodes that these rows are of."""
    at = np.flatnonzero(rows)
    return np.unique(np.searchsorted(many.offsets, at, side="right") - 1)


# -- logged episodes of the baseline --


@portable("logged", guessed="tilt")
@dataclass(eq=False)
class Logged:
    """What logged baseline episodes say of one guardrail; more is better."""

    seen: Moments  # observations of each pair
    realised: Any  # discounted visits, [S, A]
    count: int = 0  # episodes in which it was measured
    gained: float = 0.0  # what they earned
    noise: float = 0.0  # noise, length: sums of discount^2t and of discount^t over their steps
    length: float = 0.0
    squares: float = 0.0  # of what each earned less the average before, both taken to [0, 1]
    guessed: float = 0.0  # the same times that average

    def add(self, seen: Episode | Columns, column: Any, discount: float, ends: tuple[float, float]) -> None:
        """Episodes in order, of what a column holds; `ends` are the least and the most that one can earn."""
        s, a, gammas = seen.states, seen.actions, discount**seen.steps
        earned: Any = seen.returns(column, discount)
        count: Any = self.count  # those before, and what they earned
        gained: Any = self.gained
        if isinstance(seen, Columns):
            count = count + np.arange(len(seen))
            gained = gained + np.concatenate([[0.0], np.cumsum(earned)[:-1]])
        low, span = ends[0], ends[1] - ends[0]
        guess = (BEFORE + (gained - low * count) / span) / (1 + count)
        squares = ((earned - low) / span - guess) ** 2
        self.count, self.gained = self.count + np.size(earned), float(np.ravel(gained + earned)[-1])
        self.squares += float(np.sum(squares))
        self.guessed += float(np.sum(guess * squares))
        self.noise += float(np.sum(gammas**2))
        self.length += float(np.sum(gammas))
        np.add.at(self.realised, (s, a), gammas)
        (self.seen.extend if isinstance(seen, Episode) else self.seen.extend_all)(s, a, column)


@portable("history", rails="guarded")
@dataclass(frozen=True, eq=False)
class History:
    """Logged episodes of a problem's baseline: all of them, not chosen for what they were.

    Attributes:
        sums: rewards and moves.
        rails: what they say of each guardrail, by name.
        made_for: a hash of the model, the baseline and the promises that they were logged under.
        shown: what they show of other policies; None where that was not asked, or they are too few.
    """

    sums: Sums
    rails: dict[str, Logged]
    made_for: str
    shown: Shown | None = None
    __getattr__ = renamed(guarded="rails")

    @property
    def episodes(self) -> int:
        """How many were logged."""
        return self.sums.episodes

    @classmethod
    def of(cls, problem: Any, episodes: Iterable[Episode]) -> History:
        """Take in episodes, each a `saver.Episode`; one that the baseline cannot have done is refused.

        Those of `saver.data.read_log` are taken in all at once, which is much faster.
        """
        if not isinstance(episodes, Iterable):
            raise InvalidData(f"history is {episodes!r}; it must hold episodes, each a saver.Episode")
        shape = (problem.mdp.states, problem.mdp.actions)
        empty = {rail.name: Logged(Moments.empty(shape), np.zeros(shape)) for rail in problem.rails}
        found = cls(Sums.empty(problem.mdp), empty, made_for(problem))
        table = by_step(problem.mdp, problem.baseline)
        if isinstance(episodes, Columns):
            _check_all(problem, table, episodes)
            found.sums.add_all(problem.mdp, episodes)
            found._guard(problem, episodes)
            return found
        for number, item in enumerate(episodes):
            seen = _checked(problem, table, item, f"history[{number}]")
            found.sums.add(problem.mdp, seen)
            found._guard(problem, seen)
        return found

    def _guard(self, problem: Any, seen: Episode | Columns) -> None:
        """Take in what was seen of each guardrail, where it was measured."""
        longest = float(np.sum(problem.mdp.factors))
        for rail in problem.rails:
            column, part = rail.column(seen), seen
            if isinstance(seen, Columns) and len(seen) and np.isnan(column).any():
                part = seen.select(~np.isnan(column[seen.offsets[:-1]]))
                column = rail.column(part)
            if column is not None and len(column):
                ends = rail.promise.of_episode(1.0, longest)
                self.rails[rail.name].add(part, rail.sign * column, problem.mdp.discount, ends)


def _doubtful(problem: Any, table: Floats, many: Columns) -> Iterator[int]:
    """Episodes among which is one that the baseline cannot have done, if there is any.

    What comes later trusts that those before were looked at, one by one, and passed.
    """
    if not len(many):
        return
    yield 0  # the names of guardrails
    yield from suspects(problem.mdp, replace(many, complete=np.ones(len(many), bool)))
    rows = np.zeros(many.rows, dtype=bool)
    rows[[row for _, row in _unbelieved(problem, many)]] = True
    yield from episodes_of(many, rows)
    likely = table[many.steps, many.states, many.actions]
    said = likely if many.propensities is None else many.propensities
    yield from episodes_of(many, (likely == 0.0) | (np.abs(said - likely) > CLOSE))
    for rail in problem.rails:
        if rail.learned:
            yield from episodes_of(many, np.isnan(many.constraints[rail.name]))[:1]


def _check_all(problem: Any, table: Floats, many: Columns) -> None:
    """Refuse what the baseline cannot have done."""
    for number in _doubtful(problem, table, many):
        _checked(problem, table, many[number], many.called(number))
    if not many.complete.all():
        number = int(np.argmin(many.complete))
        raise InvalidData(f"{many.called(number)} was cut off; history must hold whole episodes")


def _checked(problem: Any, table: Floats, item: Any, called: str) -> Episode:
    """The episode; one that the baseline cannot have done is refused: its value is learned from history."""
    if not isinstance(item, Episode):
        raise InvalidData(
            f"{called} is a {type(item).__name__}; it must be a saver.Episode(states, actions, rewards, "
            "constraints)"
        )
    try:
        seen = check_told(problem, item)
        likely = table[seen.steps, seen.states, seen.actions]
        only = "give the baseline's episodes, all of them and no others"
        check_possible(problem.mdp, seen, likely, "the baseline", only)
        check_propensities("the baseline", seen, likely)
        for rail in problem.rails:
            if rail.learned and rail.column(seen) is None:
                raise InvalidData(
                    f"constraints[{rail.name!r}] is None, and the baseline's value is learned from history: "
                    "episodes must not be left out for what they were; give the value, or leave out all "
                    "history"
                )
    except InvalidData as cause:
        raise InvalidData(f"{called}: {cause}") from None
    return seen


def made_for(problem: Any) -> str:
    """A hash of what logged episodes depend on: the model, what was played, and what is promised."""
    guarded = [item for rail in problem.rails for item in (rail.name, rail.sign, rail.promise)]
    return fingerprint(problem.mdp, problem.baseline, *guarded)


def fits(problem: Any, history: Any) -> None:
    """Refuse the history of another problem."""
    checks.kind("history", history, History)
    shape, names = (problem.mdp.states, problem.mdp.actions), {rail.name for rail in problem.rails}
    theirs = history.sums.rewards.mean.shape
    for moments in (history.sums.rewards, *(one.seen for one in history.rails.values())):
        if len(bad := np.argwhere(moments.counts < 0)):
            at = tuple(bad[0].tolist())
            raise InvalidData(f"history has {moments.counts[at]} samples of {at}: it was damaged")
    if theirs != shape or set(history.rails) != names:
        raise InvalidData(
            f"history has (states, actions) = {theirs} and guards {', '.join(history.rails)}; the problem "
            f"has {shape} and guards {', '.join(sorted(names))}: use saver.History.of(problem, episodes)"
        )
    if history.made_for != made_for(problem):
        raise InvalidData(
            "history was logged under another model (its start, steps, discount or names), baseline or "
            "promise than the problem has; make it anew by saver.History.of(problem, episodes), or leave it "
            "out: history=None"
        )
    for rail in problem.rails:
        count = history.rails[rail.name].count
        if rail.learned and count < history.episodes:
            raise InvalidData(
                f"history has {count} of {history.episodes} episodes with {rail.name!r}, whose baseline "
                "value is learned from it: give the value, or leave out the history"
            )
