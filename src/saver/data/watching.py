"""What is guarded in an environment: read off each step by functions, or by names of entries of `info`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from saver.errors import InvalidData, InvalidProblem, no_such

REWARD = "reward"  # the name by which the reward itself is guarded
CONSTRAINTS = "constraints"  # the entry of `info` that is read where nothing else is said


class Step(NamedTuple):
    """One step as the environment gives it."""

    state: Any
    action: Any
    reward: float
    next_state: Any
    terminated: bool
    info: Mapping[str, Any]


Watch = Callable[[Any, Any, float, Any, bool, Any], float]
Guardrails = str | Watch | Mapping[str, str | Watch] | None


def check_guardrails(given: Any) -> None:
    """Refuse what is neither a function, nor a name, nor {name: either}."""
    items = given if isinstance(given, Mapping) else {"": given}
    for name, one in items.items():
        if not (isinstance(one, str) or callable(one) or (one is None and given is None)):
            place = f"guardrails[{name!r}]" if isinstance(given, Mapping) else "guardrails"
            raise InvalidProblem(
                f"{place} is {one!r}; it must be a function of (state, action, reward, next_state, "
                f"terminated, info), the name of an entry of info, or {REWARD!r}"
            )


def names_in(guardrails: Guardrails) -> tuple[str, ...]:
    """The entries of `info` that are read."""
    if guardrails is None:
        return (CONSTRAINTS,)
    read = guardrails.values() if isinstance(guardrails, Mapping) else [guardrails]
    return tuple(one for one in read if isinstance(one, str))


def observed(guardrails: Guardrails, step: Step) -> Any:
    """What a step shows of the guardrails: a number, {name: number}, or None where nothing is guarded."""
    if isinstance(guardrails, Mapping):
        return {name: _one(f"guardrails[{name!r}]", watch, step) for name, watch in guardrails.items()}
    if guardrails is not None:
        return _one("guardrails", guardrails, step)
    found = step.info.get(CONSTRAINTS)
    return dict(found) if isinstance(found, Mapping) else found


def unguarded() -> InvalidData:
    """The error of steps that say nothing of what is guarded."""
    return InvalidData(
        f"the environment says nothing of what is guarded: its info has no {CONSTRAINTS!r}; give "
        f"guardrails=, a function of (state, action, reward, next_state, terminated, info), or {REWARD!r}"
    )


def columns(seen: list[Any]) -> Any:
    """Of the steps of an episode: one sequence, or {name: sequence}, or None."""
    if all(item is None for item in seen):
        return None
    if isinstance(seen[0], dict):
        return {name: [item[name] for item in seen] for name in seen[0]}
    return seen


def _one(place: str, watch: str | Watch, step: Step) -> float:
    if callable(watch):
        return _number(place, watch(*step))
    if watch in step.info:
        return _number(place, step.info[watch])
    if watch == REWARD:
        return step.reward
    known = ", ".join(step.info) or "nothing"
    raise InvalidData(f"{place} is {watch!r}, and info has no such entry; it has {known}")


def _number(place: str, found: Any) -> float:
    try:
        return float(found)
    except (TypeError, ValueError):
        raise InvalidData(f"{place} gave {found!r}; it must give a number") from None


def check_names(guardrails: Guardrails, names: list[str]) -> None:
    """Refuse, before anything is run, other guardrails than a problem has."""
    said = ", ".join(names)
    if isinstance(guardrails, Mapping):
        for name in guardrails:
            if name not in names:
                raise no_such("guardrail", name, names)
        if lost := [name for name in names if name not in guardrails]:
            raise InvalidProblem(
                f"guardrails has no {lost[0]!r}; the problem guards {said}: give one for each"
            )
    elif guardrails is not None and len(names) > 1:
        raise InvalidProblem(f"guardrails is one, and the problem guards {said}; give {{name: function}}")
