"""Collectors are data: each is a choice of parts, and adding one is adding a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saver.errors import InvalidProblem, no_such
from saver.estimate import ESTIMATORS
from saver.problem import checks
from saver.problem.codec import pack, portable
from saver.safety import GATES, LEDGERS

OWN = "own"  # what stands for a design that is a function
DESIGNS = ("target", "closed-form", "as-printed", "exact", "sepec", "uniform", "baseline")
EXPLORATIONS = ("uniform", "coverage", "none")
TRACKERS = ("designed", "all", "sample")
FALLBACKS = ("baseline", "earner")
KNOWLEDGE = ("mean", "variance", "constraint_mean")
MODEL = "model"  # known to an oracle where the problem does not know it
SIDE_INFORMATION = ("none", "pilot", "known")


@portable("collector")
@dataclass(frozen=True)
class Collector:
    """How data are collected.

    Attributes:
        design: "target", "closed-form" (tree if the model is one, else dag by step), "as-printed" (tree,
            else the stationary dag), "exact", "sepec" (bandits only), "uniform", "baseline", or a function
            from `Statistics` to a policy.
        knows: which of "mean", "variance", "constraint_mean" the design is told, and, where the problem does
            not know it, the "model"; it gets nothing else.
        explore: what the first sqrt(episodes) non-baseline episodes play: "uniform" or "coverage" (in turn
            where a tracked design meets a deterministic start and transitions, else at random) or "none".
        ledger: what is believed about safety: a name in `saver.safety.LEDGERS` ("certified", "latest",
            "plugin", "paper") or "none".
        gate: "prospective", "retrospective" or "none".
        fallback: what is played where the gate refuses: "baseline", or "earner", the policy that surely earns
            most, where that is likely more than the baseline does and the gate lets it.
        track: "designed" follows the design by argmax b / T over designed visits, "all" over all visits (the
            paper's), "sample" draws from it.
        estimate: "certainty", "certainty-estimated" or "importance".
        replan: the factor by which the episode count grows between two plans; 1 plans every episode.
        bonus: how many confidence widths are added to sample deviations.
        caution: how many standard errors each sample variance is raised by, as for normal samples; a pair
            with fewer than 4 samples is then believed to vary as much as any, and half a `reward_scale` over
            sqrt(T) is added to each deviation. 0 takes them as they are.
        side_information: what the design "sepec" is made from: "none", "pilot" (the exploration) or "known".
        learn_from_baseline: whether baseline episodes enter the statistics.
        explore_by_clock: explore while k <= sqrt(episodes), as printed, though all of these may be baseline.
    """

    design: str | Callable[..., Any] = "closed-form"
    knows: tuple[str, ...] = ()
    explore: str = "uniform"
    ledger: str = "certified"
    gate: str = "prospective"
    fallback: str = "baseline"
    track: str = "designed"
    estimate: str = "certainty"
    replan: float = 1.05
    bonus: float = 1.0
    caution: float = 0.0
    side_information: str = "pilot"
    learn_from_baseline: bool = True
    explore_by_clock: bool = False

    def __post_init__(self) -> None:
        if not callable(self.design):
            checks.choice("design", self.design, DESIGNS)
        for name, known in (
            ("explore", EXPLORATIONS), ("ledger", (*LEDGERS, "none")), ("gate", (*GATES, "none")),
            ("fallback", FALLBACKS), ("track", TRACKERS), ("estimate", ESTIMATORS),
            ("side_information", SIDE_INFORMATION),
        ):  # fmt: skip
            checks.choice(name, getattr(self, name), known)
        if not isinstance(self.knows, tuple):
            raise InvalidProblem(f"knows is {self.knows!r}; it must be a tuple such as ('variance',)")
        for item in self.knows:
            checks.choice("knows", item, (*KNOWLEDGE, MODEL))
        if self.design == "sepec":
            self._check_sepec()
        for name in ("learn_from_baseline", "explore_by_clock"):
            checks.flag(name, getattr(self, name))
        self._check_gate()
        for name in ("replan", "bonus", "caution"):
            object.__setattr__(self, name, checks.number(name, getattr(self, name)))
        if self.replan < 1:
            raise InvalidProblem(f"replan is {self.replan:g}; it must be at least 1")
        for name in ("bonus", "caution"):
            if getattr(self, name) < 0:
                raise InvalidProblem(f"{name} is {getattr(self, name):g}; it must be at least 0")

    def _check_gate(self) -> None:
        if (self.gate == "none") != (self.ledger == "none"):
            raise InvalidProblem(
                f"ledger is {self.ledger!r} and gate is {self.gate!r}; a gate needs a ledger and the reverse"
            )
        weighed = self.track == "sample" or self.estimate == "importance"
        if self.fallback == "earner" and (not self.promises or weighed):
            raise InvalidProblem(
                f"fallback is 'earner', ledger {self.ledger!r}, gate {self.gate!r}, track {self.track!r} and "
                f"estimate {self.estimate!r}; an earner needs a certified ledger, the prospective gate, "
                "a tracked design and an estimate without propensities: use fallback='baseline'"
            )

    def _check_sepec(self) -> None:
        if (self.side_information == "known") != (set(self.knows) == set(KNOWLEDGE)):
            raise InvalidProblem(
                f"side_information is {self.side_information!r} and knows is {self.knows!r}; 'known' needs "
                f"knows={KNOWLEDGE!r} and the others need knows=()"
            )
        if (self.side_information == "pilot") != (self.explore != "none"):
            raise InvalidProblem(
                f"side_information is {self.side_information!r} and explore is {self.explore!r}; the pilot "
                "is the exploration: 'pilot' needs one and the others need explore='none'"
            )

    @property
    def certified(self) -> bool:
        """Whether what the ledger believes holds with probability 1 - delta."""
        return self.ledger in LEDGERS and LEDGERS[self.ledger].certifies

    @property
    def promises(self) -> bool:
        """Whether the safety promise holds with probability 1 - delta."""
        return self.certified and self.gate == "prospective"

    def described(self) -> dict[str, Any]:
        """Plain data; a design that is a function counts as such, whatever it does."""
        if not callable(self.design):
            return dict(pack(self))
        return {**pack(dataclasses.replace(self, design="target")), "design": OWN}


UNSAFE: dict[str, Any] = {"ledger": "none", "gate": "none"}
ONCE = 1e30  # a replan that never comes
SEPEC: dict[str, Any] = {"track": "sample", "estimate": "importance", "replan": ONCE}
COLLECTORS: dict[str, Collector] = {
    "saver": Collector(),
    "saver-paper": Collector(
        design="as-printed",
        ledger="paper",
        gate="retrospective",
        track="all",
        replan=1.0,
        explore_by_clock=True,
    ),
    "safe-oracle": Collector(knows=("variance",)),
    "saver-opt": Collector(
        design="exact", explore="none", fallback="earner", replan=1.2, bonus=0.0, caution=1.0
    ),
    "exact-oracle": Collector(design="exact", knows=KNOWLEDGE, explore="none", fallback="earner", replan=1.2),
    "model-oracle": Collector(design="exact", knows=(*KNOWLEDGE, MODEL), explore="none", replan=1.2),
    "oracle": Collector(knows=("variance",), explore="none", **UNSAFE),
    "revar": Collector(**UNSAFE),
    "on-policy": Collector(design="target", explore="none", track="sample", **UNSAFE),
    "safe-on-policy": Collector(design="target", explore="none", track="sample"),
    "sepec": Collector(design="sepec", bonus=0.0, caution=1.0, **SEPEC),
    "sepec-none": Collector(design="sepec", side_information="none", explore="none", **SEPEC),
    "sepec-known": Collector(
        design="sepec", side_information="known", knows=KNOWLEDGE, explore="none", **SEPEC
    ),
    "uniform": Collector(design="uniform", explore="none", track="sample", **UNSAFE),
    "baseline": Collector(design="baseline", explore="none", track="sample", **UNSAFE),
}


def find_collector(collector: Collector | str) -> Collector:
    """A collector, or the one of that name."""
    if isinstance(collector, Collector):
        return collector
    if isinstance(collector, str) and collector in COLLECTORS:
        return COLLECTORS[collector]
    raise no_such("collector", collector, COLLECTORS)
