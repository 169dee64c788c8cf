"""Runs trials in a world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from saver.collect import Trial
from saver.problem import checks
from saver.problem.episode import Episode
from saver.problem.model import END
from saver.problem.world import SHARED, World


class Player:
    """Runs trials in a world. Draws in this order: start, then for each step reward, constraint, next state.

    Of several guardrails the constraints are drawn in the order of the world's laws.
    A draw is made only where there is something to decide. Where the world's `outcome` is a function, the
    next state comes first, in the last step too.
    """

    def __init__(
        self, world: World, seed: int | np.random.SeedSequence | np.random.Generator = 0, *,
        tells_end: bool = False,
    ) -> None:  # fmt: skip
        checks.kind("world", world, World)
        checks.flag("tells_end", tells_end)
        self.world, self.rng, self.tells_end = world, np.random.default_rng(seed), tells_end
        self._ending = world.mdp.ending

    def run(self, trial: Trial, start: int | None = None) -> Episode:
        """One episode, from where it is known to start if it is."""
        mdp = self.world.mdp
        states: list[int] = []
        actions: list[int] = []
        observed: list[tuple[float, Any]] = []
        s = self.begin() if start is None else start
        final: int | None = None
        for t in range(mdp.horizon):
            a = trial.act(t, s)
            states.append(s)
            actions.append(a)
            seen, final = self.step(t, s, a)
            observed.append(seen)
            if t + 1 == mdp.horizon or final == END or final in mdp.terminal:
                break
            assert final is not None
            s = final
        if final in mdp.terminal:
            final = END
        rewards, guarded = zip(*observed, strict=True)
        constraints: Any = guarded
        if isinstance(self.world.constraint, Mapping):
            constraints = {name: [step[name] for step in guarded] for name in self.world.laws}
        return Episode(states, actions, rewards, constraints, final_state=final)

    def begin(self) -> int:
        """The state in which an episode starts."""
        start = self.world.mdp.start
        return self._choose(np.flatnonzero(start), start[start > 0])

    def step(self, t: int, s: int, a: int) -> tuple[tuple[float, Any], int | None]:
        """What is observed, (reward, constraint), and the next state; None where nobody looks."""
        if callable(self.world.outcome):
            final = self._next(s, a)
            return self.world.outcome(self.rng, t, s, a, final), final
        seen = self._observe(s, a)
        looks = t + 1 < self.world.mdp.horizon or self.tells_end
        return seen, self._next(s, a) if looks else None

    def _observe(self, s: int, a: int) -> tuple[float, Any]:
        reward = self.world.reward.sample(self.rng, s, a)
        if self.world.outcome == SHARED:
            return reward, reward
        if isinstance(self.world.constraint, Mapping):
            return reward, {name: law.sample(self.rng, s, a) for name, law in self.world.laws.items()}
        return reward, self.world.constraint.sample(self.rng, s, a)

    def _next(self, s: int, a: int) -> int:
        moves = self.world.mdp.transitions
        pair = s * self.world.mdp.actions + a
        row = slice(moves.indptr[pair], moves.indptr[pair + 1])
        if row.start == row.stop:
            return END
        options, chances = moves.indices[row], moves.data[row]
        if self._ending[pair] == 0.0:
            return self._choose(options, chances)
        reached = self._drawn(chances)
        return int(options[reached]) if reached < len(options) else END

    def _choose(self, options: Any, chances: Any) -> int:
        if len(options) == 1:
            return int(options[0])
        reached = self._drawn(chances)
        return int(options[min(reached, len(options) - 1)])

    def _drawn(self, chances: Any) -> int:
        return int(np.searchsorted(np.cumsum(chances), self.rng.random(), side="right"))
