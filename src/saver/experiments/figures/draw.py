"""Every figure of a folder, from its tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from saver.experiments.catalogue import EXPERIMENTS
from saver.experiments.figures import curves
from saver.experiments.figures.pictures import designs_picture
from saver.experiments.figures.style import COLUMN, PAGE, SCENARIOS, figure, save
from saver.experiments.results import Results

GROUPS = ("paper", "long")
Drawing = tuple[str, Callable[[], list[Path]]]


def drawings(results: Results) -> list[Drawing]:
    """What the tables allow to be drawn, as names and functions that draw it into `figures/`."""
    folder = results.folder.path / "figures"
    made: list[Drawing] = []
    for group in GROUPS:
        chosen = [n for n in results.experiments if n in EXPERIMENTS and EXPERIMENTS[n].figure == group]
        if len(chosen) > 1:
            made.append((group, partial(_panels, results, chosen, folder, group)))
    made += [(name, partial(_one, results, name, folder)) for name in results.experiments]
    if results.has("designs"):
        rows = results.table("designs")
        for name in dict.fromkeys(row["scenario"] for row in rows):
            chosen_rows = [row for row in rows if row["scenario"] == name]
            made.append((name, partial(designs_picture, chosen_rows, name, folder, f"design-{name}")))
    if results.has("rates"):
        made.append(("regret", partial(_rates, results, folder)))
    if results.has("prices"):
        made.append(("price", partial(_prices, results, folder)))
    return made


def _panels(results: Results, names: list[str], folder: Path, group: str) -> list[Path]:
    """Two rows, like the paper's Figures 1 and 2."""
    with figure(2, len(names), PAGE * 1.12, 4.2) as (made, axes):
        for i, name in enumerate(names):
            collectors = results.collectors(name)
            curves.errors(axes[0, i], results, name, collectors)
            curves.violations(axes[1, i], results, name, collectors)
            axes[0, i].set_title(curves.title_of(results, name))
            axes[0, i].set_xlabel("")
        axes[0, 0].set_ylabel("mean squared error")
        axes[1, 0].set_ylabel("cumulative violation\n(above 0: broken)")
        return save(made, folder, group)


def _one(results: Results, name: str, folder: Path) -> list[Path]:
    collectors = results.collectors(name)
    with figure(3, 1, COLUMN, 6.0) as (made, axes):
        curves.errors(axes[0, 0], results, name, collectors)
        curves.efficiency(axes[1, 0], results, name, collectors)
        curves.violations(axes[2, 0], results, name, collectors)
        axes[0, 0].set_ylabel("mean squared error")
        axes[1, 0].set_ylabel("k · MSE / exact safe limit")
        axes[2, 0].set_ylabel("cumulative violation\n(above 0: broken)")
        first = results.curve(name, collectors[0])
        runs, K = int(first.end("runs")), int(first.end("episodes"))
        axes[0, 0].set_title(f"{curves.title_of(results, name)}: {K:,} episodes, {runs:,} campaigns")
        return save(made, folder, re.sub(r"[^\w.-]", "_", name))


def _rates(results: Results, folder: Path) -> list[Path]:
    rows = results.table("rates")
    asked = list(dict.fromkeys((row["scenario"], row["against"]) for row in rows))
    with figure(len(asked), 1, COLUMN, 2.2 * len(asked)) as (made, axes):
        for place, (scenario, against) in zip(axes[:, 0], asked, strict=True):
            chosen = [row for row in rows if (row["scenario"], row["against"]) == (scenario, against)]
            curves.regrets(place, chosen)
            optimum = "the exact safe optimum" if against == "safe" else "no constraint"
            place.set_title(f"{scenario.capitalize()}, against {optimum}")
            place.set_ylabel("regret (points: ±2 s.e.)")
        return save(made, folder, "regret")


def _prices(results: Results, folder: Path) -> list[Path]:
    rows = results.table("prices")
    with figure(2, 1, COLUMN, 4.4) as (made, axes):
        for i, (column, title) in enumerate((("price", "Exact safe design"), ("paper", "The paper's way"))):
            curves.prices(axes[i, 0], rows, column)
            axes[i, 0].set_title(title)
            axes[i, 0].set_ylabel("error over the unconstrained")
        shown = list(dict.fromkeys(row["scenario"] for row in rows))
        axes[1, 0].legend(
            axes[1, 0].get_lines()[: len(shown)], [SCENARIOS[name].name for name in shown], frameon=False
        )
        return save(made, folder, "price")
