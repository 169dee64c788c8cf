"""Trials in an environment: one; or many, one after the other or in a vector of environments at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from saver.collect import Trial
from saver.data import spaces
from saver.data.episodes import check_campaign
from saver.data.spaces import Guardrails, Step, Watched, gymnasium
from saver.errors import InvalidData, InvalidProblem
from saver.problem import END, Episode, checks
from saver.problem.bellman import by_step


class CutOff(InvalidData):
    """The environment stopped a trial before its end; `episode` is what was seen until then.

    It can be told: `campaign.tell(trial, cut.episode, complete=False)`.
    """

    def __init__(self, trial: Trial, episode: Episode) -> None:
        super().__init__(
            f"the environment cut trial {trial.number} off after {len(episode)} of {trial.horizon} steps; "
            "tell what was seen, as the attribute `episode` of this error, with complete=False"
        )
        self.trial, self.episode = trial, episode


def play(env: Any, trial: Trial, *, guardrails: Guardrails = None, seed: int | None = None) -> Episode:
    """Run one trial in an environment, from its reset to its end or to the horizon.

    Its `final_state` is where the last action led, `saver.END` where that ended the episode.

    Args:
        env: a Gymnasium environment with finitely many observations and actions; see `from_gymnasium` and
            `unknown_from_gymnasium` for the model that numbers them.
        trial: what `campaign.ask()` gave.
        guardrails: what each step shows of what is guarded: a function of (state, action, reward, next_state,
            terminated, info), as the environment gives them; or the name of an entry of `info`, or "reward";
            of several guardrails {name: either}. Left out, `info["constraints"]` is read, if it is there.
        seed: for the environment's reset; without one it goes on with its random numbers.
    """
    watched = Watched(guardrails)
    checks.kind("trial", trial, Trial)
    if not isinstance(env, gymnasium().Env):
        raise InvalidProblem(f"env is {env!r}; it must be a gymnasium.Env: gymnasium.make(...)")
    table = Table(env, watched)
    table.fits(trial)
    record = Record(table, trial, env.reset(seed=seed)[0])
    while not record.over:
        record.add(*env.step(record.action))
    if record.cut:
        raise CutOff(trial, record.episode())
    return record.episode()


def play_many(
    env: Any,
    campaign: Any,
    *,
    guardrails: Guardrails = None,
    episodes: int | None = None,
    seed: int | None = None,
) -> int:
    """Ask, play and tell until the campaign is done, or so many `episodes` were asked; how many were told.

    A `gymnasium.vector` environment keeps as many trials out as it has copies, whatever its autoreset mode;
    a trial is told when it ends, and another is asked for. What the environment cuts off is told as that.
    When no more are to be asked, the copies that have ended go on with the baseline's likeliest actions until
    the last trial has: those steps are told to nobody. If something fails on the way, what was out is in
    `campaign.outstanding`.

    Args:
        env: an environment, the id of one, or a vector of them.
        campaign: who asks.
        guardrails: as in `play`.
        episodes: the most to ask for.
        seed: of the first reset.
    """
    watched = Watched(guardrails)
    check_campaign(campaign)
    watched.check([rail.name for rail in campaign.problem.rails])
    if episodes is not None:
        checks.whole("episodes", episodes, 0)
    with spaces.opened(env, vector=True) as found:
        several = isinstance(found, gymnasium("vector").VectorEnv)
        copies = Copies(found, watched.entries) if several else Single(found)
        return Desk(campaign, copies, Table(found, watched), episodes).run(seed)


class Table:
    """How an environment is read: its states and actions in numbers, and what is guarded."""

    def __init__(self, env: Any, watched: Watched) -> None:
        one = "single_" if isinstance(env, gymnasium("vector").VectorEnv) else ""  # copy of several
        self.states = spaces.Numbering(getattr(env, f"{one}observation_space"), "observation")
        self.actions = spaces.Numbering(getattr(env, f"{one}action_space"), "action")
        self.longest, self.watched = spaces.steps_of(env), watched

    def fits(self, trial: Trial) -> None:
        """Refuse a trial of another model before anything has run."""
        mdp, longest = trial.follows.grid.mdp, self.longest
        ours, theirs = (self.states.count, self.actions.count), (mdp.states, mdp.actions)
        if theirs not in (ours, (ours[0] + 1, ours[1])):  # one state may have been added, as the end
            raise InvalidProblem(
                f"the environment has {ours[0]} states and {ours[1]} actions, but the trial's model has "
                f"{theirs[0]} and {theirs[1]}; make the model by saver.data.from_gymnasium(env)"
            )
        if longest is not None and longest < mdp.horizon:
            raise InvalidProblem(
                f"the environment stops after {longest} steps, and the trial's horizon is {mdp.horizon}; "
                f"make it by {spaces.BARE.format(mdp.horizon)}, or the model with horizon={longest}"
            )


class Record:
    """One trial under way."""

    over = False  # whether it has ended, or come to the horizon, or was cut off
    cut = False  # whether the environment stopped it before
    final = END

    def __init__(self, table: Table, trial: Trial, observation: Any) -> None:
        self.table, self.trial = table, trial
        self.states, self.actions, self.rewards, self.seen = (list[Any]() for _ in range(4))
        self._turn(observation)

    def _turn(self, observation: Any) -> None:
        """Decide in the state that was reached: `action` is to be taken now, as the environment has it."""
        self.observation = observation
        self.states.append(self.table.states.number(observation))
        self.actions.append(self.trial.act(len(self.actions), self.states[-1]))
        self.action = self.table.actions.element(self.actions[-1])

    def add(self, observation: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> None:
        """What the action led to."""
        step = Step(self.observation, self.action, float(reward), observation, bool(terminated), info)
        self.rewards.append(step.reward)
        self.seen.append(self.table.watched.see(step))
        late = len(self.rewards) == self.trial.horizon
        self.over = bool(terminated or truncated or late)
        self.cut = bool(truncated and not terminated and not late)
        if not self.over:
            self._turn(observation)
        elif not terminated:
            self.final = self.table.states.number(observation)

    def episode(self) -> Episode:
        guarded = spaces.columns(self.seen)
        return Episode(self.states, self.actions, self.rewards, guarded, final_state=self.final)


class Single:
    """One environment as if it were a vector of one: see `Copies`."""

    count = 1

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self, seed: int | None) -> list[Any]:
        return [self.env.reset(seed=seed)[0]]

    def step(self, actions: list[Any]) -> list[Any]:
        self.seen = self.env.step(actions[0])
        return [self.seen]

    def after(self, ended: list[bool]) -> list[Any]:
        return [self.env.reset()[0] if ended[0] else self.seen[0]]


class Copies:
    """A vector of environments whose copies can each be started anew, in every autoreset mode."""

    def __init__(self, envs: Any, entries: Iterable[str] = ()) -> None:
        self.envs, self.count = envs, envs.num_envs
        self.entries = tuple(entries)  # of info, which must come as they are
        modes, given = gymnasium("vector").AutoresetMode, envs.metadata.get("autoreset_mode")
        if given is None:
            raise InvalidProblem("env.metadata has no 'autoreset_mode'; Gymnasium 1.1 or newer gives one")
        self.same, self.disabled = modes(given) == modes.SAME_STEP, modes(given) == modes.DISABLED
        self.resting = self.done = np.zeros(self.count, dtype=bool)  # resting: reset by their next step

    def reset(self, seed: int | None) -> list[Any]:
        self.seen = self._each(self.envs.reset(seed=seed)[0])
        return self.seen

    def step(self, actions: list[Any]) -> list[Any]:
        """One step of each, as an environment alone would give it; None where it was a reset."""
        utils, space = gymnasium("vector.utils"), self.envs.single_action_space
        batch = utils.concatenate(space, actions, utils.create_empty_array(space, self.count))
        observed, rewards, ended, stopped, infos = self.envs.step(batch)
        self.seen, self.done = self._each(observed), ended | stopped
        check_floats(infos, self.entries)
        found: list[Any] = []
        for i in range(self.count):
            seen, info = self.seen[i], info_of(infos, i)
            if self.same and self.done[i]:
                seen, info = info["final_obs"], info.get("final_info", {})
            found.append(None if self.resting[i] else (seen, rewards[i], ended[i], stopped[i], info))
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


def info_of(infos: Mapping[str, Any], i: int) -> dict[str, Any]:
    """What the `info` of one copy was."""
    return {
        key: info_of(value, i) if isinstance(value, dict) else value[i]
        for key, value in infos.items()
        if (has := infos.get(f"_{key}")) is not None and has[i]
    }


def check_floats(infos: Mapping[str, Any], entries: Iterable[str]) -> None:
    """Refuse numbers that may have been cut: a vector gives all copies the type that the first one has."""
    for part in (infos, infos.get("final_info", {})):
        for name in entries:
            found = part.get(name)
            for key, column in found.items() if isinstance(found, dict) else [("", found)]:
                if isinstance(column, np.ndarray) and column.dtype.kind in "iub" and not key.startswith("_"):
                    place = f"info[{name!r}]" + (f"[{key!r}]" if key else "")
                    raise InvalidData(
                        f"{place} is {column.dtype} in this vector, where the first copy decides the type "
                        "and fractions of the others are lost; make it a float in every reset and step, or "
                        "guard by a function of state, action and reward"
                    )


class Desk:
    """Who sits at it asks for trials, hands each to a copy that is free, and tells what came back."""

    def __init__(self, campaign: Any, copies: Copies | Single, table: Table, episodes: int | None) -> None:
        self.campaign, self.copies, self.table = campaign, copies, table
        self.left = float("inf") if episodes is None else episodes
        self.told = 0
        self.records: list[Record | None] = [None] * copies.count
        self.idle = [0] * copies.count  # steps since a copy without a trial was started

    def run(self, seed: int | None) -> int:
        if not self._more():
            return 0
        seen = self.copies.reset(seed)
        while True:
            for i, observation in enumerate(seen):
                if self.records[i] is None and observation is not None and self._more():
                    self.records[i] = self._ask(observation)
            if not any(self.records) and not self._more():
                return self.told
            seen = self._turn(seen)

    def _more(self) -> bool:
        return self.left > 0 and not self.campaign.done

    def _ask(self, observation: Any) -> Record:
        trial: Trial = self.campaign.ask()
        try:
            self.table.fits(trial)
            record = Record(self.table, trial, observation)
        except Exception:
            self.campaign.cancel(trial)  # it has not started
            raise
        self.left -= 1
        return record

    def _turn(self, seen: list[Any]) -> list[Any]:
        """One step of every copy; where each stands then, None where it is about to be reset."""
        steps = self.copies.step([self._action(i, where) for i, where in enumerate(seen)])
        ended = [False] * len(steps)
        for i, (record, step) in enumerate(zip(self.records, steps, strict=True)):
            if record is not None and step is not None:
                record.add(*step)
                if record.seen[-1] is None:
                    raise InvalidData(
                        "the environment says nothing of what is guarded: its info has no "
                        f"{spaces.CONSTRAINTS!r}; give guardrails=, a function of {spaces.STEP}, or "
                        f"{spaces.REWARD!r}"
                    )
                if record.over:
                    self.campaign.tell(record.trial, record.episode(), complete=not record.cut)
                    self.told += 1
                    self.records[i], ended[i] = None, True
        return self.copies.after(ended)

    def _action(self, i: int, where: Any) -> Any:
        """What a copy does: its trial's action, else the baseline's likeliest."""
        record, mdp, step = self.records[i], self.campaign.problem.mdp, self.idle[i]
        free = record is None and where is not None  # a copy that is about to be reset reads no action
        self.idle[i] = step + 1 if free else 0
        if record is not None:
            return record.action
        rows = by_step(mdp, self.campaign.problem.baseline)[min(step, mdp.horizon - 1)]
        likely = int(np.argmax(rows[self.table.states.number(where)])) if free else 0
        return self.table.actions.element(likely)
