"""A campaign in Gymnasium takes twelve lines; that they run is checked with the other examples."""

import ast
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["frozen_lake", "taxi", "cliff_walking", "blackjack"])
def test_an_example_has_at_most_twelve_lines_of_code(name):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    said = ast.parse(text).body[0].end_lineno  # the docstring
    lines = [line.strip() for line in text.splitlines()[said:]]
    assert sum(bool(line) and not line.startswith("#") for line in lines) <= 12
