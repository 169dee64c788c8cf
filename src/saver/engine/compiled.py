"""Runs campaigns in the compiled loop, on all cores."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import nullcontext
from copy import copy
from typing import Any, cast

import numpy as np
from scipy import sparse

from saver._interrupt import postponed
from saver._types import Floats, Ints
from saver.collect import Collector, Setup
from saver.collect.decide import new_plan
from saver.collect.knowledge import Statistics
from saver.collect.planned import following, unplanned
from saver.collect.planning import next_plan
from saver.collect.state import State
from saver.engine.kernel import advancing as kernel
from saver.engine.kernel.earning import flush, pace
from saver.engine.kernel.following import rate_all
from saver.engine.kernel.forms import ESTIMATED, OUTSIDE, RANDOM
from saver.engine.kernel.guards import pace_of, required_of
from saver.engine.kernel.keeping import CONSTRAINT, COUNT, MEAN, SQUARES, Out, Tracker, new_run
from saver.engine.kernel.layout import lay_rules, lay_scene, lay_sheets, rows_of
from saver.engine.kernel.rails import MEAN as GUARDED_MEAN
from saver.engine.kernel.rails import Guards, Shown, is_guarded, lay_guards
from saver.engine.kernel.streams import stream
from saver.engine.reference import interval_of, room, run_once
from saver.engine.runs import ANSWERS, COMMON, GUARDED
from saver.errors import SaverError
from saver.estimate.certainty import certainty_estimated
from saver.estimate.interval import Estimate
from saver.estimate.recursion import Moves
from saver.problem.bellman import by_step
from saver.problem.moments import Moments
from saver.problem.moving import met
from saver.problem.seeds import child_seed
from saver.problem.world import Scenario
from saver.simulator import Truth, knowledge_of

STEPS, MANY = 2_000_000, 64  # steps and runs of one batch


class Setting:
    """What all runs share: the scenario and the collector as arrays."""

    def __init__(
        self,
        scenario: Scenario,
        collector: Collector,
        episodes: int,
        seed: int | np.random.SeedSequence,
        truth: Truth,
        fair: bool = False,
        history: int = 0,
    ) -> None:
        self.scenario, self.collector, self.episodes, self.truth = scenario, collector, episodes, truth
        self.history, self.fair, self.seed = history, fair, child_seed(seed)
        self.setup = Setup(scenario.problem, collector, episodes, knowledge_of(scenario, collector))
        self.lock = threading.Lock()  # users' designs and remembered plays are for one thread at a time
        self.guards: Guards | None = None
        self.scene: Any
        self.rules: Any
        self.sheets: Any
        self.rows: Floats
        self.acts, self.batch = True, 0  # runs at a time; 0: one, with pauses
        self.lay()

    def lay(self) -> None:
        """Everything as arrays."""
        scenario, collector, episodes, setup = self.scenario, self.collector, self.episodes, self.setup
        problem, truth, history, stage = scenario.problem, self.truth, self.history, self.setup.stage
        self.guarded = is_guarded(problem, history) or setup.bets  # that loop knows how
        explore, design = setup.exploration().table(), problem.mdp.uniform
        if setup.designer.fixed:
            design = following(setup, new_plan(setup, State.begin(setup)), 0).policy.table()
        elif collector.design == "closed-form" and not setup.designer.is_tree:
            design = by_step(problem.mdp, design)
        self.scene, laws = lay_scene(scenario, setup)
        if self.guarded:
            self.guards = lay_guards(setup, scenario, truth, history)
        self.rules = rules = lay_rules(
            setup, scenario, truth, self.scene, laws, (explore, design), self.fair, self.guarded
        )
        draws_explore = rules.explorations > 0 and not rules.explore_tracked
        self.policies = (
            explore if draws_explore else problem.baseline,
            problem.baseline if rules.tracked else design,
            problem.baseline,
        )
        self.sheets = lay_sheets(setup, truth, self.policies)
        self.acts = bool(self.sheets.flags[:, RANDOM].any()) or (rules.plan == OUTSIDE and not rules.tracked)
        steps = episodes * problem.mdp.horizon
        alone = rules.plan != OUTSIDE and rules.estimate != ESTIMATED  # the loop needs no help
        self.batch = min(MANY, STEPS // steps) if alone else 0
        self.explore = rows_of(stage, explore)[: rules.first_row]
        self.rows = np.concatenate([self.explore, rows_of(stage, design)])

    @property
    def loops(self) -> tuple[Any, Any]:
        """Which loop is compiled where no guardrail asks for its own: for one step alone, or for paths."""
        alone = not self.guarded and self.rules.one_step
        return True if alone else None, None if alone or self.guarded else True

    def worker(self, stop: Ints) -> Worker:
        """Room for one campaign at a time."""
        return Worker(self, stop)

    def streams(self, rows: range) -> tuple[Any, Any]:
        """The streams of these runs, [runs, 4]: for acting, if anything is drawn there, and the world's."""
        world = np.array([stream(child_seed(self.seed, r, 1)) for r in rows])
        return np.array([stream(child_seed(self.seed, r, 0)) for r in rows]) if self.acts else world, world


class Worker:
    """Room for one campaign at a time, used again for the next."""

    def __init__(self, setting: Setting, stop: Ints) -> None:
        self.setting, self.stop = setting, stop
        self.run = self.room()
        self.guards = None if setting.guards is None else setting.guards.copy()
        self.most = max(1, STEPS // len(setting.scene.factor))
        self.sheets, self.warm = setting.sheets, cast(Any, None)
        states, actions = setting.scene.uniform.shape
        self.empty = sparse.csr_array((states * actions, states))

    def room(self) -> Any:
        """For what a campaign keeps."""
        return new_run(self.setting.scene, self.setting.rules, self.setting.rows, self.stop)

    def play(self, rows: range, out: Out, shown: Shown) -> None:
        """These runs from the beginning; `out` and `shown` have one row for each."""
        s = self.setting
        self.sheets, self.warm = s.sheets, None
        acting, world = s.streams(rows)
        self.run = self.run.following(Tracker.of(s.rows))  # the last plan's may have other rows
        self.run.now.row, self.run.now.done = 0, kernel.NOTHING
        status = kernel.PAUSED
        while status != kernel.FINISHED and not self.stop[0]:
            status = self.advance(out, acting, world, shown)
            if status == kernel.PLAN:
                self._plan()
            elif status == kernel.CHECK:
                self._look(out)
            elif status == kernel.REFUSED:
                self._explain(rows[int(self.run.now.row)], out.checkpoints)

    def advance(self, out: Out, acting: Any, world: Any, shown: Shown) -> int:
        """The compiled loop, until it is done or needs something; why it returned."""
        s = self.setting
        status: int = kernel.advance(
            s.scene,
            s.rules,
            self.sheets,
            self.run,
            out,
            acting,
            world,
            self.most,
            self.guards,
            shown,
            *s.loops,
        )
        return status

    def load(self, checkpoints: Ints) -> None:
        """Play no episode, so that all is compiled."""
        out, shown = nothing(self.setting, checkpoints, 1)
        most, self.most, self.run.now.done = self.most, 0, 0
        self.advance(out, *self.setting.streams(range(1)), shown)
        self.most = most

    def _moments(self) -> tuple[Moments, list[Moments]]:
        """Of rewards, and of each guardrail as it is told."""
        shape, seen = self.setting.scene.uniform.shape, self.run.seen
        counts = seen[:, COUNT].astype(np.int64).reshape(shape)
        mean, squares, constraint = (seen[:, at].reshape(shape) for at in (MEAN, SQUARES, CONSTRAINT))
        told = [constraint]
        if self.guards is not None:
            rails = self.setting.scenario.problem.rails
            told = [
                rail.sign * mean
                for rail, mean in zip(rails, self.guards.shaped[:, GUARDED_MEAN], strict=True)
            ]
        return Moments(counts, mean, squares), [Moments(counts, one, np.zeros(shape)) for one in told]

    def _asked(self, number: int) -> tuple[Floats, Floats]:
        """What is required of a design, and the pace, by each guardrail."""
        s, run, left = self.setting, self.run, self.setting.episodes - number + 1
        if self.guards is None:
            first, line = s.rules.required, (s.rules.required, s.rules.surplus, s.rules.last[1])
            wanted = pace(line, s.rules.rule, run.now, run.expected, run.realised, run.box.half, left)
            return np.array([first]), np.array([wanted if s.rules.paced else first])
        places = range(len(self.guards.state))
        required = [required_of(self.guards, i) for i in places]
        return np.array(required), np.array([pace_of(s.rules, self.guards, run.now, i, left) for i in places])

    def _plan(self) -> None:
        """A design that only Python can make: the exact one, or a user's."""
        s, run = self.setting, self.run
        number = int(run.now.done) + 1
        problem, known, (rewards, constraints) = s.scenario.problem, s.setup.knowledge, self._moments()
        statistics = Statistics.of(problem, known, number, rewards, constraints)
        required, paced = self._asked(number)
        with s.lock if callable(s.collector.design) else nullcontext():
            policy, self.warm, *_ = s.setup.designer.design(
                statistics, s.setup.variance(rewards), required, paced, self.warm
            )
        run.now.next_plan = next_plan(number, s.rules.replan)
        if not s.rules.tracked:
            flush(self.sheets.weights, run.visited, run.now)
            explore, _, baseline = s.policies
            with s.lock:
                self.sheets = lay_sheets(s.setup, s.truth, (explore, policy, baseline))
            return
        nodes, begin, by_node = s.scene.nodes, s.rules.first_row, policy.ndim == 3
        tracker = Tracker.of(np.concatenate([s.explore, rows_of(s.setup.stage, policy)]))
        if by_node:
            tracker.T[begin:] = run.node_visits
        else:
            np.add.at(tracker.T, begin + nodes.state, run.node_visits)
        tracker.T[begin:] += s.setup.offsets[by_node]
        run.now.by_node, run.now.planned = by_node, 1
        states = nodes.state if by_node else s.scene.every
        run.needed[:] = unplanned(s.setup, s.setup.stage.grid.policy(policy), number).ravel()
        rate_all(tracker, begin, states, run.now.enough, run.needed, run.seen)
        self.run = run.following(tracker)

    def _look(self, out: Out) -> None:
        """What is kept of the estimates at a checkpoint."""
        now = self.run.now
        for i, found in enumerate(self._estimates(np.zeros(0))):
            for name, number in interval_of(found).items():
                getattr(out, name)[now.row, i, now.point - 1] = number
            if self.setting.scenario.problem.reward is None:  # as the kernel does
                out.anytime_low[now.row, i, now.point - 1] = found.fewest

    def _moves(self, starts: Floats) -> Moves:
        """What was seen of moves."""
        run, scene = self.run, self.setting.scene
        counts = copy(self.empty)  # without scipy's checks: moves are counted for every plan
        counts.indptr, counts.indices, counts.data, paid = met(scene.indptr, scene.to, run.moves, run.paid)
        return Moves(counts, run.ends.copy(), paid, run.ends_paid.copy(), starts)

    def _estimates(self, starts: Floats) -> Iterator[Estimate]:
        """Of each target, by estimated transitions."""
        problem = self.setting.scenario.problem
        moves, rewards = self._moves(starts), self._moments()[0]
        against = None if problem.against is None else problem.policy(problem.against)
        for target in problem.targets.values():
            yield certainty_estimated(
                problem.mdp, target, rewards, moves, reward=problem.reward, against=against
            )

    def _explain(self, r: int, checkpoints: Ints) -> None:
        """Let the reference say what was refused."""
        s = self.setting
        own = child_seed(s.seed, r)
        run_once(s.scenario, s.collector, s.episodes, checkpoints, own, s.truth, history=s.history)
        raise SaverError(f"run {r} was refused by the compiled engine only; use engine='reference'")


def run_compiled(
    setting: Setting, checkpoints: Ints, runs: int, threads: int, tick: Callable[[int], None]
) -> tuple[dict[str, Floats], Floats]:
    """All runs; `tick` is told how many were done. Worst budgets are [runs, guardrails]."""
    kept = room(setting.truth, checkpoints, runs)
    shown = room_for_guards(setting, kept, runs, len(checkpoints))
    stop, finished = np.zeros(1, dtype=np.int64), queue.SimpleQueue[int]()
    size = max(1, min(setting.batch, -(-runs // threads)))
    turns = iter([range(first, min(first + size, runs)) for first in range(0, runs, size)])

    def halt() -> None:
        stop[0] = 1

    def work() -> None:
        try:
            worker = setting.worker(stop)
            for rows in turns:
                if stop[0]:
                    break
                block = slice(rows.start, rows.stop)
                out = Out(checkpoints, *(kept[name][block] for name in (*ANSWERS, *COMMON)))
                worker.play(rows, out, Shown(*(numbers[block] for numbers in shown)))
                finished.put(len(rows))
        except BaseException:
            halt()
            raise

    setting.worker(stop).load(checkpoints)  # what has to be compiled is, before any thread plays
    with postponed(halt), ThreadPoolExecutor(min(threads, runs)) as pool:
        futures = [pool.submit(work) for _ in range(min(threads, runs))]
        try:
            pending = set(futures)
            while pending:
                _, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
                while not finished.empty():
                    tick(finished.get())
        except BaseException:
            halt()
            raise
    for future in futures:
        future.result()
    return kept, shown.worst


def nothing(setting: Setting, checkpoints: Ints, runs: int) -> tuple[Out, Shown]:
    """Room for what is kept of so many runs."""
    kept = room(setting.truth, checkpoints, runs)
    out = Out(checkpoints, *(kept[name] for name in (*ANSWERS, *COMMON)))
    return out, room_for_guards(setting, kept, runs, len(checkpoints))


def room_for_guards(setting: Setting, kept: dict[str, Floats], runs: int, points: int) -> Shown:
    """The budgets of each guardrail, in `kept` where there are several."""
    m = len(setting.truth.required)
    budgets, ledgers = (kept.get(name, np.zeros((runs, m, points))) for name in GUARDED)
    return Shown(budgets, ledgers, np.full((runs, m), np.nan))
