"""(setup, state, event) -> state: what an event does. It was decided or admitted before: none is refused."""

from __future__ import annotations

from typing import Any

from saver._jit import brief
from saver.collect.events import Abandoned, Asked, Cancelled, Event, Extended, Recalled, Told, Trial
from saver.collect.setup import Setup
from saver.collect.state import State, following, policy_of, settle, shown_of
from saver.estimate.importance import take_weighted


def apply(setup: Setup, state: State, event: Event) -> State:
    """The state after the event: the same object, changed."""
    if isinstance(event, Asked):
        _asked(setup, state, event)
    elif isinstance(event, Told):
        _told(setup, state, event)
    elif isinstance(event, Abandoned):
        _abandoned(setup, state, event)
    elif isinstance(event, Cancelled):
        _cancelled(setup, state, event)
    elif isinstance(event, Extended):
        state.more += event.episodes
        if state.plan is not None:
            state.following = following(setup, state.plan, state.more)
    else:
        _recalled(setup, state, event)
    return state


def _asked(setup: Setup, state: State, event: Asked) -> None:
    if event.plan is not None:
        state.plan = event.plan
        if event.plan.reach is None:
            state.following = following(setup, event.plan, state.more)
        else:
            settle(setup, state)  # what is expected of trials follows the plan too
    if event.exploration is not None:
        state.exploration = event.exploration
    plan = None if state.following is None else state.following.policy
    follows = policy_of(setup, event.policy, event.by_step, plan, state.exploration)
    state.asked, state.stream = event.number, event.stream or state.stream
    state.explored += event.kind == "explore"
    if (shown := shown_of(event)) is not None:
        state.played[shown] = state.played.get(shown, 0) + 1
    state.out[event.number] = trial = Trial(event.number, event.kind, follows, event.draws)
    state.outstanding.add(event.number, event.kind, setup.stage.play(follows))
    play = setup.promised(trial)
    for name, keeper in setup.keepers.items():
        keeper.ask(state.books[name], event.number, event.tickets[name], play)


def _told(setup: Setup, state: State, event: Told) -> None:
    play = state.outstanding.take(event.number)
    trial, episode = state.out.pop(event.number), event.episode
    learned = trial.kind != "baseline" or setup.collector.learn_from_baseline
    if learned and (event.complete or setup.counts_parts):
        if setup.weighs(trial):
            chances = trial.follows.chances(episode.states, episode.actions)
            take_weighted(setup.problem.mdp, setup.problem.first, state.sums, episode, chances)
        state.sums.add(setup.problem.mdp, episode, event.complete)
    if learned:  # of each guardrail, in the units in which it was told
        for guarded, moments in zip(setup.problem.rails, state.rail_moments(setup.problem), strict=True):
            if (column := guarded.column(episode)) is not None:
                moments.extend(episode.states, episode.actions, column)
    count_visits(state.counts[trial.kind], setup.stage.grid.slot, episode.states, episode.actions)
    state.told[trial.kind] += 1
    for name, keeper, rail in setup.heard:
        seen = episode if rail is None else rail.of(episode)
        if seen is None:  # it ran, and this was not measured
            keeper.abandon(state.books[name], event.number, play, True)
        else:
            taught = seen if learned or (rail is not None and rail.learned) else None
            keeper.tell(state.books[name], event.number, play, taught, event.complete)


@brief
def count_visits(counts: Any, slot: Any, states: Any, actions: Any) -> None:
    """One more at each node where an action was taken."""
    for t in range(len(states)):
        counts[slot[t, states[t]], actions[t]] += 1.0


def _abandoned(setup: Setup, state: State, event: Abandoned) -> None:
    play = state.outstanding.take(event.number)
    del state.out[event.number]
    state.abandoned.add(event.number)
    for name, keeper in setup.keepers.items():
        keeper.abandon(state.books[name], event.number, play, event.ran)


def _cancelled(setup: Setup, state: State, event: Cancelled) -> None:
    state.outstanding.take(event.number)
    trial = state.out.pop(event.number)
    state.cancelled.add(event.number)
    state.explored -= trial.kind == "explore"
    for name, keeper in setup.keepers.items():
        keeper.cancel(state.books[name], event.number, event.unseen)


def _recalled(setup: Setup, state: State, event: Recalled) -> None:
    history = event.history
    state.sums.merge(history.sums)
    for rail, moments in zip(setup.problem.rails, state.rail_moments(setup.problem), strict=True):
        moments.merge(history.rails[rail.name].seen.times(rail.sign))
    for name, keeper in setup.keepers.items():
        book = setup.rail_of.get(name)
        keeper.learn(state.books[name], history.sums if book is None else history.rails[book.name])
