"""From a log to a problem in one call."""

from __future__ import annotations

import inspect
from typing import Any

from saver.data.fitting import fit
from saver.data.reading import read_log
from saver.errors import InvalidProblem
from saver.problem.guardrail import Guardrail
from saver.problem.statement import Problem

READ, FIT = (frozenset(list(inspect.signature(call).parameters)[1:]) for call in (read_log, fit))


def problem(source: Any, target: Any, guardrails: Any, *, horizon: int, **options: Any) -> Problem:
    """The problem that a log of the baseline states.

    `guardrails` are `saver.Guardrail`s, or {name: options}, each read from the column of its name unless
    `columns={name: column}` says otherwise. `options` are those of `read_log`, of `Episodes.fit` and of
    `saver.Problem`.
    """
    columns = options.pop("columns", {})
    if isinstance(guardrails, Guardrail):
        guardrails = (guardrails,)
    names = [getattr(item, "name", item) for item in guardrails]
    if not all(isinstance(name, str) for name in names):
        raise InvalidProblem(
            f"guardrails is {guardrails!r}; give saver.Guardrail(...)s, or {{name: options}}"
        )
    reading = {name: options.pop(name) for name in list(options) if name in READ}
    fitting = {name: options.pop(name) for name in list(options) if name in FIT}
    log = read_log(source, guardrails={name: columns.get(name, name) for name in names}, **reading)
    return log.fit(horizon, **fitting).problem(target, guardrails, **options)
