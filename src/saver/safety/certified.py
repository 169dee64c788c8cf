"""The certified ledger: what was observed, minus a time-uniform boundary.

With probability at least 1 - delta, for all k at once, the true budget is at least the one believed here. The
argument is in order of asking, so it does not matter when, in which order or whether trials are told.

1. Box: every constraint mean lies in [m - h, m + h] (`widths.Box`).
2. Control variate: X = sum discount^t C_t - (sum discount^t m(s_t,a_t) - V(b; m)) has mean V_c(b).
3. Proxy: v = scale^2 sum discount^2t + E_b[(sum discount^t h)^2].
4. Boundary u(sum v): normal mixture where everything is deterministic (then X = sum discount^t C_t and no box
   is needed), else stitched sub-gamma with scale span / 3, half of the level each for box and boundary.
   Both need each observation to be sub-Gaussian given everything before it.
5. sum of V_c over told trials >= sum of X - u(sum of v), and >= any earlier bound plus the lower values
   V(b; m - h) since, which hold as long as the box does.

A trial j that was given up stays in the sum of v and costs h_j = sqrt(2 v_j l) + scale' l,
l = log(j (j + 1) / delta_h): with probability 1 - delta_h no unseen X_j is further below its mean. A tenth of
delta is set aside for that in advance.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver.problem.checks import Floats
from saver.problem.moments import Moments
from saver.problem.statement import Problem
from saver.safety.boundaries import best_rho, mixture, steepest, stitched
from saver.safety.ledgers import Episode, Ledger
from saver.safety.plays import Play, Stage
from saver.safety.widths import Box

LOST_SHARE = 0.1  # of delta, for trials that are given up


@dataclass(eq=False)
class Ticket:
    """What is frozen when a designed trial is asked, and what came of it."""

    order: int
    v: float
    low: float
    midpoint: Floats | None
    centre: float
    status: str = "out"  # then "told" or "lost"
    x: float = 0.0


class Certified(Ledger):
    """The ledger of the promise. `deterministic` says that no policy, start or transition is random."""

    def __init__(self, problem: Problem, episodes: int, stage: Stage, deterministic: bool) -> None:
        super().__init__(problem, episodes)
        self.stage, self.deterministic = stage, deterministic
        mdp, promise = problem.mdp, problem.constraint
        gammas = mdp.discount ** np.arange(len(mdp.layers))
        span = (promise.ceiling - promise.floor) * float(gammas.sum())
        self.lost_level = LOST_SHARE * problem.delta
        level = problem.delta - self.lost_level
        noise = promise.scale**2 * float(np.sum(gammas**2))
        self.box = None if deterministic else Box(problem, episodes, level / 2)
        self.level = level if deterministic else level / 2
        self.scale = 0.0 if deterministic else span / 3
        self.rho = best_rho(max(noise, 1e-300) * episodes / 2, self.level)
        self.start = noise + (0.0 if deterministic else span**2 / 4)
        self.seen = Moments.empty((mdp.states, mdp.actions))  # for the box: told before the first gap
        self._interval: tuple[Floats, Floats] | None = None
        self.next_seen = 1
        self.early: dict[int, Episode] = {}
        self.sealed = math.inf  # the first trial given up: the box learns from earlier ones only
        self.tickets: dict[int, Ticket] = {}
        self.ordered = 0  # designed trials asked
        self.sum_x = self.sum_v = self.bound = 0.0
        self.last_v, self.last_low = (
            self.start,
            float(promise.floor * gammas.sum()),
        )  # of the last trial asked

    def boundary(self, v: float) -> float:
        """u(v); 0 before the first trial."""
        if v == 0.0:
            return 0.0
        if self.deterministic:
            return mixture(v, self.rho, self.level)
        return stitched(v, self.start, self.scale, self.level)

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """The constants of the boundary: rho, level, start, scale."""
        return self.rho, self.level, self.start, self.scale

    def pace(self, done: int, baseline: int, remaining: int) -> float:
        """What designed episodes should earn on average so that the gate need turn none of them down.

        On average over the `done` ones and the `remaining`: the tracker makes up for the past. More than
        required while the boundary weighs, less when `baseline` episodes have paid for it. The certificate
        does not depend on it.
        """
        problem, required = self.problem, self.problem.required
        debt = required - self.last_low - baseline * (problem.alpha * problem.baseline_value)
        boxed = self.box is not None
        return required + steepest(self.sum_v, self.last_v, done, debt, remaining, boxed, self.numbers)

    def interval(self) -> tuple[Floats, Floats]:
        """The box now."""
        assert self.box is not None
        if self._interval is None:
            self._interval = self.box.around(self.seen.counts, self.seen.mean)
        return self._interval

    def lower(self, play: Play) -> float:
        """V(b; lower ends of the box), which without a box are the floor."""
        if self.box is None:
            return self.floor_value(play)
        m, h = self.interval()
        return max(self.floor_value(play), float(np.sum(play.weights * (m - h))))

    def ask(self, number: int, play: Play | None) -> None:
        """Freeze midpoints, half-lengths and the proxy of a designed trial."""
        super().ask(number, play)
        if play is None:
            return
        self.ordered += 1
        v, midpoint, centre = self.problem.constraint.scale**2 * play.noise, None, 0.0
        if self.box is not None:
            midpoint, h = self.interval()
            v += self.stage.second_moment(play, h)
            centre = float(np.sum(play.weights * midpoint))
        self.last_v, self.last_low = v, self.lower(play)
        self.tickets[number] = Ticket(self.ordered, v, self.last_low, midpoint, centre)

    def tell(self, number: int, play: Play | None, episode: Episode) -> None:
        """Take in what a trial earned."""
        super().tell(number, play, episode)
        if play is not None:
            ticket = self.tickets[number]
            gammas = self.problem.mdp.discount ** np.arange(len(episode.constraints))
            ticket.x = float(np.sum(gammas * episode.constraints))
            if ticket.midpoint is not None:
                guess = float(np.sum(gammas * ticket.midpoint[episode.states, episode.actions]))
                ticket.x -= guess - ticket.centre
            ticket.status = "told"
        if self.box is not None and number < self.sealed:
            self.early[number] = episode
        self._settle()

    def abandon(self, number: int, play: Play | None) -> None:
        """Charge what an unseen outcome may hide; the box learns nothing more from here on."""
        super().abandon(number, play)
        if play is not None:
            ticket = self.tickets[number]
            l = math.log(ticket.order * (ticket.order + 1) / self.lost_level)  # noqa: E741  (as in the proof)
            ticket.x = -(math.sqrt(2.0 * ticket.v * l) + self.scale * l)
            ticket.status, ticket.low = "lost", 0.0
        self.sealed = min(self.sealed, number)
        self.early = {n: told for n, told in self.early.items() if n < self.sealed}
        self._settle()

    def _settle(self) -> None:
        """Fold every trial before the first gap into the sums."""
        while self.tickets:
            first = next(iter(self.tickets))
            ticket = self.tickets[first]
            if ticket.status == "out":
                break
            del self.tickets[first]
            self.sum_x += ticket.x
            self.sum_v += ticket.v
            self.bound = max(self.sum_x - self.boundary(self.sum_v), self.bound + ticket.low)
        while self.next_seen in self.early:
            told = self.early.pop(self.next_seen)
            self.seen.extend(*told)
            self.next_seen += 1
            self._interval = None

    def earned(self) -> float:
        """The bound on trials before the first gap, and lower values of those told after it."""
        return self.bound + sum(t.low for t in self.tickets.values() if t.status == "told")

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return super().state() | {
            "seen": self.seen.state(),
            "next_seen": self.next_seen,
            "early": [
                [number, [np.asarray(column).tolist() for column in told]]
                for number, told in self.early.items()
            ],
            "sealed": None if self.sealed == math.inf else self.sealed,
            "tickets": [
                [
                    number,
                    dataclasses.asdict(t) | {"midpoint": None if t.midpoint is None else t.midpoint.tolist()},
                ]
                for number, t in self.tickets.items()
            ],
            "ordered": self.ordered,
            "sums": [self.sum_x, self.sum_v, self.bound, self.last_v, self.last_low],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Back from plain data."""
        super().load(state)
        self.seen, self.next_seen = Moments.load(state["seen"]), state["next_seen"]
        self.early = {number: Episode(*told) for number, told in state["early"]}
        self.sealed = math.inf if state["sealed"] is None else state["sealed"]
        self.tickets = {number: Ticket(**ticket) for number, ticket in state["tickets"]}
        for ticket in self.tickets.values():
            ticket.midpoint = None if ticket.midpoint is None else np.array(ticket.midpoint)
        self.ordered, self._interval = state["ordered"], None
        self.sum_x, self.sum_v, self.bound, self.last_v, self.last_low = state["sums"]
