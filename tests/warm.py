"""Compiles the engine's loops before the tests start, each once: two workers would compile all twice."""

import multiprocessing

LOOPS = (  # by one process each; the longest of either first
    (("shop", "saver"), ("shop", "saver-opt"), ("contexts", "saver-opt")),
    (("gridworld", "saver-opt"), ("tree", "saver"), ("bandit", "saver"), ("bandit", "sepec")),
)


def compiled(cells):
    """Ten episodes of each."""
    from saver import SCENARIOS, Campaign, simulate

    for scenario, collector in cells:
        asked = SCENARIOS[scenario]()
        simulate(asked, collector, episodes=10, runs=1)
        simulate(asked, collector, episodes=4, runs=1, engine="reference")
        Campaign(asked.problem, collector, 10).ask()
    return len(cells)


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(compiled, LOOPS, chunksize=1)), "cells are compiled")
