"""How designs are compared in a terminal."""

from __future__ import annotations

from saver.cli import show
from saver.experiments.tables import Row
from saver.experiments.work import Designs, guard_rows
from saver.problem import Scenario


def print_designs(made: Scenario, compared: Designs, limits: list[Row]) -> None:
    """What each design is worth, of each guardrail."""
    rails, found = made.problem.rails, {name: guard_rows(made, policy) for name, policy in compared.items()}
    head = ["constraint value", "required"]
    if len(rails) > 1:
        lines = [f"at {'most' if rail.sign < 0 else 'least'}" for rail in rails]
        kept = zip(found["target"], lines, strict=True)
        head = [f"{one.name}, {line} {one.required:.4g}" for one, line in kept]
    shown = []
    for row in limits:
        values = [one.value for one in found[row["design"]]]
        numbers = values if len(rails) > 1 else [*values, row["required"]]
        cells = (f"{number:.4g}" for number in (row["limit"], *numbers))
        shown.append((row["design"], *cells, "yes" if row["safe"] else "no"))
    show.table(("design", "K * MSE", *head, "safe"), shown, f"{made.name}: designs")
