"""One look for all figures: legible in one column, in greyscale, and for the colour-blind.

Colours are Okabe and Ito's; every collector has a line style and a marker of its own too, and is named beside
its line as everywhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from saver._files import replacing
from saver.errors import InvalidData

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a paper, and both
GREY = "#777777"


class Look(NamedTuple):
    """How a collector, or a scenario, is drawn everywhere."""

    colour: str
    dashes: Any = "solid"
    width: float = 1.2
    marker: str = "o"


LOOKS = {
    "saver-opt": Look("#0072B2", "solid", 1.8, "o"),
    "saver": Look("#D55E00", "solid", 1.2, "^"),
    "safe-oracle": Look("#000000", (0, (5, 1.5)), 1.2, "s"),
    "safe-on-policy": Look("#009E73", (0, (1, 1)), 1.2, "v"),
    "sepec": Look("#CC79A7", (0, (4, 1, 1, 1)), 1.2, "D"),
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
    "bandit": Look("#D55E00"),
    "tree": Look("#009E73", (0, (5, 1.5))),
    "gridworld": Look("#0072B2", (0, (3, 1, 1, 1))),
    "movielens": Look("#CC79A7", (0, (1, 1))),
    "intractable": Look("#000000", (0, (2.5, 1))),
}
DOTTED = (0, (1.5, 1))  # the exact safe limit
DASHED = (0, (4, 2))  # what is believed
BAND = 0.25  # opacity
BROKEN: Any = {"facecolor": "#F6E3E3", "edgecolor": "#B03030", "hatch": "//////", "lw": 0}
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
    "hatch.linewidth": 0.3,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "saver",
}


@contextmanager
def figure(rows: int, columns: int, width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, [rows, columns], in the house style and without a screen."""
    with _quiet():
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    with mpl.rc_context(RC):
        made = Figure(figsize=(width, height), layout="constrained")
        made.get_layout_engine().set(w_pad=0.05, h_pad=0.06)  # type: ignore[union-attr, call-arg]
        FigureCanvasAgg(made)
        yield made, made.subplots(rows, columns, squeeze=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without matplotlib's remarks on its own cache: `_jit` has said that the folder cannot be written."""
    log = logging.getLogger("matplotlib")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def save(made: Any, folder: Path, name: str, kinds: tuple[str, ...] = ("png", "pdf")) -> list[Path]:
    """Write the figure in each kind, whole or not at all; the same figure gives the same bytes."""
    written = []
    for kind in kinds:
        path = folder / f"{name}.{kind}"
        metadata = {{"pdf": "CreationDate", "svg": "Date"}.get(kind, "Software"): None}
        try:
            with replacing(path) as partial:
                made.savefig(partial, format=kind, metadata=metadata)
        except OSError as cause:
            raise InvalidData(f"cannot write {path}: {cause.strerror or cause}; give another path") from None
        made.set_layout_engine("none")  # the first drawing has laid it out
        written.append(path)
    return written


def explain(made: Any, signs: list[tuple[str, str]], columns: int = 1) -> None:
    """What the signs of a figure mean, below it: rows of (sign, meaning)."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown: dict[str, Any] = {
        "band": Patch(color=GREY, alpha=BAND, lw=0),
        "dotted": Line2D([], [], color=GREY, ls=DOTTED, lw=0.9),
        "dashed": Line2D([], [], color=GREY, ls=DASHED, lw=0.6),
        "line": Line2D([], [], color=GREY, lw=1.0),
        "broken": Patch(**BROKEN),
        "point": tuple(
            Line2D([], [], color=GREY, marker=m, ms=size, lw=0) for m, size in (("|", 8), ("o", 3))
        ),
    }
    made.legend(
        [shown[sign] for sign, _ in signs],
        [meaning for _, meaning in signs],
        loc="outside lower center",
        ncols=columns,
        fontsize=6,
        frameon=False,
        handlelength=2.2,
    )
