"""Where a behaviour goes: a tree as a tree, a grid as a grid, anything else as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saver._types import Floats
from saver.figures.marks import mark_axis
from saver.figures.style import GREY, PAGE, figure, save

SHOWN = {
    "target": "target",
    "tree": "tree (the paper's)",
    "dag by step": "dag by step (the paper's)",
    "exact": "exact (no constraint)",
    "exact safe": "exact safe",
}
BLUE = "#0072B2"
ORANGE = "#D55E00"
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


def picture_designs(
    tables: dict[str, Floats], scenario: str, path: Path, names: Sequence[str] | None = None
) -> Path:
    """One picture of the designs of a scenario, in the format that the path's ending names.

    `names` are those of the pairs, if they have any.
    """
    kinds = (path.suffix.lstrip(".") or "png",)
    return designs_picture(tables, scenario, path.parent, path.stem, kinds, names)[0]


def designs_picture(
    designs: dict[str, Floats],
    scenario: str,
    folder: Path,
    name: str,
    kinds: tuple[str, ...] = ("png", "pdf"),
    names: Sequence[str] | None = None,
) -> list[Path]:
    """Designs side by side: name -> expected visits in an episode, [S, A]."""
    wanted = [label for label in SHOWN if label in designs and not (label == "exact" and "tree" in designs)]
    tables = {label: designs[label] for label in wanted}
    states, actions = next(iter(tables.values())).shape
    tree = states > 1 and actions == 2 and (states + 1) & states == 0 and scenario == "tree"
    side = math.isqrt(states)
    grid = scenario == "gridworld" and side * side == states and actions == 4
    with figure(1, len(tables), PAGE, 2.7 if tree else 2.3 if grid else 2.4) as (made, axes):
        top = max(float(table.max()) for table in tables.values())
        for place, (label, table) in zip(axes[0], tables.items(), strict=True):
            if tree:
                _tree(place, table)
            elif grid:
                _grid(place, table, side)
            else:
                _bars(place, table, top, names)
            place.set_title(SHOWN[label])
        if tree or grid:
            _explain(made, TREE if tree else GRID)
        else:
            axes[0, 0].set_ylabel("expected visits in an episode")
        return save(made, folder, name, kinds)


def _explain(made: Any, signs: tuple[tuple[str, str], ...]) -> None:
    """Below the pictures: each text in its colour."""
    step = 0.055
    made.get_layout_engine().set(rect=(0.0, step * len(signs), 1.0, 1.0 - step * len(signs)))
    for i, (text, colour) in enumerate(signs):
        made.text(0.02, step * (len(signs) - i - 0.6), text, color=colour, fontsize=6, va="center")


def _tree(axes: Any, table: Floats) -> None:
    """Every action an edge, as wide as it is often taken; the number is the share of episodes."""
    for s in range(len(table)):
        level = int(math.log2(s + 1))
        x, y = (s + 1 - 2**level + 0.5) / 2**level, -float(level)
        for a in range(2):
            below = 2 * s + 1 + a
            x2 = (below + 1 - 2 ** (level + 1) + 0.5) / 2 ** (level + 1)
            share = float(table[s, a])
            colour = BLUE if a == 0 else ORANGE
            axes.plot([x, x2], [y, y - 1], color=colour, lw=0.3 + 7 * share, solid_capstyle="butt", zorder=1)
            if share >= LEAST and level < NAMED:
                axes.annotate(
                    f"{share:.0%}", ((x + x2) / 2, y - 0.5), (-4 if a == 0 else 4, 2), fontsize=6,
                    textcoords="offset points", ha="right" if a == 0 else "left", va="center", color=colour,
                )  # fmt: skip
        axes.plot(x, y, "o", color="white", mec="black", ms=3.5, mew=0.6, zorder=2)
    axes.set_axis_off()
    axes.set_xlim(0, 1)


def _grid(axes: Any, table: Floats, side: int) -> None:
    """Every cell darker the more it is visited, every action an arrow as long as its share."""
    from matplotlib.colors import LinearSegmentedColormap

    seen = table.sum(axis=1).reshape(side, side)
    shades = LinearSegmentedColormap.from_list("visits", ["#FFFFFF", "#9ECAE1", "#3182BD"])
    axes.imshow(seen, cmap=shades, vmin=0.0, vmax=2.2)

    def reach(share: float) -> float:
        return min(0.46, 0.06 + 0.85 * share)

    ways = ((-1, 0), (1, 0), (0, 1), (0, -1))  # left, right, down, up; the axis of rows points down
    for s in range(side * side - 1):
        row, column = divmod(s, side)
        total = table[s].sum()
        for (dx, dy), d in zip(ways, table[s], strict=True):
            share = float(d / total) if total > 0 else 0.0
            if share > 0.02:
                axes.annotate(
                    "", (column + dx * reach(share), row + dy * reach(share)), (column, row),
                    arrowprops={"arrowstyle": "-|>,head_length=0.18,head_width=0.12", "lw": 0.8,
                                "shrinkA": 0, "shrinkB": 0, "color": "black"},
                )  # fmt: skip
        axes.text(column - 0.45, row - 0.32, f"{total:.2f}", fontsize=5, color="black")
    axes.text(side - 1, side - 1, "end", ha="center", va="center", fontsize=6, color=GREY)
    axes.set_xticks(np.arange(side + 1) - 0.5, labels=[])
    axes.set_yticks(np.arange(side + 1) - 0.5, labels=[])
    axes.tick_params(length=0)
    axes.grid(color="white", lw=1)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _bars(axes: Any, table: Floats, top: float, said: Sequence[str] | None) -> None:
    """One bar for each pair, the most visited ones if there are many."""
    flat = table.ravel()
    chosen = np.sort(np.argsort(-flat, kind="stable")[:BARS])
    axes.bar(np.arange(len(chosen)), flat[chosen], color=BLUE)
    numbers = [f"{i % table.shape[1]}" if len(table) == 1 else f"{i // table.shape[1]},{i % table.shape[1]}"
               for i in chosen]  # fmt: skip
    names = numbers if said is None else [said[i] for i in chosen]
    step = max(1, len(chosen) // 12)
    axes.set_xticks(np.arange(len(chosen))[::step], labels=names[::step])
    if said is not None:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlabel("action" if len(table) == 1 else "state,action")
    axes.set_ylim(0, top * 1.05)
    mark_axis(axes.yaxis, 6)
