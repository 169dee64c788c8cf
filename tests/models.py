"""Models that several tests need, and a second opinion on them by brute force."""

from __future__ import annotations

import numpy as np

from saver import Mdp


def random_policy(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def random_graph(
    seed,
    *,
    states=4,
    actions=2,
    horizon=3,
    discount=0.9,
    terminal=True,
    density=0.6,
):
    """Stochastic, with rows that end, a terminal and an unreachable state, and a start distribution."""
    rng = np.random.default_rng(seed)
    P = rng.random((states, actions, states)) * (rng.random((states, actions, states)) < density)
    P[:, :, -1] = 0.0  # the last state is never entered
    sums = P.sum(axis=2, keepdims=True)
    P = np.divide(P, sums, out=np.zeros_like(P), where=sums > 0)
    start = rng.dirichlet(np.ones(states))
    ends = (states - 2,) if terminal else ()
    start[[states - 1, *ends]] = 0.0
    return Mdp(P, horizon, discount=discount, start=start / start.sum(), terminal=ends)


def random_maze(seed, *, states=5, actions=3, horizon=4, discount=0.9):
    """Deterministic: every action leads somewhere or ends, some are missing; a terminal state."""
    rng = np.random.default_rng(seed)
    available = rng.random((states, actions)) < 0.8
    available[np.arange(states), rng.integers(0, actions, states)] = True
    edges = [
        (s, a, int(rng.integers(0, states)), 1.0)
        for s in range(states)
        for a in range(actions)
        if available[s, a] and rng.random() < 0.8
    ]
    return Mdp.from_edges(
        edges, states, actions, horizon, discount=discount, terminal=(states - 1,), available=available
    )


def random_tree(seed, *, depth=3, actions=2, discount=0.9, children=2):
    """Stochastic: each action of an inner state leads to `children` states of its own, or ends."""
    rng = np.random.default_rng(seed)
    edges, level, states = [], [0], 1
    for _ in range(depth - 1):
        following = []
        for s in level:
            for a in range(actions):
                if rng.random() < 0.2:
                    continue
                chance = rng.dirichlet(np.ones(children))
                for p in chance:
                    edges.append((s, a, states, p))
                    following.append(states)
                    states += 1
        level = following
    return Mdp.from_edges(edges, states, actions, depth, discount=discount)


def paths(mdp, policy):
    """Every trajectory with its probability: [(p, ((s, a), (s, a), ...))], by enumeration."""
    P = mdp.transitions.toarray().reshape(mdp.states, mdp.actions, mdp.states)
    pi = np.broadcast_to(policy, (mdp.horizon, mdp.states, mdp.actions))
    done = []
    alive = [(mdp.start[s], (), s) for s in range(mdp.states) if mdp.start[s] > 0]
    for t in range(mdp.horizon):
        following = []
        for p, path, s in alive:
            for a in range(mdp.actions):
                here = p * pi[t, s, a]
                if here == 0:
                    continue
                longer = (*path, (s, a))
                stays = [n for n in range(mdp.states) if P[s, a, n] > 0]
                if not stays or t + 1 == mdp.horizon:
                    done.append((here, longer))
                    continue
                for n in stays:
                    if n in mdp.terminal:
                        done.append((here * P[s, a, n], longer))
                    else:
                        following.append((here * P[s, a, n], longer, n))
        alive = following
    return done


def roll(mdp, policy, world, rng):
    """One simulated episode: states, actions, rewards, propensities."""
    P = mdp.transitions.toarray().reshape(mdp.states, mdp.actions, mdp.states)
    pi = np.broadcast_to(policy, (mdp.horizon, mdp.states, mdp.actions))
    s = int(rng.choice(mdp.states, p=mdp.start))
    states, actions, rewards, propensities = [], [], [], []
    for t in range(mdp.horizon):
        a = int(rng.choice(mdp.actions, p=pi[t, s]))
        states.append(s)
        actions.append(a)
        rewards.append(world.reward.sample(rng, s, a))
        propensities.append(pi[t, s, a])
        if P[s, a].sum() == 0:
            break
        s = int(rng.choice(mdp.states, p=P[s, a]))
        if s in mdp.terminal:
            break
    return states, actions, rewards, propensities
