"""Lays a scenario and a collector out as plain arrays and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saver._types import Floats
from saver.collect import Collector, Setup
from saver.collect.knowledge import extra, floored
from saver.collect.state import unplanned
from saver.design.closed import going_on, own_step
from saver.engine.layrails import LAWS, is_tabled, lay_law
from saver.estimate import ESTIMATORS
from saver.estimate.interval import LEVEL
from saver.kernels import forms
from saver.kernels.bounds.sequence import Bands, Steering, bands, levels
from saver.kernels.forms import Plays, Rules, Scene, Weighing
from saver.play import Stage
from saver.problem.bellman import by_step
from saver.problem.mdp import Mdp
from saver.problem.promise import Bounded
from saver.problem.world import SHARED, Scenario
from saver.safety import LEDGERS, Ledger
from saver.safety.argument import first_width
from saver.safety.certified import Certified
from saver.safety.paper import Latest, Paper, Plugin
from saver.simulator import Truth

KNOWN: dict[type[Ledger], int] = {
    Certified: forms.CERTIFIED,
    Paper: forms.PAPER,
    Latest: forms.LATEST,
    Plugin: forms.PLUGIN,
}
GATES = {"none": forms.NO_GATE, "retrospective": forms.RETROSPECTIVE, "prospective": forms.PROSPECTIVE}


def only_reference(scenario: Scenario, collector: Collector) -> str | None:  # noqa: PLR0911
    """Why the compiled loop cannot run this, or None if it can."""
    world, problem = scenario.world, scenario.problem
    if collector.ledger != "none" and LEDGERS[collector.ledger] not in KNOWN:
        return f"the ledger {collector.ledger!r}, which it does not know"
    if collector.gate not in GATES:
        return f"the gate {collector.gate!r} is one of the user's"
    if callable(world.outcome):
        return "the world's outcome is a function"
    if problem.history is not None:
        return "a problem with a history"
    if not problem.mdp.known and collector.ledger not in ("certified", "none"):
        return f"transitions that are unknown, with the ledger {collector.ledger!r}"
    for name, law in {"reward": world.reward, **world.laws}.items():
        if type(law) not in LAWS:
            *others, last = (known.__name__ for known in LAWS)
            return f"the {name} is a {type(law).__name__}, not a {', '.join(others)} or {last}"
    true, asked = world.mdp, problem.mdp
    if true.ending.any():
        return "a world in which episodes may end where they may also go on"
    if asked.known:
        same = true is asked or _same_model(true, asked)
        return None if same else "world and problem have different models"
    if true.discount != asked.discount:
        return "world and problem have different discounts"
    if asked.start is not None and np.any((true.start > 0) & (asked.start == 0)):
        return "world and problem have different starts"
    return None


def lay_scene(scenario: Scenario, setup: Setup) -> Scene:
    """Model and world as arrays."""
    world, problem, stage = scenario.world, scenario.problem, setup.stage
    mdp, true, nodes, known = problem.mdp, world.mdp, stage.nodes, problem.mdp.known
    tree = setup.designer.is_tree
    ends = np.zeros(true.states, dtype=bool)
    ends[list(true.terminal)] = True
    start = np.flatnonzero(true.start)
    gammas = mdp.discount ** np.arange(len(nodes.layer) - 1)
    _, where, scale, rewards, *_ = lay_law(world.reward)
    anything = np.full(where.shape, np.inf)
    low, high = (-anything, anything) if setup.rewards is None else setup.rewards[-2:]
    asked, nothing = problem.question if known else None, np.zeros((0, 0))
    size = np.zeros(where.shape) if asked is None else asked.size
    columns = where, scale, low, high, size, world.reward.mean, world.reward.variance
    pairs: Any = np.rec.fromarrays([column.ravel() for column in columns], dtype=forms.PAIR)
    declared = setup.rewards
    promised = () if declared is None else (declared.scale**2, declared.floor, declared.ceiling)
    order, target, steps = np.zeros(0, dtype=np.int64), nothing, np.zeros((1, 1, 1))
    if asked is not None:
        order = np.concatenate(mdp.layers[::-1]) if tree else going_on(mdp)
        target = own_step(mdp, asked.reference) if tree else np.array(by_step(mdp, asked.reference)[0])
        steps = np.array(asked.reference.reshape(-1, mdp.states, mdp.actions))
    safe = np.arange(len(nodes.state))
    return Scene(
        nodes=nodes, slot=stage.grid.slot[: len(gammas)].copy(),
        indptr=true.transitions.indptr.astype(np.int64), to=true.transitions.indices.astype(np.int64),
        chance=true.transitions.data.copy(), ends=ends, start=start, start_chance=true.start[start],
        pairs=pairs, promised=np.array([table.ravel() for table in promised]).T.reshape(-1, 3).copy(),
        rewards=rewards, factor=np.asarray(mdp.discount ** np.arange(mdp.horizon), dtype=np.float64),
        length=_sums(gammas), noise=_sums(gammas**2), order=order,
        asked=nothing if asked is None else np.array([c.ravel() for c in asked.weights.values()]),
        rate=nothing if asked is None else np.array(asked.factor), target=target, target_by_step=steps,
        uniform=mdp.uniform.copy(), every=np.arange(mdp.states),
        safe_nodes=np.flatnonzero(stage.play(setup.baseline).flow.sum(axis=1)) if known else safe,
        one_way=stage.deterministic,
    )  # fmt: skip


def _sums(terms: Any) -> Floats:
    """Of the first 0, 1, 2, ... terms."""
    return np.concatenate([[0.0], np.cumsum(terms)])


def lay_plays(setup: Setup, policies: Sequence[Floats]) -> Plays:
    """One policy for each kind of episode, as the ledgers and the loop need it."""
    stage, mdp = setup.stage, setup.problem.mdp
    rows = [rows_of(stage, policy) for policy in policies]
    table, grid = np.concatenate(rows), stage.grid
    kinds: Any = np.zeros(len(rows), dtype=forms.KIND).view(np.recarray)
    kinds.first = np.cumsum([0, *(len(part) for part in rows[:-1])])
    kinds.by_node = [policy.ndim == 3 for policy in policies]
    kinds.random = [not grid.policy(policy).sure for policy in policies]
    behaviour, weights = np.zeros((2, len(rows), 0, mdp.actions))
    if mdp.known:
        plays = [stage.play(policy) for policy in policies]
        weights = np.array([play.weights for play in plays])
        kinds.same = [play.goes_as(plays[forms.SAFE]) for play in plays]
        kinds.noise, kinds.longest = [play.noise for play in plays], [play.longest for play in plays]
        kinds.length = weights.sum(axis=(1, 2))
        behaviour = np.array(
            [by_step(mdp, policy)[stage.nodes.step, stage.nodes.state] for policy in policies]
        )
    else:
        each = [grid.policy(policy).by_node() for policy in policies]
        kinds.same = [np.array_equal(one, each[forms.SAFE]) for one in each]
    return Plays(
        policy=table, sure=np.argmax(table, axis=1), kinds=kinds, behaviour=behaviour, weights=weights,
        visits=weights.reshape(len(rows), -1),
    )  # fmt: skip


def rows_of(stage: Stage, policy: Floats) -> Floats:
    """A policy row by row: by node where it depends on the step, else by state."""
    nodes = stage.nodes
    return np.array(policy[nodes.step, nodes.state] if policy.ndim == 3 else policy, order="C")


def lay_rules(setup: Setup, truth: Truth, scene: Scene, policies: tuple[Floats, Floats], fair: bool) -> Rules:
    """The collector's choices; `policies` are the exploration and the design."""
    world, problem, collector, stage = truth.scenario.world, setup.problem, setup.collector, setup.stage
    variance, reward, pairs = setup.knowledge.variance, lay_law(world.reward), scene.pairs
    known, tracked = problem.mdp.known, collector.track != "sample"
    explore, design = policies if setup.explorations else (None, policies[1])
    needed = setup.designer.needed  # before anything is planned, or for good where the design never changes
    if known and setup.designer.fixed:
        needed = unplanned(setup, stage.grid.policy(design), 1)
    # whether a reward can be drawn that its promise rules out: most promises are true
    watched = bool(np.any(reward.least.ravel() < pairs.low) or np.any(reward.most.ravel() > pairs.high))
    mdp, goes_on = problem.mdp, known and len(problem.mdp.layers) == problem.mdp.horizon
    whole = goes_on and bool(mdp.flow[mdp.pairs(mdp.layers[-1])].nnz)
    ahead = [setup.offsets[policy.ndim == 3] for policy in (explore, design) if policy is not None]
    return Rules(
        episodes=setup.episodes, explorations=setup.explorations,
        explore_by_clock=collector.explore_by_clock, explore_tracked=setup.explores_in_turn,
        explore_by_node=explore is not None and explore.ndim == 3, tracked=tracked,
        track_all=collector.track == "all",
        head_start=np.concatenate(ahead) if known else np.zeros((0, problem.mdp.actions)),
        design_by_node=design.ndim == 3,
        first_row=0 if explore is None or not known else len(rows_of(stage, explore)),
        plays_baseline=collector.design == "baseline" and not tracked,
        learn_from_baseline=collector.learn_from_baseline, plan=_plan_kind(setup, tracked),
        replan=float(collector.replan),
        ledger=forms.NO_LEDGER if collector.ledger == "none" else KNOWN[LEDGERS[collector.ledger]],
        gate=GATES[collector.gate],
        estimate=ESTIMATORS.index(collector.estimate) if known else forms.ESTIMATED,
        bounded=isinstance(problem.reward, Bounded),
        paths=collector.certified and known and not stage.deterministic,
        earner=collector.fallback == "earner" and known,
        keeps_visits=collector.ledger in ("none", "latest", "plugin") and known, law=reward.kind,
        shared=world.outcome == SHARED, values=np.array(list(truth.values.values())), watched=watched,
        width=first_width(problem, setup.episodes), extra=extra(problem, collector, setup.episodes),
        caution=float(collector.caution), paced=setup.designer.paced, whole_plans=whole,
        needed=needed.ravel(), known_variance=np.zeros((0, 0)) if variance is None else floored(variance),
        weighing=_weighing(setup, fair),
    )  # fmt: skip


def _weighing(setup: Setup, fair: bool) -> Weighing:
    """What the interval at all times needs, if there is one."""
    keepers, nothing = list(setup.anytime.values()), np.zeros(0)
    each = [keeper.numbers for keeper in keepers] or [Steering(nothing, nothing, nothing, nothing, math.inf)]
    found = [keeper.bands(LEVEL) for keeper in keepers]
    found = found or [bands(each[0], levels(LEVEL, setup.losses), 1, 1, False)]
    _, usual, scale, span, _ = each[0]
    noise, _, _, _, bounded, box, log_pairs = found[0]
    c, cap = np.array([one.c for one in each]), np.array([one.cap for one in each])
    rho, rates, costs = (np.array(column) for column in zip(*(band[1:4] for band in found), strict=True))
    return Weighing(
        wanted=bool(keepers),
        fair=fair and bool(keepers),
        numbers=Steering(c, usual, scale, span, cap),  # type: ignore[arg-type]
        bands=Bands(noise, rho, rates, costs, bounded, box, log_pairs),  # type: ignore[arg-type]
        floor=keepers[0].floor if keepers else nothing,
        ceiling=keepers[0].ceiling if keepers else nothing,
    )


def quick_loops(setup: Setup, scene: Scene, history: int) -> tuple[bool, bool]:
    """Whether the loop for models that go one way applies, and whether that for bandits does."""
    collector, problem, used = setup.collector, setup.problem, setup.used
    rail, baseline = problem.rails[0], problem.baseline
    alone = len(problem.rails) == 1 and rail.exact and rail.sign > 0.0 and not history
    one_way = bool(
        alone
        and scene.one_way
        and collector.track != "sample"
        and (collector.gate == "none" or (collector.promises and is_tabled(used, setup.episodes)))
        and collector.estimate == "certainty"
        and not np.any((baseline > 0) & (baseline < 1))
    )
    one_step = (
        len(scene.factor) == 1 and collector.track == "designed" and _plan_kind(setup, True) != forms.OUTSIDE
    )
    return one_way and not one_step, one_way and one_step


def _plan_kind(setup: Setup, tracked: bool) -> int:
    collector, designer = setup.collector, setup.designer
    if not setup.problem.mdp.known:
        return forms.OUTSIDE
    if designer.fixed:
        return forms.FIXED
    if collector.design in ("closed-form", "as-printed") and tracked:
        return forms.TREE if designer.is_tree else forms.DAG
    if designer.only_state is not None and tracked:
        return forms.ONE
    return forms.OUTSIDE


def _same_model(one: Mdp, two: Mdp) -> bool:
    def arrays(model: Mdp) -> tuple[Any, ...]:
        moves = model.transitions
        return model.start, model.available, moves.indptr, moves.indices, moves.data

    alike = one.discount == two.discount and one.terminal == two.terminal
    return alike and all(map(np.array_equal, arrays(one), arrays(two)))
