"""Two collectors on the paper's bandit, with standard errors.

`conditional_mse` is the mean squared error given the visits. It needs far fewer campaigns than the plain
average of squared errors, which stands beside it.
"""

import numpy as np

import saver

EPISODES, RUNS, SEED = 2000, 400, 0
scenario = saver.SCENARIOS["bandit"]()
safe = saver.design.exact(scenario.problem, scenario.world.reward.variance, scenario.world.constraint.mean)
print(f"{RUNS} campaigns of {EPISODES} episodes, seed {SEED}")
print(f"K * MSE; no safe collector has less than {safe.limit:.3f} in the long run")
print("collector   given visits         empirical            baseline  broken")
for name in ("saver", "saver-opt"):
    runs = saver.simulate(scenario, name, episodes=EPISODES, runs=RUNS, seed=SEED)
    given = EPISODES * runs.conditional_mse[:, -1]
    plain, error = (EPISODES * numbers[-1] for numbers in runs.mse())
    print(
        f"{name:<12}{given.mean():.3f} +- {given.std(ddof=1) / np.sqrt(RUNS):.3f}      "
        f"{plain:.3f} +- {error:.3f}      {runs.baseline_share[:, -1].mean():.3f}     "
        f"{runs.violation_rate():.1%}"
    )
