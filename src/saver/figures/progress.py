"""One campaign: the budget, the estimate with both intervals, and what was played."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from saver._types import Floats
from saver.figures.marks import label_lines, mark_axes
from saver.figures.style import BAND, BROKEN, GREY, Look

BLUE = "#0072B2"
LATE = 0.1  # of a campaign, from which on intervals have to be seen whole
KINDS = {
    "baseline": ("#332288", "the baseline"),
    "explore": ("#E69F00", "exploration"),
    "design": ("#56B4E9", "the design"),
    "earn": ("#009E73", "what earns most"),
}
OVER = ",\nover what an episode must have"
RAILS = (
    Look(BLUE),
    Look("#D55E00", (0, (5, 1.5))),
    Look("#009E73", (0, (1, 1))),
    Look("#CC79A7", (0, (3, 1, 1, 1))),
)


def budget(axes: Any, episodes: Floats, left: Floats | Mapping[str, Floats]) -> None:
    """What is believed to be left; below 0 the constraint may be broken.

    Of several guardrails {name: what is left}, in units of what an episode must have: they share an axis.
    """
    several, ends = isinstance(left, Mapping), []
    for i, (name, line) in enumerate(left.items() if isinstance(left, Mapping) else [("", left)]):
        look = RAILS[i % len(RAILS)]
        axes.plot(episodes, line, color=look.colour, ls=look.dashes, lw=1.0 if several else 1.4)
        ends.append((name, float(line[-1]), look.colour))
    bottom, top = axes.get_ylim()
    bottom, top = min(bottom, -0.06 * top), max(top, -bottom * 0.06, 1e-9)
    axes.axhline(0.0, color=BROKEN["edgecolor"], lw=0.9, zorder=1)
    axes.axhspan(bottom, 0.0, **BROKEN, zorder=0)
    axes.set_ylim(bottom, top)
    _finish(axes, episodes, "budget believed to be left" + (OVER if several else ""))
    if several:
        label_lines(axes, ends)


def estimates(axes: Any, episodes: Floats, value: Floats, once: Any, ever: Any, name: str) -> None:
    """The estimate, its interval at one time (dark) and at all times (light)."""
    for (low, high), shade in ((ever, BAND / 2), (once, BAND)):
        bounded = np.isfinite(high - low)
        axes.fill_between(episodes[bounded], low[bounded], high[bounded], color=BLUE, alpha=shade, lw=0)
    axes.plot(episodes, value, color=BLUE, lw=1.4)
    late = np.concatenate([end[episodes >= LATE * episodes[-1]] for end in (value, *once, *ever)])
    if np.isfinite(late).any():  # the first intervals are of another size
        low, high = float(late[np.isfinite(late)].min()), float(late[np.isfinite(late)].max())
        axes.set_ylim(low - 0.05 * (high - low or 1.0), high + 0.05 * (high - low or 1.0))
    axes.axhline(0.0, color=GREY, lw=0.4, zorder=0)
    _finish(axes, episodes, name)


def kinds(axes: Any, episodes: Floats, counts: dict[str, Floats]) -> None:
    """Episodes by kind, one on top of the other."""
    played = {kind: counts[kind] for kind in KINDS if counts[kind][-1] > 0}
    colours = [KINDS[kind][0] for kind in played]
    axes.stackplot(episodes, *played.values(), colors=colours, lw=0, alpha=0.85)
    axes.set_ylim(0.0, max(float(episodes[-1]), 1.0))
    _finish(axes, episodes, "episodes")
    below, ends = 0.0, []
    for kind, count in played.items():
        ends.append((KINDS[kind][1], below + float(count[-1]) / 2, KINDS[kind][0]))
        below += float(count[-1])
    label_lines(axes, ends)


def _finish(axes: Any, episodes: Floats, name: str) -> None:
    axes.set_xlim(0.0, max(float(episodes[-1]), 1.0))
    axes.set_xlabel("episodes told")
    axes.set_title(name)
    mark_axes(axes)
