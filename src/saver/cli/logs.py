"""The commands about logs: from a log to a problem, and what a log says of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option

from saver.cli import show
from saver.cli.options import Json, guardrails_of, named, policies_of
from saver.errors import InvalidData, InvalidProblem, SaverError

if TYPE_CHECKING:
    from saver.data import Episodes, Evaluation, Fitted, OffPolicy
    from saver.estimate import Estimate
    from saver.problem import Problem, Scenario

ROLES = ("episode", "step", "state", "action", "reward", "propensity", "next_state", "complete", "kind")
Log = Annotated[Path, Argument(metavar="LOG", help="a CSV or Parquet file, one row for each step")]
Columns = Annotated[
    list[str] | None,
    Option(
        "--column",
        metavar="WHAT=NAME",
        help=f"which column holds what: {', '.join(ROLES)}, or a guardrail's name; may be repeated",
    ),
]


def fit(
    log: Log,
    target: Annotated[
        list[str], Option(metavar="[NAME=]FILE", help="a table state,action,probability; may be repeated")
    ],
    guardrail: Annotated[
        list[str],
        Option(
            metavar="NAME:OPTIONS",
            help="such as complaint:alpha=0.05,cost or revenue:at_least=3,low=0,high=9; may be repeated",
        ),
    ],
    out: Annotated[Path, Option(help="the file of the problem")] = Path("problem.json"),
    horizon: Annotated[
        int | None, Option(min=1, help="steps of an episode; those of the longest by default")
    ] = None,
    discount: Annotated[float, Option(help="in (0, 1]")] = 1.0,
    delta: Annotated[float, Option(help="the probability with which the promise may fail")] = 0.05,
    model: Annotated[str, Option(help="unknown: learned on; mdp: frequencies are the truth")] = "unknown",
    new_action: Annotated[
        list[str] | None, Option(help="an action that the log does not have; may be repeated")
    ] = None,
    new_state: Annotated[
        list[str] | None, Option(help="a state that the log does not have; may be repeated")
    ] = None,
    cut: Annotated[
        str, Option(help="what is done with episodes that were cut off: refuse, or drop")
    ] = "refuse",
    column: Columns = None,
    json: Json = False,
) -> None:
    """Make a problem of a log of the baseline, and say what the log knows of the target already.

    For example: `saver fit log.parquet --target target.csv --guardrail complaint:alpha=0.05,cost`
    """
    columns, guarded, policies = columns_of(column), guardrails_of(guardrail), policies_of(target)
    from saver.problem.codec import save

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
    problem: Annotated[Path, Argument(metavar="PROBLEM", help="a file that `saver fit` wrote")],
    log: Log,
    level: Annotated[float, Option(help="of the intervals")] = 0.95,
    unguarded: Annotated[bool, Option("--unguarded", help="the log has no guardrails")] = False,
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
    lines = []
    for name, one in found.items():
        lines += [*_said(f"{name}:", one.value), f"  against the baseline: {one.comparison}"]
        for rail, value in one.rails.items():
            least = "at most" if stated.rail(rail).sign < 0 else "at least"
            lines.append(f"  {rail}: {_shown(value)}; {least} {one.required[rail]:.4g} is required")
    show.result(json, {name: _evaluated(one) for name, one in found.items()}, *lines)


def _check_out(out: Path, inputs: list[Any]) -> None:
    """Refuse to write over what is read, or over anything that is no problem."""
    if not out.exists():
        return
    if any(Path(path).exists() and out.samefile(path) for path in inputs):
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
    return cast("Scenario | Problem", load(Path(name), Scenario | Problem))


def load(path: Path, kinds: Any) -> Any:
    """What a file holds, if it is of these kinds."""
    from saver.problem import codec

    found = codec.load(path)
    if not isinstance(found, kinds):
        raise InvalidData(f"{path} holds a {type(found).__name__}; it must hold a problem")
    return found


def columns_of(given: list[str] | None) -> dict[str, str]:
    """WHAT=NAME."""
    return named("--column", given, "; it must be WHAT=NAME, each of them once, such as --column state=page")


def read(log: Path, columns: dict[str, str], guardrails: list[str]) -> Episodes:
    """The log, its columns called as said."""
    from saver import data

    known = (*ROLES, *guardrails)
    for what in columns:
        if what not in known:
            raise InvalidProblem(
                f"--column {what}=... is neither a part of a step nor guarded; known: {', '.join(known)}"
            )
    called = {name: columns.get(name, name) for name in guardrails}
    roles: Any = {role: name for role, name in columns.items() if role in ROLES}
    return data.read_log(log, guardrails=called, **roles)


def _say_fitted(fitted: Fitted, stated: Problem, known: dict[str, OffPolicy], out: Path, json: bool) -> None:
    doubts, told = fitted.against(stated), fitted.advice(stated)
    data = {
        "episodes": len(fitted.history),
        "steps": fitted.history.rows,
        "states": list(fitted.model.state_names),
        "actions": list(fitted.model.action_names),
        "horizon": fitted.model.horizon,
        "baseline": {name: _plain(one) for name, one in {"reward": fitted.reward, **fitted.values}.items()},
        "scales": {name: vars(scale) for name, scale in fitted.scales.items()},
        "targets": {name: _off_policy(one) for name, one in known.items()},
        "contradicted": list(doubts),
        "notes": list(fitted.notes),
        "advice": list(told),
        "problem": str(out),
    }
    lines = [line for name, one in known.items() for line in _said(f"{name}, from the log alone:", one)]
    lines += [f"contradicted: {doubt}" for doubt in doubts]
    lines += told
    last = f"problem: {out}; now `saver diagnose {out}`"
    show.result(json, data, fitted.report().removesuffix("\n"), *lines, last)


def _said(title: str, one: OffPolicy) -> list[str]:
    """What a log knows of a policy, in lines."""
    return [
        title,
        f"  certainty:  {_shown(one.certainty)}, {one.certainty.covered:.1%} covered",
        f"  importance: {_shown(one.importance)}, worth {one.effective:,.0f} episodes",
        *(f"  note: {note}" for note in one.notes),
    ]


def _shown(found: Estimate) -> str:
    low, high = found.interval
    return f"{found.value:.4g} in [{low:.4g}, {high:.4g}]"


def _plain(found: Estimate) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("value", "stderr", "interval", "covered")}


def _off_policy(one: OffPolicy) -> dict[str, Any]:
    return {**vars(one), "certainty": _plain(one.certainty), "importance": _plain(one.importance)}


def _evaluated(one: Evaluation) -> dict[str, Any]:
    compared, guarded = one.comparison, one.rails.items()
    return {
        **_off_policy(one.value),
        "baseline": _plain(one.baseline),
        "difference": {**_plain(compared.difference), "verdict": compared.verdict},
        "guardrails": {rail: _plain(found) | {"required": one.required[rail]} for rail, found in guarded},
    }
