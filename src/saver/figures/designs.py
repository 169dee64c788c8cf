"""Where a behaviour goes: a tree as a tree, a grid as a grid, anything else as bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from saver._types import Floats
from saver.figures.style import BLUE, BOTH, GREY, ORANGE, PAGE, figure, mark_axis, save

Visits = dict[str, Floats]  # expected in an episode of each design, [S, A]
Kinds = tuple[str, ...]
Names = Sequence[str] | None  # of the pairs, if they have any
Signs = tuple[tuple[str, str], ...]  # what is said, and in which colour
SHOWN = {
    "target": "target",
    "tree": "tree (the paper's)",
    "dag by step": "dag by step (the paper's)",
    "exact": "exact (no constraint)",
    "exact safe": "exact safe",
}
BARS = 60  # pairs that a bar chart shows
NAMED, LEAST = 2, 0.1  # levels of a tree whose edges are named, and from which share on
TREE = (
    ("blue, to the left: action 0, quiet and safe", BLUE),
    ("orange, to the right: action 1, noisy and unsafe", ORANGE),
    (
        "width of an edge: the share of episodes that take it; the numbers say it on the first "
        f"{NAMED} steps, from {LEAST:.0%} on",
        "black",
    ),
)
GRID = (
    ("number and shade of a cell: its expected visits in an episode, which starts at the top left", "black"),
    ("arrow: a direction that is taken there, the longer the more often", "black"),
)


def picture_designs(designs: Visits, scenario: str, path: Path, names: Names = None) -> Path:
    """One picture of the designs of a scenario, in the format that the path's ending names."""
    kind = path.suffix.lstrip(".") or "png"
    return designs_picture(designs, scenario, path.parent, path.stem, (kind,), names)[0]


def designs_picture(
    designs: Visits, scenario: str, folder: Path, name: str, kinds: Kinds = BOTH, names: Names = None
) -> list[Path]:
    """Designs side by side."""
    wanted = [label for label in SHOWN if label in designs and not (label == "exact" and "tree" in designs)]
    tables = {label: designs[label] for label in wanted}
    states, actions = next(iter(tables.values())).shape
    top = max(float(table.max()) for table in tables.values())
    draw: Callable[..., None] = partial(_bars, top=top, said=names)
    height, signs = 2.4, Signs()
    if scenario == "tree" and states > 1 and actions == 2 and (states + 1) & states == 0:
        draw, height, signs = _tree, 2.7, TREE
    elif scenario == "gridworld" and math.isqrt(states) ** 2 == states and actions == 4:
        draw, height, signs = _grid, 2.3, GRID
    with figure(1, len(tables), PAGE, height) as (made, axes):
        for place, (label, table) in zip(axes[0], tables.items(), strict=True):
            draw(place, table)
            place.set_title(SHOWN[label])
        if signs:
            _explain(made, signs)
        else:
            axes[0, 0].set_ylabel("expected visits in an episode")
        return save(made, folder, name, kinds)


def _explain(made: Any, signs: Signs) -> None:
    """Below the pictures: each text in its colour."""
    step = 0.055
    made.get_layout_engine().set(rect=(0.0, step * len(signs), 1.0, 1.0 - step * len(signs)))
    for i, (text, colour) in enumerate(signs):
        made.text(0.02, step * (len(signs) - i - 0.6), text, color=colour, fontsize=6, va="center")


def _tree(axes: Any, table: Floats) -> None:
    """Every action an edge, as wide as it is often taken; the number is the share of episodes."""
    for s in range(len(table)):
        x, y = _placed(s)
        for a, (colour, off, side) in enumerate(((BLUE, -4, "right"), (ORANGE, 4, "left"))):
            (x2, y2), share = _placed(2 * s + 1 + a), float(table[s, a])
            axes.plot([x, x2], [y, y2], color=colour, lw=0.3 + 7 * share, solid_capstyle="butt", zorder=1)
            if share >= LEAST and -y < NAMED:
                axes.annotate(
                    f"{share:.0%}", ((x + x2) / 2, y - 0.5), (off, 2), fontsize=6,
                    textcoords="offset points", ha=side, va="center", color=colour,
                )  # fmt: skip
        axes.plot(x, y, "o", color="white", mec="black", ms=3.5, mew=0.6, zorder=2)
    axes.set_axis_off()
    axes.set_xlim(0, 1)


def _placed(s: int) -> tuple[float, float]:
    """A state's place among those of its level, from 0 to 1, and minus that level."""
    level = math.floor(math.log2(s + 1))
    return (s + 1.5 - 2.0**level) / 2.0**level, -float(level)


def _grid(axes: Any, table: Floats) -> None:
    """Every cell darker the more it is visited, every action an arrow as long as its share."""
    from matplotlib.colors import LinearSegmentedColormap

    side = math.isqrt(len(table))
    seen = table.sum(axis=1).reshape(side, side)
    shades = LinearSegmentedColormap.from_list("visits", ["#FFFFFF", "#9ECAE1", "#3182BD"])
    axes.imshow(seen, cmap=shades, vmin=0.0, vmax=2.2)
    ways = np.array([[-1, 0], [1, 0], [0, 1], [0, -1]])  # left, right, down, up; the axis of rows points down
    look = {"arrowstyle": "-|>,head_length=0.18,head_width=0.12", "lw": 0.8, "shrinkA": 0, "shrinkB": 0}
    for s in range(side * side - 1):
        row, column = divmod(s, side)
        total = table[s].sum()
        for way, d in zip(ways, table[s], strict=True):
            share = float(d / total) if total > 0 else 0.0
            if share > 0.02:
                end = (column, row) + way * min(0.46, 0.06 + 0.85 * share)
                axes.annotate("", end, (column, row), arrowprops={**look, "color": "black"})
        axes.text(column - 0.45, row - 0.32, f"{total:.2f}", fontsize=5, color="black")
    axes.text(side - 1, side - 1, "end", ha="center", va="center", fontsize=6, color=GREY)
    axes.set_xticks(np.arange(side + 1) - 0.5, labels=[])
    axes.set_yticks(np.arange(side + 1) - 0.5, labels=[])
    axes.tick_params(length=0)
    axes.grid(color="white", lw=1)
    axes.spines[:].set_visible(False)


def _bars(axes: Any, table: Floats, top: float, said: Names) -> None:
    """One bar for each pair, the most visited ones if there are many."""
    flat = table.ravel()
    chosen = np.sort(np.argsort(-flat, kind="stable")[:BARS])
    axes.bar(np.arange(len(chosen)), flat[chosen], color=BLUE)
    A = table.shape[1]
    names = said or [f"{i}" if len(table) == 1 else f"{i // A},{i % A}" for i in range(table.size)]
    step = max(1, len(chosen) // 12)
    axes.set_xticks(np.arange(len(chosen))[::step], labels=[names[i] for i in chosen[::step]])
    axes.tick_params(axis="x", labelrotation=0 if said is None else 90)
    axes.set(xlabel="action" if len(table) == 1 else "state,action", ylim=(0, top * 1.05))
    mark_axis(axes.yaxis, 6)
