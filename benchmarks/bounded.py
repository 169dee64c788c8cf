"""Bounded guardrails with known transitions, against the same without a model.

    python benchmarks/bounded.py OLD       OLD is a folder that holds src/saver: `before` is measured there

Contextual bandits with coins, two actions that are alike, contexts that are or are not: `means` are those
of contexts in turn. K episodes of `safe-on-policy` at delta .05; the target is uniform, the baseline takes
the first action, alpha is .09, .2, .25 and .3. `gap` is the final true budget minus the certified one,
`share` that of designed episodes, with standard errors; `known` with the model, `unknown` without one (the
certificate of returns), `before` with the model as it was when the box and the union over pairs made it.
`difference` is that of `known` and `unknown` of the same seeds. Lines with a learned baseline value have no
logs, and 3,000 logged episodes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tables import Table

import saver
from saver.problem import Bernoulli, Bounded, Gaussian, Guardrail, Mdp, Problem, Scenario, Unknown, World

RUNS = 1000
WORLDS: dict[str, tuple[int, tuple[float, ...], float]] = {
    "20 contexts, .95": (20, (0.95,), 0.09),
    "100 contexts, .95": (100, (0.95,), 0.09),
    "100 contexts, 1 / .8": (100, (1.0, 0.8), 0.2),
    "20 contexts, .5": (20, (0.5,), 0.25),
    "4 contexts, 1 / .2": (4, (1.0, 0.2), 0.3),
}


def world(count: int, means: tuple[float, ...], alpha: float, known: bool) -> Scenario:
    """So many contexts, all as likely."""
    shape, start = (count, 2), np.full(count, 1.0 / count)
    mdp = Mdp(np.zeros((*shape, count)), horizon=1, start=start)
    mean = np.broadcast_to(np.resize(means, count)[:, None], shape)
    reward = Gaussian(np.random.default_rng(0).random(shape), np.full(shape, 0.25))
    true, baseline = World(mdp, reward, Bernoulli(mean)), np.tile([1.0, 0.0], (count, 1))
    problem = Problem(
        mdp if known else Unknown(*shape, horizon=1, start=start), np.full(shape, 0.5), baseline,
        alpha=alpha, baseline_value=true.constraint_value(baseline), constraint=Bounded(0.0, 1.0),
    )  # fmt: skip
    return Scenario("contexts", true, problem, 600)


def learned(made: Scenario) -> Scenario:
    """The same where the baseline's value is learned."""
    asked = made.problem
    rail = Guardrail("constraint", Bounded(0.0, 1.0), alpha=asked.alpha)
    problem = Problem(asked.mdp, asked.target, asked.baseline, guardrails=(rail,), delta=asked.delta)
    return replace(made, problem=problem)


def measured(name: str, known: bool, K: int, runs: int = RUNS, logged: int | None = None) -> Any:
    """Gaps and shares of designed episodes, [2, runs]."""
    made = world(*WORLDS[name], known)
    made = made if logged is None else learned(made)
    found = saver.simulate(made, "safe-on-policy", episodes=K, runs=runs, checkpoints=[], history=logged or 0)
    return np.array([(found.budget - found.ledger)[:, -1], 1.0 - found.baseline_share[:, -1]])


def elsewhere(old: str, name: str) -> Any:
    """`measured` in another checkout."""
    paths = [f"{old}/src", str(Path(__file__).parent)]
    code = (
        f"import sys; sys.path[:0] = {paths!r}\nimport json, bounded\n"
        f"print(json.dumps(bounded.measured({name!r}, True, 600, 200).tolist()))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return np.array(json.loads(said.stdout))


def told(values: Any, form: str = ".2f") -> str:
    """A mean with its standard error."""
    return f"{np.mean(values):{form}} ± {np.std(values) / np.sqrt(len(values)):{form}}"


def row(name: str, K: int, runs: int, logged: int | None, before: Any) -> list[Any]:
    known, unknown = (measured(name, knows, K, runs, logged) for knows in (True, False))
    old = ["-", "-"] if before is None else [told(before[0]), f"{np.mean(before[1]):.3f}"]
    print(name, K, logged, told(known[0] - unknown[0]), file=sys.stderr, flush=True)
    return [
        name, "given" if logged is None else f"learned, {logged:,} logged", K, *old,
        told(known[0]), f"{np.mean(known[1]):.3f}", told(unknown[0]), f"{np.mean(unknown[1]):.3f}",
        told(known[0] - unknown[0]), told(known[1] - unknown[1], ".4f"),
    ]  # fmt: skip


def table(old: str | None = None) -> Table:
    cells: list[tuple[str, int, int, int | None]]
    cells = [(name, K, RUNS, None) for K in (600, 200) for name in WORLDS]
    cells += [(name, 2000, RUNS // 3, None) for name in WORLDS]
    cells += [(name, 600, RUNS // 5, logged) for logged in (0, 3000) for name in WORLDS]
    rows = []
    for name, K, runs, logged in cells:
        before = None
        if old is not None and K == 600 and logged is None:
            before = elsewhere(old, name)
        rows.append(row(name, K, runs, logged, before))
    columns = ("world", "baseline value", "K", "gap, before", "share", "gap, known", "share", "gap, unknown",
               "share", "difference of gaps", "of shares")  # fmt: skip
    return Table("bounded", __doc__ or "", columns, rows)


if __name__ == "__main__":
    print(table(*sys.argv[1:]).write())
