"""A ledger with its book, so that tests of the certificate read like the certificate."""

from __future__ import annotations

import json

import numpy as np

from saver import Episode
from saver.problem.codec import pack, unpack
from saver.safety import GATES, Terms
from saver.safety.certified import Certified


class Kept:
    """Asks, tells and abandons in one book; its numbers and the ledger's are attributes."""

    def __init__(self, problem, episodes, stage, sure=True, kind=Certified):
        self.ledger = kind(Terms(problem, episodes, stage, sure))
        self.book = self.ledger.open()
        self.safe = stage.play(problem.baseline)

    def __getattr__(self, name):
        return getattr(self.book if hasattr(self.book, name) else self.ledger, name)

    def ask(self, number, play):
        """`play` is None for the baseline."""
        ticket = self.ledger.freeze(self.book, play or self.safe, play is None)
        self.ledger.ask(self.book, number, ticket)

    def tell(self, number, play, episode):
        self.ledger.tell(self.book, number, play or self.safe, episode)

    def abandon(self, number, play=None):
        self.ledger.abandon(self.book, number)

    def passes(self, gate, play):
        return GATES[gate](self.ledger, self.book, play)

    def again(self):
        """The same from plain data."""
        other = Kept.__new__(Kept)
        other.ledger, other.safe = self.ledger, self.safe
        other.book = unpack(json.loads(json.dumps(self.plain())))
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

    def interval(self):
        return self.ledger.interval(self.book)


def observed(states, actions, constraints):
    """An episode of which only the constraints matter."""
    return Episode(states, actions, np.zeros(len(states)), constraints)
