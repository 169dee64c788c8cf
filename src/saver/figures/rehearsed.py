"""One figure of a rehearsal: how half-widths fall, how much is the baseline's, how near the lines came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.figures.style import (
    BAND,
    BLUE,
    DOTTED,
    GREEN,
    GREY,
    PAGE,
    RAILS,
    explain,
    figure,
    mark_axis,
    mark_broken,
    mark_episodes,
    save,
)  # fmt: skip

INNER = (0.05, 0.5, 0.95)  # quantiles
SPREAD = 0.3  # of the points of one guardrail, sideways


def picture(
    path: Path, title: str, episodes: Ints, alone: float, widths: Floats, share: Floats,
    budgets: dict[str, Floats],
) -> Path:  # fmt: skip
    """Draw it: `widths` and `share` are [runs, C], `budgets` {guardrail: [runs]}, `alone` the log's."""
    with figure(1, 3, PAGE, 2.4) as (made, axes):
        left, middle, right = axes[0]
        _widths(left, title, episodes, alone, widths)
        _shares(middle, episodes, share)
        _budgets(right, budgets)
        signs = [("band", "from the 5 % to the 95 % quantile of the campaigns; line: median")]
        explain(made, [*signs, ("dotted", "the log alone"), ("broken", "the promise is broken")], 3)
        return save(made, path.parent, path.stem, (path.suffix.removeprefix("."),))[0]


def _widths(axes: Any, title: str, episodes: Ints, alone: float, widths: Floats) -> None:
    low, middle, high = np.quantile(widths, INNER, axis=0, method="inverted_cdf")
    bounded = np.isfinite(high)
    axes.fill_between(episodes[bounded], low[bounded], high[bounded], color=BLUE, alpha=BAND, lw=0)
    drawn = np.isfinite(middle)
    axes.plot(episodes[drawn], middle[drawn], color=BLUE, lw=1.4)
    if np.isfinite(alone):
        axes.axhline(alone, color=GREY, ls=DOTTED, lw=0.9)
    axes.set_title(title)
    axes.set_ylim(0.0, 1.05 * axes.get_ylim()[1])
    mark_episodes(axes, episodes.astype(np.float64), "episodes")


def _shares(axes: Any, episodes: Ints, share: Floats) -> None:
    low, middle, high = 100.0 * np.quantile(share, INNER, axis=0, method="inverted_cdf")
    axes.fill_between(episodes, low, high, color=GREEN, alpha=BAND, lw=0)
    axes.plot(episodes, middle, color=GREEN, lw=1.4)
    axes.set_title("baseline episodes, %")
    axes.set_ylim(0.0, max(1.05 * float(high.max()), 1.0))
    mark_episodes(axes, episodes.astype(np.float64), "episodes")


def _budgets(axes: Any, budgets: dict[str, Floats]) -> None:
    """A strip of points for each guardrail."""
    for i, values in enumerate(budgets.values()):
        side = SPREAD * (2.0 * ((np.arange(len(values)) * 0.6180339887) % 1.0) - 1.0)
        axes.plot(i + side, values, ".", color=RAILS[i % len(RAILS)][0], ms=2.5, alpha=0.7, mew=0)
    every = np.concatenate(list(budgets.values()))
    top, least = max(float(every.max()), 0.0) or 1.0, min(float(every.min()), 0.0)
    bottom = min(1.1 * least, -0.12 * (top - least))
    mark_broken(axes, bottom, 1.08 * top, (bottom, 0.0))
    axes.set_xlim(-0.7, len(budgets) - 0.3)
    mark_axis(axes.yaxis, 6)
    axes.set_xticks(range(len(budgets)), list(budgets))
    axes.set_title("least budget")
    axes.set_ylabel("in episodes' worth")
