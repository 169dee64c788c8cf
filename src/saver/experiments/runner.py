"""Runs steps, keeps what is done, gathers tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from saver._files import sources
from saver.collect import Campaign
from saver.collect.collectors import find_collector
from saver.engine.simulate import POINTS, check_memory
from saver.experiments import audit as auditing
from saver.experiments import steps
from saver.experiments.audit import Group
from saver.experiments.catalogue import DESIGNS, EXPERIMENTS, LEVELS, RATES, Experiment
from saver.experiments.folder import TABLES, Folder
from saver.experiments.steps import Step
from saver.scenarios import SCENARIOS, find_scenario
from saver.simulator import knowledge_of


def reproduce(
    out: Path,
    *,
    level: str = "default",
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Folder:
    """The paper's experiments, and what it could not draw: every table, from scratch or from where it was.

    The same seed gives the same tables, byte for byte, whatever `jobs` is.
    """
    settings = {"command": "reproduce", "level": level, "seed": seed, "sources": sources()}
    folder = Folder.begin(out, settings, force=force)
    todo = [
        step for experiment in EXPERIMENTS.values() for step in steps.campaigns(experiment, level, seed, jobs)
    ]
    todo += [steps.limits(find_scenario(name)) for name in SCENARIOS]
    todo += [steps.designs(find_scenario(name)) for name in DESIGNS]
    todo += [steps.prices(), *(steps.rate(asked, level, seed, jobs) for asked in RATES)]
    carry_out(folder, todo, progress=progress)
    return folder


def audit(
    out: Path,
    *,
    level: str = "quick",
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> tuple[Folder, list[Group]]:
    """Count how often the promise breaks and intervals miss, on scenarios, random worlds and hostile ones."""
    settings = {"command": "audit", "level": level, "seed": seed, "sources": sources()}
    folder = Folder.begin(out, settings, force=force)
    carry_out(folder, auditing.steps(level, seed, jobs), progress=progress)
    groups = auditing.judged(folder.read(TABLES["audit"]))
    folder.write_text("audit.md", auditing.audit_text(groups))
    folder.finish()
    return folder, groups


def run(
    out: Path,
    experiment: Experiment,
    *,
    seed: int = 0,
    jobs: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Folder:
    """One experiment of the user's."""
    scenario = experiment.make()
    for name in experiment.collectors:  # what cannot run is said before anything is written
        recipe = find_collector(name)
        Campaign(scenario.problem, recipe, 1, knowledge=knowledge_of(scenario, recipe))
    check_memory(max(experiment.runs), POINTS, experiment.episodes)
    described = {
        **dataclasses.asdict(experiment),
        "options": {k: str(v) for k, v in experiment.options.items()},
    }
    settings = {"command": "run", "experiment": described, "seed": seed, "sources": sources()}
    folder = Folder.begin(out, settings, force=force)
    todo = [*steps.campaigns(experiment, LEVELS[1], seed, jobs), steps.limits(scenario)]
    carry_out(folder, todo, progress=progress)
    return folder


def carry_out(folder: Folder, todo: Sequence[Step], *, progress: bool = False) -> None:
    """Do what is not done yet, gather the parts of each kind into its table, and let go of the folder."""
    try:
        _do(folder, todo, progress)
    finally:
        folder.release()


def _do(folder: Folder, todo: Sequence[Step], progress: bool) -> None:
    with _bar(sum(step.weight for step in todo), progress) as advance:
        for step in todo:
            if not folder.has(step.name):
                before = 0.0

                def tick(share: float, weight: float = step.weight) -> None:
                    nonlocal before
                    before += share
                    advance("", share * weight)

                advance(step.name, 0.0)
                folder.keep(step.name, step.columns, list(step.rows(tick)))
                advance(step.name, (1.0 - before) * step.weight)
            else:
                advance(step.name, step.weight)
    for kind, name in TABLES.items():
        chosen = [step for step in todo if step.kind == kind]
        if chosen:
            rows = (row.values() for step in chosen for row in folder.part(step.name))
            folder.write(name, chosen[0].columns, [list(row) for row in rows])


@contextmanager
def _bar(total: float, progress: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar with the time that is left; it is told what is being done and how much is."""
    if not progress:
        yield lambda name, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)

        def advance(name: str, done: float) -> None:
            bar.update(task, advance=done, description=name or None)

        yield advance
