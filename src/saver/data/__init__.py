"""From elsewhere and back: Gymnasium's environments."""

from typing import Any

from saver.data.playing import CutOff, play
from saver.data.tables import from_gymnasium, unknown_from_gymnasium, world_from_gymnasium
from saver.data.vector import play_many

LATE = ("ScenarioEnv", "register")  # they need Gymnasium, which is imported when they are asked for

__all__ = [
    "CutOff",
    "ScenarioEnv",
    "from_gymnasium",
    "play",
    "play_many",
    "register",
    "unknown_from_gymnasium",
    "world_from_gymnasium",
]


def __getattr__(name: str) -> Any:
    if name in LATE:
        from saver.data import envs

        return getattr(envs, name)
    raise AttributeError(f"module 'saver.data' has no attribute {name!r}")
