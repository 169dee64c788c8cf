"""What happens to a campaign. Its state is a fold of these, in order; nothing else changes it.

An `Asked` holds the whole decision, so that replay applies it and never decides again: another machine's
rounding must not change history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.history import History

BASELINE, EXPLORE, PLAN = "baseline", "explore", "plan"  # policies by name


@portable("plan")
@dataclass(frozen=True, eq=False)
class Plan:
    """A design that was made.

    Attributes:
        by_step: rows are nodes (step, state), else states.
        rows: probabilities, [n, A].
        until: the episode at which it is replaced.
        since: the episode for which it was made.
        warm: where the next solve may start, or None.
        reach: where transitions are learned, the believed probability of each node, [nodes].
        needed: likewise, what comes first: see `needed_pairs`.
        foresight: likewise, what was believed of the world.
    """

    by_step: bool
    rows: Any
    until: int
    since: int = 1
    warm: Any = None
    reach: Any = None
    needed: Any = None
    foresight: Any = None


@portable("asked")
@dataclass(frozen=True, eq=False)
class Asked:
    """A trial was decided.

    Attributes:
        number: of the trial, from 1.
        kind: "explore", "design", "earn" or "baseline".
        policy: BASELINE, EXPLORE or PLAN, or one action for each row, a small integer.
        by_step: where `policy` holds actions: its rows are nodes (step, state), else states.
        draws: one uniform number for each step, or None where nothing is left to chance.
        plan: a new one, if one was made.
        exploration: the policy to explore by, when it is first used and had to be computed, [n, A].
        tickets: what each ledger froze.
        stream: the state of the random generator after it; empty if nothing was drawn.
    """

    number: int
    kind: str
    policy: Any
    by_step: bool = False
    draws: Any = None
    plan: Plan | None = None
    exploration: Any = None
    tickets: dict[str, Any] = field(default_factory=dict)
    stream: tuple[int, ...] = ()


@portable("told")
@dataclass(frozen=True, eq=False)
class Told:
    """What came of a trial; of one that is not complete, until it was cut off."""

    number: int
    episode: Episode
    complete: bool = True


@portable("abandoned")
@dataclass(frozen=True, eq=False)
class Abandoned:
    """Nothing will be told of a trial, which may have run, or did."""

    number: int
    ran: bool = False


@portable("cancelled")
@dataclass(frozen=True, eq=False)
class Cancelled:
    """A trial has never started; `unseen`: so it was decided before anybody saw where it would."""

    number: int
    unseen: bool = False


@portable("learned")
@dataclass(frozen=True, eq=False)
class Learned:
    """Logged baseline episodes, known before the first trial: they teach, and count for no budget."""

    history: History


@portable("extended")
@dataclass(frozen=True, eq=False)
class Extended:
    """So many trials more may be asked for."""

    episodes: int


Event = Asked | Told | Abandoned | Cancelled | Learned | Extended
