"""Runs campaigns whose transitions are unknown in a compiled loop of their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.collect.belief import extra
from saver.collect.foresight import Foresight
from saver.collect.knowledge import Statistics
from saver.collect.learning import Learner
from saver.collect.planned import unplanned
from saver.collect.planning import next_plan
from saver.engine.compiled import Setting, Worker
from saver.engine.kernel import advancing as kernel
from saver.engine.kernel.designing import Study, plan_learned
from saver.engine.kernel.drawing import lay_law
from saver.engine.kernel.following import rate_all
from saver.engine.kernel.forms import BY_NODE, FIRST, RANDOM, SAFE, SAME
from saver.engine.kernel.keeping import Out, Tracker
from saver.engine.kernel.layout import GATES, is_watched
from saver.engine.kernel.modelfree import (
    DRAWN,
    Blind,
    Land,
    Manner,
    Plays,
    advance_blind,
    new_blind,
)
from saver.engine.kernel.rails import Shown, lay_guards
from saver.engine.kernel.totals import asked_of_returns
from saver.engine.reference import interval_of
from saver.estimate.asymptotic import in_the_limit
from saver.estimate.interval import LEVEL
from saver.play.policy import Policy
from saver.problem.bellman import powers
from saver.problem.moving import still
from saver.problem.world import SHARED


class BlindSetting(Setting):
    """What all runs share, where transitions are unknown."""

    loop = advance_blind

    def lay(self) -> None:
        """Everything as arrays."""
        setup, collector = self.setup, self.collector
        self.guarded = True
        self.scene = land = self._land()
        self.guards = lay_guards(setup, self.scenario, self.truth, self.history)
        self.rules = Manner(
            episodes=self.episodes,
            explorations=setup.explorations,
            explore_by_clock=collector.explore_by_clock,
            tracked=collector.track != "sample",
            track_all=collector.track == "all",
            first_row=0,
            plays_baseline=collector.design == "baseline" and collector.track == "sample",
            learn_from_baseline=collector.learn_from_baseline,
            gate=GATES[collector.gate],
            laws=(lay_law(self.scenario.world.reward)[0],),
            shared=self.scenario.world.outcome == SHARED,
            watched=is_watched(self.scenario.world.reward, land.pairs),
        )
        self.true = self._true()
        self.study = self._study()
        self.sheets = self.plays(setup.baseline)
        self.rows = land.uniform

    def worker(self, stop: Ints) -> Worker:
        """Room for one campaign at a time."""
        return BlindWorker(self, stop)

    def _land(self) -> Land:
        """The world, by the nodes of the problem's model."""
        world, setup, model = self.scenario.world, self.setup, self.scenario.world.mdp
        mdp, start = self.scenario.problem.mdp, np.flatnonzero(model.start)
        _, where, scale, rewards = lay_law(world.reward)
        anything, zero = np.full(where.shape, np.inf), np.zeros(where.shape)
        low, high = (-anything, anything) if setup.rewards is None else setup.rewards[-2:]
        columns = (where, scale, zero, zero, low, high, zero, zero, zero, zero)  # as in `Scene.pairs`
        ends = np.zeros(model.states, dtype=bool)
        ends[list(model.terminal)] = True
        return Land(
            nodes=setup.stage.nodes,
            slot=setup.stage.grid.slot,
            indptr=model.transitions.indptr.astype(np.int64),
            to=model.transitions.indices.astype(np.int64),
            chance=model.transitions.data.copy(),
            ends=ends,
            start=start,
            start_chance=model.start[start],
            pairs=np.array(np.column_stack([column.ravel() for column in columns]), order="C"),
            rewards=rewards,
            factor=np.asarray(mdp.discount ** np.arange(mdp.horizon), dtype=np.float64),
            target_by_step=np.zeros((1, 1, 1)),
            uniform=mdp.uniform.copy(),
            every=np.arange(mdp.states),
            safe_nodes=np.arange(len(setup.stage.nodes.state)),
        )

    def _true(self) -> Foresight:
        """What nobody but the simulator knows."""
        model, means = self.scenario.world.mdp, np.array(self.truth.means)
        to = model.flow.indptr.astype(np.int64), model.flow.indices.astype(np.int64), model.flow.data
        return Foresight(*to, model.start, means.reshape(len(means), -1))

    def _study(self) -> Study | None:
        """What a compiled plan needs; None where the `Learner` makes them all."""
        problem, setup, collector = self.scenario.problem, self.setup, self.collector
        usual = len(problem.targets) == len(problem.rails) == 1 and problem.against is None
        if collector.design != "exact" or collector.knows or not usual or not self.rules.tracked:
            return None
        designer = setup.designer
        assert isinstance(designer, Learner)
        mdp, promise = problem.mdp, problem.rails[0].promise
        return Study(
            *designer.answers,
            unseen=np.array(designer.unseen),
            available=mdp.available.copy(),
            even=still(mdp.uniform),
            start=np.zeros(0) if mdp.start is None else mdp.start.copy(),
            discount=mdp.discount,
            factors=powers(mdp.discount, mdp.horizon),
            powers=np.power(mdp.discount, np.arange(mdp.horizon, dtype=float)),
            episodes=self.episodes,
            extra=extra(problem, collector, self.episodes),
            caution=float(collector.caution),
            floor=promise.floor,
            ceiling=promise.ceiling,
            paced=designer.paced,
        )

    def plays(self, design: Policy) -> Plays:
        """What is drawn from while this is the design."""
        setup, truth = self.setup, self.truth
        policies: Sequence[Policy] = (setup.exploration(), design, setup.baseline)
        tables, by_node = [policy.rows for policy in policies], setup.baseline.by_node()
        true = [truth.stage.evaluate(truth.stage.grid.adopted(policy)) for policy in policies]
        flags = np.zeros((len(policies), 5), dtype=np.int64)
        flags[:, FIRST] = np.cumsum([0, *(len(table) for table in tables[:-1])])
        flags[:, BY_NODE] = [policy.by_step for policy in policies]
        flags[:, RANDOM] = [not policy.sure for policy in policies]
        flags[:, SAME] = [np.array_equal(policy.by_node(), by_node) for policy in policies]
        if self.truth.stage.deterministic:
            flags[:, DRAWN] = [
                flag and not play.goes_as(truth.safe)
                for flag, play in zip(flags[:, RANDOM], true, strict=True)
            ]
            flags[SAFE, DRAWN] = 0
        policy = np.concatenate(tables)
        worth = [[play.value(mean) for mean in truth.means] for play in true]
        return Plays(policy, np.argmax(policy, axis=1), flags, np.array(worth))


class BlindWorker(Worker):
    """Room for one campaign at a time."""

    setting: BlindSetting
    run: Blind

    def room(self) -> Blind:
        """For what a campaign keeps."""
        return new_blind(self.setting.scene, self.setting.rows, self.setting.true, self.stop)

    def advance(self, out: Out, acting: Any, world: Any, shown: Shown) -> int:
        """The compiled loop, until it is done or needs something; why it returned."""
        s = self.setting
        given = s.scene, s.rules, self.sheets, self.run, out, acting, world, self.most, self.guards, shown
        status: int = advance_blind(*given)
        return status

    def _asked(self, number: int) -> tuple[Floats, Floats]:
        """What is required of a design, and the pace, by each guardrail."""
        s, g, left = self.setting, self.guards, self.setting.episodes - number + 1
        assert g is not None
        required, paced = np.zeros((2, len(g.state)))
        asked_of_returns(g, self.run.now, left, s.setup.designer.paced, required, paced)
        return required, paced

    def _plan(self) -> None:
        """The design for what is believed now."""
        s, run, setup = self.setting, self.run, self.setting.setup
        number, designer = int(run.now.done) + 1, setup.designer
        if s.study is not None and self._plan_compiled(s.study):
            return
        rewards, constraints = self._moments()
        moves = self._moves(run.starts.copy())
        statistics = Statistics.of(s.scenario.problem, setup.knowledge, number, rewards, constraints, moves)
        with s.lock if callable(s.collector.design) else nullcontext():
            made = designer.design(statistics, setup.variance(rewards), *self._asked(number), self.warm)
        policy = setup.stage.grid.policy(made.policy)
        self.warm = made.policy
        run.now.next_plan = kernel.NEVER if designer.fixed else next_plan(number, float(s.collector.replan))
        if s.rules.tracked:
            needed = unplanned(setup, policy, number) if made.needed is None else made.needed
            self._follow(policy, needed, made.foresight)
        else:
            self.sheets = s.plays(policy)

    def _plan_compiled(self, study: Study) -> bool:
        """`_plan` in one call; False where it is not of the usual kind."""
        s, run, hint = self.setting, self.run, study.policies[0] if self.warm is None else self.warm
        hint = still(hint if hint.ndim == 3 else hint[None])
        policy, needed, believed = plan_learned(study, s.scene, run, self.guards, hint)
        if not len(policy):
            return False
        self.warm = policy
        run.now.next_plan = next_plan(int(run.now.done) + 1, float(s.collector.replan))
        self._follow(s.setup.stage.grid.policy(policy), needed, Foresight(*believed))
        return True

    def _follow(self, policy: Policy, needed: Ints, belief: Foresight | None) -> None:
        """Track a new plan."""
        s, run, by_node = self.setting, self.run, policy.by_step
        grid, tracker = s.setup.stage.grid, Tracker.of(policy.rows)
        tracker.T[:] = run.node_visits if by_node else grid.by_state(run.node_visits)
        tracker.T[:] += s.setup.offsets[by_node]
        run.now.by_node, run.now.planned = by_node, 1
        run.needed[:] = needed.ravel()
        states = grid.state if by_node else s.scene.every
        rate_all(tracker, 0, states, run.now.enough, run.needed, run.seen)
        self.run = run.following(tracker, belief)

    def _look(self, out: Out) -> None:
        """What is kept of the estimates at a checkpoint; intervals at all times are right in the limit."""
        at = self.run.now.point - 1
        told, planned = int(self.run.starts.sum()), self.setting.episodes
        promised = self.setting.scenario.problem.reward is not None
        for i, found in enumerate(self._estimates(self.run.starts.copy())):
            for name, number in interval_of(found).items():
                getattr(out, name)[0, i, at] = number
            ever = in_the_limit(found, told, planned, LEVEL, promised)
            out.anytime_low[0, i, at], out.anytime_high[0, i, at] = ever.interval
