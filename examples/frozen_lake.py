"""Gymnasium's FrozenLake: how often a new walker reaches the goal, with few more falls than the old one."""

import saver

watch = {"fell": lambda state, action, reward, to, done, info: float(done and reward == 0)}
world = saver.data.world_from_gymnasium("FrozenLake-v1", watch, horizon=50)
best = saver.problem.minimising(world.mdp, -world.reward.mean)[0]  # by value iteration
target, baseline = (share * best + (1 - share) * world.mdp.uniform for share in (0.9, 0.7))
fell = saver.Guardrail("fell", saver.Bounded(0, 1, next_state=True), alpha=0.1, cost=True)
problem = saver.Problem(world.mdp, target, baseline, guardrails=[fell], reward=saver.Bounded(0, 1))
campaign = saver.Campaign(problem, "saver-opt", episodes=500, seed=1)
saver.data.play_many("FrozenLake-v1", campaign, guardrails=watch, seed=2)
(low, high), budget = campaign.estimate().interval, campaign.budget
print(f"the goal is reached in {low:.3f} to {high:.3f} of the walks; the truth is {world.value(target):.3f}")
print(f"certified budget {budget.certified:.2f}, {budget.baseline_episodes} of {budget.episodes} baseline")
