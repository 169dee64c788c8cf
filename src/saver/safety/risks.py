"""What trials that are out, or lost, may cost and hide: of these nobody knows whether they ran.

In any order each counts with min(0, low - required), low the largest lower value so far. Where trials start
in the order of asking, those out have run up to some one: the least over these (docs/proof/losses.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._types import Floats
from saver.safety.argument import Argument
from saver.safety.entries import CertifiedBook, Gone, Line


class Risks(Argument):
    """The part of the certified ledger that reckons with what was not told."""

    def away(self, book: CertifiedBook) -> list[Line]:
        """The trials that are out."""
        return [book.lines[number] for number in book.out]

    def ends(self, book: CertifiedBook) -> tuple[Floats, Floats]:
        """The box now: lower and upper ends."""
        if book.now is None:
            book.now = self.box_of(book.first, ())
            if book.every is not None:
                (low, high), (other, above) = book.now, self.box_of(book.every, self.away(book))
                lower = np.maximum(low, other)
                book.now = lower, np.maximum(lower, np.minimum(high, above))
        lower, upper = book.now
        return lower, upper

    def middle(self, book: CertifiedBook) -> tuple[Floats, Floats]:
        """Midpoints and half-lengths of the box now."""
        lower, upper = self.ends(book)
        return (lower + upper) / 2, (upper - lower) / 2

    def group(self, book: CertifiedBook, line: Line, number: int) -> Gone:
        """Where lost trials of the same policy are counted."""
        alike = (gone for gone in book.gone if not gone.number and gone.way.same_as(line.way))
        found: Gone | None = None if number else next(alike, None)
        if found is None:
            found = Gone(line.way, line.low, number=number, designed=line.designed)
            book.gone.append(found)
        return found

    def gone_at(self, book: CertifiedBook, value: float) -> float:
        """What lost designed trials have added at least, if V0 is `value`."""
        required, counted = self.rail.required_at(value), [gone for gone in book.gone if not gone.number]
        return float(sum(g.may * self.at_risk(g.low, value) + g.ran * (g.low - required) for g in counted))

    def settled_at(self, book: CertifiedBook, value: float) -> float:
        """The part of the trials that are not out."""
        return super().settled_at(book, value) + self.gone_at(book, value)

    def budget_at(self, book: CertifiedBook, value: float) -> float:
        """The believed budget: the least over the sets of trials out that can have run."""
        if self.order == "any":
            away, credit = self.away(book), self.rail.credit_at(value)
            risks = [self.at_risk(line.low, value) if line.designed else min(0.0, credit) for line in away]
            return self.settled_at(book, value) + float(sum(risks))
        total, lowest = 0.0, math.inf
        for number, adds in self._chain(book, value):
            if number > book.started:
                lowest = min(lowest, total)
            total += adds
        return self.settled_at(book, value) + min(lowest, total)

    def spendable_at(self, book: CertifiedBook, value: float) -> float:
        """The same if one more trial runs: where they start in order, all before it have."""
        if self.order == "any":
            return self.budget_at(book, value)
        return self.settled_at(book, value) + sum(adds for _, adds in self._chain(book, value))

    def _chain(self, book: CertifiedBook, value: float) -> list[tuple[int, float]]:
        """Trials that may have run, in order, and what each adds if it did."""
        required, credit = self.rail.required_at(value), self.rail.credit_at(value)
        return [
            (number, line.low - required if line.designed else credit)
            for number, line in sorted(self.maybe(book).items())
        ]

    def maybe(self, book: CertifiedBook) -> dict[int, Any]:
        """Trials of which nobody knows whether they ran, where they start in order."""
        found: dict[int, Any] = {number: book.lines[number] for number in book.out}
        return found | {gone.number: gone for gone in book.gone if gone.number}
