"""One look for all figures: legible in one column, in greyscale, and for the colour-blind.

Colours are Okabe and Ito's; every collector has a line style of its own too, and is named beside its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saver._files import replacing

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a paper, and both
FAR = 0.12  # heights of the axes: a name further from its line has no leader
GREY = "#777777"
TOP = 1.02  # of the names beside lines, in heights of the axes


class Look(NamedTuple):
    """How a collector is drawn."""

    name: str
    colour: str
    dashes: Any = "solid"
    width: float = 1.2


LOOKS = {
    "saver-opt": Look("saver-opt", "#0072B2", "solid", 1.8),
    "saver": Look("SaVeR", "#D55E00"),
    "safe-oracle": Look("safe oracle", "#000000", (0, (5, 1.5))),
    "safe-on-policy": Look("safe on-policy", "#009E73", (0, (1, 1))),
    "sepec": Look("SEPEC", "#CC79A7", (0, (4, 1, 1, 1))),
    "saver-paper": Look("as printed", "#E69F00", (0, (2.5, 1))),
    "exact-oracle": Look("exact-oracle", "#56B4E9", (0, (3, 1, 1, 1, 1, 1))),
}
SPARE = ["#999933", "#882255", "#44AA99", "#332288", "#AA4499", "#117733"]
SCENARIOS = {
    "bandit": Look("bandit", "#D55E00"),
    "tree": Look("tree", "#009E73", (0, (5, 1.5))),
    "gridworld": Look("gridworld", "#0072B2", (0, (3, 1, 1, 1))),
    "movielens": Look("MovieLens", "#CC79A7", (0, (1, 1))),
    "intractable": Look("intractable", "#000000", (0, (2.5, 1))),
}
RC: Any = {
    "font.size": 7.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "saver",
}


def look(collector: str) -> Look:
    """The look of a collector; one that is not known gets a spare colour."""
    if collector in LOOKS:
        return LOOKS[collector]
    return Look(collector, SPARE[sum(collector.encode()) % len(SPARE)], (0, (6, 1, 1, 1)))


@contextmanager
def figure(rows: int, columns: int, width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, [rows, columns], in the house style and without a screen."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(RC):
        made = Figure(figsize=(width, height), layout="constrained")
        made.get_layout_engine().set(w_pad=0.05, h_pad=0.06)  # type: ignore[union-attr, call-arg]
        FigureCanvasAgg(made)
        yield made, made.subplots(rows, columns, squeeze=False)


def save(made: Any, folder: Path, name: str, kinds: tuple[str, ...] = ("png", "pdf")) -> list[Path]:
    """Write the figure in each kind, whole or not at all; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for kind in kinds:
        path = folder / f"{name}.{kind}"
        metadata = {{"pdf": "CreationDate", "svg": "Date"}.get(kind, "Software"): None}
        with replacing(path) as partial:
            made.savefig(partial, format=kind, metadata=metadata)
        made.set_layout_engine("none")  # the first drawing has laid it out
        written.append(path)
    return written


def label_lines(axes: Any, ends: list[tuple[str, float, str]], gap: float = 0.075) -> None:
    """Names right of the axes at the heights where the lines end, pushed apart where they would touch."""
    if not ends:
        return
    to_axes = axes.transScale + axes.transLimits
    heights = [to_axes.transform((axes.get_xlim()[1], y))[1] for _, y, _ in ends]
    order = np.argsort(heights)
    placed = np.clip(np.array(heights)[order], -0.02, 1.02)
    for _ in range(200):  # relax until no two are closer than `gap`
        for i in range(len(placed) - 1):
            lack = gap - (placed[i + 1] - placed[i])
            if lack > 1e-4:
                placed[i] -= lack / 2
                placed[i + 1] += lack / 2
    if placed[-1] > TOP:
        placed -= placed[-1] - TOP
    if placed[0] < 0.0:
        placed -= placed[0]
    for rank, index in enumerate(order):
        name, _, colour = ends[index]
        leader = {"arrowstyle": "-", "linewidth": 0.4, "color": colour, "shrinkA": 0, "shrinkB": 0}
        axes.annotate(
            name,
            (1.0, heights[index]),
            xytext=(1.04, placed[rank]),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=6,
            color=colour,
            arrowprops=leader if abs(placed[rank] - heights[index]) < FAR else None,
            annotation_clip=False,
        )
