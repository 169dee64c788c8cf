"""The commands about logs: from a log to a problem, and what a log says of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saver.cli import show
from saver.cli.guardrails import guardrails_of, policies_of
from saver.cli.options import Json
from saver.errors import InvalidData, InvalidProblem, SaverError

if TYPE_CHECKING:
    from saver.data import Episodes, Evaluation, Fitted, OffPolicy
    from saver.estimate import Estimate
    from saver.problem import Problem, Scenario

Log = Annotated[Path, typer.Argument(metavar="LOG", help="a CSV or Parquet file, one row for each step")]
Stated = Annotated[Path, typer.Argument(metavar="PROBLEM", help="a file that `saver fit` wrote")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="WHAT=NAME",
        help="which column holds what: episode, step, state, action, reward, propensity, next_state, "
        "complete, kind, or a guardrail's name; may be repeated",
    ),
]
Level = Annotated[float, typer.Option(help="of the intervals")]
ROLES = ("episode", "step", "state", "action", "reward", "propensity", "next_state", "complete", "kind")


def fit(
    log: Log,
    target: Annotated[
        list[str],
        typer.Option(metavar="[NAME=]FILE", help="a table state,action,probability; may be repeated"),
    ],
    guardrail: Annotated[
        list[str],
        typer.Option(
            metavar="NAME:OPTIONS",
            help="such as complaint:alpha=0.05,cost or revenue:at_least=3,low=0,high=9; may be repeated",
        ),
    ],
    out: Annotated[Path, typer.Option(help="the file of the problem")] = Path("problem.json"),
    horizon: Annotated[
        int | None, typer.Option(min=1, help="steps of an episode; those of the longest by default")
    ] = None,
    discount: Annotated[float, typer.Option(help="in (0, 1]")] = 1.0,
    delta: Annotated[float, typer.Option(help="the probability with which the promise may fail")] = 0.05,
    model: Annotated[
        str, typer.Option(help="unknown: learned on; mdp: frequencies are the truth")
    ] = "unknown",
    new_action: Annotated[
        list[str] | None, typer.Option(help="an action that the log does not have; may be repeated")
    ] = None,
    new_state: Annotated[
        list[str] | None, typer.Option(help="a state that the log does not have; may be repeated")
    ] = None,
    cut: Annotated[
        str, typer.Option(help="what is done with episodes that were cut off: refuse, or drop")
    ] = "refuse",
    column: Columns = None,
    json: Json = False,
) -> None:
    """Make a problem of a log of the baseline, and say what the log knows of the target already.

    For example: `saver fit log.parquet --target target.csv --guardrail complaint:alpha=0.05,cost`
    """
    columns = columns_of(column)
    guarded = guardrails_of(guardrail)
    policies = policies_of(target)
    from saver.problem.files import save

    _check_out(out, [log, *(policies.values() if isinstance(policies, dict) else [policies])])
    with show.working("reading"):
        found = read(log, columns, list(guarded))
        fitted = found.fit(
            horizon or int(found.lengths.max()), discount, model=model, new_actions=new_action or (),
            new_states=new_state or (), cut=cut,
        )  # fmt: skip
        stated = fitted.problem(policies, guarded, delta=delta)
        known = {name: fitted.off_policy(policy) for name, policy in stated.targets.items()}
    save(stated, out)
    _say_fitted(fitted, stated, known, out, json)


def evaluate(
    problem: Stated,
    log: Log,
    level: Level = 0.95,
    unguarded: Annotated[bool, typer.Option("--unguarded", help="the log has no guardrails")] = False,
    column: Columns = None,
    json: Json = False,
) -> None:
    """Say what a log, of any policy, knows of a problem's target: its value, and whether it is better.

    For example: `saver evaluate problem.json log.parquet --column propensity=p`
    """
    from saver import data
    from saver.problem import Problem

    stated = load(problem, Problem)
    names = [] if unguarded else [rail.name for rail in stated.rails]
    with show.working("reading"):
        found = data.evaluate(stated, read(log, columns_of(column), names), level=level)
    if json:
        show.plain({name: _evaluated(one) for name, one in found.items()})
        return
    for name, one in found.items():
        _say(f"{name}:", one.value)
        print(f"  against the baseline: {one.comparison}")
        for rail, value in one.guarded.items():
            least = "at most" if stated.rail(rail).sign < 0 else "at least"
            print(f"  {rail}: {_shown(value)}; {least} {one.required[rail]:.4g} is required")


def _check_out(out: Path, inputs: list[Any]) -> None:
    """Refuse to write over what is read, or over anything that is no problem."""
    if not out.exists():
        return
    for path in inputs:
        if Path(path).exists() and out.samefile(path):
            raise InvalidData(f"--out is {out}, which is read; give another file")
    from saver.problem import Problem

    try:
        load(out, Problem)
    except SaverError:
        raise InvalidData(f"--out is {out}, which is there and holds no problem; give another file") from None


def asked(name: str, options: dict[str, Any]) -> Scenario | Problem:
    """A scenario by name, or what a file holds."""
    from saver.problem import Problem, Scenario
    from saver.scenarios import SCENARIOS, find_scenario

    if name in SCENARIOS or not (Path(name).is_file() or name.endswith(".json")):
        return find_scenario(name, **options)
    if options:
        raise InvalidProblem(f"{', '.join(options)} are of scenarios; the file {name} says them itself")
    found: Scenario | Problem = load(Path(name), Scenario | Problem)
    return found


def load(path: Path, kinds: Any) -> Any:
    """What a file holds, if it is of these kinds."""
    from saver.problem import files

    found = files.load(path)
    if not isinstance(found, kinds):
        raise InvalidData(f"{path} holds a {type(found).__name__}; it must hold a problem")
    return found


def columns_of(given: list[str] | None) -> dict[str, str]:
    """WHAT=NAME."""
    found = {}
    for item in given or []:
        what, equals, name = item.partition("=")
        if not equals or not what or not name or what in found:
            raise InvalidProblem(
                f"--column is {item!r}; it must be WHAT=NAME, each of them once, such as --column state=page"
            )
        found[what] = name
    return found


def read(log: Path, columns: dict[str, str], guardrails: list[str]) -> Episodes:
    """The log, its columns called as said."""
    for what in columns:
        if what not in (*ROLES, *guardrails):
            known = ", ".join((*ROLES, *guardrails))
            raise InvalidProblem(
                f"--column {what}=... is neither a part of a step nor guarded; known: {known}"
            )
    from saver import data

    named = {name: columns.get(name, name) for name in guardrails}
    roles: Any = {role: name for role, name in columns.items() if role in ROLES}
    return data.read_log(log, guardrails=named, **roles)


def _say_fitted(fitted: Fitted, stated: Problem, known: dict[str, OffPolicy], out: Path, json: bool) -> None:
    doubts = fitted.against(stated)
    if json:
        show.plain(
            {
                "episodes": len(fitted.history),
                "steps": fitted.history.rows,
                "states": list(fitted.model.state_names),
                "actions": list(fitted.model.action_names),
                "horizon": fitted.model.horizon,
                "baseline": {"reward": _plain(fitted.reward)}
                | {name: _plain(found) for name, found in fitted.values.items()},
                "scales": {name: vars(scale) for name, scale in fitted.scales.items()},
                "targets": {name: _off_policy(one) for name, one in known.items()},
                "contradicted": list(doubts),
                "notes": list(fitted.notes),
                "problem": str(out),
            }
        )
        return
    print(fitted.report(), end="")
    for name, one in known.items():
        _say(f"{name}, from the log alone:", one)
    for doubt in doubts:
        print(f"contradicted: {doubt}")
    print(f"problem: {out}; now `saver diagnose {out}`")


def _say(title: str, one: OffPolicy) -> None:
    print(title)
    print(f"  certainty:  {_shown(one.certainty)}, {one.certainty.covered:.1%} covered")
    print(f"  importance: {_shown(one.importance)}, worth {one.effective:,.0f} episodes")
    for note in one.notes:
        print(f"  note: {note}")


def _shown(found: Estimate) -> str:
    low, high = found.interval
    return f"{found.value:.4g} in [{low:.4g}, {high:.4g}]"


def _plain(found: Estimate) -> dict[str, Any]:
    return {
        "value": found.value,
        "stderr": found.stderr,
        "interval": found.interval,
        "covered": found.covered,
    }


def _off_policy(one: OffPolicy) -> dict[str, Any]:
    return {
        "certainty": _plain(one.certainty),
        "importance": _plain(one.importance),
        "effective": one.effective,
        "heaviest": one.heaviest,
        "notes": list(one.notes),
    }


def _evaluated(one: Evaluation) -> dict[str, Any]:
    compared = one.comparison
    return {
        **_off_policy(one.value),
        "baseline": _plain(one.baseline),
        "difference": {**_plain(compared.difference), "verdict": compared.verdict},
        "guardrails": {
            rail: {**_plain(found), "required": one.required[rail]} for rail, found in one.guarded.items()
        },
    }
