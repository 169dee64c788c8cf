"""The exact program written for cvxpy, as a second opinion."""

import cvxpy as cp
import numpy as np


def smallest_limit(mdp, w, mean=None, required=None):
    S, A, L = mdp.states, mdp.actions, mdp.horizon
    onward = mdp.flow.toarray()
    out = np.kron(np.eye(S), np.ones((1, A)))
    x = [cp.Variable(S * A, nonneg=True) for _ in range(L)]
    rules = [out @ x[0] == mdp.start]
    rules += [out @ x[t + 1] == onward.T @ x[t] for t in range(L - 1)]
    rules += [x[t][~mdp.available.ravel()] == 0 for t in range(L) if not mdp.available.all()]
    if mean is not None:
        earned = sum(mdp.discount**t * (mean.ravel() @ x[t]) for t in range(L))
        rules.append(earned >= required)
    used = w.ravel() > 0
    cost = cp.sum(cp.multiply(w.ravel()[used], cp.inv_pos(sum(x)[used])))
    program = cp.Problem(cp.Minimize(cost), rules)
    program.solve(solver=cp.CLARABEL)
    return float(program.value)
