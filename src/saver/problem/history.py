"""Logged episodes of the baseline as sums: all that a campaign, a ledger or a diagnosis learns from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver.errors import InvalidData
from saver.problem import bulk, checks
from saver.problem.bellman import by_step
from saver.problem.codec import fingerprint, portable
from saver.problem.columns import Columns
from saver.problem.episode import Episode
from saver.problem.guardrail import Rail
from saver.problem.moments import Moments
from saver.problem.sums import Sums
from saver.problem.telling import check_possible, check_propensities, check_told

BEFORE = 0.5  # what an episode is guessed to earn before any was seen, taken to [0, 1]; it counts as one


@portable("logged")
@dataclass(eq=False)
class Logged:
    """What logged baseline episodes say of one guardrail; more is better.

    Attributes:
        seen: observations of each pair.
        realised: discounted visits, [S, A].
        count: episodes in which it was measured.
        gained: what they earned.
        noise, length: sums of discount^2t and of discount^t over their steps.
        squares: of what each earned less the average before, both taken to [0, 1].
        tilt: the same times that average.
    """

    seen: Moments
    realised: Any
    count: int = 0
    gained: float = 0.0
    noise: float = 0.0
    length: float = 0.0
    squares: float = 0.0
    tilt: float = 0.0

    def add(self, rail: Rail, episode: Episode, discount: float, ends: tuple[float, float]) -> None:
        """One episode more; `ends` are the least and the most that one can earn."""
        gammas = discount ** np.arange(len(episode))
        earned = float(np.sum(gammas * episode.constraints))
        low, span = ends[0], ends[1] - ends[0]
        guess = (BEFORE + (self.gained - low * self.count) / span) / (1 + self.count)
        square = ((earned - low) / span - guess) ** 2
        self.squares, self.tilt = self.squares + square, self.tilt + guess * square
        self.count, self.gained = self.count + 1, self.gained + earned
        self.noise, self.length = self.noise + float(np.sum(gammas**2)), self.length + float(np.sum(gammas))
        np.add.at(self.realised, (episode.states, episode.actions), gammas)
        self.seen.extend(episode.states, episode.actions, episode.constraints)

    def add_all(self, rail: Rail, many: Columns, discount: float, ends: tuple[float, float]) -> None:
        """Episodes in order, as `add` one by one: the average before each is a cumulative sum."""
        gammas, first = discount**many.steps, many.offsets[:-1]
        column = rail.sign * many.constraints[rail.name]
        earned = np.add.reduceat(gammas * column, first)
        low, span = ends[0], ends[1] - ends[0]
        count = self.count + np.arange(len(many))
        gained = self.gained + np.concatenate([[0.0], np.cumsum(earned)])
        guess = (BEFORE + (gained[:-1] - low * count) / span) / (1 + count)
        squares = ((earned - low) / span - guess) ** 2
        self.squares, self.tilt = (
            self.squares + float(squares.sum()),
            self.tilt + float(np.sum(guess * squares)),
        )
        self.count, self.gained = self.count + len(many), float(gained[-1])
        self.noise, self.length = self.noise + float(np.sum(gammas**2)), self.length + float(np.sum(gammas))
        pairs = many.states * self.realised.shape[1] + many.actions
        visits = np.bincount(pairs, gammas, self.realised.size)
        self.realised = self.realised + visits.reshape(self.realised.shape)
        self.seen.extend_all(many.states, many.actions, column)


@portable("history")
@dataclass(frozen=True, eq=False)
class History:
    """Logged episodes of a problem's baseline: all of them, not chosen for what they were.

    Attributes:
        sums: rewards and moves.
        guarded: what they say of each guardrail, by name.
        made_for: a hash of the model, the baseline and the promises that they were logged under.
    """

    sums: Sums
    guarded: dict[str, Logged]
    made_for: str

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
        mdp, rails = problem.mdp, problem.rails
        shape = (mdp.states, mdp.actions)
        longest = float(np.sum(mdp.factors))
        empty = {rail.name: Logged(Moments.empty(shape), np.zeros(shape)) for rail in rails}
        found = cls(Sums.empty(mdp), empty, made_for(problem))
        table = by_step(mdp, problem.baseline)
        if isinstance(episodes, Columns):
            found._take_all(problem, table, episodes, longest)
            return found
        for number, item in enumerate(episodes):
            try:
                seen = _checked(problem, table, item)
            except InvalidData as cause:
                raise InvalidData(f"history[{number}]{cause}") from None
            found.sums.add(mdp, seen)
            for rail in rails:
                measured = rail.of(seen)
                if measured is not None:
                    ends = rail.promise.of_episode(1.0, longest)
                    found.guarded[rail.name].add(rail, measured, mdp.discount, ends)
        return found

    def _take_all(self, problem: Any, table: Any, many: Columns, longest: float) -> None:
        """Every episode, column by column."""
        _check_all(problem, table, many)
        self.sums.add_all(problem.mdp, many)
        for rail in problem.rails:
            measured = ~np.isnan(many.constraints[rail.name][many.offsets[:-1]])
            if measured.any():
                part = many if measured.all() else many.select(measured)
                ends = rail.promise.of_episode(1.0, longest)
                self.guarded[rail.name].add_all(rail, part, problem.mdp.discount, ends)


def _check_all(problem: Any, table: Any, many: Columns) -> None:
    """Refuse what the baseline cannot have done, in the words of `_checked`."""

    def look(numbers: Any) -> None:
        for number in numbers:
            try:
                _checked(problem, table, many[number])
            except InvalidData as cause:
                raise InvalidData(f"{_called(many, number)}{cause}") from None

    if len(many):
        look([0])  # the names of guardrails
        look(bulk.suspects(problem.mdp, many))
        look(bulk.unpromised(problem, many))
        look(bulk.untypical(many, table[many.steps, many.states, many.actions]))
    for rail in problem.rails:
        if rail.learned:
            look(bulk.episodes_of(many, np.isnan(many.constraints[rail.name]))[:1])
    if not many.complete.all():
        number = int(np.argmin(many.complete))
        raise InvalidData(f"{_called(many, number)} was cut off; history must hold whole episodes")


def _called(many: Columns, number: int) -> str:
    """What messages call an episode: as its log does, if it says."""
    called = getattr(many, "called", None)
    return f"history[{number}]" if called is None else f"episode {called(number)}"


def _checked(problem: Any, table: Any, item: Any) -> Episode:
    """The episode; one that the baseline cannot have done is refused: its value is learned from history."""
    if not isinstance(item, Episode):
        raise InvalidData(
            f" is a {type(item).__name__}; it must be a saver.Episode(states, actions, rewards, constraints)"
        )
    try:
        seen = check_told(problem, item)
        likely = table[np.arange(len(seen)), seen.states, seen.actions]
        only = "give the baseline's episodes, all of them and no others"
        check_possible(problem.mdp, seen, likely, "the baseline", only)
        check_propensities("the baseline", seen, likely)
        for rail in problem.rails:
            if rail.learned and rail.of(seen) is None:
                raise InvalidData(
                    f"constraints[{rail.name!r}] is None, and the baseline's value is learned from history: "
                    "episodes must not be left out for what they were; give the value, or leave out all "
                    "history"
                )
    except InvalidData as cause:
        raise InvalidData(f": {cause}") from None
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
    for moments in (history.sums.rewards, *(one.seen for one in history.guarded.values())):
        if len(bad := np.argwhere(moments.counts < 0)):
            s, a = bad[0]
            raise InvalidData(
                f"history has {moments.counts[s, a]} samples of {(int(s), int(a))}: it was damaged"
            )
    if theirs != shape or set(history.guarded) != names:
        raise InvalidData(
            f"history has (states, actions) = {theirs} and guards {', '.join(history.guarded)}; the problem "
            f"has {shape} and guards {', '.join(sorted(names))}: use saver.History.of(problem, episodes)"
        )
    if history.made_for != made_for(problem):
        raise InvalidData(
            "history was logged under another model (its start, steps, discount or names), baseline or "
            "promise than the problem has; make it anew by saver.History.of(problem, episodes), or leave it "
            "out: history=None"
        )
    for rail in problem.rails:
        count = history.guarded[rail.name].count
        if rail.learned and count < history.episodes:
            raise InvalidData(
                f"history has {count} of {history.episodes} episodes with {rail.name!r}, whose baseline "
                "value is learned from it: give the value, or leave out the history"
            )
