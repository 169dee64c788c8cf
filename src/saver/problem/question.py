"""What is asked of the rewards: sums of their means, with weights of either sign.

The value of a policy is sum c(s,a) mean(s,a), the difference of two is the same with c - c_0. Several answers
at once have the total variance sum_i c_i^2 variance / T, which is that of one answer of the weights
`size` = sqrt(sum c_i^2).

On a tree, weights of any kind are those of a policy pi with other variances: in `design.tree`'s recursion

    M(s) = sum_a pi(a|s) sqrt(factor variance + discount^2 sum_s' P(s'|s,a) M(s')^2),

factor = (size / c_pi)^2, the visits of pi cancel from step to step, so any pi will do whose visits c_pi are
positive where size is: the design is the best for `size`. On a graph that is, as Algorithm 2 is, what would
be right on a tree. `reference` is such a policy: the target, if its value alone is asked, else the even
mixture of all policies that are asked about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saver._types import Floats
from saver.problem.bellman import by_step, occupancy, weights
from saver.problem.mdp import Mdp

ROUNDING = 1e-13
VALUE, DIFFERENCE = ESTIMANDS = ("value", "difference")


@dataclass(frozen=True, eq=False)
class Question:
    """Weights of means.

    Attributes:
        weights: of each answer, by the name of its target, [S, A] each.
        size: sqrt of the sum of their squares, [S, A].
        reference: a policy that visits all pairs that have weight, [S, A], or [L, S, A] by step.
        factor: (size / weights of the reference)^2, [S, A]; 1 where a value alone is asked.
    """

    weights: dict[str, Floats]
    size: Floats
    reference: Floats
    factor: Floats

    @property
    def first(self) -> Floats:
        """The weights of the first answer."""
        return next(iter(self.weights.values()))


def question(mdp: Mdp, targets: dict[str, Floats], baseline: Floats, estimand: str) -> Question:
    """What is asked about these targets in this model."""
    asked = {
        name: difference(mdp, policy, baseline) if estimand == DIFFERENCE else weights(mdp, policy)
        for name, policy in targets.items()
    }
    policies = [*targets.values(), *([baseline] if estimand == DIFFERENCE else [])]
    if len(policies) == 1:
        (c,) = asked.values()
        return Question(asked, c, policies[0], np.ones(c.shape))
    size = np.sqrt(sum(c**2 for c in asked.values()))
    reference = mixture(mdp, policies)
    usual = weights(mdp, reference)
    factor = np.divide(size, usual, out=np.zeros(size.shape), where=usual > 0.0) ** 2
    return Question(asked, size, reference, factor)


def difference(mdp: Mdp, target: Floats, against: Floats) -> Floats:
    """c - c_0 of two policies, [S, A]; 0 where nothing but rounding is left."""
    c, c_0 = weights(mdp, target), weights(mdp, against, "against")
    return np.where(np.abs(c - c_0) > ROUNDING * (c + c_0), c - c_0, 0.0)


def mixture(mdp: Mdp, policies: list[Floats]) -> Floats:
    """The policy that visits as if each episode were of one of these, chosen evenly: [S, A] if it can be."""
    if mdp.horizon == 1:
        found: Floats = np.mean([by_step(mdp, policy)[0] for policy in policies], axis=0)
        return found
    flow = np.mean([occupancy(mdp, policy) for policy in policies], axis=0)
    mass = flow.sum(axis=2, keepdims=True)
    return np.where(mass > 0.0, flow / np.where(mass > 0.0, mass, 1.0), by_step(mdp, mdp.uniform))
