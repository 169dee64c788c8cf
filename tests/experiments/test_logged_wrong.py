"""What is wrong in campaigns that begin with a log, and that their audit must find.

What is wrong in one place stands in for what is right. Of five times it must be found three times: beyond
chance, by the exact binomial distribution. What is right is not found.
"""

from dataclasses import replace

import numpy as np
import pytest

from saver.collect import Collector, showing
from saver.safety import modelfree, shown as looking
from saver.safety.certified import Certified
from saver.safety.modelfree import LOG, ModelFree
from saver.safety.shown import Worth
from saver.simulator import Feedback
from saver_audit import logged
from saver_audit.judge import ERROR, tail
from saver_audit.logged import MANNERS, ROUND, Case, World, counted, problem_of, too_high
from saver_audit.loggedworlds import arms, disasters, hidden, plain, to

pytestmark = pytest.mark.slow

TIMES, ENOUGH, LOGS, CAMPAIGNS = 5, 3, 8, 6
WIDE = 0.99  # a delta at which floors fail often enough to be judged by few logs


def case_of(world, delta=WIDE, near=0.98, logged=600, episodes=30, **more):
    said = {"way": "allowance", "value": "given", "manner": "at once"} | more
    return Case(world, near, delta=delta, logged=logged, episodes=episodes, **said)


def by_floors(world, case):
    """Whether logs show too much beyond chance, of each time."""

    def found(time):
        above = sum(too_high(case, world, (time, i)) for i in range(LOGS))
        return tail(LOGS, above, LOG * case.delta) < ERROR

    return found


def by_campaigns(world, case):
    """Whether campaigns break their promise beyond chance, of each time."""

    def found(time):
        ended = counted(case, world, range(CAMPAIGNS), time)
        return tail(CAMPAIGNS, int(np.sum(ended.worst < -ROUND)), case.delta) < ERROR

    return found


def times(found):
    """How often of TIMES; who has been found often enough is not looked for any more."""
    so_far = 0
    for time in range(TIMES):
        so_far += found(time)
        if so_far == ENOUGH:
            break
    return so_far


# -- what is wrong -------------------------------------------------------------------------------------------


def stops_add_nothing(patch):
    right = Worth.of.__func__

    def of(cls, *given):
        one = right(cls, *given)
        return replace(one, least=one.V)

    patch.setattr(Worth, "of", classmethod(of))


def clipped(patch):
    def summed(self, log, most, fall):
        found, w, g = self.V[0][log.states[:, 0]], np.ones(len(log)), log.discount
        for t in range(log.x.shape[1]):
            s, a, onward = log.states[:, t], log.actions[:, t], log.states[:, t + 1]
            on = s < self.V.shape[1] - 1
            w = np.where(on, np.minimum(w * self.ratio[t, s, a], most), w)
            e = log.x[:, t] + g * self.V[t + 1, onward] - self.Q[t, s, a]
            found = found + np.where(on, g**t * w * e, 0.0)
        return found

    patch.setattr(Worth, "summed", summed)


def bottom_too_high(patch):
    patch.setattr(Worth, "bottom", lambda self, most, fall, low, g: float(self.V[0, 0]) - 0.05)


def second(many):
    """The rows of the part that shows something."""
    rows = showing.places_of(many)
    return many.select(rows >= int(showing.FIRST * len(many)))


def chosen_by_the_second_part(patch):
    """In each state of one step what did best there."""
    right = showing.shown

    def shown(problem, many, designs=True):
        part, S, A = second(many), problem.mdp.states, problem.mdp.actions
        sums, counts = np.zeros((2, S, A))
        np.add.at(sums, (part.states, part.actions), part.constraints["constraint"])
        np.add.at(counts, (part.states, part.actions), 1.0)
        best = np.eye(A)[(sums / np.maximum(counts, 1.0)).argmax(axis=1)][None]
        patch.setattr(showing, "policies", lambda *_: showing.Chosen(["the best"], [best]))
        return right(problem, many, designs)

    patch.setattr(showing, "shown", shown)


MANY = 250


def not_split(patch):
    """As if each of many policies had all of the level."""
    rng = np.random.default_rng(0)
    tables = [np.eye(2)[rng.integers(2, size=(1, STATES))] for _ in range(MANY)]
    patch.setattr(showing, "policies", lambda *_: showing.Chosen(["one"] * MANY, tables))
    patch.setattr(showing, "LOG", LOG * MANY)
    quickly(patch)


def quickly(patch):
    """Two looks with one rate, and less precise floors; none is hopeless."""
    patch.setattr(looking, "SPREAD", (1.0,))
    patch.setattr(looking, "MOST", (3.0,))
    patch.setattr(looking, "FALLS", (8.0,))
    patch.setattr(looking, "HALVINGS", 20)
    patch.setattr(showing, "HOPELESS", 1e9)


def of_another(patch):
    right = modelfree.floors_of

    def floors_of(terms):
        found = right(terms)
        return dict.fromkeys(found, max(found.values(), default=0.0))

    patch.setattr(modelfree, "floors_of", floors_of)


def lost_together(patch):
    patch.setattr(ModelFree, "counts_as", Certified.counts_as)


def unmeasured_left_out(patch):
    right = showing.shown

    def shown(problem, many, designs=True):
        lost = np.isnan(many.constraints["constraint"][many.offsets[:-1]])
        return right(problem, many.select(~lost), designs)

    patch.setattr(showing, "shown", shown)


# -- where it shows ------------------------------------------------------------------------------------------

STATES = 40


def even():
    """One step in one of many states, where all actions are alike."""
    start, mean = np.full(STATES, 1.0 / STATES), ("coin", np.full((STATES, 2), 0.5))
    policies = [[0.5, 0.5]] * STATES, [[1.0, 0.0]] * STATES
    return plain(to(STATES, [[STATES] * 2] * STATES), {"constraint": mean}, *policies, horizon=1, start=start)


class Selected(World):
    """Nobody measures what went wrong."""

    def log(self, rng, n):
        many = super().log(rng, n)
        seen = np.array(many.constraints["constraint"])
        wrong = many.returns(seen, 1.0) < self.horizon - 1
        seen[np.repeat(wrong, many.lengths)] = np.nan
        return replace(many, constraints={"constraint": seen})


def selected():
    return Selected(**vars(disasters("constraint", 0.1, 0.3)))


def turns():
    """Only the first of two steps decides where an episode goes: who swaps two actions goes elsewhere."""
    means = [[0.9, 0.9], [0.95, 0.95], [0.3, 0.3]]
    policies = [[0.7, 0.3]] * 3, [[[0.0, 1.0]] * 3, [[1.0, 0.0]] * 3]
    moves = to(3, [[1, 2], [1, 1], [2, 2]])
    return plain(moves, {"constraint": ("coin", means)}, *policies, horizon=2)


def swapped(world, case):
    """Also with the other order as a target."""
    problem = problem_of(world, case)
    return replace(problem, target={"one": world.target, "other": world.target[::-1]})


def in_turn(statistics):
    """Both targets."""
    return statistics.problem.targets["one" if statistics.episode % 2 == 0 else "other"]


IN_TURN = Collector(design=in_turn, replan=1.001, explore="none", track="sample")
WRONG = {
    "a stop that adds nothing": (stops_add_nothing, by_floors, hidden, case_of("", logged=2000)),
    "weights clipped": (clipped, by_floors, hidden, case_of("", logged=2000)),
    "bottom too high": (
        bottom_too_high, by_floors, lambda: disasters("constraint", 0.05), case_of("", logged=1500),
    ),
    "chosen by the second part": (chosen_by_the_second_part, by_floors, even, case_of("", logged=600)),
    "the level not split": (not_split, by_floors, even, case_of("", value="learned", logged=400)),
    "floors of another policy": (of_another, by_campaigns, arms, case_of("", 0.05, 0.9)),
    "lost trials of other lows": (
        lost_together, by_campaigns, turns,
        case_of("", 0.05, 0.8, manner="most lost, by chance", collector=IN_TURN, episodes=90),
    ),
    "unmeasured ones left out": (unmeasured_left_out, by_floors, selected, case_of("")),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name, monkeypatch):
    wrong, found, make, case = WRONG[name]
    monkeypatch.setitem(MANNERS, "most lost, by chance", Feedback(lose=0.8))
    if make is turns:
        monkeypatch.setattr(logged, "problem_of", swapped)
    look = found(make(), case)
    if name == "the level not split":
        quickly(monkeypatch)
    assert not look(0)
    wrong(monkeypatch)
    assert times(look) >= ENOUGH
