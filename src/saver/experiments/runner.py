"""Runs steps, keeps what is done, gathers tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from saver.experiments.folder import Folder
from saver.experiments.steps import Plan, Step
from saver.experiments.tables import TABLES

Progress = Callable[[str, str, float], None]  # told the stage, what is being done, the share that is done


def unseen(stage: str, what: str, share: float) -> None:
    """Progress that nobody watches."""


def compute(out: Path, plan: Plan, *, force: bool = False, progress: Progress = unseen) -> Folder:
    """Every table of a plan, from scratch or from where it was.

    The same seed gives the same tables, byte for byte, on any number of cores.
    """
    folder = Folder.begin(out, plan.settings, force=force)
    try:
        _do(folder, plan.steps, progress)
        _gather(folder, plan.steps)
    finally:
        folder.release()
    return folder


def _do(folder: Folder, steps: Sequence[Step], progress: Progress) -> None:
    """Do what is not done yet."""
    total, done = sum(step.weight for step in steps), 0.0
    for step in steps:
        progress("computing", step.name, done / total)
        if not folder.has(step.name):
            part = 0.0

            def tick(share: float, before: float = done, step: Step = step) -> None:
                nonlocal part
                part += share
                progress("computing", step.name, (before + part * step.weight) / total)

            folder.keep(step.name, step.kind, step.rows(tick))
        done += step.weight
    progress("computing", steps[-1].name, 1.0)


def _gather(folder: Folder, steps: Sequence[Step]) -> None:
    """The parts of each kind in one table."""
    for kind in TABLES:
        chosen = [step for step in steps if step.kind == kind]
        if chosen:
            rows = [row for step in chosen for row in folder.part(step.name, kind)]
            folder.write(kind, [list(row.values()) for row in rows])
