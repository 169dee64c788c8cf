"""A model of one's own: diagnose first, then simulate two collectors.

A made-up clinic: after each visit a patient is stable or in pain, and gets the usual or the new treatment.
The constraint of a visit is 1 for one without side effects.
"""

import numpy as np

import saver

mdp = saver.Mdp.from_edges(
    [  # (state, action, next state, probability)
        (0, 0, 0, 0.7),
        (0, 0, 1, 0.3),
        (0, 1, 0, 0.9),
        (0, 1, 1, 0.1),
        (1, 0, 0, 0.4),
        (1, 0, 1, 0.6),
        (1, 1, 0, 0.7),
        (1, 1, 1, 0.3),
    ],
    states=2,
    actions=2,
    horizon=4,
    start=[0.5, 0.5],
    state_names=["stable", "in pain"],
    action_names=["usual", "new"],
)
world = saver.World(
    mdp,
    reward=saver.Gaussian(mean=[[0.8, 0.9], [0.3, 0.5]], variance=[[0.05, 1.0], [0.1, 2.0]]),
    constraint=saver.Bernoulli([[0.95, 0.75], [0.9, 0.6]]),
)
usual = np.array([[1.0, 0.0], [1.0, 0.0]])
problem = saver.Problem(
    mdp,
    target=[[0.9, 0.1], [0.6, 0.4]],
    baseline=usual,
    alpha=0.1,
    baseline_value=world.constraint_value(usual),
    constraint=saver.Bounded(0, 1),
)
clinic = saver.Scenario("clinic", world, problem, episodes=5000)

diagnosis = saver.diagnose(clinic)
print(f"{diagnosis.verdict.word}: {diagnosis.verdict.because}")
for remedy in diagnosis.verdict.remedies:
    print(f"  change {remedy}")
for way in ("on-policy", "safe-on-policy", "exact"):
    print(f"predicted K * MSE, {way}: {diagnosis.ways[way].at_budget:.3f}")
for collector in ("safe-on-policy", "saver-opt"):
    runs = saver.simulate(clinic, collector, runs=40, seed=0)
    error = clinic.episodes * runs.conditional_mse[:, -1].mean()
    broken, baseline = runs.violation_rate(), runs.baseline_share[:, -1].mean()
    print(f"simulated K * MSE, {collector}: {error:.3f}, baseline {baseline:.1%}, broken {broken:.1%}")
