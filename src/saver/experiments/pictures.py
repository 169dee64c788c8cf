"""Which figures the tables of a folder allow, and what of the tables goes into each."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from saver._types import Floats
from saver.experiments.catalogue import EXPERIMENTS
from saver.experiments.folder import FIGURES, Curve, Results, nested
from saver.experiments.tables import Row
from saver.figures import curves
from saver.figures.curves import Fit, Line
from saver.figures.designs import designs_picture
from saver.figures.style import COLUMN, PAGE, explain, figure, save

GROUPS, VIOLATION = ("paper", "long"), ("violation", "violation_se")
MARKED = 0.25  # the alpha of every experiment of the catalogue
BANDS = ("band", "± 1 standard error of the mean over campaigns")
LIMIT = ("dotted", "exact safe limit: no safe way of collecting is below it in the long run")
BROKEN = ("broken", "the constraint is broken")
BELIEVED = ("dashed", "the violation that the collector believes possible")
REGRET = [
    ("point", "measured, ± 2 standard errors"),
    ("line", "fitted power law; in brackets half of the 95 % interval\nof its exponent"),
]
WAYS = (("price", "Exact safe design"), ("paper", "The paper's: b* and baseline in turn"))
Picture = tuple[str, Callable[[], list[Path]]]


def pictures(results: Results) -> list[Picture]:
    """The figures that the tables allow, as names and functions that write them into `figures/`."""
    folder = results.folder.path / FIGURES
    folder.mkdir(exist_ok=True)
    made: list[Picture] = []
    for group in GROUPS:
        chosen = [n for n in results.experiments if n in EXPERIMENTS and EXPERIMENTS[n].figure == group]
        if len(chosen) > 1:
            made.append((group, partial(_panels, results, chosen, folder, group)))
    made += [(name, partial(_one, results, name, folder)) for name in results.experiments]
    for name, curve in nested(results.rows("designs"), "scenario").items():
        title = f"design-{name}"
        made.append((title, partial(designs_picture, visit_tables(curve.rows), name, folder, title)))
    if rates := results.rows("rates"):
        made.append(("regret", partial(_rates, rates, folder)))
    if prices := results.rows("prices"):
        made.append(("price", partial(_prices, prices, folder)))
    return made


def visit_tables(rows: list[Row]) -> dict[str, Floats]:
    """The visits of each design, [S, A], from rows of `designs`."""
    size = max(row["state"] for row in rows) + 1, max(row["action"] for row in rows) + 1
    tables = {row["design"]: np.zeros(size) for row in rows}
    for row in rows:
        tables[row["design"]][row["state"], row["action"]] = row["visits"]
    return tables


def _mse(results: Results, experiment: str) -> list[Line]:
    """The error of each collector."""
    return [Line(name, c.column("episode"), *c.mse) for name, c in results.curves[experiment].items()]


def _lines(
    by: dict[str, Curve], column: str, error: str = "", sign: float = 1.0, over: str = "episode"
) -> list[Line]:
    """A column of each curve over another one, and its standard error where there is one."""
    return [
        Line(
            name, curve.column(over), sign * curve.column(column),
            curve.column(error) if error else np.zeros(len(curve.rows)),
        )
        for name, curve in by.items()
    ]  # fmt: skip


def _title(results: Results, experiment: str) -> str:
    """Above its panel."""
    return EXPERIMENTS[experiment].title if experiment in EXPERIMENTS else results.scenario(experiment)


def _panels(results: Results, names: list[str], folder: Path, group: str) -> list[Path]:
    """Two rows, like the paper's Figures 1 and 2."""
    with figure(2, len(names), PAGE * 1.12, 4.2) as (made, axes):
        for i, name in enumerate(names):
            curves.errors(axes[0, i], _mse(results, name), results.limit(results.scenario(name)))
            curves.violations(axes[1, i], _lines(results.curves[name], *VIOLATION))
            axes[0, i].set_title(_title(results, name))
            axes[0, i].set_xlabel("")
        axes[0, 0].set_ylabel("mean squared error")
        axes[1, 0].set_ylabel("cumulative violation")
        explain(made, [BANDS, LIMIT, BROKEN], columns=3)
        return save(made, folder, group)


def _one(results: Results, name: str, folder: Path) -> list[Path]:
    """One experiment: errors, errors over the limit, violations, of several guardrails a panel each."""
    lines, limit = _mse(results, name), results.limit(results.scenario(name))
    guarded = {
        rail: (_lines(by, "budget", "budget_se", -1.0), _lines(by, "believed", sign=-1.0))
        for rail, by in results.guards(name).items()
    } or {"": (_lines(results.curves[name], *VIOLATION), [])}
    signs = [BANDS, LIMIT, BROKEN] + ([BELIEVED] if len(guarded) > 1 else [])
    with figure(2 + len(guarded), 1, COLUMN, 6.4 + 1.9 * (len(guarded) - 1)) as (made, axes):
        curves.errors(axes[0, 0], lines, limit)
        curves.efficiency(axes[1, 0], lines, limit)
        axes[0, 0].set_ylabel("mean squared error")
        axes[1, 0].set_ylabel("k · MSE / exact safe limit")
        for place, (rail, (true, believed)) in zip(axes[2:, 0], guarded.items(), strict=True):
            curves.violations(place, true, believed)
            place.set_ylabel(f"{rail}: violation" if rail else "cumulative violation")
        first = next(iter(results.curves[name].values())).rows[0]
        said = f"{first['episodes']:,} episodes, {first['runs']:,} campaigns"
        axes[0, 0].set_title(f"{_title(results, name)}: {said}")
        explain(made, signs)
        return save(made, folder, re.sub(r"[^\w.-]", "_", name))


def _rates(rows: list[Row], folder: Path) -> list[Path]:
    """The regret, a panel for each scenario and what it is measured against."""
    found = nested(rows, "scenario", "against", "collector")
    panels = [(scenario, against, own) for scenario, by in found.items() for against, own in by.items()]
    with figure(len(panels), 1, COLUMN, 2.2 * len(panels) + 0.4) as (made, axes):
        for place, (scenario, against, own) in zip(axes[:, 0], panels, strict=True):
            curves.regrets(place, [_fit(name, curve) for name, curve in own.items()])
            optimum = "the exact safe optimum" if against == "safe" else "no constraint"
            place.set_title(f"{scenario.capitalize()}, against {optimum}")
            place.set_ylabel("regret")
        explain(made, REGRET)
        return save(made, folder, "regret")


def _fit(name: str, curve: Curve) -> Fit:
    line = Line(name, *(curve.column(column) for column in ("episodes", "regret", "regret_se")))
    return Fit(line, curve.end("exponent"), (curve.end("high") - curve.end("low")) / 2)


def _prices(rows: list[Row], folder: Path) -> list[Path]:
    """The price of safety, exact and the paper's way."""
    found = nested(rows, "scenario")
    with figure(2, 1, COLUMN, 4.6) as (made, axes):
        for place, (column, title) in zip(axes[:, 0], WAYS, strict=True):
            curves.prices(place, _lines(found, column, over="alpha"), MARKED)
            place.set_title(title)
            place.set_ylabel("limit / limit without constraint")
        axes[1, 0].legend(frameon=False)
        return save(made, folder, "price")
