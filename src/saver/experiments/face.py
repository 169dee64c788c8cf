"""What is called from outside: compute the tables of a plan, then draw, claim and report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saver.errors import InvalidProblem
from saver.experiments.catalogue import LEVELS, Experiment, Plan, Step, plan_reproduce, plan_run
from saver.experiments.claims import Claim
from saver.experiments.folder import Folder, Results
from saver.experiments.pictures import pictures
from saver.experiments.report import ends, guard_ends, write_report
from saver.experiments.tables import TABLES
from saver.experiments.work import Progress, silent
from saver.problem import checks

if TYPE_CHECKING:
    from saver_audit import Group

Out = str | os.PathLike[str]


@dataclass(frozen=True)
class Outcome:
    """What a folder holds now."""

    folder: Path  # where tables, `figures/`, report.md and report.html are
    claims: list[Claim]  # with their verdicts; none unless all experiments of the catalogue were run
    # a row for each experiment and collector, at the end of its campaigns; of several `guardrails` a row for
    # each too
    numbers: list[dict[str, Any]]
    figures: list[Path]
    guardrails: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Audit:
    """What an audit counted: audit.csv and audit.md in `folder`, and the groups of its verdict."""

    folder: Path
    groups: list[Group]


def reproduce(
    out: Out,
    *,
    level: str = "default",
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Run the paper's experiments and what it could not draw: tables, figures, claims, report.

    What is complete in the folder `out` is kept. `level` is quick, default or full; `jobs` the number of
    cores, by default all; `force` replaces results of other settings; `progress` is told the stage, what is
    being done and the share of the stage that is done.
    """
    _check(seed, jobs, level, LEVELS)
    return _present(compute(out, plan_reproduce(level, seed, jobs), force, progress), progress)


def run(
    out: Out,
    experiment: Experiment,
    *,
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Run one experiment: tables, figures, report; arguments as in `reproduce`."""
    given: object = experiment
    if not isinstance(given, Experiment):
        kind = type(given).__name__
        raise InvalidProblem(f"experiment is {kind}; it must be a saver.experiments.Experiment")
    _check(seed, jobs, LEVELS[1], LEVELS)
    return _present(compute(out, plan_run(experiment, seed, jobs), force, progress), progress)


def plot(out: Out, *, progress: Progress = silent) -> Outcome:
    """Draw and report a folder of `reproduce` or `run` again, from its tables alone."""
    return _present(Folder.find(Path(out)), progress)


def audit(
    out: Out,
    *,
    level: str = "quick",
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Audit:
    """Count how often the promise breaks and intervals miss, on scenarios, random worlds and hostile ones.

    `level` is quick or full; the other arguments are as in `reproduce`.
    """
    import saver_audit

    _check(seed, jobs, level, tuple(saver_audit.AUDITS))
    folder = compute(out, saver_audit.plan_audit(level, seed, jobs), force, progress)
    groups = saver_audit.judged(folder.read("audit"))
    folder.write_text("audit.md", saver_audit.audit_text(groups))
    folder.finish()
    return Audit(folder.path, groups)


def _check(seed: int, jobs: int | None, level: str, levels: tuple[str, ...]) -> None:
    checks.whole("seed", seed, 0)
    if jobs is not None:
        checks.whole("jobs", jobs, 1)
    checks.choice("level", level, levels)


def compute(out: Out, plan: Plan, force: bool = False, progress: Progress = silent) -> Folder:
    """Every table of a plan, from scratch or from where it was.

    The same seed gives the same tables, byte for byte, on any number of cores.
    """
    folder = Folder.begin(Path(out), plan.settings, force=force)
    try:
        _compute_parts(folder, plan.steps, progress)
        for kind in TABLES:
            if parts := [step.name for step in plan.steps if step.kind == kind]:
                rows = [row.values() for part in parts for row in folder.read(kind, part)]
                folder.write(kind, rows)
    finally:
        folder.release()
    return folder


def _compute_parts(folder: Folder, steps: Sequence[Step], progress: Progress) -> None:
    """What is not there yet."""
    total, done = sum(step.weight for step in steps), 0.0
    for step in steps:
        progress("computing", step.name, done / total)
        if not folder.intact(step.kind, step.name):
            part = 0.0

            def tick(share: float, before: float = done, step: Step = step) -> None:
                nonlocal part
                part += share
                progress("computing", step.name, (before + part * step.weight) / total)

            folder.write(step.kind, step.rows(tick), step.name)
        done += step.weight
    progress("computing", steps[-1].name, 1.0)


def _present(folder: Folder, progress: Progress) -> Outcome:
    """Draw, claim and report what the tables say."""
    results = Results(folder)
    jobs, figures = pictures(results), []
    for i, (name, draw) in enumerate(jobs):
        progress("figures", name, i / len(jobs))
        figures += draw()
    progress("figures", "", 1.0)
    claims = write_report(results, figures)
    folder.finish()
    return Outcome(folder.path, claims, ends(results), figures, guard_ends(results))
