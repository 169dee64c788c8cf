"""The names that commands take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from saver.collect import COLLECTORS
from saver.experiments import EXPERIMENTS
from saver.scenarios import SCENARIOS


def data() -> dict[str, Any]:
    """Scenarios, collectors and experiments, for programs."""
    return {
        "scenarios": _scenarios(),
        "collectors": {
            name: {
                "design": str(recipe.design),
                "knows": list(recipe.knows),
                "ledger": recipe.ledger,
                "promises": recipe.promises,
            }
            for name, recipe in COLLECTORS.items()
        },
        "experiments": {
            name: {
                "scenario": e.scenario,
                "episodes": e.episodes,
                "collectors": list(e.collectors),
                "runs": list(e.runs),
            }
            for name, e in EXPERIMENTS.items()
        },
    }


def tables() -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """The same for readers: a head and rows of each table."""
    yield ("scenario", "what it is"), list(_scenarios().items())
    yield (
        ("collector", "design", "knows", "ledger", "promises safety"),
        [
            (name, str(c.design), ", ".join(c.knows) or "nothing", c.ledger, "yes" if c.promises else "no")
            for name, c in COLLECTORS.items()
        ],
    )
    yield (
        ("experiment", "scenario", "episodes", "runs: quick / default / full"),
        [
            (name, e.scenario, f"{e.episodes:,}", " / ".join(f"{r:,}" for r in e.runs))
            for name, e in EXPERIMENTS.items()
        ],
    )


def _scenarios() -> dict[str, str]:
    return {name: (make.__doc__ or "").strip().splitlines()[0] for name, make in SCENARIOS.items()}
