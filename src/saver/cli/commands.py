"""The commands. Each turns words into one call of the library and prints what comes back.

What a command needs of the library it imports itself, when its words are read: help, and what is refused,
wait for nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saver import __version__
from saver.cli import show, stores
from saver.cli.logs import asked, evaluate, fit
from saver.cli.options import (
    Alpha,
    Asked,
    Campaigns,
    Declared,
    Delta,
    Episodes,
    Force,
    Jobs,
    Json,
    Losses,
    More,
    Name,
    Order,
    Out,
    OutAtOnce,
    Ran,
    Seed,
    check_picture,
    scenario_options,
)
from saver.errors import InvalidProblem

if TYPE_CHECKING:
    from saver.experiments import Outcome

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Try `saver list`, then `saver diagnose bandit`, then `saver reproduce --quick`.",
)

app.add_typer(stores.app, name="campaign")


@app.callback()
def command(
    version: Annotated[bool, typer.Option("--version", help="print the version", is_eager=True)] = False,
) -> None:
    """Evaluate a new policy precisely and safely (SaVeR, ICML 2024)."""
    if version:
        print(f"saver {__version__}")
        raise typer.Exit


@app.command()
def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick", help="few runs: under a minute; the first time compiles for another")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="many runs: about half an hour on two cores")] = False,
    out: Out = Path("results"),
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Run the paper's experiments, draw its figures, and say claim by claim what held.

    An interrupted run goes on from what is complete. For example: `saver reproduce --quick --out /tmp/try`
    """
    _one_of(quick, full)
    from saver import experiments

    level = "quick" if quick else "full" if full else "default"
    with show.progress() as progress:
        found = experiments.reproduce(out, level=level, seed=seed, jobs=jobs, force=force, progress=progress)
    _print(found, json)


@app.command()
def audit(
    quick: Annotated[bool, typer.Option("--quick", help="a few thousand campaigns; the default")] = False,
    full: Annotated[bool, typer.Option("--full", help="more than 100,000 campaigns: about an hour")] = False,
    out: Annotated[Path, typer.Option(help="folder of the results")] = Path("results-audit"),
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Count how often the promise breaks and intervals miss, on scenarios, random worlds and hostile ones.

    Exit code 1 if a count is beyond chance. An interrupted audit goes on from what is complete.
    """
    _one_of(quick, full)
    from saver import experiments
    from saver.experiments.auditing import CELLS, cells, summary

    level = "full" if full else "quick"
    with show.progress() as progress:
        found = experiments.audit(out, level=level, seed=seed, jobs=jobs, force=force, progress=progress)
    if json:
        show.plain([vars(group) for group in found.groups])
    else:
        show.table(CELLS, [cells(group) for group in found.groups])
        print(summary(found.groups))
        print(f"table: {found.folder / 'audit.md'}")
    if any(group.broken for group in found.groups):
        raise typer.Exit(1)


@app.command()
def run(
    scenario: Name,
    collectors: Annotated[
        str | None,
        typer.Option(help="names from `saver list`, with commas between; saver-opt and saver by default"),
    ] = None,
    episodes: Episodes = None,
    runs: Campaigns = 100,
    alpha: Alpha = None,
    delta: Delta = None,
    more: More = None,
    out: Annotated[
        Path | None, typer.Option(help="folder of the results; `results-SCENARIO` by default")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Simulate collectors in one scenario, and draw and report what came of it.

    For example: `saver run bandit --collectors saver-opt,safe-on-policy --episodes 2000 --alpha 0.1`
    """
    options = scenario_options(alpha, delta, more)
    from saver import experiments
    from saver.scenarios import find_scenario

    made = find_scenario(scenario, **options)
    usual = "saver-opt,saver" if made.problem.mdp.known else "saver-opt,safe-on-policy"
    given = usual if collectors is None else collectors
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    if not names:
        raise InvalidProblem("--collectors is empty; give names with commas between, such as saver-opt,saver")
    K = made.episodes if episodes is None else episodes
    experiment = experiments.Experiment(
        scenario, scenario.capitalize(), scenario, tuple(dict.fromkeys(names)), K, (runs,) * 3, "", options
    )
    place = out or Path(f"results-{scenario}")
    with show.progress() as progress:
        found = experiments.run(place, experiment, seed=seed, jobs=jobs, force=force, progress=progress)
    _print(found, json)


@app.command()
def plot(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a folder that reproduce or run wrote")],
) -> None:
    """Draw the figures and the report of a folder again, from its tables alone."""
    from saver import experiments

    with show.progress() as progress:
        found = experiments.plot(folder, progress=progress)
    _print(found, False)


@app.command()
def diagnose(
    scenario: Asked,
    episodes: Episodes = None,
    stderr: Annotated[float | None, typer.Option(help="a standard error that is wanted")] = None,
    alpha: Alpha = None,
    delta: Delta = None,
    more: More = None,
    losses: Losses = 0.0,
    out_at_once: OutAtOnce = 1,
    declared: Declared = "hostile",
    order: Order = "any",
    ran: Ran = False,
    seconds: Annotated[float, typer.Option(min=0, help="time for the exact design")] = 20.0,
    json: Json = False,
) -> None:
    """Say what a problem will cost before it is run, and what the paper's theory says about it.

    For example: `saver diagnose tree --episodes 2000 --stderr 0.05 --alpha 0.1`, or with lost and late
    feedback `saver diagnose tree --losses 0.05 --out-at-once 100`. A file is what `saver fit` or
    `saver.save` wrote: a problem with its history, or a scenario.
    """
    made = asked(scenario, scenario_options(alpha, delta, more))
    from saver import theory

    with show.working("diagnosing"):
        found = theory.diagnose(
            made,
            episodes,
            stderr=stderr,
            seconds=seconds,
            losses=losses,
            out=out_at_once,
            declared=declared,
            order=order,
            ran=ran,
        )
    if json:
        show.plain(found.to_dict())
    else:
        print(found.report(show.width()), end="")


@app.command()
def design(
    scenario: Name,
    picture: Annotated[
        Path | None, typer.Option(help="draw where the designs go: a .png, .pdf or .svg file")
    ] = None,
    alpha: Alpha = None,
    more: More = None,
    json: Json = False,
) -> None:
    """Compare designs: their limit (K times the error in the long run), their safety, where they go.

    For example: `saver design gridworld --picture gridworld.png`
    """
    if picture is not None:
        check_picture(picture)
    from saver.cli.comparing import print_designs
    from saver.experiments.pictures import visit_tables
    from saver.experiments.tables import TABLES
    from saver.experiments.work import limit_rows, policies, visit_rows
    from saver.figures.designs import picture_designs
    from saver.scenarios import find_scenario
    from saver.theory.believed import known_twin

    made, _ = known_twin(find_scenario(scenario, **scenario_options(alpha, None, more)))
    with show.working("designing"):
        compared = policies(made)
        limits = [TABLES["limits"].named(row) for row in limit_rows(made, compared)]
        visits = [TABLES["designs"].named(row) for row in visit_rows(made, compared)]
    if picture is not None:
        picture_designs(visit_tables(visits), made.name, picture, made.problem.mdp.pair_names)
    if json:
        show.plain({"designs": limits, "visits": [list(row.values())[1:] for row in visits]})
        return
    print_designs(made, compared, limits)
    if picture is not None:
        print(f"picture: {picture}")


app.command()(fit)
app.command()(evaluate)


@app.command()
def warm(jobs: Jobs = None, json: Json = False) -> None:
    """Compile everything now, for this processor, instead of when it is first called.

    For containers and CI. What is there is not compiled again; an interrupted run keeps what it did.
    """
    from saver.experiments.warming import warm as compile_all

    with show.progress() as progress:
        found = compile_all(jobs=jobs, progress=progress)
    if json:
        show.plain({**vars(found), "folder": str(found.folder)})
        return
    print(f"{found.functions} functions compiled in {found.seconds:.0f} s, kept in {found.folder}")
    print("another kind of processor compiles again")


@app.command("list")
def list_names(json: Json = False) -> None:
    """List the scenarios, the collectors and the experiments by name."""
    from saver.cli import listing

    if json:
        show.plain(listing.data())
        return
    for head, rows in listing.tables():
        show.table(head, rows)


def _print(found: Outcome, json: bool) -> None:
    """What was found."""
    from saver.experiments.report import CLAIMS, GUARDS, NUMBERS, claim_rows, guard_rows, number_rows

    if json:
        claims = [{**vars(claim), "verdict": claim.verdict} for claim in found.claims]
        numbers = {"numbers": found.numbers, "guardrails": found.guardrails}
        show.plain({"claims": claims, **numbers, "folder": str(found.folder)})
        return
    if found.claims:
        title = "What the paper claims, what is claimed here, and what was measured"
        show.table(CLAIMS, claim_rows(found.claims), title)
    else:
        show.table(NUMBERS, number_rows(found.numbers))
    if found.guardrails:
        show.table(GUARDS, guard_rows(found.guardrails), "Guardrails, in the units of each")
    print(f"figures: {found.folder / 'figures'}")
    print(f"report:  {found.folder / 'report.html'}")


def _one_of(quick: bool, full: bool) -> None:
    if quick and full:
        raise InvalidProblem("--quick and --full were both given; give one of them, or neither")
