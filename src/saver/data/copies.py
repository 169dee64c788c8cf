"""An environment, or a vector of them, as copies that can each be started anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from saver.data.gym import gymnasium
from saver.data.gymmodels import steps_of
from saver.errors import InvalidData, InvalidProblem


class Single:
    """One environment as if it were a vector of one."""

    count = 1

    def __init__(self, env: Any) -> None:
        self.env, self.longest = env, steps_of(env)
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, seed: int | None) -> list[Any]:
        """Where it starts."""
        return [self.env.reset(seed=seed)[0]]

    def step(self, actions: list[Any]) -> list[Any]:
        """Take an action."""
        self.seen = self.env.step(actions[0])
        return [self.seen]

    def after(self, ended: list[bool]) -> list[Any]:
        """Where it stands, after a reset if the trial has ended."""
        return [self.env.reset()[0] if ended[0] else self.seen[0]]


class Copies:
    """A vector of environments whose copies can each be started anew, in every autoreset mode."""

    def __init__(self, envs: Any, names: Iterable[str] = ()) -> None:
        self.names = tuple(names)  # entries of info that must come as they are
        self.envs, self.count, self.longest = envs, envs.num_envs, steps_of(envs)
        self.observation_space, self.action_space = envs.single_observation_space, envs.single_action_space
        modes, given = gymnasium("vector").AutoresetMode, envs.metadata.get("autoreset_mode")
        if given is None:
            raise InvalidProblem("env.metadata has no 'autoreset_mode'; Gymnasium 1.1 or newer gives one")
        self.same, self.disabled = modes(given) == modes.SAME_STEP, modes(given) == modes.DISABLED
        self.resting = np.zeros(self.count, dtype=bool)  # they are reset by their next step
        self.done = np.zeros(self.count, dtype=bool)

    def reset(self, seed: int | None) -> list[Any]:
        """Where each starts."""
        self.seen = self._each(self.envs.reset(seed=seed)[0])
        return self.seen

    def step(self, actions: list[Any]) -> list[Any]:
        """One step of each, as an environment alone would give it; None where it was a reset."""
        batch, rewards, ended, stopped, infos = self.envs.step(self._batch(actions))
        self.seen, self.done = self._each(batch), ended | stopped
        check_floats(infos, self.names)
        found: list[Any] = []
        for i in range(self.count):
            observation, info = self.seen[i], info_of(infos, i)
            if self.same and self.done[i]:
                observation, info = info["final_obs"], info.get("final_info", {})
            found.append(None if self.resting[i] else (observation, rewards[i], ended[i], stopped[i], info))
        self.resting = self.done & ~self.same & ~self.disabled
        return found

    def after(self, ended: list[bool]) -> list[Any]:
        """Where each stands; those whose trial has `ended`, or that have ended themselves, at a start."""
        anew = np.array(ended) & ~self.done  # at the horizon of the trial
        if self.disabled:
            anew = anew | self.done
        if anew.any():
            batch = self._each(self.envs.reset(options={"reset_mask": anew})[0])
            for i in np.flatnonzero(~anew & ~self.resting):
                if str(batch[i]) != str(self.seen[i]):
                    raise InvalidData(
                        "this vector of environments resets all its copies at once: it knows no "
                        "options['reset_mask']; use gymnasium.vector.SyncVectorEnv"
                    )
            self.seen = [batch[i] if anew[i] else self.seen[i] for i in range(self.count)]
        return [None if self.resting[i] else self.seen[i] for i in range(self.count)]

    def _each(self, batch: Any) -> list[Any]:
        """One by one; a vector may write the next ones over them."""
        return deepcopy(list(gymnasium("vector.utils").iterate(self.envs.observation_space, batch)))

    def _batch(self, actions: list[Any]) -> Any:
        utils, space = gymnasium("vector.utils"), self.action_space
        return utils.concatenate(space, actions, utils.create_empty_array(space, self.count))


def info_of(infos: Mapping[str, Any], i: int) -> dict[str, Any]:
    """What the `info` of one copy was."""
    found = {}
    for key, value in infos.items():
        has = infos.get(f"_{key}")
        if has is not None and has[i]:
            found[key] = info_of(value, i) if isinstance(value, dict) else value[i]
    return found


def check_floats(infos: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse numbers that may have been cut: a vector gives all copies the type that the first one has."""
    for part in (infos, infos.get("final_info", {})):
        for name in names:
            found = part.get(name)
            for key, column in found.items() if isinstance(found, dict) else [("", found)]:
                if not isinstance(column, np.ndarray) or key.startswith("_"):
                    continue
                if column.dtype.kind in "iub":
                    place = f"info[{name!r}]" + (f"[{key!r}]" if key else "")
                    raise InvalidData(
                        f"{place} is {column.dtype} in this vector, where the first copy decides the type "
                        "and fractions of the others are lost; make it a float in every reset and step, or "
                        "guard by a function of state, action and reward"
                    )
