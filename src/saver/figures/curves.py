"""Curves of arrays: errors, violations, regret, prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.figures.marks import label_lines, mark_axes
from saver.figures.style import BAND, BROKEN, DASHED, DOTTED, GREY, LOOKS, OTHER, SCENARIOS

FIRST = 0.04  # of a campaign that is left out on the left, where errors are of another size


class Line(NamedTuple):
    """What one collector, or one scenario, has at each x, and its standard error: three arrays [points]."""

    name: str
    x: Floats
    y: Floats
    error: Floats


class Fit(NamedTuple):
    """Measured points and the power law that was fitted to them, y ~ x^exponent, exponent +- half."""

    points: Line
    exponent: float
    half: float


def errors(axes: Any, lines: Sequence[Line], limit: float) -> None:
    """The mean squared error on a log axis, with one standard error; dotted grey: the exact safe limit."""
    ends = []
    for name, k, mse, spread in lines:
        shown = (k >= FIRST * k[-1]) & (mse > 0)
        if not shown[-1]:
            continue  # nothing to draw on a log axis
        low = np.maximum(mse - spread, mse / 10)
        ends.append(_band(axes, name, k[shown], mse[shown], low[shown], (mse + spread)[shown]))
    all_k = lines[0].x
    k = all_k[all_k >= FIRST * all_k[-1]]
    best = limit / k
    if np.all(best > 0):
        axes.plot(k, best, color=GREY, ls=DOTTED, lw=0.9)
        ends.append(("limit / k", float(best[-1]), GREY))
    if ends:
        axes.set_yscale("log")
    _over_episodes(axes, all_k, ends)


def efficiency(axes: Any, lines: Sequence[Line], limit: float) -> None:
    """k * MSE over the exact safe limit: 1 is the best that is possible in the long run."""
    ends, top = [], 1.0
    if limit <= 0:
        axes.set_axis_off()  # nothing varies: there is no limit to compare with
        return
    for name, k, mse, spread in lines:
        ratio, half = k * mse / limit, k * spread / limit
        shown = k >= FIRST * k[-1]
        ends.append(_band(axes, name, k[shown], ratio[shown], (ratio - half)[shown], (ratio + half)[shown]))
        top = max(top, float((ratio + half)[shown].max()))
    axes.axhline(1.0, color=GREY, ls=DOTTED, lw=0.9)
    axes.set_yscale("log")
    axes.set_ylim(0.7, top * 1.2)
    _over_episodes(axes, lines[0].x, ends)


def violations(axes: Any, lines: Sequence[Line], believed: Sequence[Line] = ()) -> None:
    """The cumulative violation, minus the true budget: above the zero line the constraint is broken.

    Thin and dashed: what is `believed` of it.
    """
    ends = [_band(axes, name, k, mean, mean - spread, mean + spread) for name, k, mean, spread in lines]
    for name, k, mean, _ in believed:
        axes.plot(k, mean, color=LOOKS.get(name, OTHER).colour, ls=DASHED, lw=0.6)
    bottom, top = axes.get_ylim()
    top = max(top, -0.06 * bottom)
    axes.axhline(0.0, color=BROKEN["edgecolor"], lw=0.9, zorder=1)
    axes.axhspan(0.0, top, **BROKEN, zorder=0)
    axes.set_ylim(bottom, top)
    _over_episodes(axes, lines[0].x, ends)


def regrets(axes: Any, fits: Sequence[Fit]) -> None:
    """The regret over the number of episodes, with two standard errors and the fitted power laws."""
    ends = []
    for (name, K, y, se), exponent, half in fits:
        style = LOOKS.get(name, OTHER)
        axes.errorbar(K, y, 2 * se, color=style.colour, marker=style.marker, ms=3, lw=0, elinewidth=0.8)
        w = (y / np.maximum(se, 1e-6 * y)) ** 2 / np.sum((y / np.maximum(se, 1e-6 * y)) ** 2)
        centre = np.exp(np.sum(w * np.log(y))) * (K / np.exp(np.sum(w * np.log(K)))) ** exponent
        axes.plot(K, centre, color=style.colour, ls=style.dashes, lw=1.0)
        text = f"{name}: $K^{{{exponent:.3f}}}$ (±{half:.3f})"
        ends.append((text, float(centre[-1]), style.colour))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("episodes K")
    axes.set_xlim(right=1.15 * float(fits[-1].points.x[-1]))
    mark_axes(axes)
    label_lines(axes, ends)


def prices(axes: Any, lines: Sequence[Line], marked: float) -> None:
    """What safety costs over alpha, by scenario; dotted: one alpha that is marked."""
    for name, alpha, cost, _ in lines:
        style = SCENARIOS.get(name, OTHER)
        axes.plot(alpha, cost, color=style.colour, ls=style.dashes, label=name)
    axes.set_yscale("log")
    axes.set_xlim(0, 1)
    axes.set_ylim(0.93, 60)
    axes.axvline(marked, color=GREY, lw=0.9, ls=DOTTED)
    axes.annotate(
        f"alpha {marked:g},\nas in the experiments", (marked, 1.0), (3, -1), fontsize=6, color=GREY, va="top",
        xycoords=("data", "axes fraction"), textcoords="offset points",
    )  # fmt: skip
    axes.set_xlabel("risk alpha")
    mark_axes(axes)


def _band(
    axes: Any, name: str, k: Floats, middle: Floats, low: Floats, high: Floats
) -> tuple[str, float, str]:
    """A line with what it may be off by; its name, end and colour."""
    style = LOOKS.get(name, OTHER)
    axes.plot(k, middle, color=style.colour, ls=style.dashes, lw=style.width)
    axes.fill_between(k, low, high, color=style.colour, alpha=BAND, lw=0)
    return name, float(middle[-1]), style.colour


def _over_episodes(axes: Any, k: Floats, ends: list[tuple[str, float, str]]) -> None:
    axes.set_xlabel("episode k")
    axes.set_xlim(0, float(k[-1]))
    mark_axes(axes)
    label_lines(axes, ends)
