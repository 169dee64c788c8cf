"""Gymnasium's Blackjack, whose transitions nobody wrote down: what is it worth to hit below 18, not 16?"""

import numpy as np

import saver

mdp = saver.data.unknown_from_gymnasium("Blackjack-v1", horizon=8)
total = np.array([int(name[1:].partition(",")[0]) for name in mdp.state_names])  # of "(13, 10, 0)": 13
target, baseline = (0.9 * np.eye(2)[1 * (total < limit)] + 0.1 * mdp.uniform for limit in (18, 16))
lost = saver.Guardrail("lost", saver.Bounded(0, 1), alpha=0.3, cost=True)
problem = saver.Problem(mdp, target, baseline, guardrails=[lost], reward=saver.Bounded(-1, 1))
campaign = saver.Campaign(problem, "saver-opt", episodes=3000, seed=1)
saver.data.play_many("Blackjack-v1", campaign, guardrails={"lost": lambda *step: float(step[2] < 0)}, seed=2)
(low, high), budget = campaign.estimate().interval, campaign.budget
print(f"a game is worth {low:.3f} to {high:.3f}")
print(f"certified budget {budget.certified:.2f}, {budget.baseline_episodes} of {budget.episodes} baseline")
