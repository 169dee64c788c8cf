"""What stands around curves: numbers at the axes, names beside the lines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._types import Floats

MINUS = "\N{MINUS SIGN}"
TINY = 0.000999  # below this, digits after the point are many
TOP = 1.02  # of the names beside lines, in heights of the axes
GAP = 0.085  # the least distance of two names
AWAY = 0.09  # of the names from the axes, in their widths


def number_text(value: float, tiny: bool = False) -> str:
    """The one way in which axes say a number: 0.05, 2, 30k; or 5e-2 on an axis with `tiny` ones."""
    sign, size = MINUS if value < 0 else "", abs(value)
    if size >= 1000:
        return f"{sign}{size / 1000:g}k"
    if not tiny or size == 0:
        return f"{sign}{size:g}"
    exponent = math.floor(math.log10(size) + 1e-9)
    power = f"{MINUS if exponent < 0 else ''}{abs(exponent)}"
    return f"{sign}{size / 10.0**exponent:.3g}e{power}"


def log_marks(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers, or 1, 2, 5, 10, ... where there are fewer than three."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [10.0**e for e in decades if low <= 10.0**e <= high]
    if len(found) < 3:
        found = [m * 10.0**e for e in decades for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    return found


def mark_axes(axes: Any) -> None:
    """Numbers at both axes."""
    mark_axis(axes.xaxis, 3)
    mark_axis(axes.yaxis, 6)


def mark_axis(axis: Any, count: int) -> None:
    """Few round numbers, all written in one way, and nothing between them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    low, high = axis.get_view_interval()
    log = axis.get_scale() == "log"
    marks = log_marks(low, high) if log else MaxNLocator(count, steps=[1, 2, 5, 10]).tick_values(low, high)
    shown = [mark for mark in marks if low <= mark <= high]
    tiny = log and min(shown, default=1.0) < TINY
    axis.set_major_locator(FixedLocator(shown))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value, tiny)))


def label_lines(axes: Any, ends: list[tuple[str, float, str]]) -> None:
    """Names (name, height, colour) right of the axes, in the order of their lines' ends.

    Where they would touch they are pushed apart; a leader goes from each line's end to the left of its name,
    so that no leader crosses another or runs under a name.
    """
    if not ends:
        return
    to_axes = axes.transScale + axes.transLimits
    heights = np.array([to_axes.transform((axes.get_xlim()[1], y))[1] for _, y, _ in ends])
    order = np.argsort(heights, kind="stable")
    for index, placed in zip(order, _apart(np.clip(heights[order], -0.02, TOP)), strict=True):
        name, _, colour = ends[index]
        axes.annotate(
            name,
            (1.0, heights[index]),
            xytext=(1.0 + AWAY, placed),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=6,
            color=colour,
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.4,
                "color": colour,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
            annotation_clip=False,
        )


def _apart(heights: Floats) -> Floats:
    """Ascending heights, moved as little as needed for none to be closer than GAP."""
    placed = heights.copy()
    for _ in range(200):
        for i in range(len(placed) - 1):
            lack = GAP - (placed[i + 1] - placed[i])
            if lack > 1e-4:
                placed[i] -= lack / 2
                placed[i + 1] += lack / 2
    placed -= max(0.0, placed[-1] - TOP)
    placed -= min(0.0, placed[0])
    return placed
