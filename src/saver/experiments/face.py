"""What is called from outside: compute the tables, then draw, claim and report."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saver.errors import InvalidProblem
from saver.experiments.catalogue import LEVELS, Experiment
from saver.experiments.claims import Claim
from saver.experiments.folder import Folder
from saver.experiments.pictures import pictures
from saver.experiments.report import ends, guard_ends, write_report
from saver.experiments.results import Results
from saver.experiments.runner import Progress, compute, unseen
from saver.experiments.steps import plan_reproduce, plan_run
from saver.problem import checks

if TYPE_CHECKING:
    from saver.experiments.auditing import Group

Out = str | os.PathLike[str]


@dataclass(frozen=True)
class Outcome:
    """What a folder holds now.

    Attributes:
        folder: where tables, `figures/`, report.md and report.html are.
        claims: with their verdicts; none unless all experiments of the catalogue were run.
        numbers: a row for each experiment and collector, at the end of its campaigns.
        figures: their files.
        guardrails: where there are several, a row for each experiment, collector and guardrail.
    """

    folder: Path
    claims: list[Claim]
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
    progress: Progress = unseen,
) -> Outcome:
    """Run the paper's experiments and what it could not draw: tables, figures, claims, report.

    What is complete in the folder `out` is kept. `level` is quick, default or full; `jobs` the number of
    cores, by default all; `force` replaces results of other settings; `progress` is told the stage, what is
    being done and the share of the stage that is done.
    """
    _check(seed, jobs, level, LEVELS)
    return _present(
        compute(Path(out), plan_reproduce(level, seed, jobs), force=force, progress=progress), progress
    )


def run(
    out: Out,
    experiment: Experiment,
    *,
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress = unseen,
) -> Outcome:
    """Run one experiment: tables, figures, report; arguments as in `reproduce`."""
    given: object = experiment
    if not isinstance(given, Experiment):
        kind = type(given).__name__
        raise InvalidProblem(f"experiment is {kind}; it must be a saver.experiments.Experiment")
    _check(seed, jobs, LEVELS[1], LEVELS)
    return _present(
        compute(Path(out), plan_run(experiment, seed, jobs), force=force, progress=progress), progress
    )


def plot(out: Out, *, progress: Progress = unseen) -> Outcome:
    """Draw and report a folder of `reproduce` or `run` again, from its tables alone."""
    return _present(Folder.find(Path(out)), progress)


def audit(
    out: Out,
    *,
    level: str = "quick",
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress = unseen,
) -> Audit:
    """Count how often the promise breaks and intervals miss, on scenarios, random worlds and hostile ones.

    `level` is quick or full; the other arguments are as in `reproduce`.
    """
    from saver.experiments import auditing

    _check(seed, jobs, level, tuple(auditing.AUDITS))
    plan = auditing.plan_audit(level, seed, jobs)
    folder = compute(Path(out), plan, force=force, progress=progress)
    groups = auditing.judged(folder.read("audit"))
    folder.write_text("audit.md", auditing.audit_text(groups))
    folder.finish()
    return Audit(folder.path, groups)


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


def _check(seed: int, jobs: int | None, level: str, levels: tuple[str, ...]) -> None:
    checks.whole("seed", seed, 0)
    if jobs is not None:
        checks.whole("jobs", jobs, 1)
    if level not in levels:
        raise InvalidProblem(f"level is {level!r}; it must be one of {', '.join(levels)}")
