"""From a log to policies of which it shows what they are worth at least: step 16 of docs/proof/logs.md.

The first part of the log chooses policies and how to look at them; the second part, which had no say in that,
shows what each is worth. A campaign that plays them, in any shares and for any reason, can be afforded from
its first episode on.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.collect.apply import apply
from saver.collect.decide import statistics
from saver.collect.events import Recalled
from saver.collect.frequencies import FrequencyDesigner, Work
from saver.collect.setup import Setup
from saver.collect.state import State
from saver.errors import AssumptionWarning
from saver.play.foresight import gained
from saver.problem.bellman import by_step, visits
from saver.problem.checks import read_only
from saver.problem.episode import Columns, Episode
from saver.problem.floors import Shown, required_by
from saver.problem.guardrail import Rail
from saver.problem.history import History
from saver.problem.statement import Problem
from saver.safety.modelfree import LOG
from saver.safety.shown import Bet, Walked, Worth, looks, nothing_less, surely

STALE = (
    "what the log shows of policies was made for another requirement, promise or delta than the problem has, "
    "and is left out: make the problem anew from the log (saver.data), or give the episodes as history"
)
FEWEST = 200  # episodes
FIRST = 1 / 3  # of the log
TUNED, USED = 5_000, 100_000  # episodes by which looks are chosen, and that show something, at most
ODD = np.uint64(0x9E3779B97F4A7C15)  # mixes bits
PARTS = (0.0, 1.0, 0.1)  # designs for a campaign that is long, as long as the log, a tenth of that
BLENDS = (0.5, 1.0)  # of a design with the targets: the rest of an action's probability
TAMED = (0.5, 0.2, 0.1)  # of a design, or of the targets, with the baseline
ROUNDS = 4  # of a design that knows what was logged
HOPELESS = 9.0  # baseline episodes that pay for one


class Chosen(NamedTuple):
    """Policies, [L, S, A] each, in words."""

    names: list[str]
    policies: list[Floats]

    def add(self, name: str, policy: Floats) -> None:
        """One more, if it is another."""
        if not any(np.allclose(policy, other, atol=1e-6) for other in self.policies):
            self.names.append(name)
            self.policies.append(np.array(policy))


def recall(problem: Problem, episodes: Iterable[Episode], designs: bool = True) -> History:
    """Logged baseline episodes as sums; where transitions are unknown, with what they show of policies.

    Without `designs` these are the targets and their blends with the baseline: that is much faster.
    """
    if problem.mdp.known or not isinstance(episodes, Iterable):
        return History.of(problem, episodes)
    many = episodes if isinstance(episodes, Columns) else list(episodes)
    history = History.of(problem, many)
    if len(many) < FEWEST:
        return history
    return replace(history, shown=shown(problem, columns(problem, many), designs))


def shown_by(problem: Problem, history: History | None) -> Shown | None:
    """What logged episodes show of policies, if it is about what this problem requires."""
    found = None if history is None else history.shown
    if found is None or problem.mdp.known:
        return None
    if not found.fits(problem):
        warnings.warn(STALE, AssumptionWarning, stacklevel=4)
        return None
    return found


def begun(problem: Problem, collector: str, episodes: int) -> tuple[Setup, State]:
    """A campaign before its first trial, with the problem's history."""
    past = problem.history
    setup = Setup(problem, collector, episodes, shown=shown_by(problem, past))
    state = State.begin(setup)
    return setup, state if past is None else apply(setup, state, Recalled(past))


def columns(problem: Problem, many: Any) -> Columns:
    """Episodes side by side, with the guardrails of a problem by name."""
    if isinstance(many, Columns):
        return many
    told = [one.check(problem.mdp) for one in many]
    lost = [np.full(len(one), np.nan) for one in told]
    return Columns.of(
        one.but(propensities=None, constraints={
            rail.name: none if (column := rail.column(one)) is None else column for rail in problem.rails
        })
        for one, none in zip(told, lost, strict=True)
    )  # fmt: skip


def shown(problem: Problem, many: Columns, designs: bool = True) -> Shown | None:
    """What a log shows; None where it shows nothing that could be played."""
    if any(np.isnan(many.constraints[rail.name]).any() for rail in problem.rails):
        return None  # what was not measured may have been chosen
    n = len(many)
    cut, end = int(FIRST * n), min(n, int(FIRST * n) + USED)
    rows = places_of(many)
    first, second = many.select(rows < cut), many.select((rows >= cut) & (rows < end))
    seen = replace(problem, history=None)
    setup, state = begun(replace(seen, history=History.of(seen, first)), "saver-opt", len(second))
    facts = statistics(setup, state)
    designer = setup.designer
    assert isinstance(designer, FrequencyDesigner)
    work = designer.work(facts, setup.variance(state.sums.rewards))
    chosen = policies(setup, designer, work, facts.counts / max(cut, 1), PARTS if designs else ())
    means = gained(read_only(work.seen), read_only(facts.counts)).reshape(work.seen.shape)
    return Looking(setup, facts.model, means, chosen).at(first, second)


def places_of(many: Columns) -> Any:
    """A place for each episode, drawn by what all of them hold: the order of the file decides nothing."""
    mixed = np.zeros(many.rows, dtype=np.uint64)
    for part in (many.steps, many.states, many.actions, many.rewards, *many.constraints.values()):
        bits = (np.asarray(part, dtype=np.float64) + 0.0).view(np.uint64)
        mixed = (mixed ^ bits) * ODD
        mixed ^= mixed >> np.uint64(29)
    each = np.add.reduceat(mixed, many.offsets[:-1])
    order = np.argsort(each, kind="stable")
    seed = hashlib.blake2b(each[order].tobytes(), digest_size=8).digest()
    places = np.empty(len(many), dtype=np.int64)
    places[order] = np.random.default_rng(int.from_bytes(seed, "little")).permutation(len(many))
    return places


def policies(
    setup: Setup, designer: FrequencyDesigner, work: Work, usual: Floats, parts: Iterable[float]
) -> Chosen:
    """The targets, and designs for campaigns of several lengths, as asked and blended with the targets."""
    problem, mdp, chosen = setup.problem, setup.problem.mdp, Chosen([], [])
    for name, target in problem.targets.items():
        chosen.add(
            "the target" if len(problem.targets) == 1 else f"the target {name!r}", by_step(mdp, target)
        )
    reference = designer.unseen
    base = by_step(mdp, problem.baseline)
    chosen.add("the targets, mixed", reference)
    tamed(chosen, "the target", reference, base)
    required = np.array([rail.required_at(float(np.sum(visits(work.model, problem.baseline) * mean)))
                         for rail, mean in zip(problem.rails, work.seen, strict=True)])  # fmt: skip
    free = np.array([rail.promise.of_episode(1.0, float(np.sum(mdp.factors)))[0] for rail in problem.rails])
    for said, line in (("within the guardrails", required), ("without them", free)):
        for part in parts:
            design = tried_only(offset(designer, work, line, part and usual / part), reference, base)
            name = f"a design {said}" if part == 0.0 else f"a design {said} for {part:.0%} of the log"
            for blend in BLENDS:
                whole = name if blend == 1.0 else f"{blend:.0%} of {name}, else target"
                chosen.add(whole, blend * design + (1.0 - blend) * reference)
            tamed(chosen, name, design, base)
    return chosen


def tamed(chosen: Chosen, name: str, policy: Floats, base: Floats) -> None:
    """Blends with the baseline: of these a log shows the most."""
    for part in TAMED:
        chosen.add(f"{part:.0%} of {name}, else baseline", part * policy + (1.0 - part) * base)


def tried_only(design: Floats, reference: Floats, base: Floats) -> Floats:
    """A design without actions that neither baseline nor targets take: no log shows what they are worth."""
    kept = np.where((base > 0.0) | (reference > 0.0), design, 0.0)
    total = kept.sum(axis=2, keepdims=True)
    return np.where(total > 0.0, kept / np.where(total > 0.0, total, 1.0), reference)


def offset(designer: FrequencyDesigner, work: Work, line: Floats, logged: Any) -> Floats:
    """The design whose visits N add to those that were `logged`: least sum price / (logged + N).

    Each round solves the usual program for prices (N / (logged + N))^2, of the same slope where it begins.
    """
    policy, flow = designer.solved(work, (line, line), work.reference)
    for _ in range(ROUNDS if np.ndim(logged) else 0):
        N = np.maximum(flow.sum(axis=0), 1e-6)
        policy, flow = designer.solved(work, (line, line), policy, (N / (logged + N)) ** 2)
    return policy


class Looking:
    """Looks at a log for each policy and each guardrail."""

    def __init__(self, setup: Setup, model: Any, means: Floats, chosen: Chosen) -> None:
        self.problem, self.model, self.means, self.chosen = setup.problem, model, means, chosen
        self.base = by_step(self.problem.mdp, self.problem.baseline)

    def onward(self, V: Floats) -> Floats:
        """P V, [S, A]."""
        found: Floats = self.model.transitions @ V
        return found.reshape(self.base.shape[1:])

    def at(self, first: Columns, second: Columns) -> Shown | None:
        """What is found."""
        problem, mdp = self.problem, self.problem.mdp
        some = first.select(np.arange(len(first)) < TUNED)
        logs = [[Walked.of(mdp, part, rail) for part in (some, second)] for rail in problem.rails]
        each = zip(problem.rails, self.means, strict=True)
        bases = [self.worth(self.base, rail, mean) for rail, mean in each]
        hoped = [self.looked(i, policy, bases, logs) for i, policy in enumerate(self.chosen.policies)]
        kept = [i for i, found in enumerate(hoped) if found is not None]
        parts = LOG / max(len(kept), 1)
        worths = [
            [surely(*each, new, rail, parts * rail.level)
             for each, (_, new), rail in zip(hoped[i] or (), logs, problem.rails, strict=True)]
            for i in kept
        ]  # fmt: skip
        floors = {rail.name: np.array([row[j] for row in worths]) for j, rail in enumerate(problem.rails)}
        return Shown(
            np.array([self.chosen.policies[i] for i in kept]), tuple(self.chosen.names[i] for i in kept),
            floors, required_by(problem), len(first), len(second),
        )  # fmt: skip

    def worth(self, policy: Floats, rail: Rail, mean: Floats) -> Worth:
        """What the first part says of a policy."""
        mdp = self.problem.mdp
        return Worth.of(policy, self.base, self.onward, mean, nothing_less(mdp, rail), mdp.discount)

    def looked(self, i: int, policy: Floats, bases: list[Worth], logs: Any) -> list[tuple[Worth, Bet]] | None:
        """How to look at a policy, by the first part; None if that shows that nothing can come of it."""
        found, hope = [], []
        for rail, mean, base, (old, new) in zip(self.problem.rails, self.means, bases, logs, strict=True):
            level = LOG * rail.level / len(self.chosen.policies)
            one = self.worth(policy, rail, mean)
            promised, bet = looks(one, base, old, rail, level, len(new))
            value = float(np.mean(base.V[0][old.states[:, 0]]))
            if not rail.learned:
                promised -= rail.most_required
            hope.append(promised + HOPELESS * max(rail.credit_at(value), 0.0) >= 0.0)
            found.append((one, bet))
        return found if all(hope) or i < len(self.problem.targets) else None
