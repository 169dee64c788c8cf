"""Small environments with known answers."""

import gymnasium
import numpy as np

# two rooms: action 0 stays (reward 1), action 1 goes to the other room (reward 0), or with chance .25 out (5)
TABLE = {
    0: {0: [(1.0, 0, 1.0, False)], 1: [(0.75, 1, 0.0, False), (0.25, 1, 5.0, True)]},
    1: {0: [(1.0, 1, 1.0, False)], 1: [(0.75, 0, 0.0, False), (0.25, 0, 5.0, True)]},
}


class Rooms(gymnasium.Env):
    """TABLE as an environment."""

    P = TABLE
    initial_state_distrib = np.array([1.0, 0.0])
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    starts = 0  # resets so far, as a marker in info

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.time, self.starts = 0, 0, self.starts + 1
        return self.state, {"time": 0}

    def step(self, action):
        rows = self.P[self.state][int(action)]
        row = rows[int(self.np_random.choice(len(rows), p=[row[0] for row in rows]))]
        self.state, self.time = row[1], self.time + 1
        return self.state, row[2], row[3], False, {"time": self.time}


class Walk(gymnasium.Env):
    """Deterministic: the observation counts the steps, the reward is 10 times it; it ends at `ends`."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, ends=None, stops=None):
        self.ends, self.stops = ends, stops
        self.observation_space = gymnasium.spaces.Discrete(20)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += 1
        return (
            self.at,
            10.0 * self.at,
            self.at == self.ends,
            self.at == self.stops,
            {"cost": 0.5, "a": float(action)},
        )
