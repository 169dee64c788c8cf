"""The commands. Each turns words into one call of the library and prints what comes back.

What a command needs of the library it imports itself, when its words are read: help, and what is refused,
wait for nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from saver import __version__
from saver.cli import options, show, stores
from saver.cli.logs import asked, evaluate, fit
from saver.cli.rehearsing import rehearse
from saver.errors import InvalidProblem

if TYPE_CHECKING:
    from saver.experiments import Outcome

app = typer.Typer(
    add_completion=False, no_args_is_help=True, invoke_without_command=True, pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Try `saver list`, then `saver diagnose bandit`, then `saver reproduce --quick`.",
)  # fmt: skip
app.add_typer(stores.app, name="campaign")


@app.callback()
def command(
    version: Annotated[bool, Option("--version", help="print the version", is_eager=True)] = False,
) -> None:
    """Evaluate a new policy precisely and safely (SaVeR, ICML 2024)."""
    if version:
        print(f"saver {__version__}")
        raise typer.Exit


@app.command()
def reproduce(
    quick: Annotated[
        bool, Option("--quick", help="few runs: under a minute; the first time compiles for another")
    ] = False,
    full: Annotated[bool, Option("--full", help="many runs: about half an hour on two cores")] = False,
    out: Annotated[Path, Option(help="folder of the results; complete parts in it are kept")] = Path(
        "results"
    ),
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Run the paper's experiments, draw its figures, and say claim by claim what held.

    An interrupted run goes on from what is complete. For example: `saver reproduce --quick --out /tmp/try`
    """
    level = _level(quick, full, "default")
    from saver import experiments

    with show.progress() as progress:
        found = experiments.reproduce(out, level=level, seed=seed, jobs=jobs, force=force, progress=progress)
    _print(found, json)


@app.command()
def audit(
    quick: Annotated[bool, Option("--quick", help="a few thousand campaigns; the default")] = False,
    full: Annotated[bool, Option("--full", help="more than 100,000 campaigns: about an hour")] = False,
    out: Annotated[Path, Option(help="folder of the results")] = Path("results-audit"),
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Count how often the promise breaks and intervals miss, on scenarios, random worlds and hostile ones.

    Exit code 1 if a count is beyond chance. An interrupted audit goes on from what is complete.
    """
    level = _level(quick, full, "quick")
    from saver import experiments
    from saver_audit import CELLS, cells, summary

    with show.progress() as progress:
        found = experiments.audit(out, level=level, seed=seed, jobs=jobs, force=force, progress=progress)
    rows = [CELLS, *map(cells, found.groups)]
    lines = summary(found.groups), f"table: {found.folder / 'audit.md'}"
    show.result(json, [vars(group) for group in found.groups], *lines, rows=rows)
    if any(group.broken for group in found.groups):
        raise typer.Exit(1)


@app.command()
def run(
    scenario: Annotated[
        str, Argument(metavar="SCENARIO|FILE", help="a name from `saver list`, or a file of a problem")
    ],
    collectors: Annotated[
        str | None,
        Option(help="names from `saver list`, with commas between; saver-opt and saver by default"),
    ] = None,
    episodes: options.Episodes = None,
    runs: Annotated[
        int, Option(parser=options.whole(2), metavar="NUMBER", help="campaigns for each collector")
    ] = 100,
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    more: options.More = None,
    out: Annotated[Path | None, Option(help="folder of the results; `results-SCENARIO` by default")] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Simulate collectors in one scenario, and draw and report what came of it.

    For example: `saver run bandit --collectors saver-opt,safe-on-policy --episodes 2000 --alpha 0.1`. A file
    is what `saver fit` wrote: its problem is asked in the world as its log shows it.
    """
    given = options.scenario_options(alpha, delta, more)
    from saver import experiments
    from saver.experiments.work import from_file, made as make

    scenario, given = from_file(scenario, given)
    made = make(scenario, given)
    usual = "saver-opt,saver" if made.problem.mdp.known else "saver-opt,safe-on-policy"
    listed = (usual if collectors is None else collectors).split(",")
    names = tuple(dict.fromkeys(name.strip() for name in listed if name.strip()))
    if not names:
        raise InvalidProblem("--collectors is empty; give names with commas between, such as saver-opt,saver")
    title, K = scenario.capitalize(), made.episodes if episodes is None else episodes
    mine = experiments.Experiment(scenario, title, scenario, names, K, (runs,) * 3, options=given)
    place = out or Path(f"results-{scenario.removesuffix('.json')}")
    with show.progress() as progress:
        found = experiments.run(place, mine, seed=seed, jobs=jobs, force=force, progress=progress)
    _print(found, json)


@app.command()
def plot(
    folder: Annotated[Path, Argument(metavar="DIR", help="a folder that reproduce or run wrote")],
) -> None:
    """Draw the figures and the report of a folder again, from its tables alone."""
    from saver import experiments

    with show.progress() as progress:
        found = experiments.plot(folder, progress=progress)
    _print(found, False)


@app.command()
def diagnose(
    scenario: Annotated[
        str, Argument(metavar="SCENARIO|FILE", help="a name from `saver list`, or a file of a problem")
    ],
    episodes: options.Episodes = None,
    stderr: Annotated[float | None, Option(help="a standard error that is wanted")] = None,
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    more: options.More = None,
    losses: Annotated[float, Option(help="the share of trials of which nothing will be told")] = 0.0,
    out_at_once: Annotated[
        int, Option(parser=options.whole(1), metavar="NUMBER", help="how many trials will be out at once")
    ] = 1,
    declared: Annotated[
        str, Option(help="who chooses what is lost, or told late: hostile, or random")
    ] = "hostile",
    order: Annotated[str, Option(help="in which order trials start: any, or asked")] = "any",
    ran: Annotated[bool, Option("--ran", help="lost trials are known to have run")] = False,
    seconds: Annotated[float, Option(min=0, help="time for the exact design")] = 20.0,
    theory: Annotated[bool, Option("--theory", help="of a log: also what theory says")] = False,
    json: options.Json = False,
) -> None:
    """Say what a problem will cost before it is run, and what the paper's theory says about it.

    For example: `saver diagnose tree --episodes 2000 --stderr 0.05 --alpha 0.1`, or with lost and late
    feedback `saver diagnose tree --losses 0.05 --out-at-once 100`. A file is what `saver fit` or
    `saver.save` wrote: a problem with its history, or a scenario.
    """
    made = asked(scenario, options.scenario_options(alpha, delta, more))
    from saver.theory import diagnose as foresee

    with show.working("diagnosing"):
        found = foresee(
            made, episodes, stderr=stderr, seconds=seconds, losses=losses, out=out_at_once,
            declared=declared, order=order, ran=ran,
        )  # fmt: skip
    show.result(json, found.to_dict(), found.report(show.width(), theory).removesuffix("\n"))


@app.command()
def design(
    scenario: options.Name,
    picture: Annotated[
        Path | None, Option(help="draw where the designs go: a .png, .pdf or .svg file")
    ] = None,
    alpha: options.Alpha = None,
    more: options.More = None,
    json: options.Json = False,
) -> None:
    """Compare designs: their limit (K times the error in the long run), their safety, where they go.

    For example: `saver design gridworld --picture gridworld.png`
    """
    if picture is not None:
        options.check_picture(picture)
    from saver.experiments.pictures import visit_tables
    from saver.experiments.tables import TABLES
    from saver.experiments.work import compared, limit_rows, visit_rows
    from saver.figures.designs import picture_designs

    with show.working("designing"):
        made, designs = compared(scenario, options.scenario_options(alpha, None, more))
        limits = [TABLES["limits"].named(row) for row in limit_rows(made, designs)]
        visits = [TABLES["designs"].named(row) for row in visit_rows(made, designs)]
    if picture is not None:
        picture_designs(visit_tables(visits), made.name, picture, made.problem.mdp.pair_names)
    if json:
        show.plain({"designs": limits, "visits": [list(row.values())[1:] for row in visits]})
        return
    show.print_designs(made, designs, limits)
    if picture is not None:
        print(f"picture: {picture}")


app.command()(fit)
app.command()(evaluate)
app.command()(rehearse)


@app.command()
def warm(jobs: options.Jobs = None, json: options.Json = False) -> None:
    """Compile everything now, for this processor, instead of when it is first called.

    For containers and CI. What is there is not compiled again; an interrupted run keeps what it did.
    """
    from saver.experiments.warming import warm as compile_all

    with show.progress() as progress:
        found = compile_all(jobs=jobs, progress=progress)
    compiled = f"{found.functions} functions compiled in {found.seconds:.0f} s, kept in {found.folder}"
    data = {**vars(found), "folder": str(found.folder)}
    show.result(json, data, compiled, "another kind of processor compiles again")


@app.command("list")
def list_names(json: options.Json = False) -> None:
    """List the scenarios, the collectors and the experiments by name."""
    from saver.collect import COLLECTORS
    from saver.experiments import EXPERIMENTS
    from saver.scenarios import SCENARIOS

    scenarios = {name: (make.__doc__ or "").strip().splitlines()[0] for name, make in SCENARIOS.items()}
    collectors = {
        name: {"design": str(c.design), "knows": c.knows, "ledger": c.ledger, "promises": c.promises}
        for name, c in COLLECTORS.items()
    }
    parts = ("scenario", "episodes", "collectors", "runs")
    experiments = {name: {part: getattr(e, part) for part in parts} for name, e in EXPERIMENTS.items()}
    if json:
        show.plain({"scenarios": scenarios, "collectors": collectors, "experiments": experiments})
        return
    show.table([("scenario", "what it is"), *scenarios.items()])
    rows: list[tuple[str, ...]] = [("collector", "design", "knows", "ledger", "promises safety")]
    for name, c in COLLECTORS.items():
        knows = ", ".join(c.knows) or "nothing"
        rows.append((name, str(c.design), knows, c.ledger, "yes" if c.promises else "no"))
    show.table(rows)
    rows = [("experiment", "scenario", "episodes", "runs: quick / default / full")]
    for name, e in EXPERIMENTS.items():
        rows.append((name, e.scenario, f"{e.episodes:,}", " / ".join(f"{runs:,}" for runs in e.runs)))
    show.table(rows)


def _print(found: Outcome, json: bool) -> None:
    """What was found."""
    from saver.experiments.report import GUARDS, NUMBERS, claim_rows, words

    if json:
        rows = {"claims": [claim.row for claim in found.claims], "numbers": found.numbers}
        show.plain({**rows, "guardrails": found.guardrails, "folder": str(found.folder)})
        return
    if found.claims:
        title = "What the paper claims, what is claimed here, and what was measured"
        show.table(claim_rows(found.claims), title)
    else:
        show.table(words(NUMBERS, found.numbers))
    if found.guardrails:
        show.table(words(GUARDS, found.guardrails), "Guardrails, in the units of each")
    print(f"figures: {found.folder / 'figures'}")
    print(f"report:  {found.folder / 'report.html'}")


def _level(quick: bool, full: bool, usual: str) -> str:
    if quick and full:
        raise InvalidProblem("--quick and --full were both given; give one of them, or neither")
    return "quick" if quick else "full" if full else usual
