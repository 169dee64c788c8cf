"""Runs campaigns in the compiled loop, on all cores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from typing import Any, cast

import numpy as np
from scipy import sparse

from saver._interrupt import postponed
from saver._types import Ints
from saver.collect import Setup
from saver.collect.decide import new_plan
from saver.collect.knowledge import Statistics
from saver.collect.state import State, following, unplanned
from saver.engine.layout import lay_plays, lay_rules, lay_scene, quick_loops, rows_of
from saver.engine.layrails import lay_free, lay_plan_inputs, lay_rails
from saver.engine.reference import Job, interval_of, run_once
from saver.errors import SaverError
from saver.estimate.asymptotic import in_the_limit
from saver.estimate.certainty import certainty_estimated
from saver.estimate.interval import LEVEL
from saver.estimate.recursion import Moves
from saver.kernels import advancing as kernel
from saver.kernels.believing import next_plan
from saver.kernels.entering import flush
from saver.kernels.forms import ESTIMATED, OUTSIDE
from saver.kernels.keeping import COUNT, MEAN, SQUARES, Followed, Out, Tracker, new_run, nothing_believed
from saver.kernels.ledgers import asked_of_design
from saver.kernels.rails import MEAN as RAIL_MEAN
from saver.kernels.streams import stream
from saver.kernels.tracking import rate_all
from saver.kernels.unknown import PlanInputs, plan_learned
from saver.play.foresight import Foresight
from saver.play.policy import Policy
from saver.problem.bellman import by_step
from saver.problem.checks import child_seed, read_only
from saver.problem.moments import Moments
from saver.problem.moving import met
from saver.simulator import knowledge_of

STEPS, MANY = 2_000_000, 64  # steps and runs of one batch


class Setting:
    """What all runs share: the scenario and the collector as arrays."""

    def __init__(self, job: Job, seed: int | np.random.SeedSequence) -> None:
        self.job, self.seed = job, child_seed(seed)
        self.scenario, self.collector, self.episodes, self.truth = job[:4]
        scenario, collector, episodes, truth = job[:4]
        problem = scenario.problem
        self.setup = setup = Setup(problem, collector, episodes, knowledge_of(scenario, collector))
        self.lock = threading.Lock()  # users' designs and remembered plays are for one thread at a time
        self.known, stage = problem.mdp.known, setup.stage
        explore, design = setup.exploration().table(), problem.mdp.uniform
        if setup.designer.fixed and self.known:
            design = following(setup, new_plan(setup, State.begin(setup)), 0).policy.table()
        elif collector.design == "closed-form" and not setup.designer.is_tree:
            design = by_step(problem.mdp, design)
        self.scene = lay_scene(scenario, setup)
        self.rails = lay_rails(setup, scenario, truth, job.history)
        self.rules = rules = lay_rules(setup, truth, self.scene, (explore, design), job.fair)
        draws_explore = rules.explorations > 0 and not rules.explore_tracked
        self.policies = (
            explore if draws_explore else problem.baseline,
            problem.baseline if rules.tracked or not self.known else design,
            problem.baseline,
        )
        self.plays = lay_plays(setup, self.policies)
        self.acts = bool(self.plays.kinds.random.any()) or (rules.plan == OUTSIDE and not rules.tracked)
        steps = episodes * problem.mdp.horizon
        alone = rules.plan != OUTSIDE and rules.estimate != ESTIMATED  # the loop needs no help
        self.batch = min(MANY, STEPS // steps) if alone else 0  # runs at a time; 0: one, with pauses
        self.explore = rows_of(stage, explore)[: rules.first_row]
        self.rows = np.concatenate([self.explore, rows_of(stage, design)])
        self.study = None if self.known else lay_plan_inputs(setup)

    @property
    def loops(self) -> tuple[Any, ...]:
        """Which parts are compiled: for several guardrails, and one of the three loops."""
        several = len(self.scenario.problem.rails) > 1
        one_way, one_step = quick_loops(self.setup, self.scene, self.job.history)
        general = not (one_way or one_step)
        return several or None, general or None, one_way or None, one_step or None

    def room(self, checkpoints: Ints, runs: int) -> Out:
        """For what is kept of so many runs."""
        return Out.room(checkpoints, runs, len(self.truth.values), len(self.truth.required))

    def streams(self, rows: range) -> tuple[Any, Any]:
        """The streams of these runs, [runs, 4]: for acting, if anything is drawn there, and the world's."""
        world = np.array([stream(child_seed(self.seed, r, 1)) for r in rows])
        return np.array([stream(child_seed(self.seed, r, 0)) for r in rows]) if self.acts else world, world


class Worker:
    """Room for one campaign at a time, used again for the next."""

    def __init__(self, setting: Setting, stop: Ints) -> None:
        self.setting, self.stop = setting, stop
        self.run = new_run(setting.scene, setting.rules, setting.rows, stop)
        self.rails, self.loops = setting.rails.copy(), setting.loops
        self.most = max(1, STEPS // len(setting.scene.factor))
        self.plays, self.warm = setting.plays, cast(Any, None)
        self.free = None if setting.known else lay_free(setting.setup, setting.truth, setting.policies)
        states, actions = setting.scene.uniform.shape
        self.empty = sparse.csr_array((states * actions, states))

    def play(self, rows: range, out: Out) -> None:
        """These runs from the beginning; `out` has one row for each."""
        s = self.setting
        self.plays, self.warm = s.plays, None
        acting, world = s.streams(rows)
        self.run = self.run.following(Tracker.of(s.rows))  # the last plan's may have other rows
        self.run.now.row, self.run.now.done = 0, kernel.NOTHING
        status = kernel.PAUSED
        while status != kernel.FINISHED and not self.stop[0]:
            status = self.advance(out, acting, world)
            if status == kernel.PLAN:
                self._plan()
            elif status == kernel.CHECK:
                self._look(out)
            elif status == kernel.REFUSED:
                self._explain(rows[int(self.run.now.row)], out.checkpoints)

    def advance(self, out: Out, acting: Any, world: Any) -> int:
        """The compiled loop, until it is done or needs something; why it returned."""
        s = self.setting
        arrays: Any = (s.scene, s.rules, self.plays, self.run, self.rails, self.free, *self.loops)
        arrays += (out, acting, world, self.most)
        return kernel.advance(*arrays)

    def load(self, checkpoints: Ints) -> None:
        """Play no episode, so that all is compiled."""
        out = self.setting.room(checkpoints, 1)
        most, self.most, self.run.now.done = self.most, 0, 0
        self.advance(out, *self.setting.streams(range(1)))
        self.most = most

    def _moments(self) -> tuple[Moments, list[Moments]]:
        """Of rewards, and of each guardrail as it is told."""
        shape, seen = self.setting.scene.uniform.shape, self.run.seen
        counts = seen[:, COUNT].astype(np.int64).reshape(shape)
        mean, squares = (seen[:, at].reshape(shape) for at in (MEAN, SQUARES))
        rails = self.setting.scenario.problem.rails
        told = [rail.sign * mean for rail, mean in zip(rails, self.rails.shaped[:, RAIL_MEAN], strict=True)]
        return Moments(counts, mean, squares), [Moments(counts, one, np.zeros(shape)) for one in told]

    def _plan(self) -> None:
        """A design that only Python can make: the exact one, one where transitions are learned, a user's."""
        s, run, setup = self.setting, self.run, self.setting.setup
        if s.study is not None and self._plan_compiled(s.study):
            return
        number, designer, (rewards, constraints) = int(run.now.done) + 1, setup.designer, self._moments()
        moves = None if s.known else self._moves()
        statistics = Statistics.of(s.scenario.problem, setup.knowledge, number, rewards, constraints, moves)
        required, paced = np.zeros((2, len(self.rails.state)))
        asked_of_design(self.rails, run.now, s.episodes - number + 1, designer.paced, True, required, paced)
        with s.lock if callable(s.collector.design) else nullcontext():
            made = designer.design(statistics, setup.variance(rewards), required, paced, self.warm)
        self.warm = made.warm if s.known else made.policy
        again = next_plan(number, s.rules.replan)
        run.now.next_plan = kernel.NEVER if designer.fixed else again
        if s.rules.tracked:
            policy = setup.stage.grid.policy(made.policy)
            needed = unplanned(setup, policy, number) if made.needed is None else made.needed
            self._follow(policy, needed, made.foresight)
            return
        explore, _, baseline = s.policies
        if s.known:
            flush(self.plays.weights, run.visited, run.now)
        with s.lock:
            self.plays = lay_plays(setup, (explore, made.policy, baseline))
            if self.free is not None:
                self.free = lay_free(setup, s.truth, (explore, made.policy, baseline), self.free)

    def _plan_compiled(self, study: PlanInputs) -> bool:
        """`_plan` in one call; False where it is not of the usual kind."""
        s, run, hint = self.setting, self.run, study.policies[0] if self.warm is None else self.warm
        hint = read_only(hint if hint.ndim == 3 else hint[None])
        policy, needed, believed = plan_learned(study, s.scene, run, self.free, self.rails, hint)
        if not len(policy):
            return False
        self.warm = policy
        run.now.next_plan = next_plan(int(run.now.done) + 1, s.rules.replan)
        self._follow(s.setup.stage.grid.policy(policy), needed, Foresight(*believed))
        return True

    def _follow(self, policy: Policy, needed: Ints, belief: Foresight | None) -> None:
        """Track a new plan."""
        s, run, by_node, begin = self.setting, self.run, policy.by_step, self.setting.rules.first_row
        grid, tracker = s.setup.stage.grid, Tracker.of(np.concatenate([s.explore, policy.rows]))
        tracker.T[begin:] = run.node_visits if by_node else grid.by_state(run.node_visits)
        tracker.T[begin:] += s.setup.offsets[by_node]
        run.now.by_node, run.now.planned = by_node, 1
        run.needed[:] = needed.ravel()
        states = s.scene.nodes.state if by_node else s.scene.every
        rate_all(tracker, begin, states, run.now.enough, run.needed, run.seen)
        self.run = run.following(tracker)
        if self.free is not None:
            believed = nothing_believed() if belief is None else belief
            self.free = self.free.changed(belief=Followed.of(believed, len(run.path)))

    def _look(self, out: Out) -> None:
        """What is kept at a checkpoint, by estimated moves; intervals at all times are right in the limit."""
        now, s, problem = self.run.now, self.setting, self.setting.scenario.problem
        moves, rewards, promised = self._moves(), self._moments()[0], problem.reward is not None
        against = None if problem.against is None else problem.policy(problem.against)
        for i, target in enumerate(problem.targets.values()):
            found = certainty_estimated(
                problem.mdp, target, rewards, moves, reward=problem.reward, against=against
            )
            for name, number in interval_of(found).items():
                out.answers[name][now.row, i, now.point - 1] = number
            kept = out.answers[now.row, i, now.point - 1]
            if self.free is not None:
                told = int(self.free.starts.sum())
                ever = in_the_limit(found, told, s.episodes, LEVEL, promised)
                kept.anytime_low, kept.anytime_high = ever.interval
            elif not promised:  # as the kernel does
                kept.anytime_low = found.fewest

    def _moves(self) -> Moves:
        """What was seen of moves."""
        run, scene = self.run, self.setting.scene
        counts = copy(self.empty)  # without scipy's checks: moves are counted for every plan
        counts.indptr, counts.indices, counts.data, paid = met(scene.indptr, scene.to, *run.moves)
        starts = np.zeros(0) if self.free is None else self.free.starts.copy()
        return Moves(counts, run.ends[0].copy(), paid, run.ends[1].copy(), starts)

    def _explain(self, r: int, checkpoints: Ints) -> None:
        """Let the reference say what was refused."""
        s = self.setting
        run_once(s.job, s.room(checkpoints, 1).of(0), child_seed(s.seed, r))
        raise SaverError(f"run {r} was refused by the compiled engine only; use engine='reference'")


def run_compiled(
    setting: Setting, checkpoints: Ints, runs: int, threads: int, tick: Callable[[int], None]
) -> Out:
    """All runs; `tick` is told how many were done."""
    kept, stop = setting.room(checkpoints, runs), np.zeros(1, dtype=np.int64)
    size = max(1, min(setting.batch, -(-runs // threads)))
    turns = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
    own = threading.local()  # a worker of each thread

    def halt() -> None:
        stop[0] = 1

    def play(rows: range) -> int:
        if stop[0]:
            return 0
        try:
            own.worker = getattr(own, "worker", None) or Worker(setting, stop)
            own.worker.play(rows, kept.of(slice(rows.start, rows.stop)))
        except BaseException:
            halt()
            raise
        return len(rows)

    Worker(setting, stop).load(checkpoints)  # what has to be compiled is, before any thread plays
    with postponed(halt), ThreadPoolExecutor(min(threads, runs)) as pool:
        try:
            for done in filter(None, pool.map(play, turns)):
                tick(done)
        except BaseException:
            halt()
            raise
    return kept
