"""A campaign as tables, pictures and pages."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saver._files import written
from saver.collect.answers import Uncertain, look_columns
from saver.collect.events import Asked, Event, Told
from saver.collect.state import KINDS, State
from saver.errors import InvalidData, SaverError
from saver.problem.guardrail import Rail
from saver.problem.statement import Problem

if TYPE_CHECKING:
    from saver.collect.known import Known

PICTURES = ("png", "pdf", "svg")


def steps_table(problem: Problem, events: Sequence[Event]) -> dict[str, list[Any]]:
    """Every told step, in the order of telling; states and actions by their names, if they have any."""
    kinds = {event.number: event.kind for event in events if isinstance(event, Asked)}
    guarded = (column_of(problem, rail) for rail in problem.rails)
    names = ("trial", "kind", "step", "state", "action", "reward", *guarded, "complete")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    states, actions = problem.mdp.state_labels, problem.mdp.action_labels
    for event in events:
        if isinstance(event, Told):
            episode, seen = event.episode, [rail.column(event.episode) for rail in problem.rails]
            for t in range(len(episode)):
                row = (
                    event.number, kinds[event.number], t, states.said(episode.states[t]),
                    actions.said(episode.actions[t]), float(episode.rewards[t]),
                    *(math.nan if column is None else float(column[t]) for column in seen), event.complete,
                )  # fmt: skip
                for name, value in zip(names, row, strict=True):
                    columns[name].append(value)
    return columns


def column_of(problem: Problem, rail: Rail) -> str:
    """The column of a guardrail: "constraint", or with its name where there are several."""
    return "constraint" if len(problem.rails) == 1 else f"constraint_{rail.name}"


def moments_table(problem: Problem, state: State) -> dict[str, Any]:
    """One row for each pair that can be taken."""
    mdp, rewards = problem.mdp, state.sums.rewards
    at = np.nonzero(mdp.available & mdp.reachable[:, None])
    counts = rewards.counts[at]
    return {
        "state": [mdp.state_labels.said(s) for s in at[0]],
        "action": [mdp.action_labels.said(a) for a in at[1]],
        "samples": counts,
        "reward_mean": np.where(counts > 0, rewards.mean[at], np.nan),
        "reward_variance": np.where(counts > 1, rewards.variance[at], np.nan),
    } | {
        column_of(problem, rail).replace("constraint", "constraint_mean", 1): np.where(
            seen.counts[at] > 0, seen.mean[at], np.nan
        )
        for rail, seen in zip(problem.rails, state.rail_moments(problem), strict=True)
    }


def frame(columns: dict[str, Any]) -> Any:
    """As pandas has it."""
    try:
        import pandas
    except ImportError:
        raise SaverError("to_frame needs pandas: pip install 'saver-rl[frame]'") from None
    return pandas.DataFrame(columns)


def plot(looks: list[list[float]], problem: Problem, path: Path) -> Path:
    """Draw the looks."""
    from saver.figures import curves as draw
    from saver.figures.style import PAGE, explain, figure, save

    kind = path.suffix.removeprefix(".") or "png"
    if kind not in PICTURES:
        raise InvalidData(f"path is {str(path)!r}; it must end in one of .{', .'.join(PICTURES)}")
    if not path.parent.is_dir():
        raise InvalidData(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if not looks:
        raise InvalidData("there is nothing to draw: no episode has been told yet")
    by = dict(zip(look_columns(problem), np.array(looks).T, strict=True))
    left = {rail.name: by[f"budget of {rail.name}"] for rail in problem.rails if len(problem.rails) > 1}
    with figure(1, 3, PAGE, 2.3) as (made, axes):
        draw.budget(axes[0, 0], by["episodes"], left or by["budget"])
        ends = ((by["low"], by["high"]), (by["anytime_low"], by["anytime_high"]))
        draw.estimates(axes[0, 1], by["episodes"], by["value"], *ends, question(problem))
        draw.kinds(axes[0, 2], by["episodes"], {kind: by[kind] for kind in KINDS})
        bands = "95 % intervals: dark, for one look; light, for all looks at once"
        explain(made, [("broken", "the constraint may be broken"), ("band", bands)], 2)
        return save(made, path.parent, path.stem, (kind,))[0]


def question(problem: Problem) -> str:
    """What is asked, in words."""
    name = next(iter(problem.targets))
    return f"{name}: value above the baseline's" if problem.against else f"{name}: value"


def write_all(campaign: Known, folder: Path, looks: list[list[float]]) -> None:
    """report.md and what it shows."""
    problem = campaign.problem
    rows = campaign.uncertainty(next(iter(problem.targets)), against=problem.against)
    if looks:
        campaign.plot(folder / "campaign.png")
    write(folder, "looks.csv", as_csv(look_columns(problem), looks))
    write(folder, "uncertainty.csv", as_csv(tuple(Uncertain.__annotations__), rows))
    write(folder, "report.md", "\n".join(page(campaign, rows, bool(looks))) + "\n")


def page(campaign: Known, rows: list[Uncertain], drawn: bool) -> list[str]:
    """The report in lines."""
    problem, budget = campaign.problem, campaign.budget
    lines = ["# Campaign", "", repr(campaign), "", campaign.ended or "It goes on."]
    lines += ["", f"## {question(problem)}", ""]
    for name in problem.targets:
        for anytime in (False, True):
            found = campaign.estimate(name, against=problem.against, anytime=anytime)
            low, high = found.interval
            lines += [f"- {name}: {found.value:.5g} in [{low:.5g}, {high:.5g}], {found.holds}"]
            lines += [f"    - {reason}" for reason in found.reasons]
    if campaign.collector.estimate != "importance":
        lines += ["", "## Against the baseline", ""]
        lines += [f"- {name}: {campaign.compare(name)}" for name in problem.targets]
    certified = "nothing certified" if math.isnan(budget.certified) else f"{budget.certified:.5g} certified"
    lines += ["", "## Safety", ""]
    lines += [f"Budget left: {certified}; {budget.plugin:.5g} by sample means, which promise nothing."]
    if len(budget.of) > 1 and not math.isnan(budget.certified):
        lines += ["", *(f"- {name}: {found:.5g} certified" for name, found in budget.of.items())]
    if not campaign.done:
        lines += [
            "",
            "## What is played next",
            "",
            *(line.strip() for line in str(campaign.why()).splitlines()),
        ]
    lines += ["", "## Where the uncertainty is", "", *uncertainty_rows(rows)]
    return [*lines, "", "![budget, estimate and episodes](campaign.png)"] if drawn else lines


def uncertainty_rows(rows: list[Uncertain], most: int = 10) -> list[str]:
    """The largest shares, as lines of a table."""
    lines = ["| pair | share of the variance | samples | planned |", "|---|---|---|---|"]
    lines += [f"| {r.name} | {r.share:.1%} | {r.samples} | {r.planned:.0f} |" for r in rows[:most]]
    if len(rows) > most:
        rest = rows[most:]
        total = sum(r.share for r in rest), sum(r.samples for r in rest), sum(r.planned for r in rest)
        lines.append(f"| {len(rest)} others | {total[0]:.1%} | {total[1]} | {total[2]:.0f} |")
    return lines


def write(folder: Path, name: str, text: str) -> None:
    """One file, whole or not at all."""
    path = folder / name
    with written(path, "another folder") as partial:
        partial.write_text(text, encoding="utf-8")


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Comma-separated, numbers as they are."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[_plain(cell) for cell in row] for row in rows])
    return text.getvalue()


def _plain(cell: Any) -> Any:
    return int(cell) if isinstance(cell, float) and math.isfinite(cell) and cell == int(cell) else cell
