"""Logs for the tests of this folder."""

from logged_world import Shop

__all__ = ["SMALL", "Shop"]

SMALL = {
    "episode": ["b", "b", "a", "a", "a"],
    "step": [1, 0, 0, 1, 2],
    "state": ["y", "x", "x", "y", "x"],
    "action": [10, 2, 2, 10, 2],
    "reward": [1.0, 2.0, 3.0, 4.0, 5.0],
    "complaint": [0, 1, 0, 1, 0],
}
