"""What a campaign that begins with a log will come to, in plain lines: the first screen of a diagnosis."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from saver.collect import Campaign
from saver.collect.answers import Comparison
from saver.collect.why import Why
from saver.problem import Problem
from saver.theory.rehearsal import forecast

NARROW = 80  # characters of a line
LITTLE = 0.9  # of the log's half-width: an interval that is left as wide has hardly changed
COLLECTOR = "saver-opt"


@dataclass(frozen=True)
class Outlook:
    """What the log alone says, and what so many episodes more will add.

    Attributes:
        logged: episodes of the log; `episodes` are those to come, with `saver-opt`.
        alone: half the 95 % interval of each target at one look, from the log alone.
        after: the same after the campaign, the mean of those that were played in the world as logged.
        baseline_share: of its episodes, likewise.
        binding: the guardrail that was nearest to its line.
        played: how many campaigns were.
        answers: whether a target is better than the baseline, by the log alone, at one look.
        first: what the campaign would play first, and why.
    """

    logged: int
    episodes: int
    alone: dict[str, float]
    after: dict[str, float]
    baseline_share: float
    binding: str
    played: int
    answers: dict[str, Comparison]
    first: Why

    @classmethod
    def of(cls, problem: Problem, episodes: int) -> Outlook:
        """Play a few campaigns of so many episodes in the world as the log shows it."""
        found = forecast(problem, episodes, COLLECTOR)
        begun = Campaign(problem, COLLECTOR, episodes)
        answers = {name: begun.compare(name, anytime=False) for name in problem.targets}
        after = {name: float(table[:, -1].mean()) for name, table in found.half_widths.items()}
        share = float(found.baseline_share[:, -1].mean())
        whole = found.logged, episodes, found.log_alone, after, share, found.nearest, found.runs
        return cls(*whole, answers, begun.why())

    def report(self) -> str:
        """The first screen: at most 15 lines of 80 characters for one target and one guardrail."""
        fill = textwrap.TextWrapper(NARROW, subsequent_indent="  ", break_long_words=False)
        return "".join(f"{fill.fill(line)}\n" if line else "\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.logged:,} logged episodes, {self.episodes:,} to come, with {COLLECTOR}"
        yield ""
        for name, compared in self.answers.items():
            alone, after = self.alone[name], self.after[name]
            more = f"after {self.episodes:,} episodes +- {_width(after)}"
            yield f"{name}: the log alone gives +- {_width(alone)}, {more}"
            if compared.verdict != "not yet known":
                by, ends = compared.difference.value, compared.difference.interval
                low, high = sorted(abs(end) for end in ends)
                yield (
                    f"  the log already answers: {compared.verdict} than the baseline, by {abs(by):.4g} "
                    f"({low:.4g} to {high:.4g}, at one look)"
                )
            if math.isfinite(alone) and after > LITTLE * alone:
                yield "  these episodes hardly narrow it: ask for more, or for none"
        share = f"about {self.baseline_share:.0%} of the episodes"
        yield f"baseline: {share}; nearest to its line: {self.binding}"
        yield from str(self.first).splitlines()
        yield ""
        yield f"Foreseen by {self.played:,} campaigns in the world as the log shows it."
        yield "`saver rehearse` plays it in worlds that the log leaves open; --theory says more."


def _width(half: float) -> str:
    return f"{half:.3g}" if math.isfinite(half) else "any number"
