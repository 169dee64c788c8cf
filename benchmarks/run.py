"""Run every benchmark and write its table to benchmarks/results/. Name some to run only those."""

from __future__ import annotations

import sys
from collections.abc import Callable

import answers
import anytime
import coverage_table
import engine
import exact
import foreseen
import guarded
import guarded_audit
import guards
import losses_audit
import numbers_table
import planning
import promise
import scale
from tables import Table

BENCHMARKS: dict[str, Callable[[], Table]] = {
    "engine": engine.table,
    "scale": scale.table,
    "exact": exact.table,
    "promise": promise.table,
    "asks": planning.asks,
    "anytime": anytime.table,
    "differences": answers.differences,
    "targets": answers.targets,
    "stopping": answers.stopping,
    "bias": answers.bias,
    "baseline": guarded.baseline,
    "shop": guarded.shop,
    "guards": guards.table,
}
NUMBERS: dict[str, Callable[[], Table]] = {"numbers": numbers_table.table, "planning": planning.table}
LONG: dict[str, Callable[[], Table]] = {
    "losses-audit": losses_audit.table,
    "guarded-audit": guarded_audit.table,
    "foreseen": foreseen.table,
    "coverage": coverage_table.table,
}  # an hour or two


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    known = BENCHMARKS | NUMBERS | LONG
    unknown = sorted(set(names) - set(known))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; known: {', '.join(known)}")
    for name in names:
        found = known[name]()
        print(found.markdown(), flush=True)
        print(f"written to {found.write()}", flush=True)


if __name__ == "__main__":
    main()
