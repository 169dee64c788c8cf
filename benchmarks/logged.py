"""What a log is worth: how many baseline episodes a campaign spends that begins with it, and its error."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from logged_world import Shop
from tables import Table

from saver import END, Campaign, Episode, Guardrail, Mdp, Problem, SubGaussian, Unknown, data
from saver.estimate import Log
from saver.problem import Bounded

ABOUT = """
Campaigns of `saver-opt` that begin with a log of the baseline, transitions unknown, one guardrail of
complaints (`alpha`, a cost, 0 or 1, the baseline's learned from the log): the share of baseline episodes with
the ledger of returns alone (`returns`), and with what the log shows of policies beside it (`with the log`);
{} campaigns each, of {} episodes, each with a log and a target of its own. `kept` is how many kept the
promise. `shown` is what the log shows of the target in the middle campaign: an episode of it is worth at
least so much above what is required.
"""
NAMED = """
Two worlds of the sizes in which the ledger of returns alone played 99.8 % and 99.6 % baseline. `error`: the
root of the mean squared error of the estimate after the campaign, over {} campaigns; `known`, that where the
collector was told the true transitions, its data estimated in the same way (as if these were unknown);
`told`, that of the collector that was told them and whose estimate uses them too: what the log's own moves
leave open is gone then, which no way of collecting can do. `of the log` is the error before the campaign.
"""
RUNS, EPISODES, ERRORS = 2, 300, 20
GRID = [(4, 3), (8, 4), (16, 8), (64, 20)]  # states, horizon


class World(NamedTuple):
    """A shop with a target, and what its baseline costs."""

    shop: Shop
    target: Any

    @classmethod
    def drawn(cls, states: int, actions: int, horizon: int, seed: int, end: float) -> World:
        """The target is half the baseline and half another policy; complaints are rarer where it goes."""
        shop = Shop.drawn(states, actions, horizon, seed, end)
        rng = np.random.default_rng((seed, 1))
        other = rng.dirichlet(np.full(actions, 2.0), states)
        complaint = np.clip(shop.complaint * rng.uniform(0.1, 0.4), 0.005, 0.2)
        return cls(replace(shop, complaint=complaint), 0.5 * shop.policy + 0.5 * other)

    def problem(self, alpha: float) -> Problem:
        """Without a log."""
        S, A = self.shop.reward.shape
        rail = Guardrail("complaint", Bounded(0, 1), alpha=alpha, cost=True)
        mdp = Unknown(S, A, self.shop.horizon)
        reward = SubGaussian(1.0, -2.0, 4.0)
        return Problem(mdp, self.target, self.shop.policy, guardrails=(rail,), reward=reward)

    def told(self, alpha: float) -> Problem:
        """With the transitions known: the end is a state more."""
        shop = self.shop
        S, A = shop.reward.shape
        P = np.zeros((S + 1, A, S + 1))
        P[:S] = shop.P
        more = np.vstack([shop.policy, np.eye(A)[:1]]), np.vstack([self.target, np.eye(A)[:1]])
        mdp = Mdp(P, shop.horizon, start=np.append(shop.start, 0.0), terminal=(S,))
        return replace(self.problem(alpha), mdp=mdp, baseline=more[0], target=more[1])

    def log(self, episodes: int, seed: int) -> Any:
        """Of the baseline."""
        table = self.shop.log(episodes, seed)
        names = [f"page-{s:02d}" for s in range(len(self.shop.start))]
        read = data.read_log(table, next_state="next_state", guardrails=["complaint"])
        return self.numbered(read, names)

    def numbered(self, read: Any, names: list[str]) -> Any:
        """With the world's numbers in the place of the labels that occur."""
        states = np.array([names.index(label) for label in read.state_labels])
        A = self.shop.reward.shape[1]
        actions = np.array([[f"offer {chr(97 + a)}" for a in range(A)].index(x) for x in read.action_labels])
        finals = np.where(read.final_states >= 0, states[np.maximum(read.final_states, 0)], read.final_states)
        labels = {
            "state_labels": tuple(names),
            "action_labels": tuple(f"offer {chr(97 + a)}" for a in range(A)),
        }
        return replace(
            read, states=states[read.states], actions=actions[read.actions], final_states=finals, **labels
        )


def episode_of(world: World, trial: Any, rng: Any) -> Episode:
    """One in the world."""
    shop, S = world.shop, len(world.shop.start)
    s, steps = int(rng.choice(S, p=shop.start)), []
    for t in range(shop.horizon):
        a = trial.act(t, s)
        complaint = float(rng.random() < shop.complaint[s, a])
        steps.append((s, a, rng.normal(shop.reward[s, a], 1.0), complaint))
        s = min(int(np.searchsorted(np.cumsum(shop.P[s, a]), rng.random())), S)
        if s == S:
            break
    states, actions, rewards, complaints = zip(*steps, strict=True)
    return Episode(states, actions, rewards, complaints, final_state=END if s == S else s)


def played(
    world: World, problem: Problem, history: Any, episodes: int, seed: int
) -> tuple[Any, list[Episode], float]:
    """A campaign, what it collected, and its worst true budget."""
    campaign = Campaign(problem, "saver-opt", episodes, history=history, seed=seed, keep="episodes")
    rng, collected = np.random.default_rng((seed, 2)), []
    shop = world.shop
    base = shop.value(shop.policy, shop.complaint)
    (rail,), budget, worst, worths = problem.rails, 0.0, 0.0, {}
    for _ in range(episodes):
        trial = campaign.ask()
        seen = episode_of(world, trial, rng)
        key = trial.follows.key
        if key not in worths:
            worths[key] = base if trial.kind == "baseline" else value_of(world, trial.policy)
        budget += rail.sign * worths[key] - rail.required_at(rail.sign * base)
        worst = min(worst, budget)
        collected.append(seen)
        told = seen.but(final_state=None) if problem.mdp.known else seen
        campaign.tell(trial, told)
    return campaign, collected, worst


def value_of(world: World, policy: Any) -> float:
    """Complaints of a policy, [S, A] or [L, S, A]."""
    shop = world.shop
    S, L = len(shop.start), shop.horizon
    table = np.broadcast_to(policy, (L, *policy.shape[-2:]))[:, :S]
    V = np.zeros(S + 1)
    for t in reversed(range(L)):
        V[:S] = np.sum(table[t] * (shop.complaint + shop.P @ V), axis=1)
    return float(shop.start @ V[:S])


def share(campaign: Any) -> float:
    """Of baseline episodes."""
    return float(campaign.budget.baseline_episodes / campaign.budget.episodes)


def row(states: int, horizon: int, alpha: float, episodes: int) -> tuple[Any, ...]:
    """Both ledgers."""
    from saver.collect.showing import recall

    shares: dict[bool, list[float]] = {True: [], False: []}
    kept, shown = 0, []
    for seed in range(RUNS):
        world = World.drawn(states, 3 if states < 64 else 4, horizon, seed, 0.25 if states < 64 else 0.1)
        problem = world.problem(alpha)
        history = recall(problem, world.log(episodes, seed))
        found = history.shown
        shown.append(np.nan if found is None else float(found.floors["complaint"][0]))
        for looks in (True, False):
            past = history if looks else replace(history, shown=None)
            campaign, _, worst = played(world, problem, past, EPISODES, seed)
            shares[looks].append(share(campaign))
            kept += worst >= -1e-9
    means = float(np.mean(shares[False])), float(np.mean(shares[True]))
    return states, horizon, alpha, f"{episodes:,}", *means, f"{kept} of {2 * RUNS}", float(np.median(shown))


def error(found: list[float]) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(np.square(found))))


def off(problem: Problem, log: Any, collected: list[Episode]) -> float:
    """The value of the target, by the log and what was collected."""
    both = Log(problem.mdp, problem.first)
    both.extend(log)
    for one in collected:
        both.add(one)
    return float(both.estimate("certainty").value)


def named(
    name: str, sizes: tuple[int, int, int], alpha: float, logged: int, episodes: int
) -> tuple[Any, ...]:
    """Errors and shares in one world."""
    shares: dict[str, list[float]] = {"log": [], "returns": []}
    errors: dict[str, list[float]] = {"log": [], "known": [], "told": [], "alone": []}
    for seed in range(ERRORS):
        world = World.drawn(*sizes, 0, 0.3)
        truth = world.shop.value(world.target, world.shop.reward)
        log = world.log(logged, seed + 100)
        problem, told = world.problem(alpha), world.told(alpha)
        past = [Episode(*one) for one in log]
        of = {"log": (problem, log), "known": (told, past)}
        if seed < 3:
            from saver import History

            campaign, _, _ = played(world, problem, History.of(problem, log), episodes, seed)
            shares["returns"].append(share(campaign))
        for which, (asked, history) in of.items():
            campaign, collected, _ = played(world, asked, history, episodes, seed)
            if which == "log":
                shares["log"].append(share(campaign))
            else:
                errors["told"].append(campaign.estimate().value - truth)
            errors[which].append(off(problem, log, collected) - truth)
        errors["alone"].append(off(problem, log, []) - truth)
    e = {which: error(found) for which, found in errors.items()}
    means = float(np.mean(shares["returns"])), float(np.mean(shares["log"]))
    ratio = e["log"] / e["known"]
    return name, alpha, f"{logged:,}", episodes, *means, e["alone"], e["log"], e["known"], ratio, e["told"]


def table() -> Table:
    """Both tables."""
    rows = [
        row(states, horizon, alpha, episodes)
        for states, horizon in GRID
        for alpha in (0.05, 0.1, 0.2, 0.4)
        for episodes in (100, 1000, 10_000)
    ]
    worlds = [
        named("4 states, 4 actions, 6 steps", (4, 4, 6), 0.4, 20_000, 1500),
        named("6 states, 3 actions, 8 steps", (6, 3, 8), 0.35, 10_000, 600),
    ]
    columns = ("world", "alpha", "log", "episodes", "returns", "with the log")
    errors = ("error of the log", "error", "known", "error / known", "told")
    more = Table("Two worlds", NAMED.format(ERRORS), (*columns, *errors), worlds)
    grid = ("states", "horizon", "alpha", "log", "returns", "with the log", "kept", "shown")
    return Table("logged", ABOUT.format(RUNS, EPISODES), grid, rows, [more])


if __name__ == "__main__":
    sys.stdout.write(str(table().write()) + "\n")
