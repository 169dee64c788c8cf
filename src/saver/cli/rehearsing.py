"""The command that plays a campaign on one's own data before it is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from saver.cli import show
from saver.cli.logs import load
from saver.cli.options import Json, Seed, whole
from saver.errors import InvalidData, InvalidProblem

if TYPE_CHECKING:
    from saver.theory import Rehearsal


def rehearse(
    problem: Annotated[Path, Argument(metavar="PROBLEM", help="a file that `saver fit` wrote")],
    episodes: Annotated[
        int, Option(parser=whole(1), metavar="NUMBER", help="of each campaign, such as 5000 or 5e3")
    ] = 1000,
    runs: Annotated[int, Option(parser=whole(1), metavar="NUMBER", help="campaigns")] = 200,
    collector: Annotated[str, Option(help="a name from `saver list`")] = "saver-opt",
    seed: Seed = 0,
    as_seen: Annotated[
        bool,
        Option("--as-seen", help="all in the world as the log shows it, none drawn from what it leaves open"),
    ] = False,
    out: Annotated[Path | None, Option(help="folder for rehearsal.csv and rehearsal.png")] = None,
    json: Json = False,
) -> None:
    """Play a campaign many times in worlds drawn from what the log leaves open: what it would come to.

    For example: `saver rehearse problem.json --episodes 2000 --out rehearsal`
    """
    found = _played(problem, collector, episodes, runs, seed, not as_seen, out)
    lines = [found.report(min(show.width(), 110)).removesuffix("\n")]
    if out is not None:
        lines += [f"table:  {_write(found, out)}", f"figure: {found.plot(out / 'rehearsal.png')}"]
    show.result(json, found.to_dict(), *lines)


def _played(
    place: Path, collector: str, episodes: int, runs: int, seed: int, drawn: bool, out: Path | None
) -> Rehearsal:
    """The campaigns, once all that can be refused was looked at."""
    if not place.is_file():
        from saver.scenarios import SCENARIOS

        if str(place) in SCENARIOS:
            raise InvalidProblem(
                f"PROBLEM is {str(place)!r}, a scenario; a rehearsal is for the file of a problem with a "
                f"log, from `saver fit`: of a scenario `saver run {place}` plays campaigns"
            )
    from saver import theory
    from saver.problem import Problem

    stated = load(place, Problem)
    if stated.history is None or not stated.history.episodes:
        raise InvalidProblem(f"{place} holds a problem without a history; make it from a log by `saver fit`")
    if out is not None:
        _make(out)
    done = 0
    with show.progress() as progress:

        def tell(more: int) -> None:
            nonlocal done
            done += more
            progress("campaigns", f"{done:,} of {runs:,} campaigns", done / runs)

        return theory.rehearse(
            stated, collector, episodes=episodes, runs=runs, seed=seed, drawn=drawn, progress=tell
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InvalidData(f"cannot make {folder}: {cause.strerror or cause}; give another --out") from None


def _write(found: Rehearsal, folder: Path) -> Path:
    """A row for each campaign."""
    import csv

    from saver._files import written

    rows: list[dict[str, Any]] = found.rows()
    path = folder / "rehearsal.csv"
    with written(path, "another --out") as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path
