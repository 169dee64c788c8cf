"""The exact program written for cvxpy, as a second opinion."""

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog


def smallest_limit(mdp, w, mean=None, required=None, onward=None):
    """The smallest sum w / N; for mean [S, A] or [m, S, A] with V_i >= required, a number or [m].

    `onward` [S, A] adds sum onward / N^-, N^- of the steps before the last.
    """
    S, A, L = mdp.states, mdp.actions, mdp.horizon
    moves = mdp.flow.toarray()
    out = np.kron(np.eye(S), np.ones((1, A)))
    x = [cp.Variable(S * A, nonneg=True) for _ in range(L)]
    rules = [out @ x[0] == mdp.start]
    rules += [out @ x[t + 1] == moves.T @ x[t] for t in range(L - 1)]
    rules += [x[t][~mdp.available.ravel()] == 0 for t in range(L) if not mdp.available.all()]
    if mean is not None:
        means = np.reshape(mean, (-1, S * A))
        earned = sum(mdp.discount**t * (means @ x[t]) for t in range(L))
        rules.append(earned >= np.ravel(required))
    parts = [(w, sum(x))] + ([] if onward is None else [(onward, sum(x[:-1]))])
    unit, cost = max(weight.max() for weight, _ in parts), 0
    for weight, visits in parts:
        used = weight.ravel() > 0
        cost += cp.sum(cp.multiply(weight.ravel()[used] / unit, cp.inv_pos(visits[used])))
    program = cp.Problem(cp.Minimize(cost), rules)
    program.solve(solver=cp.CLARABEL)
    return float(unit * program.value)


def best_balance(mdp, means, required, scales):
    """max over flows of min_i (V_i - required_i) / scale_i, by linear programming; V_i at the optimum."""
    S, A, L, m = mdp.states, mdp.actions, mdp.horizon, len(means)
    out, onward = np.kron(np.eye(S), np.ones((1, A))), mdp.flow.toarray()
    equal, side = np.zeros((L * S, L * S * A + 1)), np.zeros(L * S)
    side[:S] = mdp.start
    for t in range(L):
        equal[t * S : t * S + S, t * S * A : (t + 1) * S * A] = out
        if t > 0:
            equal[t * S : t * S + S, (t - 1) * S * A : t * S * A] = -onward.T
    values = np.concatenate([mdp.discount**t * np.reshape(means, (m, -1)) for t in range(L)], axis=1)
    above = np.concatenate([-values / np.reshape(scales, (m, 1)), np.ones((m, 1))], axis=1)
    limits = [(0, None if ok else 0) for _ in range(L) for ok in mdp.available.ravel()] + [(None, None)]
    cost = np.zeros(L * S * A + 1)
    cost[-1] = -1.0
    found = linprog(cost, above, -np.divide(required, scales), equal, side, limits)
    return -found.fun, values @ found.x[:-1], -found.ineqlin.marginals
