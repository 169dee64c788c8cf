"""Lays a scenario and a collector out as plain arrays and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Collector, Setup
from saver.collect.belief import extra, floored
from saver.collect.planned import unplanned
from saver.design.closed import going_on, own_step
from saver.engine.kernel.drawing import lay_law
from saver.engine.kernel.forms import (
    BY_NODE,
    CERTIFIED,
    DAG,
    FIRST,
    FIXED,
    LATEST,
    NO_GATE,
    NO_LEDGER,
    ONE,
    OUTSIDE,
    PAPER,
    PLUGIN,
    PROSPECTIVE,
    R_HIGH,
    R_LOW,
    R_SCALE,
    R_WHERE,
    RANDOM,
    RETROSPECTIVE,
    SAME,
    TREE,
    Rules,
    Scene,
    Sheets,
    Weighing,
)
from saver.engine.kernel.rails import is_guarded
from saver.estimate import ESTIMATORS
from saver.estimate.interval import LEVEL
from saver.estimate.sequence import Steering, bands, levels
from saver.play import Stage
from saver.problem.bellman import by_step
from saver.problem.laws import Bernoulli, Empirical, Gaussian, Law
from saver.problem.mdp import Mdp
from saver.problem.promise import Bounded
from saver.problem.world import SHARED, Scenario
from saver.safety import LEDGERS, Ledger
from saver.safety.boundaries import mixture_table
from saver.safety.certified import Certified
from saver.safety.gates import ROUNDING
from saver.safety.latest import Latest, Plugin
from saver.safety.noise import Rule
from saver.safety.paper import Paper
from saver.safety.widths import Box, first_width
from saver.simulator import Truth

KNOWN: dict[type[Ledger], int] = {Certified: CERTIFIED, Paper: PAPER, Latest: LATEST, Plugin: PLUGIN}
LONGEST_TABLE = 10**6
FAR = 40.0  # deviations: no normal number that is drawn from 64 bits is further from 0
GATES = {"none": NO_GATE, "retrospective": RETROSPECTIVE, "prospective": PROSPECTIVE}


def only_reference(scenario: Scenario, collector: Collector, history: int = 0) -> str | None:  # noqa: PLR0911
    """Why the compiled loop cannot run this, or None if it can."""
    world, problem = scenario.world, scenario.problem
    if collector.ledger != "none" and LEDGERS[collector.ledger] not in KNOWN:
        return f"the ledger {collector.ledger!r} is one of the user's"
    if collector.gate not in GATES:
        return f"the gate {collector.gate!r} is one of the user's"
    if callable(world.outcome):
        return "the world's outcome is a function"
    if (is_guarded(problem, history) or not problem.mdp.known) and collector.ledger not in (
        "certified",
        "none",
    ):
        said = "several guardrails, a cost, a baseline value that is not known, or a history"
        said = said if problem.mdp.known else "transitions that are unknown"
        return f"{said}, with the ledger {collector.ledger!r}"
    for name, law in {"reward": world.reward, **world.laws}.items():
        if type(law) not in (Gaussian, Bernoulli, Empirical):
            return f"the {name} is a {type(law).__name__}, not a Gaussian, Bernoulli or Empirical"
    if not problem.mdp.known:
        return _where_blind(world.mdp, problem.mdp)
    if world.mdp is not problem.mdp and not _same_model(world.mdp, problem.mdp):
        return "world and problem have different models"
    return None


def _where_blind(true: Mdp, asked: Any) -> str | None:
    """Why a world cannot be played by the nodes of a model that knows nothing of it."""
    if true.discount != asked.discount:
        return "world and problem have different discounts"
    if asked.start is not None and np.any((true.start > 0) & (asked.start == 0)):
        return "world and problem have different starts"
    return None


def lay_scene(scenario: Scenario, setup: Setup) -> tuple[Scene, tuple[int, int]]:
    """Model and world as arrays, with the kinds of the two laws."""
    world, problem, stage = scenario.world, scenario.problem, setup.stage
    mdp, nodes, tree = problem.mdp, stage.nodes, setup.designer.is_tree
    slot = np.full((len(mdp.layers), mdp.states), -1, dtype=np.int64)
    slot[nodes.step, nodes.state] = np.arange(len(nodes.state))
    ends = np.zeros(mdp.states, dtype=bool)
    ends[list(mdp.terminal)] = True
    start = np.flatnonzero(mdp.start)
    gammas = mdp.discount ** np.arange(len(mdp.layers))
    r_kind, r_where, r_scale, rewards = lay_law(world.reward)
    c_kind, c_where, c_scale, constraints = lay_law(scenario.laws[0])
    anything = np.full(world.reward.mean.shape, np.inf)
    r_low, r_high = (-anything, anything) if setup.rewards is None else setup.rewards[-2:]
    asked = problem.question
    columns = (r_where, r_scale, c_where, c_scale, r_low, r_high, asked.size,
               scenario.laws[0].mean, world.reward.mean, world.reward.variance)  # fmt: skip
    declared = setup.rewards
    promised = () if declared is None else (declared.scale**2, declared.floor, declared.ceiling)
    scene = Scene(
        nodes,
        slot,
        mdp.transitions.indptr.astype(np.int64),
        mdp.transitions.indices.astype(np.int64),
        mdp.transitions.data.copy(),
        ends,
        start,
        mdp.start[start],
        np.array(np.column_stack([column.ravel() for column in columns]), order="C"),
        np.array([table.ravel() for table in promised]).T.reshape(-1, 3).copy(),
        rewards,
        constraints,
        np.asarray(mdp.discount ** np.arange(mdp.horizon), dtype=np.float64),
        _sums(gammas),
        _sums(gammas**2),
        np.concatenate(mdp.layers[::-1]) if tree else going_on(mdp),
        np.array([c.ravel() for c in asked.weights.values()]),
        np.array(asked.factor),
        own_step(mdp, asked.reference) if tree else np.array(by_step(mdp, asked.reference)[0]),
        np.array(asked.reference.reshape(-1, mdp.states, mdp.actions)),
        mdp.uniform.copy(),
        np.arange(mdp.states),
        np.flatnonzero(stage.play(setup.baseline).flow.sum(axis=1)),
        stage.deterministic,
    )
    return scene, (r_kind, c_kind)


def _sums(terms: Any) -> Floats:
    """Of the first 0, 1, 2, ... terms."""
    return np.concatenate([[0.0], np.cumsum(terms)])


def is_watched(law: Law, pairs: Floats) -> bool:
    """Whether a reward can be drawn that its promise rules out: most promises are true."""
    least, most = pairs[:, R_WHERE], pairs[:, R_WHERE]
    if type(law) is Gaussian:
        least, most = least - FAR * pairs[:, R_SCALE], most + FAR * pairs[:, R_SCALE]
    elif type(law) is Bernoulli:
        least, most = np.zeros(len(pairs)), np.ones(len(pairs))
    elif type(law) is Empirical:
        cells = [cell for row in law.samples for cell in row]
        least, most = np.array([cell.min() for cell in cells]), np.array([cell.max() for cell in cells])
    return bool(np.any(least < pairs[:, R_LOW]) or np.any(most > pairs[:, R_HIGH]))


def lay_sheets(setup: Setup, truth: Truth, policies: Sequence[Floats]) -> Sheets:
    """One policy for each kind of episode, as the ledger and the loop need it."""
    stage, mdp, baseline = setup.stage, setup.problem.mdp, setup.stage.play(setup.baseline)
    rows = [rows_of(stage, policy) for policy in policies]
    plays = [stage.play(policy) for policy in policies]
    table, weights = np.concatenate(rows), np.array([play.weights for play in plays])
    flags = np.zeros((len(rows), 4), dtype=np.int64)
    flags[:, FIRST] = np.cumsum([0, *(len(part) for part in rows[:-1])])
    flags[:, BY_NODE] = [policy.ndim == 3 for policy in policies]
    flags[:, RANDOM] = [not stage.grid.policy(policy).sure for policy in policies]
    flags[:, SAME] = [play.goes_as(baseline) for play in plays]
    numbers = np.column_stack(
        [
            [play.noise for play in plays],
            [play.longest for play in plays],
            setup.problem.rails[0].promise.floor * weights.sum(axis=(1, 2)),
            [truth.worth(policy) for policy in policies],
            weights.sum(axis=(1, 2)),
        ]
    )
    behaviour = [by_step(mdp, policy)[stage.nodes.step, stage.nodes.state] for policy in policies]
    return Sheets(
        table,
        np.argmax(table, axis=1),
        flags,
        np.array(numbers, order="C"),
        np.array(behaviour),
        weights,
        weights.reshape(len(plays), -1),
    )


def rows_of(stage: Stage, policy: Floats) -> Floats:
    """A policy row by row: by node where it depends on the step, else by state."""
    nodes = stage.nodes
    return np.array(policy[nodes.step, nodes.state] if policy.ndim == 3 else policy, order="C")


def lay_rules(
    setup: Setup,
    scenario: Scenario,
    truth: Truth,
    scene: Scene,
    laws: tuple[int, int],
    policies: tuple[Floats, Floats],
    fair: bool = False,
    guarded: bool = False,
) -> Rules:
    """The collector's choices; `policies` are the exploration and the design.

    Where the loop is `guarded` the ledgers are in its `Rails`, and the rules know of none.
    """
    problem, collector, stage = setup.problem, setup.collector, setup.stage
    rail, known = problem.rails[0], setup.knowledge
    promise = rail.promise
    explore, design = policies if setup.explorations else (None, policies[1])
    certified: Any = setup.used if collector.certified else None
    paths = certified is not None and not stage.deterministic
    depth = np.zeros(0)
    tracked = collector.track != "sample"
    unit = promise.scale**2 * float(scene.noise[-1])
    table, empty = np.zeros(1), np.zeros((0, 0))
    if certified is not None and not paths and unit > 0 and not certified.rule.bounded:
        longest = min(setup.episodes, LONGEST_TABLE)
        table = mixture_table(unit, longest, certified.rule.rho, certified.rule.level)
        box = certified.box.numbers
        depth = mixture_table(box.proxy, longest, box.rule.rho, box.rule.level)
        depth = np.concatenate([[np.inf], depth[1:] / np.arange(1.0, longest + 1.0)])
    return Rules(
        episodes=setup.episodes,
        explorations=setup.explorations,
        explore_by_clock=collector.explore_by_clock,
        explore_tracked=setup.explores_in_turn,
        explore_by_node=explore is not None and explore.ndim == 3,
        tracked=tracked,
        track_all=collector.track == "all",
        ahead=_ahead(setup, explore, design),
        design_by_node=design.ndim == 3,
        first_row=0 if explore is None else len(rows_of(stage, explore)),
        plays_baseline=collector.design == "baseline" and not tracked,
        learn_from_baseline=collector.learn_from_baseline,
        plan=_plan_kind(setup, tracked),
        replan=float(collector.replan),
        ledger=NO_LEDGER if setup.used is None or guarded else KNOWN[type(setup.used)],
        gate=GATES[collector.gate],
        estimate=ESTIMATORS.index(collector.estimate),
        bounded=isinstance(scenario.problem.reward, Bounded),
        paths=paths,
        crosses=paths and certified.crosses,
        drawn=certified is not None and not paths,
        earner=collector.fallback == "earner",
        keeps_visits=collector.ledger in ("none", "latest", "plugin"),
        laws=laws,
        shared=scenario.world.outcome == SHARED,
        tolerance=ROUNDING * rail.unit,
        required=rail.required,
        surplus=rail.credit_at(rail.value),
        declared=rail.value,
        baseline=truth.baseline,
        values=np.array(list(truth.values.values())),
        floor=float(promise.floor),
        bounds=promise.bounds,
        watched=is_watched(scenario.world.reward, scene.pairs),
        proxy=promise.scale**2,
        scale=float(promise.scale),
        width=first_width(problem, setup.episodes),
        extra=extra(problem, collector, setup.episodes),
        caution=float(collector.caution),
        rule=certified.rule if certified else Rule.of(promise, 0.5, 1.0, 1.0),
        boundary=(certified.start, certified.scale, certified.levels.paths) if certified else (1.0,) * 3,
        last=certified.first if certified else (1.0, 1.0, 0.0),
        paced=setup.designer.paced,
        box=(certified.box if certified else Box(problem, 1, 0.5)).numbers,
        unit=unit,
        table=table,
        depth=depth,
        whole_plans=len(problem.mdp.layers) == problem.mdp.horizon
        and bool(problem.mdp.flow[problem.mdp.pairs(problem.mdp.layers[-1])].nnz),
        one_step=_is_one_step(setup, scene, table),
        needed=_needed(setup, design).ravel(),
        known_variance=empty if known.variance is None else floored(known.variance),
        known_constraint=empty
        if known.constraint_mean is None or guarded
        else np.array(known.constraint_mean),
        weighing=_weighing(setup, fair),
    )


def _weighing(setup: Setup, fair: bool) -> Weighing:
    """What the interval at all times needs, if there is one."""
    keepers, nothing = list(setup.anytime.values()), np.zeros(0)
    if not keepers:
        none = Steering(nothing, nothing, nothing, nothing, math.inf)
        band, empty = bands(none, levels(LEVEL, setup.losses), 1, 1, False), np.zeros((0, 0))
        return Weighing(False, False, empty, nothing, nothing, nothing, nothing, band.noise, nothing, empty,
                        empty, False, band.box, band.log_pairs, nothing, nothing)  # fmt: skip
    first, found = keepers[0], [keeper.bands(LEVEL) for keeper in keepers]
    return Weighing(
        wanted=True,
        fair=fair,
        c=np.array([keeper.numbers.c for keeper in keepers]),
        usual=first.numbers.usual,
        scale=first.numbers.scale,
        span=first.numbers.span,
        cap=np.array([keeper.numbers.cap for keeper in keepers]),
        level=found[0].noise,
        rho=np.array([band.rho for band in found]),
        rates=np.array([band.rates for band in found]),
        costs=np.array([band.costs for band in found]),
        bounded=first.bounded,
        box=found[0].box,
        log_pairs=found[0].log_pairs,
        floor=first.floor,
        ceiling=first.ceiling,
    )


def _needed(setup: Setup, design: Floats) -> Ints:
    """What comes first before anything is planned, or for good where the design never changes."""
    if not setup.designer.fixed:
        return setup.designer.needed
    return unplanned(setup, setup.stage.grid.policy(design), 1)


def _ahead(setup: Setup, explore: Floats | None, design: Floats) -> Floats:
    """What the tracker adds to visits, for the rows of the exploration and of the design."""
    rows = [] if explore is None else [setup.offsets[explore.ndim == 3]]
    return np.concatenate([*rows, setup.offsets[design.ndim == 3]])


def _is_one_step(setup: Setup, scene: Scene, table: Floats) -> bool:
    """Whether the loop for bandits applies."""
    collector, baseline = setup.collector, setup.problem.baseline
    return bool(
        collector.track == "designed"
        and len(scene.factor) == len(scene.start) == 1
        and (collector.gate == "none" or (collector.promises and len(table) > setup.episodes))
        and collector.estimate == "certainty"
        and not np.any((baseline > 0) & (baseline < 1))
        and _plan_kind(setup, True) != OUTSIDE
    )


def _plan_kind(setup: Setup, tracked: bool) -> int:
    collector, designer = setup.collector, setup.designer
    if designer.fixed:
        return FIXED
    if collector.design in ("closed-form", "as-printed") and tracked:
        return TREE if designer.is_tree else DAG
    if designer.planner is not None and designer.planner.only_state is not None and tracked:
        return ONE
    return OUTSIDE


def _same_model(one: Mdp, two: Mdp) -> bool:
    a, b = one.transitions, two.transitions
    return (
        one.discount == two.discount
        and one.terminal == two.terminal
        and all(
            np.array_equal(*pair)
            for pair in (
                (one.start, two.start),
                (one.available, two.available),
                (a.indptr, b.indptr),
                (a.indices, b.indices),
                (a.data, b.data),
            )
        )
    )
