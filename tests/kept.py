"""A ledger with its book, so that tests of the certificate read like it, and problems for a pencil."""

from __future__ import annotations

import json

import numpy as np

from saver import Episode, Mdp, Problem, SubGaussian
from saver.play import Stage
from saver.problem.codec import pack, unpack
from saver.problem.history import Logged
from saver.problem.moments import Moments
from saver.safety import GATES, Terms
from saver.safety.certified import Certified


class Kept:
    """Asks, tells and abandons in one book; its numbers, its sums and the ledger's are attributes."""

    def __init__(self, problem, episodes, stage=None, kind=Certified, **declared):
        stage = stage or Stage(problem.mdp)
        self.ledger = kind(Terms(problem, episodes, stage, **declared))
        self.book = self.ledger.open()
        self.safe, self.plays = stage.play(problem.baseline), {}

    def __getattr__(self, name):
        homes = (self.book, getattr(self.book, "first", None), self.ledger)
        return getattr(next(home for home in homes if hasattr(home, name)), name)

    def learn(self, episodes):
        """Logged episodes of the baseline, all at once."""
        problem, rail = self.ledger.problem, self.ledger.rail
        mdp, shape = problem.mdp, (problem.mdp.states, problem.mdp.actions)
        logged = Logged(Moments.empty(shape), np.zeros(shape))
        ends = rail.promise.of_episode(1.0, sum(mdp.discount**t for t in range(mdp.horizon)))
        for episode in episodes:
            logged.add(episode, episode.constraints, mdp.discount, ends)
        self.ledger.learn(self.book, logged)

    def ask(self, number, play, believed=None):
        """`play` is None for the baseline."""
        self.plays[number] = play or self.safe
        ticket = self.ledger.freeze(self.book, self.plays[number], play is None, believed)
        self.ledger.ask(self.book, number, ticket, self.plays[number])

    def tell(self, number, play, episode, complete=True):
        self.ledger.tell(self.book, number, play or self.safe, episode, complete)

    def abandon(self, number, play=None, ran=False):
        self.ledger.abandon(self.book, number, play or self.plays[number], ran)

    def cancel(self, number, unseen=True):
        self.ledger.cancel(self.book, number, unseen)

    def passes(self, gate, play):
        return GATES[gate](self.ledger, self.book, play)

    def again(self):
        """The same from plain data."""
        other = Kept.__new__(Kept)
        other.ledger, other.safe, other.plays = self.ledger, self.safe, dict(self.plays)
        other.book = unpack(json.loads(json.dumps(self.plain())))
        for number in other.book.out:
            other.ledger.resume(other.book, number, self.plays[number])
        return other

    def plain(self):
        return pack(self.book, small=True)

    def lower(self, play):
        return self.ledger.lower(self.book, play)

    def earned(self):
        return self.ledger.earned(self.book)

    def budget(self):
        return self.ledger.budget(self.book)

    def pace(self, done, baseline, remaining):
        return self.ledger.pace(self.book, done, baseline, remaining)

    def ends(self):
        return self.ledger.ends(self.book)

    def middle(self):
        return self.ledger.middle(self.book)


def observed(states, actions, constraints):
    """An episode of which only the constraints matter."""
    return Episode(states, actions, np.zeros(len(states)), constraints)


# -- problems small enough for a pencil ----------------------------------------------------------------------

DELTA, SCALE, K = 0.05, 0.1, 20
MDP = Mdp(np.zeros((1, 2, 1)), horizon=1)
FIRST, SECOND = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
GIVEN = {"alpha": 0.2, "baseline_value": 0.5, "constraint": SubGaussian(SCALE), "delta": DELTA}
OTHER = np.array([[0.0, 1.0], [0.0, 1.0]])  # action 1 in both states


def problem(**options):
    """One state, two actions."""
    return Problem(MDP, [[0.5, 0.5]], FIRST, **{**GIVEN, **options})


def two_steps(discount=0.5, **options):
    """Two states in a row, two actions that lead to the same place."""
    mdp = Mdp.from_edges([(0, 0, 1, 1.0), (0, 1, 1, 1.0)], 2, 2, 2, discount=discount)
    given = {**GIVEN, "baseline_value": 0.75, **options}
    return Problem(mdp, np.full((2, 2), 0.5), np.array([[1.0, 0], [1, 0]]), **given)


def two_starts(**options):
    """One step, from state 0 in a quarter of the episodes, else from state 1."""
    mdp = Mdp(np.zeros((2, 2, 2)), 1, start=[0.25, 0.75])
    return Problem(mdp, np.full((2, 2), 0.5), np.eye(2)[[0, 0]], **{**GIVEN, **options})
