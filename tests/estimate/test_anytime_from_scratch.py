"""Asks, tells, cuts, losses and cancels in any order: sums of the interval at all times, made anew."""

import itertools
import warnings

import numpy as np
import pytest
from models import random_graph, random_policy

from saver import Bounded, Campaign, Gaussian, Player, Problem, Scenario, SubGaussian, World
from saver.collect.events import Abandoned, Asked, Cancelled, Told
from saver.errors import AssumptionWarning
from saver.kernels.bounds.noise import EIGHT, log_sets, most_visits, unseen
from saver.play.policy import Policy
from saver.problem.bellman import by_step

pytestmark = pytest.mark.slow

EPISODES = 60


def scenario(seed, bounded):
    mdp = random_graph(seed, discount=0.8)
    rng, shape = np.random.default_rng(seed), (mdp.states, mdp.actions)
    mean, scale = rng.random(shape), rng.uniform(0.05, 0.3, shape)
    reward = Bounded(mean - 4.0, mean + 4.0) if bounded else SubGaussian(scale, mean - 1.0, mean + 1.0)
    world = World(mdp, Gaussian(mean, scale**2), Gaussian(np.full(shape, 0.5), 0.01))
    baseline = np.eye(mdp.actions)[np.zeros(mdp.states, dtype=int)]
    problem = Problem(
        mdp, random_policy(rng, *shape), baseline, alpha=0.5, constraint=SubGaussian(0.1), reward=reward,
        baseline_value=world.constraint_value(baseline),
    )  # fmt: skip
    return Scenario("graph", world, problem, EPISODES)


def story(campaign, world, seed):
    """Trials told out of order, cut off, lost and cancelled; some stay out."""
    rng, player, out = np.random.default_rng(seed), Player(world, seed), []
    for _ in range(EPISODES - 10):
        out.append(campaign.ask())
        while len(out) > 5 or (out and rng.random() < 0.4):
            trial = out.pop(int(rng.integers(len(out))))
            fate, episode = rng.random(), player.run(trial)
            if fate < 0.15:
                with warnings.catch_warnings():  # by lot
                    warnings.simplefilter("ignore", AssumptionWarning)
                    campaign.abandon(trial) if fate < 0.1 else campaign.cancel(trial)
            elif fate < 0.25 and len(episode) > 1:
                columns = (episode.states, episode.actions, episode.rewards, episode.constraints)
                campaign.tell(trial, *(column[:1] for column in columns), complete=False)
            else:
                campaign.tell(trial, episode)


def heaviest(mdp, behaviour, squares):
    """The largest sum of `squares` over every path that can happen, by going through all of them."""
    P, best = mdp.transitions.toarray().reshape(mdp.states, mdp.actions, mdp.states), 0.0
    paths = [(int(s), 0.0) for s in np.flatnonzero(mdp.start)]
    for t in range(mdp.horizon):
        following = []
        for (s, total), a in itertools.product(paths, range(mdp.actions)):
            if behaviour[t, s, a] > 0.0 and mdp.available[s, a]:
                here = total + squares[s, a]
                best = max(best, here)
                following += [(int(to), here) for to in np.flatnonzero(P[s, a]) if to not in mdp.terminal]
        paths = following
    return best


class Slow:
    """What happened, trial by trial, and the sums of any of them."""

    def __init__(self, campaign):
        self.setup, self.keeper = campaign._setup, campaign._setup.anytime["target"]
        self.mdp, self.trials, weights = campaign.problem.mdp, {}, None
        for event in campaign.events:
            if isinstance(event, Asked):
                weights = event.tickets["rewards target"] or weights
                self.trials[event.number] = {"weights": weights, "event": event, "fate": "out"}
            elif isinstance(event, Told):
                whole = event.complete or not self.keeper.hostile
                self.trials[event.number] |= {"fate": "told" if whole else "hidden", "episode": event.episode}
            elif isinstance(event, Abandoned | Cancelled):
                self.trials[event.number]["fate"] = "hidden" if self.keeper.hostile else "gone"

    def play(self, trial):
        event = trial["event"]
        if event.policy == "baseline":
            policy = self.setup.baseline
        elif event.policy == "plan":
            policy = Policy(self.setup.stage.grid, trial["plan"].by_step, trial["plan"].rows)
        else:
            policy = self.setup.exploration()
        return self.setup.stage.play(policy), by_step(self.mdp, policy.table())

    def sums(self, numbers):
        """As plain numbers and arrays."""
        size = self.mdp.states * self.mdp.actions
        found = {name: np.zeros(size) for name in ("T", "total", "W", "V", "Q", "awaited", "walked", "most")}
        found |= dict.fromkeys(("gained", "drawn", "noise", "hidden", "hidden_noise", "asked"), 0.0)
        plan = None
        for number in sorted(self.trials):
            trial = self.trials[number]
            plan = trial["plan"] = trial["event"].plan or plan
            if number not in numbers or trial["fate"] == "gone":
                continue
            play, behaviour = self.play(trial)
            w, visits = trial["weights"].w, play.visits.ravel()
            found["asked"] += 1
            found["awaited"] += visits
            if trial["fate"] != "told":
                squares = (w * self.keeper.numbers.scale) ** 2
                found["hidden"] += 1
                found["hidden_noise"] += heaviest(self.mdp, behaviour, squares.reshape(play.visits.shape))
                found["most"] += np.where(visits > 0, self.keeper.most, 0.0)
                continue
            episode = trial["episode"]
            for s, a, r in zip(episode.states, episode.actions, episode.rewards, strict=True):
                p = s * self.mdp.actions + a
                spread = self.keeper.numbers.scale[p]
                if self.keeper.bounded:
                    spread = r - trial["weights"].guess[p]
                found["T"][p] += 1
                found["walked"][p] += 1
                found["total"][p] += r
                found["W"][p] += w[p]
                v = trial["weights"].v[p]
                found["V"][p] += v
                found["Q"][p] += v**2
                found["drawn"] += v * r
                found["gained"] += w[p] * r
                found["noise"] += (w[p] * spread) ** 2
        return found


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("losses", ["hostile", "random"])
@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_the_trials_that_count(seed, losses, bounded):
    made = scenario(seed, bounded)
    campaign = Campaign(made.problem, "on-policy", EPISODES, losses=losses, keep="episodes", seed=seed)
    story(campaign, made.world, seed + 10)
    slow, keeper, book = (
        Slow(campaign),
        campaign._setup.anytime["target"],
        campaign._state.books["rewards target"],
    )
    out = [number for number, trial in slow.trials.items() if trial["fate"] == "out"]
    assert out
    told = {number for number, trial in slow.trials.items() if trial["fate"] == "told"}
    before = {number for number in slow.trials if number < min(out)}
    cases = [(book.first, before if losses == "hostile" else told)]
    if losses == "hostile":
        cases.append((keeper.told(book, hiding=True), set(slow.trials)))
    for tally, numbers in cases:
        wanted = slow.sums(numbers)
        for name in (
            "T",
            "total",
            "W",
            "V",
            "Q",
            "gained",
            "drawn",
            "noise",
            "asked",
            "hidden",
            "hidden_noise",
        ):
            np.testing.assert_allclose(getattr(tally, name), wanted[name], rtol=1e-10, err_msg=name)
        if losses == "hostile" and numbers:
            own = keeper.bands(0.9)
            left = most_visits(wanted["awaited"], keeper.most, own.log_pairs) - wanted["walked"]
            hidden = np.maximum(0.0, np.minimum(wanted["most"], np.floor(left))) * (wanted["hidden"] > 0)
            np.testing.assert_allclose(keeper._hidden(tally, own), hidden)
            each = 0.1 * 0.1 / 2 / 2
            sets = log_sets(float(wanted["asked"]), float(wanted["hidden"]))
            noise = unseen(wanted["hidden_noise"], keeper.unit / EIGHT, np.log(each) - sets)
            assert keeper._hides(tally, 0.9) == pytest.approx(noise)


def test_weights_depend_on_nothing_that_comes_later():
    # The same story with other rewards of one trial: weights of all trials asked before it was told agree.
    made = scenario(1, bounded=False)
    found = []
    for shift in (0.0, 0.3):
        campaign = Campaign(made.problem, "on-policy", EPISODES, keep="episodes")
        player = Player(made.world, 5)
        for k in range(EPISODES):
            trial = campaign.ask()
            episode = player.run(trial)
            rewards = episode.rewards + (shift if k == 30 else 0.0)
            campaign.tell(trial, episode.states, episode.actions, rewards, episode.constraints)
        found.append(
            [event.tickets["rewards target"] for event in campaign.events if isinstance(event, Asked)]
        )
    for number, (one, two) in enumerate(zip(*found, strict=True), start=1):
        if one is not None and number <= 31:
            np.testing.assert_array_equal(one.w, two.w)
