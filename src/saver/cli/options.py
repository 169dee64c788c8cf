"""Options that commands share, and how their words are read."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from saver.errors import InvalidProblem


def whole(least: int) -> Callable[[Any], int]:
    """Reads a whole number of at least `least`: 1000, 1_000 or 1e3."""

    def read(text: Any) -> int:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if number.is_integer() and number >= least:
            return int(number)
        raise typer.BadParameter(f"{text!r} is not a whole number of at least {least}, such as 1000 or 1e3")

    return read


Name = Annotated[str, Argument(metavar="SCENARIO", help="a name from `saver list`")]
Seed = Annotated[int, Option(min=0, help="the same seed gives the same tables")]
Jobs = Annotated[int | None, Option(min=1, help="cores to use; all by default")]
Force = Annotated[bool, Option("--force", help="replace results of other settings in the folder")]
Json = Annotated[bool, Option("--json", help="print JSON for programs")]
Alpha = Annotated[float | None, Option(help="the share of the baseline's value that may be given up")]
Delta = Annotated[float | None, Option(help="the probability with which the promise may fail")]
Episodes = Annotated[
    int | None,
    Option(parser=whole(1), metavar="NUMBER", help="K, such as 5000 or 5e3; the scenario's by default"),
]
More = Annotated[
    list[str] | None,
    Option("--set", metavar="NAME=VALUE", help="any other argument of the scenario; may be repeated"),
]
NUMBERS = ("alpha", "allowance", "at_least", "at_most", "baseline_value", "share")
BOUNDS, NOISE = ("low", "high"), ("scale", "floor", "ceiling")


def named(
    option: str, given: list[str] | None, rule: str, sign: str = "=", once: bool = True, empty: bool = False
) -> dict[str, str]:
    """NAME=VALUE -> the values by name; what is said of others is `rule`."""
    found: dict[str, str] = {}
    for item in given or []:
        name, there, value = item.partition(sign)
        if not (name and there and (value or empty)) or (once and name in found):
            raise InvalidProblem(f"{option} is {item!r}{rule}")
        found[name] = value
    return found


def scenario_options(alpha: float | None, delta: float | None, more: list[str] | None) -> dict[str, Any]:
    """The arguments of a scenario."""
    options: dict[str, Any] = {}
    rule = "; it must be NAME=VALUE, such as --set depth=5"
    for name, value in named("--set", more, rule, once=False, empty=True).items():
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    own = {"alpha": alpha, "delta": delta}
    return options | {name: number for name, number in own.items() if number is not None}


def check_picture(picture: Path, option: str = "--picture") -> None:
    """Refuse a picture that cannot be written, before anything is computed."""
    if picture.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InvalidProblem(f"{option} is {picture}; its name must end in .png, .pdf, .svg")
    if picture.is_dir():
        raise InvalidProblem(f"{option} is {picture}, which is a folder; give the name of a file")
    if not picture.parent.is_dir():
        raise InvalidProblem(
            f"{option} is {picture}, but there is no folder {picture.parent}; make it, or give another place"
        )


def guardrails_of(given: list[str]) -> dict[str, dict[str, Any]]:
    """NAME:alpha=0.05,cost,low=0,high=5 -> the options of each."""
    rule = ": it must be NAME:OPTIONS, each name once, such as complaint:alpha=0.05,cost"
    found = named("--guardrail", given, rule, ":", empty=True)
    return {name: _options(f"{name}:{text}", text) for name, text in found.items()}


def policies_of(given: list[str]) -> Any:
    """FILE, or NAME=FILE of several."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return named("--target", given, "; of several, each must be NAME=FILE, each name once")


def _options(item: str, text: str) -> dict[str, Any]:
    from saver.problem import Bounded, SubGaussian

    def wrong(what: str) -> InvalidProblem:
        return InvalidProblem(f"--guardrail is {item!r}: {what}")

    numbers: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for word in text.split(","):
        key, equals, value = (part.strip() for part in word.partition("="))
        if key in numbers or key in options:
            raise wrong(f"{key} is said twice")
        if key == "cost" and not equals:
            options["cost"] = True
        elif key in (*NUMBERS, *BOUNDS, *NOISE) and equals:
            try:
                numbers[key] = float(value)
            except ValueError:
                raise wrong(f"{key} is {value!r}, which is no number") from None
        else:
            raise wrong(f"{word!r} is not known; known: {', '.join(('cost', *NUMBERS, *BOUNDS, *NOISE))}")
    options |= {key: numbers.pop(key) for key in NUMBERS if key in numbers}
    if numbers.keys() == set(BOUNDS):
        options["promise"] = Bounded(**numbers)
    elif "scale" in numbers and numbers.keys() <= set(NOISE):
        options["promise"] = SubGaussian(**numbers)
    elif numbers:
        raise wrong("give low and high, or scale with floor and ceiling")
    return options
