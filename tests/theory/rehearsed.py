"""Problems with a log, for tests of rehearsals."""

import numpy as np

from saver import END, Bounded, Episode, Guardrail, History, Problem, Unknown


def arms(rewards=(0.0, 2.0), each=50, target=1, **options):
    """One decision between two arms: both were played `2 * each` times, and earned each reward equally often.

    Arm 0 keeps 1 always, arm 1 keeps .8; the baseline tosses a fair coin.
    """
    mdp = Unknown(1, 2, 1)
    guard = Guardrail("kept", Bounded(0, 1), **{"alpha": 0.1, **options})
    problem = Problem(mdp, np.eye(2)[[target]], [[0.5, 0.5]], guardrails=[guard])
    log = [
        Episode([0], [arm], [reward], [(1.0, 0.8)[arm]], final_state=END)
        for arm in (0, 1)
        for reward in rewards
        for _ in range(each)
    ]
    return Problem(
        mdp, problem.target, problem.baseline, guardrails=[guard], history=History.of(problem, log)
    )


def walk(episodes=400, seed=0, reward=None, **options):
    """Three rooms in a row, two ways on; complaints cost, and are coins. Room 2 has an action never taken."""
    rng = np.random.default_rng(seed)
    mdp = Unknown(3, 2, 4, state_names=["a", "b", "c"])
    baseline = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    guard = Guardrail("complaint", Bounded(0, 1), **{"alpha": 0.4, "cost": True, **options})
    target = np.array([[0.2, 0.8], [0.2, 0.8], [1.0, 0.0]])
    stated = Problem(mdp, target, baseline, guardrails=[guard], reward=reward)
    log = []
    for _ in range(episodes):
        s, steps = 0, []
        while s != END and len(steps) < 4:
            a = int(rng.random() < baseline[s, 1])
            to = int(rng.choice([0, 1, 2, END], p=[0.1, 0.4, 0.2, 0.3]))
            steps.append((s, a, float(rng.uniform(0, 1 + a)), float(rng.random() < 0.1 + 0.05 * a), to))
            s = to
        states, actions, rewards, complaints, onward = zip(*steps, strict=True)
        log.append(Episode(states, actions, rewards, complaints, final_state=onward[-1]))
    return Problem(mdp, target, baseline, guardrails=[guard], reward=reward, history=History.of(stated, log))
