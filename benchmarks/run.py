"""Run every benchmark and write its table to benchmarks/results/. Name some to run only those."""

from __future__ import annotations

import sys

import engine
import exact
import promise
import scale

BENCHMARKS = {"engine": engine.table, "scale": scale.table, "exact": exact.table, "promise": promise.table}


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    for name in names:
        found = BENCHMARKS[name]()
        print(found.markdown(), flush=True)
        print(f"written to {found.write()}", flush=True)


if __name__ == "__main__":
    main()
