"""How noisy one observation is, what of a promise about it the log contradicts; what the baseline does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._types import Floats
from saver.errors import InvalidProblem
from saver.problem import Bounded, SubGaussian
from saver.problem.episode import Columns

OFTEN = 30  # observations of a pair whose deviation is looked at by itself
FAR = 4.0  # standard errors
FEW = 10  # different values, as of coins, clicks and ratings
MOST = 10**7  # cells that are counted step by step
EXPECTED = 5.0  # observations of a cell that takes part in the test
UNSTEADY = 6.0  # standard errors


@dataclass(frozen=True)
class Scale:
    """The noise of one observation around the mean of its pair, and tests of what promises say of it.

    Attributes:
        deviation: of all pairs together.
        stderr: of `deviation`.
        largest: the largest deviation of a pair that was seen 30 times or more; `deviation` if none was.
        largest_stderr: of `largest`.
        low, high: what was seen.
        shared: the correlation of the noise of neighbouring steps of an episode; 0 if steps are independent.
        shared_errors: how many standard errors `shared` is from 0.
        observations: how many there are.
        farthest: the largest distance of one from the mean of its pair.
        different: how many different values were seen.
    """

    deviation: float
    stderr: float
    largest: float
    largest_stderr: float
    low: float
    high: float
    shared: float
    shared_errors: float
    observations: int
    farthest: float = 0.0
    different: int = 0

    def promise(self, name: str) -> Bounded:
        """What can be promised without being told: [0, 1], if all is there."""
        if self.low >= 0.0 and self.high <= 1.0:
            return Bounded(0.0, 1.0)
        raise InvalidProblem(
            f"{name} was seen from {self.low:g} to {self.high:g}, which is no promise; say where it must "
            "lie, by promise=saver.Bounded(low, high) (in a command low=, high=), or how it varies, by "
            "saver.SubGaussian(scale, floor, ceiling) (scale=, floor=, ceiling=)"
        )

    @property
    def proposed(self) -> SubGaussian | Bounded | None:
        """A promise that goes a little beyond what was seen; None where that shows nothing of how it varies.

        Few different values: that there are no others between which they do not lie. More: noise with the
        largest deviation, FAR standard errors above what it seems, and tails that explain the farthest of n
        observations, which of normal ones is about sqrt(2 log(2 n)) deviations away; means where values were
        seen. Nobody but who knows the rewards can say that it is true.
        """
        if self.different < 2:
            return None
        if self.different <= FEW:
            return Bounded(self.low, self.high)
        tails = self.farthest / math.sqrt(2.0 * math.log(2 * max(self.observations, 2)))
        scale = max(self.largest + FAR * self.largest_stderr, tails)
        return SubGaussian(_up(scale), -_up(-self.low), _up(self.high)) if math.isfinite(scale) else None

    def against(self, promise: Any) -> tuple[str, ...]:
        """What of a promise about all pairs the log contradicts, in sentences."""
        said = []
        low, high = promise.bounds
        if self.low < low or self.high > high:
            said.append(f"was seen from {self.low:g} to {self.high:g}, outside [{low:g}, {high:g}]")
        within = isinstance(promise, Bounded)  # then no deviation can say more than the ends do
        if not within and self.largest - FAR * self.largest_stderr > promise.scale:
            said.append(
                f"has a pair with deviation {self.largest:.3g} ± {self.largest_stderr:.1g}, above the "
                f"promised scale {promise.scale:g}"
            )
        if self.shared_errors > FAR:
            remedy = "a SubGaussian scale larger by the square root of the number of steps allows it"
            if within:
                remedy = "with unknown transitions a Bounded promise holds all the same"
            said.append(
                f"shares noise between steps of an episode (correlation {self.shared:.2g}, "
                f"{self.shared_errors:.0f} standard errors): promises suppose fresh noise at each step; "
                f"{remedy}"
            )
        return tuple(said)


def _up(value: float) -> float:
    """Rounded up to three digits."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (2 - math.floor(math.log10(abs(value))))
    return float(f"{math.ceil(value * unit) / unit:.10g}")


def scale_of(many: Columns, column: Floats, shape: tuple[int, int]) -> Scale:
    """The residuals e = x - mean(s,a), their deviation sqrt(sum e^2 / (n - pairs)), and their correlation.

    The standard error of a deviation d is that of the mean of e^2 over 2 d, whatever the noise's law.
    """
    seen = ~np.isnan(column)
    pairs = many.states * shape[1] + many.actions
    size = shape[0] * shape[1]
    known, values = (pairs, column) if seen.all() else (pairs[seen], column[seen])
    counts = np.bincount(known, minlength=size)
    mean = np.bincount(known, values, size) / np.maximum(counts, 1)
    apart = column - mean[pairs]
    apart[~seen] = 0.0
    squares = apart**2
    total, fourth = np.bincount(pairs, squares, size), np.bincount(pairs, squares**2, size)
    n = int(counts.sum())
    deviation, stderr = _deviation(n, int(np.sum(counts > 0)), float(total.sum()), float(fourth.sum()))
    largest = deviation, stderr
    if len(often := np.flatnonzero(counts >= OFTEN)):
        p = int(often[np.argmax(total[often] / (counts[often] - 1))])
        largest = _deviation(int(counts[p]), 1, float(total[p]), float(fourth[p]))
    shared, errors = _shared(many, apart)
    return Scale(
        deviation, stderr, *largest, float(np.min(values, initial=math.inf)),
        float(np.max(values, initial=-math.inf)), shared, errors, n,
        float(np.max(np.abs(apart), initial=0.0)), len(np.unique(values)),
    )  # fmt: skip


def _deviation(n: int, pairs: int, total: float, fourth: float) -> tuple[float, float]:
    if n <= pairs:
        return 0.0, math.inf
    found = math.sqrt(total / (n - pairs))
    spread = math.sqrt(max(fourth / n - (total / n) ** 2, 0.0) / n)
    return found, spread / (2.0 * found) if found > 0.0 else 0.0


def _shared(many: Columns, apart: Floats) -> tuple[float, float]:
    """sum e_t e_{t+1} / sqrt(sum e_t^2 sum e_{t+1}^2), and over its standard error where it is 0 in truth."""
    here, onward = np.array(apart[:-1]), apart[1:]
    here[many.last[:-1]] = 0.0  # its next row is another episode's
    product = here * onward
    squares = float(onward @ onward) - float(np.sum(apart[many.offsets[1:-1]] ** 2))
    size, noise = math.sqrt(float(here @ here) * max(squares, 0.0)), math.sqrt(float(product @ product))
    return (float(product.sum()) / size, float(product.sum()) / noise) if noise > 0.0 else (0.0, 0.0)


def frequencies(counts: Any, usual: Any = 0.0) -> Floats:
    """How often each action was taken, [..., A]; what is usual where none was."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1), usual)


def observed(many: Columns, counts: Any, mdp: Any, by_step: bool, notes: list[str]) -> Floats:
    """The baseline as it was logged; in a state never met, at a step too, what it does on average."""
    S, size = len(counts), mdp.horizon * counts.size
    policy = np.tile(counts.sum(axis=0) / counts.sum(), (mdp.states, 1))
    policy[:S] = frequencies(counts, policy[:S])
    if lost := int(np.sum(counts.sum(axis=1) == 0)):
        notes.append(
            f"the baseline was never seen in {lost} states, and is taken to do there what it does on average"
        )
    if size > MOST and not by_step:
        return policy
    cells = (many.steps * S + many.states) * counts.shape[1] + many.actions
    seen = np.bincount(cells, minlength=size).reshape(mdp.horizon, *counts.shape)
    if by_step:
        policy = np.tile(policy, (mdp.horizon, 1, 1))
        policy[:, :S] = frequencies(seen, policy[:, :S])
    elif (errors := unsteady(seen, policy[:S])) > UNSTEADY:
        notes.append(
            "what the baseline does depends on the step "
            f"({errors:.0f} standard errors): fit with by_step=True, or put the step into the state"
        )
    return policy


def unsteady(seen: Any, policy: Floats) -> float:
    """Pearson's sum over cells (seen - n b)^2 / (n b), less its mean, over its deviation.

    n(t,s) visits at a step, b the frequencies of all steps together. Of k cells of a state and step k - 1
    are free, and those of one step are fixed by b.
    """
    expected = seen.sum(axis=2, keepdims=True) * policy
    used = (expected >= EXPECTED).all(axis=2, where=policy > 0) & (expected.sum(axis=2) > 0)
    steps = used.sum(axis=0)  # in which a state takes part
    kinds = (policy > 0).sum(axis=1) - 1
    free = float(np.sum(np.maximum(steps - 1, 0) * kinds))
    if free == 0.0:
        return 0.0
    apart = np.divide((seen - expected) ** 2, expected, out=np.zeros(seen.shape), where=expected > 0)
    return float(np.sum(apart[used]) - free) / float(np.sqrt(2.0 * free))
