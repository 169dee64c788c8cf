"""Curves: errors, violations, regret, prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saver.figures.style import GREY, SCENARIOS, Look, label_lines, look
from saver.problem.checks import Floats

FIRST = 0.04  # of a campaign that is left out on the left, where errors are of another size
BAND = 0.25  # opacity
MARKS = "os^D"


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
    """The mean squared error on a log axis, with one standard error; dashed grey: the exact safe limit."""
    ends = []
    for name, k, mse, spread in lines:
        style = look(name)
        shown = (k >= FIRST * k[-1]) & (mse > 0)
        if not shown[-1]:
            continue  # nothing to draw on a log axis
        low = np.maximum(mse - spread, mse / 10)
        _band(axes, style, k[shown], mse[shown], low[shown], (mse + spread)[shown])
        ends.append((style.name, float(mse[-1]), style.colour))
    all_k = lines[0].x
    k = all_k[all_k >= FIRST * all_k[-1]]
    best = limit / k
    if np.all(best > 0):
        axes.plot(k, best, color=GREY, ls=(0, (1.5, 1)), lw=0.9)
        ends.append(("limit / k", float(best[-1]), GREY))
    if ends:
        axes.set_yscale("log")
    axes.yaxis.set_minor_formatter("")
    axes.set_xlim(0, all_k[-1])
    _episodes(axes)
    label_lines(axes, ends)


def efficiency(axes: Any, lines: Sequence[Line], limit: float) -> None:
    """k * MSE over the exact safe limit: 1 is the best that is possible in the long run."""
    ends, top = [], 1.0
    if limit <= 0:
        axes.set_axis_off()  # nothing varies: there is no limit to compare with
        return
    for name, k, mse, spread in lines:
        style = look(name)
        ratio, half = k * mse / limit, k * spread / limit
        shown = k >= FIRST * k[-1]
        _band(axes, style, k[shown], ratio[shown], (ratio - half)[shown], (ratio + half)[shown])
        ends.append((style.name, float(ratio[-1]), style.colour))
        top = max(top, float((ratio + half)[shown].max()))
    axes.axhline(1.0, color=GREY, ls=(0, (1.5, 1)), lw=0.9)
    axes.set_yscale("log")
    axes.set_ylim(0.7, top * 1.2)
    axes.set_xlim(0, float(lines[0].x[-1]))
    _episodes(axes)
    _plain_ticks(axes.yaxis, top)
    label_lines(axes, ends)


def violations(axes: Any, lines: Sequence[Line]) -> None:
    """The cumulative violation, minus the true budget: above the zero line the constraint is broken."""
    ends = []
    for name, k, mean, spread in lines:
        style = look(name)
        _band(axes, style, k, mean, mean - spread, mean + spread)
        ends.append((style.name, float(mean[-1]), style.colour))
    bottom, top = axes.get_ylim()
    top = max(top, -0.06 * bottom)
    axes.axhline(0.0, color="#CC3377", lw=0.9)
    axes.axhspan(0.0, top, color="#CC3377", alpha=0.08, lw=0)
    axes.set_ylim(bottom, top)
    axes.set_xlim(0, lines[0].x[-1])
    _episodes(axes)
    label_lines(axes, ends)


def regrets(axes: Any, fits: Sequence[Fit]) -> None:
    """The regret over the number of episodes, with the fitted power laws."""
    ends: list[tuple[str, float, str]] = []
    for (name, K, y, se), exponent, half in fits:
        style = look(name)
        mark = MARKS[len(ends) % len(MARKS)]
        axes.errorbar(K, y, 2 * se, color=style.colour, marker=mark, ms=3, lw=0, elinewidth=0.8)
        w = (y / np.maximum(se, 1e-6 * y)) ** 2 / np.sum((y / np.maximum(se, 1e-6 * y)) ** 2)
        centre = np.exp(np.sum(w * np.log(y))) * (K / np.exp(np.sum(w * np.log(K)))) ** exponent
        axes.plot(K, centre, color=style.colour, ls=style.dashes, lw=1.0)
        ends.append((f"{style.name}: {exponent:.3f} ± {half:.3f}", float(centre[-1]), style.colour))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("episodes K")
    axes.set_xlim(right=1.15 * float(fits[-1].points.x[-1]))
    label_lines(axes, ends)


def prices(axes: Any, lines: Sequence[Line]) -> None:
    """What safety costs over alpha, by scenario."""
    for name, alpha, cost, _ in lines:
        style = SCENARIOS[name]
        axes.plot(alpha, cost, color=style.colour, ls=style.dashes)
    axes.set_yscale("log")
    axes.set_xlim(0, 1)
    axes.set_ylim(0.93, 60)
    axes.axvline(0.25, color=GREY, lw=0.6, ls=(0, (1, 2)))
    _plain_ticks(axes.yaxis, 60)
    axes.set_xlabel("risk alpha")


def _band(axes: Any, style: Look, k: Floats, middle: Floats, low: Floats, high: Floats) -> None:
    """A line with what it may be off by."""
    axes.plot(k, middle, color=style.colour, ls=style.dashes, lw=style.width)
    axes.fill_between(k, low, high, color=style.colour, alpha=BAND, lw=0)


def _episodes(axes: Any) -> None:
    """Few round numbers."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlabel("episode k")
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k / 1000:g}k" if k >= 1000 else f"{k:g}"))


def _plain_ticks(axis: Any, top: float) -> None:
    """1, 2, 5, 10, ... in plain digits."""
    from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

    marks = [m * 10**e for e in range(int(math.log10(max(top, 1.0))) + 1) for m in (1, 2, 5)]
    axis.set_major_locator(FixedLocator([mark for mark in marks if mark <= top * 1.2]))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
