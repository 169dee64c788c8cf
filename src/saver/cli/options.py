"""Options that commands share, and how their words are read."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from saver.errors import InvalidProblem

PICTURES = (".png", ".pdf", ".svg")


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


Asked = Annotated[
    str, typer.Argument(metavar="SCENARIO|FILE", help="a name from `saver list`, or a file of a problem")
]
Name = Annotated[str, typer.Argument(metavar="SCENARIO", help="a name from `saver list`")]
Out = Annotated[
    Path, typer.Option(help="folder of the results; complete parts in it are kept", show_default=True)
]
Seed = Annotated[int, typer.Option(min=0, help="the same seed gives the same tables")]
Jobs = Annotated[int | None, typer.Option(min=1, help="cores to use; all by default")]
Force = Annotated[bool, typer.Option("--force", help="replace results of other settings in the folder")]
Json = Annotated[bool, typer.Option("--json", help="print JSON for programs")]
Alpha = Annotated[float | None, typer.Option(help="the share of the baseline's value that may be given up")]
Delta = Annotated[float | None, typer.Option(help="the probability with which the promise may fail")]
Episodes = Annotated[
    int | None,
    typer.Option(parser=whole(1), metavar="NUMBER", help="K, such as 5000 or 5e3; the scenario's by default"),
]
Campaigns = Annotated[
    int, typer.Option(parser=whole(2), metavar="NUMBER", help="campaigns for each collector")
]
Losses = Annotated[float, typer.Option(help="the share of trials of which nothing will be told")]
OutAtOnce = Annotated[
    int, typer.Option(parser=whole(1), metavar="NUMBER", help="how many trials will be out at once")
]
Declared = Annotated[str, typer.Option(help="who chooses what is lost, or told late: hostile, or random")]
Order = Annotated[str, typer.Option(help="in which order trials start: any, or asked")]
Ran = Annotated[bool, typer.Option("--ran", help="lost trials are known to have run")]
More = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="any other argument of the scenario; may be repeated"),
]


def scenario_options(alpha: float | None, delta: float | None, more: list[str] | None) -> dict[str, Any]:
    """The arguments of a scenario."""
    options: dict[str, Any] = {}
    for item in more or []:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidProblem(f"--set is {item!r}; it must be NAME=VALUE, such as --set depth=5")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    for name, number in (("alpha", alpha), ("delta", delta)):
        if number is not None:
            options[name] = number
    return options


def check_picture(picture: Path, option: str = "--picture") -> None:
    """Refuse a picture that cannot be written, before anything is computed."""
    if picture.suffix.lower() not in PICTURES:
        raise InvalidProblem(f"{option} is {picture}; its name must end in {', '.join(PICTURES)}")
    if picture.is_dir():
        raise InvalidProblem(f"{option} is {picture}, which is a folder; give the name of a file")
    if not picture.parent.is_dir():
        raise InvalidProblem(
            f"{option} is {picture}, but there is no folder {picture.parent}; make it, or give another place"
        )
