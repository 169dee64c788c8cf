"""Gymnasium's CliffWalking: what a steadier walker is worth, without more falls than the present one has."""

import saver

watch = {"fell": lambda state, action, reward, to, done, info: float(reward == -100)}
world = saver.data.world_from_gymnasium("CliffWalking-v1", watch, horizon=30)
best = saver.problem.minimising(world.mdp, -world.reward.mean)[0]  # by value iteration
target, baseline = (share * best + (1 - share) * world.mdp.uniform for share in (0.9, 0.8))
fell = saver.Guardrail("fell", saver.Bounded(0, 1), alpha=0.2, cost=True)
problem = saver.Problem(world.mdp, target, baseline, guardrails=[fell], reward=saver.Bounded(-100, -1))
campaign = saver.Campaign(problem, "saver-opt", episodes=500, seed=1)
saver.data.play_many("CliffWalking-v1", campaign, guardrails=watch, seed=2)
(low, high), budget = campaign.estimate().interval, campaign.budget
print(f"a walk is worth {low:.2f} to {high:.2f}; the truth is {world.value(target):.2f}")
print(f"certified budget {budget.certified:.2f}, {budget.baseline_episodes} of {budget.episodes} baseline")
