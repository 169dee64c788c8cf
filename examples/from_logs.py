"""Logged baseline episodes as a start.

They feed the estimate and what the design believes of variances. They do not feed the safety budget, and the
design does not count them as visits that it has made. A bandit whose baseline action is noisy too:
"""

import saver

EPISODES = 500
scenario = saver.SCENARIOS["bandit"](actions=6, good_variance=20.0)
problem, world = scenario.problem, scenario.world

old = saver.Campaign(problem, "baseline", episodes=2000, seed=1)
player = saver.Player(world, seed=2)
logs = [player.run(old.ask()) for _ in range(2000)]  # a saver.Episode each

for name, history in (("without logs", None), ("with logs", logs)):
    campaign = saver.Campaign(problem, "saver-opt", EPISODES, history=history, seed=3)
    before = campaign.estimate().covered, campaign.budget.certified
    player = saver.Player(world, seed=4)
    plays = [0] * 6
    for _ in range(EPISODES):
        trial = campaign.ask()
        episode = player.run(trial)
        plays[episode.actions[0]] += 1
        campaign.tell(trial, episode)
    found = campaign.estimate()
    print(f"{name}: at the start {before[0]:.0%} of the target covered, certified budget {before[1]:.1f}")
    print(
        f"  after {EPISODES} episodes, {plays} of each action: {found.value:.3f}, stderr {found.stderr:.3f}"
    )
print(f"truth: {world.value(problem.target):.3f}")
