"""Run every benchmark and write its table to benchmarks/results/. Name some to run only those."""

from __future__ import annotations

import sys
from collections.abc import Callable

import answers
import anytime
import bets_audit
import bounded
import chaos
import coverage_table
import durable
import engine
import exact
import forecast
import foreseen
import guarded
import guarded_audit
import guards
import inthelimit
import logged
import logged_audit
import logs
import loops
import losses_audit
import numbers_table
import planning
import promise
import reading
import scale
import unknown
import unknown_audit
import unknown_formula
import unknown_speed
import vetoes
from tables import Table

BENCHMARKS: dict[str, Callable[[], Table]] = {
    "engine": engine.table,
    "scale": scale.table,
    "exact": exact.table,
    "promise": promise.table,
    "asks": planning.asks,
    "anytime": anytime.table,
    "inthelimit": inthelimit.table,
    "differences": answers.differences,
    "targets": answers.targets,
    "stopping": answers.stopping,
    "bias": answers.bias,
    "baseline": guarded.baseline,
    "shop": guarded.shop,
    "guards": guards.table,
    "bounded": bounded.table,
    "vetoes": vetoes.table,
    "unknown": unknown.table,
    "unknown-formula": unknown_formula.table,
    "unknown-speed": unknown_speed.table,
    "logs": logs.table,
    "logged": logged.table,
    "forecast": forecast.table,
    "durable": durable.table,
    "loops": loops.table,
    "reading": reading.table,
}
NUMBERS: dict[str, Callable[[], Table]] = {"numbers": numbers_table.table, "planning": planning.table}
LONG: dict[str, Callable[[], Table]] = {
    "chaos": chaos.table,
    "losses-audit": losses_audit.table,
    "veto-audit": losses_audit.vetoed,
    "bets-audit": bets_audit.table,
    "guarded-audit": guarded_audit.table,
    "unknown-audit": unknown_audit.table,
    "logged-audit": logged_audit.table,
    "foreseen": foreseen.table,
    "coverage": coverage_table.table,
}  # an hour or two


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    known = BENCHMARKS | NUMBERS | LONG
    missing = sorted(set(names) - set(known))
    if missing:
        sys.exit(f"no benchmark named {', '.join(missing)}; known: {', '.join(known)}")
    for name in names:
        found = known[name]()
        print(found.markdown(), flush=True)
        print(f"written to {found.write()}", flush=True)


if __name__ == "__main__":
    main()
