"""A campaign played on one's own data before it is run: in worlds drawn from what the log leaves open."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saver._jit import plainly
from saver._types import Bools, Floats, Ints
from saver.collect import Campaign, Collector
from saver.collect.collectors import COLLECTORS, find_collector
from saver.engine.reference import Job, run_once
from saver.engine.runs import VIOLATED
from saver.engine.simulate import check_memory, counted
from saver.errors import InvalidProblem
from saver.estimate.interval import LEVEL, student
from saver.kernels.keeping import Out
from saver.problem import Problem, checks
from saver.problem.statement import is_small
from saver.simulator import Truth
from saver.simulator.asseen import EPISODES, scenario_of, world_of

__all__ = ["Rehearsal", "forecast", "rehearse", "world_of"]

RUNS, FEW, FEWEST = 200, 20, 3  # campaigns of a rehearsal; of a forecast, at most and at least
POINTS = 20  # checkpoints
ENDS = (0.05, 0.5, 0.95)  # quantiles that are said
NORMAL = 1.959964  # standard deviations of a 95 % interval
WORK = 8000  # episodes of a forecast, by default
Range = tuple[float, float, float]  # the quantiles


@dataclass(frozen=True, eq=False, repr=False)
class Rehearsal:
    """R campaigns that all begin with the same log, seen at C checkpoints. `report()` is for people.

    Attributes:
        collector: its name.
        episodes: of each campaign; `runs` is how many campaigns.
        drawn: whether each had a world of its own, drawn from what the log leaves open.
        logged: the episodes of the log.
        delta: the probability with which the promise may fail.
        checkpoints: episode counts, [C].
        log_alone: half the 95 % interval before the first episode, by target.
        half_widths: half the 95 % interval at one look, by target, [R, C].
        held: whether the interval at the end holds the true value, by target, [R].
        baseline_share: the share of baseline episodes, [R, C].
        worst_budgets: the smallest true budget over all episodes, by guardrail, [R].
        relative: the same in units of what an episode must earn, or may cost.
        broken: whether it was ever below 0, by guardrail, [R].
    """

    collector: str
    episodes: int
    runs: int
    drawn: bool
    logged: int
    delta: float
    checkpoints: Ints
    log_alone: dict[str, float]
    half_widths: dict[str, Floats]
    held: dict[str, Bools]
    baseline_share: Floats
    worst_budgets: dict[str, Floats]
    relative: dict[str, Floats]
    broken: dict[str, Bools]

    def __repr__(self) -> str:
        """A line."""
        half = ", ".join(f"{width[1]:.4g}" for width in self.half_width.values())
        share = float(self.baseline_share[:, -1].mean())
        return (
            f"Rehearsal({self.runs:,} campaigns of {self.episodes:,} episodes with {self.collector}: promise "
            f"kept in {self.kept:.1%}, half-width {half}, baseline share {share:.1%})"
        )

    @property
    def kept(self) -> float:
        """The share of campaigns that kept the promise of every guardrail at every episode."""
        return 1.0 - float(np.mean(np.any(list(self.broken.values()), axis=0)))

    @property
    def kept_interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of that share, were all possible worlds played."""
        return wilson(self.kept, self.runs)

    @property
    def half_width(self) -> dict[str, Range]:
        """Half the interval at the end: the 5 %, 50 % and 95 % quantiles, by target."""
        return {name: quantiles(table[:, -1]) for name, table in self.half_widths.items()}

    @property
    def coverage(self) -> dict[str, float]:
        """How often the interval at the end held the true value, by target."""
        return {name: float(np.mean(held)) for name, held in self.held.items()}

    @property
    def nearest(self) -> str:
        """The guardrail that was nearest to its line on average, in units of what it requires."""
        return min(self.relative, key=lambda name: float(np.mean(self.relative[name])))

    def report(self, width: int = 80) -> str:
        """What came of it, in lines of at most `width` characters where words allow it."""
        lines = (textwrap.fill(line, width, subsequent_indent="  ") for line in _lines(self))
        return "\n".join(lines) + "\n"

    def rows(self) -> list[dict[str, Any]]:
        """One for each campaign."""
        found = []
        for r in range(self.runs):
            row: dict[str, Any] = {"campaign": r, "baseline_share": float(self.baseline_share[r, -1])}
            for name, table in self.half_widths.items():
                end = "" if len(self.half_widths) == 1 else f" of {name}"
                row |= {f"half_width{end}": float(table[r, -1]), f"held{end}": bool(self.held[name][r])}
            for name, worst in self.worst_budgets.items():
                row |= {f"worst_budget of {name}": float(worst[r])}
                row |= {f"relative of {name}": float(self.relative[name][r])}
                row |= {f"kept {name}": not self.broken[name][r]}
            found.append(row)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON: None for what is not finite."""
        share = self.baseline_share
        return {
            "collector": self.collector, "episodes": self.episodes, "runs": self.runs, "drawn": self.drawn,
            "logged": self.logged, "delta": self.delta, "kept": self.kept,
            "kept_interval": list(self.kept_interval), "nearest": self.nearest,
            "baseline_share": {"mean": float(share[:, -1].mean()), **_said(quantiles(share[:, -1]))},
            "targets": {
                name: {
                    "log_alone": _finite(self.log_alone[name]), "half_width": _said(self.half_width[name]),
                    "coverage": self.coverage[name],
                    "half_widths": [_finite(one) for one in np.median(table, axis=0).tolist()],
                }
                for name, table in self.half_widths.items()
            },
            "guardrails": {
                name: {
                    "kept": 1.0 - float(np.mean(self.broken[name])),
                    "worst_budget": _said(quantiles(worst)),
                    "relative": _said(quantiles(self.relative[name])),
                }
                for name, worst in self.worst_budgets.items()
            },
            "checkpoints": self.checkpoints.tolist(), "baseline_shares": share.mean(axis=0).tolist(),
        }  # fmt: skip

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw half-widths, baseline episodes and the worst budgets, to a .png, .pdf or .svg."""
        from saver.figures.rehearsed import picture

        place = Path(path)
        if not place.parent.is_dir():
            raise InvalidProblem(f"cannot write {place}: there is no folder {place.parent}; make it first")
        if place.suffix not in (".png", ".pdf", ".svg"):
            raise InvalidProblem(f"path is {str(place)!r}; it must end in .png, .pdf or .svg")
        name, widths = next(iter(self.half_widths.items()))
        title = "half-width" if len(self.half_widths) == 1 else f"half-width of {name}"
        return picture(
            place, title, self.checkpoints, self.log_alone[name], widths, self.baseline_share, self.relative
        )


# -- play ----------------------------------------------------------------------------------------------------


def rehearse(
    problem: Problem,
    collector: Collector | str = "saver-opt",
    *,
    episodes: int = EPISODES,
    runs: int = RUNS,
    seed: int = 0,
    drawn: bool = True,
    points: int = POINTS,
    progress: bool | Callable[[int], None] = False,
) -> Rehearsal:
    """Play a campaign many times before it is run: what it would keep, answer and spend.

    `problem` has a history (`saver fit`, `saver.data`), with which every campaign begins. Each has a world of
    its own, drawn from what that log leaves open: see `saver.theory.world_of`; with `drawn=False` all have
    the world as the log shows it. Campaign r uses the child r of `seed`. `points` is
    at how many episode counts, evenly spaced, the answers are kept. `progress` counts on standard error, or
    is a function that is told how many more campaigns are done.
    """
    checks.kind("problem", problem, Problem)
    checks.flag("drawn", drawn)
    K, runs = checks.whole("episodes", episodes, 1), checks.whole("runs", runs, 1)
    chosen, made = find_collector(collector), scenario_of(problem, None, K)
    at = np.linspace(0, K, checks.whole("points", points, 1) + 1)[1:]
    checkpoints = np.unique(np.ceil(at).astype(np.int64))
    rails, targets = problem.rails, list(problem.targets)
    check_memory(runs, len(checkpoints), K, len(targets), len(rails))
    first = Campaign(problem, chosen, K, seed=checks.child_seed(seed, 0))
    alone = {name: first.estimate(of=name, against=problem.against).interval for name in targets}
    kept = Out.room(checkpoints, runs, len(targets), len(rails))
    true, required = np.empty((runs, len(targets))), np.empty((runs, len(rails)))
    tick = counted(runs, progress)
    truth = _truth(made)
    for r in range(runs):
        own = checks.child_seed(seed, r)
        if drawn:
            made = scenario_of(problem, np.random.default_rng(checks.child_seed(own, 3)), K)
            truth = _truth(made)
        run_once(Job(made, chosen, K, truth), kept.of(r), own)
        true[r] = list(truth.values.values())
        required[r] = [abs(one) or rail.unit or 1.0 for one, rail in zip(truth.required, rails, strict=True)]
        tick(1)
    answers, worst = kept.answers, kept.worst
    low, high = ends_of(answers)
    told = {name: (low[:, i], high[:, i], true[:, i]) for i, name in enumerate(targets)}
    names, units = [rail.name for rail in rails], np.array([rail.unit for rail in rails])
    return Rehearsal(
        _called(collector, chosen), K, runs, drawn, _logged(problem), problem.delta, checkpoints,
        {name: (b - a) / 2 for name, (a, b) in alone.items()},
        {name: (b - a) / 2 for name, (a, b, _) in told.items()},
        {name: (a[:, -1] <= value) & (value <= b[:, -1]) for name, (a, b, value) in told.items()},
        np.array(kept.common["baseline_share"]), _by(names, worst),
        _by(names, worst / required), _by(names, worst < -VIOLATED * units),
    )  # fmt: skip


def forecast(
    problem: Problem,
    episodes: int,
    collector: Collector | str = "saver-opt",
    *,
    runs: int | None = None,
    seed: int = 0,
) -> Rehearsal:
    """What a campaign will come to if the world is as its log shows it, from a few that are played there."""
    few = min(max(WORK // max(episodes, 1), FEWEST), FEW) if runs is None else runs
    return rehearse(problem, collector, episodes=episodes, runs=few, seed=seed, drawn=False, points=1)


def _called(given: Any, chosen: Collector) -> str:
    """A collector's name."""
    if isinstance(given, str):
        return given
    return next((name for name, known in COLLECTORS.items() if known is chosen), "a collector of one's own")


def _truth(made: Any) -> Truth:
    with plainly(is_small(made.problem)):
        return Truth(made)


def _logged(problem: Problem) -> int:
    return 0 if problem.history is None else problem.history.episodes


def _by(names: list[str], table: Any) -> dict[str, Any]:
    return {name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)}


def ends_of(answers: Any) -> tuple[Floats, Floats]:
    """The ends of the intervals at one look; infinite where there is no bounded one."""
    stderr = np.asarray(answers["stderr"])
    bounded = np.isfinite(stderr)
    half = student(stderr, np.asarray(answers["freedom"]), LEVEL)
    below, above = (np.where(bounded, answers[side] + half, np.inf) for side in ("below", "above"))
    return answers["estimates"] - below, answers["estimates"] + above


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n: those p with |share - p| <= z sqrt(p (1 - p) / n)."""
    z = NORMAL**2 / n
    middle, half = share + z / 2, math.sqrt(z * (share * (1.0 - share) + z / 4))
    return max((middle - half) / (1.0 + z), 0.0), min((middle + half) / (1.0 + z), 1.0)


def quantiles(values: Floats) -> Range:
    """The 5 %, 50 % and 95 % quantiles: values that occurred, because widths may be infinite."""
    low, middle, high = np.quantile(values, ENDS, method="inverted_cdf").tolist()
    return low, middle, high


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _said(found: Range) -> dict[str, float | None]:
    return dict(zip(("low", "median", "high"), map(_finite, found), strict=True))


# -- in words --


def _lines(found: Rehearsal) -> Iterator[str]:
    """The report."""
    each = "the world as the log shows it"
    if found.drawn:
        each = "worlds drawn from what the log leaves open"
    yield (
        f"Rehearsed: {found.runs:,} campaigns of {found.episodes:,} episodes with {found.collector}, each "
        f"after the log of {found.logged:,} episodes, in {each}."
    )
    count, (low, high) = round(found.kept * found.runs), found.kept_interval
    yield (
        f"The promise was kept at every episode in {count:,} of {found.runs:,} (95 % interval {low:.1%} "
        f"to {high:.1%}; promised: {1.0 - found.delta:.3g})."
    )
    rows: list[tuple[str, ...]] = [("", "median", "5 %", "95 %")]
    for name, (low, middle, high) in found.half_width.items():
        of = "" if len(found.half_widths) == 1 else f" of {name}"
        rows.append((f"half-width{of}, log alone", f"{found.log_alone[name]:.3g}", "", ""))
        rows.append((f"half-width{of} at the end", *(f"{one:.3g}" for one in (middle, low, high))))
    low, middle, high = quantiles(found.baseline_share[:, -1])
    rows.append(("baseline episodes", *(f"{one:.1%}" for one in (middle, low, high))))
    for name, relative in found.relative.items():
        low, middle, high = quantiles(relative)
        rows.append((f"{name}: least budget", *(f"{one:.3g}" for one in (middle, low, high))))
    first = max(len(row[0]) for row in rows) + 2
    yield from (row[0].ljust(first) + "".join(cell.rjust(9) for cell in row[1:]) for row in rows)
    yield "Least budgets are in episodes' worth of what is required; below 0 the promise is broken."
    for name, share in found.coverage.items():
        of = "" if len(found.coverage) == 1 else f" of {name}"
        held = f"The interval{of} at the end held the true value in {share:.1%} of the campaigns"
        yield held + (f"; nearest to its line: {found.nearest}." if len(found.relative) > 1 else ".")
