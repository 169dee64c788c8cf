"""What a forecast takes to be so: a world with known transitions, and what comes back of the trials.

Of logged episodes that is the world as they show it. And where a problem's promises do not fit its world.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from saver._types import Floats
from saver.collect.frequencies import answers
from saver.design.closed import going_on
from saver.errors import InvalidProblem
from saver.estimate.log import seen_moves
from saver.estimate.recursion import Moves, prices
from saver.kernels.believing import average
from saver.problem import Bounded, Law, Mdp, Problem, Scenario, SubGaussian, World, checks, value, visits
from saver.problem.bellman import question
from saver.problem.guardrail import Rail, negated
from saver.problem.moments import Moments
from saver.problem.world import Bernoulli, Empirical, Gaussian
from saver.safety import LOSSES, ORDERS

EPISODES = 1000  # by default, where no scenario says how many
CLOSE = 1e-6  # relative
OUTSIDE = "{name} has a {what} mean of {mean:.4g}, outside the promised range [{floor:g}, {ceiling:g}]"
WILD = "a {what} of {name} has standard deviation {sd:.4g}, more than the promised noise scale {scale:g}"
COIN = "a {what} of {name} is 0 or 1 and needs a noise scale of {coin:.4g}, more than the promised {scale:g}"
UNBOUNDED = (
    "a {what} of {name} may be anything from {least:.4g} to {most:.4g}, not only in the promised "
    "[{low:g}, {high:g}]"
)


@dataclass(frozen=True)
class Delivery:
    """What will come back, and in which words a campaign is told so."""

    lost: float = 0.0  # the share of trials of which nothing is ever told; they are abandoned in their turn
    out: int = 1  # how many are out at once, the next one included; they are told in the order of asking
    losses: str = "hostile"  # what the campaign declares about who chooses the lost ones, or "random"
    order: str = "any"  # what it declares about the order in which trials start, or "asked"
    ran: bool = False  # lost trials are known to have run

    def __post_init__(self) -> None:
        lost = checks.between("losses", self.lost, 0.0, 1.0, closed=(True, False))
        object.__setattr__(self, "lost", lost)
        object.__setattr__(self, "out", checks.whole("out", self.out, 1))
        checks.choice("declared", self.losses, LOSSES)
        checks.choice("order", self.order, ORDERS)
        checks.flag("ran", self.ran)

    @property
    def told(self) -> float:
        """The share that is told."""
        return 1.0 - self.lost

    @property
    def hidden(self) -> float:
        """The share that may have been lost because of its outcome."""
        return self.lost if self.losses == "hostile" else 0.0

    @property
    def complete(self) -> bool:
        """Whether everything comes back at once."""
        return self.lost == 0.0 and self.out == 1

    def __str__(self) -> str:
        ran = ", known to have run" if self.ran else ""
        lost = f"{100 * self.lost:.3g} % of the trials lost ({self.losses}{ran})"
        order = "in any order" if self.order == "any" else "in the order of asking"
        late = "one trial at a time" if self.out == 1 else f"{self.out} out at once {order}"
        return f"{lost if self.lost else 'nothing lost'}, {late}"


AT_ONCE = Delivery()  # nothing is lost, and nothing is late


def believed_scenario(problem: Problem) -> tuple[Scenario, tuple[str, ...]]:
    """The world as its history shows it, and what had to be assumed for that.

    Pairs that the baseline never visits are taken to be like the average of those it does. Where transitions
    are unknown they are those seen.
    """
    history = problem.history
    if history is None or not history.episodes:
        raise InvalidProblem(
            "the problem has no history, and nothing can be foreseen of it; diagnose a saver.Scenario, or a "
            "problem with history=saver.History.of(problem, episodes)"
        )
    model, moves, rewards = problem.mdp, seen_moves(problem.mdp, history.sums), history.sums.rewards
    if not model.known:
        model = model.believed(moves.counts, moves.ends, moves.starts)
    size = question(model, problem.targets, problem.baseline, problem.estimand).size
    usual = visits(model, problem.baseline)
    laws = {}
    for rail in problem.rails:
        law = _as_seen(history.rails[rail.name].seen, usual)
        mean = rail.sign * np.clip(law.mean, rail.promise.floor, rail.promise.ceiling)
        laws[rail.name] = Gaussian(mean, law.variance)
    world = World(model, _as_seen(rewards, size), laws if len(laws) > 1 else next(iter(laws.values())))
    name, stated = f"history of {history.episodes:,} episodes", replace(problem, history=None)
    made, notes = known_twin(Scenario(name, world, stated, EPISODES), moves)
    taken = f"all is as {history.episodes:,} logged episodes show it"
    if lost := int(np.sum((size > 0.0) & (rewards.counts == 0))):
        taken += f"; {lost} pairs that the target needs are not in them, and are taken to be "
        taken += "like the average of the others"
    return made, (taken, *notes)


def known_twin(scenario: Scenario, moves: Moves | None = None) -> tuple[Scenario, tuple[str, ...]]:
    """A scenario with the transitions of its world known, whose program is that of the one given, and notes.

    Where they are unknown, rewards vary as much more as learning the moves costs: by Var[c r + u] / c^2 in
    the place of the variance, so that the program is the same. `moves` are those seen so far.
    """
    problem, world = scenario.problem, scenario.world
    if problem.mdp.known:
        return scenario, ()
    size = question(world.mdp, problem.targets, problem.baseline, problem.estimand).size
    mean, variance = world.reward.mean, world.reward.variance
    found = prices(world.mdp, answers(problem), mean, variance, moves)
    weight, notes = np.maximum(found.rewards + found.moves, 0.0), []
    if problem.mdp.start is None:
        notes.append(f"to each K * MSE the start adds {found.start:.4g}, whatever is collected")
    notes.append(
        "transitions are unknown: limits count learning them, but baseline episodes are foreseen as if "
        "they were known, and a campaign needs more of them"
    )
    variance = np.divide(weight, size**2, out=np.array(variance), where=size > 0.0)
    twin = replace(world, reward=Gaussian(mean, variance), outcome=None)
    return replace(
        scenario, world=twin, problem=replace(problem, mdp=world.mdp, reward=None, history=None)
    ), tuple(notes)


def _as_seen(seen: Moments, usual: Floats) -> Gaussian:
    """A law from what was seen of it.

    Means of pairs never seen are the average of the others, by how `usual` they are; variances of pairs seen
    less than twice are the average of the others.
    """
    often = seen.counts > 1
    middle = float(np.average(seen.variance[often], weights=seen.counts[often])) if often.any() else 1.0
    mean = np.where(seen.counts > 0, seen.mean, average(seen.mean, seen.counts, usual))
    return Gaussian(mean, np.where(often, seen.variance, middle))


def remarks(scenario: Scenario) -> tuple[str, ...]:
    """Where the problem's promises do not fit its world, and what cannot be met."""
    problem, world = scenario.problem, scenario.world
    mdp, found = problem.mdp, []
    for rail, law, mean in zip(problem.rails, scenario.laws, scenario.means, strict=True):
        found += _about_value(rail, value(world.mdp, problem.baseline, mean))
        told = negated(rail.promise) if rail.sign < 0.0 else rail.promise
        found += [f"{text}: the promise is void" for text in unkept(rail.name, law, told, mdp)]
    if problem.reward is not None:
        notes = unkept("reward", world.reward, problem.reward, mdp)
        found += [f"{text}: intervals that rest on it are void" for text in notes]
    if abs(world.mdp.transitions - mdp.transitions).max() > 0 or np.any(world.mdp.start != mdp.start):
        found.append("the world's transitions or start differ from the problem's model: the promise is void")
    if len(lost := np.setdiff1d(going_on(mdp), np.flatnonzero(mdp.reachable))):
        names = ", ".join(mdp.state_label(int(s)) for s in lost[:3]) + (", ..." if len(lost) > 3 else "")
        found.append(
            f"M(s) and H*(2)(s) are not defined in {len(lost)} of {mdp.states} states, because no behaviour "
            f"gets there within the horizon: {names}"
        )
    return tuple(found)


def _about_value(rail: Rail, true: float) -> list[str]:
    """Where a baseline value is not what the baseline earns; what it costs not to know it."""
    if rail.learned:
        return [f"the baseline value of {rail.name} is learned; what is predicted here takes it as known"]
    slack = CLOSE * max(abs(true), abs(rail.low), abs(rail.high))
    if rail.low - slack <= true <= rail.high + slack:
        return []
    end, void = rail.high, "the promise is about the smaller number and void for what the baseline earns"
    if true < rail.low:
        end, void = rail.low, "every baseline episode is credited too much, and the promise is void"
    said, earns = rail.sign * end, rail.sign * true
    return [f"baseline_value is {said:.6g}, but in this world the baseline earns {earns:.6g}: {void}"]


def unkept(what: str, law: Law, promise: SubGaussian | Bounded, mdp: Mdp) -> list[str]:
    """Where a law breaks a promise: each rule that is broken, at the pair that breaks it most."""
    scale, floor, ceiling, low, high = promise.tables(mdp)
    mean, sd, (least, most) = np.asarray(law.mean), np.sqrt(law.variance), _reach(law)
    met = mdp.available & mdp.reachable[:, None]
    slack = CLOSE * np.maximum(1.0, np.maximum(np.abs(floor), np.abs(ceiling)))
    rules = {OUTSIDE: np.maximum(floor - mean, mean - ceiling) - slack, WILD: sd - scale * (1 + CLOSE)}
    coin = _coin_scale(mean)
    if isinstance(law, Bernoulli) and not np.any(rules[WILD][met] > 0.0):
        rules[COIN] = coin - scale * (1 + CLOSE)
    if isinstance(promise, Bounded):
        rules[UNBOUNDED] = np.maximum(low - least, most - high) - slack
    tables, found = {"mean": mean, "sd": sd, "coin": coin, "least": least, "most": most, "scale": scale}, []
    tables |= {"floor": floor, "ceiling": ceiling, "low": low, "high": high}
    for text, excess in rules.items():
        s, a = divmod(int(np.argmax(np.where(met, excess, 0.0))), mdp.actions)
        if met[s, a] and excess[s, a] > 0.0:
            numbers = {name: table[s, a] for name, table in tables.items()}
            name = f"{mdp.action_label(a)} in {mdp.state_label(s)}"
            found.append(text.format(what=what, name=name, **numbers))
    return found


def _reach(law: Law) -> tuple[Floats, Floats]:
    """The smallest and the largest observation of each pair."""
    mean = np.asarray(law.mean)
    if isinstance(law, Gaussian):
        far = np.where(law.variance > 0, np.inf, 0.0)
        return mean - far, mean + far
    if isinstance(law, Bernoulli):
        return np.floor(mean), np.ceil(mean)
    if isinstance(law, Empirical):
        least, largest = (np.array([[of(x) for x in row] for row in law.samples]) for of in (np.min, np.max))
        return least, largest
    return mean, mean


def _coin_scale(p: Floats) -> Floats:
    """The least sub-Gaussian scale of coins, sqrt((1 - 2p) / (2 log((1 - p) / p))): Kearns and Saul, 1998."""
    x = np.abs(1.0 - 2.0 * p)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = np.sqrt(x / (4.0 * np.arctanh(x)))  # log((1 + x) / (1 - x)) = 2 artanh x
    return np.where(x > 0.0, scales, 0.5)
