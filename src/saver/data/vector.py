"""Many trials in an environment, one after the other or in a vector of environments at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver.collect import Campaign, Trial
from saver.data.copies import Copies, Single
from saver.data.gym import gymnasium, opened
from saver.data.playing import Record, Table
from saver.data.watching import Guardrails, check_guardrails, check_names, names_in, unguarded
from saver.problem import checks
from saver.problem.bellman import by_step


def play_many(
    env: Any,
    campaign: Campaign,
    *,
    guardrails: Guardrails = None,
    episodes: int | None = None,
    seed: int | None = None,
) -> int:
    """Ask, play and tell until the campaign is done, or so many `episodes` were asked; how many were told.

    A `gymnasium.vector` environment keeps as many trials out as it has copies, whatever its autoreset mode;
    a trial is told when it ends, and another is asked for. What the environment cuts off is told as that.
    When no more are to be asked, the copies that have ended go on with the baseline's likeliest actions until
    the last trial has: those steps are told to nobody. If something fails on the way, what was out is in
    `campaign.outstanding`.

    Args:
        env: an environment, the id of one, or a vector of them.
        campaign: who asks.
        guardrails: as in `play`.
        episodes: the most to ask for.
        seed: of the first reset.
    """
    check_guardrails(guardrails)
    checks.kind("campaign", campaign, Campaign)
    check_names(guardrails, [rail.name for rail in campaign.problem.rails])
    if episodes is not None:
        checks.whole("episodes", episodes, 0)
    with opened(env, vector=True) as found:
        several = isinstance(found, gymnasium("vector").VectorEnv)
        copies = Copies(found, names_in(guardrails)) if several else Single(found)
        return Desk(campaign, copies, guardrails, episodes).run(seed)


class Desk:
    """Who sits at it asks for trials, hands each to a copy that is free, and tells what came back."""

    def __init__(self, campaign: Campaign, copies: Any, guardrails: Guardrails, episodes: int | None) -> None:
        self.campaign, self.copies, self.guardrails = campaign, copies, guardrails
        self.left = float("inf") if episodes is None else episodes
        self.told = 0
        self.table = Table(copies.observation_space, copies.action_space)
        self.records: list[Record | None] = [None] * copies.count
        self.idle = [0] * copies.count  # steps since a copy without a trial was started

    def run(self, seed: int | None) -> int:
        """All of them."""
        if self.left <= 0 or self.campaign.done:
            return 0
        seen = self.copies.reset(seed)
        while True:
            for i, observation in enumerate(seen):
                if self.records[i] is None and observation is not None and self._more():
                    self.records[i] = self._ask(observation)
            if not any(self.records) and not self._more():
                return self.told
            seen = self._turn(seen)

    def _more(self) -> bool:
        return self.left > 0 and not self.campaign.done

    def _ask(self, observation: Any) -> Record:
        trial: Trial = self.campaign.ask()
        try:
            self.table.fits(trial, self.copies.longest)
            record = Record(self.table, trial, observation, self.guardrails)
        except Exception:
            self.campaign.cancel(trial)  # it has not started
            raise
        self.left -= 1
        return record

    def _turn(self, seen: list[Any]) -> list[Any]:
        """One step of every copy; where each stands then, None where it is about to be reset."""
        actions = [self._action(i, where) for i, where in enumerate(seen)]
        steps = self.copies.step(actions)
        ended = [False] * len(steps)
        for i, step in enumerate(steps):
            record = self.records[i]
            if record is not None and step is not None:
                record.add(*step)
                if record.seen[-1] is None:
                    raise unguarded()
                if record.over:
                    self.campaign.tell(record.trial, record.episode(), complete=not record.cut)
                    self.told += 1
                    self.records[i], ended[i] = None, True
        standing: list[Any] = self.copies.after(ended)
        return standing

    def _action(self, i: int, where: Any) -> Any:
        """What a copy does: its trial's action, else the baseline's likeliest."""
        record, mdp = self.records[i], self.campaign.problem.mdp
        if record is not None:
            self.idle[i] = 0
            return record.action
        if where is None:  # a copy that is about to be reset does not read it
            self.idle[i] = 0
            return self.table.actions.element(0)
        rows = by_step(mdp, self.campaign.problem.baseline)[min(self.idle[i], mdp.horizon - 1)]
        self.idle[i] += 1
        return self.table.actions.element(int(np.argmax(rows[self.table.states.number(where)])))
