"""What never changes in a campaign, prepared once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saver._jit import plainly
from saver._types import Floats
from saver.collect.collectors import Collector, find_collector
from saver.collect.events import Trial
from saver.collect.frequencies import FrequencyDesigner
from saver.collect.knowledge import Knowledge, extra, floored
from saver.collect.planning import Designer
from saver.design import coverage
from saver.errors import InvalidProblem
from saver.estimate.anytime import Anytime
from saver.estimate.interval import DECLARE
from saver.kernels.believing import believe
from saver.play import Play, stage_of
from saver.play.policy import Policy
from saver.problem import checks
from saver.problem.bellman import VALUE
from saver.problem.codec import fingerprint, portable
from saver.problem.guardrail import Rail
from saver.problem.moments import Moments
from saver.problem.statement import Problem, is_small
from saver.safety import LOSSES, ORDERS, Ledger, Terms, ledger_for

USED, PLUGIN = "used", "plugin"  # the ledger behind the gate, and the one that every campaign keeps beside it


class RailBooks(NamedTuple):
    """The ledgers of one guardrail, by the names of their books; behind the gate there may be none."""

    rail: Rail
    used: str | None
    plugin: str


def book_of(target: str) -> str:
    """The name of the book that intervals at all times of a target are made of."""
    return f"rewards {target}"


class Setup:
    """A problem, a collector and a number of episodes, with all that can be known before the first."""

    def __init__(
        self, problem: Problem, collector: Collector | str, episodes: int,
        knowledge: Knowledge | None = None, losses: str = "hostile", order: str = "any",
        until: Precise | None = None, shown: Any = None,
    ) -> None:  # fmt: skip
        checks.kind("problem", problem, Problem)
        self.problem, self.collector, self.small = problem, find_collector(collector), is_small(problem)
        self.certified = self.collector.certified
        self.episodes = checks.whole("episodes", episodes, 1)
        self.losses = checks.choice("losses", losses, LOSSES)
        self.order = checks.choice("order", order, ORDERS)
        if until is not None:
            checks.kind("until", until, Precise)
        if knowledge is not None:
            checks.kind("knowledge", knowledge, Knowledge)
        self.until, self.shown = until, shown
        self._check_asked()
        with plainly(self.small):
            self._prepare(knowledge or Knowledge())

    def _prepare(self, knowledge: Knowledge) -> None:
        """What is made of all that, once."""
        problem = self.problem
        plans = Designer if problem.mdp.known else FrequencyDesigner
        self.designer = plans(problem, self.collector, self.episodes)
        self.knowledge = knowledge.limited(problem, self.collector.knows)
        self.stage = stage_of(problem.mdp)
        terms = Terms(problem, self.episodes, self.stage, self.losses, self.order, shown=self.shown)
        self.rail_books = tuple(self._books_of(place, rail) for place, rail in enumerate(problem.rails))
        self.ledgers: dict[str, Ledger] = {}
        self.behind_gate: dict[str, Ledger] = {}  # those behind the gate
        for rail, used, plugin in self.rail_books:
            own = terms.of(rail)
            self.ledgers[plugin] = ledger_for("plugin", own)
            if used is not None:
                self.ledgers[used] = self.behind_gate[used] = ledger_for(self.collector.ledger, own)
        self.rail_of = {book: row.rail for row in self.rail_books for book in row[1:] if book is not None}
        self.anytime: dict[str, Anytime] = {}  # by target
        if problem.reward is not None and problem.mdp.known:
            self.anytime = {name: Anytime(terms, name) for name in problem.targets}
        books = {book_of(name): keeper for name, keeper in self.anytime.items()}
        self.keepers: dict[str, Any] = {**self.ledgers, **books}  # all that events are told to
        self.heard = [(name, keeper, self.rail_of.get(name)) for name, keeper in self.keepers.items()]
        self.baseline = self.stage.grid.policy(problem.baseline)
        self.baseline_play = self.stage.play(self.baseline)
        self.rewards = problem.rewards
        self.offsets = {by_step: self.head_start(by_step) for by_step in (False, True)}

    def _check_asked(self) -> None:
        """Importance weights are made for one value."""
        problem = self.problem
        if self.collector.estimate == "importance" and (len(problem.targets), problem.estimand) != (1, VALUE):
            raise InvalidProblem(
                f"the collector's estimate is 'importance', which knows the value of one target; the problem "
                f"asks for a {problem.estimand} of {len(problem.targets)}: use estimate='certainty'"
            )

    def _books_of(self, place: int, rail: Rail) -> RailBooks:
        """The books of a guardrail: of the first they are named by their kind alone."""
        end = f" {rail.name}" if place else ""
        return RailBooks(rail, None if self.collector.ledger == "none" else USED + end, PLUGIN + end)

    def promised(self, trial: Trial) -> Play:
        """What the promise counts a trial as."""
        counted = trial.draws if self.certified and trial.kind != "baseline" else None
        return self.stage.promised(trial.follows, counted, self.baseline_play)

    @property
    def bets(self) -> bool:
        """Whether some certified ledger bets on returns: `saver.kernels.bounds.capital`."""
        return self.certified and any(getattr(used, "bets", False) for used in self.behind_gate.values())

    @property
    def counts_parts(self) -> bool:
        """Whether the estimate counts an episode that was cut off, until then.

        Its steps are fair samples if the cut did not depend on what was not seen. A return is not, without
        its end.
        """
        return self.losses == "random" and self.collector.estimate != "importance"

    def weighs(self, trial: Trial) -> bool:
        """Whether the estimate weighs a trial by its propensities."""
        return self.collector.estimate == "importance" and trial.kind != "baseline"

    @cached_property
    def known(self) -> tuple[Policy, ...]:
        """The policies of which a log shows what they are worth."""
        tables = () if self.shown is None else self.shown.policies
        return tuple(self.stage.grid.policy(table) for table in tables)

    @property
    def used(self) -> Ledger | None:
        """The ledger behind the gate, of the first guardrail."""
        return self.ledgers.get(USED)

    def head_start(self, by_step: bool) -> Floats:
        """What the tracker adds to the visits of each row, by node or by state, [n, A].

        Nothing where it is the paper's, and 1 where a model is deterministic. Where paths are random most
        nodes are met a few times only, and 1 would give the first visit of every node to its likeliest
        action. The tracker takes actions in the order of the times (k + e) / b(a), k = 0, 1, ...; with e
        uniform in (0, 1) action a has b(a) t of them up to any time t, on average. So each node has an e of
        its own for each action, drawn once and always the same.
        """
        mdp = self.problem.mdp
        rows = len(self.stage.nodes.state) if by_step else mdp.states
        if self.collector.track == "all":
            return np.zeros((rows, mdp.actions))
        if self.stage.deterministic:
            return np.ones((rows, mdp.actions))
        return np.random.default_rng(int(by_step)).random((rows, mdp.actions))

    @property
    def explorations(self) -> int:
        """How many episodes explore: non-baseline ones, or all of the first if by the clock."""
        return 0 if self.collector.explore == "none" else math.isqrt(self.episodes)

    @property
    def explores_in_turn(self) -> bool:
        """Whether the exploration is tracked, not drawn."""
        return self.stage.deterministic and self.collector.track != "sample"

    def exploration(self) -> Policy:
        """What the first episodes play: for "coverage" a program is solved, always in the same way."""
        mdp = self.problem.mdp
        table = coverage(mdp).policy if self.collector.explore == "coverage" else mdp.uniform
        return self.stage.grid.policy(table)

    def variance(self, rewards: Moments) -> Floats:
        """(sample deviation + bonus width)^2, or the truth where it is known; floored."""
        if self.knowledge.variance is not None:
            return floored(self.knowledge.variance)
        believed, more = np.empty(rewards.mean.shape), extra(self.problem, self.collector, self.episodes)
        believe(rewards.counts, rewards.squares, more, float(self.collector.caution), believed)
        return floored(believed)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of problem and collector."""
        return fingerprint_of(self.problem, self.collector)


def fingerprint_of(problem: Problem, collector: Collector | str) -> str:
    """A hash of problem and collector; a design that is a function counts as such, whatever it does."""
    checks.kind("problem", problem, Problem)
    return fingerprint(problem, find_collector(collector).described())


# -- when a campaign has answered ----------------------------------------------------------------------------


@portable("precise")
@dataclass(frozen=True)
class Precise:
    """Stop as soon as half the interval at all times is at most `half_width`, of every target.

    It needs a promise about rewards, `Problem(reward=...)`. Where transitions are known too, that interval
    holds at all times, and so at the moment that it chooses. Of a `saver.Unknown` it does in the limit of
    many episodes, and there is none before the start of `saver.estimate.asymptotic`, 1,183 at level .95.
    """

    half_width: float
    level: float = 0.95

    def __post_init__(self) -> None:
        width = checks.between("half_width", self.half_width, 0.0, math.inf, closed=(False, False))
        object.__setattr__(self, "half_width", width)
        level = checks.between("level", self.level, 0.0, 1.0, closed=(False, False))
        object.__setattr__(self, "level", level)

    def __str__(self) -> str:
        return f"a half-width of {self.half_width:g} at level {self.level:g}"


def check_stopping(problem: Problem, until: Precise | None) -> None:
    """Refuse to stop a new campaign by an interval that is right in the limit only.

    Its moment would be one at which rewards seem to vary little, and what is rarer than one in as many
    samples as there are would never be seen.
    """
    if until is not None and problem.reward is None:
        raise InvalidProblem(
            f"until is {until}, and nothing is declared about rewards, so that no interval holds at the "
            f"moment that it chooses: {DECLARE}"
        )
