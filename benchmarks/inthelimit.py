"""Intervals and verdicts where nothing is declared about rewards, looked at after every episode.

1,000 campaigns a row, on a bandit whose arms have rewards of one law: the target, which takes all alike, is
worth as much as the baseline, which takes the first. `asked`: "compare", the difference, which is 0, so
that every "better" and every "worse" is an error; "value", the target's own. `from the first` is the share of
campaigns in which some look has the truth outside of the 95 % interval that is right in the limit; `wrong`
the share if there is none before its start, 1,183 episodes and as many samples of each arm, as `estimate` and
`compare` do it; `stopped wrong` the share in which it is wrong at the first look at which it is at most 1.2
times as wide as the narrowest of half of the campaigns: what somebody gets who stops by hand. `by chance` is
the probability of as many `wrong` or more if each is so with probability .05: BEYOND if that is below .001.
`begun` is the share of campaigns that had an interval at the end, `half` the median of half its length then,
over the standard deviation of a reward. `Precise` is refused where nothing is declared. Rows with `declared`
have the rigorous interval, from the first episode on; lognormal rewards have no promise that holds.

Played in the compiled engine, whose intervals are those of `Campaign` (tests/estimate/test_in_the_limit.py).

Skewness: coins of .5, .05 and .02 have 0, 4.1 and 6.9, normal rewards 0, lognormal ones 6.2 (20,000 quantiles
of exp of a standard normal; 6.0 of these). A coin of .002 has 22, beyond what the start was derived for: its
rows are there to show what no start can repair, and are not judged.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom
from tables import Table

import saver
from saver.errors import InvalidProblem
from saver.estimate.asymptotic import stretched
from saver.problem import Bernoulli, Bounded, Gaussian, Problem, Scenario, SubGaussian, World
from saver.problem.world import Empirical
from saver.scenarios.assembly import bandit_model

RUNS, CHUNK, LEVEL, CHANCE = 1000, 250, 0.95, 1e-3
STOP, MOST, MANY = 1.2, 5, ("coin .02", "lognormal")
SHORT, LONG = 4000, 20_000
DECLARED = {"coin .5": Bounded(0.0, 1.0), "coin .05": Bounded(0.0, 1.0), "coin .02": Bounded(0.0, 1.0),
            "normal": SubGaussian(1.0, -5.0, 5.0)}  # fmt: skip
BEYOND = "coin .002"


def laws() -> dict[str, Any]:
    """Of rewards, all arms alike."""
    coins = {
        f"coin {p:g}".replace("0.", "."): Bernoulli(np.full((1, MOST), p)) for p in (0.5, 0.05, 0.02, 0.002)
    }
    rare = {BEYOND: coins.pop(BEYOND)}
    lognormal = np.exp(ndtri((np.arange(20_000) + 0.5) / 20_000))
    normal = Gaussian(np.zeros((1, MOST)), np.ones((1, MOST)))
    return {**coins, "normal": normal, "lognormal": Empirical([[lognormal] * MOST]), **rare}


def null(law: Any, asked: str, reward: Any = None, episodes: int = 4000, arms: int = 2) -> Scenario:
    """Arms that differ in nothing; the guardrail is wide open."""
    mdp = bandit_model(arms)
    problem = Problem(
        mdp, np.full((1, arms), 1 / arms), np.eye(1, arms), alpha=0.9, baseline_value=0.5,
        constraint=Bounded(0.0, 1.0), reward=reward, estimand="difference" if asked == "compare" else "value",
    )  # fmt: skip
    world = World(mdp, of_arms(law, arms), Bernoulli(np.full((1, arms), 0.5)))
    return Scenario("null", world, problem, episodes)


def of_arms(law: Any, arms: int) -> Any:
    """The law of so many of the arms."""
    if isinstance(law, Empirical):
        return Empirical([row[:arms] for row in law.samples])
    if isinstance(law, Bernoulli):
        return Bernoulli(law.mean[:, :arms])
    return Gaussian(law.mean[:, :arms], law.variance[:, :arms])


def missed(found: Any) -> tuple[Any, Any, Any]:
    """Of each campaign: whether it was ever wrong from the first look; from the start; when stopped."""
    low, high, value = found.anytime_low, found.anytime_high, found.true_value
    wrong = (value < low) | (value > high)
    half = (high - low) / 2
    first = np.argmax(half <= STOP * np.median(half.min(axis=1)), axis=1)
    ends = found.interval(LEVEL)
    factor = stretched(found.checkpoints, int(found.checkpoints[-1]), LEVEL)
    with np.errstate(invalid="ignore"):
        below, above = (found.estimates + factor * (end - found.estimates) for end in ends)
        early = np.any((value < below) | (value > above), axis=1)
    return early, np.any(wrong, axis=1), wrong[np.arange(len(wrong)), first]


def row(
    name: str, law: Any, asked: str, collector: str, reward: Any, K: int, every: int, arms: int = 2
) -> list[Any]:
    scenario, parts, begun, half = null(law, asked, reward, K, arms), [], [], []
    for chunk in range(RUNS // CHUNK):
        points = np.arange(every, K + 1, every)
        found = saver.simulate(
            scenario, collector, runs=CHUNK, seed=1000 + chunk, checkpoints=points, threads=1
        )
        parts.append(np.array(missed(found)))
        length = (found.anytime_high - found.anytime_low)[:, -1] / 2
        begun.append(np.isfinite(length))
        half.append(length / np.sqrt(law.variance[0, 0]))
    early, wrong, stopped = np.concatenate(parts, axis=1).mean(axis=1)
    chance = binom.sf(round(wrong * RUNS) - 1, RUNS, 1.0 - LEVEL)
    declared = "no" if reward is None else type(reward).__name__
    line = [
        name, arms, asked, collector, declared, K, every,
        "-" if reward is not None else f"{early:.3f}", f"{wrong:.3f}", f"{stopped:.3f}",
        f"{chance:.2g}", f"{np.concatenate(begun).mean():.2f}", f"{np.median(np.concatenate(half)):.3g}",
        "not judged" if name == BEYOND else "BEYOND" if chance < CHANCE else "kept",
    ]  # fmt: skip
    print(*line, file=sys.stderr, flush=True)
    return line


def refusal() -> list[Any]:
    """What a campaign says to `Precise`."""
    problem = null(laws()["normal"], "value").problem
    try:
        saver.Campaign(problem, "saver", 4000, until=saver.Precise(0.05))
    except InvalidProblem:
        return ["all", "all", "Precise", "all", "no", *["-"] * 8, "refused"]
    raise AssertionError("Precise was not refused")


def table() -> Table:
    rows = []
    for name, law in laws().items():
        rows += [row(name, law, asked, "saver", None, SHORT, 1) for asked in ("compare", "value")]
        rows.append(row(name, law, "value", "on-policy", None, SHORT, 1))
        rows.append(row(name, law, "value", "saver", None, LONG, 10))
        if name in MANY:
            rows += [row(name, law, asked, "saver", None, LONG, 20, MOST) for asked in ("compare", "value")]
        if name in DECLARED:
            rows += [
                row(name, law, asked, "saver", DECLARED[name], 2000, 5) for asked in ("compare", "value")
            ]
    columns = ("rewards", "arms", "asked", "collector", "declared", "K", "a look every", "from the first",
               "wrong", "stopped wrong", "by chance", "begun", "half", "verdict")  # fmt: skip
    return Table("inthelimit", __doc__ or "", columns, [*rows, refusal()])
