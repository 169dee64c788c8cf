"""Figures: they read tables and never simulate."""

from saver.experiments.figures.draw import drawings
from saver.experiments.figures.pictures import draw_design

__all__ = ["draw_design", "drawings"]
