"""Curves of arrays: errors, violations, regret, prices of many campaigns.

And of one campaign: the budget, the estimate with both intervals, and what was played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats
from saver.figures import style
from saver.figures.style import GREY, LOOKS, OTHER, End, label_lines, mark_axes, mark_broken, mark_episodes

FIRST = 0.04  # of a campaign that is left out on the left, where errors are of another size
LATE = 0.1  # of a campaign, from which on intervals have to be seen whole
KINDS = {
    "baseline": ("#332288", "the baseline"),
    "explore": ("#E69F00", "exploration"),
    "design": ("#56B4E9", "the design"),
    "earn": (style.GREEN, "what earns most"),
}
TOLD = "episodes told"
OVER = ",\nover what an episode must have"


class Line(NamedTuple):
    """What one collector, or one scenario, has at each x, and its standard error: three arrays [points]."""

    name: str
    x: Floats
    y: Floats
    error: Floats

    @property
    def late(self) -> Bools:
        """What is shown of a campaign: before, errors are of another size."""
        return np.asarray(self.x >= FIRST * self.x[-1])


class Fit(NamedTuple):
    """Measured points and the power law that was fitted to them, y ~ x^exponent, exponent +- half."""

    points: Line
    exponent: float
    half: float


def errors(axes: Any, lines: Sequence[Line], limit: float) -> None:
    """The mean squared error on a log axis, with one standard error; dotted grey: the exact safe limit."""
    kept = [(line, line.late & (line.y > 0)) for line in lines]
    ends = [_band(axes, line, shown, line.y / 10) for line, shown in kept if shown[-1]]
    k = lines[0].x[lines[0].late]
    best = limit / k
    if np.all(best > 0):
        axes.plot(k, best, color=GREY, ls=style.DOTTED, lw=0.9)
        ends.append(("limit / k", float(best[-1]), GREY))
    if ends:  # else there is nothing to draw on a log axis
        axes.set_yscale("log")
    mark_episodes(axes, lines[0].x, "episode k", ends)


def efficiency(axes: Any, lines: Sequence[Line], limit: float) -> None:
    """k * MSE over the exact safe limit: 1 is the best that is possible in the long run."""
    if limit <= 0:
        axes.set_axis_off()  # nothing varies: there is no limit to compare with
        return
    ratios = [Line(name, k, k * mse / limit, k * spread / limit) for name, k, mse, spread in lines]
    ends = [_band(axes, line, line.late) for line in ratios]
    top = max(1.0, *(float((line.y + line.error)[line.late].max()) for line in ratios))
    least = [float(line.y[line.late & (line.y > 0)].min(initial=1.0)) for line in ratios]
    axes.axhline(1.0, color=GREY, ls=style.DOTTED, lw=0.9)
    axes.set(yscale="log", ylim=(0.7 * min(least), top * 1.2))  # with a log errors begin below the limit
    mark_episodes(axes, lines[0].x, "episode k", ends)


def violations(axes: Any, lines: Sequence[Line], believed: Sequence[Line] = ()) -> None:
    """The cumulative violation, minus the true budget: above the zero line the constraint is broken.

    Thin and dashed: what is `believed` of it.
    """
    ends = [_band(axes, line) for line in lines]
    for name, k, mean, _ in believed:
        axes.plot(k, mean, color=LOOKS.get(name, OTHER).colour, ls=style.DASHED, lw=0.6)
    bottom, top = axes.get_ylim()
    top = max(top, -0.06 * bottom)
    mark_broken(axes, bottom, top, (0.0, top))
    mark_episodes(axes, lines[0].x, "episode k", ends)


def regrets(axes: Any, fits: Sequence[Fit]) -> None:
    """The regret over the number of episodes, with two standard errors and the fitted power laws."""
    ends = []
    for (name, K, y, se), exponent, half in fits:
        look = LOOKS.get(name, OTHER)
        axes.errorbar(K, y, 2 * se, color=look.colour, marker=look.marker, ms=3, lw=0, elinewidth=0.8)
        w = (y / np.maximum(se, 1e-6 * y)) ** 2
        w /= np.sum(w)
        centre = np.exp(np.sum(w * np.log(y))) * (K / np.exp(np.sum(w * np.log(K)))) ** exponent
        axes.plot(K, centre, color=look.colour, ls=look.dashes, lw=1.0)
        ends.append((f"{name}: $K^{{{exponent:.3f}}}$ (±{half:.3f})", float(centre[-1]), look.colour))
    axes.set(xscale="log", yscale="log", xlabel="episodes K")
    axes.set_xlim(right=1.15 * float(fits[-1].points.x[-1]))
    mark_axes(axes)
    label_lines(axes, ends)


def prices(axes: Any, lines: Sequence[Line], marked: float) -> None:
    """What safety costs over alpha, by scenario; dotted: one alpha that is marked."""
    for name, alpha, cost, _ in lines:
        look = style.SCENARIOS.get(name, OTHER)
        axes.plot(alpha, cost, color=look.colour, ls=look.dashes, label=name)
    axes.set(yscale="log", xlim=(0, 1), ylim=(0.93, 60), xlabel="risk alpha")
    axes.axvline(marked, color=GREY, lw=0.9, ls=style.DOTTED)
    axes.annotate(
        f"alpha {marked:g},\nas in the experiments", (marked, 1.0), (3, -1), fontsize=6, color=GREY, va="top",
        xycoords=("data", "axes fraction"), textcoords="offset points",
    )  # fmt: skip
    mark_axes(axes)


def _band(axes: Any, line: Line, shown: Bools | slice = slice(None), least: Any = -np.inf) -> End:
    """A line, where it is shown, with one standard error, down to `least`; its name, end and colour."""
    name, k, y, error = line
    look, low = LOOKS.get(name, OTHER), np.maximum(y - error, least)
    axes.plot(k[shown], y[shown], color=look.colour, ls=look.dashes, lw=look.width)
    axes.fill_between(k[shown], low[shown], (y + error)[shown], color=look.colour, alpha=style.BAND, lw=0)
    return name, float(y[shown][-1]), look.colour


def budget(axes: Any, episodes: Floats, left: Floats | Mapping[str, Floats]) -> None:
    """What is believed to be left; below 0 the constraint may be broken.

    Of several guardrails {name: what is left}, in units of what an episode must have: they share an axis.
    """
    several, ends = isinstance(left, Mapping), []
    for i, (name, line) in enumerate(left.items() if isinstance(left, Mapping) else [("", left)]):
        colour, dashes = style.RAILS[i % len(style.RAILS)]
        axes.plot(episodes, line, color=colour, ls=dashes, lw=1.0 if several else 1.4)
        ends.append((name, float(line[-1]), colour))
    bottom, top = axes.get_ylim()
    bottom = min(bottom, -0.06 * top)
    mark_broken(axes, bottom, max(top, -bottom * 0.06, 1e-9), (bottom, 0.0))
    axes.set_title("budget believed to be left" + (OVER if several else ""))
    mark_episodes(axes, episodes, TOLD, ends if several else ())


def estimates(axes: Any, episodes: Floats, value: Floats, once: Any, ever: Any, name: str) -> None:
    """The estimate, its interval at one time (dark) and at all times (light)."""
    for (low, high), shade in ((ever, style.BAND / 2), (once, style.BAND)):
        bounded = np.isfinite(high - low)
        axes.fill_between(episodes[bounded], low[bounded], high[bounded], color=style.BLUE, alpha=shade, lw=0)
    axes.plot(episodes, value, color=style.BLUE, lw=1.4)
    late = np.concatenate([end[episodes >= LATE * episodes[-1]] for end in (value, *once, *ever)])
    if np.isfinite(late).any():  # the first intervals are of another size
        low, high = float(late[np.isfinite(late)].min()), float(late[np.isfinite(late)].max())
        axes.set_ylim(low - 0.05 * (high - low or 1.0), high + 0.05 * (high - low or 1.0))
    axes.axhline(0.0, color=GREY, lw=0.4, zorder=0)
    axes.set_title(name)
    mark_episodes(axes, episodes, TOLD)


def kinds(axes: Any, episodes: Floats, counts: dict[str, Floats]) -> None:
    """Episodes by kind, one on top of the other."""
    played = {kind: counts[kind] for kind in KINDS if counts[kind][-1] > 0}
    colours, totals = [KINDS[kind][0] for kind in played], np.array([count[-1] for count in played.values()])
    axes.stackplot(episodes, *played.values(), colors=colours, lw=0, alpha=0.85)
    axes.set(ylim=(0.0, max(float(episodes[-1]), 1.0)), title="episodes")
    middles = np.cumsum(totals) - totals / 2
    ends = [(KINDS[kind][1], float(y), KINDS[kind][0]) for kind, y in zip(played, middles, strict=True)]
    mark_episodes(axes, episodes, TOLD, ends)
