"""Guardrails, laws and what runs without a model need, as plain arrays before the first episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.collect import Setup
from saver.collect.frequencies import FrequencyDesigner
from saver.collect.knowledge import extra
from saver.kernels.bounds.boundaries import mixture_table
from saver.kernels.bounds.noise import RATES, Rule
from saver.kernels.forms import COIN, DATA, NORMAL, SAFE
from saver.kernels.keeping import Followed, Free, nothing_believed
from saver.kernels.rails import BOX, COLUMNS, FIXED, KEPT, KNOWN, NOISE, SCALE, TRUE, VALUE, WHERE, Rails
from saver.kernels.unknown import PlanInputs
from saver.play.foresight import Foresight
from saver.problem.bellman import powers
from saver.problem.checks import read_only
from saver.problem.guardrail import Rail
from saver.problem.world import Bernoulli, Empirical, Gaussian, Law, Scenario
from saver.safety.ledger import ROUNDING
from saver.safety.modelfree import ModelFree
from saver.simulator import Truth

LONGEST_TABLE = 10**6
FAR = 40.0  # deviations: no normal number that is drawn from 64 bits is further from 0


def is_tabled(used: Any, episodes: int) -> bool:
    """Whether what noise may hide after so many episodes is a row of a table."""
    alike = used.deterministic and used.unit_proxy > 0 and not used.bounded
    return alike and episodes <= LONGEST_TABLE and used.problem.mdp.known


def lay_rails(setup: Setup, scenario: Scenario, truth: Truth, history: int) -> Rails:
    """All guardrails, before the first episode."""
    problem, certified = setup.problem, setup.collector.certified
    rails, known = problem.rails, setup.knowledge.constraint_mean
    shape, m = (problem.mdp.states, problem.mdp.actions), len(problem.rails)
    fixed: Any = np.zeros(m, dtype=FIXED).view(np.recarray)
    names, laws = [rail.name for rail in rails], list(scenario.world.laws)
    fixed.draws = [0] if m == 1 else [names.index(name) for name in laws]
    fixed.model_free = not problem.mdp.known
    levels, rates = np.zeros((3, m, 2)), np.zeros((3, m, 3, RATES))
    shaped, cells = np.zeros((m, COLUMNS, *shape)), np.zeros(m * len(KEPT.names or ()))
    data = _lay_laws(scenario, fixed, shaped)
    shaped[:, TRUE] = scenario.means
    if known is not None:
        shaped[:, KNOWN] = problem.means(known)
    ledgers: list[Any] = list(setup.behind_gate.values()) if certified else []
    for i, rail in enumerate(rails):
        numbers = _stated(rail) | _true(rail, truth, i) | (_argued(ledgers[i]) if certified else {})
        for name, number in numbers.items():
            fixed[i][name] = number
        for at, rule in _rules(ledgers[i]) if certified else ():
            if isinstance(rule, Rule):
                levels[at, i] = rule.rho, rule.level
            if len(rule.rates):
                rates[at, i] = rule[-3:]
    bets, (table, depth) = _bets(ledgers, m), _tables(ledgers, setup.episodes)
    return Rails(
        certified=certified, drawn=certified and setup.stage.deterministic, paths=bool(fixed.paths.any()),
        knows=known is not None, history=history, fixed=fixed, state=cells.view(KEPT).view(np.recarray),
        cells=cells, tables=shaped.reshape(m, COLUMNS, -1), shaped=shaped,
        visits=np.zeros((3, shape[0] * shape[1])), bets=bets, logs=np.zeros((3, m, bets.shape[-1])),
        levels=levels, rates=rates, table=table, depth=depth, data=data,
    )  # fmt: skip


def _tables(ledgers: Sequence[Any], episodes: int) -> tuple[Floats, Floats]:
    """What noise may hide after j full episodes, and how far below a mean of j samples its lower end is."""
    if len(ledgers) != 1 or not is_tabled(ledgers[0], episodes):
        return np.zeros(0), np.zeros(0)
    (used,) = ledgers
    box = used.box.numbers
    depth = mixture_table(box.proxy, episodes, box.rule.rho, box.rule.level)
    depth = np.concatenate([[np.inf], depth[1:] / np.arange(1.0, episodes + 1.0)])
    return mixture_table(used.unit_proxy, episodes, used.rule.rho, used.rule.level), depth


def _rules(used: Any) -> list[tuple[int, Any]]:
    """Of designed trials, of the box where there is one, and of V0 where it is learned."""
    found = [(NOISE, used.rule)]
    if not isinstance(used, ModelFree):
        found.append((BOX, used.box.numbers.rule))
    return [*found, (VALUE, used.safe_rule)] if used.rail.learned else found


def _bets(ledgers: Sequence[Any], m: int) -> Floats:
    """The rules of those that bet."""
    betting = [(i, used) for i, used in enumerate(ledgers) if used.bets]
    found = np.zeros((2, m, 2, max((len(used.capital.rates) for _, used in betting), default=0)))
    for i, used in betting:
        found[0, i] = used.capital
        if used.rail.learned:
            found[1, i] = used.safe_capital
    return found


def _stated(rail: Rail) -> dict[str, float]:
    """What the problem says of a guardrail."""
    promise = rail.promise
    (r0, r1), (c0, c1), (least, most) = rail.required_by, rail.credit_by, promise.bounds
    return {
        "learned": rail.learned, "sign": rail.sign, "low": rail.low, "high": rail.high,
        "r0": r0, "r1": r1, "c0": c0, "c1": c1,
        "unit": rail.unit, "tolerance": ROUNDING * rail.unit,
        "floor": promise.floor, "ceiling": promise.ceiling,
        "least": least, "most": most,
        "noise": promise.scale, "proxy": promise.scale**2,
    }  # fmt: skip


def _true(rail: Rail, truth: Truth, i: int) -> dict[str, float]:
    """What is so."""
    value = truth.baselines[i]
    return {
        "true_value": value,
        "true_required": truth.required[i],
        "true_unit": abs(rail.required_at(value)) or rail.unit or 1.0,
    }


def _argued(used: Any) -> dict[str, float]:
    """The numbers of a certified ledger."""
    proxy, longest, low = used.first
    found = {
        "bounded": used.bounded,
        "paths": not used.deterministic,
        "crosses": used.crosses,
        "length": used.length, "full": used.unit_proxy,
        "first_proxy": proxy, "first_longest": longest, "first_low": low,
    }  # fmt: skip
    if used.bets:
        found |= {"bets": 1, "range": used.range, "bottom": used.bottom, "alike": used.alike}
    if isinstance(used, ModelFree):
        found["span"] = used.span
    else:
        found |= {"cross_start": used.start, "cross_scale": used.scale, "cross_level": used.levels.paths}
    if used.rail.learned:
        rho, safe_rho = used.rho
        found |= {"joint_level": used.joint_level, "seen_level": used.value_level}
        found |= {"rho": rho, "safe_rho": safe_rho}
    return found


def _lay_laws(scenario: Scenario, fixed: Any, shaped: Floats) -> Floats:
    """Kinds, locations and scales of the laws; the data of all."""
    data: list[Floats] = []
    for i, law in enumerate(scenario.laws):
        kind, where, scale, own, *_ = lay_law(law)
        fixed[i].law, shaped[i, SCALE] = kind, scale
        shaped[i, WHERE] = where + (sum(map(len, data)) if len(own) else 0.0)
        data.append(own)
    return np.concatenate(data)


class Laid(NamedTuple):
    """A law as compiled code draws from it: `streams.draw`."""

    kind: int
    where: Floats  # [S, A]; of data, the place of the first of each pair
    scale: Floats  # [S, A]; of data, how many there are
    data: Floats
    least: Floats  # what can be drawn, [S, A]
    most: Floats


def _normal(law: Gaussian) -> Laid:
    scale = np.sqrt(law.variance)
    return Laid(NORMAL, law.mean, scale, np.zeros(0), law.mean - FAR * scale, law.mean + FAR * scale)


def _coin(law: Bernoulli) -> Laid:
    shape = law.mean.shape
    return Laid(COIN, law.mean, np.zeros(shape), np.zeros(0), np.zeros(shape), np.ones(shape))


def _drawn(law: Empirical) -> Laid:
    cells = [cell for row in law.samples for cell in row]
    sizes = np.array([len(cell) for cell in cells], dtype=np.float64)
    first = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    ends = np.array([[cell.min() for cell in cells], [cell.max() for cell in cells]])
    where, scale, least, most = (part.reshape(law.mean.shape) for part in (first, sizes, *ends))
    return Laid(DATA, where, scale, np.concatenate(cells), least, most)


# The laws that compiled code knows; others are for the reference.
LAWS: dict[type, Callable[[Any], Laid]] = {Gaussian: _normal, Bernoulli: _coin, Empirical: _drawn}


def lay_law(law: Law) -> Laid:
    """A law, by its kind."""
    return LAWS[type(law)](law)


def lay_free(setup: Setup, truth: Truth, policies: Sequence[Floats], before: Free | None = None) -> Free:
    """What nobody but the simulator knows of these policies, and room for what is seen; or `before`'s."""
    steps, grid = setup.problem.mdp.horizon, truth.stage.grid
    plays = [truth.stage.play(policy) for policy in policies]
    drawn = [
        truth.stage.deterministic and not (play.goes_as(truth.safe) or grid.policy(policy).sure)
        for policy, play in zip(policies, plays, strict=True)
    ]
    drawn[SAFE] = False
    worth = np.array([[play.value(mean) for mean in truth.means] for play in plays])
    if before is not None:
        return before.changed(worth=worth, drawn=np.array(drawn, dtype=np.int64))
    model, means = truth.scenario.world.mdp, np.array(truth.means)
    to = model.flow.indptr.astype(np.int64), model.flow.indices.astype(np.int64), model.flow.data
    true = Foresight(*to, model.start, means.reshape(len(means), -1))
    return Free(
        starts=np.zeros(model.states), worth=worth, drawn=np.array(drawn, dtype=np.int64),
        truth=Followed.of(true, steps), belief=Followed.of(nothing_believed(), steps),
    )  # fmt: skip


def lay_plan_inputs(setup: Setup) -> PlanInputs | None:
    """What a compiled plan needs; None where the `FrequencyDesigner` makes them all."""
    problem, collector, designer = setup.problem, setup.collector, setup.designer
    usual = len(problem.targets) == len(problem.rails) == 1 and problem.against is None
    if collector.design != "exact" or collector.knows or not usual or collector.track == "sample":
        return None
    assert isinstance(designer, FrequencyDesigner)
    mdp, promise = problem.mdp, problem.rails[0].promise
    return PlanInputs(
        *designer.answers, unseen=np.array(designer.unseen), available=mdp.available.copy(),
        even=read_only(mdp.uniform), start=np.zeros(0) if mdp.start is None else mdp.start.copy(),
        discount=mdp.discount, factors=powers(mdp.discount, mdp.horizon),
        powers=np.power(mdp.discount, np.arange(mdp.horizon, dtype=float)), episodes=setup.episodes,
        extra=extra(problem, collector, setup.episodes), caution=float(collector.caution),
        floor=promise.floor, ceiling=promise.ceiling, paced=designer.paced,
    )  # fmt: skip
