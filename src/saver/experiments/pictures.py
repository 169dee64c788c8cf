"""Which figures the tables of a folder allow, and what of the tables goes into each."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from saver._types import Floats
from saver.experiments.catalogue import EXPERIMENTS
from saver.experiments.results import Results, measurements
from saver.experiments.tables import Row
from saver.figures import curves
from saver.figures.curves import Fit, Line
from saver.figures.designs import designs_picture
from saver.figures.style import COLUMN, PAGE, explain, figure, save

GROUPS = ("paper", "long")
MARKED = 0.25  # the alpha of every experiment of the catalogue
BANDS = ("band", "± 1 standard error of the mean over campaigns")
LIMIT = ("dotted", "exact safe limit: no safe way of collecting is below it in the long run")
BROKEN = ("broken", "the constraint is broken")
BELIEVED = ("dashed", "the violation that the collector believes possible")
Picture = tuple[str, Callable[[], list[Path]]]


def pictures(results: Results) -> list[Picture]:
    """The figures that the tables allow, as names and functions that write them into `figures/`."""
    folder = results.folder.path / "figures"
    folder.mkdir(exist_ok=True)
    made: list[Picture] = []
    for group in GROUPS:
        chosen = [n for n in results.experiments if n in EXPERIMENTS and EXPERIMENTS[n].figure == group]
        if len(chosen) > 1:
            made.append((group, partial(_panels, results, chosen, folder, group)))
    made += [(name, partial(_one, results, name, folder)) for name in results.experiments]
    if results.folder.holds("designs"):
        rows = results.folder.read("designs")
        for name in dict.fromkeys(row["scenario"] for row in rows):
            tables = visit_tables([row for row in rows if row["scenario"] == name])
            made.append((f"design-{name}", partial(designs_picture, tables, name, folder, f"design-{name}")))
    if results.folder.holds("rates"):
        made.append(("regret", partial(_rates, results, folder)))
    if results.folder.holds("prices"):
        made.append(("price", partial(_prices, results, folder)))
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
    found = [(name, results.curve(experiment, name)) for name in results.collectors(experiment)]
    return [Line(name, curve.episode, *curve.mse) for name, curve in found]


def _violations(results: Results, experiment: str) -> list[Line]:
    """The cumulative violation of each collector."""
    found = [(name, results.curve(experiment, name)) for name in results.collectors(experiment)]
    return [
        Line(name, curve.episode, curve.column("violation"), curve.column("violation_se"))
        for name, curve in found
    ]


def _guards(results: Results, experiment: str) -> dict[str, tuple[list[Line], list[Line]]]:
    """The same of each of several guardrails: as it is, and as each collector believed."""
    found = {}
    for name, curves_of in results.guards(experiment).items():
        true = [
            Line(collector, c.episode, -c.column("budget"), c.column("budget_se"))
            for collector, c in curves_of.items()
        ]
        believed = [
            Line(collector, c.episode, -c.column("believed"), np.zeros(len(c.rows)))
            for collector, c in curves_of.items()
        ]
        found[name] = (true, believed)
    return found


def _title(results: Results, experiment: str) -> str:
    """Above its panel."""
    return EXPERIMENTS[experiment].title if experiment in EXPERIMENTS else results.scenario(experiment)


def _panels(results: Results, names: list[str], folder: Path, group: str) -> list[Path]:
    """Two rows, like the paper's Figures 1 and 2."""
    with figure(2, len(names), PAGE * 1.12, 4.2) as (made, axes):
        for i, name in enumerate(names):
            curves.errors(axes[0, i], _mse(results, name), results.limit(results.scenario(name)))
            curves.violations(axes[1, i], _violations(results, name))
            axes[0, i].set_title(_title(results, name))
            axes[0, i].set_xlabel("")
        axes[0, 0].set_ylabel("mean squared error")
        axes[1, 0].set_ylabel("cumulative violation")
        explain(made, [BANDS, LIMIT, BROKEN], columns=3)
        return save(made, folder, group)


def _one(results: Results, name: str, folder: Path) -> list[Path]:
    """One experiment: errors, errors over the limit, violations, of several guardrails a panel each."""
    lines, limit = _mse(results, name), results.limit(results.scenario(name))
    guarded = _guards(results, name) or {"": (_violations(results, name), [])}
    signs = [BANDS, LIMIT, BROKEN] + ([BELIEVED] if len(guarded) > 1 else [])
    with figure(2 + len(guarded), 1, COLUMN, 6.4 + 1.9 * (len(guarded) - 1)) as (made, axes):
        curves.errors(axes[0, 0], lines, limit)
        curves.efficiency(axes[1, 0], lines, limit)
        axes[0, 0].set_ylabel("mean squared error")
        axes[1, 0].set_ylabel("k · MSE / exact safe limit")
        for place, (rail, (true, believed)) in zip(axes[2:, 0], guarded.items(), strict=True):
            curves.violations(place, true, believed)
            place.set_ylabel(f"{rail}: violation" if rail else "cumulative violation")
        first = results.curve(name, results.collectors(name)[0])
        runs, K = int(first.end("runs")), int(first.end("episodes"))
        axes[0, 0].set_title(f"{_title(results, name)}: {K:,} episodes, {runs:,} campaigns")
        explain(made, signs)
        return save(made, folder, re.sub(r"[^\w.-]", "_", name))


def _rates(results: Results, folder: Path) -> list[Path]:
    """The regret, a panel for each scenario and what it is measured against."""
    panels: dict[tuple[str, str], list[Fit]] = {}
    for rows in measurements(results.folder.read("rates")):
        K, regret, error = (
            np.array([float(row[name]) for row in rows]) for name in ("episodes", "regret", "regret_se")
        )
        row = rows[0]
        fit = Fit(Line(row["collector"], K, regret, error), row["exponent"], (row["high"] - row["low"]) / 2)
        panels.setdefault((row["scenario"], row["against"]), []).append(fit)
    with figure(len(panels), 1, COLUMN, 2.2 * len(panels) + 0.4) as (made, axes):
        for place, ((scenario, against), fits) in zip(axes[:, 0], panels.items(), strict=True):
            curves.regrets(place, fits)
            optimum = "the exact safe optimum" if against == "safe" else "no constraint"
            place.set_title(f"{scenario.capitalize()}, against {optimum}")
            place.set_ylabel("regret")
        explain(
            made,
            [
                ("point", "measured, ± 2 standard errors"),
                ("line", "fitted power law; in brackets half of the 95 % interval\nof its exponent"),
            ],
        )
        return save(made, folder, "regret")


def _prices(results: Results, folder: Path) -> list[Path]:
    """The price of safety, exact and the paper's way."""
    rows = results.folder.read("prices")
    shown = list(dict.fromkeys(row["scenario"] for row in rows))
    with figure(2, 1, COLUMN, 4.6) as (made, axes):
        ways = (("price", "Exact safe design"), ("paper", "The paper's: b* and baseline in turn"))
        for i, (column, title) in enumerate(ways):
            lines = []
            for name in shown:
                chosen = [row for row in rows if row["scenario"] == name]
                alpha, cost = (np.array([row[c] for row in chosen]) for c in ("alpha", column))
                lines.append(Line(name, alpha, cost, np.zeros(len(cost))))
            curves.prices(axes[i, 0], lines, MARKED)
            axes[i, 0].set_title(title)
            axes[i, 0].set_ylabel("limit / limit without constraint")
        axes[1, 0].legend(frameon=False)
        return save(made, folder, "price")
