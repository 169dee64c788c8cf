"""What a policy does in a known model: where it goes, what it earns, how that varies; what is asked of it.

Every function takes a policy as (S, A), or as (L, S, A) where it depends on the step.
A move that ends the episode leads to value 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.problem import checks
from saver.problem.checks import read_only
from saver.problem.mdp import Mdp
from saver.problem.moving import follow

NOTHING = np.zeros((0, 0, 0))
ROUNDING = 1e-13
VALUE, DIFFERENCE = ESTIMANDS = ("value", "difference")


def by_step(mdp: Mdp, policy: Floats) -> Floats:
    """A view of `policy` as [L, S, A]."""
    shape = (mdp.horizon, mdp.states, mdp.actions)
    return policy if policy.shape == shape else np.broadcast_to(policy, shape)


def powers(factor: float, steps: int) -> Floats:
    """factor^t, [steps]."""
    return np.ones(steps) if factor == 1.0 else np.array([factor**t for t in range(steps)])


def occupancy(mdp: Mdp, policy: ArrayLike) -> Floats:
    """x_t(s,a) = P(s_t = s, a_t = a), [L, S, A]."""
    pi = checks.policy(mdp, policy)
    x = np.zeros((mdp.horizon, mdp.states, mdp.actions))
    followed(mdp, pi, 1.0, x)
    return x


def visits(mdp: Mdp, behaviour: ArrayLike) -> Floats:
    """d(s,a) = sum_t P(s_t = s, a_t = a), the expected visits in one episode, [S, A]."""
    return followed(mdp, checks.policy(mdp, behaviour, "behaviour"), 1.0)


def weights(mdp: Mdp, target: ArrayLike, name: str = "target") -> Floats:
    """c(s,a) = sum_t discount^t P(s_t = s, a_t = a): the value is linear in the means with these, [S, A]."""
    return followed(mdp, checks.policy(mdp, target, name), mdp.discount)


def value(mdp: Mdp, policy: ArrayLike, mean: ArrayLike) -> float:
    """V = sum c(s,a) mean(s,a), the expected discounted return."""
    c = weights(mdp, policy, "policy")
    return float(np.sum(c * checks.shaped("mean", mean, c.shape)))


def values(mdp: Mdp, policy: ArrayLike, mean: ArrayLike) -> Floats:
    """V_t(s) = sum_a pi_t(a|s) (mean(s,a) + discount sum_s' P(s'|s,a) V_{t+1}(s')), V_L = 0, [L + 1, S]."""
    pi = by_step(mdp, checks.policy(mdp, policy))
    gain = checks.shaped("mean", mean, (mdp.states, mdp.actions))
    V = np.zeros((mdp.horizon + 1, mdp.states))
    for t in reversed(range(mdp.horizon)):
        V[t] = np.sum(pi[t] * (gain + mdp.discount * onward(mdp, V[t + 1])), axis=1)
    V[:, list(mdp.terminal)] = 0.0
    return V


def minimising(mdp: Mdp, mean: ArrayLike) -> tuple[Floats, float]:
    """The paper's b-minus: the policy of the smallest value, [L, S, A] and deterministic, and that value.

    V_t(s) = min_a mean(s,a) + discount sum_s' P(s'|s,a) V_{t+1}(s'); ties go to the lowest action.
    """
    checks.model(mdp)
    gain = checks.shaped("mean", mean, (mdp.states, mdp.actions))
    policy = np.zeros((mdp.horizon, mdp.states, mdp.actions))
    every = np.arange(mdp.states)
    V = np.zeros(mdp.states)
    for t in reversed(range(mdp.horizon)):
        Q = np.where(mdp.available, gain + mdp.discount * onward(mdp, V), np.inf)
        best = np.argmin(Q, axis=1)
        policy[t, every, best] = 1.0
        V = Q[every, best]
    return policy, float(mdp.start @ V)


def return_variance(mdp: Mdp, policy: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """The variance of one episode's discounted return, by the law of total variance.

    W_t(s) = E_a[variance + discount^2 (E[W_{t+1}(s')] + Var[V_{t+1}(s')])] + Var_a[Q_t(s,a)].
    """
    pi = by_step(mdp, checks.policy(mdp, policy))
    shape = (mdp.states, mdp.actions)
    noise = checks.within("variance", checks.shaped("variance", variance, shape), 0.0)
    gain = checks.shaped("mean", mean, shape)
    ends = 1.0 - onward(mdp, np.ones(mdp.states))
    V, W = np.zeros(mdp.states), np.zeros(mdp.states)
    for t in reversed(range(mdp.horizon)):
        ahead = onward(mdp, V)
        squares = mdp.flow.copy()  # (V(s') - ahead(s,a))^2: centred, so that nothing cancels
        squares.data *= (V[mdp.flow.indices] - np.repeat(ahead.ravel(), np.diff(mdp.flow.indptr))) ** 2
        spread = np.asarray(squares.sum(axis=1)).reshape(shape) + np.maximum(ends, 0.0) * ahead**2
        Q = gain + mdp.discount * ahead
        inner = noise + mdp.discount**2 * (onward(mdp, W) + spread)
        V = np.sum(pi[t] * Q, axis=1)
        W = np.sum(pi[t] * (inner + (Q - V[:, None]) ** 2), axis=1)
    centre = float(mdp.start @ V)
    return float(mdp.start @ (W + (V - centre) ** 2))


def onward(mdp: Mdp, V: Floats) -> Floats:
    """sum_s' P(s'|s,a) V(s') over the moves after which the episode goes on, [S, A]."""
    return (mdp.flow @ V).reshape(mdp.states, mdp.actions)


def followed(mdp: Mdp, policy: Floats, factor: float, x: Floats = NOTHING) -> Floats:
    """sum_t factor^t x_t(s,a), [S, A], of a policy that was checked; x_t goes to `x`, if that is given."""
    flow, c = mdp.flow, np.zeros((mdp.states, mdp.actions))
    factors = powers(factor, mdp.horizon)
    pi = read_only(policy if policy.ndim == 3 else policy[None])
    follow(flow.indptr, flow.indices, flow.data, mdp.start, pi, factors, x, c)
    return c


# -- what is asked: sums of means --


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of the rewards: sums of their means, with weights of either sign.

    The value of a policy is sum c(s,a) mean(s,a), the difference of two is the same with c - c_0. Several
    answers at once have the total variance sum_i c_i^2 variance / T, which is that of one answer of the
    weights `size` = sqrt(sum c_i^2).

    On a tree, weights of any kind are those of a policy pi with other variances: in `design.tree`'s recursion

        M(s) = sum_a pi(a|s) sqrt(factor variance + discount^2 sum_s' P(s'|s,a) M(s')^2),

    factor = (size / c_pi)^2, the visits of pi cancel from step to step, so any pi will do whose visits c_pi
    are positive where size is: the design is the best for `size`. On a graph that is, as Algorithm 2 is, what
    would be right on a tree. `reference` is such a policy: the target, if its value alone is asked, else the
    even mixture of all policies that are asked about.
    """

    weights: dict[str, Floats]  # of each answer, by the name of its target, [S, A] each
    size: Floats  # sqrt of the sum of their squares, [S, A]
    reference: Floats  # a policy that visits all pairs that have weight, [S, A], or [L, S, A] by step
    factor: Floats  # (size / weights of the reference)^2, [S, A]; 1 where a value alone is asked

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
        return np.mean([by_step(mdp, policy)[0] for policy in policies], axis=0)
    flow = np.mean([occupancy(mdp, policy) for policy in policies], axis=0)
    mass = flow.sum(axis=2, keepdims=True)
    return np.where(mass > 0.0, flow / np.where(mass > 0.0, mass, 1.0), by_step(mdp, mdp.uniform))
