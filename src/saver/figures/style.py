"""One look for all figures: legible in one column, in greyscale, and for the colour-blind.

Colours are Okabe and Ito's; every collector has a line style and a marker of its own too, and is named beside
its line as everywhere else.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saver._files import written
from saver._types import Floats

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a paper, and both
BOTH: tuple[str, ...] = ("png", "pdf")  # what a figure is saved as
GREY, BLUE, ORANGE, GREEN, PINK = "#777777", "#0072B2", "#D55E00", "#009E73", "#CC79A7"
End = tuple[str, float, str]  # of a line: name, height, colour


class Look(NamedTuple):
    """How a collector, or a scenario, is drawn everywhere."""

    colour: str
    dashes: Any = "solid"
    width: float = 1.2
    marker: str = "o"


LOOKS = {
    "saver-opt": Look(BLUE, "solid", 1.8, "o"),
    "saver": Look(ORANGE, "solid", 1.2, "^"),
    "safe-oracle": Look("#000000", (0, (5, 1.5)), 1.2, "s"),
    "safe-on-policy": Look(GREEN, (0, (1, 1)), 1.2, "v"),
    "sepec": Look(PINK, (0, (4, 1, 1, 1)), 1.2, "D"),
    "saver-paper": Look("#E69F00", (0, (2.5, 1)), 1.2, "P"),
    "exact-oracle": Look("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), 1.2, "X"),
    "model-oracle": Look("#88CCEE", (0, (9, 1, 1, 1)), 1.2, "1"),
    "oracle": Look("#666666", (0, (7, 1.5)), 1.2, "p"),
    "revar": Look("#882255", (0, (5, 1, 2, 1)), 1.2, "h"),
    "on-policy": Look("#44AA99", (0, (1, 2)), 1.2, "<"),
    "sepec-none": Look("#AA4499", (0, (4, 1, 1, 1, 1, 1)), 1.2, "d"),
    "sepec-known": Look("#661100", (0, (6, 1, 1, 1)), 1.2, "8"),
    "uniform": Look("#999933", (0, (2, 2)), 1.2, ">"),
    "baseline": Look("#332288", (0, (8, 2, 2, 2)), 1.2, "*"),
}
OTHER = Look("#117733", (0, (3, 2, 1, 2)), 1.2, "H")  # whatever has no look of its own
SCENARIOS = {
    "bandit": Look(ORANGE),
    "tree": Look(GREEN, (0, (5, 1.5))),
    "gridworld": Look(BLUE, (0, (3, 1, 1, 1))),
    "movielens": Look(PINK, (0, (1, 1))),
    "intractable": Look("#000000", (0, (2.5, 1))),
}

# of several guardrails: colours, and dashes
RAILS = ((BLUE, "solid"), (ORANGE, (0, (5, 1.5))), (GREEN, (0, (1, 1))), (PINK, (0, (3, 1, 1, 1))))
DOTTED, DASHED = (0, (1.5, 1)), (0, (4, 2))  # the exact safe limit; what is believed
BAND = 0.25  # opacity
BROKEN: Any = {"facecolor": "#F6E3E3", "edgecolor": "#B03030", "hatch": "//////", "lw": 0}
MINUS = "\N{MINUS SIGN}"
TINY = 0.000999  # below this, digits after the point are many
TOP = 1.02  # of the names beside lines, in heights of the axes
GAP = 0.085  # the least distance of two names
AWAY = 0.09  # of the names from the axes, in their widths
LEADER: Any = {"arrowstyle": "-", "linewidth": 0.4, "shrinkA": 1, "shrinkB": 0, "relpos": (0.0, 0.5)}
RC: Any = {
    **dict.fromkeys(("font.size", "axes.labelsize"), 7.5),
    "axes.titlesize": 8.5,
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 6.5),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.3,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "saver",
}


@contextmanager
def figure(rows: int, columns: int, width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, [rows, columns], in the house style and without a screen."""
    log = logging.getLogger("matplotlib")
    before = log.level
    log.setLevel(logging.ERROR)  # without remarks on its own cache: `_jit` has said what cannot be written
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    finally:
        log.setLevel(before)
    with mpl.rc_context(RC):
        made = Figure(figsize=(width, height), layout="constrained")
        made.get_layout_engine().set(w_pad=0.05, h_pad=0.06)  # type: ignore[union-attr, call-arg]
        FigureCanvasAgg(made)
        yield made, made.subplots(rows, columns, squeeze=False)


def save(made: Any, folder: Path, name: str, kinds: tuple[str, ...] = BOTH) -> list[Path]:
    """Write the figure in each kind, whole or not at all; the same figure gives the same bytes."""
    paths = [folder / f"{name}.{kind}" for kind in kinds]
    for kind, path in zip(kinds, paths, strict=True):
        metadata = {{"pdf": "CreationDate", "svg": "Date"}.get(kind, "Software"): None}
        with written(path) as partial:
            made.savefig(partial, format=kind, metadata=metadata)
        made.set_layout_engine("none")  # the first drawing has laid it out
    return paths


def explain(made: Any, signs: list[tuple[str, str]], columns: int = 1) -> None:
    """What the signs of a figure mean, below it: rows of (sign, meaning)."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    line = partial(Line2D, [], [], color=GREY)
    shown: dict[str, Any] = {
        "band": Patch(color=GREY, alpha=BAND, lw=0),
        "dotted": line(ls=DOTTED, lw=0.9),
        "dashed": line(ls=DASHED, lw=0.6),
        "line": line(lw=1.0),
        "broken": Patch(**BROKEN),
        "point": tuple(line(marker=marker, ms=size, lw=0) for marker, size in (("|", 8), ("o", 3))),
    }
    handles, texts = [shown[sign] for sign, _ in signs], [meaning for _, meaning in signs]
    made.legend(
        handles, texts, loc="outside lower center", ncols=columns, fontsize=6, frameon=False, handlelength=2.2
    )


def number_text(value: float, tiny: bool = False) -> str:
    """The one way in which axes say a number: 0.05, 2, 30k; or 5e-2 on an axis with `tiny` ones."""
    sign, size = MINUS if value < 0 else "", abs(value)
    if size >= 1000:
        return f"{sign}{size / 1000:g}k"
    if not tiny or size == 0:
        return f"{sign}{size:g}"
    exponent = math.floor(math.log10(size) + 1e-9)
    return f"{sign}{size / 10.0**exponent:.3g}e{exponent}".replace("-", MINUS)


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


def mark_episodes(axes: Any, episodes: Floats, name: str, ends: Sequence[End] = ()) -> None:
    """Numbers at the axes of something over `episodes`, which are called so, and names of lines."""
    axes.set_xlabel(name)
    axes.set_xlim(0.0, max(float(episodes[-1]), 1.0))
    mark_axes(axes)
    label_lines(axes, ends)


def mark_broken(axes: Any, low: float, high: float, broken: tuple[float, float]) -> None:
    """Where the constraint is broken, between two ends of which one is 0; the axis goes from low to high."""
    axes.axhline(0.0, color=BROKEN["edgecolor"], lw=0.9, zorder=1)
    axes.axhspan(*broken, **BROKEN, zorder=0)
    axes.set_ylim(low, high)


def label_lines(axes: Any, ends: Sequence[End]) -> None:
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
            name, (1.0, heights[index]), (1.0 + AWAY, placed), "axes fraction", "axes fraction", va="center",
            fontsize=6, color=colour, arrowprops={**LEADER, "color": colour}, annotation_clip=False,
        )  # fmt: skip


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
