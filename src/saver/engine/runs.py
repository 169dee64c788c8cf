"""The results of many simulated campaigns, kept at checkpoints."""

from __future__ import annotations

import math
import os
import struct
import tokenize
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from saver._files import written
from saver._types import Floats, Ints
from saver.collect.reports import frame
from saver.errors import InvalidData, no_such
from saver.estimate.interval import student
from saver.kernels.keeping import ANSWER, COMMON as COMMON_KIND, OF_RAIL
from saver.problem import checks

ANSWERS = ANSWER.names or ()  # of each target
COMMON = COMMON_KIND.names or ()
GUARDED = OF_RAIL.names or ()  # of each guardrail
VIOLATED = 1e-9  # of baseline_value below 0
COLUMNS = ("checkpoints", *ANSWERS, *COMMON, "worst_budget", "true_value", "baseline_value")
NAMES, RAILS = "names", "guardrails"
OF_EACH = (*GUARDED, "worst_budgets", "units")
BROKEN = (
    OSError, ValueError, KeyError, TypeError, EOFError, NotImplementedError, RuntimeError, SyntaxError,
    OverflowError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError,
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """R campaigns seen at C checkpoints.

    Attributes:
        checkpoints: episode counts, [C].
        estimates: of the target's value, [R, C].
        stderr: of each estimate, infinite while it has no bounded interval, [R, C].
        freedom: the degrees of freedom of its interval, [R, C].
        below: how far the declared ranges of pairs never seen reach below the estimate, [R, C].
        above: how far above, [R, C].
        budget: the TRUE budget, sum of V_c(b_k) - k required, [R, C]; of several guardrails, that which is
            nearest to its line relative to what it requires.
        ledger: what the collector believed of it, [R, C].
        baseline_share: the share of baseline episodes, [R, C].
        conditional_mse: the mean squared error given the visits, [R, C]; NaN where it has no closed form.
        anytime_low, anytime_high: the ends of the interval that holds at all times, at level .95, [R, C].
        fair: the estimates by the weights of asking, [R, C]: see `Campaign.estimate`; NaN if there are none.
        fair_stderr: their standard errors, [R, C].
        worst_budget: the smallest true budget over all k, [R], likewise.
        true_value: of the target.
        baseline_value: of what is guarded first: as declared, or, where it is learned, as it is.
        by_name: where there are several targets, the same for each; the other attributes are of the first.
        budgets: the true budget of each guardrail, {name: [R, C]}.
        ledgers: what the collector believed of it, likewise.
        worst_budgets: the smallest true budget of each, {name: [R]}.
        units: what rounding of these is measured in, {name: number}.
    """

    checkpoints: Ints
    estimates: Floats
    stderr: Floats
    freedom: Floats
    below: Floats
    above: Floats
    budget: Floats
    ledger: Floats
    baseline_share: Floats
    conditional_mse: Floats
    anytime_low: Floats
    anytime_high: Floats
    fair: Floats
    fair_stderr: Floats
    worst_budget: Floats
    true_value: float
    baseline_value: float
    by_name: dict[str, Runs] = field(default_factory=dict)
    budgets: dict[str, Floats] = field(default_factory=dict)
    ledgers: dict[str, Floats] = field(default_factory=dict)
    worst_budgets: dict[str, Floats] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        (runs, points), K, (mse, error) = self.estimates.shape, int(self.checkpoints[-1]), self.mse()
        return (
            f"Runs({runs:,} campaigns of {K:,} episodes at {points} checkpoints; at the end K * MSE "
            f"{K * mse[-1]:.4g} ± {K * error[-1]:.2g}, baseline share "
            f"{self.baseline_share[:, -1].mean():.1%}, violation rate {self.violation_rate():.2%})"
        )

    def mse(self) -> tuple[Floats, Floats]:
        """The empirical mean squared error at each checkpoint and its standard error, [C] each."""
        squares = (self.estimates - self.true_value) ** 2
        runs = len(squares)
        error = squares.std(axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else np.full(squares.shape[1], np.nan)
        return squares.mean(axis=0), error

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The lower and upper ends of each estimate's interval, [R, C] each."""
        half = student(
            self.stderr, self.freedom, checks.between("level", level, 0.0, 1.0, closed=(False, False))
        )
        bounded = np.isfinite(self.stderr)
        return (
            np.where(bounded, self.estimates - np.where(bounded, self.below + half, 0.0), -np.inf),
            np.where(bounded, self.estimates + np.where(bounded, self.above + half, 0.0), np.inf),
        )

    def coverage(self, level: float = 0.95) -> Floats:
        """The share of runs whose interval holds the true value, [C]."""
        low, high = self.interval(level)
        return np.mean((low <= self.true_value) & (self.true_value <= high), axis=0)

    def ever_missed(self, first: int = 1) -> float:
        """The share of runs whose interval at all times was wrong at a checkpoint from `first` on."""
        late = self.checkpoints >= checks.whole("first", first, 1)
        low, high = self.anytime_low[:, late], self.anytime_high[:, late]
        return float(np.mean(np.any((self.true_value < low) | (self.true_value > high), axis=1)))

    def violation_rate(self) -> float:
        """The share of runs whose true budget, of any guardrail, was below 0 at any episode."""
        return float(np.mean(np.any([self.broken(name) for name in self.budgets], axis=0)))

    def broken(self, name: str) -> Any:
        """Which runs broke the promise of a guardrail, [R]."""
        if name not in self.worst_budgets:
            raise no_such("guardrail", name, self.worst_budgets)
        return self.worst_budgets[name] < -VIOLATED * self.units[name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file, whole or not at all."""
        with written(Path(path)) as partial, partial.open("wb") as file:
            np.savez(file, **self._arrays())

    def _arrays(self) -> dict[str, Any]:
        """Everything as arrays; those of other targets by their place among the names."""
        found = {name: getattr(self, name) for name in COLUMNS}
        if self.by_name:
            found[NAMES] = np.array(list(self.by_name))
        for i, one in enumerate(self.by_name.values()):
            found |= {f"{name}.{i}": getattr(one, name) for name in (*ANSWERS, "true_value")}
        found[RAILS] = np.array(list(self.budgets))
        for i, rail in enumerate(self.budgets):
            found |= {f"{name}.{i}": getattr(self, name)[rail] for name in OF_EACH}
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Read what `save` wrote."""
        try:
            with Path(path).open("rb") as raw:
                _check_sizes(raw)
                with np.load(raw, allow_pickle=False) as file:
                    data = {name: file[name] for name in COLUMNS}
                    names = [str(name) for name in np.atleast_1d(file[NAMES])] if NAMES in file else []
                    others = [
                        {name: file[f"{name}.{i}"] for name in (*ANSWERS, "true_value")}
                        for i in range(len(names))
                    ]
                    rails = [str(name) for name in np.atleast_1d(file[RAILS])]
                    each: dict[str, Any] = {
                        name: {rail: file[f"{name}.{i}"] for i, rail in enumerate(rails)} for name in OF_EACH
                    }
        except BROKEN as cause:
            raise _broken(path, cause) from None
        for name, by_rail in each.items():
            wanted = {"worst_budgets": "worst_budget", "units": "true_value"}.get(name, "budget")
            for rail, values in by_rail.items():
                if values.shape != data[wanted].shape or values.dtype.kind not in "if":
                    raise _broken(path, f"{name} of {rail} cannot be")
        each["units"] = {rail: float(unit) for rail, unit in each["units"].items()}
        found = replace(cls._checked(path, data), **each)
        targets = {name: cls._checked(path, data | other) for name, other in zip(names, others, strict=True)}
        return replace(found, by_name={name: replace(one, **each) for name, one in targets.items()})

    @classmethod
    def _checked(cls, path: Any, data: dict[str, Any]) -> Runs:
        """From arrays that must fit together."""
        data = dict(data)
        shape = (data["worst_budget"].size, data["checkpoints"].size)
        wanted = {"checkpoints": shape[1:], "worst_budget": shape[:1], "true_value": (), "baseline_value": ()}
        for name, values in data.items():
            if values.shape != wanted.get(name, shape) or values.dtype.kind not in "if":
                raise _broken(path, f"{name} has shape {values.shape}")
        cls._check_content(path, data)
        for name in ("true_value", "baseline_value"):
            data[name] = float(data[name])
        return cls(**data)

    @staticmethod
    def _check_content(path: Any, data: dict[str, Any]) -> None:
        """Refuse numbers that no simulation gives."""
        points, slack = data["checkpoints"], 1e-9 * (1.0 + np.abs(data["budget"]).max(initial=0.0))
        wrong = {
            "checkpoints": not len(points) or points[0] < 1 or np.any(np.diff(points) <= 0),
            "stderr": np.any(data["stderr"] < 0),
            "below": np.any(data["below"] < 0),
            "above": np.any(data["above"] < 0),
            "baseline_share": np.any((data["baseline_share"] < 0) | (data["baseline_share"] > 1)),
            "worst_budget": not np.all(
                data["worst_budget"] <= data["budget"].min(axis=1, initial=np.inf) + slack
            ),
        }
        for name, bad in wrong.items():
            if bad:
                raise _broken(path, f"{name} cannot be")

    def to_frame(self) -> Any:
        """A pandas table with one row for each run and checkpoint."""
        runs, points = self.estimates.shape
        columns = {"run": np.repeat(np.arange(runs), points), "episode": np.tile(self.checkpoints, runs)}
        for name in (*ANSWERS, *COMMON):
            columns[name] = getattr(self, name).ravel()
        return frame(columns)


def _broken(path: Any, why: object) -> InvalidData:
    return InvalidData(f"{path} is not a file that Runs.save wrote: {why}")


def _check_sizes(raw: BinaryIO) -> None:
    """Refuse an archive whose arrays claim more than its bytes hold, before anything is allocated."""
    with zipfile.ZipFile(raw) as file:
        for info in file.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{info.filename} is compressed")
            with file.open(info) as part:
                if np.lib.format.read_magic(part) != (1, 0):
                    raise ValueError("an array has a header of another version")
                shape, _, kind = np.lib.format.read_array_header_1_0(part)
                if kind.hasobject or min((*shape, 0)) < 0:
                    raise ValueError(f"{info.filename} holds objects")
                if math.prod(shape) * kind.itemsize > info.file_size:
                    raise ValueError(f"{info.filename} claims {math.prod(shape)} entries and has fewer")
    raw.seek(0)
