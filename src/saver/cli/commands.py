"""The commands. Each turns words into one call of the library and prints what comes back."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated, Any

import typer

import saver
from saver import experiments
from saver.cli import show
from saver.collect import COLLECTORS
from saver.errors import InvalidProblem
from saver.experiments import EXPERIMENTS, Experiment, Outcome
from saver.experiments.auditing import CELLS, cells, summary
from saver.experiments.drawings import visit_tables
from saver.experiments.report import CLAIMS, NUMBERS, claim_rows, number_rows
from saver.experiments.tables import TABLES
from saver.experiments.work import limit_rows, policies, visit_rows
from saver.scenarios import SCENARIOS, find_scenario

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Evaluate a new policy precisely and safely (SaVeR, ICML 2024).",
    epilog="Try `saver list`, then `saver diagnose bandit`, then `saver reproduce --quick`.",
)

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
More = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="any other argument of the scenario; may be repeated"),
]


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
    """Count how often the promise breaks, on every scenario, on random worlds and on hostile ones.

    Exit code 1 if a count is beyond chance. An interrupted audit goes on from what is complete.
    """
    _one_of(quick, full)
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
        str, typer.Option(help="names from `saver list`, with commas between")
    ] = "saver-opt,saver",
    episodes: Annotated[int | None, typer.Option(min=1, help="K; the scenario's by default")] = None,
    runs: Annotated[int, typer.Option(min=2, help="campaigns for each collector")] = 100,
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
    options = _options(alpha, delta, more)
    made = find_scenario(scenario, **options)
    names = tuple(name.strip() for name in collectors.split(",") if name.strip())
    if not names:
        raise InvalidProblem("--collectors is empty; give names with commas between, such as saver-opt,saver")
    K = made.episodes if episodes is None else episodes
    experiment = Experiment(
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
    with show.progress() as progress:
        found = experiments.plot(folder, progress=progress)
    _print(found, False)


@app.command()
def diagnose(
    scenario: Name,
    episodes: Annotated[int | None, typer.Option(min=1, help="K; the scenario's by default")] = None,
    stderr: Annotated[float | None, typer.Option(help="a standard error that is wanted")] = None,
    alpha: Alpha = None,
    delta: Delta = None,
    more: More = None,
    seconds: Annotated[float, typer.Option(min=0, help="time for the exact design")] = 20.0,
    json: Json = False,
) -> None:
    """Say what a problem will cost before it is run, and what the paper's theory says about it.

    For example: `saver diagnose tree --episodes 2000 --stderr 0.05 --alpha 0.1`
    """
    made = find_scenario(scenario, **_options(alpha, delta, more))
    with show.working("diagnosing"):
        found = saver.diagnose(made, episodes, stderr=stderr, seconds=seconds)
    if json:
        show.plain(found.to_dict())
    else:
        print(found.report(), end="")


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
    made = find_scenario(scenario, **_options(alpha, None, more))
    with show.working("designing"):
        compared = policies(made)
        limits = [TABLES["limits"].named(row) for row in limit_rows(made, compared)]
        visits = [TABLES["designs"].named(row) for row in visit_rows(made, compared)]
    if picture is not None:
        _draw(picture, made.name, visits)
    if json:
        show.plain({"designs": limits, "visits": [list(row.values())[1:] for row in visits]})
        return
    numbers = ("limit", "constraint_value", "required")
    shown = [
        (row["design"], *(f"{row[name]:.4g}" for name in numbers), "yes" if row["safe"] else "no")
        for row in limits
    ]
    show.table(("design", "K * MSE", "constraint value", "required", "safe"), shown, f"{scenario}: designs")
    if picture is not None:
        print(f"picture: {picture}")


@app.command("list")
def list_names(json: Json = False) -> None:
    """List the scenarios, the collectors and the experiments by name."""
    scenarios = {name: (make.__doc__ or "").strip().splitlines()[0] for name, make in SCENARIOS.items()}
    collectors: dict[str, dict[str, Any]] = {
        name: {
            "design": str(recipe.design),
            "knows": list(recipe.knows),
            "ledger": recipe.ledger,
            "promises": recipe.promises,
        }
        for name, recipe in COLLECTORS.items()
    }
    experiments = {
        name: {
            "scenario": e.scenario,
            "episodes": e.episodes,
            "collectors": list(e.collectors),
            "runs": list(e.runs),
        }
        for name, e in EXPERIMENTS.items()
    }
    if json:
        show.plain({"scenarios": scenarios, "collectors": collectors, "experiments": experiments})
        return
    show.table(("scenario", ""), scenarios.items())
    rows = [
        (name, c["design"], ", ".join(c["knows"]) or "nothing", c["ledger"], "yes" if c["promises"] else "no")
        for name, c in collectors.items()
    ]  # fmt: skip
    show.table(("collector", "design", "knows", "ledger", "promises safety"), rows)
    shown = [
        (n, e.scenario, f"{e.episodes:,}", " / ".join(f"{r:,}" for r in e.runs))
        for n, e in EXPERIMENTS.items()
    ]
    show.table(("experiment", "scenario", "episodes", "runs: quick / default / full"), shown)


def _print(found: Outcome, json: bool) -> None:
    """What was found."""
    if json:
        claims = [{**vars(claim), "verdict": claim.verdict} for claim in found.claims]
        show.plain({"claims": claims, "numbers": found.numbers, "folder": str(found.folder)})
        return
    if found.claims:
        title = "What the paper claims, what is claimed here, and what was measured"
        show.table(CLAIMS, claim_rows(found.claims), title)
    else:
        show.table(NUMBERS, number_rows(found.numbers))
    print(f"figures: {found.folder / 'figures'}")
    print(f"report:  {found.folder / 'report.html'}")


def _one_of(quick: bool, full: bool) -> None:
    if quick and full:
        raise InvalidProblem("--quick and --full were both given; give one of them, or neither")


def _draw(picture: Path, name: str, visits: list[dict[str, Any]]) -> None:
    from saver.figures.designs import draw_designs

    kinds = (".png", ".pdf", ".svg")
    if picture.suffix.lower() not in kinds:
        raise InvalidProblem(f"--picture is {picture}; its name must end in {', '.join(kinds)}")
    draw_designs(visit_tables(visits), name, picture)


def _options(alpha: float | None, delta: float | None, more: list[str] | None) -> dict[str, Any]:
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
