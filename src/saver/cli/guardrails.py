"""How the words about guardrails and targets are read."""

from __future__ import annotations

from typing import Any

from saver.errors import InvalidProblem

NUMBERS = ("alpha", "allowance", "at_least", "at_most", "baseline_value", "share")
BOUNDS, NOISE = ("low", "high"), ("scale", "floor", "ceiling")


def guardrails_of(given: list[str]) -> dict[str, dict[str, Any]]:
    """NAME:alpha=0.05,cost,low=0,high=5 -> the options of each."""
    found: dict[str, dict[str, Any]] = {}
    for item in given:
        name, colon, rest = item.partition(":")
        if not name or not colon or name in found:
            raise _wrong(item, "it must be NAME:OPTIONS, each name once, such as complaint:alpha=0.05,cost")
        found[name] = _options(item, rest)
    return found


def policies_of(given: list[str]) -> Any:
    """FILE, or NAME=FILE of several."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    found = {}
    for item in given:
        name, equals, path = item.partition("=")
        if not equals or not name or not path or name in found:
            raise InvalidProblem(f"--target is {item!r}; of several, each must be NAME=FILE, each name once")
        found[name] = path
    return found


def _options(item: str, text: str) -> dict[str, Any]:
    from saver.problem import Bounded, SubGaussian

    numbers: dict[str, float] = {}
    options: dict[str, Any] = {}
    for word in text.split(","):
        key, equals, value = (part.strip() for part in word.partition("="))
        if key in numbers or key in options:
            raise _wrong(item, f"{key} is said twice")
        if key == "cost" and not equals:
            options["cost"] = True
        elif key in (*NUMBERS, *BOUNDS, *NOISE) and equals:
            try:
                numbers[key] = float(value)
            except ValueError:
                raise _wrong(item, f"{key} is {value!r}, which is no number") from None
        else:
            known = ", ".join(("cost", *NUMBERS, *BOUNDS, *NOISE))
            raise _wrong(item, f"{word!r} is not known; known: {known}")
    options |= {key: numbers.pop(key) for key in NUMBERS if key in numbers}
    if numbers.keys() == set(BOUNDS):
        options["promise"] = Bounded(numbers["low"], numbers["high"])
    elif "scale" in numbers and numbers.keys() <= set(NOISE):
        options["promise"] = SubGaussian(
            numbers["scale"], numbers.get("floor", 0.0), numbers.get("ceiling", 1.0)
        )
    elif numbers:
        raise _wrong(item, "give low and high, or scale with floor and ceiling")
    return options


def _wrong(item: str, what: str) -> InvalidProblem:
    return InvalidProblem(f"--guardrail is {item!r}: {what}")
