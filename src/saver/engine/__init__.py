"""Engines that run many campaigns in a simulated world."""

from saver.engine.runs import Runs
from saver.engine.simulate import simulate

__all__ = ["Runs", "simulate"]
