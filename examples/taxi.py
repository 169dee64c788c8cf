"""Gymnasium's Taxi: what a better driver earns, without more illegal stops than the present one makes."""

import saver

watch = {"illegal": lambda state, action, reward, to, done, info: float(reward == -10)}
world = saver.data.world_from_gymnasium("Taxi-v4", watch, horizon=25)
best = saver.problem.minimising(world.mdp, -world.reward.mean)[0]  # by value iteration
target, baseline = (share * best + (1 - share) * world.mdp.uniform for share in (0.9, 0.8))
# a stop is illegal or not by its place alone: there is no noise
illegal = saver.Guardrail("illegal", saver.SubGaussian(0.0, floor=0, ceiling=1), alpha=0.2, cost=True)
problem = saver.Problem(world.mdp, target, baseline, guardrails=[illegal], reward=saver.Bounded(-10, 20))
campaign = saver.Campaign(problem, "safe-on-policy", episodes=600, seed=1)
saver.data.play_many("Taxi-v4", campaign, guardrails=watch, seed=2)
(low, high), budget = campaign.estimate().interval, campaign.budget
print(f"the driver earns {low:.2f} to {high:.2f}; the truth is {world.value(target):.2f}")
print(f"certified budget {budget.certified:.2f}, {budget.baseline_episodes} of {budget.episodes} baseline")
