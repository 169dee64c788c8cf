"""The loop "ask, play, tell, count the true budget"; feedback is lost or comes late by declared rules."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saver.collect import Campaign, Trial
from saver.errors import AssumptionWarning
from saver.problem.episode import Episode
from saver.simulator.feedback import Feedback
from saver.simulator.player import Player
from saver.simulator.truth import Account, Truth

HIGH = 1.5  # standard deviations: where a sum of noise looks high
ROUND = 1e-9  # of a quota


@dataclass(eq=False)
class Letter:
    """A trial that is out, and what is known of it here."""

    trial: Trial  # the trial
    worth: float  # what the promise counts it as
    learned: bool = False  # whether the baseline's value is
    episode: Episode | None = None  # what happened, once it has started
    gained: float = math.nan  # sum discount^t C_t
    steps: int | None = None  # after so many steps it is cut off; None where all is told
    start: int | None = None  # where it starts, once somebody has looked
    promises: float = 0.0  # how much more than it is worth it will earn, by what was seen then

    @property
    def noise(self) -> float:
        """By how much it seems better than it is; a known baseline's hides nothing.

        One that is learned seems better the worse the baseline looks: what is required follows.
        """
        by = self.gained - self.worth
        return by if self.trial.kind != "baseline" else -by * self.learned


class Post:
    """Sends trials out, and tells, abandons and cancels them; the account hears of everything."""

    def __init__(
        self, feedback: Feedback, campaign: Campaign, player: Player, account: Account,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.feedback, self.campaign, self.player = feedback, campaign, player
        self.account, self.rng = account, rng
        self.waiting: list[Letter] = []  # in the order of asking
        self.lost = self.settled = self.vetoed = 0

    def send(self, trial: Trial) -> Episode | None:
        """A trial goes out; what happened in it, where it has started."""
        learned = self.campaign.problem.rails[0].learned
        letter, rules = Letter(trial, self.account.ask(trial), learned), self.feedback
        if trial.number <= rules.straggle:
            return None
        if rules.starts:
            self._look(letter)
        if rules.veto > 0.0 and rules.out == 0 and self._is_vetoed(letter):
            self._cancel(letter, unseen=False)
            return None
        idle = rules.out + 1 if rules.veto > 0.0 else int(rules.cancel * (rules.out + 1))
        if rules.out == 0 or len(self.waiting) >= idle:
            self._start(letter)
        self.waiting.append(letter)
        self.settle(rules.out)
        return letter.episode

    def settle(self, most: int = 0) -> None:
        """Let trials come back until at most so many wait."""
        if self.feedback.back == "held" and len(self.waiting) > most:
            self._start_or_cancel()
            self._choose()
            return
        while len(self.waiting) > most:
            self._one()

    def _one(self) -> None:
        """One that waits is lost, or comes back."""
        chosen = self.next()
        if self.feedback.which == "random":
            lost = self._chance(self.feedback.lose)
        elif lost := self._quota(1) > 0:
            chosen = min(self.waiting, key=self.rank)
        self.waiting.remove(chosen)
        self._abandon(chosen) if lost else self._tell(chosen)

    def next(self) -> Letter:
        """Who comes back next."""
        back = self.feedback.back
        if back == "best":
            return max(self.waiting, key=lambda letter: letter.gained)
        if back == "random":
            return self.waiting[int(self.rng.integers(len(self.waiting)))]
        return self.waiting[-1 if back == "newest" else 0]

    def rank(self, letter: Letter) -> float:
        """Lowest is whom one would hide."""
        which = self.feedback.which
        return letter.promises if which == "start" else letter.gained if which == "outcome" else letter.noise

    def _choose(self) -> None:
        """Of all that wait some are lost, and then all others told."""
        if self.feedback.which == "random":
            lost = [letter for letter in self.waiting if self._chance(self.feedback.lose)]
        else:
            lost = sorted(self.waiting, key=self.rank)[: self._quota(len(self.waiting))]
        told = [letter for letter in self.waiting if letter not in lost]
        if not self.feedback.cancel:
            told.sort(key=lambda letter: letter.gained, reverse=True)
        self.waiting = []
        for letter in lost:
            self._abandon(letter)
        for letter in told:
            self._tell(letter)

    def _start_or_cancel(self) -> None:
        """Start those that have not, the newest first, until without the rest the sum looks high.

        Where some are vetoed, by where they start, all others start.
        """
        for letter in [letter for letter in self.waiting if self._is_vetoed(letter)]:
            self.waiting.remove(letter)
            self._cancel(letter, unseen=False)
        seen = [letter for letter in self.waiting if letter.episode is not None]
        for letter in reversed([letter for letter in self.waiting if letter.episode is None]):
            if self.feedback.cancel > 0.0 and self.peak(seen) > HIGH:
                self.waiting.remove(letter)
                self._cancel(letter, unseen=True)
            else:
                self._start(letter)
                seen.insert(0, letter)

    def _look(self, letter: Letter) -> None:
        """Where it will start, what it will do there, and what that promises."""
        truth, trial = self.account.truth, letter.trial
        letter.start = start = self.player.begin()
        action = trial.act(0, start)
        safe = trial.kind == "baseline"
        if safe and not letter.learned:
            return
        promised = truth.ahead(trial.follows, start, action) - letter.worth
        letter.promises = -promised if safe else promised

    def _is_vetoed(self, letter: Letter) -> bool:
        rules, asked = self.feedback, letter.trial.number
        over = rules.vetoes and asked > rules.vetoes
        return not over and letter.promises < 0.0 and self.vetoed < int(rules.veto * asked)

    def _cancel(self, letter: Letter, unseen: bool) -> None:
        with warnings.catch_warnings(action="ignore", category=AssumptionWarning):  # the rules choose
            self.campaign.cancel(letter.trial, unseen=unseen)
        self.account.cancel(letter.trial.number)
        self.vetoed += not unseen

    @staticmethod
    def peak(letters: Sequence[Letter]) -> float:
        """The most by which the told sum will have grown when these are told one after the other."""
        noise = np.array([letter.noise for letter in letters if letter.noise])
        return float(np.max(np.cumsum(noise) / np.sqrt(np.cumsum(noise**2)), initial=-math.inf))

    def _start(self, letter: Letter) -> None:
        episode = self.player.run(letter.trial, letter.start)
        weights = self.campaign.problem.mdp.discount ** np.arange(len(episode))
        letter.episode, letter.gained = episode, float(weights @ self._guarded(episode))
        if len(episode) > 1 and self._chance(self.feedback.cut):
            letter.steps = self._steps(episode)

    def _steps(self, episode: Episode) -> int:
        """After how many steps an episode is cut off: anywhere, or where it has looked best."""
        if self.feedback.which == "random":
            return int(self.rng.integers(1, len(episode)))
        fared = self._guarded(episode)
        if self.feedback.which == "sum":
            fared = fared - self.account.truth.means[0][episode.states, episode.actions]
        return int(np.argmax(np.cumsum(fared)[:-1])) + 1

    def _guarded(self, episode: Episode) -> Any:
        """What somebody who hides looks at: the first guardrail's observations, more is better."""
        seen = self.campaign.problem.rails[0].of(episode)
        assert seen is not None
        return seen.constraints

    def _tell(self, letter: Letter) -> None:
        episode, steps = letter.episode, letter.steps
        assert episode is not None
        if steps is not None:
            episode = episode.until(steps)
        self.campaign.tell(letter.trial, episode, complete=steps is None)
        self.account.tell(letter.trial.number)
        self.settled += 1

    def _abandon(self, letter: Letter) -> None:
        with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
            self.campaign.abandon(letter.trial, ran=self.feedback.ran)
        self.account.abandon(letter.trial.number, ran=self.feedback.ran is True)
        self.settled += 1
        self.lost += 1

    def _quota(self, more: int) -> int:
        """How many may be lost now if so many more are settled."""
        return max(0, int(self.feedback.lose * (self.settled + more) + ROUND) - self.lost)

    def _chance(self, share: float) -> bool:
        return share > 0.0 and bool(self.rng.random() < share)


# -- the loop ------------------------------------------------------------------------------------------------


class Round(NamedTuple):
    """One trial of a simulated campaign, and the true account after it."""

    trial: Trial
    episode: Episode | None  # None where it has not started, or never comes back
    account: Account


def rounds(
    campaign: Campaign, player: Player, truth: Truth, feedback: Feedback | None = None,
    seed: int | np.random.SeedSequence = 0,
) -> Iterator[Round]:  # fmt: skip
    """All trials of a campaign, each told at once, or by the rules of `feedback`.

    Where trials were cancelled others are asked; when the last was, all that wait are settled.
    """
    account = Account(truth, campaign.collector.certified, campaign.order)
    if feedback is None:
        for _ in range(campaign.episodes):
            trial = campaign.ask()
            account.add(trial)
            episode = player.run(trial)
            campaign.tell(trial, episode)
            yield Round(trial, episode, account)
        return
    post = Post(feedback, campaign, player, account, np.random.default_rng(seed))
    while account.episodes < campaign.episodes:
        trial = campaign.ask()
        seen = post.send(trial)
        if account.episodes == campaign.episodes:
            post.settle()
        yield Round(trial, seen, account)
