"""Scenarios as Gymnasium environments, by their ids: `gymnasium.make("saver.data.envs:saver/gridworld-v0")`.

Importing this file imports Gymnasium and registers the ids; `saver.data` does so when it is first asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from saver.data.spaces import gymnasium
from saver.errors import InvalidData
from saver.problem import END, Scenario, checks
from saver.scenarios import SCENARIOS, find_scenario
from saver.simulator import Player

made: Any = gymnasium()


class ScenarioEnv(made.Env):  # type: ignore[misc]
    """The world of a scenario as an environment: the same draws as `saver.Player(world, tells_end=True)`.

    States and actions are numbers. An episode is terminated where the model ends it, and truncated at the
    horizon. `info["constraints"]` is {guardrail: observation}; where actions are missing,
    `info["action_mask"]` has 1 for those that are there.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, scenario: Scenario) -> None:
        checks.kind("scenario", scenario, Scenario)
        self.scenario, self.player = scenario, Player(scenario.world, tells_end=True)
        mdp = scenario.world.mdp
        self.observation_space = made.spaces.Discrete(mdp.states)
        self.action_space = made.spaces.Discrete(mdp.actions)
        self.render_mode = None
        self._masked = not bool(mdp.available.all())
        self._step, self._state = -1, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.player.rng = self.np_random
        self._step, self._state = 0, self.player.begin()
        return self._state, self._info()

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action; one that is missing in this state is refused."""
        mdp, s, a = self.scenario.world.mdp, self._state, int(action)
        if self._step < 0:
            raise InvalidData("the episode has ended, or none has begun; call reset first")
        if not (0 <= a < mdp.actions and mdp.available[s, a]):
            there = ", ".join(str(x) for x in np.flatnonzero(mdp.available[s]))
            raise InvalidData(f"action {a} is missing in {mdp.state_label(s)}; there are {there}")
        (reward, seen), following = self.player.step(self._step, s, a)
        assert following is not None
        terminated = following == END or following in mdp.terminal
        self._step += 1
        truncated = not terminated and self._step == mdp.horizon
        if following != END:
            self._state = following
        if terminated or truncated:
            self._step = -1
        by_name = seen if isinstance(seen, Mapping) else {self.scenario.problem.rails[0].name: seen}
        told = self._info() | {"constraints": {name: float(value) for name, value in by_name.items()}}
        return self._state, float(reward), terminated, truncated, told

    def _info(self) -> dict[str, Any]:
        available = self.scenario.world.mdp.available[self._state]
        return {"action_mask": available.astype(np.int8)} if self._masked else {}


def scenario_env(name: str, render_mode: None = None, **options: Any) -> ScenarioEnv:
    """The environment of a scenario of the catalogue, by its name and the arguments of its factory."""
    return ScenarioEnv(find_scenario(name, **options))


def register() -> tuple[str, ...]:
    """Let `gymnasium.make` know every scenario of the catalogue, as saver/<name>-v0; the ids."""
    ids = {f"saver/{name}-v0": name for name in SCENARIOS}
    for place, name in ids.items():
        if place not in made.registry:
            made.register(place, entry_point="saver.data.envs:scenario_env", kwargs={"name": name})
    return tuple(ids)


register()
