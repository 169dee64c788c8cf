"""One trial in an environment."""

from __future__ import annotations

from typing import Any

from saver.collect import Trial
from saver.data.gym import gymnasium
from saver.data.gymmodels import BARE, steps_of
from saver.data.spaces import Numbering
from saver.data.watching import Guardrails, Step, check_guardrails, columns, observed
from saver.errors import InvalidData, InvalidProblem
from saver.problem import checks
from saver.problem.episode import Episode
from saver.problem.model import END


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
    check_guardrails(guardrails)
    checks.kind("trial", trial, Trial)
    if not isinstance(env, gymnasium().Env):
        raise InvalidProblem(f"env is {env!r}; it must be a gymnasium.Env: gymnasium.make(...)")
    table = Table(env.observation_space, env.action_space)
    table.fits(trial, steps_of(env))
    record = Record(table, trial, env.reset(seed=seed)[0], guardrails)
    while not record.over:
        record.add(*env.step(record.action))
    if record.cut:
        raise CutOff(trial, record.episode())
    return record.episode()


class Table:
    """The states and actions of an environment, numbered."""

    def __init__(self, observations: Any, actions: Any) -> None:
        self.states, self.actions = Numbering(observations, "observation"), Numbering(actions, "action")

    def fits(self, trial: Trial, longest: int | None) -> None:
        """Refuse a trial of another model before anything has run."""
        mdp = trial.follows.grid.mdp
        ours, theirs = (self.states.count, self.actions.count), (mdp.states, mdp.actions)
        if theirs not in (ours, (ours[0] + 1, ours[1])):  # one state may have been added, as the end
            raise InvalidProblem(
                f"the environment has {ours[0]} states and {ours[1]} actions, but the trial's model has "
                f"{theirs[0]} and {theirs[1]}; make the model by saver.data.from_gymnasium(env)"
            )
        if longest is not None and longest < mdp.horizon:
            raise InvalidProblem(
                f"the environment stops after {longest} steps, and the trial's horizon is {mdp.horizon}; "
                f"make it by {BARE.format(mdp.horizon)}, or the model with horizon={longest}"
            )


class Record:
    """One trial under way.

    Attributes:
        action: to take now, as the environment has it.
        over: whether it has ended, or come to the horizon, or was cut off.
        cut: whether the environment stopped it before.
    """

    def __init__(self, table: Table, trial: Trial, observation: Any, guardrails: Guardrails) -> None:
        self.table, self.trial, self.guardrails = table, trial, guardrails
        self.states: list[int] = []
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self.seen: list[Any] = []
        self.over = self.cut = False
        self.final = END
        self._turn(observation)

    def _turn(self, observation: Any) -> None:
        """Decide in the state that was reached."""
        self.observation = observation
        self.states.append(self.table.states.number(observation))
        self.actions.append(self.trial.act(len(self.actions), self.states[-1]))
        self.action = self.table.actions.element(self.actions[-1])

    def add(self, observation: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> None:
        """What the action led to."""
        step = Step(self.observation, self.action, float(reward), observation, bool(terminated), info)
        self.rewards.append(step.reward)
        self.seen.append(observed(self.guardrails, step))
        late = len(self.rewards) == self.trial.horizon
        self.over = bool(terminated or truncated or late)
        self.cut = bool(truncated and not terminated and not late)
        if not self.over:
            self._turn(observation)
        elif not terminated:
            self.final = self.table.states.number(observation)

    def episode(self) -> Episode:
        """All of it."""
        guarded = columns(self.seen)
        return Episode(self.states, self.actions, self.rewards, guarded, final_state=self.final)
